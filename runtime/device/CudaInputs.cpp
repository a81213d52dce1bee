//===- CudaInputs.cpp - Micro-batches on their way to a GPU ---------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaInputs.h"

#include <algorithm>
#include <cinttypes>

using namespace reprise::runtime;

static const char *const kCopy = "copy of tokens to the GPU";

bool CudaInputs::prepare(Error &error) {
  const RepriseBuffer &batches = model.batches;
  first =
      std::min({model.tokens.offset, model.targets.offset, model.rng.offset});
  bytes = batches.offset - first;
  int64_t places = bytes > 0 ? 1 + batches.bytes / bytes : 0;
  numAtOnce = places / 2;
  for (const RepriseBuffer &buffer : {model.tokens, model.targets, model.rng})
    if (buffer.offset + buffer.bytes > batches.offset)
      numAtOnce = 0;
  if (numAtOnce < 1 || batches.bytes != bytes * (2 * numAtOnce - 1) ||
      batches.offset > model.arenaBytes - batches.bytes ||
      model.microBatchesPerRank % numAtOnce != 0)
    return error.set(
        "damaged model: %d micro-batches need an odd number of places for "
        "their inputs behind the first, but got %" PRId64 " bytes at %" PRId64
        ", behind %" PRId64 " bytes of inputs",
        model.microBatchesPerRank, batches.bytes, batches.offset, bytes);
  const CudaDriver &driver = device.driver();
  void *memory = nullptr;
  if (!device.check(
          driver.hostAllocate(&memory, size_t(2 * numAtOnce * bytes), 0),
          "cannot take pinned memory for inputs", error))
    return false;
  pinned = static_cast<char *>(memory);
  if (!device.check(driver.streamCreate(&stream, kCudaNonBlocking),
                    "cannot make a stream for inputs", error))
    return false;
  for (CudaEvent *event : {&sent[0], &sent[1], &taken})
    if (!device.check(driver.eventCreate(event, kCudaNoTiming), "cuEventCreate",
                      error))
      return false;
  return true;
}

CudaInputs::~CudaInputs() {
  if (!pinned)
    return;
  const CudaDriver &driver = device.driver();
  if (stream)
    driver.streamSynchronize(stream);
  for (CudaEvent event : {sent[0], sent[1], taken})
    if (event)
      driver.eventDestroy(event);
  if (stream)
    driver.streamDestroy(stream);
  driver.hostFree(pinned);
}

bool CudaInputs::begin(Error &error) {
  return device.waitFor(sent[numSent % 2],
                        "a launch of an earlier micro-batch failed; "
                        "--cuda-sync names which one",
                        error);
}

MicroBatch CudaInputs::at(int64_t i) const {
  char *place = pinned + (numSent % 2 * numAtOnce + i) * bytes - first;
  return {reinterpret_cast<int32_t *>(place + model.tokens.offset),
          reinterpret_cast<int32_t *>(place + model.targets.offset),
          reinterpret_cast<uint32_t *>(place + model.rng.offset)};
}

bool CudaInputs::send(Error &error) {
  const CudaDriver &driver = device.driver();
  int64_t half = numSent++ % 2, size = numAtOnce * bytes;
  CudaAddress next = device.base() + CudaAddress(first + size);
  return device.check(driver.streamWait(stream, taken, 0), kCopy, error) &&
         device.check(driver.copyToDevice(next, pinned + half * size,
                                          size_t(size), stream),
                      kCopy, error) &&
         device.check(driver.eventRecord(sent[half], stream), kCopy, error);
}

bool CudaInputs::take(Error &error) {
  const CudaDriver &driver = device.driver();
  CudaStream main = device.stream();
  int64_t half = (numSent + 1) % 2, size = numAtOnce * bytes;
  CudaAddress now = device.base() + CudaAddress(first);
  return device.check(driver.streamWait(main, sent[half], 0), kCopy, error) &&
         device.check(driver.copyOnDevice(now, now + CudaAddress(size),
                                          size_t(size), main),
                      kCopy, error) &&
         device.check(driver.eventRecord(taken, main), kCopy, error);
}
