//===- CudaRankMemory.h - What ranks do together on GPUs --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_CUDARANKMEMORY_H
#define REPRISE_RUNTIME_DEVICE_CUDARANKMEMORY_H

#include "Nccl.h"
#include "runtime/base/List.h"
#include "runtime/transport/Collectives.h"

namespace reprise::runtime {

/// A GPU's memory. Everything is begun on the device's stream and may be
/// captured there: parcels go through NCCL, and sums are made by kernels of the
/// program, in the order of `sumTree`.
class CudaRankMemory final : public RankMemory {
public:
  CudaRankMemory(const RepriseModel &model, CudaDevice &device)
      : model(model), device(device), nccl(device) {}

  /// Connects this rank with those that it does something with. All ranks call
  /// it at once.
  bool connect(Transport &ranks, Error &error);
  /// Finds the kernels.
  bool load(CudaModule module, Error &error);
  bool disconnect(Error &error) { return nccl.disconnect(error); }
  bool isConnected() const { return nccl.isConnected(); }
  /// Ends what is still under way, whether others have come or not.
  void giveUp() { nccl.giveUp(); }
  int version() const { return nccl.version(); } ///< Of NCCL.
  int64_t begunBytes() const { return nccl.begunBytes(); }

  int rank() const override { return nccl.rank(); }
  bool exchange(const char *what, const Parcel *sends, int numSends,
                const Parcel *receives, int numReceives,
                Error &error) override {
    return nccl.exchange(what, sends, numSends, receives, numReceives, error);
  }
  bool sum(Number number, void *out, const void *const *parts, int numParts,
           int64_t count, Error &error) override;
  bool copy(void *to, const void *from, size_t size, Error &error) override;
  bool clear(void *bytes, size_t size, Error &error) override;

private:
  const RepriseModel &model;
  CudaDevice &device;
  Nccl nccl;
  List<CudaFunction> functions; ///< Of `model.cuda->sums`.
  List<CudaAddress> parameters; ///< Of the sum that is being begun.
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_CUDARANKMEMORY_H
