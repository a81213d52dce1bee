//===- ScheduleChecks.h - Parts of the proof of a table ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_SOLVER_SCHEDULECHECKS_H
#define REPRISE_LIB_SOLVER_SCHEDULECHECKS_H

#include "reprise/Solver/StageSchedule.h"

#include <tuple>

namespace reprise::solver {

/// From one stage to another, activations and gradients apart.
using Channel = std::tuple<int64_t, int64_t, bool>;

/// That of a send or receive of `stage`.
inline Channel channelOf(int64_t stage, const ScheduleEntry &entry) {
  bool isSend = entry.kind == ScheduleEntry::Send;
  return {isSend ? stage : entry.peer, isSend ? entry.peer : stage,
          entry.isGradient};
}

/// Whether the members of a group do `entry` together.
inline bool isTogether(const ScheduleEntry &entry) {
  return entry.kind == ScheduleEntry::Reduce ||
         entry.kind == ScheduleEntry::Gather;
}

/// The list of stage `stage` by itself: its numbers, the lives of its slots,
/// and whether it does all that it has to.
std::optional<ScheduleFault> checkStage(const ScheduleTable &table,
                                        int64_t stage);

/// What stages whose lists are right by themselves send, receive and do
/// together, in the order of each channel and group.
std::optional<ScheduleFault> checkExchanges(const ScheduleTable &table);

/// Whether the lists of all stages, whose exchanges are right, come to an end.
std::optional<ScheduleFault> checkEnd(const ScheduleTable &table);

} // namespace reprise::solver

#endif // REPRISE_LIB_SOLVER_SCHEDULECHECKS_H
