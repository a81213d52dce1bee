//===- Gpu.h - One GPU ------------------------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_GPU_H
#define REPRISE_RUNTIME_DEVICE_GPU_H

#include "Arena.h"
#include "CudaLibraries.h"

#include "reprise/ABI/Model.h"

namespace reprise::runtime {

struct GpuInfo {
  char name[128] = ""; ///< "NVIDIA H200"
  int ordinal = 0, major = 0, minor = 0, multiprocessors = 0;
  int driverVersion = 0; ///< 13000 for 13.0
  /// What was in use when the context was there and nothing else of this
  /// program; other programs' memory is part of it.
  int64_t contextBytes = 0;
};

/// A GPU, its libraries, the memory that is taken on it, and the stream on
/// which everything runs in order.
class Gpu final : public PlanMemory {
public:
  Gpu() = default;
  Gpu(const Gpu &) = delete;
  Gpu &operator=(const Gpu &) = delete;
  ~Gpu();

  /// Opens the libraries and a GPU: that of number `first` for the first rank
  /// of this machine, the next one for the next. Fails with what is missing.
  bool open(int first, int localRank, Error &error);

  /// Takes memory, aligned to 256 bytes; given back when this ends.
  bool allocate(int64_t bytes, Error &error);
  CudaAddress base() const { return memory; }
  CudaAddress at(const RepriseBuffer &buffer) const {
    return memory + CudaAddress(buffer.offset);
  }
  /// By how much that left less free: more than was asked for, since drivers
  /// take whole pages.
  int64_t allocatedBytes() const { return bytesTaken; }

  bool upload(int64_t offset, const void *from, int64_t bytes,
              Error &error) override;
  bool download(int64_t offset, void *to, int64_t bytes,
                Error &error) const override;
  bool fill(int64_t offset, unsigned char byte, int64_t bytes,
            Error &error) override;

  /// Lets the calling thread use it, as the one that has opened it does.
  bool enter() const { return driver().contextSet(context) == 0; }

  /// Waits for everything that was begun.
  bool synchronize(const char *what, Error &error) const;
  /// Waits for what was begun before `event` was recorded.
  bool waitFor(CudaEvent event, const char *what, Error &error) const;

  /// Who looks, while this waits, whether what it waits for can still come:
  /// false, and why, ends the wait. Without it nothing looks.
  struct Watch {
    bool (*look)(void *context, double waitedSeconds, Error &error) = nullptr;
    void *context = nullptr;
  };
  void setWatch(const Watch &told) { watch = told; }

  /// Opens the library that connects GPUs.
  bool openNccl(Error &error) { return libraries.openNccl(error); }

  /// Whether `code` is good; otherwise an error that begins with what was being
  /// done: "WHAT: CUDA_ERROR_...: text".
  bool check(CudaResult code, const char *what, Error &error) const;

  /// Of the GPU that is open.
  const GpuInfo &info() const { return itsInfo; }
  /// What is free now, and what there is.
  bool memoryInfo(size_t &free, size_t &total, Error &error) const;

  const CudaDriver &driver() const { return libraries.driver; }
  const CublasLt &blas() const { return libraries.blas; }
  const NcclLibrary &nccl() const { return libraries.nccl; }
  CudaStream stream() const { return mainStream; }

private:
  bool openContext(int ordinal, Error &error);
  template <typename Query>
  bool poll(Query query, const char *what, Error &error) const;

  CudaLibraries libraries;
  Watch watch;
  CudaDeviceNumber device = 0;
  CudaContext context = nullptr;
  CudaStream mainStream = nullptr;
  CudaAddress memory = 0;
  GpuInfo itsInfo;
  int64_t bytesTaken = 0;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_GPU_H
