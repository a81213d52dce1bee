//===- Executor.cpp - Runs the schedules of a model -----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Executor.h"

#include "CheckModel.h"
#include "CollectiveLaunch.h"
#include "Init.h"
#include "Peak.h"
#include "runtime/compute/Cpu.h"
#include "runtime/compute/Gemm.h"
#include "runtime/compute/GroupedGemm.h"
#include "runtime/transport/Mesh.h"

#include <algorithm>
#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <ctime>

using namespace reprise::runtime;

/// Launches below both limits are over before a second thread is awake.
static constexpr int64_t kSerialBytes = 32 << 10;
static constexpr int64_t kSerialFlops = 100'000;

/// Chunks per thread: few enough to cost nothing, enough to even out threads
/// that are held up.
static constexpr int64_t kChunksPerThread = 8;

double reprise::runtime::now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

/// Whether the norm of the gradients is the last thing that `launch` names:
/// what a launch writes comes after what it reads.
static bool writesNorm(const RepriseModel &model, const RepriseLaunch &launch) {
  if (launch.numBuffers == 0)
    return false;
  int last = launch.firstBuffer + launch.numBuffers - 1;
  return model.buffers[last].offset == model.gradNorm.offset;
}

bool Executor::hasBF16() const {
  for (int i = 0; i < model.numGemms; ++i)
    if (model.gemms[i].typeAB == REPRISE_BF16)
      return true;
  return false;
}

bool Executor::prepare(Processor onCpu, bool profile, Error &error,
                       const CudaSettings &onGpu) {
  processor = onCpu;
  const int level = processor.levelOfProducts();
  if (!checkModel(model, ranks.rank(), error))
    return false;
  if (!hasRun.resize(size_t(model.numSchedules)))
    return error.set("no memory left for %d schedules", model.numSchedules);
  std::fill(hasRun.begin(), hasRun.end(), false);
  while (numNorm < update().numLaunches &&
         !writesNorm(model, update().launches[numNorm]))
    ++numNorm;
  numNorm = std::min(numNorm + 1, update().numLaunches);
  if (gpu) {
    CudaSettings settings = onGpu;
    settings.profile = profile;
    return gpu->prepare(settings, numNorm, error);
  }
  chosen = chooseMicroKernels(model.microKernels, model.numMicroKernels, level);
  if (model.numGemms > 0 && !chosen.full)
    return error.set("none of the %d micro-kernels of this program runs on "
                     "this processor (x86-64-v%d)",
                     model.numMicroKernels, level < 4 ? level : 4);
  if (hasBF16())
    chosenForBF16 =
        chooseForBF16(model.microKernels, model.numMicroKernels, level, pool);
  if (chosenForBF16.full && chosenForBF16.full->isa == REPRISE_ISA_AMX_BF16) {
    if (!rooms.allocate(pool.size(), error))
      return false;
    chosenForBF16.rooms = rooms.get();
  }
  int numBuffers = 0, numIds = 0;
  for (int i = 0; i < model.numSchedules; ++i)
    for (int j = 0; j < model.schedules[i].numLaunches; ++j) {
      const RepriseLaunch &launch = model.schedules[i].launches[j];
      numBuffers = std::max(numBuffers, launch.firstBuffer + launch.numBuffers);
      numIds = std::max(numIds, launch.firstId + launch.numIds);
    }

  auto launches = size_t(firstLaunch(model, model.numSchedules));
  addresses =
      static_cast<void **>(calloc(size_t(numBuffers) + 1, sizeof(void *)));
  seconds = profile
                ? static_cast<double *>(calloc(launches + 1, sizeof(double)))
                : nullptr;
  if (!addresses || (profile && !seconds))
    return error.set("no memory left for the tables of %zu launches", launches);
  for (int i = 0; i < numBuffers; ++i)
    addresses[i] = arena.at<void>(model.buffers[i]);
  if (!ids.append(model.ids, size_t(numIds)))
    return error.set("no memory left for %d ids", numIds);
  for (int64_t &id : ids)
    if (id < 0)
      id = coordinateOf(model, ranks.rank(), int(-1 - id));
  return true;
}

/// Where the inputs of micro-batch `i` of a turn are.
static RepriseInputs inputsOf(const RepriseModel &model, int64_t i) {
  if (model.numInputs > 0)
    return model.inputs[i];
  return {model.tokens, model.targets, model.rng};
}

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

Executor::~Executor() {
  free(addresses);
  free(seconds);
}

MicroBatch Executor::inputs(int64_t i) {
  const RepriseInputs row = inputsOf(model, i);
  for (const RepriseBuffer &buffer : {row.tokens, row.targets, row.rng})
    arena.touch(buffer);
  if (gpu)
    return gpu->nextInputs().at(i);
  return {arena.at<int32_t>(row.tokens), arena.at<int32_t>(row.targets),
          arena.at<uint32_t>(row.rng)};
}

