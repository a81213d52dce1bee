//===- Table.h - Schedules as ops and as plain tables -----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_STAGES_TABLE_H
#define REPRISE_LIB_STAGES_TABLE_H

#include "mlir/IR/Builders.h"
#include "reprise/Dialect/Pipe/PipeOps.h"
#include "reprise/Solver/StageSchedule.h"

namespace reprise::stages {

/// A table, and the op of each of its entries.
struct TracedTable {
  solver::ScheduleTable table;
  std::vector<pipe::StageOp> stages;
  std::vector<std::vector<mlir::Operation *>> entries; ///< Of each stage.
};

/// What `schedule` says.
TracedTable readTable(pipe::ScheduleOp schedule);

/// Says what is wrong, at the entry, with the stage that it is of.
void reportFault(pipe::ScheduleOp schedule, const TracedTable &traced,
                 const solver::ScheduleFault &fault);

/// Writes `table` as a `pipe.schedule`.
void writeTable(mlir::OpBuilder &builder, mlir::Location loc,
                const solver::ScheduleTable &table);

} // namespace reprise::stages

#endif // REPRISE_LIB_STAGES_TABLE_H
