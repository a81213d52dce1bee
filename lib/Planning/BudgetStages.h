//===- BudgetStages.h - A step on the stages of a pipeline ------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_PLANNING_BUDGETSTAGES_H
#define REPRISE_LIB_PLANNING_BUDGETSTAGES_H

#include "BudgetPlans.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Solver/Budget.h"
#include "reprise/Solver/StageMoments.h"
#include <map>

namespace reprise::planning {

/// Plans of a chunk for all budgets: a curve, or one after the other several,
/// for which what is kept counts more or less beside what runs.
class ChunkCurve {
public:
  /// A curve for each of so many micro-batches in flight.
  ChunkCurve(const solver::StepGraph &graph, llvm::ArrayRef<int64_t> inFlight);

  const std::vector<solver::BudgetPoint> &getPoints() const { return points; }
  solver::KeptValues getPlan(size_t point) const {
    auto [curve, own] = origins[point];
    return curves[curve]->getPlan(own);
  }
  std::vector<std::pair<int64_t, int64_t>> getSegments(size_t point) const {
    auto [curve, own] = origins[point];
    return curves[curve]->getSegments(own);
  }
  /// Behind the last point of the curve that has `point`.
  size_t getEnd(size_t point) const {
    auto [curve, own] = origins[point];
    return point - own + curves[curve]->getPoints().size();
  }

private:
  std::vector<std::unique_ptr<solver::BudgetCurve>> curves;
  std::vector<solver::BudgetPoint> points;
  std::vector<std::pair<size_t, size_t>> origins; ///< curve, and its point
};

/// A model chunk with the most micro-batches that its stage ever keeps of it,
/// and the most whose backward task is still to come: these keep all that a
/// plan keeps.
struct Chunk {
  int64_t first, count, inFlight, whole;
  solver::StepStage step;
  std::unique_ptr<ChunkCurve> curve; ///< null until it is solved
  solver::ChunkTimes times;          ///< without replays
};

/// What `chunk`, whose graph `simulator` has, takes with a point of its curve.
solver::ChunkBytes getBytes(const Chunk &chunk,
                            solver::StepSimulator &simulator, size_t point);

/// A stage, whose plans are one of each of its chunks.
struct Stage {
  struct Point {
    int64_t peak;
    double seconds;
    std::vector<size_t> points; ///< of each chunk's curve
  };
  std::vector<Chunk> chunks;
  /// Of gradients that a step makes from nothing: in the program these lie
  /// among activations, from there on. Such a step is of one micro-batch, with
  /// one chunk on each stage.
  int64_t writtenBytes = 0;
  std::vector<solver::StageMoment> moments;
  std::vector<Point> curve; ///< peaks grow, seconds fall

  /// What it needs if its chunks have `bytes`.
  int64_t getNeed(llvm::ArrayRef<solver::ChunkBytes> bytes) const;
  /// The moment at which it needs that.
  const solver::StageMoment &
  findMost(llvm::ArrayRef<solver::ChunkBytes> bytes) const;

  /// The last point that takes at most `bytes`; -1 if there is none.
  int64_t find(int64_t bytes) const {
    auto behind =
        llvm::upper_bound(curve, bytes, [](int64_t peak, const Point &point) {
          return peak < point.peak;
        });
    return behind - curve.begin() - 1;
  }
};

/// A step on the stages of a pipeline.
struct Pipeline {
  solver::PipelineShape shape;
  solver::PipelineSchedule schedule;
  std::vector<Stage> stages;
  /// Whether graphs of chunks have gradients that a step makes from nothing
  /// where it makes them; otherwise plans are counted with them all the time.
  bool countsWritten = false;

  /// How long the schedule takes with a point of each stage; -1: no replays.
  double getSpan(llvm::ArrayRef<int64_t> points) const;
};

/// Looks for the last of `count` plans, whose bytes grow, that fits a budget.
/// Which plan is asked about depends on the answers before and on nothing else:
/// with a larger budget the answers are the same up to the first plan that fits
/// it alone, and the plan that is found is that one or a later one.
class PlanTree {
public:
  PlanTree(int64_t count, int64_t eighths) : eighths(eighths), end(count) {}

  bool isDone() const { return begin == end; }
  /// The plan to ask about, behind so many eighths of the others.
  int64_t getNext() const { return begin + (end - begin) * eighths / 8; }
  /// It takes so many bytes, or more than the budget.
  void answer(int64_t bytes, bool fits) {
    int64_t next = getNext();
    if (!fits) {
      end = next;
      return;
    }
    begin = next + 1;
    found = next;
    most = std::max(most, bytes);
  }

  int64_t found = -1; ///< -1: none fits
  int64_t most = 0;   ///< of all that fit; as a budget, it finds the same

private:
  int64_t eighths, begin = 0, end;
};

/// What the programs of `stages` (empty: of all) take with a point of each
/// stage; empty if one of them has none. What other stages decide makes no
/// difference to a stage.
using MeasurePoints = std::function<std::vector<int64_t>(
    llvm::ArrayRef<int64_t> points, llvm::ArrayRef<int64_t> stages)>;

/// The plans of the stages for every budget, which are chosen from lists, one
/// behind the other: with several chunks on a stage from `fits`, for all stages
/// together, otherwise for each stage from the points of its curve. A plan
/// takes the larger of what is counted for its chunks, offsets included, and of
/// what the programs take. Both are found out when they are asked for.
class StagePlans {
public:
  /// `pipeline` is solved and outlives the plans. A null `measure` leaves
  /// programs out.
  StagePlans(const Pipeline &pipeline, llvm::ArrayRef<int64_t> baseBytes,
             MeasurePoints measure);

