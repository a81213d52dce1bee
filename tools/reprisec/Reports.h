//===- Reports.h - Reports of a plan on request -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TOOLS_REPRISEC_REPORTS_H
#define REPRISE_TOOLS_REPRISEC_REPORTS_H

#include "Files.h"
#include "mlir/IR/BuiltinOps.h"
#include "python-free-frontend/Frontend.h"
#include "reprise/Pipelines/Pipelines.h"
#include "reprise/Report/Plan.h"

namespace reprise::driver {
/// The table that --cost-table names or has in a file, or else that of the CPU.
mlir::FailureOr<CostTable> readCosts(const Options &options, bool isCuda);

/// The recompute options in Megatron's own words.
report::megatron::Options getMegatronOptions(const RecomputeOptions &recompute);

/// What to report, from the step in nn; memory is still to be planned. Other
/// plans are those of `undecided`, as `writeUndecided` has it; none if empty.
mlir::FailureOr<report::Plan>
readPlan(mlir::ModuleOp module, llvm::StringRef undecided,
         const std::optional<frontend::Description> &description,
         const Options &options, const RecomputeOptions &recompute);

/// Writes what is asked for, of a step whose memory is planned.
mlir::LogicalResult writeReports(report::Plan &plan, mlir::ModuleOp module,
                                 const Options &options,
                                 const RecomputeOptions &recompute);

/// Prints what memory takes, and beside it what is alive at one time; nothing
/// if memory is not planned.
void printMemory(mlir::ModuleOp module);

/// Refuses options of reports that make no sense.
mlir::LogicalResult checkReports(const Options &options, Phase from, Phase to);
} // namespace reprise::driver

#endif // REPRISE_TOOLS_REPRISEC_REPORTS_H
