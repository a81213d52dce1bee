//===- TermsOfStages.cpp - Which stage has a term of the loss -------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In the step of a whole model all terms of the loss are behind the layers. On
// stages a term is where what it is made of is: behind the layers of that
// chunk, and its gradient is the first that the chunk makes.
//
//===----------------------------------------------------------------------===//

#include "BudgetStages.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/NN/Phases.h"
#include "reprise/Support/Modules.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::planning;

static bool isOfLoss(Operation *op) {
  nn::ScopeAttr scope = nn::getScope(op);
  return scope && scope.getModule() == getName(ModuleKind::Loss);
}

TermHomes::TermHomes(func::FuncOp step, ArrayRef<int64_t> layers) {
  std::vector<int64_t> chunkOf; // of each layer
  for (auto [chunk, count] : llvm::enumerate(layers))
    chunkOf.insert(chunkOf.end(), count, chunk);
  int64_t last = int64_t(layers.size()) - 1;
  DenseMap<Operation *, int64_t> chunks; // of those that read layers
  DenseMap<Attribute, int64_t> terms;    // by scope, which gradients have, too
  bool isForward = true;
  for (Operation &op : step.getBody().front()) {
    if (nn::begins(&op, nn::StepPhase::Update))
      return;
    isForward &= !nn::begins(&op, nn::StepPhase::Backward);
    nn::ScopeAttr scope = nn::getScope(&op);
    if (!isForward) {
      if (auto term = terms.find(scope); term != terms.end())
        homes[&op] = term->second;
      continue;
    }
    int64_t layer = scope ? scope.getLayer() : -1, latest = -1;
    for (Value operand : op.getOperands())
      if (auto maker = chunks.find(operand.getDefiningOp());
          maker != chunks.end())
        latest = std::max(latest, maker->second);
    if (layer >= 0 && layer < int64_t(chunkOf.size()))
      chunks[&op] = chunkOf[layer];
    else if (latest >= 0)
      chunks[&op] = isOfLoss(&op) ? latest : last;
    if (layer < 0 && isOfLoss(&op) && latest >= 0 && latest < last)
      homes[&op] = terms[scope] = latest;
  }
}

std::vector<int64_t> TermHomes::getByLaunch(func::FuncOp step,
                                            const TracedGraph &traced) const {
  SmallVector<int64_t> byPosition;
  for (Operation &op : step.getBody().front())
    byPosition.push_back(get(&op));
  std::vector<int64_t> byLaunch;
  for (auto [op, position] : llvm::zip(traced.graph.ops, traced.positions))
    byLaunch.push_back(op.layer < 0 && position >= 0 ? byPosition[position]
                                                     : -1);
  return byLaunch;
}
