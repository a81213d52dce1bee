//===- CudaDevice.h - One GPU -----------------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_CUDADEVICE_H
#define REPRISE_RUNTIME_DEVICE_CUDADEVICE_H

#include "CudaLibraries.h"

#include "reprise/ABI/Model.h"

namespace reprise::runtime {

/// A GPU, its libraries, the memory that is taken on it, and the stream on
/// which everything runs in order.
class CudaDevice {
public:
  CudaDevice() = default;
  CudaDevice(const CudaDevice &) = delete;
  CudaDevice &operator=(const CudaDevice &) = delete;
  ~CudaDevice();

  /// Opens the libraries and a GPU: that of number `first` for the first rank
  /// of this machine, the next one for the next. Fails with what is missing.
  bool open(int first, int localRank, Error &error);
  bool isOpen() const { return context != nullptr; }

  /// Takes memory, aligned to 256 bytes; given back when this ends.
  bool allocate(int64_t bytes, Error &error);
  CudaAddress base() const { return memory; }
  /// By how much that left less free: more than was asked for, since drivers
  /// take whole pages.
  int64_t allocatedBytes() const { return bytesTaken; }

  /// All three wait until it is done.
  bool upload(int64_t offset, const void *from, int64_t bytes, Error &error);
  bool download(int64_t offset, void *to, int64_t bytes, Error &error) const;
  bool fill(int64_t offset, unsigned char byte, int64_t bytes, Error &error);

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

  const char *name() const { return deviceName; } ///< "NVIDIA H200"
  int major() const { return capability[0]; }
  int minor() const { return capability[1]; }
  int ordinal() const { return number; }
  int multiprocessors() const { return numMultiprocessors; }
  int driverVersion() const { return version; } ///< 13000 for 13.0
  /// What was in use when the context was there and nothing else of this
  /// program; other programs' memory is part of it.
  int64_t contextBytes() const { return bytesOfContext; }
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
  char deviceName[128] = "";
  int number = 0, capability[2] = {}, numMultiprocessors = 0, version = 0;
  int64_t bytesOfContext = 0, bytesTaken = 0;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_CUDADEVICE_H
