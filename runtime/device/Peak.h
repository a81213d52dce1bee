//===- Peak.h - The fastest that GEMMs can be -------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_PEAK_H
#define REPRISE_RUNTIME_DEVICE_PEAK_H

#include "runtime/base/Files.h"
#include "runtime/compute/Gemm.h"

namespace reprise::runtime {

/// FLOP/s of `kernel` on panels that stay in the first-level cache, with all
/// threads: the best of some rounds, so that a busy neighbour does not count.
/// Without `isQuick`, which takes some 10 ms, there are more of them, until the
/// best one has not been beaten for a while.
double measurePeakFlops(const RepriseMicroKernel &kernel, ThreadPool &pool,
                        bool isQuick = false);

/// What utilization is measured against: FLOP/s that the user or a data sheet
/// says, or the most that was ever seen of this machine. What was measured is
/// kept beside checkpoints, in a file `machine.json` that has nothing else, so
/// that a run that goes on has the same; no result depends on it.
class Peak {
public:
  /// Takes what somebody says; 0: nobody knows.
  void state(double flops) { best = flops; }
  /// Measures, unless `folder`, which may be null, has more for the machine of
  /// this name.
  void measure(const RepriseMicroKernel &kernel, ThreadPool &pool,
               const char *machine, const char *folder);
  double flops() const { return best; }
  /// A step has had so many, which is no more than the peak.
  void reached(double flops);
  /// Writes what is not in the file yet; that it cannot is no error.
  void keep();

private:
  double best = 0;
  double kept = 0; ///< That the file has.
  bool isMeasured = false;
  Path file = Path("%s", ""); ///< Empty: none.
  char machine[192] = "";
};

/// The faster micro-kernels for GEMMs of bf16 on a processor of this level,
/// those for pairs or those for f32: bits are the same, but there are
/// processors that take four times as long for a vector of pairs as for one of
/// f32. Those of AMX, if it has that: their bits are others, so no measurement
/// may choose; they need scratch yet. None if there are none for f32.
MicroKernels chooseForBF16(const RepriseMicroKernel *kernels, int count,
                           int cpuLevel, ThreadPool &pool);

/// What NVIDIA's data sheets give for GEMMs without sparsity on the chip of
/// this version (of several parts, the fastest): of bf16, of TF32, or of f32.
/// 0 for other chips.
double dataSheetFlops(int major, int minor, bool isBF16, bool isTF32);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_PEAK_H
