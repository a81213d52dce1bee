//===- Decisions.cpp - Why a value is kept or replayed ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Report/Decisions.h"
#include "mlir/IR/BuiltinTypes.h"
#include "reprise/Dialect/RT/LaunchName.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <set>
#include <tuple>

using namespace mlir;
using namespace reprise;
using namespace reprise::report;
using Change = MemoryProfile::Change;

/// The rule of a value that a `#remat.save` keeps.
static constexpr char kDecided[] = "decided";

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
// One decision
//===----------------------------------------------------------------------===//

bool Decision::matches(const Decision &other) const {
  return name == other.name && shape == other.shape && bytes == other.bytes &&
         fate == other.fate && axis == other.axis && rule == other.rule &&
         flops == other.flops && label == other.label &&
         (reason == other.reason || rule == kDecided);
}

/// A kept value is idle from the last reader of the forward pass to the first
/// one of the backward pass.
static Change getChange(const Plan &plan, const remat::SavedValue &value) {
  Change change;
  if (!plan.memory)
    return change;
  auto outputs = plan.memory->profile.getOutputs(value.origin.scope);
  size_t fromEnd = value.origin.numResults - value.origin.number;
  if (outputs.size() >= fromEnd)
    change.removed.push_back(outputs[outputs.size() - fromEnd].getLongestGap());
  return change;
}

/// The position of the launch that op `number` of the forward pass is part of;
/// -1 if that is not known. An op none of whose results is stored is read in
/// its own launch alone, so that of a reader is the same.
static int64_t getLaunch(const Plan &plan, int64_t number) {
  for (; number >= 0; number = plan.forward[number].reader)
    if (auto made = plan.memory->profile.getOutputs(plan.forward[number].scope);
        !made.empty())
      return made.front().positions.front();
  return -1;
}

/// The positions of the launches that make a value again, and nothing else: for
/// other replays, and for a gradient.
static std::set<int64_t> getOwnLaunches(const Plan &plan,
                                        const remat::Replay &replay) {
  std::set<int64_t> launches;
  if (!plan.memory)
    return launches;
  const MemoryProfile &profile = plan.memory->profile;
  for (int64_t position :
       profile.getLaunches(rt::nameReplay(replay.origin.scope)))
    if (llvm::all_equal(profile.getPositions()[position].makers))
      launches.insert(position);
  return launches;
}

/// The time of `least` launches that make a value again, or of all that make
/// nothing else.
static double getSeconds(const Plan &plan, const remat::Replay &replay,
                         size_t least) {
  return plan.forward[replay.origin.position].seconds *
         std::max(least, getOwnLaunches(plan, replay).size());
}

/// A replayed value is absent from the last reader of the forward pass to its
/// replay; one that only other replays read would not be there anyway. What is
/// free comes with the launch of its gradient, which runs in any case.
static Change getChange(const Plan &plan, const remat::Replay &replay,
                        bool isFree) {
  Change change;
  if (!plan.memory)
    return change;
  const MemoryProfile &profile = plan.memory->profile;
  const std::string &scope = replay.origin.scope;
  auto originals = profile.getOutputs(scope);
  auto copies = profile.getOutputs(rt::nameReplay(scope));
  if (copies.empty())
    return change;
  // A launch of several ops runs for the others.
  if (!isFree)
    llvm::append_range(change.skipped, getOwnLaunches(plan, replay));
  if (replay.freedBytes == 0)
    return change;
  auto keep = [&](int64_t last, const MemoryProfile::Accesses &copy) {
    if (copy.positions.size() > 1)
      change.added.push_back(
          {last + 1, copy.positions.front() - 1, copy.bytes});
  };
  // What only its own launch reads in the forward pass was never in memory.
  if (int64_t launch = getLaunch(plan, replay.origin.position);
      originals.empty() && launch >= 0)
    for (const MemoryProfile::Accesses &copy : copies)
      keep(launch, copy);
  size_t count = std::min(originals.size(), copies.size());
  for (const auto &[original, copy] :
       llvm::zip(originals.take_back(count), copies.take_back(count)))
    keep(original.positions.back(), copy);
  return change;
}

