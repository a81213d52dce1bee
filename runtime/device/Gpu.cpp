//===- Gpu.cpp - One GPU --------------------------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Gpu.h"

#include "runtime/base/Clock.h"
#include "runtime/base/Text.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>

using namespace reprise::runtime;

bool Gpu::check(CudaResult code, const char *what, Error &error) const {
  if (code == 0)
    return true;
  const char *name = nullptr, *text = nullptr;
  if (driver().errorName(code, &name) != 0 || !name)
    name = "an unknown error";
  if (driver().errorText(code, &text) != 0 || !text)
    text = "no explanation";
  return error.set("%s: %s (%d): %s", what, name, code, text);
}

bool Gpu::open(int first, int localRank, Error &error) {
  if (!libraries.open(error))
    return false;
  if (!check(driver().init(0), "CUDA cannot start", error) ||
      !check(driver().driverVersion(&itsInfo.driverVersion),
             "cuDriverGetVersion", error))
    return false;
  int count = 0;
  if (!check(driver().deviceCount(&count), "cuDeviceGetCount", error))
    return false;
  // A launcher such as Slurm may show each rank its own alone, as number 0.
  const bool isShown = count == 1 && getenv("CUDA_VISIBLE_DEVICES");
  const int ordinal = first + (isShown ? 0 : localRank);
  if (ordinal < count)
    return openContext(ordinal, error);
  if (localRank > 0)
    return error.set("rank %d of this machine, from 0 on, takes GPU %d, but "
                     "the driver has %d: each rank needs its own",
                     localRank, ordinal, count);
  return error.set("--device cuda:%d needs a GPU of that number, but the "
                   "driver has %d, from 0 on",
                   ordinal, count);
}

bool Gpu::openContext(int ordinal, Error &error) {
  itsInfo.ordinal = ordinal;
  if (!check(driver().deviceGet(&device, ordinal), "cuDeviceGet", error) ||
      !check(
          driver().deviceName(itsInfo.name, int(sizeof(itsInfo.name)), device),
          "cuDeviceGetName", error))
    return false;
  const struct {
    int attribute;
    int *value;
  } attributes[] = {{kCudaMajor, &itsInfo.major},
                    {kCudaMinor, &itsInfo.minor},
                    {kCudaMultiprocessors, &itsInfo.multiprocessors}};
  for (auto [attribute, value] : attributes)
    if (!check(driver().deviceAttribute(value, attribute, device),
               "cuDeviceGetAttribute", error))
      return false;
  char what[192];
  snprintf(what, sizeof(what), "cannot use GPU %d (%s)", ordinal, itsInfo.name);
  if (!check(driver().contextRetain(&context, device), what, error)) {
    context = nullptr;
    return false;
  }
  size_t free = 0, total = 0;
  if (!check(driver().contextSet(context), what, error) ||
      !check(driver().streamCreate(&mainStream, kCudaNonBlocking), what,
             error) ||
      !memoryInfo(free, total, error))
    return false;
  itsInfo.contextBytes = int64_t(total - free);
  return true;
}

bool Gpu::memoryInfo(size_t &free, size_t &total, Error &error) const {
  return check(driver().memoryInfo(&free, &total), "cuMemGetInfo", error);
}

bool Gpu::allocate(int64_t bytes, Error &error) {
  size_t free = 0, total = 0;
  if (!memoryInfo(free, total, error))
    return false;
  CudaResult code = driver().memoryAllocate(&memory, size_t(bytes));
  if (code != kCudaOutOfMemory) {
    size_t left = 0;
    if (!check(code, "cuMemAlloc", error) || !memoryInfo(left, total, error))
      return false;
    bytesTaken = int64_t(free) - int64_t(left);
    return true;
  }
  memory = 0;
  return error.set("the plan needs %s = %s bytes on GPU %d (%s), but of its "
                   "%s only %s are free; a recompute plan needs less",
                   human(bytes).chars, grouped(bytes).chars, itsInfo.ordinal,
                   itsInfo.name, human(int64_t(total)).chars,
                   human(int64_t(free)).chars);
}

bool Gpu::upload(int64_t offset, const void *from, int64_t bytes,
                 Error &error) {
  return check(driver().copyToDevice(memory + CudaAddress(offset), from,
                                     size_t(bytes), mainStream),
               "copy to the GPU", error) &&
         synchronize("copy to the GPU", error);
}

bool Gpu::download(int64_t offset, void *to, int64_t bytes,
                   Error &error) const {
  return check(driver().copyToHost(to, memory + CudaAddress(offset),
                                   size_t(bytes), mainStream),
               "copy from the GPU", error) &&
         synchronize("copy from the GPU", error);
}

bool Gpu::fill(int64_t offset, unsigned char byte, int64_t bytes,
               Error &error) {
  return check(driver().fillBytes(memory + CudaAddress(offset), byte,
                                  size_t(bytes), mainStream),
               "fill of the GPU's memory", error) &&
         synchronize("fill of the GPU's memory", error);
}

/// Pauses of a sixteenth of the time that it has waited, up to a millisecond: a
/// short wait ends soon, and a long one leaves the processor alone.
template <typename Query>
bool Gpu::poll(Query query, const char *what, Error &error) const {
  const double begin = now();
  for (CudaResult code; (code = query()) != 0;) {
    if (code != kCudaNotReady)
      return check(code, what, error);
    const double waited = now() - begin;
    if (!watch.look(watch.context, waited, error))
      return false;
    const timespec pause = {0, std::min(long(waited * 1e9 / 16), 1'000'000L)};
    nanosleep(&pause, nullptr);
  }
  return true;
}

bool Gpu::synchronize(const char *what, Error &error) const {
  if (watch.look &&
      !poll([&] { return driver().streamQuery(mainStream); }, what, error))
    return false;
  return check(driver().streamSynchronize(mainStream), what, error);
}

bool Gpu::waitFor(CudaEvent event, const char *what, Error &error) const {
  if (watch.look &&
      !poll([&] { return driver().eventQuery(event); }, what, error))
    return false;
  return check(driver().eventSynchronize(event), what, error);
}

Gpu::~Gpu() {
  if (!context)
    return;
  if (mainStream)
    driver().streamDestroy(mainStream);
  if (memory)
    driver().memoryFree(memory);
  driver().contextRelease(device);
}
