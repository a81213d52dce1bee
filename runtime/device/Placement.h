//===- Placement.h - On what a run computes ---------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_PLACEMENT_H
#define REPRISE_RUNTIME_DEVICE_PLACEMENT_H

#include "CpuDevice.h"
#include "CudaDevice.h"
#include "DeviceOptions.h"
#include "runtime/transport/Transport.h"

#include <optional>

namespace reprise::runtime {

/// What --device comes to in a program and on a machine.
struct Placement {
  const RepriseModel *model = nullptr; ///< Compiled for it.
  Gpu gpu;                             ///< Open if it is the GPU.
  char note[1024] = "";                ///< Why `auto` is not the GPU.
};

/// Decides; returns 0, or the status that the program ends with after `error`:
/// 2 if the program does not have what is asked for, 3 if the machine does not.
/// \param localRank  among the ranks of this machine: each has a GPU of its
/// own.
int place(const RepriseModel *const *models, int numModels,
          const DeviceOptions &options, int localRank, Placement &placement,
          Error &error);

/// Room for a device of any kind.
class DeviceSlot {
public:
  /// Makes the one that a run has been placed on, which needs all of these as
  /// long as it is used.
  Device &make(Placement &placement, const DeviceOptions &options, Arena &arena,
               ThreadPool &pool, Transport &ranks);

private:
  std::optional<CpuDevice> cpu;
  std::optional<CudaDevice> cuda;
};

/// Whether all ranks compute on the same kind of device.
bool agreeOnDevice(const Placement &placement, Transport &ranks, Error &error);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_PLACEMENT_H