bool Executor::beginStep(Error &error) {
  if (gpu)
    return gpu->beginStep(error);
  arena.touch(model.loss);
  *arena.at<float>(model.loss) = 0.0f;
  for (int i = 0; i < model.numStates; ++i)
    if (const RepriseState &state = model.states[i];
        state.kind == REPRISE_STATE_MEASURE && !state.isElsewhere) {
      arena.touch(state.buffer);
      memset(arena.at<char>(state.buffer), 0, size_t(state.buffer.bytes));
    }
  return true;
}

bool Executor::runTurn(const Turn &turn, bool isApart, Error &error) {
  isLast = turn.end == model.numEntries;
  int end = turn.end - (isLast && isApart ? 1 : 0);
  // What has run of a step without its update counts as all of it.
  for (int i = turn.begin; i < turn.end; ++i)
    hasRun[size_t(model.program[i].schedule)] = true;
  if (gpu)
    return gpu->runTurn(turn, end, error);
  for (int i = turn.begin; i < end; ++i) {
    const auto [schedule, microBatch] = model.program[i];
    if (!(microBatch >= 0 ? runShares(schedule, error)
                          : runSchedule(schedule, error)))
      return false;
  }
  return true;
}

bool Executor::runShares(int index, Error &error) {
  const RepriseSchedule &schedule = model.schedules[index];
  const int64_t shares = numAtOnce(), launches = schedule.numLaunches;
  for (int64_t share = 0; share < shares; ++share) {
    const int begin = int(launches * share / shares);
    const int end = int(launches * (share + 1) / shares);
    if (!runAll(schedule.launches + begin, end - begin, timesOf(index, begin),
                error))
      return false;
    if (watch.tell && share + 1 < shares)
      watch.tell(watch.context, share + 1);
  }
  return true;
}

bool Executor::clearGradients(Error &error) {
  if (gpu)
    return gpu->clearGradients(error);
  for (int i = 0; i < model.numStates; ++i)
    if (model.states[i].kind == REPRISE_STATE_GRADIENT &&
        outlivesStep(model.states[i]) && !model.states[i].isElsewhere) {
      const RepriseBuffer &buffer = model.states[i].buffer;
      memset(arena.at<char>(buffer), 0, size_t(buffer.bytes));
    }
  return true;
}

bool Executor::runAll(const RepriseLaunch *launches, int count, double *times,
                      Error &error) {
  if (!times) {
    for (int i = 0; i < count; ++i)
      if (!runLaunch(launches[i], error))
        return false;
    return true;
  }
  double last = now();
  for (int i = 0; i < count; ++i) {
    if (!runLaunch(launches[i], error))
      return false;
    double end = now();
    times[i] += end - last;
    last = end;
  }
  return true;
}

bool Executor::runLaunch(const RepriseLaunch &launch, Error &error) {
  ranks.progress();
  int64_t bytes = 0;
  for (int i = 0; i < launch.numBuffers; ++i) {
    const RepriseBuffer &buffer = model.buffers[launch.firstBuffer + i];
    arena.touch(buffer);
    bytes += buffer.bytes;
  }
  void **buffers = addresses + launch.firstBuffer;
  if (launch.kind == REPRISE_LAUNCH_COLLECTIVE)
    return runCollective(model, launch, buffers, memory, ranks, error);
  if (launch.kind == REPRISE_LAUNCH_GEMM) {
    const RepriseGemm &shape = model.gemms[launch.callee];
    void **indices = buffers + (shape.bias ? 3 : 2);
    void **c = indices + (shape.groups ? 1 : 0) + (shape.gather ? 1 : 0);
    void **workspace = c + (shape.epilogue ? 2 : 1);
    const MicroKernels &kernels =
        shape.typeAB == REPRISE_BF16 ? chosenForBF16 : chosen;
    if (shape.groups)
      return groupedGemm(
          shape,
          {buffers[0], buffers[1], static_cast<int32_t *>(indices[0]),
           shape.gather ? static_cast<int32_t *>(indices[1]) : nullptr, c[0],
           static_cast<float *>(*workspace)},
          kernels, pool, launch.name, error);
    gemm(shape,
         {buffers[0], buffers[1], shape.bias ? buffers[2] : nullptr, c[0],
          static_cast<float *>(*workspace),
          shape.epilogue && isLast ? static_cast<float *>(c[1]) : nullptr},
         kernels, pool);
    return true;
  }
  const RepriseKernel &kernel = model.kernels[launch.callee];
  RepriseKernelFn fn = chooseKernel(kernel, processor);
  const int64_t *own = ids.begin() + launch.firstId;
  int64_t chunk = launch.tasks / (kChunksPerThread * pool.size());
  if (bytes < kSerialBytes && launch.flops < kSerialFlops)
    chunk = launch.tasks;
  pool.parallelFor(launch.tasks, std::max<int64_t>(chunk, 1),
                   [&](int, int64_t begin, int64_t end) {
                     TileRegisters tiles(fn == kernel.amxFn);
                     fn(buffers, own, begin, end);
                   });
  return true;
}
