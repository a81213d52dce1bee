//===- BudgetPlans.h - Parts of meeting a budget ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_PIPELINES_BUDGETPLANS_H
#define REPRISE_LIB_PIPELINES_BUDGETPLANS_H

#include "Trial.h"
#include "reprise/Pipelines/Budget.h"
#include "reprise/Solver/Budget.h"

namespace reprise::pipelines {

/// Writes what `kept` says on the ops of `step` that nobody has decided.
void writeDecisions(mlir::func::FuncOp step, const TracedGraph &traced,
                    const solver::KeptValues &kept,
                    llvm::ArrayRef<std::pair<int64_t, int64_t>> segments);

/// What Megatron's options would take, as they are decided here, run on the
/// graph: of each kind that has a number of layers the fastest whose values of
/// a step are at most `bytes`, or else the smallest.
std::vector<BudgetChoice> tryRivals(const Trial &trial,
                                    const TracedGraph &traced, int64_t bytes);

/// Fills in buffers, and what the schedule reads and writes of them, from the
/// planned step. Fails without a diagnostic if `certificate` is of another
/// schedule.
llvm::LogicalResult addBuffers(mlir::ModuleOp planned,
                               solver::Certificate &certificate);

/// Says what the smallest plan needs, and why, as an error of `step`.
void refuseBudget(mlir::func::FuncOp step, const Budget &budget,
                  const TracedGraph &traced, const solver::BudgetCurve &curve,
                  int64_t smallest);

} // namespace reprise::pipelines

#endif // REPRISE_LIB_PIPELINES_BUDGETPLANS_H
