//===- Decisions.h - Why a value is kept or replayed ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_REPORT_DECISIONS_H
#define REPRISE_REPORT_DECISIONS_H

#include "reprise/Report/Plan.h"
#include "reprise/Support/Format.h"

/// What all forms of the report say of decisions: text, JSON, HTML, remarks.
namespace reprise::report {
/// What becomes of a value until backward reads it.
enum class Fate {
  Kept,
  Replayed, ///< dropped, and computed again
  Free,     ///< dropped, and made again by a kernel of backward on its way
  Shared,   ///< kept in parts, which ranks gather
};
/// "save", "recompute", "free", "share".
llvm::StringRef stringifyFate(Fate fate);

/// A value of a layer, and what is decided on it.
struct Decision {
  std::string name, shape; ///< "u", "2x128x256xf32"
  int64_t bytes;
  Fate fate;
  bool isInLayer;               ///< or of the head and what else is in none
  std::string rule;             ///< the label that decided, "decided" or "-"
  std::string reason;           ///< of the decision, or who reads the value
  std::string label;            ///< that would drop a kept value; may be empty
  std::string axis;             ///< of ranks that share it; may be empty
  int64_t flops = 0;            ///< of the replay
  double seconds = 0;           ///< of the replay, estimated
  bool isMeasured = false;      ///< that time
  remat::Origin origin;         ///< in the first layer
  std::vector<Place> places;    ///< in all layers
  MemoryProfile::Change change; ///< to the schedule, without the decision

  /// By how much the decision moves the peak: at most so much less with a
  /// replay, so much more since the value is kept, in all layers of a class.
  /// None where nothing is known, or the value would not be there.
  std::optional<int64_t> peakBytes;
  /// A plan that decides otherwise, the nearest and cheapest one known; or
  /// null.
  const Alternative *flip = nullptr;
  size_t flippedLayers = 0; ///< of `places`

  bool isDropped() const {
    return fate == Fate::Replayed || fate == Fate::Free;
  }

  /// Whether two layers share this line. A decision's own reason may name its
  /// segment.
  bool matches(const Decision &other) const;
};

/// Layers with equal decisions.
struct LayerClass {
  std::vector<Decision> decisions; ///< in the order of the forward pass
  std::vector<const remat::LayerPlan *> layers; ///< at least one
  double replaySeconds = 0;                     ///< of a layer
  std::string skipped;        ///< what is decided and never replayed
  int64_t referenceBytes = 0; ///< what Megatron would keep of a layer

  std::vector<int64_t> getNumbers() const;
  bool isOutsideLayers() const { return layers.front()->layer < 0; }
};

/// What one label does, in all layers, for one micro-batch.
struct LabelEffect {
  std::string label;
  std::vector<std::string> values; ///< that it drops
  int64_t freedBytes = 0, flops = 0;
  double seconds = 0;
  std::optional<int64_t> peakBytes; ///< of it at the peak, at most
  std::string verdict; ///< "buys nothing: ..."; empty if it buys something
};

/// Layers whose replays free nothing at the peak.
struct IdleReplays {
  std::vector<int64_t> layers;
  int64_t flops = 0;
  double seconds = 0;
};

/// What a plan decides, and what for. Refers to the plan.
struct Decisions {
  std::vector<LayerClass> classes;
  std::vector<LabelEffect> labels;
  IdleReplays idle;
};
Decisions analyze(const Plan &plan);

/// The decisions on the values of one layer.
std::vector<Decision> getDecisions(const Plan &plan,
                                   const remat::LayerPlan &layer);

/// "+2.0 MiB", by which the peak would be lower without a kept value;
/// "-2.0 MiB", by which it would be higher if it was not dropped; "0"; "-".
std::string formatPeak(const Decision &decision);

/// What would decide otherwise, and at which price: "with mlp: 512.0 KiB less,
/// 3.1 ms more".
std::string formatFlip(const Plan &plan, const Decision &decision);

/// The time of a decision's replay, "115.3 us", with a star if it was measured;
/// "-" if there is none.
std::string formatTime(const Decision &decision);

/// What the bytes of a value cost, for a GiB of them, "7.17 ms": the time of
/// its op alone over them; "-" for a value of no bytes.
std::string formatPrice(const Plan &plan, const Decision &decision);
double getSecondsPerByte(const Plan &plan, const Decision &decision);

/// "3 kernels and GEMMs measured, 2 modelled (a, b)"
std::string formatSources(const Plan &plan);
} // namespace reprise::report

#endif // REPRISE_REPORT_DECISIONS_H
