//===- Phases.cpp - The phases of a step ----------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Dialect/NN/Phases.h"
#include "reprise/Dialect/NN/NNOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

std::optional<StepPhase> nn::getPhaseBegun(Operation *op) {
  if (isa<ForwardOp>(op))
    return StepPhase::Forward;
  if (isa<BackwardOp>(op))
    return StepPhase::Backward;
  if (isa<UpdateOp>(op))
    return StepPhase::Update;
  return std::nullopt;
}

Operation *nn::findPhase(func::FuncOp function, StepPhase phase) {
  for (Operation &op : function.getBody().getOps())
    if (begins(&op, phase))
      return &op;
  return nullptr;
}

llvm::iterator_range<Block::iterator> nn::getForward(Block &block) {
  return {block.begin(), llvm::find_if(block, [](Operation &op) {
            return begins(&op, StepPhase::Backward);
          })};
}
