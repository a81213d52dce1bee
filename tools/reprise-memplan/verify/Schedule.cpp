//===- Schedule.cpp - Tasks of a pipeline, simulated ----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Schedule.h"

#include <array>

using namespace reprise::verify;

Schedule::Schedule(const Pipeline &pipeline)
    : stages(pipeline.stages), virtualStages(pipeline.virtualStages),
      numChunks(stages * virtualStages), numBatches(pipeline.microBatches),
      before(2 * numChunks * numBatches, -1), input(before) {
  for (int64_t stage = 0; stage < stages; ++stage)
    addStage(pipeline, stage);
  begins.push_back(tasks.size());
  for (int64_t chunk = 0; chunk < numChunks; ++chunk)
    for (int64_t batch = 0; batch < numBatches; ++batch) {
      if (chunk > 0)
        input[number({chunk, batch, false})] =
            number({chunk - 1, batch, false});
      bool isLast = chunk + 1 == numChunks;
      input[number({chunk, batch, true})] =
          isLast ? number({chunk, batch, false})
                 : number({chunk + 1, batch, true});
    }
}

void Schedule::addStage(const Pipeline &pipeline, int64_t stage) {
  begins.push_back(tasks.size());
  // Interleaved, a group of micro-batches goes through all chunks of the stage
  // before the next does.
  std::vector<Task> forward, backward;
  int64_t group = pipeline.isInterleaved ? pipeline.group : numBatches;
  for (int64_t from = 0; from < numBatches; from += group)
    for (int64_t v = 0; v < virtualStages; ++v)
      for (int64_t b = from; b < std::min(from + group, numBatches); ++b) {
        forward.push_back({v * stages + stage, b, false});
        backward.push_back({(virtualStages - 1 - v) * stages + stage, b, true});
      }
  int64_t behind = stages - 1 - stage, total = forward.size();
  int64_t ahead = pipeline.isGPipe ? total
                  : pipeline.isInterleaved
                      ? 2 * behind + (virtualStages - 1) * group
                      : behind;
  ahead = std::min(ahead, total);
  tasks.insert(tasks.end(), forward.begin(), forward.begin() + ahead);
  for (int64_t k = 0; k < total; ++k) {
    if (ahead + k < total)
      tasks.push_back(forward[ahead + k]);
    tasks.push_back(backward[k]);
  }
  for (size_t t = begins.back() + 1; t < tasks.size(); ++t)
    before[number(tasks[t])] = number(tasks[t - 1]);
}

/// Tasks of which nothing waited for is left come first.
bool Schedule::sort() {
  // Two at most wait for a task: the next of its stage, and of its batch.
  std::vector<std::array<int64_t, 2>> waiting(before.size(), {-1, -1});
  std::vector<int8_t> missing(before.size());
  for (size_t t = 0; t < before.size(); ++t) {
    if (before[t] >= 0) {
      ++missing[t];
      waiting[before[t]][0] = t;
    }
    if (input[t] >= 0) {
      ++missing[t];
      waiting[input[t]][1] = t;
    }
  }
  for (size_t t = 0; t < before.size(); ++t)
    if (missing[t] == 0)
      order.push_back(t);
  for (size_t next = 0; next < order.size(); ++next)
    for (int64_t t : waiting[order[next]])
      if (t >= 0 && --missing[t] == 0)
        order.push_back(t);
  return order.size() == tasks.size();
}

std::vector<int64_t> Schedule::getInFlight() const {
  std::vector<int64_t> now(numChunks), most(numChunks);
  for (const Task &task : tasks) {
    now[task.chunk] += task.isBackward ? -1 : 1;
    most[task.chunk] = std::max(most[task.chunk], now[task.chunk]);
  }
  return most;
}

double Schedule::getSpan(const std::vector<Times> &times) const {
  std::vector<double> ends(before.size());
  double span = 0;
  for (size_t t : order) {
    double begin = 0;
    for (int64_t other : {before[t], input[t]})
      if (other >= 0)
        begin = std::max(begin, ends[other]);
    int64_t chunk = int64_t(t) / numBatches % numChunks;
    bool isBackward = int64_t(t) >= numChunks * numBatches;
    ends[t] =
        begin + (isBackward ? times[chunk].backward : times[chunk].forward);
    span = std::max(span, ends[t]);
  }
  return span;
}

std::optional<Fault> Schedule::check(const Path &path) const {
  for (size_t k = 0; k < path.parts.size(); ++k) {
    const PathPart &part = path.parts[k];
    std::string stage = "stage " + std::to_string(part.stage);
    int64_t count = begins[part.stage + 1] - begins[part.stage];
    if (part.first > part.last || part.last >= count)
      return Fault{part.at, "needs tasks out of the " + std::to_string(count) +
                                " of " + stage + ", but got " +
                                std::to_string(part.first) + " to " +
                                std::to_string(part.last)};
    if (k == 0)
      continue;
    const PathPart &previous = path.parts[k - 1];
    const Task &task = tasks[begins[part.stage] + part.first];
    const Task &waited = tasks[begins[previous.stage] + previous.last];
    if (input[number(task)] != int64_t(number(waited)))
      return Fault{part.at, "task " + std::to_string(part.first) + " of " +
                                stage + " does not wait for task " +
                                std::to_string(previous.last) + " of stage " +
                                std::to_string(previous.stage)};
  }
  return std::nullopt;
}

std::vector<Times> Schedule::countTasks(const Path &path) const {
  std::vector<Times> counts(numChunks);
  for (const PathPart &part : path.parts)
    for (int64_t t = part.first; t <= part.last; ++t) {
      const Task &task = tasks[begins[part.stage] + t];
      (task.isBackward ? counts[task.chunk].backward
                       : counts[task.chunk].forward) += 1;
    }
  return counts;
}
