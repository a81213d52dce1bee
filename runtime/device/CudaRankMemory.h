//===- CudaRankMemory.h - What ranks do together on GPUs --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_CUDARANKMEMORY_H
#define REPRISE_RUNTIME_DEVICE_CUDARANKMEMORY_H

#include "CudaLanes.h"
#include "Nccl.h"
#include "NcclSums.h"
#include "runtime/base/List.h"
#include "runtime/transport/Collectives.h"

namespace reprise::runtime {

/// A GPU's memory. Everything is begun on the device's stream, or beside it on
/// one of its own, and may be captured there: parcels go through NCCL, and sums
/// are made by kernels of the program, in the order of `sumTree`; or those of
/// f32 that it can make by NCCL, in an order of its own.
class CudaRankMemory final : public RankMemory {
public:
  CudaRankMemory(const RepriseModel &model, Gpu &device, bool ncclSums)
      : model(model), device(device), nccl(device), lanes(model, device, nccl),
        sums(nccl), usesSums(ncclSums) {}
  ~CudaRankMemory();

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
  /// What is begun from here on runs beside launches, behind those that there
  /// are; up to `leave`, which gives it a number. Launches behind the `wait` of
  /// that number wait for it.
  bool begin(const char *what, Error &error);
  bool leave(const char *what, int number, Error &error);
  bool wait(const char *what, int number, Error &error);
  /// What stages send and receive.
  CudaLanes &parcels() { return lanes; }

  int rank() const override { return nccl.rank(); }
  bool exchange(const char *what, const Parcel *sends, int numSends,
                const Parcel *receives, int numReceives,
                Error &error) override {
    return nccl.exchange(what, sends, numSends, receives, numReceives, error);
  }
  bool send(const char *what, const LaneParcel &parcel, Error &error) override {
    return lanes.send(what, parcel, error);
  }
  bool receive(const char *what, const LaneParcel &parcel,
               Error &error) override {
    return lanes.receive(what, parcel, error);
  }
  bool hasEngineSums() const override { return usesSums; }
  EngineSums *engineSums(const Group &group, Number number) override {
    return usesSums && sums.makes(group, number) ? &sums : nullptr;
  }
  bool sum(Number number, void *out, const void *const *parts, int numParts,
           int64_t groups, int64_t count, Error &error) override;
  bool copy(void *to, const void *from, size_t size, Error &error) override;
  bool clear(void *bytes, size_t size, Error &error) override;
  bool fillSlots(const RowSlots &slots, Error &error) override;
  bool emptySlots(const RowSlots &slots, Error &error) override;
  bool findOwnOffsets(const int32_t *all, int64_t experts, int64_t members,
                      int64_t self, int32_t *own, Error &error) override;

private:
  bool connectBeside(Transport &ranks, Error &error);
  bool connectSums(Transport &ranks, Error &error);
  bool findKernel(CudaModule module, const char *name,
                  List<CudaFunction> &found, Error &error) const;
  bool moveRows(const RowSlots &slots, bool toSlots, Error &error);
  /// Of rows of experts, with its addresses and ids.
  bool launchRows(const RepriseCudaRows &kernel, int64_t blocks,
                  CudaAddress *values, size_t numValues, Error &error);
  const RepriseCudaRows *findRows(int64_t rowBytes, Error &error) const;
  bool launch(CudaFunction function, const char *name, int64_t blocks,
              int threads, CudaAddress *values, size_t numValues,
              Error &error) const;

  const RepriseModel &model;
  Gpu &device;
  Nccl nccl;
  CudaLanes lanes;
  NcclSums sums;
  const bool usesSums;          ///< NCCL makes those that it can.
  List<CudaFunction> functions; ///< Of `model.cuda->sums`.
  List<CudaFunction> ofRows;    ///< Of `model.cuda->rows`.
  List<CudaAddress> parameters; ///< Of the sum that is being begun.
  List<CudaEvent> ends;         ///< Of what is begun, by its number.
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_CUDARANKMEMORY_H
