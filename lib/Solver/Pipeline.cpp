//===- Pipeline.cpp - A pipeline's schedule, simulated --------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Solver/Pipeline.h"
#include "reprise/Solver/StageSchedule.h"

#include <algorithm>
#include <utility>

using namespace reprise::solver;

std::optional<std::string> reprise::solver::check(const PipelineShape &shape) {
  constexpr int64_t mostTasks = int64_t(1) << 24;
  const std::pair<const char *, int64_t> counts[] = {
      {"pipeline stages", shape.stages},
      {"virtual stages", shape.virtualStages},
      {"micro-batches", shape.microBatches}};
  int64_t tasks = 1;
  for (auto [what, count] : counts) {
    if (count < 1)
      return std::string("needs at least 1 for the number of ") + what +
             ", but got " + std::to_string(count);
    if (count > mostTasks / tasks)
      return "needs at most " + std::to_string(mostTasks) +
             " tasks, but got more with " + std::to_string(count) + " " + what;
    tasks *= count;
  }
  if (shape.stages == 1 && shape.virtualStages > 1)
    return "needs more than 1 pipeline stage to have virtual stages, but got " +
           std::to_string(shape.virtualStages) + " virtual stages";
  return std::nullopt;
}

/// The tasks of one stage, in order.
static std::vector<PipelineTask> listTasks(const PipelineShape &shape,
                                           int64_t stage) {
  std::vector<PipelineTask> tasks;
  const NamedSchedule *named = findSchedule(shape.schedule);
  ListTasks list = named                     ? named->list
                   : shape.virtualStages > 1 ? listInterleaved
                                             : list1F1B;
  for (const StageTask &task : list(shape, stage))
    tasks.push_back({task.kind == TaskKind::Backward, task.virtualStage,
                     task.microBatch, 0, 0, task.kind == TaskKind::Weight});
  return tasks;
}

bool reprise::solver::splitsWeights(const std::vector<PipelineTask> &stage) {
  return std::any_of(stage.begin(), stage.end(),
                     [](const PipelineTask &task) { return task.isWeight; });
}

/// Runs the lists of all stages: `getTime` says how long a task of a chunk of
/// the model takes, `record` is told when each begins and ends. Whether all of
/// them ran.
template <typename Time, typename GetTime, typename Record>
static bool runTasks(const PipelineShape &shape,
                     const PipelineSchedule &schedule, GetTime getTime,
                     Record record) {
  // When each task ends, by direction, chunk of the model and micro-batch.
  constexpr Time never = -1;
  int64_t numChunks = shape.stages * shape.virtualStages;
  std::vector<Time> ends(2 * numChunks * shape.microBatches, never);
  auto endOf = [&](bool isBackward, int64_t chunk, int64_t batch) -> Time & {
    return ends[(isBackward * numChunks + chunk) * shape.microBatches + batch];
  };
  auto inputOf = [&](bool isBackward, int64_t chunk, int64_t batch) -> Time {
    if (!isBackward)
      return chunk == 0 ? 0 : endOf(false, chunk - 1, batch);
    bool isLast = chunk == numChunks - 1;
    return endOf(!isLast, isLast ? chunk : chunk + 1, batch);
  };

  std::vector<size_t> next(shape.stages, 0);
  std::vector<Time> free(shape.stages, 0);
  for (bool goesOn = true; goesOn;) {
    goesOn = false;
    for (int64_t stage = 0; stage < shape.stages; ++stage)
      for (; next[stage] < schedule[stage].size(); ++next[stage]) {
        const PipelineTask &task = schedule[stage][next[stage]];
        int64_t chunk = task.virtualStage * shape.stages + stage;
        Time input = task.isWeight
                         ? endOf(true, chunk, task.microBatch)
                         : inputOf(task.isBackward, chunk, task.microBatch);
        if (input == never)
          break;
        Time begin = std::max(free[stage], input);
        free[stage] = begin + getTime(task, chunk);
        if (!task.isWeight)
          endOf(task.isBackward, chunk, task.microBatch) = free[stage];
        record(stage, next[stage], begin, free[stage]);
        goesOn = true;
      }
  }
  for (int64_t stage = 0; stage < shape.stages; ++stage)
    if (next[stage] < schedule[stage].size())
      return false;
  return true;
}

PipelineSchedule reprise::solver::simulate(const PipelineShape &shape,
                                           int64_t forwardTime,
                                           int64_t backwardTime) {
  PipelineSchedule lists, schedule;
  for (int64_t stage = 0; stage < shape.stages; ++stage)
    lists.push_back(listTasks(shape, stage));
  schedule = lists;
  int64_t weightTime = splitsWeights(lists.front()) ? backwardTime / 2 : 0;
  bool isDone = runTasks<int64_t>(
      shape, lists,
      [&](const PipelineTask &task, int64_t) {
        return task.isWeight     ? weightTime
               : task.isBackward ? backwardTime - weightTime
                                 : forwardTime;
      },
      [&](int64_t stage, size_t task, int64_t begin, int64_t end) {
        schedule[stage][task].begin = begin;
        schedule[stage][task].end = end;
      });
  return isDone ? schedule : PipelineSchedule();
}

static double getTime(const PipelineTask &task, const ChunkTimes &times) {
  return task.isWeight     ? times.weight
         : task.isBackward ? times.backward
                           : times.forward;
}

double reprise::solver::getSpan(const PipelineShape &shape,
                                const PipelineSchedule &schedule,
                                const std::vector<ChunkTimes> &times) {
  double span = 0;
  runTasks<double>(
      shape, schedule,
      [&](const PipelineTask &task, int64_t chunk) {
        return getTime(task, times[chunk]);
      },
      [&](int64_t, size_t, double, double end) { span = std::max(span, end); });
  return span;
}

