//===- Stages.h - The program of a pipeline ---------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TOOLS_REPRISEC_STAGES_H
#define REPRISE_TOOLS_REPRISEC_STAGES_H

#include "Options.h"
#include "Targets.h"
#include "mlir/IR/BuiltinOps.h"
#include "python-free-frontend/Frontend.h"
#include "reprise/Pipelines/Pipelines.h"
#include "reprise/Planning/Budget.h"

namespace reprise::driver {
/// Leads a module from one phase to another, as the whole of a model or as the
/// stages of a pipeline.
mlir::LogicalResult runPhases(mlir::ModuleOp module, Phase from, Phase to,
                              const RecomputeOptions &recompute,
                              bool inference = true,
                              const TargetOptions &target = {});

/// Whether what is asked for is the program of a pipeline, or one of the phases
/// that lead to it; reports tell of a plan.
bool isForStages(const Options &options,
                 const std::optional<frontend::Description> &text,
                 mlir::ModuleOp module, bool isReport);

/// Whether a file about a plan is asked for.
bool asksForPlan(const Options &options);

/// Refuses what the program of a pipeline cannot have, with a message.
mlir::LogicalResult
checkStages(const Options &options,
            const std::optional<frontend::Description> &text,
            const Targets &targets, const Goal &goal, bool hasBudget);

/// Refuses a proof of stages whose schedule has none.
mlir::LogicalResult
checkProven(const Options &options,
            const std::optional<frontend::Description> &text);

/// Appends the decisions of the step as a plan file.
mlir::LogicalResult writePlan(mlir::ModuleOp module, std::string &text);

/// Calls `use` with the options of a plan, as a file that lasts as long.
int withPlan(llvm::StringRef text, bool isFree,
             llvm::function_ref<int(const RecomputeOptions &)> use);

/// Compiles for the stages of a pipeline and writes what is asked for. What the
/// program ends with. A stage that needs more than `budget` is an error.
int compileStages(mlir::ModuleOp module, Phase from, Phase to,
                  const Options &options, const Targets &targets,
                  const RecomputeOptions &recompute, bool isFile,
                  const std::optional<planning::Budget> &budget = {});

/// The same under a plan, the text of a file.
int compileDecided(llvm::StringRef plan, mlir::ModuleOp stages, Phase to,
                   const Options &options, const Targets &targets,
                   const RecomputeOptions &recompute,
                   const std::optional<planning::Budget> &budget, bool isFile);
} // namespace reprise::driver

#endif // REPRISE_TOOLS_REPRISEC_STAGES_H
