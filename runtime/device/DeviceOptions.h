//===- DeviceOptions.h - On what a run computes -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_DEVICEOPTIONS_H
#define REPRISE_RUNTIME_DEVICE_DEVICEOPTIONS_H

#include <cstdint>

namespace reprise::runtime {

/// What is said of a run in which NCCL sums: in its log, its report and its
/// checkpoints.
inline constexpr char kNcclSums[] = "of f32 by NCCL: bits not fixed";

/// On what a run computes, and how.
struct DeviceOptions {
  const char *device = nullptr; ///< "auto" if not given.
  int64_t threads = 0;          ///< Of each rank.
  bool portableBits = false;    ///< On the CPU: without AMX, say.
  bool noCudaGraph = false;     ///< Begin each launch by itself.
  bool cudaSync = false;        ///< Wait for each launch, without a graph.
  bool tf32 = false;            ///< Of f32 GEMMs.
  bool autotune = false;        ///< Of GEMMs.
  bool nvtx = false;     ///< A range around each launch, without a graph.
  bool ncclSums = false; ///< NCCL sums f32 over all ranks.
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_DEVICEOPTIONS_H
