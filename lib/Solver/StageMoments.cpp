//===- StageMoments.cpp - What a stage has in flight at a time ------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Solver/StageMoments.h"

#include <algorithm>
#include <set>

using namespace reprise::solver;

/// Whether a mean of `left` and `right` has as much of everything as `middle`.
static bool isBelow(const std::vector<int64_t> &middle,
                    const std::vector<int64_t> &left,
                    const std::vector<int64_t> &right) {
  // The part of `left` in the mean is between these.
  double least = 0, most = 1;
  for (size_t v = 0; v < middle.size(); ++v) {
    double wanted = double(middle[v] - right[v]);
    double more = double(left[v] - right[v]);
    if (more > 0)
      least = std::max(least, wanted / more);
    else if (more < 0)
      most = std::min(most, wanted / more);
    else if (wanted > 0)
      return false;
  }
  return least <= most;
}

/// Counts rise and fall by one from task to task, so that most of them lie
/// between their neighbours.
static void addMoment(std::vector<StageMoment> &moments, StageMoment moment) {
  while (moments.size() > 1 &&
         isBelow(moments.back().inFlight, moments[moments.size() - 2].inFlight,
                 moment.inFlight))
    moments.pop_back();
  moments.push_back(std::move(moment));
}

/// Leaves out what another one has as much of everything as.
static void addLargest(std::vector<StageMoment> &all,
                       const std::vector<StageMoment> &moments) {
  for (size_t m = 0; m < moments.size(); ++m) {
    const std::vector<int64_t> &own = moments[m].inFlight;
    bool isLess = false;
    for (size_t other = 0; other < moments.size() && !isLess; ++other)
      isLess = other != m && own != moments[other].inFlight &&
               isBelow(own, moments[other].inFlight, moments[other].inFlight);
    if (!isLess)
      all.push_back(moments[m]);
  }
}

std::vector<StageMoment>
reprise::solver::getMoments(const std::vector<PipelineTask> &stage,
                            int64_t virtualStages, bool onlyBackward) {
  std::vector<std::vector<StageMoment>> ofChunk(virtualStages);
  std::vector<std::set<std::vector<int64_t>>> known(virtualStages);
  std::vector<int64_t> now(virtualStages);
  for (size_t t = 0; t < stage.size(); ++t) {
    const PipelineTask &task = stage[t];
    int64_t v = task.virtualStage;
    now[v] += !task.isBackward && !task.isWeight;
    bool isAsked = !task.isWeight && (task.isBackward || !onlyBackward);
    if (isAsked && known[v].insert(now).second)
      addMoment(ofChunk[v], {int64_t(t), v, now});
    now[v] -= task.isBackward;
  }
  std::vector<StageMoment> all;
  for (const std::vector<StageMoment> &moments : ofChunk)
    addLargest(all, moments);
  return all;
}

int64_t
reprise::solver::getMostWaiting(const std::vector<PipelineTask> &stage) {
  int64_t now = 0, most = 0, ended = 0;
  for (const PipelineTask &task : stage) {
    most = std::max(most, now += task.isBackward);
    now -= task.isWeight;
    ended += task.isWeight;
  }
  return ended > 0 ? most : 0;
}

int64_t reprise::solver::getNeed(const std::vector<StageMoment> &moments,
                                 const std::vector<ChunkBytes> &chunks) {
  int64_t most = 0;
  for (const StageMoment &moment : moments) {
    int64_t bytes = 0;
    for (size_t v = 0; v < chunks.size(); ++v)
      bytes += moment.inFlight[v] * chunks[v].kept;
    if (moment.running < int64_t(chunks.size())) {
      const ChunkBytes &running = chunks[moment.running];
      bytes += running.work - running.kept;
    }
    most = std::max(most, bytes);
  }
  return most;
}
