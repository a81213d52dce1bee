//===- VerifySchedule.cpp - Whether a table of a pipeline runs ------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each stage by itself, then what stages do with each other, then all of them
// at once: a stage that waits forever has nothing else wrong with it.
//
//===----------------------------------------------------------------------===//

#include "ScheduleChecks.h"

#include <algorithm>
#include <set>

using namespace reprise::solver;

using Fault = std::optional<ScheduleFault>;

static std::string count(int64_t number) { return std::to_string(number); }

/// Numbers that everything else relies on.
static Fault checkTable(const ScheduleTable &table) {
  if (std::optional<std::string> fault = check(table.shape))
    return ScheduleFault{-1, -1, *fault};
  if (table.stages.size() != size_t(table.shape.stages))
    return ScheduleFault{-1, -1,
                         "needs the lists of " + count(table.shape.stages) +
                             " stages, but got " + count(table.stages.size())};
  std::set<std::string> names;
  for (const ScheduleGroup &group : table.groups) {
    if (!names.insert(group.name).second)
      return ScheduleFault{-1, -1,
                           "needs a name of its own for each group, but two "
                           "are '" +
                               group.name + "'"};
    int64_t last = -1;
    for (int64_t stage : group.stages) {
      if (stage <= last || stage >= table.shape.stages)
        return ScheduleFault{
            -1, -1,
            "needs ascending stages below " + count(table.shape.stages) +
                " for the group '" + group.name + "', but got " + count(stage)};
      last = stage;
    }
    if (last < 0)
      return ScheduleFault{-1, -1,
                           "needs stages for the group '" + group.name +
                               "', but got none"};
  }
  return std::nullopt;
}

std::optional<ScheduleFault>
reprise::solver::verify(const ScheduleTable &table) {
  if (Fault fault = checkTable(table))
    return fault;
  for (int64_t stage = 0; stage < table.shape.stages; ++stage)
    if (Fault fault = checkStage(table, stage))
      return fault;
  if (Fault fault = checkExchanges(table))
    return fault;
  return checkEnd(table);
}
