//===- BudgetStageBaselines.cpp - Megatron's options on a pipeline --------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BudgetStages.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::planning;

/// What a chunk needs if `kept` of the step is kept; what it receives it keeps
/// in any case. Adds the replays of a micro-batch to `seconds`.
static solver::ChunkBytes measure(const Chunk &chunk,
                                  solver::StepSimulator &simulator,
                                  const solver::KeptValues &kept,
                                  double &seconds) {
  const solver::StepGraph &graph = chunk.step.graph;
  solver::KeptValues own = solver::keepAll(graph);
  for (size_t v = 0; v < own.size(); ++v)
    if (graph.values[v].rule != solver::StepValue::Rule::Keep)
      own[v] = kept[chunk.step.values[v]];
  for (int64_t received : graph.ops.front().writes)
    own[received] = true;
  const solver::StepRun &run = simulator.run(own);
  seconds += run.replaySeconds;
  return {solver::getKeptBytes(graph, own), run.peak};
}

FailureOr<std::vector<BudgetChoice>>
planning::tryStageBaselines(func::FuncOp step, WhatIf &whatIf,
                            const CostTable &costs,
                            const BudgetSettings &settings,
                            const Budget &budget, ArrayRef<int64_t> baseBytes) {
  FailureOr<TracedGraph> traced =
      traceUndecided(whatIf, costs, settings.isFree);
  if (failed(traced))
    return failure();
  FailureOr<Pipeline> pipeline = getPipeline(
      step, *traced, step->getAttrOfType<remat::ChunksAttr>(remat::kChunksAttr),
      budget.kind);
  if (failed(pipeline))
    return failure();
  const solver::PipelineShape &shape = pipeline->shape;
  auto getTimes = [&] {
    std::vector<solver::ChunkTimes> times(shape.stages * shape.virtualStages);
    for (auto [s, stage] : llvm::enumerate(pipeline->stages))
      for (auto [v, chunk] : llvm::enumerate(stage.chunks))
        times[v * shape.stages + s] = chunk.times;
    return times;
  };
  double bare = solver::getSpan(shape, pipeline->schedule, getTimes());
  std::vector<std::vector<solver::StepSimulator>> simulators;
  for (const Stage &stage : pipeline->stages) {
    simulators.emplace_back();
    for (const Chunk &chunk : stage.chunks)
      simulators.back().emplace_back(chunk.step.graph);
  }
  return tryBaselines(
      whatIf, *traced, settings, budget.bytes,
      [&](const solver::KeptValues &kept) -> BaselineRun {
        BaselineRun found;
        std::vector<solver::ChunkTimes> times = getTimes();
        for (auto [s, stage] : llvm::enumerate(pipeline->stages)) {
          SmallVector<solver::ChunkBytes> needed;
          for (auto [v, chunk] : llvm::enumerate(stage.chunks))
            needed.push_back(measure(chunk, simulators[s][v], kept,
                                     times[v * shape.stages + s].backward));
          found.bytes =
              std::max(found.bytes, baseBytes[s] + stage.getNeed(needed));
        }
        double span = solver::getSpan(shape, pipeline->schedule, times);
        found.programBytes = found.bytes;
        found.replaySeconds = std::max(span - bare, 0.0);
        return found;
      });
}
