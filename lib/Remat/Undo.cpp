//===- Undo.cpp - A step as no decider has seen it --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Remat/Undo.h"
#include "Decide.h"
#include "Step.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::remat;

void remat::undecide(Operation *op) {
  if (!isMadeInRounds(op))
    op->removeAttr(kDecisionAttr);
}

LogicalResult remat::undo(func::FuncOp function) {
  FailureOr<Step> step = getStep(function);
  if (failed(step))
    return failure();
  // Originals are found by what replays still look like.
  Originals originals(*step);
  SmallVector<std::pair<Operation *, SmallVector<Value>>> replaced;
  for (Operation *op : step->below) {
    if (auto fence = dyn_cast<FenceOp>(op)) {
      replaced.push_back({op, {fence.getValue()}});
    } else if (Value whole = originals.findShared(op)) {
      replaced.push_back({op, {whole}});
    } else if (isReplay(op)) {
      Operation *original = originals.find(op);
      if (!original)
        return op->emitOpError("needs an original to be undone, but there is "
                               "none");
      replaced.push_back({op, SmallVector<Value>(original->getResults())});
    }
  }
  for (auto [op, values] : replaced)
    op->replaceAllUsesWith(values);
  for (auto [op, values] : llvm::reverse(replaced))
    op->erase();
  for (Operation *op : step->forward) {
    undecide(op);
    if (op->hasAttr(kShareAttr) && op->use_empty())
      op->erase();
  }
  for (BlockArgument argument : function.getArguments())
    function.removeArgAttr(argument.getArgNumber(), kDecisionAttr);
  return success();
}
