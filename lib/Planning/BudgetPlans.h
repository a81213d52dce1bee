//===- BudgetPlans.h - Parts of meeting a budget ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_PLANNING_BUDGETPLANS_H
#define REPRISE_LIB_PLANNING_BUDGETPLANS_H

#include "WhatIf.h"
#include "reprise/Planning/Budget.h"
#include "reprise/Solver/Budget.h"
#include "llvm/Support/JSON.h"
#include <map>

namespace reprise::planning {

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
    int64_t bytes;         ///< alive at one time, for what a budget counts
    double seconds;        ///< of a micro-batch, replays included
    int64_t beside = -1;   ///< of the plans beside the curve, if it is one
    bool isOption = false; ///< one of those of Megatron's
  };

  /// Leaves the head of `whatIf` as the first option has it. Fails without a
  /// diagnostic if the step is none that becomes a schedule.
  static mlir::FailureOr<PlanCurve> find(WhatIf &whatIf, Budget::Kind kind,
                                         const CostTable &costs, bool isFree);

  /// The point with the fewest bytes; there is one.
  int64_t getSmallest() const {
    auto smallest =
        llvm::min_element(points, [](const Point &a, const Point &b) {
          return a.bytes < b.bytes;
        });
    return smallest - points.begin();
  }

  const HeadOption &getOption(int64_t point) const {
    return options[points[point].option];
  }
  solver::KeptValues getPlan(int64_t point) const {
    return getPlan(points[point]);
  }
  /// First and last layer of those that are replayed together.
  std::vector<std::pair<int64_t, int64_t>> getSegments(int64_t point) const {
    return getSegments(points[point]);
  }
  const solver::BudgetPoint &getOwn(int64_t point) const {
    const Point &it = points[point];
    return it.beside >= 0 ? beside[it.beside].point
                          : getOption(point).curve->getPoints()[it.point];
  }

  /// Of the points `numbers`, what the replays of its step take at least: no
  /// step with its part of `budgets`, whatever the rows, is faster than that; 0
  /// where one with other rows may be faster than its own without replays.
  /// Seconds of a step. Budgets are of the kind of `like`, near whose price the
  /// best is looked for.
  std::vector<double> computeBounds(const solver::Certificate &like,
                                    const std::vector<size_t> &numbers,
                                    const std::vector<int64_t> &budgets) const;

  std::vector<HeadOption> options; ///< at least one
  /// Seconds do not rise. Bytes grow, but for plans of options: where a smaller
  /// one, as fast or faster, is packed with waste, one of these may be what
  /// fits.
  std::vector<Point> points;

private:
  solver::KeptValues getPlan(const Point &point) const;
  std::vector<std::pair<int64_t, int64_t>>
  getSegments(const Point &point) const;
  void addPoint(WhatIf &whatIf, Budget::Kind kind, Point point);
  /// A plan that is none of the curve of its option.
  void addBeside(WhatIf &whatIf, Budget::Kind kind, Point point,
                 const solver::KeptValues &kept);
  bool isSame(const Point &point, const Point &other) const;
  /// Leaves those that none is better than, and options, each plan once.
  void keepBest();

  std::vector<solver::FoundPlan> beside;
};

/// The programs of the plans of a curve, each planned once, when it is asked
/// for. Any number of budgets may be asked about: a larger one never gets a
/// slower plan, and one of the bytes of an answer gets that answer.
class BudgetSearch {
public:
  BudgetSearch(WhatIf &whatIf, const PlanCurve &curve, Budget::Kind kind,
               bool isFree);

  /// The fastest plan whose program takes at most `bytes`; -1 if there is none.
  int64_t find(int64_t bytes);
  /// The plan whose program takes least; -1 if no plan becomes a program.
  int64_t findSmallest();

  /// What a plan's program takes of what a budget counts; -1 if the plan
  /// becomes none.
  int64_t getBytes(int64_t point);
  /// The same; where all points together have many launches, without planning
  /// what can be packed without waste.
  int64_t foresee(int64_t point);
  /// Its memory plan, for a plan that becomes a program.
  const PlannedBytes &getPlanned(int64_t point);

  /// The program that a certificate is of: its launches are those of the graph,
  /// one or more of which are one in the program that runs.
  /// Its buffers are where that one has them, as far as it has them.
  mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> planApart(int64_t point) {
    return plan(point, /*rowsApart=*/true, &look(point).offsets);
  }

private:
  struct Known {
    PlannedBytes planned;
    KnownOffsets offsets; ///< of the program that runs
    int64_t bytes = -1;
  };

  mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
  plan(int64_t point, bool rowsApart, const KnownOffsets *offsets);
  const Known &look(int64_t point);

  WhatIf &whatIf;
  const PlanCurve &curve;
  Budget::Kind kind;
  bool isFree;
  std::map<int64_t, Known> known; ///< by point
};

