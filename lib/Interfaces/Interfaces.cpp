//===- Interfaces.cpp - Op interfaces -------------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/BuiltinTypes.h"
#include "reprise/Interfaces/CostModel.h"
#include "reprise/Interfaces/Differentiable.h"
#include "reprise/Interfaces/Facts.h"
#include "reprise/Interfaces/Partitionable.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;

int64_t reprise::getTypeBytes(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  if (!shaped || !shaped.hasStaticShape() ||
      !shaped.getElementType().isIntOrFloat())
    return 0;
  int64_t bytes = (shaped.getElementTypeBitWidth() + 7) / 8;
  for (int64_t size : shaped.getShape())
    if (llvm::MulOverflow(bytes, size, bytes))
      return std::numeric_limits<int64_t>::max();
  return bytes;
}

int64_t reprise::getOperandAndResultBytes(Operation *op) {
  uint64_t bytes = 0;
  for (Type type : op->getOperandTypes())
    bytes = llvm::SaturatingAdd(bytes, uint64_t(getTypeBytes(type)));
  for (Type type : op->getResultTypes())
    bytes = llvm::SaturatingAdd(bytes, uint64_t(getTypeBytes(type)));
  return std::min(bytes, uint64_t(std::numeric_limits<int64_t>::max()));
}

#include "reprise/Interfaces/CostModel.cpp.inc"
#include "reprise/Interfaces/Differentiable.cpp.inc"
#include "reprise/Interfaces/Facts.cpp.inc"
#include "reprise/Interfaces/Partitionable.cpp.inc"
