//===- ScheduleGPipe.cpp - All forward, then all backward -----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Solver/StageSchedule.h"

using namespace reprise::solver;

std::vector<StageTask> reprise::solver::listGPipe(const PipelineShape &shape,
                                                  int64_t) {
  std::vector<StageTask> tasks;
  for (TaskKind kind : {TaskKind::Forward, TaskKind::Backward})
    for (int64_t batch = 0; batch < shape.microBatches; ++batch)
      tasks.push_back({kind, 0, batch});
  return tasks;
}
