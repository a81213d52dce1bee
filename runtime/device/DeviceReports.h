//===- DeviceReports.h - What a device says of itself -----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_DEVICEREPORTS_H
#define REPRISE_RUNTIME_DEVICE_DEVICEREPORTS_H

#include "reprise/ABI/Model.h"

#include <cstdint>

namespace reprise::runtime {

/// Seconds of a step on a device that the host does not wait for, by the
/// device's own clock.
struct DeviceTimes {
  double span;     ///< From its begin to its end, gaps between launches, too.
  double interval; ///< From the begin of the step before to its own; 0 for the
                   ///< first.
  double host;     ///< That the host takes to begin it, by the host's clock.
};

/// What does not change once a device is prepared.
struct DeviceFacts {
  const char *name; ///< "NVIDIA H200", "2 threads of AMD EPYC 9B14".
  /// That of the GEMMs of bf16 if there are any, otherwise that of all; null
  /// if the model has no GEMMs, or they are made by a library.
  const RepriseMicroKernel *microKernel;
  double dataSheetFlops; ///< 0: not known, as of processors.
};

/// Bytes of a GPU that are in use.
struct DeviceMemory {
  int64_t plan;      ///< What was asked for, at once.
  int64_t allocated; ///< What that took.
  int64_t context;   ///< What there was before, other programs included.
  int64_t network;   ///< What connecting ranks has taken.
  int64_t kernels;   ///< Since then until they are loaded.
  int64_t library;   ///< Since then until the GEMMs are known.
  int64_t other;     ///< Since then: graphs, and what drivers load late.
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_DEVICEREPORTS_H
