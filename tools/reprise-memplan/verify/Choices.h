//===- Choices.h - What a layer may have done -------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The bound is about all plans: here they are gone through, a layer at a time
// and then all layers together. docs/certificates.md has the reasoning.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_MEMPLAN_CHOICES_H
#define REPRISE_MEMPLAN_CHOICES_H

#include "Claims.h"

namespace reprise::verify {

/// A layer between points: a stage of the backward pass ends with the op of
/// each point, and another one follows the last.
struct View {
  int64_t kind = 0;
  /// How often a byte that is kept counts for other micro-batches in flight.
  double others = 0;
  std::vector<std::vector<bool>> reads; ///< by stage: tensors
  std::vector<std::vector<bool>> now;   ///< by point: tensors its op reads
  std::vector<double> weights;          ///< by point: of a byte

  bool operator<(const View &other) const;
};

/// The layer as the points of `points` with a price see it, from the first of
/// them to the last. A weight is a share of the highest price, `most`.
View getView(const Claims &claims, int64_t layer,
             const std::vector<PricedPoint> &points, double most);

/// Seconds of what runs again, and weighted bytes at the points.
struct Choice {
  double seconds = 0, bytes = 0;
};

/// What a layer can choose from: for one price its cheapest choice; for none
/// all choices but those that another one is better than in bytes and seconds,
/// by bytes. Nothing if there are too many ways to need tensors, or more than
/// are `left`, from which they are taken.
std::optional<std::vector<Choice>> findChoices(const Class &kind,
                                               const View &view,
                                               std::optional<double> price,
                                               int64_t &left);

/// More sets of needed tensors, and more choices for one answer, are not gone
/// through. The bound that is checked was found with as many sets, and half as
/// many choices.
inline constexpr size_t kMostStates = 1 << 16;
inline constexpr int64_t kMostChoices = 1 << 22;

/// Layers that have the same choices.
struct SameLayers {
  std::vector<Choice> choices;
  int64_t count = 0;
};

/// Whether there are too many sums to tell, and if not, the least seconds of
/// choices, one for each layer, that have no more than `available` bytes in all
/// and take less than `seconds`; infinite if there are none. At `price` no sum
/// of choices costs less than `least`.
struct LeastSum {
  bool isKnown = true;
  double seconds = 0;
};
LeastSum findLeastSum(const std::vector<SameLayers> &layers, double available,
                      double seconds, double price, double least);

} // namespace reprise::verify

#endif // REPRISE_MEMPLAN_CHOICES_H
