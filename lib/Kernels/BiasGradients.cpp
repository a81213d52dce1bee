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

#include "KernelBody.h"
#include "PrepareSchedule.h"
#include "reprise/Dialect/NN/Phases.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::kernels;
using namespace reprise::nn;

/// Whether what `op` makes is read, and not before `end`.
static bool isReadLate(Operation *op, Operation *end) {
  return !op->use_empty() && llvm::all_of(op->getUsers(), [&](Operation *user) {
    return user == end || end->isBeforeInBlock(user);
  });
}

/// The op that adds `sums` to a running sum, or null.
static Operation *getRunningSum(Operation *sums) {
  if (!sums->hasOneUse())
    return nullptr;
  auto running = dyn_cast<RunningSum>(*sums->user_begin());
  return running && running.getTerm() == sums->getResult(0)
             ? running.getOperation()
             : nullptr;
}

DenseMap<Operation *, Operation *>
kernels::takeBiasGradients(func::FuncOp function) {
  DenseMap<Operation *, Operation *> taken;
  auto module = function->getParentOfType<ModuleOp>();
  if (!module || !module->hasAttr(rt::kGemmWorkspaceAttr) ||
      module->hasAttr(rt::kBiasKernelsAttr))
    return taken;
  Block &block = function.getBody().front();
  Operation *end = block.getTerminator();
  if (Operation *update = findPhase(function, StepPhase::Update))
    end = update;
  DenseSet<Operation *> found;
  for (auto gemm : block.getOps<GemmBody>()) {
    Value rows = gemm.getSummedRows();
    if (!rows)
      continue;
    for (Operation *sums : rows.getUsers()) {
      if (!isa<BiasGradient>(sums) || !gemm->isBeforeInBlock(sums) ||
          found.contains(sums))
        continue;
      Operation *running = getRunningSum(sums);
      if (!isReadLate(running ? running : sums, end))
        continue;
      if (running)
        running->moveBefore(end);
      found.insert(sums);
      taken[gemm] = sums;
      break;
    }
  }
  return taken;
}
