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

/// A segment counts from 0, and the results dropped are some of the op's.
static LogicalResult verifyRecompute(Operation *op, RecomputeAttr decision) {
  if (decision.getSegment() < 0)
    return op->emitOpError("needs a segment of at least 0 to recompute in, "
                           "but got ")
           << decision.getSegment();
  if (!decision.getResults())
    return success();
  int64_t previous = -1;
  for (int64_t result : decision.getResults().asArrayRef()) {
    if (result <= previous || result >= int64_t(op->getNumResults()))
      return op->emitOpError("needs rising numbers of its ")
             << op->getNumResults() << " results to recompute, but got "
             << result << (previous < 0 ? " first" : " after ")
             << (previous < 0 ? "" : std::to_string(previous));
    previous = result;
  }
  return success();
}

LogicalResult RematDialect::verifyOperationAttribute(Operation *op,
                                                     NamedAttribute attribute) {
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  if (name == kDecisionAttr) {
    if (isa<SaveAttr>(value))
      return success();
    if (auto recompute = dyn_cast<RecomputeAttr>(value))
      return verifyRecompute(op, recompute);
    return op->emitOpError("needs #remat.save or #remat.recompute for "
                           "'remat.decision', but got ")
           << value;
  }
  if (name == kReplayAttr) {
    auto segment = dyn_cast<IntegerAttr>(value);
    if (segment && segment.getType().isInteger(64) && segment.getInt() >= 0)
      return success();
    return op->emitOpError("needs the number of a segment, an i64 of at least "
                           "0, for 'remat.replay', but got ")
           << value;
  }
  return op->emitOpError("has no use for the attribute '")
         << name << "' with value " << value;
}
