//===- CpuDevice.cpp - Schedules on the CPU -------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CpuDevice.h"

#include "CollectiveLaunch.h"
#include "Init.h"
#include "Peak.h"
#include "runtime/base/Clock.h"
#include "runtime/compute/Gemm.h"
#include "runtime/compute/GroupedGemm.h"
#include "runtime/transport/Mesh.h"

#include <algorithm>
#include <cinttypes>
#include <cstdlib>
#include <cstring>

using namespace reprise::runtime;

/// Launches below both limits are over before a second thread is awake.
static constexpr int64_t kSerialBytes = 32 << 10;
static constexpr int64_t kSerialFlops = 100'000;

/// Chunks per thread: few enough to cost nothing, enough to even out threads
/// that are held up.
static constexpr int64_t kChunksPerThread = 8;

//===----------------------------------------------------------------------===//
// Start
//===----------------------------------------------------------------------===//

MicroBatch HostInputs::at(int64_t i) const {
  const RepriseInputs row = inputsOf(model, i);
  return {arena.at<int32_t>(row.tokens), arena.at<int32_t>(row.targets),
          arena.at<uint32_t>(row.rng)};
}

bool CpuDevice::allocate(Error &error) {
  return arena.map(model.arenaBytes, error);
}

bool CpuDevice::prepare(bool profile, int launchesOfNorm, Error &error) {
  numNorm = launchesOfNorm;
  name = describeProcessor(pool.size());
  return chooseKernels(error) && takeTables(error) &&
         (!profile || launchTimes.start(error));
}

/// The micro-kernels for this processor.
bool CpuDevice::chooseKernels(Error &error) {
  const int level = processor.levelOfGemms();
  chosen = chooseMicroKernels(model.microKernels, model.numMicroKernels, level);
  if (model.numGemms > 0 && !chosen.full)
    return error.set("none of the %d micro-kernels of this program runs on "
                     "this processor (x86-64-v%d)",
                     model.numMicroKernels, level < 4 ? level : 4);
  if (hasGemmsOfBF16(model))
    chosenForBF16 =
        chooseForBF16(model.microKernels, model.numMicroKernels, level, pool);
  if (!chosenForBF16.full || chosenForBF16.full->isa != REPRISE_ISA_AMX_BF16)
    return true;
  if (!scratches.allocate(pool.size(), error))
    return false;
  chosenForBF16.scratches = scratches.get();
  return true;
}

/// The addresses and ids of all launches.
bool CpuDevice::takeTables(Error &error) {
  int numBuffers = 0, numIds = 0;
  for (int i = 0; i < model.numSchedules; ++i)
    for (int j = 0; j < model.schedules[i].numLaunches; ++j) {
      const RepriseLaunch &launch = model.schedules[i].launches[j];
      numBuffers = std::max(numBuffers, launch.firstBuffer + launch.numBuffers);
      numIds = std::max(numIds, launch.firstId + launch.numIds);
    }
  addresses =
      static_cast<void **>(calloc(size_t(numBuffers) + 1, sizeof(void *)));
  if (!addresses)
    return error.set("no memory left for the tables of %d buffers", numBuffers);
  for (int i = 0; i < numBuffers; ++i)
    addresses[i] = arena.at<void>(model.buffers[i]);
  if (!ids.append(model.ids, size_t(numIds)))
    return error.set("no memory left for %d ids", numIds);
  for (int64_t &id : ids)
    if (id < 0)
      id = coordinateOf(model, ranks.rank(), int(-1 - id));
  return true;
}

CpuDevice::~CpuDevice() { free(addresses); }

/// It goes without saying.
void CpuDevice::describe(char *text, size_t size) const {
  if (size > 0)
    *text = '\0';
}

DeviceFacts CpuDevice::facts() const {
  return {name.chars, chosenForBF16.full ? chosenForBF16.full : chosen.full, 0};
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

bool CpuDevice::beginStep(Error &) {
  launchTimes.beginStep();
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

bool CpuDevice::runTurn(const Turn &turn, int end, Error &error) {
  isLast = turn.end == model.numEntries;
  for (int i = turn.begin; i < end; ++i) {
    const auto [schedule, microBatch] = model.program[i];
    const int count = model.schedules[schedule].numLaunches;
    if (!(microBatch >= 0 ? runShares(schedule, error)
                          : runPart(schedule, 0, count, error)))
      return false;
  }
  return true;
}

bool CpuDevice::runShares(int schedule, Error &error) {
  const int64_t shares = inputs.count();
  const int64_t launches = model.schedules[schedule].numLaunches;
  for (int64_t share = 0; share < shares; ++share) {
    if (!runPart(schedule, int(launches * share / shares),
                 int(launches * (share + 1) / shares), error))
      return false;
    if (watch.tell && share + 1 < shares)
      watch.tell(watch.context, share + 1);
  }
  return true;
}

bool CpuDevice::runNorm(Error &error) {
  return runPart(updateOf(model), 0, numNorm, error);
}

bool CpuDevice::runOptimizer(Error &error) {
  const int update = updateOf(model);
  return runPart(update, numNorm, model.schedules[update].numLaunches, error);
}

bool CpuDevice::runForward(Forward what, Error &error) {
  const int schedule =
      what == Forward::Evaluate ? model.evaluate : model.sample;
  return runPart(schedule, 0, model.schedules[schedule].numLaunches, error);
}

bool CpuDevice::clearGradients(Error &) {
  for (int i = 0; i < model.numStates; ++i)
    if (model.states[i].kind == REPRISE_STATE_GRADIENT &&
        outlivesStep(model.states[i]) && !model.states[i].isElsewhere) {
      const RepriseBuffer &buffer = model.states[i].buffer;
      memset(arena.at<char>(buffer), 0, size_t(buffer.bytes));
    }
  return true;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// The launches [begin, end) of a schedule, timed if there is a profile.
bool CpuDevice::runPart(int schedule, int begin, int end, Error &error) {
  const RepriseLaunch *launches = model.schedules[schedule].launches;
  const bool isTimed = launchTimes.areMeasured();
  const int64_t first = firstLaunch(model, schedule);
  double last = isTimed ? now() : 0;
  for (int i = begin; i < end; ++i) {
    if (isOnce(model, launches[i]) && !isLast)
      continue;
    if (!runLaunch(launches[i], error))
      return false;
    if (!isTimed)
      continue;
    const double after = now();
    launchTimes.add(first + i, last, after);
    last = after;
  }
  return true;
}

bool CpuDevice::runLaunch(const RepriseLaunch &launch, Error &error) {
  ranks.progress();
  int64_t bytes = 0;
  for (int i = 0; i < launch.numBuffers; ++i) {
    const RepriseBuffer &buffer = model.buffers[launch.firstBuffer + i];
    arena.touch(buffer);
    bytes += buffer.bytes;
  }
  void **buffers = addresses + launch.firstBuffer;
  // What is begun is done at the wait: processors that compute have no time to
  // spare, and ranks that are ahead need not wait for the others before.
  if (launch.kind == REPRISE_LAUNCH_BEGIN)
    return true;
  if (isTogether(launch))
    return runCollective(model, launch, buffers, memory, error);
  if (launch.kind == REPRISE_LAUNCH_GEMM)
    return runGemm(launch, buffers, error);
  runKernel(launch, buffers, bytes);
  return true;
}

bool CpuDevice::runGemm(const RepriseLaunch &launch, void **buffers,
                        Error &error) {
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

/// \param bytes  those of its buffers.
void CpuDevice::runKernel(const RepriseLaunch &launch, void **buffers,
                          int64_t bytes) {
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
}
