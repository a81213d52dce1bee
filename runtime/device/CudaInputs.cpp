//===- CudaInputs.cpp - Micro-batches on their way to a GPU ---------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaInputs.h"

#include "runtime/base/Program.h"

#include <algorithm>
#include <cinttypes>

using namespace reprise::runtime;

static const char *const kCopy = "copy of tokens to the GPU";

/// The inputs of micro-batches that run, one behind another, then as much room
/// for the next ones. Rows say where those of a stage are.
bool CudaInputs::findPlaces() {
  const RepriseBuffer &batches = model.batches;
  first =
      std::min({model.tokens.offset, model.targets.offset, model.rng.offset});
  int64_t bytesOfRows = batches.offset - first;
  bytes = bytesOfRows;
  if (model.numInputs > 0) {
    numAtOnce = model.numInputs;
    bytes /= numAtOnce;
    if (bytes * numAtOnce != bytesOfRows || batches.bytes != bytesOfRows)
      return false;
  } else {
    int64_t places = bytes > 0 ? 1 + batches.bytes / bytes : 0;
    numAtOnce = places / 2;
    if (batches.bytes != bytes * (2 * numAtOnce - 1))
      return false;
  }
  if (bytes < 1 || numAtOnce < 1 ||
      batches.offset > model.arenaBytes - batches.bytes ||
      model.microBatchesPerRank % numAtOnce != 0)
    return false;
  for (int64_t i = 0; i < std::max(model.numInputs, 1); ++i) {
    const RepriseInputs row = inputsOf(model, i);
    for (const RepriseBuffer &buffer : {row.tokens, row.targets, row.rng})
      if (buffer.offset < first + i * bytes ||
          buffer.offset + buffer.bytes > first + (i + 1) * bytes)
        return false;
  }
  return true;
}

bool CudaInputs::prepare(Error &error) {
  const RepriseBuffer &batches = model.batches;
  if (!findPlaces())
    return error.set(
        "damaged model: %d micro-batches need an odd number of places for "
        "their inputs behind the first, or as many as rows, but got %" PRId64
        " bytes at %" PRId64 ", behind %" PRId64 " bytes of inputs and %d rows",
        model.microBatchesPerRank, batches.bytes, batches.offset, bytes,
        model.numInputs);
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
  const RepriseInputs row = inputsOf(model, i);
  const int64_t ahead = model.numInputs > 0 ? 0 : i;
  char *place = pinned + (numSent % 2 * numAtOnce + ahead) * bytes - first;
  return {reinterpret_cast<int32_t *>(place + row.tokens.offset),
          reinterpret_cast<int32_t *>(place + row.targets.offset),
          reinterpret_cast<uint32_t *>(place + row.rng.offset)};
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
