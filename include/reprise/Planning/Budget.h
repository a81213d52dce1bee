//===- Budget.h - Plans for a budget of bytes -------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_PLANNING_BUDGET_H
#define REPRISE_PLANNING_BUDGET_H

#include "mlir/IR/BuiltinOps.h"
#include "reprise/Interfaces/CostTable.h"
#include "reprise/Planning/Phases.h"
#include "reprise/Solver/Certificate.h"
#include "reprise/Solver/Regret.h"
#include <optional>
#include <string>
#include <vector>

namespace reprise::planning {

/// Most bytes that a program may take.
struct Budget {
  enum class Kind {
    Memory,      ///< all that it allocates
    Activations, ///< what lives within a step
  };
  Kind kind = Kind::Memory;
  int64_t bytes = 0;
  /// What was asked, but for the budget: for messages. Empty: not known.
  std::string command = {};
};

/// The option that asks for a little more than `smallest` bytes.
std::string getFitting(Budget::Kind kind, int64_t smallest);

/// A plan that a budget could have been met with, or not.
struct BudgetChoice {
  std::string name;         ///< "full block 12"
  int64_t bytes = 0;        ///< what a budget of the kind is compared with
  double replaySeconds = 0; ///< of a step
};

/// A plan on the curve of all budgets. Times are of a step.
struct BudgetPlan {
  int64_t bytes = 0;
  int64_t headRows = 0; ///< of a chunk of the head; 0: as they were
  double stepSeconds = 0, replaySeconds = 0; ///< without replays; of these
  /// No step of the same budget, whatever the rows of its head, is as fast as
  /// this one with replays that take less. Only where it was asked for.
  double boundSeconds = 0;
};

/// How a budget was met. Times are of a step.
struct BudgetReport {
  Budget budget;
  std::string machine;       ///< whose costs were taken
  std::string under;         ///< of the settings
  int64_t plannedBytes = 0;  ///< of the memory plan
  int64_t foreseenBytes = 0; ///< as the solver saw it
  int64_t baseBytes = 0;     ///< of the plan, what outlives a step
  int64_t mostBytes = 0;     ///< of a plan that keeps everything it may
  double replaySeconds = 0, stepSeconds = 0, boundSeconds = 0;
  double secondsPerByte = 0; ///< the price of memory
  bool isChain = true;       ///< or searched for, and not solved
  int64_t headRows = 0;      ///< of a chunk of the head; 0: as they were
  /// Bytes grow, the sum of both times falls.
  std::vector<BudgetPlan> curve;
  /// Megatron's options for the same step, each kind with the least time that
  /// is within the budget, or else with the least memory.
  std::vector<BudgetChoice> baselines;
  /// What the plan would cost beside the best one if some ops took longer, or
  /// less; of a micro-batch. Empty unless it was asked for.
  std::vector<solver::Scenario> scenarios;
  int64_t microBatches = 1;
  solver::Certificate certificate;

