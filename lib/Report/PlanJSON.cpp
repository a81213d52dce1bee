//===- PlanJSON.cpp - A plan for programs to read ---------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Budget.h"
#include "Pipeline.h"
#include "Ranks.h"
#include "reprise/Report/Decisions.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::report;

namespace {
class PlanWriter {
public:
  PlanWriter(const Plan &plan, llvm::raw_ostream &os) : plan(plan), json(os) {}
  void write();

private:
  void writeTotals();
  void writeAccounting();
  void writePlaces();
  void writeValues(const remat::LayerPlan &layer);
  void writeLayer(const remat::LayerPlan &layer);
  void writeDecision(const LayerClass &group, const Decision &decision);
  void writeLabel(const LabelEffect &effect);
  void writeAlternative(const Alternative &alternative);
  void writeCosts();

  const Plan &plan;
  llvm::json::OStream json;
};
} // namespace

void PlanWriter::writeValues(const remat::LayerPlan &layer) {
  auto writeBytes = [&](StringRef key, const auto &values) {
    json.attributeArray(key, [&] {
      for (const auto &value : values)
        json.object([&] {
          json.attribute("name", value.name);
          json.attribute("bytes", value.bytes);
        });
    });
  };
  writeBytes("saved", layer.saved);
  if (!layer.free.empty())
    writeBytes("free", layer.free);
  json.attributeArray("recomputed", [&] {
    for (const remat::Replay &replay : layer.recomputed)
      json.object([&] {
        json.attribute("name", replay.name);
        json.attribute("op", replay.op);
        json.attribute("flops", replay.flops);
        json.attribute("label", replay.label);
        json.attribute("seconds", plan.forward[replay.origin.position].seconds);
      });
  });
}

void PlanWriter::writeLayer(const remat::LayerPlan &layer) {
  json.object([&] {
    json.attribute("layer", layer.layer);
    json.attribute("stage", layer.stage);
    json.attribute("chunk", layer.chunk);
    if (plan.reference)
      if (auto known = plan.reference->layers.find(layer.layer);
          known != plan.reference->layers.end())
        json.attribute("reference_bytes", known->second.kept);
    writeValues(layer);
  });
}

void PlanWriter::writeDecision(const LayerClass &group,
                               const Decision &decision) {
  json.object([&] {
    json.attribute("layers", llvm::json::Array(group.getNumbers()));
    json.attribute("name", decision.name);
    json.attribute("shape", decision.shape);
    json.attribute("bytes", decision.bytes);
    json.attribute("decision", stringifyFate(decision.fate));
    if (!decision.axis.empty())
      json.attribute("axis", decision.axis);
    json.attribute("rule", decision.rule);
    if (decision.peakBytes)
      json.attribute("at_peak_bytes", *decision.peakBytes);
    json.attribute("flops", decision.flops);
    json.attribute("seconds", decision.seconds);
    if (plan.budget)
      json.attribute("seconds_per_byte", getSecondsPerByte(plan, decision));
    if (decision.isMeasured)
      json.attribute("measured", true);
    json.attribute("reason", decision.reason);
    if (const Alternative *flip = decision.flip)
      json.attributeObject("flip", [&] {
        json.attribute("recompute", flip->name);
        json.attribute("peak_bytes", flip->peakBytes - plan.memory->arenaBytes);
        json.attribute("seconds", flip->replaySeconds - plan.replaySeconds);
      });
  });
}

void PlanWriter::writeLabel(const LabelEffect &effect) {
  json.object([&] {
    json.attribute("label", effect.label);
    json.attribute("values", llvm::json::Array(effect.values));
    json.attribute("freed_bytes", effect.freedBytes);
    if (effect.peakBytes)
      json.attribute("at_peak_bytes", *effect.peakBytes);
    json.attribute("flops", effect.flops);
    json.attribute("seconds", effect.seconds);
    json.attribute("verdict", effect.verdict);
  });
}

void PlanWriter::writeAlternative(const Alternative &alternative) {
  json.object([&] {
    json.attribute("recompute", alternative.name);
    json.attribute("chosen", alternative.isChosen);
    json.attribute("peak_bytes", alternative.peakBytes);
    json.attribute("replay_flops", alternative.replayFlops);
    json.attribute("replay_seconds", alternative.replaySeconds);
    if (!alternative.command.empty())
      json.attribute("command", alternative.command);
  });
}

