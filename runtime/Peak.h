//===- Peak.h - The fastest that products can be ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_PEAK_H
#define REPRISE_RUNTIME_PEAK_H

#include "ThreadPool.h"

#include "reprise/ABI/Model.h"

namespace reprise::runtime {

/// FLOP/s of `kernel` on panels that stay in the first-level cache, with all
/// threads: what utilization is measured against. Takes some 10 ms; the best of
/// a few rounds, so that a busy neighbour does not count.
double measurePeakFlops(const RepriseMicroKernel &kernel, ThreadPool &pool);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_PEAK_H
