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

} // namespace reprise::verify

#endif // REPRISE_MEMPLAN_SCHEDULE_H
