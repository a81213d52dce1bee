//===- Page.cpp - A plan as a page for the browser --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Page.h"
#include "Budget.h"
#include "Charts.h"
#include "Pipeline.h"
#include "Ranks.h"
#include "reprise/Report/Decisions.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Mustache.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::report;
namespace json = llvm::json;

/// More values than this are not told apart on a screen, and make the page
/// slow: the smallest are left out.
static constexpr size_t kMostRectangles = 4000;

static json::Value describe(const Plan &plan, const LayerClass &group) {
  const remat::LayerPlan &layer = *group.layers.front();
  json::Array rows;
  for (const Decision &decision : group.decisions)
    rows.push_back(json::Object{
        {"name", decision.name},
        {"shape", decision.shape},
        {"bytes", remat::formatBytes(decision.bytes)},
        {"decision", stringifyFate(decision.fate)},
        {"rule", decision.rule},
        {"peak", formatPeak(decision)},
        {"flops",
         decision.isDropped() ? remat::formatFlops(decision.flops) : "-"},
        {"seconds", formatTime(decision)},
        {"price", plan.budget ? formatPrice(plan, decision) : ""},
        {"reason", decision.reason},
        {"flips", formatFlip(plan, decision)},
    });
  json::Object object{
      {"layers", remat::formatLayers(group.getNumbers())},
      {"each", group.layers.size() > 1},
      {"priced", plan.budget.has_value()},
      {"columns", plan.budget ? "9" : "8"}, // without words
      {"kept", remat::formatBytes(layer.getSavedBytes())},
      {"rows", std::move(rows)},
  };
  if (!layer.recomputed.empty())
    object["replayed"] = remat::formatFlops(layer.getReplayFlops()) +
                         " in about " + formatSeconds(group.replaySeconds);
  if (plan.reference && !group.isOutsideLayers())
    object["reference"] = remat::formatBytes(group.referenceBytes);
  if (!group.skipped.empty())
    object["skipped"] = group.skipped;
  return object;
}

static json::Value describe(const LabelEffect &effect) {
  json::Object object{
      {"label", effect.label},
      {"freed", remat::formatBytes(effect.freedBytes)},
      {"flops", remat::formatFlops(effect.flops)},
      {"seconds", formatSeconds(effect.seconds)},
      {"verdict", effect.verdict},
  };
  if (effect.peakBytes)
    object["peak"] = remat::formatBytes(*effect.peakBytes);
  return object;
}

static std::string formatPercent(uint64_t part, uint64_t whole) {
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::format("%.1f %%", 100.0 * part / std::max<uint64_t>(whole, 1));
  return text;
}

static std::string formatRate(double rate, const char *unit) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.3g ", rate) << unit;
  return text;
}

static std::string formatRates(double f32, double bf16) {
  std::string text = formatRate(f32 / 1e9, "GFLOP/s");
  return f32 == bf16 ? text
                     : text + ", bf16 " + formatRate(bf16 / 1e9, "GFLOP/s");
}

static json::Value describe(const Plan &plan) {
  const CostTable &costs = plan.costs;
  return json::Object{
      {"machine", costs.machine},
      {"gemm",
       formatRates(costs.gemmFlopsPerSecond, costs.gemmBF16FlopsPerSecond)},
      {"attention", formatRates(costs.attentionFlopsPerSecond,
                                costs.attentionBF16FlopsPerSecond)},
      {"pointwise", formatRate(costs.pointwiseFlopsPerSecond / 1e9, "GFLOP/s")},
      {"memory", formatRate(costs.memoryBytesPerSecond / 1e9, "GB/s")},
      {"launch", formatSeconds(costs.secondsPerLaunch)},
      {"sources", asSection(plan.measured.empty()
                                ? ""
                                : formatSources(plan) + "; * marks these")},
  };
}

/// Gradients of parameters among activations; null if there are none.
static json::Value describeGradients(const MemoryPlan &memory) {
  int64_t bytes = memory.getGradientsInActivations();
  return asSection(bytes > 0 ? remat::formatBytes(bytes) : "");
}

/// A sentence but for its end; null without experts.
static json::Value describeExperts(const ExpertRows &rows) {
  std::string text = rows.describe();
  if (!text.empty())
    text.front() = llvm::toUpper(text.front());
  return asSection(text);
}

/// Says which layers have replays for nothing.
static std::string describeIdle(const IdleReplays &idle) {
  return remat::formatLayers(idle.layers) +
         ": replays free nothing at the peak, for " +
         remat::formatFlops(idle.flops) + " a micro-batch, about " +
         formatSeconds(idle.seconds);
}

static json::Array describeEnvironment(const PageInfo &info) {
  json::Array facts;
  for (const auto &[name, value] : info.environment)
    facts.push_back(json::Object{{"name", name}, {"value", value}});
  return facts;
}

void Plan::writePage(llvm::raw_ostream &os, const PageInfo &info) const {
  assert(memory && "needs a schedule");
  Decisions all = analyze(*this);
  json::Array classes, labels;
  for (const LayerClass &group : all.classes)
    classes.push_back(describe(*this, group));
  for (const LabelEffect &effect : all.labels)
    labels.push_back(describe(effect));

  json::Object page{
      {"model", info.model},
      {"recompute", info.recompute},
      {"command", info.command},
      {"peak", remat::formatBytes(memory->arenaBytes)},
      {"peak_bytes", std::to_string(memory->arenaBytes)},
      {"bound_bytes", std::to_string(memory->boundBytes)},
      {"step", remat::formatBytes(memory->stepBytes)},
      {"kept", remat::formatBytes(decisions.savedBytes)},
      {"micro_batches", std::to_string(numMicroBatches)},
      {"step_flops", remat::formatFlops(stepFlops)},
      {"step_seconds", formatSeconds(stepSeconds)},
      {"replay_flops", remat::formatFlops(replayFlops)},
      {"replay_percent", formatPercent(replayFlops, stepFlops)},
      {"replay_seconds", formatSeconds(replaySeconds)},
      {"memory", drawMemory(*this)},
      {"arena", drawArena(*this, kMostRectangles)},
      {"categories", drawCategories(*this)},
      {"gradients", describeGradients(*memory)},
      {"experts", describeExperts(memory->experts)},
      {"budget", drawBudget(*this)},
      {"plans", drawPlans(*this)},
      {"stages", describeStages(*this)},
      {"largest", describeLargestStage(*this)},
      {"ranks", describeRanks(*this)},
      {"step_times", describeStepTimes(stepTimes, ranks, costs.machine)},
      {"classes", std::move(classes)},
      {"labels", std::move(labels)},
      {"environment", describeEnvironment(info)},
      {"costs", describe(*this)},
  };
  if (!all.idle.layers.empty())
    page["idle"] = describeIdle(all.idle);

  llvm::BumpPtrAllocator allocator;
  llvm::StringSaver saver(allocator);
  llvm::mustache::MustacheContext context(allocator, saver);
  llvm::mustache::Template layout(kPage, context);
  layout.render(json::Value(std::move(page)), os);
}
