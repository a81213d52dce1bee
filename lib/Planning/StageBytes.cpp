//===- StageBytes.cpp - What the stages of a pipeline need ----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Planning/StageBytes.h"
#include "BudgetStages.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/Remat/RematOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::planning;

/// What a chunk keeps: all that no decision drops, and what it receives.
static solver::KeptValues getKept(const Chunk &chunk) {
  const solver::StepGraph &graph = chunk.step.graph;
  solver::KeptValues kept = solver::keepAll(graph);
  for (int64_t received : graph.ops.front().writes)
    kept[received] = true;
  return kept;
}

FailureOr<std::vector<StageBytes>>
planning::measureStages(const Phases &phases, ModuleOp module,
                        const CostTable &costs, bool isFree) {
  auto step = module.lookupSymbol<func::FuncOp>(nn::kStepFunction);
  auto chunks = step
                    ? step->getAttrOfType<remat::ChunksAttr>(remat::kChunksAttr)
                    : remat::ChunksAttr();
  if (!chunks)
    return module.emitError("needs a function @step with 'remat.chunks' for "
                            "the bytes of its stages");
  FailureOr<std::unique_ptr<WhatIf>> whatIf = WhatIf::create(module, phases);
  FailureOr<TracedGraph> traced = failure();
  if (succeeded(whatIf))
    traced = (*whatIf)->trace(costs, isFree);
  if (failed(traced))
    return step.emitError("needs to be a step that becomes a schedule, for the "
                          "bytes of its stages");
  FailureOr<Pipeline> pipeline =
      getPipeline(step, *traced, chunks, Budget::Kind::Memory);
  if (failed(pipeline))
    return failure();
  std::vector<int64_t> states =
      getBaseBytes(*pipeline, getStateBytes(step, *traced, *pipeline, chunks),
                   Budget::Kind::Memory);
  std::vector<StageBytes> bytes;
  for (auto [number, stage] : llvm::enumerate(pipeline->stages)) {
    SmallVector<solver::ChunkBytes> needed;
    for (const Chunk &chunk : stage.chunks)
      needed.push_back(
          {solver::getKeptBytes(chunk.step.graph, getKept(chunk)),
           solver::getPackedBytes(chunk.step.graph, getKept(chunk))});
    bytes.push_back({states[number], stage.getNeed(needed)});
  }
  return bytes;
}
