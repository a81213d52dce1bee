//===- Executor.h - A model's steps on a device -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_EXECUTOR_H
#define REPRISE_RUNTIME_DEVICE_EXECUTOR_H

#include "Arena.h"
#include "Device.h"
#include "runtime/base/List.h"

namespace reprise::runtime {

/// Lets a device run a model's schedules, and keeps account of what has run: up
/// to which byte of the plan it must have come.
class Executor {
public:
  Executor(const RepriseModel &model, Arena &arena, Device &device)
      : model(model), arena(arena), device(device) {}
  Executor(const Executor &) = delete;
  Executor &operator=(const Executor &) = delete;

  /// Checks the tables (every index and byte range), for this rank, and lets
  /// the device take its memory and prepare.
  bool prepare(bool profile, int rank, Error &error);

  /// Where the host writes the inputs of micro-batch `i` of the next turn.
  MicroBatch inputs(int64_t i);

  /// Runs a turn of the step, in order: forward and backward of micro-batches,
  /// and what comes behind them; in the last turn, unless it is `isApart`, the
  /// update, too. Then what comes out, loss and norm, is there after `endStep`
  /// of the device. If either is no finite number, the update has left the
  /// parameters as they were.
  ///
  /// Else the device does the update in two parts, for whoever has to see what
  /// comes in between: what computes the norm of the gradients, with which the
  /// loss is known, too; then the rest.
  bool runTurn(const Turn &turn, bool isApart, Error &error);

  /// Forward alone, between two steps; neither is in the profile.
  bool runEvaluate(Error &error);
  bool runSample(Error &error);

  /// What the high-water mark has to be by plan: the arena's end, unless what
  /// ran ends below other schedules.
  int64_t plannedBytes() const;
  /// The end of a buffer, with what rounds its size up if nothing lies behind.
  int64_t withPadding(int64_t end) const;
  /// That of the furthest buffer that was touched.
  int64_t highWaterBytes() const;

private:
  int64_t endOf(bool all) const;

  const RepriseModel &model;
  Arena &arena;
  Device &device;
  List<bool> hasRun; ///< Of each schedule.
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_EXECUTOR_H
