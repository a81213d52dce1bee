//===- CudaLauncher.cpp - Launches on a GPU -------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaLauncher.h"

#include "CollectiveLaunch.h"
#include "runtime/base/Clock.h"
#include "runtime/base/Text.h"

#include <algorithm>
#include <cstring>

using namespace reprise::runtime;

//===----------------------------------------------------------------------===//
// Start
//===----------------------------------------------------------------------===//

bool CudaLauncher::connect(Error &error) {
  return ranks.size() == 1 || memory.connect(ranks, error);
}

bool CudaLauncher::load(bool profile, Error &error) {
  return kernels.takeTables(error) && (!profile || takeMarks(error)) &&
         (!settings.nvtx || nvtx.open(error)) && kernels.load(error) &&
         (ranks.size() == 1 || memory.load(kernels.image(), error));
}

bool CudaLauncher::chooseGemms(Error &error) {
  return gemms.prepare(settings.tf32, settings.autotune, error);
}

/// Events around each launch of the longest schedule.
bool CudaLauncher::takeMarks(Error &error) {
  int mostLaunches = 0;
  for (int i = 0; i < model.numSchedules; ++i)
    mostLaunches = std::max(mostLaunches, model.schedules[i].numLaunches);
  for (int i = 0; i <= mostLaunches; ++i) {
    CudaEvent event = nullptr;
    if (!gpu.check(gpu.driver().eventCreate(&event, 0), "cuEventCreate",
                   error) ||
        !marks.push(event))
      return error.set("no memory left to time %d launches", mostLaunches);
  }
  return true;
}

void CudaLauncher::describe(char *text, size_t size) const {
  int driver = gpu.info().driverVersion;
  size_t blas = gpu.blas().version();
  snprintf(text, size,
           "GPU %d: %s (sm_%d%d), %s, CUDA %d.%d, cuBLASLt %zu.%zu.%zu",
           gpu.info().ordinal, gpu.info().name, gpu.info().major,
           gpu.info().minor, kernels.imageName(), driver / 1000,
           driver % 1000 / 10, blas / 10000, blas / 100 % 100, blas % 100);
  size_t length = strlen(text);
  if (int64_t bytes = model.cuda->globalBytes)
    snprintf(text + length, size - length,
             ", %s bytes for sums of blocks beside the plan",
             grouped(bytes).chars);
  length = strlen(text);
  if (int count = gemms.numSeparateSums())
    snprintf(text + length, size - length,
             ", gradients of biases by %d GEMMs of their own", count);
  length = strlen(text);
  if (memory.isConnected())
    snprintf(text + length, size - length, ", NCCL %d.%d.%d",
             memory.version() / 10000, memory.version() / 100 % 100,
             memory.version() % 100);
}

CudaLauncher::~CudaLauncher() {
  for (CudaEvent event : marks)
    gpu.driver().eventDestroy(event);
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// What ranks do together; it reads no inputs of micro-batches.
bool CudaLauncher::launchCollective(const RepriseLaunch &launch, Error &error) {
  addresses.clear();
  for (int i = 0; i < launch.numBuffers; ++i)
    if (!addresses.push(reinterpret_cast<void *>(
            gpu.at(model.buffers[launch.firstBuffer + i]))))
      return error.set("no memory left for the %d buffers of %s",
                       launch.numBuffers, launch.name);
  if (launch.kind == REPRISE_LAUNCH_COLLECTIVE)
    return runCollective(model, launch, addresses.begin(), memory, error);
  const int number = model.collectives[launch.callee].number;
  if (launch.kind == REPRISE_LAUNCH_WAIT)
    return memory.wait(launch.name, number, error);
  return memory.begin(launch.name, error) &&
         runCollective(model, launch, addresses.begin(), memory, error) &&
         memory.leave(launch.name, number, error);
}

bool CudaLauncher::launch(const RepriseLaunch &launch, const CudaInputs &inputs,
                          int64_t microBatch, Error &error) {
  if (launch.kind == REPRISE_LAUNCH_GEMM)
    return gemms.run(launch, error);
  if (isTogether(launch))
    return launchCollective(launch, error);
  return kernels.launch(launch, inputs, microBatch, error);
}

bool CudaLauncher::mark(const CudaPart &part, int number, const char *what,
                        Error &error) {
  return !part.times || gpu.check(gpu.driver().eventRecord(
                                      marks[size_t(number)], gpu.stream()),
                                  what, error);
}

bool CudaLauncher::run(const CudaPart &part, const char *of,
                       const CudaInputs &inputs, int64_t microBatch,
                       Error &error) {
  const double begin = part.times ? now() : 0;
  for (int i = 0; i < part.count; ++i) {
    const RepriseLaunch &next = part.launches[i];
    if (!mark(part, i, next.name, error))
      return false;
    if (isOnce(model, next) && !part.isLast)
      continue;
    nvtx.push(next.name);
    bool good = launch(next, inputs, microBatch, error) &&
                (!settings.sync || waitFor(next, error));
    nvtx.pop();
    if (!good)
      return false;
  }
  return mark(part, part.count, of, error) &&
         (!part.times || readTimes(part, of, begin, error));
}

bool CudaLauncher::waitFor(const RepriseLaunch &launch, Error &error) const {
  char what[256];
  if (launch.kind == REPRISE_LAUNCH_GEMM)
    snprintf(what, sizeof(what), "GEMM %s", launch.name);
  else if (isTogether(launch))
    snprintf(what, sizeof(what), "%s among ranks", launch.name);
  else
    snprintf(what, sizeof(what), "launch %s of kernel %s", launch.name,
             model.cuda->kernels[launch.callee].name);
  return gpu.synchronize(what, error);
}

/// Of launches one after another, from when the host began with them.
bool CudaLauncher::readTimes(const CudaPart &part, const char *of, double begin,
                             Error &error) {
  if (!wait(of, error))
    return false;
  for (int i = 0; i < part.count; ++i) {
    float milliseconds = 0;
    if (!gpu.check(gpu.driver().eventElapsed(&milliseconds, marks[size_t(i)],
                                             marks[size_t(i) + 1]),
                   part.launches[i].name, error))
      return false;
    const double end = begin + double(milliseconds) * 1e-3;
    if (part.isLast || !isOnce(model, part.launches[i]))
      part.times->add(part.first + i, begin, end);
    begin = end;
  }
  return true;
}

bool CudaLauncher::wait(const char *of, Error &error) const {
  char what[160];
  snprintf(what, sizeof(what),
           "a launch of %s or before it failed; --cuda-sync names which one",
           of);
  return gpu.synchronize(what, error);
}
