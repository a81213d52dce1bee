//===- Gemm.cpp - GEMMs ---------------------------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Gemm.h"

#include "Cpu.h"
#include "GemmAmx.h"
#include "GemmDriver.h"

using namespace reprise::runtime;

MicroKernels
reprise::runtime::chooseMicroKernels(const RepriseMicroKernel *kernels,
                                     int count, int cpuLevel, int typeAB) {
  MicroKernels best;
  best.bytesOfL2 = l2Bytes();
  for (int i = 0; i < count; ++i) {
    const RepriseMicroKernel &kernel = kernels[i];
    if (int(kernel.isa) + 3 > cpuLevel || kernel.typeAB != typeAB)
      continue;
    if (!best.full || kernel.isa > best.full->isa)
      best.full = best.low = &kernel;
    else if (best.low == best.full && kernel.isa == best.full->isa &&
             kernel.cols == best.full->cols && kernel.rows < best.full->rows)
      best.low = &kernel;
  }
  return best;
}

void reprise::runtime::gemm(const RepriseGemm &shape,
                            const GemmOperands &operands,
                            const MicroKernels &kernels, ThreadPool &pool) {
  auto compute = [&](int64_t entry, ThreadPool *threads, int slot) {
    if (kernels.full->isa == REPRISE_ISA_AMX_BF16)
      gemmAmx(shape, operands, kernels, entry, threads, slot);
    else
      GemmDriver(GemmJob(shape, operands, kernels, entry, slot,
                         threads ? threads->size() : 1),
                 threads)
          .run();
  };
  int64_t entries = shape.batch[0] * shape.batch[1];
  int64_t flops = 2 * shape.m * shape.n * shape.k;
  // With fewer entries than threads, large ones are shared out one by one.
  if (entries < pool.size() && flops >= kSerialFlops) {
    for (int64_t entry = 0; entry < entries; ++entry)
      compute(entry, &pool, /*slot=*/0);
    return;
  }
  int64_t chunk = divideUp(kSerialFlops / 2, flops);
  pool.parallelFor(
      entries, smaller(chunk, divideUp(entries, pool.size())),
      [&](int slot, int64_t begin, int64_t end) {
        for (int64_t entry = begin; entry < end; ++entry)
          compute(entry, /*threads=*/nullptr, slot);
      },
      int(smaller(entries, REPRISE_GEMM_SLOTS)));
}
