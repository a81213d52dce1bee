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
#include "llvm/Support/JSON.h"

namespace reprise::pipelines {

/// A step with its head in chunks of some rows, and the plans for all budgets.
struct HeadOption {
  int64_t rows = 0; ///< 0: the head is as it was
  std::unique_ptr<TracedGraph> traced;
  std::unique_ptr<solver::BudgetCurve> curve;
  /// Of a micro-batch, without replays; and of the update.
  double seconds = 0, updateSeconds = 0;

  double getStepSeconds() const {
    return seconds * double(traced->graph.microBatches) + updateSeconds;
  }
};

/// The fastest step for every budget, with its head in chunks of any rows that
/// it may have.
class PlanCurve {
public:
  struct Point {
    int64_t option, point; ///< of the options, and of its curve
    int64_t bytes;         ///< what a budget is compared with
    double seconds;        ///< of a micro-batch, replays included
  };

  /// Leaves the head of `trial` as the first option has it. Fails without a
  /// diagnostic if the step is none that becomes a schedule.
  static mlir::FailureOr<PlanCurve> find(Trial &trial, Budget::Kind kind,
                                         const CostTable &costs, bool isFree);

  /// The last point that needs at most `bytes`; -1 if there is none.
  int64_t find(int64_t bytes) const;

  const HeadOption &getOption(int64_t point) const {
    return options[points[point].option];
  }
  solver::KeptValues getPlan(int64_t point) const {
    return getOption(point).curve->getPlan(points[point].point);
  }
  const solver::BudgetPoint &getOwn(int64_t point) const {
    return getOption(point).curve->getPoints()[points[point].point];
  }

  /// Of each point, what the replays of its step take at least: no step with
  /// its part of `budgets`, whatever the rows, is faster than that; 0 where one
  /// with other rows may be faster than its own without replays. Seconds of a
  /// step. Budgets are of the kind of `like`, near whose price the best is
  /// looked for.
  std::vector<double> computeBounds(const solver::Certificate &like,
                                    const std::vector<int64_t> &budgets) const;

  std::vector<HeadOption> options; ///< at least one
  std::vector<Point> points;       ///< bytes grow, seconds fall
};

/// Puts the heads of all schedules in chunks of so many rows; 0 leaves them.
/// Validation has the memory of the step.
void setHeadRows(mlir::ModuleOp module, int64_t rows);

/// Writes what `kept` says on the ops of `step` that nobody has decided.
void writeDecisions(mlir::func::FuncOp step, const TracedGraph &traced,
                    const solver::KeptValues &kept,
                    llvm::ArrayRef<std::pair<int64_t, int64_t>> segments);

/// Takes the decisions of `trial` away and traces what is left.
mlir::FailureOr<TracedGraph>
traceUndecided(Trial &trial, const CostTable &costs, bool isFree);

/// What a step takes if so much of it is kept: the bytes that a budget is
/// compared with, those that grow and shrink with the program's, and the time
/// of its replays.
struct RivalRun {
  int64_t bytes = 0, programBytes = 0;
  double replaySeconds = 0;
};
using MeasureRival =
    llvm::function_ref<RivalRun(const solver::KeptValues &kept)>;

/// The bytes of the memory plan of a step that is decided, for what a budget is
/// compared with; -1 if there is none. Null where `MeasureRival` knows them.
using PlanRival = llvm::function_ref<int64_t(mlir::func::FuncOp decided)>;

/// What Megatron's options would take, each on its own, as they are decided
/// here: of each kind that has a number of layers the fastest that takes at
/// most `bytes`, or else the smallest. `trial` and `traced` are of a step that
/// nobody has decided.
std::vector<BudgetChoice> tryRivals(const Trial &trial,
                                    const TracedGraph &traced,
                                    const BudgetSettings &settings,
                                    int64_t bytes, MeasureRival measure,
                                    PlanRival plan = nullptr);

/// "  Megatron's options: full block 14 10.118 s, 16.5 GiB; …", the fastest of
/// those within `bytes`, and the smallest that is not.
void printRivals(llvm::raw_ostream &os, llvm::ArrayRef<BudgetChoice> rivals,
                 int64_t bytes);

/// The key "megatron".
void writeRivals(llvm::json::OStream &json,
                 llvm::ArrayRef<BudgetChoice> rivals);

/// Fills in buffers, and what the schedule reads and writes of them, from the
/// planned step; for a budget of activations without gradients that are made
/// among them. Fails without a diagnostic if `certificate` is of another
/// schedule.
llvm::LogicalResult addBuffers(mlir::ModuleOp planned,
                               solver::Certificate &certificate);

/// The option that asks for a little more than `smallest` bytes.
std::string getFitting(Budget::Kind kind, int64_t smallest);

/// Adds what is alive at the peak of a plan, and why, as notes.
void noteAlive(mlir::InFlightDiagnostic &error, mlir::func::FuncOp step,
               const TracedGraph &traced, const solver::KeptValues &kept);

/// Says what the smallest plan needs, which is `planned`, and why, as an error
/// of `step`.
void refuseBudget(mlir::func::FuncOp step, const Budget &budget,
                  const PlanCurve &curve, const PlannedBytes &planned);

/// "12.3 ms"; "1.234 %".
std::string formatTime(double seconds);
std::string formatShare(double part, double whole);

} // namespace reprise::pipelines

#endif // REPRISE_LIB_PIPELINES_BUDGETPLANS_H
