//===- Explain.cpp - Reasons that a person can read -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Budget.h"
#include "Pipeline.h"
#include "Ranks.h"
#include "TextTable.h"
#include "reprise/Report/Decisions.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::report;
using llvm::raw_ostream;
using remat::formatBytes;
using remat::formatFlops;

static void printMemory(raw_ostream &os, const Plan &plan) {
  const MemoryPlan &memory = *plan.memory;
  const MemoryProfile &profile = memory.profile;
  os << "peak: " << formatBytes(memory.arenaBytes) << ", " << memory.arenaBytes
     << " bytes; lower bound " << memory.boundBytes << " bytes\n";
  for (const auto &[name, bytes] : memory.categories) {
    os << "  " << name << " " << formatBytes(bytes);
    int64_t others = memory.getGradientsInActivations();
    if (name == "gradients" && others > 0)
      os << ", and " << formatBytes(others)
         << " more in bytes of activations that are gone by then";
    os << "\n";
  }
  if (memory.experts.room > 0)
    printText(os, memory.experts.describe());
  if (profile.getPeak() > 0)
    printText(os,
              ("most is alive at " + profile.getPeakName() + ", launch " +
               Twine(profile.getPeakPosition() + 1) + " of " +
               Twine(profile.getNumPositions()) + ": " +
               formatBytes(profile.getPeak()) + " of what lives within a step")
                  .str());
  std::string text = "a step: " + formatFlops(plan.stepFlops) + ", about " +
                     formatSeconds(plan.stepSeconds);
  if (plan.replayFlops > 0)
    llvm::raw_string_ostream(text)
        << ", and " << formatFlops(plan.replayFlops) << " replayed, "
        << llvm::format("%.1f", 100.0 * plan.replayFlops /
                                    std::max<uint64_t>(plan.stepFlops, 1))
        << " % more, about " << formatSeconds(plan.replaySeconds);
  printText(os, text);
}

static void printClass(raw_ostream &os, const Plan &plan,
                       const LayerClass &group) {
  const remat::LayerPlan &layer = *group.layers.front();
  std::string title = remat::formatLayers(group.getNumbers()) +
                      (group.layers.size() > 1 ? ", each" : "") + ": keeps " +
                      formatBytes(layer.getSavedBytes());
  if (!layer.recomputed.empty())
    title += ", replays " + formatFlops(layer.getReplayFlops()) + " in about " +
             formatSeconds(group.replaySeconds);
  if (plan.reference && layer.layer >= 0)
    title += "; Megatron would keep " + formatBytes(group.referenceBytes);
  printText(os, title);

  // The peak column is of all layers of the class together.
  using Kind = TextTable::Kind;
  bool hasPeak = plan.memory.has_value();
  SmallVector<TextTable::Column> columns = {{"value", Kind::Text},
                                            {"shape", Kind::Text},
                                            {"bytes", Kind::Number},
                                            {"decision", Kind::Text},
                                            {"rule", Kind::Text}};
  if (hasPeak)
    columns.push_back({"at the peak", Kind::Number});
  columns.append({{"replay", Kind::Number}, {"time", Kind::Number}});
  if (plan.budget)
    columns.push_back({"per GiB", Kind::Number});
  columns.append({{"reason", Kind::Words}, {"flips", Kind::Words}});
  TextTable table(columns);
  for (const Decision &decision : group.decisions) {
    TextTable::Line line = {decision.name, decision.shape,
                            formatBytes(decision.bytes),
                            stringifyFate(decision.fate).str(), decision.rule};
    if (hasPeak)
      line.push_back(formatPeak(decision));
    line.push_back(decision.isDropped() ? formatFlops(decision.flops) : "-");
    line.push_back(formatTime(decision));
    if (plan.budget)
      line.push_back(formatPrice(plan, decision));
    line.push_back(decision.reason);
    line.push_back(formatFlip(plan, decision));
    table.add(std::move(line));
  }
  table.print(os);
  if (!group.skipped.empty())
    printText(os,
              "not replayed, for backward does not need them: " + group.skipped,
              /*indent=*/2);
}

static void printLabel(raw_ostream &os, const LabelEffect &effect) {
  if (effect.freedBytes == 0)
    return printText(os, effect.label + ": " + effect.verdict);
  std::string text = effect.label + ": frees " +
                     formatBytes(effect.freedBytes) + " until backward for " +
                     formatFlops(effect.flops) + " a micro-batch, about " +
                     formatSeconds(effect.seconds);
  if (effect.peakBytes)
    text +=
        ", at most " + formatBytes(*effect.peakBytes) + " of it at the peak";
  if (!effect.verdict.empty())
    text += "; " + effect.verdict;
  printText(os, text);
}

static void printAlternatives(raw_ostream &os, const Plan &plan) {
  os << "\nplans for the same step"
     << (isPipeline(plan) ? ", on one device with all layers" : "") << "\n";
  using Kind = TextTable::Kind;
  TextTable table({{"recompute", Kind::Text},
                   {"peak", Kind::Number},
                   {"replay", Kind::Number},
                   {"time", Kind::Number}});
  for (const Alternative &other : plan.alternatives)
    table.add({other.name + (other.isChosen ? " (this one)" : ""),
               formatBytes(other.peakBytes), formatFlops(other.replayFlops),
               formatSeconds(other.replaySeconds)});
  table.print(os);
}

void Plan::explain(raw_ostream &os) const {
  Decisions all = analyze(*this);
  printPipeline(os, *this);
  if (memory)
    printMemory(os, *this);
  if (budget)
    printBudget(os, *this);
  printRanks(os, *this);
  printStepTimes(os, stepTimes, ranks, costs.machine);
  for (const LayerClass &group : all.classes) {
    if (memory || &group != &all.classes.front())
      os << "\n";
    printClass(os, *this, group);
  }
  if (!all.labels.empty())
    os << "\n";
  for (const LabelEffect &effect : all.labels)
    printLabel(os, effect);
  if (!all.idle.layers.empty())
    printText(os, remat::formatLayers(all.idle.layers) +
                      ": replays free nothing at the peak, for " +
                      formatFlops(all.idle.flops) + " a micro-batch, about " +
                      formatSeconds(all.idle.seconds));
  if (!alternatives.empty())
    printAlternatives(os, *this);
  if (!memory)
    return;
  os << "\n";
  printText(os, "at the peak, in all layers of a table, at most: + what a line "
                "takes while nothing reads it, - what it would take but for "
                "its replay");
  os << "times are estimates for " << costs.machine << "\n";
  if (!measured.empty())
    printText(os, formatSources(*this) + "; * marks what was measured");
}
