//===- Executor.cpp - A model's steps on a device -------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Executor.h"

#include "CheckModel.h"
#include "Init.h"

#include <algorithm>

using namespace reprise::runtime;

/// Whether the norm of the gradients is the last thing that `launch` names:
/// what a launch writes comes after what it reads.
static bool writesNorm(const RepriseModel &model, const RepriseLaunch &launch) {
  if (launch.numBuffers == 0)
    return false;
  int last = launch.firstBuffer + launch.numBuffers - 1;
  return model.buffers[last].offset == model.gradNorm.offset;
}

bool Executor::prepare(bool profile, int rank, Error &error) {
  // What connects ranks reads the tables, too.
  if (!checkModel(model, rank, error) || !device.allocate(error))
    return false;
  if (!hasRun.resize(size_t(model.numSchedules)))
    return error.set("no memory left for %d schedules", model.numSchedules);
  std::fill(hasRun.begin(), hasRun.end(), false);
  const RepriseSchedule &update = model.schedules[updateOf(model)];
  int numNorm = 0;
  while (numNorm < update.numLaunches &&
         !writesNorm(model, update.launches[numNorm]))
    ++numNorm;
  return device.prepare(profile, std::min(numNorm + 1, update.numLaunches),
                        error);
}

MicroBatch Executor::inputs(int64_t i) {
  const RepriseInputs row = inputsOf(model, i);
  for (const RepriseBuffer &buffer : {row.tokens, row.targets, row.rng})
    arena.touch(buffer);
  return device.nextInputs().at(i);
}

bool Executor::runTurn(const Turn &turn, bool isApart, Error &error) {
  // What has run of a step without its update counts as all of it.
  for (int i = turn.begin; i < turn.end; ++i)
    hasRun[size_t(model.program[i].schedule)] = true;
  const bool isLast = turn.end == model.numEntries;
  return device.runTurn(turn, turn.end - (isLast && isApart ? 1 : 0), error);
}

bool Executor::runEvaluate(Error &error) {
  hasRun[size_t(model.evaluate)] = true;
  return device.runForward(Forward::Evaluate, error);
}

bool Executor::runSample(Error &error) {
  hasRun[size_t(model.sample)] = true;
  return device.runForward(Forward::Sample, error);
}

/// The end of the last state, and of the last buffer of schedules that have
/// run; or of all.
int64_t Executor::endOf(bool all) const {
  int64_t end = 0;
  auto take = [&](const RepriseBuffer &buffer) {
    end = std::max(end, buffer.offset + buffer.bytes);
  };
  auto takeAll = [&](const RepriseSchedule &schedule) {
    for (int i = 0; i < schedule.numLaunches; ++i)
      for (int j = 0; j < schedule.launches[i].numBuffers; ++j)
        take(model.buffers[schedule.launches[i].firstBuffer + j]);
  };
  for (int i = 0; i < model.numStates; ++i)
    if (outlivesStep(model.states[i]))
      take(model.states[i].buffer);
  for (int i = 0; i < model.numRotaries; ++i)
    take(model.rotaries[i].buffer);
  if (all || hasRun[size_t(model.program[0].schedule)])
    for (int i = 0; i < std::max(model.numInputs, 1); ++i) {
      const RepriseInputs row = inputsOf(model, i);
      for (const RepriseBuffer &buffer : {row.tokens, row.targets, row.rng})
        take(buffer);
    }
  for (int i = 0; i < model.numSchedules; ++i)
    if (all || hasRun[size_t(i)])
      takeAll(model.schedules[i]);
  return end;
}

int64_t Executor::withPadding(int64_t end) const {
  bool isLast = end == endOf(/*all=*/true);
  int64_t padding = model.arenaBytes - end;
  return isLast && padding < model.arenaAlignment ? model.arenaBytes : end;
}

int64_t Executor::plannedBytes() const {
  int64_t end = endOf(/*all=*/false);
  return end == endOf(/*all=*/true) ? model.arenaBytes : end;
}

int64_t Executor::highWaterBytes() const {
  return withPadding(arena.highWaterBytes());
}
