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

/// What Megatron's options would take, each on its own, as they are decided
/// here, run on the graph: of each kind that has a number of layers the fastest
/// whose values of a step are at most `bytes`, or else the smallest. Takes the
/// decisions of `trial` away.
mlir::FailureOr<std::vector<BudgetChoice>>
tryRivals(Trial &trial, const CostTable &costs, const BudgetSettings &settings,
          int64_t bytes);

/// Fills in buffers, and what the schedule reads and writes of them, from the
/// planned step. Fails without a diagnostic if `certificate` is of another
/// schedule.
llvm::LogicalResult addBuffers(mlir::ModuleOp planned,
                               solver::Certificate &certificate);

/// The option that asks for a little more than `smallest` bytes.
std::string getFitting(Budget::Kind kind, int64_t smallest);

/// Adds what is alive at the peak of a plan, and why, as notes.
void noteAlive(mlir::InFlightDiagnostic &error, mlir::func::FuncOp step,
               const TracedGraph &traced, const solver::KeptValues &kept);

/// Says what the smallest plan needs, and why, as an error of `step`.
void refuseBudget(mlir::func::FuncOp step, const Budget &budget,
                  const TracedGraph &traced, const solver::BudgetCurve &curve,
                  int64_t smallest);

/// "12.3 ms"; "1.234 %".
std::string formatTime(double seconds);
std::string formatShare(double part, double whole);

} // namespace reprise::pipelines

#endif // REPRISE_LIB_PIPELINES_BUDGETPLANS_H