  /// A point of each stage that takes at most `bytes`, with what is beside the
  /// step; none if a stage has no plan for that. More bytes never make a slower
  /// step.
  llvm::SmallVector<int64_t> find(int64_t bytes);

  /// The least budget that finds plans, and the stage that needs it.
  struct Least {
    int64_t bytes = 0;
    size_t stage = 0;
  };
  Least findLeast();

  /// Bytes that are counted for a stage beside the step.
  int64_t getBaseBytes(size_t stage) const { return baseBytes[stage]; }

  /// What the program of each stage takes; empty if one has none.
  std::vector<int64_t> getProgramBytes(llvm::ArrayRef<int64_t> points);

  /// What some budgets find, from the smallest: bytes that as a budget find the
  /// same plans, and the seconds of the schedule. Bytes grow, seconds fall.
  std::vector<std::pair<int64_t, double>> getCurve();

private:
  struct Fit {
    int64_t bytes; ///< without offsets
    llvm::SmallVector<int64_t> points;
    double span;
  };
  struct Found {
    llvm::SmallVector<int64_t> points; ///< none: a stage has no plan
    int64_t bytes = 0;                 ///< a budget that finds the same
  };
  void addFits();
  Found search(int64_t bytes);
  bool isTogether() const { return pipeline.shape.virtualStages > 1; }
  std::vector<PlanTree> plant() const;
  llvm::SmallVector<int64_t> getPoints(llvm::ArrayRef<int64_t> plans) const;
  /// What a point takes without offsets, and with them.
  int64_t foresee(size_t stage, int64_t point) const;
  int64_t count(size_t stage, int64_t point);
  /// What the plan of a list takes, more than `bytes` where that is enough to
  /// know; nothing if its programs are still to be measured.
  std::optional<int64_t> getBytes(size_t list, int64_t plan, int64_t bytes);
  /// What one of a list takes.
  int64_t measureOne(size_t list, int64_t plan);
  /// Compiles what is not known yet of the programs of `stages`.
  void compile(llvm::ArrayRef<int64_t> points, llvm::ArrayRef<int64_t> stages);

  const Pipeline &pipeline;
  std::vector<int64_t> baseBytes;
  MeasurePoints measure;
  std::vector<Fit> fits; ///< spans fall
  /// Of the chunks of a stage, by point of their curves.
  std::map<std::tuple<size_t, size_t, size_t>, solver::ChunkBytes> packed;
  /// What the program of a stage takes with a point; `kNone` if it has none.
  std::map<std::pair<size_t, int64_t>, int64_t> programs;
};

/// The chunks of terms of the loss, but for those of the last one.
class TermHomes {
public:
  /// Of the ops of `step`, of the phase joint, on chunks of so many layers.
  TermHomes(mlir::func::FuncOp step, llvm::ArrayRef<int64_t> layers);

  /// -1: it is of a layer, or where others in no layer are.
  int64_t get(mlir::Operation *op) const {
    auto known = homes.find(op);
    return known == homes.end() ? -1 : known->second;
  }
  /// Of each op of the graph of the step.
  std::vector<int64_t> getByLaunch(mlir::func::FuncOp step,
                                   const TracedGraph &traced) const;

private:
  llvm::DenseMap<mlir::Operation *, int64_t> homes;
};

/// The pipeline that `chunks` make of a step, for what a budget of `kind`
/// counts; nothing, after a message, where that cannot be.
mlir::FailureOr<Pipeline> getPipeline(mlir::func::FuncOp step,
                                      const TracedGraph &traced,
                                      remat::ChunksAttr chunks,
                                      Budget::Kind kind);

/// Finds the plans of each chunk for all budgets.
void solveChunks(Pipeline &pipeline);

/// Applies points of the stages to a copy of `module`, for its programs; null
/// where nobody measures them, or they become none and need not. What it is
/// given outlives it.
MeasurePoints getMeasure(mlir::ModuleOp module, const TracedGraph &traced,
                         const Pipeline &pipeline,
                         const BudgetSettings &settings);

/// What each stage has beside the step: the parameters of its layers with all
/// that goes by their names, and the inputs that its layers read. Embedding and
/// head, if they share a parameter, have one each. Inputs that no layer reads
/// are everywhere.
std::vector<int64_t> getStateBytes(mlir::func::FuncOp step,
                                   const TracedGraph &traced,
                                   const Pipeline &pipeline,
                                   remat::ChunksAttr chunks);

/// What plans are counted with beside the graphs of chunks, of stages that have
/// `states` beside the step.
std::vector<int64_t> getBaseBytes(const Pipeline &pipeline,
                                  llvm::ArrayRef<int64_t> states,
                                  Budget::Kind kind);

/// As `tryBaselines`, on the pipeline: bytes of the stage that needs most, and
/// how much longer the schedule is than without replays. Takes the decisions of
/// `whatIf` away.
mlir::FailureOr<std::vector<BudgetChoice>>
tryStageBaselines(mlir::func::FuncOp step, WhatIf &whatIf,
                  const CostTable &costs, const BudgetSettings &settings,
                  const Budget &budget, llvm::ArrayRef<int64_t> baseBytes);

} // namespace reprise::planning

#endif // REPRISE_LIB_PLANNING_BUDGETSTAGES_H