  /// What people are told: peak, price, bound, what Megatron's options take.
  void print(llvm::raw_ostream &os) const;
  /// The curve, as one object of JSON; with `plan`, what was found for the
  /// budget too.
  void writeCurve(llvm::raw_ostream &os, bool plan) const;
};

/// What the program of each stage takes of what a budget counts, over its whole
/// list of micro-batches, under the decisions of `decided`, a module that was
/// given with a budget; nothing if the stages become no program.
using MeasureStages =
    std::function<std::vector<int64_t>(mlir::ModuleOp decided)>;

/// What is known of a step beside its budget.
struct BudgetSettings {
  bool isFree = true;           ///< `free_recompute`
  bool keepsIdleSegment = true; ///< of Megatron's `full`, where they are tried
  bool hasRegret = false;       ///< solve again for costs that are 20 % off
  bool hasBounds = false;       ///< for each point of the curve
  bool hasBaselines = true;     ///< what Megatron's options would take
  /// What is decided before, in the words of the options; empty: nothing. The
  /// plan and its bound are under that.
  std::string under = {};
  /// Of a pipeline. Null: what is counted for its chunks stands for programs.
  MeasureStages measureStages = nullptr;
  /// Whether stages that become no program have no plan either; otherwise what
  /// is counted stands for it.
  bool needsPrograms = true;
};

/// Decides `@step` of `module`, of the phase joint, within `budget`, by what
/// `phases` make of it. Decisions that are there stay. Fails, with a
/// diagnostic, if no plan fits; it names the smallest plan, and what is alive
/// at its peak.
mlir::FailureOr<BudgetReport>
solveBudget(const Phases &phases, mlir::ModuleOp module, const Budget &budget,
            const CostTable &costs, const BudgetSettings &settings);

/// The bytes, of what `kind` counts, that the smallest plan found for `@step`
/// of `module` takes as a program. `module` is of the phase joint; decisions
/// that are there stay. Costs as much as a curve. Fails if the step becomes no
/// schedule.
mlir::FailureOr<int64_t> findSmallest(const Phases &phases,
                                      mlir::ModuleOp module, Budget::Kind kind,
                                      const CostTable &costs, bool isFree);

/// How a stage of a pipeline meets a budget. Times are of a micro-batch.
struct StageReport {
  struct Chunk {
    int64_t firstLayer, numLayers, inFlight;
  };
  std::vector<Chunk> chunks;
  int64_t plannedBytes = 0; ///< of its program; or as counted for its chunks
  int64_t stateBytes = 0;   ///< what outlives a step, whatever is budgeted
  int64_t mostBytes = 0;    ///< of the plan that keeps everything it may
  double replaySeconds = 0;
  double computeSeconds = 0; ///< without replays
  /// Of the fastest plan within the budget. Where the schedule leaves time for
  /// more replays, less is kept than that, and the step is as long.
  int64_t askedBytes = 0;
  double askedSeconds = 0;
  double boundSeconds = 0;   ///< of any plan within the budget
  double secondsPerByte = 0; ///< the price of the stage's memory
};

/// How a pipeline meets a budget that each of its stages has.
struct PipelineReport {
  /// A budget, and how much longer than without replays the step takes with it;
  /// and with any plans at least, where that was asked for.
  struct Point {
    int64_t bytes;
    double seconds, boundSeconds;
  };

  Budget budget;
  std::string machine, under; ///< as in `BudgetReport`
  std::vector<StageReport> stages;
  std::vector<Point> curve; ///< bytes grow, seconds fall
  bool hasBounds = false;
  /// As in `BudgetReport`: bytes of the stage that needs most.
  std::vector<BudgetChoice> baselines;
  double bareSeconds = 0; ///< of the schedule without replays
  solver::PipelineCertificate certificate;

  void print(llvm::raw_ostream &os) const;
  /// As `BudgetReport::writeCurve` does.
  void writeCurve(llvm::raw_ostream &os, bool plan) const;
};

/// As `solveBudget`, for each stage of the pipeline that `remat.chunks` of
/// `@step` makes, by the schedule that `module` names. What a stage takes is
/// the larger of what is counted for its chunks, each by itself with all of its
/// micro-batches in flight, which is what a certificate proves, and of what
/// `settings.measureStages` says of its program.
mlir::FailureOr<PipelineReport>
solveStages(const Phases &phases, mlir::ModuleOp module, const Budget &budget,
            const CostTable &costs, const BudgetSettings &settings);

/// As `findSmallest`: the least that every stage of the pipeline has room for.
mlir::FailureOr<int64_t> findSmallestOnStages(const Phases &phases,
                                              mlir::ModuleOp module,
                                              Budget::Kind kind,
                                              const CostTable &costs,
                                              const BudgetSettings &settings);
} // namespace reprise::planning

#endif // REPRISE_PLANNING_BUDGET_H
