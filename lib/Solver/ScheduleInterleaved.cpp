//===- ScheduleInterleaved.cpp - Several chunks on each stage -------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Solver/StageSchedule.h"

#include <algorithm>

using namespace reprise::solver;

/// The forward tasks of every stage: a group of micro-batches goes through all
/// virtual stages before the next group begins.
static std::vector<StageTask> listForward(const PipelineShape &shape,
                                          int64_t group) {
  std::vector<StageTask> tasks;
  for (int64_t first = 0; first < shape.microBatches; first += group)
    for (int64_t stage = 0; stage < shape.virtualStages; ++stage)
      for (int64_t batch = first;
           batch < std::min(first + group, shape.microBatches); ++batch)
        tasks.push_back({TaskKind::Forward, stage, batch});
  return tasks;
}

std::vector<StageTask>
reprise::solver::listInterleaved(const PipelineShape &shape, int64_t stage) {
  int64_t group = shape.microBatchGroup ? shape.microBatchGroup : shape.stages;
  std::vector<StageTask> forward = listForward(shape, group), tasks;
  size_t warmUp = std::min<size_t>(2 * (shape.stages - stage - 1) +
                                       (shape.virtualStages - 1) * group,
                                   forward.size());
  tasks.assign(forward.begin(), forward.begin() + warmUp);
  for (size_t done = 0; done < forward.size(); ++done) {
    if (warmUp + done < forward.size())
      tasks.push_back(forward[warmUp + done]);
    // Backward goes through the chunks the other way round.
    StageTask task = forward[done];
    task.kind = TaskKind::Backward;
    task.virtualStage = shape.virtualStages - 1 - task.virtualStage;
    tasks.push_back(task);
  }
  return tasks;
}