/// A step whose plans are found, for all budgets of a kind.
class SolvedStep {
public:
  /// Of `@step` of `module`, as `solveBudget` takes it. Fails without a
  /// diagnostic if the step is none that becomes a schedule.
  static mlir::FailureOr<std::unique_ptr<SolvedStep>>
  create(const Phases &phases, mlir::ModuleOp module, Budget::Kind kind,
         const CostTable &costs, bool isFree);

  const std::unique_ptr<WhatIf> whatIf;
  const PlanCurve curve;
  BudgetSearch search;

private:
  SolvedStep(std::unique_ptr<WhatIf> whatIf, PlanCurve curve, Budget::Kind kind,
             bool isFree)
      : whatIf(std::move(whatIf)), curve(std::move(curve)),
        search(*this->whatIf, this->curve, kind, isFree) {}
};

/// As `solveBudget`, for a copy of the module that `solved` is of. With
/// baselines, `solved` of a step with decisions is of no use afterwards.
mlir::FailureOr<BudgetReport>
meetBudget(SolvedStep &solved, mlir::ModuleOp module, const Budget &budget,
           const CostTable &costs, const BudgetSettings &settings);

/// Puts the heads of all schedules in chunks of so many rows; 0 leaves them.
/// Validation has the memory of the step.
void setHeadRows(mlir::ModuleOp module, int64_t rows);

/// Writes what `kept` says on the ops of `step` that nobody has decided.
void writeDecisions(mlir::func::FuncOp step, const TracedGraph &traced,
                    const solver::KeptValues &kept,
                    llvm::ArrayRef<std::pair<int64_t, int64_t>> segments);

/// Takes the decisions of `whatIf` away and traces what is left.
mlir::FailureOr<TracedGraph>
traceUndecided(WhatIf &whatIf, const CostTable &costs, bool isFree);

/// What a step takes if so much of it is kept: the bytes that a budget is
/// compared with, those that grow and shrink with the program's, and the time
/// of its replays.
struct BaselineRun {
  int64_t bytes = 0, programBytes = 0;
  double replaySeconds = 0;
};
using MeasureBaseline =
    llvm::function_ref<BaselineRun(const solver::KeptValues &kept)>;

/// The bytes of the memory plan of a step that is decided, for what a budget is
/// compared with; -1 if there is none. Null where `MeasureBaseline` knows them.
using PlanBaseline = llvm::function_ref<int64_t(mlir::func::FuncOp decided)>;

/// What Megatron's options keep of a step that nobody has decided, each on its
/// own; of those with a number of layers some.
std::vector<solver::KeptValues> listOptions(const WhatIf &whatIf,
                                            const TracedGraph &traced);

/// What Megatron's options would take, each on its own, as they are decided
/// here: of each kind that has a number of layers the fastest that takes at
/// most `bytes`, or else the smallest. `whatIf` and `traced` are of a step that
/// nobody has decided.
std::vector<BudgetChoice> tryBaselines(const WhatIf &whatIf,
                                       const TracedGraph &traced,
                                       const BudgetSettings &settings,
                                       int64_t bytes, MeasureBaseline measure,
                                       PlanBaseline plan = nullptr);

/// "  Megatron's options: full block 14 10.118 s, 16.5 GiB; …", the fastest of
/// those within `bytes`, and the smallest that is not.
void printBaselines(llvm::raw_ostream &os,
                    llvm::ArrayRef<BudgetChoice> baselines, int64_t bytes);

/// The key "megatron".
void writeBaselines(llvm::json::OStream &json,
                    llvm::ArrayRef<BudgetChoice> baselines);

/// Fills in buffers, and what the schedule reads and writes of them, from the
/// planned step, whose activations begin where those of the program that runs
/// do; for a budget of activations without gradients that are made among them.
/// Fails without a diagnostic if `certificate` is of another schedule.
llvm::LogicalResult addBuffers(mlir::ModuleOp planned,
                               solver::Certificate &certificate);

/// Adds what is alive at the peak of a plan, and why, as notes.
void noteAlive(mlir::InFlightDiagnostic &error, mlir::func::FuncOp step,
               const TracedGraph &traced, const solver::KeptValues &kept);

/// Says what the smallest plan needs, and why, as an error of `step`.
void refuseBudget(mlir::func::FuncOp step, const Budget &budget,
                  const BudgetSettings &settings, const PlanCurve &curve,
                  BudgetSearch &search);

/// "1992294 bytes (1.9 MiB)", as refusals say first, for scripts.
std::string formatNeed(int64_t bytes);
/// "under selective mlp" and what comes behind it; nothing without `under`.
std::string formatUnder(llvm::StringRef under, llvm::StringRef behind);

/// "1.234 %".
std::string formatShare(double part, double whole);

} // namespace reprise::planning

#endif // REPRISE_LIB_PLANNING_BUDGETPLANS_H
