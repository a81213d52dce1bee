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
#include <set>

using namespace mlir;
using namespace reprise;
using namespace reprise::report;
using llvm::raw_ostream;
using remat::formatBytes;
using remat::formatFlops;

/// The rule of a value that a `#remat.save` keeps.
static constexpr char kDecided[] = "decided";

namespace {
/// A line of a table: one value of a layer.
struct Row {
  std::string name, shape, bytes, decision, rule, replay, reason;
  int64_t position = 0;

  /// Whether the values of two layers share a line. A decision's own reason
  /// may name its segment.
  bool matches(const Row &other) const {
    return name == other.name && shape == other.shape && bytes == other.bytes &&
           decision == other.decision && rule == other.rule &&
           replay == other.replay &&
           (reason == other.reason || rule == kDecided);
  }
};

/// How the step would run if what is kept was dropped, or if what is replayed
/// was kept.
using Change = MemoryProfile::Change;

/// Layers that have equal rows.
struct LayerClass {
  std::vector<Row> rows;
  std::vector<Change> changes; // Of the values of a row, in all layers.
  std::vector<const remat::LayerPlan *> layers;
  std::string skipped;
  int64_t referenceBytes = 0;

  const remat::LayerPlan &front() const { return *layers.front(); }

  bool matches(const LayerClass &other) const {
    return (front().layer < 0) == (other.front().layer < 0) &&
           skipped == other.skipped && referenceBytes == other.referenceBytes &&
           llvm::equal(rows, other.rows,
                       [](const Row &a, const Row &b) { return a.matches(b); });
  }

  void merge(const LayerClass &other);
};

/// What the replays of a segment take away.
struct SegmentTotals {
  int64_t flops = 0;
  std::set<int64_t> layers;
  Change change;
};

/// What one label does, in all layers.
struct LabelTotals {
  int64_t freedBytes = 0, flops = 0, fusedFlops = 0;
  std::vector<std::string> values;
  Change change;
};

class Explainer {
public:
  Explainer(const Plan &plan, raw_ostream &os) : plan(plan), os(os) {}
  void run();

private:
  Change getChange(const remat::SavedValue &value) const;
  Change getChange(const remat::Replay &replay) const;
  void addLayer(const remat::LayerPlan &layer);
  void addLabels(const remat::LayerPlan &layer);
  std::string formatChange(const Change &change) const;

  void printMemory();
  void printClass(const LayerClass &group);
  void printLabels();
  void printIdleSegments();

