//===- Program.h - What a step runs -----------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_BASE_PROGRAM_H
#define REPRISE_RUNTIME_BASE_PROGRAM_H

#include "reprise/ABI/Model.h"

#include <algorithm>

namespace reprise::runtime {

/// How often a step runs a schedule: 0 for one that is not of the step.
inline int64_t countRuns(const RepriseModel &model, int schedule) {
  return std::count_if(
      model.program, model.program + model.numEntries,
      [&](const RepriseEntry &entry) { return entry.schedule == schedule; });
}

/// Whether ranks meet in a launch, or begin to, or wait for that.
inline bool isTogether(const RepriseLaunch &launch) {
  return launch.kind == REPRISE_LAUNCH_COLLECTIVE ||
         launch.kind == REPRISE_LAUNCH_BEGIN ||
         launch.kind == REPRISE_LAUNCH_WAIT;
}

/// Whether a launch of a micro-batch runs in the last one of a step alone.
inline bool isOnce(const RepriseModel &model, const RepriseLaunch &launch) {
  return isTogether(launch) && model.collectives[launch.callee].isOnce;
}

/// Launches are numbered over all schedules: the number of the first one of
/// `schedule`, and with `numSchedules` how many there are.
inline int64_t firstLaunch(const RepriseModel &model, int schedule) {
  int64_t first = 0;
  for (int i = 0; i < schedule; ++i)
    first += model.schedules[i].numLaunches;
  return first;
}

/// The schedule of the update, which ends a step.
inline int updateOf(const RepriseModel &model) {
  return model.program[model.numEntries - 1].schedule;
}

/// Where the inputs of micro-batch `i` of a turn are.
inline RepriseInputs inputsOf(const RepriseModel &model, int64_t i) {
  if (model.numInputs > 0)
    return model.inputs[i];
  return {model.tokens, model.targets, model.rng};
}

/// Whether GEMMs are of bf16.
inline bool hasGemmsOfBF16(const RepriseModel &model) {
  return std::any_of(
      model.gemms, model.gemms + model.numGemms,
      [](const RepriseGemm &gemm) { return gemm.typeAB == REPRISE_BF16; });
}

/// Calls `visit(launch, number, runs, isMicro)` for the launches that a step
/// has: with their numbers, how often each runs in it, and whether it reads
/// inputs of micro-batches.
template <typename Visit>
void forEachLaunch(const RepriseModel &model, Visit visit) {
  for (int i = 0; i < model.numSchedules; ++i) {
    int64_t runs = countRuns(model, i), first = firstLaunch(model, i);
    bool isMicro =
        std::any_of(model.program, model.program + model.numEntries,
                    [&](const RepriseEntry &entry) {
                      return entry.schedule == i && entry.microBatch >= 0;
                    });
    for (int j = 0; runs > 0 && j < model.schedules[i].numLaunches; ++j)
      visit(model.schedules[i].launches[j], first + j,
            isOnce(model, model.schedules[i].launches[j]) ? 1 : runs, isMicro);
  }
}

/// Entries of a step that are begun together: those of one schedule for some
/// micro-batches that follow each other, and those behind them that read no
/// inputs.
struct Turn {
  int begin = 0, once = 0, end = 0; ///< Inputs are read before `once`.
};

/// The turn of at most `most` micro-batches from entry `begin` on.
inline Turn turnFrom(const RepriseModel &model, int begin, int64_t most) {
  auto readsInputs = [&](int entry) {
    return model.program[entry].microBatch >= 0;
  };
  Turn turn = {begin, begin, begin};
  while (turn.once < model.numEntries && turn.once - begin < most &&
         readsInputs(turn.once) &&
         model.program[turn.once].schedule == model.program[begin].schedule)
    ++turn.once;
  turn.end = turn.once;
  while (turn.end < model.numEntries && !readsInputs(turn.end))
    ++turn.end;
  return turn;
}

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_BASE_PROGRAM_H
