//===- Executor.h - Runs the schedules of a model ---------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_EXECUTOR_H
#define REPRISE_RUNTIME_DEVICE_EXECUTOR_H

#include "Arena.h"
#include "CudaExecutor.h"
#include "runtime/base/Clock.h"
#include "runtime/base/List.h"
#include "runtime/base/MicroBatch.h"
#include "runtime/base/Program.h"
#include "runtime/base/ThreadPool.h"
#include "runtime/compute/Cpu.h"
#include "runtime/compute/GemmAmx.h"
#include "runtime/transport/Collectives.h"

#include <algorithm>

namespace reprise::runtime {

/// Executes launches in order on the arena's buffers, one at a time, each with
/// all threads; or lets a GPU do it. They can fail there, and where ranks do
/// something together.
class Executor {
public:
  /// \param ranks  as many as the model is for.
  /// \param gpu    null: the CPU.
  Executor(const RepriseModel &model, Arena &arena, ThreadPool &pool,
           Transport &ranks, CudaExecutor *gpu = nullptr)
      : model(model), arena(arena), pool(pool), ranks(ranks), memory(ranks),
        gpu(gpu) {}
  Executor(const Executor &) = delete;
  Executor &operator=(const Executor &) = delete;
  ~Executor();

  /// Takes the memory of the plan.
  bool allocate(Error &error) {
    return gpu ? gpu->allocate(error) : arena.map(model.arenaBytes, error);
  }

  /// Checks the tables (every index and byte range), chooses the micro-kernel
  /// and the versions of kernels for this processor, and allocates
  /// what execution needs.
  /// \param onGpu  what matters there; `profile` counts for both.
  bool prepare(Processor onCpu, bool profile, Error &error,
               const CudaSettings &onGpu = {});

  /// A step is so many micro-batches at a time. Their inputs are written first,
  /// where `inputs` says, between `beginInputs` and `sendInputs`; if
  /// `takesInputsAhead`, as soon as the ones before were begun.
  int64_t numAtOnce() const {
    return gpu ? gpu->nextInputs().count()
               : std::max<int64_t>(model.numInputs, 1);
  }
  bool takesInputsAhead() const { return gpu; }
  bool beginInputs(Error &error) {
    return !gpu || gpu->nextInputs().begin(error);
  }
  MicroBatch inputs(int64_t i);
  bool sendInputs(Error &error) {
    return !gpu || gpu->nextInputs().send(error);
  }

  /// Who is told that a share of a schedule has run which has all micro-batches
  /// of the rank: as many of its launches as `microBatches` of them would have.
  /// After the last share nobody is.
  struct Watch {
    void (*tell)(void *context, int64_t microBatches) = nullptr;
    void *context = nullptr;
  };
  void setWatch(const Watch &told) { watch = told; }

  /// Sets the loss and measures back to zero.
  bool beginStep(Error &error);

  /// Runs a turn of the step, in order: forward and backward of micro-batches,
  /// and what comes behind them; in the last turn, unless it is `isApart`, the
  /// update, too. Then what comes out, loss and norm, is there after `endStep`.
  /// If either is no finite number, the update has left the parameters as they
  /// were.
  bool runTurn(const Turn &turn, bool isApart, Error &error);
  bool endStep(Error &error) { return !gpu || gpu->endStep(error); }

  /// The update in two parts, for whoever has to see what comes in between:
  /// what computes the norm of the gradients, with which the loss is known,
  /// too; then the rest.
  bool runNorm(Error &error) {
    return gpu ? gpu->runNorm(error) : runUpdate(0, numNorm, error);
  }
  bool runOptimizer(Error &error) {
    return gpu ? gpu->runOptimizer(error)
               : runUpdate(numNorm, update().numLaunches, error);
  }

  /// In place of the optimizer: takes back what the micro-batches have added.
  bool clearGradients(Error &error);

  /// Forward alone, between two steps; neither is in the profile.
  bool runEvaluate(Error &error) {
    hasRun[size_t(model.evaluate)] = true;
    return gpu ? gpu->runEvaluate(error) : runSchedule(model.evaluate, error);
  }
  bool runSample(Error &error) {
    hasRun[size_t(model.sample)] = true;
    return gpu ? gpu->runSample(error) : runSchedule(model.sample, error);
  }

  /// Waits until everything is done that was begun.
  bool finish(Error &error) { return !gpu || gpu->finish(error); }
  /// Nothing comes behind it that ranks do together in a launch.
  bool disconnect(Error &error) { return !gpu || gpu->disconnect(error); }

  /// What the high-water mark has to be by plan: the arena's end, unless what
  /// ran ends below other schedules.
  int64_t plannedBytes() const;
  /// The end of a buffer, with what rounds its size up if nothing lies behind.
  int64_t withPadding(int64_t end) const;
  /// That of the furthest buffer that was touched.
  int64_t highWaterBytes() const;

  /// That of the products of bf16 if there are any, otherwise that of all; null
  /// if the model has no products.
  const RepriseMicroKernel *microKernel() const {
    return chosenForBF16.full ? chosenForBF16.full : chosen.full;
  }

  /// Whether products are of bf16.
  bool hasBF16() const;

  /// The seconds spent in each launch, by its number (`forEachLaunch`); null
  /// unless profiling.
  const double *profile() const { return gpu ? gpu->profile() : seconds; }
  /// Begins anew with them.
  void forgetProfile() {
    if (gpu)
      gpu->forgetProfile();
    else if (seconds)
      std::fill_n(seconds, firstLaunch(model, model.numSchedules), 0.0);
  }

private:
  /// The end of the last state, and of the last buffer of schedules that have
  /// run; or of all.
  int64_t endOf(bool all) const;
  const RepriseSchedule &update() const {
    return model.schedules[updateOf(model)];
  }
  bool runUpdate(int begin, int end, Error &error) {
    return runAll(update().launches + begin, end - begin,
                  timesOf(updateOf(model), begin), error);
  }
  bool runShares(int schedule, Error &error);
  bool runSchedule(int schedule, Error &error) {
    return runAll(model.schedules[schedule].launches,
                  model.schedules[schedule].numLaunches, timesOf(schedule, 0),
                  error);
  }
  double *timesOf(int schedule, int launch) {
    return seconds ? seconds + firstLaunch(model, schedule) + launch : nullptr;
  }
  bool runAll(const RepriseLaunch *launches, int count, double *times,
              Error &error);
  bool runLaunch(const RepriseLaunch &launch, Error &error);

  const RepriseModel &model;
  Arena &arena;
  ThreadPool &pool;
  Transport &ranks;
  HostMemory memory;
  CudaExecutor *gpu;
  MicroKernels chosen, chosenForBF16;
  AmxRooms rooms;
  int numNorm = 0; ///< Launches of the update up to that of the norm.
  Processor processor = 0;
  void **addresses = nullptr; ///< Of every entry of `model.buffers`.
  /// Those of the model, with the rank's numbers in place of axes.
  List<int64_t> ids;
  double *seconds = nullptr;
  List<bool> hasRun; ///< Of each schedule.
  Watch watch;
  /// Whether a micro-batch is the last one of its step: only then squares of
  /// gradients are those of the sums, and are read.
  bool isLast = false;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_EXECUTOR_H
