//===- ShowOptions.h - What a run shows, and of what ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_SHOW_SHOWOPTIONS_H
#define REPRISE_RUNTIME_SHOW_SHOWOPTIONS_H

#include "runtime/checkpoint/CheckpointOptions.h"
#include "runtime/device/DeviceOptions.h"

namespace reprise::runtime {

/// What a run shows, and what that tells of: data, checkpoints, the device.
struct ShowOptions : CheckpointOptions, DeviceOptions {
  bool json = false;
  bool isQuiet = false; ///< For ranks that show nothing and write no files.
  int64_t logInterval = 1;
  const char *tensorboard = nullptr;
  const char *csv = nullptr;

  /// Whether a step is shown, which counts from 1 in all and in this run.
  bool isShown(int64_t step, int64_t stepHere) const {
    return stepHere == 1 || step == steps || step % logInterval == 0;
  }
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_SHOW_SHOWOPTIONS_H
