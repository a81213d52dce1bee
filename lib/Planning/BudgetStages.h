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
#include "reprise/Solver/Pipeline.h"
#include <map>

namespace reprise::planning {

/// A model chunk with the most micro-batches that its stage ever keeps of it.
struct Chunk {
  int64_t first, count, inFlight;
  solver::StepStage step;
  std::unique_ptr<solver::BudgetCurve> curve; ///< null until it is solved
  solver::ChunkTimes times;                   ///< without replays
};

/// A stage, whose plans are one of each of its chunks.
struct Stage {
  struct Point {
    int64_t peak;
    double seconds;
    std::vector<size_t> points; ///< of each chunk's curve
  };
  std::vector<Chunk> chunks;
  std::vector<Point> curve; ///< peaks grow, seconds fall

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

  /// How long the schedule takes with a point of each stage; -1: no replays.
  double getSpan(llvm::ArrayRef<int64_t> points) const;
};

/// The plans of the stages for every budget. With offsets a plan may need more
/// than its point of a curve says; that is found out when it is asked for.
class StagePlans {
public:
  /// `pipeline` is solved and outlives the plans.
  StagePlans(const Pipeline &pipeline, llvm::ArrayRef<int64_t> baseBytes);

  /// A point of each stage that needs at most `bytes`, offsets included, and
  /// what is beside the step; none if a stage has no plan for that. More bytes
  /// never make a slower step.
  llvm::SmallVector<int64_t> find(int64_t bytes);

  /// What `find` finds for some budgets, from the smallest: the bytes of the
  /// stage that needs most, which as a budget find the same plans, and the
  /// seconds of the schedule. Bytes grow, seconds fall.
  std::vector<std::pair<int64_t, double>> getCurve();

private:
  struct Fit {
    int64_t bytes; ///< without offsets
    llvm::SmallVector<int64_t> points;
    double span;
  };
  void addFits();
  int64_t getBytes(size_t stage, int64_t point);
  int64_t getBytes(llvm::ArrayRef<int64_t> points);

  const Pipeline &pipeline;
  llvm::ArrayRef<int64_t> baseBytes;
  std::vector<Fit> fits; ///< spans fall
  /// Of the chunks of a stage, by point of their curves.
  std::map<std::tuple<size_t, size_t, size_t>, int64_t> packed;
};

/// The pipeline that `chunks` make of a step; nothing, after a message, where
/// that cannot be.
mlir::FailureOr<Pipeline> getPipeline(mlir::func::FuncOp step,
                                      const TracedGraph &traced,
                                      remat::ChunksAttr chunks);

/// What each stage has beside the step: the parameters of its layers with all
/// that goes by their names, and the inputs that its layers read. Embedding and
/// head, if they share a parameter, have one each. Inputs that no layer reads
/// are everywhere.
std::vector<int64_t> getStateBytes(mlir::func::FuncOp step,
                                   const TracedGraph &traced,
                                   const Pipeline &pipeline,
                                   remat::ChunksAttr chunks);

/// As `tryBaselines`, on the pipeline: bytes of the stage that needs most, and
/// how much longer the schedule is than without replays. Takes the decisions of
/// `whatIf` away.
mlir::FailureOr<std::vector<BudgetChoice>>
tryStageBaselines(mlir::func::FuncOp step, WhatIf &whatIf,
                  const CostTable &costs, const BudgetSettings &settings,
                  int64_t bytes, llvm::ArrayRef<int64_t> baseBytes);

} // namespace reprise::planning

#endif // REPRISE_LIB_PLANNING_BUDGETSTAGES_H
