//===- BiasGradients.cpp - Sums beside gradients of weights -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The gradient of a bias is the sum of the rows that the gradient of the weight
// multiplies. A library makes it on its way, but only to write it over what is
// there. With one micro-batch that is all there is to do; with more, another
// launch adds it to the sum of the micro-batches. At the end of the backward
// pass these additions are neighbours, and become one launch for many biases.
//
//===----------------------------------------------------------------------===//

#include "PrepareSchedule.h"
#include "reprise/Dialect/RT/RTOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

/// Whether what `op` makes is read, and not before `end`.
static bool isReadLate(Operation *op, Operation *end) {
  return !op->use_empty() && llvm::all_of(op->getUsers(), [&](Operation *user) {
    return user == end || end->isBeforeInBlock(user);
  });
}

/// The op that adds `sums` to a running sum, or null.
static AccumulateOp getAccumulate(SumRowsOp sums) {
  if (!sums->hasOneUse())
    return {};
  auto accumulate = dyn_cast<AccumulateOp>(*sums->user_begin());
  return accumulate && accumulate.getTerm() == sums.getOut() ? accumulate
                                                             : AccumulateOp();
}

DenseMap<Operation *, SumRowsOp>
kernels::takeBiasGradients(func::FuncOp function) {
  DenseMap<Operation *, SumRowsOp> taken;
  auto module = function->getParentOfType<ModuleOp>();
  if (!module || !module->hasAttr(rt::kGemmWorkspaceAttr) ||
      module->hasAttr(rt::kBiasKernelsAttr))
    return taken;
  Block &block = function.getBody().front();
  Operation *end = block.getTerminator();
  for (auto update : block.getOps<UpdateOp>()) {
    end = update;
    break;
  }
  DenseSet<Operation *> found;
  for (auto weight : block.getOps<LinearBackwardWeightOp>())
    for (Operation *user : weight.getDout().getUsers()) {
      auto sums = dyn_cast<SumRowsOp>(user);
      if (!sums || !weight->isBeforeInBlock(sums) || found.contains(sums))
        continue;
      AccumulateOp accumulate = getAccumulate(sums);
      if (!isReadLate(accumulate ? accumulate : sums.getOperation(), end))
        continue;
      if (accumulate)
        accumulate->moveBefore(end);
      found.insert(sums);
      taken[weight] = sums;
      break;
    }
  return taken;
}
