//===- StepTimes.h - The times of a step of ranks ---------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TOOLS_REPRISEC_STEPTIMES_H
#define REPRISE_TOOLS_REPRISEC_STEPTIMES_H

#include "Options.h"
#include "Targets.h"
#include "python-free-frontend/Frontend.h"
#include "reprise/Report/Plan.h"

namespace reprise::driver {
/// Adds the times of a step of all ranks of a description to `plan`: of this
/// plan, which `recompute` asks for, or whose text is `decided`, and with
/// --accounting Megatron's. Nothing of one rank without accounting. A step that
/// ranks cannot share has no times, and a note says why.
void addStepTimes(report::Plan &plan, mlir::MLIRContext &context,
                  frontend::Description description, llvm::StringRef decided,
                  const Options &options, const RecomputeOptions &recompute,
                  const TargetOptions &target);
} // namespace reprise::driver

#endif // REPRISE_TOOLS_REPRISEC_STEPTIMES_H
