//===- RematDialect.cpp - Registration of the remat dialect -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::remat;

#include "reprise/Dialect/Remat/RematDialect.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "reprise/Dialect/Remat/RematAttributes.cpp.inc"
#define GET_OP_CLASSES
#include "reprise/Dialect/Remat/RematOps.cpp.inc"

void RematDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "reprise/Dialect/Remat/RematAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "reprise/Dialect/Remat/RematOps.cpp.inc"
      >();
}

LogicalResult RematDialect::verifyOperationAttribute(Operation *op,
                                                     NamedAttribute attribute) {
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  if (name == kDecisionAttr) {
    if (isa<SaveAttr, RecomputeAttr>(value))
      return success();
    return op->emitOpError("needs #remat.save or #remat.recompute for "
                           "'remat.decision', but got ")
           << value;
  }
  if (name == kReplayAttr) {
    if (isa<IntegerAttr>(value))
      return success();
    return op->emitOpError("needs the number of a segment for 'remat.replay', "
                           "but got ")
           << value;
  }
  return op->emitOpError("has no use for the attribute '")
         << name << "' with value " << value;
}
