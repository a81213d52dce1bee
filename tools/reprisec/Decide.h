//===- Decide.h - What is recomputed, and what it is called -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TOOLS_REPRISEC_DECIDE_H
#define REPRISE_TOOLS_REPRISEC_DECIDE_H

#include "Budgets.h"

namespace reprise::driver {
/// Lets `nn.train` say this.
void record(mlir::ModuleOp module, llvm::StringRef key, mlir::Attribute value);

/// What is asked of recompute is in the IR, and the name of the plan, which
/// belongs to the program, too.
void recordPlan(mlir::ModuleOp module, const RecomputeOptions &recompute,
                llvm::StringRef name);

/// Reads of a plan file what is not about layers, if `recompute` names one.
mlir::LogicalResult readPlanFile(mlir::ModuleOp module,
                                 RecomputeOptions &recompute,
                                 std::string &name);

/// Prints what is decided on `module` under the plan `name`, and for a second
/// target on `other`, if that is there.
mlir::LogicalResult printPlan(mlir::ModuleOp module, mlir::ModuleOp other,
                              llvm::StringRef name);

/// Decides `module`, of phase `begin`, for the target that it is set to, and
/// records the plan's name if it has one. What reports show of a budget comes
/// back.
mlir::FailureOr<Met> decide(mlir::ModuleOp module, Phase begin, Phase to,
                            const std::optional<planning::Budget> &budget,
                            const Options &options,
                            const RecomputeOptions &recompute,
                            llvm::StringRef planName, bool isCuda,
                            const planning::MeasureStages &measure);
} // namespace reprise::driver

#endif // REPRISE_TOOLS_REPRISEC_DECIDE_H
