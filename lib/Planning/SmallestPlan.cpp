//===- SmallestPlan.cpp - What a step needs at least ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BudgetStages.h"
#include "reprise/Dialect/NN/NNOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::planning;

FailureOr<int64_t> planning::findSmallest(const Phases &phases, ModuleOp module,
                                          Budget::Kind kind,
                                          const CostTable &costs, bool isFree) {
  FailureOr<std::unique_ptr<SolvedStep>> solved =
      SolvedStep::create(phases, module, kind, costs, isFree);
  if (failed(solved) || (*solved)->curve.points.empty())
    return failure();
  BudgetSearch &search = (*solved)->search;
  int64_t point = search.findSmallest();
  if (point < 0)
    return failure();
  return search.getBytes(point);
}

FailureOr<int64_t>
planning::findSmallestOnStages(const Phases &phases, ModuleOp module,
                               Budget::Kind kind, const CostTable &costs,
                               const BudgetSettings &settings) {
  auto step = module.lookupSymbol<func::FuncOp>(nn::kStepFunction);
  auto chunks = step
                    ? step->getAttrOfType<remat::ChunksAttr>(remat::kChunksAttr)
                    : remat::ChunksAttr();
  if (!chunks)
    return failure();
  FailureOr<std::unique_ptr<WhatIf>> whatIf = WhatIf::create(module, phases);
  FailureOr<TracedGraph> traced = failure();
  if (succeeded(whatIf))
    traced = (*whatIf)->trace(costs, settings.isFree);
  if (failed(traced))
    return failure();
  FailureOr<Pipeline> pipeline = getPipeline(step, *traced, chunks, kind);
  if (failed(pipeline))
    return failure();
  solveChunks(*pipeline);
  for (const Stage &stage : pipeline->stages)
    if (stage.curve.empty())
      return failure();
  std::vector<int64_t> base = getBaseBytes(
      *pipeline, getStateBytes(step, *traced, *pipeline, chunks), kind);
  return StagePlans(*pipeline, base,
                    getMeasure(module, *traced, *pipeline, settings))
      .findLeast()
      .bytes;
}
