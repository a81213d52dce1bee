//===- BrokenTables.h - Tables with one thing wrong -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_UNIT_SOLVER_BROKENTABLES_H
#define REPRISE_TEST_UNIT_SOLVER_BROKENTABLES_H

#include "reprise/Solver/StageSchedule.h"

#include <algorithm>
#include <random>
#include <string>

namespace reprise::test {

/// The entries of `stage` of the kind and the chunk that `entry` has.
inline int64_t countAlike(const solver::StageTable &stage,
                          const solver::ScheduleEntry &entry) {
  return std::count_if(stage.entries.begin(), stage.entries.end(),
                       [&](const solver::ScheduleEntry &other) {
                         return other.kind == entry.kind &&
                                other.chunk == entry.chunk;
                       });
}

/// Changes one thing of `table` that it cannot do without; says which.
inline std::string breakTable(solver::ScheduleTable &table,
                              std::mt19937 &random) {
  using Kind = solver::ScheduleEntry::Kind;
  auto pick = [&](size_t count) { return random() % count; };
  solver::StageTable &stage = table.stages[pick(table.stages.size())];
  size_t place = pick(stage.entries.size());
  solver::ScheduleEntry &entry = stage.entries[place];
  bool isTask = entry.chunk >= 0;
  bool isTransfer = entry.kind == Kind::Send || entry.kind == Kind::Receive;
  switch (pick(9)) {
  case 0:
    // Without its only task for gradients of weights, a chunk makes them in its
    // backward task, which is a table, too.
    if (entry.kind == Kind::Weight && countAlike(stage, entry) == 1)
      return "";
    stage.entries.erase(stage.entries.begin() + place);
    return "drop";
  case 1: {
    solver::ScheduleEntry copy = entry; // Before the vector moves.
    stage.entries.insert(stage.entries.begin() + place, copy);
    // A sum that all members make twice would be one thing more to do.
    return "repeat";
  }
  case 2:
    entry.microBatch += isTask ? 1 : 0;
    return isTask ? "micro-batch" : "";
  case 3:
    entry.chunk += isTask ? table.shape.stages : 0;
    return isTask ? "chunk" : "";
  case 4:
    entry.bytes += isTransfer || entry.group >= 0;
    // A group of one stage has nobody who could do otherwise.
    return isTransfer || entry.group >= 0 ? "bytes" : "";
  case 5:
    entry.peer += isTransfer;
    return isTransfer ? "peer" : "";
  case 6:
    entry.slot += isTask && entry.kind != Kind::Forward;
    return isTask && entry.kind != Kind::Forward ? "slot" : "";
  case 7:
    ++stage.slots[pick(stage.slots.size())];
    return "slots";
  default:
    entry.isGradient ^= isTransfer;
    return isTransfer ? "direction" : "";
  }
}

} // namespace reprise::test

#endif // REPRISE_TEST_UNIT_SOLVER_BROKENTABLES_H
