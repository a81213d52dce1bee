//===- Schedule.h - Tasks of a pipeline, simulated --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_MEMPLAN_SCHEDULE_H
#define REPRISE_MEMPLAN_SCHEDULE_H

#include "Claims.h"

namespace reprise::verify {

/// A micro-batch, forward or backward, through a chunk of the model.
struct Task {
  int64_t chunk = 0, batch = 0;
  bool isBackward = false;
};

/// Of a chunk.
struct Times {
  double forward = 0, backward = 0;
};

/// 1F1B, or interleaved 1F1B: after as many forward tasks as keep the stages
/// behind it busy, a stage runs forward and backward in turn. With GPipe it
/// runs all of them first.
class Schedule {
public:
  explicit Schedule(const Pipeline &pipeline);

  /// Finds an order that runs, for `getSpan`; false if tasks wait for each
  /// other.
  bool sort();
  /// The most of each chunk that its stage has begun and not done with.
  std::vector<int64_t> getInFlight() const;
  double getSpan(const std::vector<Times> &times) const;

  /// The tasks of a stage, in its order.
  size_t countTasks(int64_t stage) const {
    return begins[stage + 1] - begins[stage];
  }
  const Task &getTask(int64_t stage, size_t number) const {
    return tasks[begins[stage] + number];
  }

  /// What is wrong with a path: tasks that are not there, or do not wait for
  /// each other.
  std::optional<Fault> check(const Path &path) const;
  /// How many forward and backward tasks of each chunk a path without fault
  /// has.
  std::vector<Times> countTasks(const Path &path) const;

private:
  void addStage(const Pipeline &pipeline, int64_t stage);
  size_t number(const Task &task) const {
    return (size_t(task.isBackward) * numChunks + task.chunk) * numBatches +
           task.batch;
  }

  int64_t stages, virtualStages, numChunks, numBatches;
  std::vector<Task> tasks; ///< stage after stage, each in its order
  std::vector<size_t> begins;
  /// By number: what comes before on the stage, what is waited for; the tasks
  /// in an order that runs.
  std::vector<int64_t> before, input;
  std::vector<size_t> order;
};

/// More tasks of a schedule are not gone through.
inline constexpr int64_t kMostTasks = int64_t(1) << 20;

/// Layers have the most micro-batches of their chunk that its stage ever has.
std::optional<Fault> checkInFlight(const Pipeline &pipeline,
                                   const Schedule &schedule);

/// Says which tasks the prices of chunks are for: a byte at a point of backward
/// is there while the chunk runs, and one that is kept, of each micro-batch in
/// flight. Until a backward task ends, its micro-batch is.
std::optional<Fault> placePricedTasks(Pipeline &pipeline,
                                      const Schedule &schedule);

/// What a stage needs: while a task runs, what its chunk works with, and what
/// is kept of all other micro-batches in flight, beside what outlives the step.
__int128 getNeed(const Pipeline &pipeline, const Schedule &schedule,
                 int64_t stage);

/// What a stage needs is within the budget, and so is what its chunks may need:
/// all of it each, or where their needs add up, all together.
std::optional<Fault> checkShares(const Pipeline &pipeline,
                                 const Schedule &schedule);

} // namespace reprise::verify

#endif // REPRISE_MEMPLAN_SCHEDULE_H
