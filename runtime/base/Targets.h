//===- Targets.h - What programs of each target have ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The facts by which programs of targets differ to those that check and show
// them. A device says what differs when it runs (Device.h).
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_BASE_TARGETS_H
#define REPRISE_RUNTIME_BASE_TARGETS_H

#include "reprise/ABI/Model.h"

namespace reprise::runtime {

struct TargetFacts {
  int32_t number;     ///< REPRISE_TARGET_*
  const char *device; ///< "the CPU"
  /// GEMMs are the runtime's, which have the epilogue of squares and need a
  /// workspace. Otherwise they are a library's, which has the other epilogues.
  bool hasOwnGemms;
  /// Rows of experts go in slots of one size, all of them, and so in one round;
  /// they need a workspace. Otherwise the rows that there are go.
  bool sendsAllSlots;
  /// Ranks meet on the host, which sees how long it waits. Otherwise devices
  /// wait for each other, and times of launches tell it.
  bool meetsOnHost;
};

/// A row for each REPRISE_TARGET_*.
inline constexpr TargetFacts kTargets[] = {
    {REPRISE_TARGET_CPU, "the CPU", /*hasOwnGemms=*/true,
     /*sendsAllSlots=*/false, /*meetsOnHost=*/true},
    {REPRISE_TARGET_CUDA, "a GPU", /*hasOwnGemms=*/false,
     /*sendsAllSlots=*/true, /*meetsOnHost=*/false}};

/// Row i is of number i, so no number has two.
constexpr bool isInOrder() {
  int32_t next = 0;
  for (const TargetFacts &facts : kTargets)
    if (facts.number != next++)
      return false;
  return true;
}
static_assert(isInOrder(), "a row for each target, in order");

/// Of a target that is none, those of the first one: `place` refuses a model of
/// such a target.
constexpr const TargetFacts &factsOf(int32_t target) {
  for (const TargetFacts &facts : kTargets)
    if (facts.number == target)
      return facts;
  return kTargets[0];
}

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_BASE_TARGETS_H