/// "input of a segment": which one, the layer tells.
static std::string formatReason(StringRef reason) {
  StringRef words = reason.rtrim("0123456789");
  bool isNumbered = words.size() != reason.size();
  if (isNumbered && words.consume_back("segment "))
    return (words + "a segment").str();
  return reason.str();
}

std::vector<Decision> report::getDecisions(const Plan &plan,
                                           const remat::LayerPlan &layer) {
  std::vector<Decision> decisions;
  auto add = [&](const auto &value, Fate fate, std::string rule,
                 MemoryProfile::Change change) {
    Decision decision;
    decision.name = value.name;
    decision.shape = formatShape(value.type);
    decision.bytes = value.bytes;
    decision.fate = fate;
    decision.rule = std::move(rule);
    decision.reason = formatReason(value.reason);
    decision.isInLayer = layer.layer >= 0;
    decision.origin = value.origin;
    decision.places = {{value.origin.position, value.origin.number}};
    decision.change = std::move(change);
    return &decisions.emplace_back(std::move(decision));
  };
  for (const remat::SavedValue &value : layer.saved) {
    Decision *decision =
        add(value, value.axis.empty() ? Fate::Kept : Fate::Shared,
            value.isDecided ? kDecided : "-", getChange(plan, value));
    decision->label =
        plan.forward[value.origin.position].labels[value.origin.number];
    decision->axis = value.axis;
  }
  for (const remat::Replay &replay : layer.recomputed) {
    Decision *decision = add(replay, Fate::Replayed, replay.label,
                             getChange(plan, replay, /*isFree=*/false));
    decision->flops = replay.flops;
    decision->seconds = getSeconds(plan, replay, /*least=*/1);
    decision->isMeasured = plan.forward[replay.origin.position].isMeasured;
  }
  for (const remat::Replay &value : layer.free) {
    Decision *decision = add(value, Fate::Free, value.label,
                             getChange(plan, value, /*isFree=*/true));
    decision->seconds = getSeconds(plan, value, /*least=*/0);
    decision->isMeasured =
        decision->seconds > 0 && plan.forward[value.origin.position].isMeasured;
  }
  llvm::sort(decisions, [](const Decision &a, const Decision &b) {
    return std::pair(a.origin.position, a.origin.number) <
           std::pair(b.origin.position, b.origin.number);
  });
  return decisions;
}

/// Looks for the plan that drops what is kept, or keeps what is dropped, in all
/// layers of a class, or else in most of them: one that differs by a label
/// before all others, and then the one that takes the least memory for what is
/// dropped, the least time for what is kept. A plan that is worse in what it
/// would be taken for is none: keeping costs memory, dropping costs time.
static void findFlip(const Plan &plan, Decision &decision) {
  using Price = std::tuple<bool, size_t, double, double>;
  std::optional<Price> best;
  for (const Alternative &other : plan.alternatives) {
    const auto &same = decision.isDropped() ? other.replayed : other.kept;
    size_t unflipped = llvm::count_if(
        decision.places, [&](Place place) { return same.count(place) != 0; });
    if (other.isChosen || 2 * unflipped > decision.places.size())
      continue;
    double bytes = other.peakBytes, seconds = other.replaySeconds;
    bool needsLess = plan.memory && bytes < plan.memory->arenaBytes;
    if (plan.memory && !needsLess &&
        !(decision.isDropped() && seconds <= plan.replaySeconds))
      continue;
    Price price = {!other.isNear, unflipped,
                   decision.isDropped() ? bytes : seconds,
                   decision.isDropped() ? seconds : bytes};
    if (best && !(price < *best))
      continue;
    best = price;
    decision.flip = &other;
    decision.flippedLayers = decision.places.size() - unflipped;
  }
}

//===----------------------------------------------------------------------===//
// All decisions
//===----------------------------------------------------------------------===//

std::vector<int64_t> LayerClass::getNumbers() const {
  std::vector<int64_t> numbers;
  for (const remat::LayerPlan *layer : layers)
    numbers.push_back(layer->layer);
  return numbers;
}

static bool matches(const LayerClass &a, const LayerClass &b) {
  return a.isOutsideLayers() == b.isOutsideLayers() && a.skipped == b.skipped &&
         a.referenceBytes == b.referenceBytes &&
         llvm::equal(
             a.decisions, b.decisions,
             [](const Decision &x, const Decision &y) { return x.matches(y); });
}

