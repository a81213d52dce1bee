//===- VerifySchedule.cpp - Prove that tables run -------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Table.h"
#include "mlir/IR/BuiltinOps.h"
#include "reprise/Stages/Passes.h"

namespace reprise::stages {
#define GEN_PASS_DEF_VERIFYSCHEDULE
#include "reprise/Stages/Passes.h.inc"
} // namespace reprise::stages

using namespace mlir;
using namespace reprise;

/// Says what is wrong, at the entry, with the stage that it is of.
static void report(pipe::ScheduleOp schedule, const stages::TracedTable &traced,
                   const solver::ScheduleFault &fault) {
  if (fault.stage < 0) {
    schedule.emitOpError() << fault.text;
    return;
  }
  if (fault.entry < 0) {
    traced.stages[fault.stage]->emitOpError()
        << "(stage " << fault.stage << ") " << fault.text;
    return;
  }
  traced.entries[fault.stage][fault.entry]->emitOpError()
      << "(stage " << fault.stage << ", entry " << fault.entry << ") "
      << fault.text;
}

namespace {
struct VerifySchedule
    : public stages::impl::VerifyScheduleBase<VerifySchedule> {
  void runOnOperation() override {
    for (auto schedule : getOperation().getOps<pipe::ScheduleOp>()) {
      stages::TracedTable traced = stages::readTable(schedule);
      if (auto fault = solver::verify(traced.table)) {
        report(schedule, traced, *fault);
        return signalPassFailure();
      }
    }
    markAllAnalysesPreserved();
  }
};
} // namespace
