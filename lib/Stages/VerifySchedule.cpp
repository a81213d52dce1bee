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

namespace {
struct VerifySchedule
    : public stages::impl::VerifyScheduleBase<VerifySchedule> {
  void runOnOperation() override {
    for (auto schedule : getOperation().getOps<pipe::ScheduleOp>()) {
      stages::TracedTable traced = stages::readTable(schedule);
      if (auto fault = solver::verify(traced.table)) {
        stages::reportFault(schedule, traced, *fault);
        return signalPassFailure();
      }
    }
    markAllAnalysesPreserved();
  }
};
} // namespace
