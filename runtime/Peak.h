//===- Peak.h - The fastest that products can be ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_PEAK_H
#define REPRISE_RUNTIME_PEAK_H

#include "Gemm.h"

namespace reprise::runtime {

/// FLOP/s of `kernel` on panels that stay in the first-level cache, with all
/// threads: what utilization is measured against. Takes some 10 ms; the best of
/// a few rounds, so that a busy neighbour does not count.
double measurePeakFlops(const RepriseMicroKernel &kernel, ThreadPool &pool);

/// The faster micro-kernels for products of bf16 on a processor of this level,
/// those for pairs or those for f32: bits are the same, but there are
/// processors that take four times as long for a vector of pairs as for one of
/// f32. Those of AMX, if it has that: their bits are others, so no measurement
/// may choose; they need rooms yet. None if there are none for f32.
MicroKernels chooseForBF16(const RepriseMicroKernel *kernels, int count,
                           int cpuLevel, ThreadPool &pool);

/// What NVIDIA's data sheets give for products without sparsity on the chip of
/// this version (of several parts, the fastest): of bf16, of TF32, or of f32.
/// 0 for other chips.
double dataSheetFlops(int major, int minor, bool isBF16, bool isTF32);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_PEAK_H
