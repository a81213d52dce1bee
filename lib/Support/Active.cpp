//===- Active.cpp - What a gradient goes through --------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Support/Active.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

DenseSet<Value>
reprise::findActive(Block &block,
                    llvm::function_ref<bool(BlockArgument)> isTrained) {
  DenseSet<Value> active;
  for (BlockArgument argument : block.getArguments())
    if (isTrained(argument))
      active.insert(argument);
  for (Operation &op : block)
    if (llvm::any_of(op.getOperands(),
                     [&](Value operand) { return active.contains(operand); }))
      for (Value result : op.getResults())
        if (isa<FloatType>(getElementTypeOrSelf(result)))
          active.insert(result);
  return active;
}
