//===- ScheduleZBH1.cpp - Gradients of weights fill the gaps --------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Solver/StageSchedule.h"

#include <algorithm>

using namespace reprise::solver;

std::vector<StageTask> reprise::solver::listZBH1(const PipelineShape &shape,
                                                 int64_t stage) {
  std::vector<StageTask> tasks;
  int64_t batches = shape.microBatches;
  int64_t warmUp = std::min(shape.stages - stage - 1, batches);
  // Stage r holds p - r micro-batches for backward tasks, and r for weights.
  int64_t late = stage;
  for (int64_t batch = 0; batch < warmUp; ++batch)
    tasks.push_back({TaskKind::Forward, 0, batch});
  for (int64_t batch = 0; batch < batches; ++batch) {
    if (warmUp + batch < batches)
      tasks.push_back({TaskKind::Forward, 0, warmUp + batch});
    tasks.push_back({TaskKind::Backward, 0, batch});
    if (batch >= late)
      tasks.push_back({TaskKind::Weight, 0, batch - late});
  }
  for (int64_t batch = std::max<int64_t>(0, batches - late); batch < batches;
       ++batch)
    tasks.push_back({TaskKind::Weight, 0, batch});
  return tasks;
}
