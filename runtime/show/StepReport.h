//===- StepReport.h - The numbers of one step -------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_SHOW_STEPREPORT_H
#define REPRISE_RUNTIME_SHOW_STEPREPORT_H

#include "runtime/device/DeviceReports.h"

#include <cstdint>

namespace reprise::runtime {

class Measures;

/// One step; `step` counts from 0 here and from 1 in what is shown.
struct StepReport {
  int64_t step;
  float loss, gradNorm, learningRate;
  double seconds;
  int64_t highWaterBytes;
  /// How far loss and norm lie from those before, in standard deviations; NaN
  /// while there are too few.
  double lossZ, gradNormZ;
  /// Whether the step left the parameters alone, because of these.
  bool skipped;
  double tokensPerSecond;
  /// Shares of the machine's peak: that of the model's FLOPs, and that of all,
  /// the replayed among them. NaN if the peak is unknown.
  double mfu, hfu;
  /// All 0 where the host waits for the device, or looks between norm and
  /// update.
  DeviceTimes device;
  /// What else the step shows; null: nothing.
  const Measures *measures;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_SHOW_STEPREPORT_H
