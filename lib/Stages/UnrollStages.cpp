//===- UnrollStages.cpp - The step of each stage of a pipeline ------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A stage runs its list of the table in order, so its step is that list with
// the ops of each task in the place of its entry. What a micro-batch keeps is
// alive from its forward task to its backward task, as any value is between its
// maker and its last reader: memory is planned for the whole list at once.
//
//===----------------------------------------------------------------------===//

#include "StageForward.h"
#include "StageStep.h"
#include "Table.h"
#include "mlir/IR/BuiltinOps.h"
#include "reprise/Dialect/Pipe/OnlyStages.h"
#include "reprise/Stages/Passes.h"

namespace reprise::stages {
#define GEN_PASS_DEF_UNROLLSTAGES
#include "reprise/Stages/Passes.h.inc"
} // namespace reprise::stages

using namespace mlir;
using namespace reprise;
using namespace reprise::stages;

namespace {
struct UnrollStages : public stages::impl::UnrollStagesBase<UnrollStages> {
  void runOnOperation() override {
    if (failed(unroll()))
      signalPassFailure();
  }

  LogicalResult unroll();
};
} // namespace

/// Whoever has written the table, it is for the ranks of the module, and runs.
static LogicalResult checkSchedule(ModuleOp module, pipe::ScheduleOp schedule) {
  auto schedules = module.getOps<pipe::ScheduleOp>();
  if (!llvm::hasSingleElement(schedules))
    return (*std::next(schedules.begin()))
        .emitOpError("needs to be the only schedule of its module, but another "
                     "is before it");
  TracedTable traced = readTable(schedule);
  if (auto fault = solver::verify(traced.table)) {
    reportFault(schedule, traced, *fault);
    return failure();
  }
  int64_t ranks = nn::getAxisSize(module, nn::kPipeAxis);
  if (ranks == traced.table.shape.stages)
    return success();
  return schedule.emitOpError("needs the lists of the ")
         << ranks << " stages along '" << nn::kPipeAxis
         << "' of 'nn.mesh', but has those of " << traced.table.shape.stages;
}

LogicalResult UnrollStages::unroll() {
  ModuleOp module = getOperation();
  auto schedules = module.getOps<pipe::ScheduleOp>();
  if (schedules.empty() && !module.lookupSymbol("chunk0"))
    return success();
  if (schedules.empty())
    return module.emitError("needs a 'pipe.schedule' for its chunks; "
                            "reprise-make-schedule writes one");
  pipe::ScheduleOp schedule = *schedules.begin();
  if (failed(checkSchedule(module, schedule)))
    return failure();
  FailureOr<Chunks> chunks = findChunks(module, schedule);
  if (failed(chunks))
    return failure();
  auto only = module->getAttrOfType<DenseI64ArrayAttr>(pipe::kOnlyStagesAttr);
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  for (auto stage : schedule.getBody().getOps<pipe::StageOp>()) {
    if (only &&
        !llvm::is_contained(only.asArrayRef(), int64_t(stage.getNumber())))
      continue;
    FailureOr<ModuleOp> own =
        StageStep(*chunks, schedule, stage).build(builder);
    if (failed(own))
      return failure();
    for (StringRef name : {nn::kEvaluateFunction, nn::kSampleFunction})
      if (failed(addForward(*own, *chunks, schedule, stage, name)))
        return failure();
  }
  for (func::FuncOp step : chunks->steps)
    step->getParentOp()->erase();
  schedule.erase();
  return success();
}
