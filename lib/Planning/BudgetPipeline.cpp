//===- BudgetPipeline.cpp - How the stages of a pipeline meet a budget ----===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BudgetPlans.h"
#include "reprise/Remat/Summary.h"
#include "reprise/Support/Format.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::planning;
using remat::formatBytes;

static void printStage(raw_ostream &os, int64_t number,
                       const StageReport &stage, const Budget &budget,
                       StringRef under) {
  os << "budget of stage " << number << ": " << formatBytes(stage.plannedBytes)
     << " of " << formatBytes(budget.bytes) << ", ";
  llvm::interleave(
      stage.chunks, os,
      [&](const StageReport::Chunk &chunk) {
        os << remat::formatLayers(llvm::to_vector(llvm::seq(
                  chunk.firstLayer, chunk.firstLayer + chunk.numLayers)))
           << " with " << chunk.inFlight << " in flight";
      },
      "; ");
  os << "; keeping all that may be kept takes " << formatBytes(stage.mostBytes)
     << "; replays " << formatSeconds(stage.replaySeconds) << ", "
     << formatShare(stage.replaySeconds, stage.computeSeconds) << " of the "
     << formatSeconds(stage.computeSeconds) << " of a micro-batch\n"
     << "  bound: " << formatUnder(under, ", ")
     << "no plan within the budget replays for less than "
     << formatSeconds(stage.boundSeconds) << "; the gap is "
     << formatShare(std::max(stage.askedSeconds - stage.boundSeconds, 0.0),
                    stage.computeSeconds);
  if (stage.plannedBytes < stage.askedBytes)
    os << ", of the replays without those for slack";
  os << "\n";
  if (stage.secondsPerByte > 0)
    os << "  price: "
       << formatSeconds(stage.secondsPerByte * (int64_t(1) << 30))
       << " a micro-batch for a GiB more or less\n";
  else
    os << "  price: nothing; no replay is known to end with more memory\n";
  if (stage.plannedBytes < stage.askedBytes)
    os << "  slack: waits for other stages; recomputing "
       << formatSeconds(stage.replaySeconds - stage.askedSeconds)
       << " more frees " << formatBytes(stage.askedBytes - stage.plannedBytes)
       << ", and the step is as long\n";
}

void PipelineReport::print(raw_ostream &os) const {
  for (auto [number, stage] : llvm::enumerate(stages))
    printStage(os, number, stage, budget, under);
  double span = certificate.spanSeconds, bound = certificate.lowerBoundSeconds;
  os << "budget of the pipeline: the schedule takes " << formatSeconds(span)
     << " on " << machine << ", "
     << formatSeconds(std::max(span - bareSeconds, 0.0))
     << " of it for replays\n"
     << "  bound: " << formatUnder(under, ", ")
     << "no plans within the budget take less than " << formatSeconds(bound)
     << "; the gap is " << formatShare(std::max(span - bound, 0.0), span)
     << "\n";
  printBaselines(os, baselines, budget.bytes);
}

void PipelineReport::writeCurve(raw_ostream &os, bool plan) const {
  llvm::json::OStream json(os, 1);
  json.object([&] {
    json.attribute("kind", budget.kind == Budget::Kind::Memory ? "memory"
                                                               : "activations");
    json.attribute("machine", machine);
    json.attribute("stages", certificate.shape.stages);
    json.attribute("virtual_stages", certificate.shape.virtualStages);
    json.attribute("micro_batches", certificate.shape.microBatches);
    json.attribute("step_seconds", bareSeconds);
    if (plan) {
      int64_t most = 0;
      for (const StageReport &stage : stages)
        most = std::max(most, stage.plannedBytes);
      json.attribute("budget_bytes", budget.bytes);
      json.attribute("peak_bytes", most);
      json.attribute("replay_seconds",
                     std::max(certificate.spanSeconds - bareSeconds, 0.0));
      json.attribute(
          "lower_bound_seconds",
          std::max(certificate.lowerBoundSeconds - bareSeconds, 0.0));
    }
    json.attributeArray("points", [&] {
      for (const Point &point : curve)
        json.object([&] {
          json.attribute("peak_bytes", point.bytes);
          json.attribute("replay_seconds", point.seconds);
          if (hasBounds)
            json.attribute("lower_bound_seconds", point.boundSeconds);
        });
    });
    writeBaselines(json, baselines);
  });
  os << "\n";
}
