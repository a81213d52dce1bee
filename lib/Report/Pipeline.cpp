//===- Pipeline.cpp - What the stages of a pipeline need ------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Pipeline.h"
#include "TextTable.h"
#include "llvm/ADT/StringExtras.h"
#include <numeric>

using namespace mlir;
using namespace reprise;
using namespace reprise::report;
namespace json = llvm::json;

using remat::formatBytes;

size_t PipelineNeed::getLargest() const {
  auto largest = llvm::max_element(
      stages, [this](const StageNeed &left, const StageNeed &right) {
        return getBytes(left) < getBytes(right);
      });
  return largest - stages.begin();
}

bool report::isPipeline(const Plan &plan) {
  return plan.decisions.stages.size() > 1;
}

/// What is known of stage `number`; null if nothing is.
static const StageNeed *getNeed(const Plan &plan, size_t number) {
  bool isKnown = plan.pipeline && number < plan.pipeline->stages.size();
  return isKnown ? &plan.pipeline->stages[number] : nullptr;
}

static std::string formatChunk(const remat::ChunkPlan &chunk) {
  std::vector<int64_t> layers(chunk.numLayers);
  std::iota(layers.begin(), layers.end(), chunk.firstLayer);
  return layers.empty() ? "none" : remat::formatLayers(layers);
}

/// "60.0 GiB of 60.0 GiB", of the budget if there is one.
static std::string formatUse(const PipelineNeed &pipeline,
                             const StageNeed &stage) {
  std::string text = formatBytes(pipeline.getBytes(stage));
  if (pipeline.budgetBytes > 0)
    text += " of " + formatBytes(pipeline.budgetBytes);
  return text + (pipeline.isOfActivations ? " within a step" : "");
}

void report::printPipeline(raw_ostream &os, const Plan &plan) {
  if (!isPipeline(plan))
    return;
  if (plan.pipeline && !plan.pipeline->stages.empty()) {
    const PipelineNeed &pipeline = *plan.pipeline;
    size_t largest = pipeline.getLargest();
    const StageNeed &need = pipeline.stages[largest];
    printText(os, "stage " + std::to_string(largest) + " of " +
                      std::to_string(pipeline.stages.size()) +
                      " needs most: " + formatUse(pipeline, need) + "; " +
                      formatBytes(need.stateBytes) + " outlive a step, " +
                      formatBytes(need.activationBytes) + " live within it");
  } else if (plan.pipeline) {
    printText(os, "what stages need is not known: " + plan.pipeline->fault);
  }
  using Kind = TextTable::Kind;
  TextTable table({{"stage", Kind::Number},
                   {"layers", Kind::Text},
                   {"in flight", Kind::Number},
                   {"kept", Kind::Number},
                   {"states", Kind::Number},
                   {"activations", Kind::Number},
                   {"total", Kind::Number}});
  for (auto [number, stage] : llvm::enumerate(plan.decisions.stages)) {
    SmallVector<std::string> layers, inFlight;
    for (const remat::ChunkPlan &chunk : stage.chunks) {
      layers.push_back(formatChunk(chunk));
      inFlight.push_back(std::to_string(chunk.inFlight));
    }
    const StageNeed *need = getNeed(plan, number);
    table.add({std::to_string(number), llvm::join(layers, ", "),
               llvm::join(inFlight, ", "),
               formatBytes(stage.getActivationBytes()),
               need ? formatBytes(need->stateBytes) : "-",
               need ? formatBytes(need->activationBytes) : "-",
               need ? formatBytes(need->getBytes()) : "-"});
  }
  table.print(os);
  printText(os, "kept for backward of micro-batches in flight; activations are "
                "that, and what the step of one micro-batch takes beside it, "
                "as chunks are packed one by one; a program packs a stage's "
                "whole list, and --emit=rt prints the bytes of that");
  os << "\non one device, with all layers:\n";
}

void report::writeStages(json::OStream &json, const Plan &plan) {
  json.attributeArray("stages", [&] {
    for (size_t number = 0; number < plan.decisions.stages.size(); ++number)
      json.object([&] {
        const remat::StagePlan &stage = plan.decisions.stages[number];
        json.attribute("activation_bytes", stage.getActivationBytes());
        if (const StageNeed *need = getNeed(plan, number)) {
          json.attribute("state_bytes", need->stateBytes);
          json.attribute("step_bytes", need->activationBytes);
          json.attribute("peak_bytes", need->getBytes());
        }
        json.attributeArray("chunks", [&] {
          for (const remat::ChunkPlan &chunk : stage.chunks)
            json.object([&] {
              json.attribute("first_layer", chunk.firstLayer);
              json.attribute("layers", chunk.numLayers);
              json.attribute("saved_bytes", chunk.savedBytes);
              json.attribute("in_flight", chunk.inFlight);
            });
        });
      });
  });
}

json::Value report::describeLargestStage(const Plan &plan) {
  if (!isPipeline(plan) || !plan.pipeline || plan.pipeline->stages.empty())
    return nullptr;
  const PipelineNeed &pipeline = *plan.pipeline;
  size_t largest = pipeline.getLargest();
  const StageNeed &need = pipeline.stages[largest];
  return json::Object{
      {"number", std::to_string(largest)},
      {"count", std::to_string(pipeline.stages.size())},
      {"use", formatUse(pipeline, need)},
      {"bytes", std::to_string(pipeline.getBytes(need))},
      {"states", formatBytes(need.stateBytes)},
      {"activations", formatBytes(need.activationBytes)},
  };
}

json::Value report::describeStages(const Plan &plan) {
  if (!isPipeline(plan))
    return nullptr;
  json::Array rows;
  for (auto [number, stage] : llvm::enumerate(plan.decisions.stages))
    for (auto [index, chunk] : llvm::enumerate(stage.chunks)) {
      json::Object row{
          {"chunk", std::to_string(index)},
          {"layers", formatChunk(chunk)},
          {"saved", formatBytes(chunk.savedBytes)},
          {"in_flight", std::to_string(chunk.inFlight)},
          {"bytes", formatBytes(chunk.inFlight * chunk.savedBytes)},
      };
      const StageNeed *need = getNeed(plan, number);
      if (index == 0) {
        row["stage"] = std::to_string(number);
        row["states"] = need ? formatBytes(need->stateBytes) : "-";
        row["activations"] = need ? formatBytes(need->activationBytes) : "-";
        row["sum"] = need ? formatBytes(need->getBytes()) : "-";
      }
      rows.push_back(std::move(row));
    }
  json::Object stages{{"rows", std::move(rows)}};
  if (plan.pipeline && plan.pipeline->budgetBytes > 0)
    stages["limit"] = formatBytes(plan.pipeline->budgetBytes);
  if (plan.pipeline && plan.pipeline->stages.empty())
    stages["fault"] = plan.pipeline->fault;
  return stages;
}
