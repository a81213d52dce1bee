//===- Explain.cpp - Reasons that a person can read -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Budget.h"
#include "reprise/Report/Decisions.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::report;
using llvm::raw_ostream;
using remat::formatBytes;
using remat::formatFlops;

namespace {
/// Lines of columns.
class Table {
public:
  /// Begins with the titles of the columns; those of numbers end at their
  /// right.
  explicit Table(ArrayRef<std::pair<StringRef, bool>> columns) {
    SmallVector<std::string> titles;
    for (auto [title, isNumber] : columns) {
      titles.push_back(title.str());
      numbers.push_back(isNumber);
    }
    add(std::move(titles));
  }

  void add(SmallVector<std::string> line) { lines.push_back(std::move(line)); }
  void print(raw_ostream &os) const;

private:
  SmallVector<bool> numbers;
  SmallVector<SmallVector<std::string>> lines;
};
} // namespace

void Table::print(raw_ostream &os) const {
  SmallVector<size_t> widths(numbers.size(), 0);
  for (const auto &line : lines)
    for (auto [width, cell] : llvm::zip(widths, line))
      width = std::max(width, cell.size());
  for (const auto &line : lines) {
    std::string text;
    for (auto [width, cell, isNumber] : llvm::zip(widths, line, numbers)) {
      std::string space(width - cell.size(), ' ');
      text += "  " + (isNumber ? space + cell : cell + space);
    }
    os << StringRef(text).rtrim() << "\n";
  }
}

static void printMemory(raw_ostream &os, const Plan &plan) {
  const MemoryPlan &memory = *plan.memory;
  const MemoryProfile &profile = memory.profile;
  os << "peak: " << formatBytes(memory.arenaBytes) << ", " << memory.arenaBytes
     << " bytes; lower bound " << memory.boundBytes << " bytes\n";
  for (const auto &[name, bytes] : memory.categories)
    os << "  " << name << " " << formatBytes(bytes) << "\n";
  if (profile.getPeak() > 0)
    os << "most is alive at " << profile.getPeakName() << ", launch "
       << profile.getPeakPosition() + 1 << " of " << profile.getNumPositions()
       << ": " << formatBytes(profile.getPeak())
       << " of what lives within a step\n";
  os << "a step: " << formatFlops(plan.stepFlops) << ", about "
     << formatSeconds(plan.stepSeconds);
  if (plan.replayFlops > 0)
    os << ", and " << formatFlops(plan.replayFlops) << " replayed, "
       << llvm::format("%.1f", 100.0 * plan.replayFlops /
                                   std::max<uint64_t>(plan.stepFlops, 1))
       << " % more, about " << formatSeconds(plan.replaySeconds);
  os << "\n";
}

static void printClass(raw_ostream &os, const Plan &plan,
                       const LayerClass &group) {
  const remat::LayerPlan &layer = *group.layers.front();
  os << remat::formatLayers(group.getNumbers())
     << (group.layers.size() > 1 ? ", each" : "") << ": keeps "
     << formatBytes(layer.getSavedBytes());
  if (!layer.recomputed.empty())
    os << ", replays " << formatFlops(layer.getReplayFlops()) << " in about "
       << formatSeconds(group.replaySeconds);
  if (plan.reference && layer.layer >= 0)
    os << "; Megatron would keep " << formatBytes(group.referenceBytes);
  os << "\n";

  // The peak column is of all layers of the class together.
  bool hasPeak = plan.memory.has_value();
  SmallVector<std::pair<StringRef, bool>> columns = {{"value", false},
                                                     {"shape", false},
                                                     {"bytes", true},
                                                     {"decision", false},
                                                     {"rule", false}};
  if (hasPeak)
    columns.push_back({"at the peak", true});
  columns.append({{"replay", true}, {"time", true}});
  if (plan.budget)
    columns.push_back({"price", true});
  columns.append({{"reason", false}, {"flips", false}});
  Table table(columns);
  for (const Decision &decision : group.decisions) {
    SmallVector<std::string> line = {
        decision.name, decision.shape, formatBytes(decision.bytes),
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
    os << "  not replayed, for backward does not need them: " << group.skipped
       << "\n";
}

static void printLabel(raw_ostream &os, const LabelEffect &effect) {
  os << effect.label << ": ";
  if (effect.freedBytes == 0) {
    os << effect.verdict << "\n";
    return;
  }
  os << "frees " << formatBytes(effect.freedBytes) << " until backward for "
     << formatFlops(effect.flops) << " a micro-batch, about "
     << formatSeconds(effect.seconds);
  if (effect.peakBytes)
    os << ", at most " << formatBytes(*effect.peakBytes)
       << " of it at the peak";
  if (!effect.verdict.empty())
    os << "; " << effect.verdict;
  os << "\n";
}

static void printAlternatives(raw_ostream &os, const Plan &plan) {
  os << "\nplans for the same step\n";
  Table table(
      {{"recompute", false}, {"peak", true}, {"replay", true}, {"time", true}});
  for (const Alternative &other : plan.alternatives)
    table.add({other.name + (other.isChosen ? " (this one)" : ""),
               formatBytes(other.peakBytes), formatFlops(other.replayFlops),
               formatSeconds(other.replaySeconds)});
  table.print(os);
}

void Plan::explain(raw_ostream &os) const {
  Decisions all = analyze(*this);
  if (memory)
    printMemory(os, *this);
  if (budget)
    printBudget(os, *this);
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
    os << remat::formatLayers(all.idle.layers)
       << ": replays free nothing at the peak, for "
       << formatFlops(all.idle.flops) << " a micro-batch, about "
       << formatSeconds(all.idle.seconds) << "\n";
  if (!alternatives.empty())
    printAlternatives(os, *this);
  if (memory)
    os << "\nat the peak, in all layers of a table, at most: + what a line "
          "takes while nothing reads it, - what it would take but for its "
          "replay\ntimes are estimates for "
       << costs.machine << "\n";
  if (memory && !measured.empty())
    os << formatSources(*this) << "; * marks what was measured\n";
}
