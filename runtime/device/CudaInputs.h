//===- CudaInputs.h - Micro-batches on their way to a GPU -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_CUDAINPUTS_H
#define REPRISE_RUNTIME_DEVICE_CUDAINPUTS_H

#include "Device.h"
#include "Gpu.h"

namespace reprise::runtime {

/// Inputs of micro-batches on their way to a GPU. The host writes them to
/// pinned memory. On a stream of their own they go to the places that the plan
/// has for those that come next, while a step runs; and on the main stream,
/// between two graphs, to the places of those that run.
class CudaInputs final : public DeviceInputs {
public:
  CudaInputs(const RepriseModel &model, const Gpu &device)
      : model(model), device(device) {}
  ~CudaInputs();

  /// Finds the places in the plan and takes pinned memory.
  bool prepare(Error &error);

  int64_t count() const override { return numAtOnce; }
  /// Waits until what the host wrote before the last time has been sent: the
  /// next ones are written over it.
  bool begin(Error &error) override;
  MicroBatch at(int64_t i) const override;
  /// Begins to send what was written.
  bool send(Error &error) override;
  /// On the main stream: what was sent becomes what runs.
  bool take(Error &error);

  /// Where micro-batch `i` of those that run has `buffer` of the first. (A
  /// stage runs its launches once: they have buffers of each.)
  int64_t offsetOf(const RepriseBuffer &buffer, int64_t i) const {
    bool isInput = buffer.offset >= first && buffer.offset < first + bytes;
    return buffer.offset + (isInput ? i * bytes : 0);
  }

private:
  bool findPlaces();

  const RepriseModel &model;
  const Gpu &device;
  int64_t first = 0; ///< Of the plan: micro-batch 0.
  int64_t bytes = 0; ///< Of the inputs of a micro-batch.
  int64_t numAtOnce = 0;
  char *pinned = nullptr; ///< Room for twice as many.
  CudaStream stream = nullptr;
  CudaEvent sent[2] = {}; ///< What either half of `pinned` had.
  CudaEvent taken = nullptr;
  int64_t numSent = 0;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_CUDAINPUTS_H
