//===- Explain.cpp - Reasons that a person can read -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/BuiltinTypes.h"
#include "reprise/Report/Plan.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::report;
using llvm::raw_ostream;
using remat::formatBytes;
using remat::formatFlops;

namespace {
/// A line of a table: one value of a layer.
struct Row {
  std::string name, shape, bytes, decision, rule, replay, reason;
  int64_t position;

  bool operator==(const Row &other) const {
    return name == other.name && shape == other.shape && bytes == other.bytes &&
           decision == other.decision && rule == other.rule &&
           replay == other.replay && reason == other.reason;
  }
};

/// What a row's values, in all layers of a class, do at the peak: bytes that
/// are idle but there, or absent but would be there.
struct Presence {
  std::vector<Interval> idle, absent;
};

/// Layers that have equal rows.
struct LayerClass {
  std::vector<Row> rows;
  std::vector<Presence> presences;
  std::vector<const remat::LayerPlan *> layers;
  std::string skipped;
  int64_t referenceBytes = 0;

  const remat::LayerPlan &front() const { return *layers.front(); }
};

/// What one label does, in all layers.
struct LabelTotals {
  int64_t freedBytes = 0, flops = 0, fusedFlops = 0;
  std::vector<std::string> values;
  std::vector<Interval> absent;
};

class Explainer {
public:
  Explainer(const Plan &plan, raw_ostream &os) : plan(plan), os(os) {}
  void run();

private:
  void addPresence(const remat::SavedValue &value, Presence &presence) const;
  void addPresence(const remat::Replay &replay, Presence &presence) const;
  void addLayer(const remat::LayerPlan &layer);
  void addLabels(const remat::LayerPlan &layer);
  std::string formatPresence(const Presence &presence) const;

  void printMemory();
  void printClass(const LayerClass &group);
  void printLabels();

  const Plan &plan;
  raw_ostream &os;
  std::vector<LayerClass> classes;
  llvm::MapVector<StringRef, LabelTotals> labels;
};
} // namespace

/// "2x128x64xf32".
static std::string formatShape(Type type) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (auto shaped = dyn_cast<ShapedType>(type)) {
    for (int64_t size : shaped.getShape())
      os << size << "x";
    type = shaped.getElementType();
  }
  os << type;
  return text;
}

//===----------------------------------------------------------------------===//
// Rows and classes
//===----------------------------------------------------------------------===//

/// A kept value is idle from the last reader of the forward pass to the first
/// one of the backward pass.
void Explainer::addPresence(const remat::SavedValue &value,
                            Presence &presence) const {
  auto outputs = plan.memory->profile.getOutputs(value.origin.scope);
  size_t fromEnd = value.origin.numResults - value.origin.number;
  if (outputs.size() >= fromEnd)
    presence.idle.push_back(outputs[outputs.size() - fromEnd].getLongestGap());
}

/// A replayed value is absent from the last reader of the forward pass to its
/// replay; one that only other replays read would not be there anyway.
void Explainer::addPresence(const remat::Replay &replay,
                            Presence &presence) const {
  if (replay.freedBytes == 0)
    return;
  const MemoryProfile &profile = plan.memory->profile;
  auto originals = profile.getOutputs(replay.origin.scope);
  auto copies = profile.getOutputs(replay.origin.scope + "@replay");
  size_t count = std::min(originals.size(), copies.size());
  for (const auto &[original, copy] :
       llvm::zip(originals.take_back(count), copies.take_back(count)))
    if (copy.positions.size() > 1)
      presence.absent.push_back({original.positions.back() + 1,
                                 copy.positions.front() - 1, copy.bytes});
}

void Explainer::addLayer(const remat::LayerPlan &layer) {
  LayerClass group;
  auto add = [&](const auto &value, Row row) {
    row.name = value.name;
    row.shape = formatShape(value.type);
    row.bytes = formatBytes(value.bytes);
    row.reason = value.reason;
    row.position = value.origin.position;
    // Behind what is made earlier, and behind what the same op made before.
    size_t index = 0;
    while (index < group.rows.size() &&
           group.rows[index].position <= row.position)
      ++index;
    group.rows.insert(group.rows.begin() + index, row);
    Presence presence;
    if (plan.memory)
      addPresence(value, presence);
    group.presences.insert(group.presences.begin() + index, presence);
  };
  for (const remat::SavedValue &value : layer.saved) {
    Row row;
    row.decision = "save";
    row.rule = value.isDecided ? "decided" : "-";
    row.replay = "-";
    add(value, row);
  }
  for (const remat::Replay &replay : layer.recomputed) {
    Row row;
    row.decision = "recompute";
    row.rule = replay.label;
    row.replay = formatFlops(replay.flops);
    add(replay, row);
  }
  for (const remat::SkippedReplay &skipped : layer.skipped)
    group.skipped += (group.skipped.empty() ? "" : " ") + skipped.name;

  if (plan.reference)
    if (auto bytes = plan.reference->layerBytes.find(layer.layer);
        bytes != plan.reference->layerBytes.end())
      group.referenceBytes = bytes->second;

  for (LayerClass &other : classes)
    if ((other.front().layer < 0) == (layer.layer < 0) &&
        other.rows == group.rows && other.skipped == group.skipped &&
        other.referenceBytes == group.referenceBytes) {
      other.layers.push_back(&layer);
      for (auto [all, more] : llvm::zip(other.presences, group.presences)) {
        llvm::append_range(all.idle, more.idle);
        llvm::append_range(all.absent, more.absent);
      }
      return;
    }
  group.layers.push_back(&layer);
  classes.push_back(std::move(group));
}

