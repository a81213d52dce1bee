//===- Outliers.h - Values that stand out -----------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_BASE_OUTLIERS_H
#define REPRISE_RUNTIME_BASE_OUTLIERS_H

#include <cmath>
#include <cstdint>

namespace reprise::runtime {

/// How far a value lies from those of the steps before it. Plain data, so that
/// it can be saved with the rest of a run.
struct Outliers {
  static constexpr int64_t kWindow = 128;

  /// The z-score of `value`, by the mean and the standard deviation of the
  /// last kWindow values with this one; NaN before there are so many, and 0 if
  /// all are alike.
  double add(double value) {
    values[count++ % kWindow] = value;
    if (count < kWindow)
      return std::nan("");
    double mean = 0, variance = 0;
    for (double each : values)
      mean += each / double(kWindow);
    for (double each : values)
      variance += (each - mean) * (each - mean) / double(kWindow);
    return variance > 0 ? (value - mean) / std::sqrt(variance) : 0;
  }

  double values[kWindow] = {};
  int64_t count = 0; ///< Of all values so far.
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_BASE_OUTLIERS_H
