//===- Pipeline.h - A pipeline's schedule, simulated ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which micro-batches are in flight on which stage of a pipeline, from the
// schedule as it runs: every stage goes through its own list of tasks, and each
// task waits for what it needs from another stage.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_SOLVER_PIPELINE_H
#define REPRISE_SOLVER_PIPELINE_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace reprise::solver {

/// A pipeline of `stages`, each with `virtualStages` chunks of the model. Chunk
/// `c` of the model is virtual stage `c / stages` of stage `c % stages`.
struct PipelineShape {
  int64_t stages = 1;
  int64_t virtualStages = 1;
  int64_t microBatches = 1;
  /// Of an interleaved pipeline: micro-batches that go through all chunks of a
  /// stage before others begin; 0: as many as there are stages.
  int64_t microBatchGroup = 0;
  /// The name of a schedule (`StageSchedule.h`); empty: 1F1B, or with several
  /// chunks on a stage interleaved 1F1B.
  std::string schedule = {};
};

/// The forward or backward pass of a micro-batch through a virtual stage.
struct PipelineTask {
  bool isBackward;
  int64_t virtualStage;
  int64_t microBatch;
  int64_t begin, end; ///< In the units of the times that were given.
  /// Of the backward pass the gradients of weights, where the schedule has a
  /// task of their own for them; `isBackward` is not set then.
  bool isWeight = false;
};

/// The tasks of each stage, in order.
using PipelineSchedule = std::vector<std::vector<PipelineTask>>;

/// Says with numbers what is wrong with `shape`: a number below 1, more tasks
/// than 2^24, virtual stages without stages.
std::optional<std::string> check(const PipelineShape &shape);

/// Runs the schedule of `shape`, which passes `check`. A task begins when its
/// stage is free and its input is there; sending takes no time. A backward task
/// takes `backwardTime`, by default twice as long as a forward task, half of
/// which is for a task of weights where there is one. Empty if stages wait for
/// each other forever, as they may where the stages do not divide the
/// micro-batches of an interleaved pipeline.
///
/// Source: Narayanan et al., Efficient Large-Scale Language Model Training on
/// GPU Clusters, arXiv:2104.04473, figure 4; Megatron Core 0.15,
/// `schedules.py`, for the order of tasks and the length of warm-up.
PipelineSchedule simulate(const PipelineShape &shape, int64_t forwardTime = 1,
                          int64_t backwardTime = 2);

/// Seconds that the tasks of a chunk of the model take. A schedule without
/// tasks of weights has these gradients in its backward tasks.
struct ChunkTimes {
  double forward = 0, backward = 0, weight = 0;
};

/// When the last task of `schedule`, which is one of `shape`, ends if those of
/// each chunk of the model take `times`. The order of the tasks on a stage
/// stays as it is, so longer tasks never end it sooner.
double getSpan(const PipelineShape &shape, const PipelineSchedule &schedule,
               const std::vector<ChunkTimes> &times);

/// Tasks of a stage, one behind the other in its list, both ends included.
struct PathPart {
  int64_t stage = 0, first = 0, last = 0;
};

/// Tasks that wait for each other: the first of a part for the last of the part
/// before it. No step is shorter than all of them together.
using TaskPath = std::vector<PathPart>;

/// The one that `getSpan` is the length of.
TaskPath findLongestPath(const PipelineShape &shape,
                         const PipelineSchedule &schedule,
                         const std::vector<ChunkTimes> &times);

/// How many tasks of each kind and chunk of the model `path` has; and how many
/// whole backward passes at least, if those of all micro-batches take as long.
struct PathCounts {
  std::vector<double> forward, backward, weight, whole;
};
PathCounts countTasks(const PipelineShape &shape,
                      const PipelineSchedule &schedule, const TaskPath &path);

/// Whether gradients of weights have tasks of their own on a stage: these are
/// made later than the backward task ends.
bool splitsWeights(const std::vector<PipelineTask> &stage);

/// The most micro-batches that a stage ever holds of each of its virtual
/// stages, from the beginning of the forward task to the end of the last task.
std::vector<int64_t> getMostInFlight(const std::vector<PipelineTask> &stage,
                                     int64_t virtualStages);

/// The same, but to the end of the backward task: until then all that a
/// micro-batch keeps is there, and what a task of weights needs is less, or
/// something else.
std::vector<int64_t> getMostWhole(const std::vector<PipelineTask> &stage,
                                  int64_t virtualStages);

/// What a stage holds when it holds most.
struct InFlight {
  std::vector<int64_t> microBatches; ///< Of each virtual stage.
  int64_t bytes = 0;
};

/// Walks through the tasks of one stage. A micro-batch takes `bytes[v]` from
/// the beginning of its forward task on virtual stage `v` to the end of its
/// last task.
InFlight getPeak(const std::vector<PipelineTask> &stage,
                 const std::vector<int64_t> &bytes);

} // namespace reprise::solver

#endif // REPRISE_SOLVER_PIPELINE_H