void Explainer::addLabels(const remat::LayerPlan &layer) {
  auto addValue = [](LabelTotals &totals, const std::string &name) {
    if (!llvm::is_contained(totals.values, name))
      totals.values.push_back(name);
  };
  for (const remat::Replay &replay : layer.recomputed) {
    LabelTotals &totals = labels[replay.label];
    totals.freedBytes += replay.freedBytes;
    totals.flops += replay.flops;
    if (replay.op == "nn.attention" && replay.origin.number != 0)
      totals.fusedFlops += replay.flops;
    addValue(totals, replay.name);
    Presence presence;
    if (plan.memory)
      addPresence(replay, presence);
    llvm::append_range(totals.absent, presence.absent);
  }
  for (const remat::SkippedReplay &skipped : layer.skipped)
    addValue(labels[skipped.label], skipped.name);
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// "+2.0 MiB", what is idle in the peak; "-2.0 MiB", what would be there but
/// for the replay; "0" where the peak would be the same; "-" for a value that
/// has no buffer of its own.
std::string Explainer::formatPresence(const Presence &presence) const {
  if (presence.idle.empty() && presence.absent.empty())
    return "-";
  int64_t change =
      plan.memory->profile.getPeakChange(presence.absent, presence.idle);
  if (change == 0)
    return "0";
  return change < 0 ? "+" + formatBytes(-change) : "-" + formatBytes(change);
}

/// Prints lines of columns. The columns of numbers end at their right.
static void printTable(raw_ostream &os,
                       ArrayRef<SmallVector<std::string>> lines,
                       ArrayRef<bool> isNumber) {
  SmallVector<size_t> widths(isNumber.size(), 0);
  for (const auto &line : lines)
    for (auto [width, cell] : llvm::zip(widths, line))
      width = std::max(width, cell.size());
  for (const auto &line : lines) {
    std::string text;
    for (auto [width, cell, right] : llvm::zip(widths, line, isNumber)) {
      std::string space(width - cell.size(), ' ');
      text += "  " + (right ? space + cell : cell + space);
    }
    os << StringRef(text).rtrim() << "\n";
  }
}

void Explainer::printMemory() {
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
  os << "at the peak: + what the values of a row, in all its layers, take "
        "there "
        "while nothing reads them; - what they would take but for their "
        "replay\n";
  os << "a step: " << formatFlops(plan.stepFlops);
  if (plan.replayFlops > 0)
    os << ", and " << formatFlops(plan.replayFlops) << " replayed, "
       << llvm::format("%.1f", 100.0 * plan.replayFlops /
                                   std::max<uint64_t>(plan.stepFlops, 1))
       << " % more";
  os << "\n";
}

void Explainer::printClass(const LayerClass &group) {
  SmallVector<int64_t> numbers;
  for (const remat::LayerPlan *layer : group.layers)
    numbers.push_back(layer->layer);
  const remat::LayerPlan &layer = group.front();
  os << "\n"
     << remat::formatLayers(numbers) << (numbers.size() > 1 ? ", each" : "")
     << ": keeps " << formatBytes(layer.getSavedBytes());
  if (!layer.recomputed.empty())
    os << ", replays " << formatFlops(layer.getReplayFlops());
  if (plan.reference && layer.layer >= 0)
    os << "; Megatron would keep " << formatBytes(group.referenceBytes);
  os << "\n";

  // The peak column is of all layers of the class together.
  bool hasPeak = plan.memory.has_value();
  SmallVector<SmallVector<std::string>> lines;
  SmallVector<bool> isNumber;
  auto addLine = [&](const Row &row, std::string peak) {
    lines.push_back({row.name, row.shape, row.bytes, row.decision, row.rule});
    isNumber = {false, false, true, false, false};
    if (hasPeak) {
      lines.back().push_back(std::move(peak));
      isNumber.push_back(true);
    }
    lines.back().append({row.replay, row.reason});
    isNumber.append({true, false});
  };
  addLine({"value", "shape", "bytes", "decision", "rule", "replay", "reason",
           /*position=*/0},
          "at the peak");
  for (auto [row, presence] : llvm::zip(group.rows, group.presences))
    addLine(row, hasPeak ? formatPresence(presence) : "");
  printTable(os, lines, isNumber);
  if (!group.skipped.empty())
    os << "  not replayed, for backward does not need them: " << group.skipped
       << "\n";
}

void Explainer::printLabels() {
  if (!labels.empty())
    os << "\n";
  for (const auto &[label, totals] : labels) {
    os << label << ": ";
    if (totals.freedBytes == 0) {
      os << "buys nothing: backward reads no value that it drops ("
         << llvm::join(totals.values, " ") << ")\n";
      continue;
    }
    os << "frees " << formatBytes(totals.freedBytes) << " until backward for "
       << formatFlops(totals.flops) << " a micro-batch";
    if (plan.memory) {
      int64_t change = plan.memory->profile.getPeakChange(totals.absent, {});
      os << ", " << formatBytes(change) << " of it at the peak";
      if (change == 0)
        os << ": buys nothing, for another point of the step needs as much";
    }
    if (totals.fusedFlops > 0)
      os << "; buys nothing worth its time: of fused attention it frees only "
            "the log-sum-exp, and replays all of it";
    os << "\n";
  }
}

void Explainer::run() {
  for (const remat::LayerPlan &layer : plan.decisions.layers) {
    addLayer(layer);
    addLabels(layer);
  }
  if (plan.memory)
    printMemory();
  for (const LayerClass &group : classes)
    printClass(group);
  printLabels();
}

void Plan::explain(raw_ostream &os) const { Explainer(*this, os).run(); }