static void merge(LayerClass &group, const LayerClass &other) {
  llvm::append_range(group.layers, other.layers);
  for (auto [decision, more] : llvm::zip(group.decisions, other.decisions)) {
    if (!StringRef(decision.reason).contains(more.reason))
      decision.reason += "; " + more.reason;
    llvm::append_range(decision.places, more.places);
    decision.change.append(more.change);
  }
}

static void addLayer(std::vector<LayerClass> &classes, const Plan &plan,
                     const remat::LayerPlan &layer) {
  LayerClass group;
  group.layers.push_back(&layer);
  group.decisions = getDecisions(plan, layer);
  for (const Decision &decision : group.decisions)
    group.replaySeconds += decision.seconds;
  for (const remat::SkippedReplay &skipped : layer.skipped)
    group.skipped += (group.skipped.empty() ? "" : " ") + skipped.name;
  if (plan.reference)
    if (auto known = plan.reference->layers.find(layer.layer);
        known != plan.reference->layers.end())
      group.referenceBytes = known->second.kept;
  for (LayerClass &other : classes)
    if (matches(other, group))
      return merge(other, group);
  classes.push_back(std::move(group));
}

namespace {
/// What labels and segments do, layer after layer.
struct Effects {
  struct Label : LabelEffect {
    int64_t fusedFlops = 0;
    Change change;
  };
  struct Segment {
    std::set<int64_t> layers;
    int64_t flops = 0;
    double seconds = 0;
    Change change;
  };

  void add(const Plan &plan, const remat::LayerPlan &layer);

  llvm::MapVector<StringRef, Label> labels;
  std::map<int64_t, Segment> segments;
};
} // namespace

void Effects::add(const Plan &plan, const remat::LayerPlan &layer) {
  auto addValue = [](Label &label, const std::string &name) {
    if (!llvm::is_contained(label.values, name))
      label.values.push_back(name);
  };
  for (const remat::Replay &value : layer.free) {
    Label &label = labels[value.label];
    label.freedBytes += value.freedBytes;
    label.seconds += getSeconds(plan, value, /*least=*/0);
    addValue(label, value.name);
    label.change.append(getChange(plan, value, /*isFree=*/true));
  }
  for (const remat::Replay &replay : layer.recomputed) {
    Label &label = labels[replay.label];
    Segment &segment = segments[replay.segment];
    double seconds = getSeconds(plan, replay, /*least=*/1);
    Change change = getChange(plan, replay, /*isFree=*/false);
    label.freedBytes += replay.freedBytes;
    if (replay.op == "nn.attention" && replay.origin.number != 0)
      label.fusedFlops += replay.flops;
    addValue(label, replay.name);
    label.flops += replay.flops;
    segment.flops += replay.flops;
    label.seconds += seconds;
    segment.seconds += seconds;
    label.change.append(change);
    segment.change.append(change);
    segment.layers.insert(layer.layer);
  }
  for (const remat::SkippedReplay &skipped : layer.skipped)
    addValue(labels[skipped.label], skipped.name);
}

static LabelEffect getEffect(const Plan &plan, StringRef name,
                             const Effects::Label &label) {
  LabelEffect effect = label;
  effect.label = name.str();
  if (label.freedBytes == 0) {
    effect.verdict = "buys nothing: backward reads no value that it drops (" +
                     llvm::join(label.values, " ") + ")";
    return effect;
  }
  SmallVector<StringRef> verdicts;
  if (plan.memory) {
    effect.peakBytes =
        std::max<int64_t>(plan.memory->profile.getPeakChange(label.change), 0);
    if (*effect.peakBytes == 0)
      verdicts.push_back(
          "buys nothing, for another point of the step needs as much");
  }
  if (label.fusedFlops > 0)
    verdicts.push_back("buys nothing worth its time: of fused attention it "
                       "frees the log-sum-exp alone, and replays all");
  effect.verdict = llvm::join(verdicts, "; ");
  return effect;
}

