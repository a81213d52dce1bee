//===- Interfaces.cpp - Op interfaces ----------------------------*- C++ -*===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/BuiltinTypes.h"
#include "reprise/Interfaces/CostModel.h"
#include "reprise/Interfaces/Differentiable.h"

using namespace mlir;

int64_t reprise::getTypeBytes(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  if (!shaped || !shaped.hasStaticShape() ||
      !shaped.getElementType().isIntOrFloat())
    return 0;
  return shaped.getNumElements() * ((shaped.getElementTypeBitWidth() + 7) / 8);
}

int64_t reprise::getOperandAndResultBytes(Operation *op) {
  int64_t bytes = 0;
  for (Type type : op->getOperandTypes())
    bytes += getTypeBytes(type);
  for (Type type : op->getResultTypes())
    bytes += getTypeBytes(type);
  return bytes;
}

#include "reprise/Interfaces/CostModel.cpp.inc"
#include "reprise/Interfaces/Differentiable.cpp.inc"
