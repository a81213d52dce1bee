//===- Budgets.h - Plans for a budget, on request ---------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TOOLS_REPRISEC_BUDGETS_H
#define REPRISE_TOOLS_REPRISEC_BUDGETS_H

#include "Options.h"
#include "mlir/IR/BuiltinOps.h"
#include "reprise/Pipelines/Pipelines.h"
#include "reprise/Planning/Budget.h"
#include "reprise/Report/Budget.h"
#include "reprise/Report/Pipeline.h"

namespace reprise::driver {
/// Bytes of "24GiB", "1.5 GB", "800000"; nothing for another text.
std::optional<int64_t> parseBytes(llvm::StringRef text);

/// The budget that is asked for, if one is; fails with a message.
mlir::FailureOr<std::optional<planning::Budget>>
readBudget(const Options &options, Phase from, Phase to);

/// "budget of 24GiB", as reports call the plan.
std::string describeBudget(const Options &options);

/// What reports show of a budget that was met: of one device, or of a pipeline.
struct Met {
  std::optional<report::Budget> budget;
  std::optional<report::PipelineNeed> pipeline;
};

/// What is decided beside a budget: what options say of recompute. A
/// description says what to do without a budget.
RecomputeOptions getConstraint(const Options &options,
                               const RecomputeOptions &recompute);
/// The same, with a note if a description says something else.
RecomputeOptions takeConstraint(const Options &options,
                                const RecomputeOptions &recompute);

/// Decides `module`, of the phase joint, for `budget` and the CPU or a GPU, on
/// top of what `recompute` decides, prints how and writes the files that are
/// asked for; without a budget finds the curve of all budgets and decides
/// nothing. What reports show of it comes back.
mlir::FailureOr<Met> meetBudget(mlir::ModuleOp module,
                                const std::optional<planning::Budget> &budget,
                                const Options &options,
                                const RecomputeOptions &recompute, bool isCuda,
                                const planning::MeasureStages &measure);

/// What the stages of the pipeline need if `module`, of the phase joint, is
/// decided as `recompute` says; where that cannot be told, why.
mlir::FailureOr<report::PipelineNeed>
measurePipeline(mlir::ModuleOp module, const Options &options,
                const RecomputeOptions &recompute, bool isCuda);
} // namespace reprise::driver

#endif // REPRISE_TOOLS_REPRISEC_BUDGETS_H