  const Plan &plan;
  raw_ostream &os;
  std::vector<LayerClass> classes;
  llvm::MapVector<StringRef, LabelTotals> labels;
  std::map<int64_t, SegmentTotals> segments;
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
Change Explainer::getChange(const remat::SavedValue &value) const {
  Change change;
  if (!plan.memory)
    return change;
  auto outputs = plan.memory->profile.getOutputs(value.origin.scope);
  size_t fromEnd = value.origin.numResults - value.origin.number;
  if (outputs.size() >= fromEnd)
    change.removed.push_back(outputs[outputs.size() - fromEnd].getLongestGap());
  return change;
}

/// A replayed value is absent from the last reader of the forward pass to its
/// replay; one that only other replays read would not be there anyway.
Change Explainer::getChange(const remat::Replay &replay) const {
  Change change;
  if (!plan.memory)
    return change;
  const MemoryProfile &profile = plan.memory->profile;
  auto originals = profile.getOutputs(replay.origin.scope);
  auto copies = profile.getOutputs(replay.origin.scope + "@replay");
  if (copies.empty())
    return change;
  change.skipped.push_back(copies.front().positions.front());
  if (replay.freedBytes == 0)
    return change;
  size_t count = std::min(originals.size(), copies.size());
  for (const auto &[original, copy] :
       llvm::zip(originals.take_back(count), copies.take_back(count)))
    if (copy.positions.size() > 1)
      change.added.push_back({original.positions.back() + 1,
                              copy.positions.front() - 1, copy.bytes});
  return change;
}

void LayerClass::merge(const LayerClass &other) {
  llvm::append_range(layers, other.layers);
  for (auto [row, more] : llvm::zip(rows, other.rows))
    if (!StringRef(row.reason).contains(more.reason))
      row.reason += "; " + more.reason;
  for (auto [change, more] : llvm::zip(changes, other.changes))
    change.append(more);
}

/// "input of a segment": which one, the layer tells.
static std::string formatReason(StringRef reason) {
  StringRef words = reason.rtrim("0123456789");
  bool isNumbered = words.size() != reason.size();
  if (isNumbered && words.consume_back("segment "))
    return (words + "a segment").str();
  return reason.str();
}

void Explainer::addLayer(const remat::LayerPlan &layer) {
  LayerClass group;
  group.layers.push_back(&layer);
  auto add = [&](const auto &value, Row row) {
    row.name = value.name;
    row.shape = formatShape(value.type);
    row.bytes = formatBytes(value.bytes);
    row.reason = formatReason(value.reason);
    row.position = value.origin.position;
    // Behind what is made earlier, and behind what the same op made before.
    size_t index = 0;
    while (index < group.rows.size() &&
           group.rows[index].position <= row.position)
      ++index;
    group.rows.insert(group.rows.begin() + index, row);
    group.changes.insert(group.changes.begin() + index, getChange(value));
  };
  for (const remat::SavedValue &value : layer.saved) {
    Row row;
    row.decision = "save";
    row.rule = value.isDecided ? kDecided : "-";
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
    if (other.matches(group)) {
      other.merge(group);
      return;
    }
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
    Change change = getChange(replay);
    totals.change.append(change);
    SegmentTotals &segment = segments[replay.segment];
    segment.flops += replay.flops;
    segment.layers.insert(layer.layer);
    segment.change.append(change);
  }
  for (const remat::SkippedReplay &skipped : layer.skipped)
    addValue(labels[skipped.label], skipped.name);
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// "+2.0 MiB", by which the peak would be lower without the values; "-2.0 MiB",
/// by which it would be higher but for their replay; "0" where it would be the
/// same; "-" for values that would not be there, or have no buffer.
std::string Explainer::formatChange(const Change &change) const {
  if (change.added.empty() && change.removed.empty())
    return "-";
  int64_t bytes = plan.memory->profile.getPeakChange(change);
  if (!change.removed.empty())
    return bytes < 0 ? "+" + formatBytes(-bytes) : "0";
  return bytes > 0 ? "-" + formatBytes(bytes) : "0";
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
  os << remat::formatLayers(numbers) << (numbers.size() > 1 ? ", each" : "")
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
  for (auto [row, change] : llvm::zip(group.rows, group.changes))
    addLine(row, hasPeak ? formatChange(change) : "");
  printTable(os, lines, isNumber);
  if (!group.skipped.empty())
    os << "  not replayed, for backward does not need them: " << group.skipped
       << "\n";
}

void Explainer::printLabels() {
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
      int64_t change = plan.memory->profile.getPeakChange(totals.change);
      os << ", at most " << formatBytes(std::max<int64_t>(change, 0))
         << " of it at the peak";
      if (change <= 0)
        os << ": buys nothing, for another point of the step needs as much";
    }
    if (totals.fusedFlops > 0)
      os << "; buys nothing worth its time: of fused attention it frees the "
            "log-sum-exp alone, and replays all";
    os << "\n";
  }
}

/// Segments whose values, all together, would fit beside the peak if they were
/// kept; the last one before the loss, whose backward is next, is asked first.
void Explainer::printIdleSegments() {
  SmallVector<int64_t> layers;
  Change change;
  int64_t flops = 0;
  for (const auto &[number, segment] : llvm::reverse(segments)) {
    Change more = change;
    more.append(segment.change);
    if (plan.memory->profile.getPeakChange(more) > 0)
      continue;
    change = std::move(more);
    layers.insert(layers.begin(), segment.layers.begin(), segment.layers.end());
    flops += segment.flops;
  }
  if (!layers.empty())
    os << remat::formatLayers(layers)
       << ": replays free nothing at the peak, for " << formatFlops(flops)
       << " a micro-batch\n";
}

void Explainer::run() {
  for (const remat::LayerPlan &layer : plan.decisions.layers) {
    addLayer(layer);
    addLabels(layer);
  }
  if (plan.memory)
    printMemory();
  for (const LayerClass &group : classes) {
    if (plan.memory || &group != &classes.front())
      os << "\n";
    printClass(group);
  }
  if (!labels.empty())
    os << "\n";
  printLabels();
  if (!plan.memory)
    return;
  printIdleSegments();
  os << "\nat the peak, in all layers of a table, at most: + what a line takes "
        "while nothing reads it, - what it would take but for its replay\n";
}

void Plan::explain(raw_ostream &os) const { Explainer(*this, os).run(); }
