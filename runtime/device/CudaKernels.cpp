//===- CudaKernels.cpp - Generated kernels on a GPU -----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaKernels.h"

#include "runtime/transport/Mesh.h"

#include <algorithm>
#include <cinttypes>

using namespace reprise::runtime;

CudaKernels::~CudaKernels() {
  if (module)
    gpu.driver().moduleUnload(module);
}

//===----------------------------------------------------------------------===//
// Start
//===----------------------------------------------------------------------===//

/// Whether all launches of kernels have what these take.
bool CudaKernels::checkLaunches(const RepriseSchedule &schedule,
                                int &mostParameters, Error &error) const {
  for (int i = 0; i < schedule.numLaunches; ++i) {
    const RepriseLaunch &launch = schedule.launches[i];
    if (launch.kind != REPRISE_LAUNCH_KERNEL)
      continue;
    const RepriseCudaKernel &kernel = model.cuda->kernels[launch.callee];
    if (kernel.numBuffers != launch.numBuffers || kernel.numIds > launch.numIds)
      return error.set("damaged model: launch %s has %d buffers and %d ids, "
                       "but its kernel %s takes %d and %d",
                       launch.name, launch.numBuffers, launch.numIds,
                       kernel.name, kernel.numBuffers, kernel.numIds);
    mostParameters =
        std::max(mostParameters, kernel.numBuffers + kernel.numIds);
  }
  return true;
}

bool CudaKernels::takeTables(Error &error) {
  int mostParameters = 0;
  for (int i = 0; i < model.numSchedules; ++i)
    if (!checkLaunches(model.schedules[i], mostParameters, error))
      return false;
  return (functions.resize(size_t(model.numKernels)) &&
          parameters.resize(size_t(mostParameters) + 1)) ||
         error.set("no memory left for the tables of %d kernels",
                   model.numKernels);
}

bool CudaKernels::load(Error &error) {
  return loadImage(error) && findFunctions(error);
}

/// The machine code for this very chip if there is some, else for the newest
/// older one of its kind; null if there is none.
const RepriseCubin *CudaKernels::findCubin() const {
  const RepriseCudaModule &image = *model.cuda;
  const RepriseCubin *best = nullptr;
  for (int i = 0; i < image.numCubins; ++i) {
    const RepriseCubin &cubin = image.cubins[i];
    bool exact =
        cubin.smMajor == gpu.info().major && cubin.smMinor == gpu.info().minor;
    bool fits =
        exact || (!cubin.archSpecific && cubin.smMajor == gpu.info().major &&
                  cubin.smMinor <= gpu.info().minor);
    if (fits && (!best || cubin.smMinor > best->smMinor ||
                 (exact && cubin.archSpecific)))
      best = &cubin;
  }
  return best;
}

/// Machine code, else PTX, which the driver compiles. A driver that is older
/// than the assembler takes no machine code of it, but the older PTX.
bool CudaKernels::loadImage(Error &error) {
  const RepriseCudaModule &image = *model.cuda;
  const RepriseCubin *best = findCubin();
  char what[64];
  if (best) {
    snprintf(what, sizeof(what), "machine code for sm_%d%d%s", best->smMajor,
             best->smMinor, best->archSpecific ? "a" : "");
    if (load(best->data, what, error))
      return true;
  }
  int chip = 10 * gpu.info().major + gpu.info().minor;
  bool isNewer = chip >= 10 * image.ptxMajor + image.ptxMinor;
  snprintf(what, sizeof(what), "PTX for sm_%d%d", image.ptxMajor,
           image.ptxMinor);
  if (best) {
    Error other; // What the machine code lacks is the cause.
    return isNewer && load(image.ptx, what, other);
  }
  return isNewer ? load(image.ptx, what, error)
                 : error.set("GPU %d (%s) is an sm_%d, but this program was "
                             "compiled for sm_%d%d and later",
                             gpu.info().ordinal, gpu.info().name, chip,
                             image.ptxMajor, image.ptxMinor);
}

bool CudaKernels::load(const void *image, const char *what, Error &error) {
  char log[512] = "";
  int options[] = {kCudaJitErrorLog, kCudaJitErrorLogBytes};
  void *values[] = {log, reinterpret_cast<void *>(sizeof(log) - 1)};
  CudaResult code = gpu.driver().moduleLoad(&module, image, 2, options, values);
  if (code == 0) {
    snprintf(name, sizeof(name), "%s", what);
    return true;
  }
  module = nullptr;
  char text[768];
  snprintf(text, sizeof(text),
           "GPU %d (%s, sm_%d%d) does not take kernels as %s%s%s",
           gpu.info().ordinal, gpu.info().name, gpu.info().major,
           gpu.info().minor, what, log[0] ? ", " : "", log);
  return gpu.check(code, text, error);
}

bool CudaKernels::findFunctions(Error &error) {
  const CudaDriver &driver = gpu.driver();
  for (int i = 0; i < model.numKernels; ++i) {
    const RepriseCudaKernel &kernel = model.cuda->kernels[i];
    CudaFunction &function = functions[size_t(i)];
    if (!gpu.check(driver.moduleFunction(&function, module, kernel.name),
                   kernel.name, error))
      return false;
    // Only beyond 48 KiB, static memory included, does it have to be said.
    if (kernel.sharedBytes > 0 &&
        !gpu.check(driver.functionSet(function, kCudaMaxDynamicSharedBytes,
                                      int(kernel.sharedBytes)),
                   kernel.name, error))
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

bool CudaKernels::launch(const RepriseLaunch &launch, const CudaInputs &inputs,
                         int64_t microBatch, Error &error) {
  const RepriseCudaKernel &kernel = model.cuda->kernels[launch.callee];
  for (int i = 0; i < kernel.numBuffers; ++i)
    parameters[size_t(i)] =
        gpu.base() + CudaAddress(inputs.offsetOf(
                         model.buffers[launch.firstBuffer + i], microBatch));
  for (int i = 0; i < kernel.numIds; ++i) {
    int64_t id = model.ids[launch.firstId + i];
    if (id < 0) // An axis: the rank's number along it.
      id = coordinateOf(model, rank, int(-1 - id));
    parameters[size_t(kernel.numBuffers + i)] = CudaAddress(id);
  }
  size_t bytes =
      size_t(kernel.numBuffers + kernel.numIds) * sizeof(CudaAddress);
  void *extra[] = {kCudaLaunchBuffer, parameters.begin(),
                   kCudaLaunchBufferBytes, &bytes, kCudaLaunchEnd};
  CudaResult code = gpu.driver().launch(
      functions[size_t(launch.callee)], unsigned(kernel.grid[0]),
      unsigned(kernel.grid[1]), unsigned(kernel.grid[2]),
      unsigned(kernel.block[0]), unsigned(kernel.block[1]),
      unsigned(kernel.block[2]), unsigned(kernel.sharedBytes), gpu.stream(),
      nullptr, extra);
  return code == 0 || refuse(code, launch, error);
}

bool CudaKernels::refuse(CudaResult code, const RepriseLaunch &launch,
                         Error &error) const {
  const RepriseCudaKernel &kernel = model.cuda->kernels[launch.callee];
  char what[256];
  snprintf(what, sizeof(what),
           "launch %s of kernel %s, %d x %d x %d blocks of %d x %d x %d "
           "threads with %" PRId64 " bytes of shared memory",
           launch.name, kernel.name, kernel.grid[0], kernel.grid[1],
           kernel.grid[2], kernel.block[0], kernel.block[1], kernel.block[2],
           kernel.sharedBytes);
  return gpu.check(code, what, error);
}