TaskPath
reprise::solver::findLongestPath(const PipelineShape &shape,
                                 const PipelineSchedule &schedule,
                                 const std::vector<ChunkTimes> &times) {
  std::vector<std::vector<double>> begins, ends;
  int64_t numChunks = shape.stages * shape.virtualStages;
  // Where each task is in its stage's list.
  std::vector<int64_t> places(2 * numChunks * shape.microBatches);
  auto placeOf = [&](bool isBackward, int64_t chunk,
                     int64_t batch) -> int64_t & {
    return places[(isBackward * numChunks + chunk) * shape.microBatches +
                  batch];
  };
  for (int64_t stage = 0; stage < shape.stages; ++stage) {
    begins.emplace_back(schedule[stage].size());
    ends.emplace_back(schedule[stage].size());
    for (size_t t = 0; t < schedule[stage].size(); ++t) {
      const PipelineTask &task = schedule[stage][t];
      // Nothing waits for a task of weights but what its stage does next.
      if (!task.isWeight)
        placeOf(task.isBackward, task.virtualStage * shape.stages + stage,
                task.microBatch) = t;
    }
  }
  int64_t stage = 0, place = 0;
  double span = -1;
  runTasks<double>(
      shape, schedule,
      [&](const PipelineTask &task, int64_t chunk) {
        return getTime(task, times[chunk]);
      },
      [&](int64_t on, size_t task, double begin, double end) {
        begins[on][task] = begin;
        ends[on][task] = end;
        if (end > span) {
          span = end;
          stage = on;
          place = task;
        }
      });
  // Backwards, from whatever ended where the task began.
  TaskPath path = {{stage, place, place}};
  while (true) {
    if (place > 0 && ends[stage][place - 1] == begins[stage][place]) {
      path.back().first = --place;
      continue;
    }
    const PipelineTask &task = schedule[stage][place];
    int64_t chunk = task.virtualStage * shape.stages + stage;
    bool isTurn = task.isBackward && chunk == numChunks - 1;
    int64_t before = isTurn ? chunk : task.isBackward ? chunk + 1 : chunk - 1;
    if (before < 0)
      break;
    stage = before % shape.stages;
    place = placeOf(task.isBackward && !isTurn, before, task.microBatch);
    path.push_back({stage, place, place});
  }
  std::reverse(path.begin(), path.end());
  return path;
}

PathCounts reprise::solver::countTasks(const PipelineShape &shape,
                                       const PipelineSchedule &schedule,
                                       const TaskPath &path) {
  int64_t numChunks = shape.stages * shape.virtualStages;
  PathCounts counts = {std::vector<double>(numChunks),
                       std::vector<double>(numChunks),
                       std::vector<double>(numChunks),
                       {}};
  for (const PathPart &part : path)
    for (int64_t t = part.first; t <= part.last; ++t) {
      const PipelineTask &task = schedule[part.stage][t];
      std::vector<double> &count = task.isWeight     ? counts.weight
                                   : task.isBackward ? counts.backward
                                                     : counts.forward;
      count[task.virtualStage * shape.stages + part.stage] += 1;
    }
  counts.whole = counts.backward;
  if (splitsWeights(schedule.front()))
    for (int64_t c = 0; c < numChunks; ++c)
      counts.whole[c] = std::min(counts.backward[c], counts.weight[c]);
  return counts;
}

/// What `task` adds to what is held: a micro-batch, until a task of weights or,
/// if there is none, its backward task ends.
static int64_t getChange(const PipelineTask &task, bool isToWeight) {
  bool isForward = !task.isBackward && !task.isWeight;
  bool isEnd = isToWeight ? task.isWeight : task.isBackward;
  return isForward ? 1 : isEnd ? -1 : 0;
}

static std::vector<int64_t> getMost(const std::vector<PipelineTask> &stage,
                                    int64_t virtualStages, bool isToWeight) {
  std::vector<int64_t> now(virtualStages), most(virtualStages);
  for (const PipelineTask &task : stage) {
    int64_t &held = now[task.virtualStage];
    held += getChange(task, isToWeight);
    most[task.virtualStage] = std::max(most[task.virtualStage], held);
  }
  return most;
}

std::vector<int64_t>
reprise::solver::getMostInFlight(const std::vector<PipelineTask> &stage,
                                 int64_t virtualStages) {
  return getMost(stage, virtualStages, splitsWeights(stage));
}

std::vector<int64_t>
reprise::solver::getMostWhole(const std::vector<PipelineTask> &stage,
                              int64_t virtualStages) {
  return getMost(stage, virtualStages, /*isToWeight=*/false);
}

InFlight reprise::solver::getPeak(const std::vector<PipelineTask> &stage,
                                  const std::vector<int64_t> &bytes) {
  InFlight now = {std::vector<int64_t>(bytes.size(), 0), 0}, peak = now;
  int64_t held = 0, mostHeld = 0;
  bool isToWeight = splitsWeights(stage);
  for (const PipelineTask &task : stage) {
    int64_t change = getChange(task, isToWeight);
    now.microBatches[task.virtualStage] += change;
    now.bytes += change * bytes[task.virtualStage];
    held += change;
    // What takes nothing is counted as well.
    if (std::pair(now.bytes, held) > std::pair(peak.bytes, mostHeld)) {
      peak = now;
      mostHeld = held;
    }
  }
  return peak;
}
