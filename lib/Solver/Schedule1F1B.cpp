//===- Schedule1F1B.cpp - Forward and backward in turn --------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Solver/StageSchedule.h"

#include <algorithm>

using namespace reprise::solver;

std::vector<StageTask> reprise::solver::list1F1B(const PipelineShape &shape,
                                                 int64_t stage) {
  std::vector<StageTask> tasks;
  int64_t warmUp = std::min(shape.stages - stage - 1, shape.microBatches);
  for (int64_t batch = 0; batch < warmUp; ++batch)
    tasks.push_back({TaskKind::Forward, 0, batch});
  for (int64_t batch = 0; batch < shape.microBatches; ++batch) {
    if (warmUp + batch < shape.microBatches)
      tasks.push_back({TaskKind::Forward, 0, warmUp + batch});
    tasks.push_back({TaskKind::Backward, 0, batch});
  }
  return tasks;
}