/// Segments whose values, all together, would fit beside the peak if they were
/// kept; the last one before the loss, whose backward is next, is asked first.
static IdleReplays findIdle(const Plan &plan, const Effects &effects) {
  IdleReplays idle;
  std::set<int64_t> layers;
  Change change;
  for (const auto &[number, segment] : llvm::reverse(effects.segments)) {
    Change more = change;
    more.append(segment.change);
    if (plan.memory->profile.getPeakChange(more) > 0)
      continue;
    change = std::move(more);
    layers.insert(segment.layers.begin(), segment.layers.end());
    idle.flops += segment.flops;
    idle.seconds += segment.seconds;
  }
  idle.layers.assign(layers.begin(), layers.end());
  return idle;
}

Decisions report::analyze(const Plan &plan) {
  Decisions decisions;
  Effects effects;
  for (const remat::LayerPlan &layer : plan.decisions.layers) {
    addLayer(decisions.classes, plan, layer);
    effects.add(plan, layer);
  }
  for (LayerClass &group : decisions.classes)
    for (Decision &decision : group.decisions) {
      const Change &change = decision.change;
      if (!change.added.empty() || !change.removed.empty()) {
        int64_t bytes = plan.memory->profile.getPeakChange(change);
        decision.peakBytes =
            std::max<int64_t>(decision.isDropped() ? bytes : -bytes, 0);
      }
      findFlip(plan, decision);
    }
  for (const auto &[name, label] : effects.labels)
    decisions.labels.push_back(getEffect(plan, name, label));
  if (plan.memory)
    decisions.idle = findIdle(plan, effects);
  return decisions;
}

//===----------------------------------------------------------------------===//
// To text
//===----------------------------------------------------------------------===//

StringRef report::stringifyFate(Fate fate) {
  constexpr StringLiteral names[] = {"save", "recompute", "free", "share"};
  return names[size_t(fate)];
}

std::string report::formatPeak(const Decision &decision) {
  if (!decision.peakBytes)
    return "-";
  if (*decision.peakBytes == 0)
    return "0";
  return (decision.isDropped() ? "-" : "+") +
         remat::formatBytes(*decision.peakBytes);
}

std::string report::formatTime(const Decision &decision) {
  if (!decision.isDropped())
    return "-";
  return formatSeconds(decision.seconds) + (decision.isMeasured ? "*" : "");
}

double report::getSecondsPerByte(const Plan &plan, const Decision &decision) {
  if (decision.bytes == 0)
    return 0;
  return plan.forward[decision.origin.position].seconds / decision.bytes;
}

std::string report::formatPrice(const Plan &plan, const Decision &decision) {
  constexpr int64_t kGiB = 1 << 30;
  return decision.bytes == 0
             ? "-"
             : formatSeconds(getSecondsPerByte(plan, decision) * kGiB);
}

std::string report::formatSources(const Plan &plan) {
  std::string text = std::to_string(plan.measured.size()) +
                     " kernels and GEMMs measured, " +
                     std::to_string(plan.modelled.size()) + " modelled";
  constexpr size_t kMostNames = 6;
  ArrayRef<std::string> names = plan.modelled;
  if (!names.empty())
    text += " (" + llvm::join(names.take_front(kMostNames), ", ") +
            (names.size() > kMostNames ? ", ...)" : ")");
  return text;
}

/// "512.0 KiB less", "3.1 ms more", or `same`.
template <typename Number>
static std::string formatDifference(Number difference, StringRef same,
                                    std::string (*format)(Number)) {
  if (difference == 0)
    return same.str();
  return format(std::abs(difference)) + (difference < 0 ? " less" : " more");
}

std::string report::formatFlip(const Plan &plan, const Decision &decision) {
  if (const Alternative *flip = decision.flip) {
    std::string where;
    if (decision.flippedLayers != decision.places.size())
      where = " in " + std::to_string(decision.flippedLayers) + " of " +
              std::to_string(decision.places.size());
    return flip->change + where + ": " +
           formatDifference<int64_t>(flip->peakBytes - plan.memory->arenaBytes,
                                     "the same peak", remat::formatBytes) +
           ", " +
           formatDifference<double>(flip->replaySeconds - plan.replaySeconds,
                                    "the same time", formatSeconds);
  }
  if (!plan.alternatives.empty())
    return "-"; // None of them does.
  if (decision.isDropped())
    return "without " + decision.rule;
  if (!decision.label.empty())
    return "with " + decision.label;
  return decision.isInLayer && decision.rule != kDecided ? "with full" : "-";
}
