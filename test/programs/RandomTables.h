//===- RandomTables.h - Schedules that nobody has named ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_PROGRAMS_RANDOMTABLES_H
#define REPRISE_TEST_PROGRAMS_RANDOMTABLES_H

#include "Draw.h"
#include "reprise/Solver/StageSchedule.h"

namespace reprise::test {

/// A table whose lists come from a run of all stages in which chance says who
/// goes on with what, in ascending micro-batches, the gradients of weights with
/// the rest of backward or apart.
solver::ScheduleTable drawTable(const solver::PipelineShape &shape,
                                const solver::ScheduleFacts &facts, Draw &draw);

/// What `table` is made for.
solver::ScheduleFacts getFacts(const solver::ScheduleTable &table);

} // namespace reprise::test

#endif // REPRISE_TEST_PROGRAMS_RANDOMTABLES_H
