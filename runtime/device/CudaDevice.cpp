//===- CudaDevice.cpp - One GPU -------------------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaDevice.h"

#include "runtime/base/Text.h"

using namespace reprise::runtime;

bool CudaDevice::check(CudaResult code, const char *what, Error &error) const {
  if (code == 0)
    return true;
  const char *name = nullptr, *text = nullptr;
  if (driver().errorName(code, &name) != 0 || !name)
    name = "an unknown error";
  if (driver().errorText(code, &text) != 0 || !text)
    text = "no explanation";
  return error.set("%s: %s (%d): %s", what, name, code, text);
}

bool CudaDevice::open(int ordinal, Error &error) {
  if (!libraries.open(error))
    return false;
  if (!check(driver().init(0), "CUDA cannot start", error) ||
      !check(driver().driverVersion(&version), "cuDriverGetVersion", error))
    return false;
  int count = 0;
  if (!check(driver().deviceCount(&count), "cuDeviceGetCount", error))
    return false;
  if (ordinal < count)
    return openContext(ordinal, error);
  return error.set("--device cuda:%d needs a GPU of that number, but the "
                   "driver has %d, from 0 on",
                   ordinal, count);
}

bool CudaDevice::openContext(int ordinal, Error &error) {
  number = ordinal;
  if (!check(driver().deviceGet(&device, ordinal), "cuDeviceGet", error) ||
      !check(driver().deviceName(deviceName, int(sizeof(deviceName)), device),
             "cuDeviceGetName", error))
    return false;
  const struct {
    int attribute;
    int *value;
  } attributes[] = {{kCudaMajor, &capability[0]},
                    {kCudaMinor, &capability[1]},
                    {kCudaMultiprocessors, &numMultiprocessors}};
  for (auto [attribute, value] : attributes)
    if (!check(driver().deviceAttribute(value, attribute, device),
               "cuDeviceGetAttribute", error))
      return false;
  char what[192];
  snprintf(what, sizeof(what), "cannot use GPU %d (%s)", ordinal, deviceName);
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
  bytesOfContext = int64_t(total - free);
  return true;
}

bool CudaDevice::memoryInfo(size_t &free, size_t &total, Error &error) const {
  return check(driver().memoryInfo(&free, &total), "cuMemGetInfo", error);
}

bool CudaDevice::allocate(int64_t bytes, Error &error) {
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
                   human(bytes).chars, grouped(bytes).chars, number, deviceName,
                   human(int64_t(total)).chars, human(int64_t(free)).chars);
}

bool CudaDevice::upload(int64_t offset, const void *from, int64_t bytes,
                        Error &error) {
  return check(driver().copyToDevice(memory + CudaAddress(offset), from,
                                     size_t(bytes), mainStream),
               "copy to the GPU", error) &&
         synchronize("copy to the GPU", error);
}

bool CudaDevice::download(int64_t offset, void *to, int64_t bytes,
                          Error &error) const {
  return check(driver().copyToHost(to, memory + CudaAddress(offset),
                                   size_t(bytes), mainStream),
               "copy from the GPU", error) &&
         synchronize("copy from the GPU", error);
}

bool CudaDevice::fill(int64_t offset, unsigned char byte, int64_t bytes,
                      Error &error) {
  return check(driver().fillBytes(memory + CudaAddress(offset), byte,
                                  size_t(bytes), mainStream),
               "fill of the GPU's memory", error) &&
         synchronize("fill of the GPU's memory", error);
}

bool CudaDevice::synchronize(const char *what, Error &error) const {
  return check(driver().streamSynchronize(mainStream), what, error);
}

CudaDevice::~CudaDevice() {
  if (!context)
    return;
  if (mainStream)
    driver().streamDestroy(mainStream);
  if (memory)
    driver().memoryFree(memory);
  driver().contextRelease(device);
}
