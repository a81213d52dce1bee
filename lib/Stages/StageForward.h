//===- StageForward.h - A stage that only goes forward ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_STAGES_STAGEFORWARD_H
#define REPRISE_LIB_STAGES_STAGEFORWARD_H

#include "StageStep.h"

namespace reprise::stages {

/// Inserts into `module`, behind the `@step` of `stage`, what the stage does of
/// the function `name` of chunks, such as `@evaluate`: all of its chunks in
/// their order, and what it receives and sends. Nothing if chunks do not have
/// that function.
llvm::LogicalResult addForward(mlir::ModuleOp module, const Chunks &chunks,
                               pipe::ScheduleOp schedule, pipe::StageOp stage,
                               llvm::StringRef name);

} // namespace reprise::stages

#endif // REPRISE_LIB_STAGES_STAGEFORWARD_H