void PlanWriter::writeCosts() {
  const CostTable &costs = plan.costs;
  json.attribute("machine", costs.machine);
  json.attribute("product_flops_per_second", costs.gemmFlopsPerSecond);
  json.attribute("product_bf16_flops_per_second", costs.gemmBF16FlopsPerSecond);
  json.attribute("attention_flops_per_second", costs.attentionFlopsPerSecond);
  json.attribute("attention_bf16_flops_per_second",
                 costs.attentionBF16FlopsPerSecond);
  json.attribute("pointwise_flops_per_second", costs.pointwiseFlopsPerSecond);
  json.attribute("memory_bytes_per_second", costs.memoryBytesPerSecond);
  json.attribute("seconds_per_launch", costs.secondsPerLaunch);
  json.attribute("link_bytes_per_second", costs.linkBytesPerSecond);
  json.attribute("seconds_per_message", costs.secondsPerMessage);
  json.attribute("network_bytes_per_second", costs.networkBytesPerSecond);
  json.attribute("network_seconds_per_message", costs.networkSecondsPerMessage);
  json.attribute("ranks_per_machine", costs.ranksPerMachine);
  json.attributeObject("links", [&] {
    for (const Link &link : costs.links)
      json.attributeObject(link.getName(), [&] {
        json.attribute("seconds_per_message", link.secondsPerMessage);
        json.attribute("bytes_per_second", link.bytesPerSecond);
      });
  });
  auto writeKeys = [&](StringRef name, const std::vector<std::string> &keys) {
    json.attributeArray(name, [&] {
      for (const std::string &key : keys)
        json.value(key);
    });
  };
  writeKeys("measured", plan.measured);
  writeKeys("modelled", plan.modelled);
}

void PlanWriter::writeTotals() {
  const MemoryPlan &memory = *plan.memory;
  json.attribute("peak_bytes", memory.arenaBytes);
  json.attribute("lower_bound_bytes", memory.boundBytes);
  json.attribute("replay_flops", plan.replayFlops);
  json.attribute("step_flops", plan.stepFlops);
  json.attribute("replay_seconds", plan.replaySeconds);
  json.attribute("step_seconds", plan.stepSeconds);
  json.attribute("micro_batches", plan.numMicroBatches);
  json.attribute("free_bytes", plan.decisions.freeBytes);
  json.attributeObject("categories", [&] {
    for (const auto &[name, bytes] : memory.categories)
      json.attribute(name, bytes);
  });
  if (const ExpertRows &rows = memory.experts; rows.room > 0)
    json.attributeObject("expert_rows", [&] {
      json.attribute("room", rows.room);
      json.attribute("even", rows.even);
      json.attribute("worst_case_bytes", rows.peakBytes);
    });
}

/// The ranks that the reference counts with.
void PlanWriter::writeAccounting() {
  const megatron::Parallelism &ranks = plan.reference->parallelism;
  json.attribute("scheme", "megatron");
  json.attribute("tensor_model_parallel_size", ranks.tensor);
  json.attribute("sequence_parallel", ranks.sequence);
  if (ranks.hasWholeExperts) {
    json.attribute("expert_model_parallel_size", ranks.experts);
    json.attribute("expert_tensor_parallel_size", 1);
  }
  if (ranks.optimizerRanks > 1 || ranks.expertOptimizerRanks > 1) {
    json.attribute("optimizer_ranks", ranks.optimizerRanks);
    if (plan.reference->model)
      json.attribute("expert_optimizer_ranks", ranks.expertOptimizerRanks);
  }
  writeRanks(json, plan);
}

/// What is kept and recomputed: in segments, in each layer and elsewhere.
void PlanWriter::writePlaces() {
  const std::vector<remat::LayerPlan> &layers = plan.decisions.layers;
  json.attributeArray("segments", [&] {
    for (const auto &segment : plan.decisions.segments)
      json.array([&] {
        json.value(segment.first);
        json.value(segment.second);
      });
  });
  json.attributeArray("layers", [&] {
    for (const remat::LayerPlan &layer : layers)
      if (layer.layer >= 0)
        writeLayer(layer);
  });
  json.attributeObject("outside_layers", [&] {
    bool isThere = !layers.empty() && layers.back().layer < 0;
    writeValues(isThere ? layers.back() : remat::LayerPlan());
  });
}

void PlanWriter::write() {
  Decisions all = analyze(plan);
  json.objectBegin();
  writeTotals();
  if (plan.reference)
    json.attributeObject("accounting", [&] { writeAccounting(); });
  if (plan.budget)
    writeBudget(json, plan);
  writePlaces();
  writeStages(json, plan);
  if (!plan.stepTimes.empty())
    writeStepTimes(json, plan.stepTimes);
  json.attributeArray("decisions", [&] {
    for (const LayerClass &group : all.classes)
      for (const Decision &decision : group.decisions)
        writeDecision(group, decision);
  });
  json.attributeArray("labels", [&] {
    for (const LabelEffect &effect : all.labels)
      writeLabel(effect);
  });
  json.attributeArray("plans", [&] {
    for (const Alternative &alternative : plan.alternatives)
      writeAlternative(alternative);
  });
  json.attributeObject("costs", [&] { writeCosts(); });
  json.objectEnd();
}

void Plan::writeJSON(llvm::raw_ostream &os) const {
  assert(memory && "needs a schedule");
  PlanWriter(*this, os).write();
  os << "\n";
}
