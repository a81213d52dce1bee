//===- Gemm.h - GEMMs -------------------------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_COMPUTE_GEMM_H
#define REPRISE_RUNTIME_COMPUTE_GEMM_H

#include "runtime/base/ThreadPool.h"

#include "reprise/ABI/Gemm.h"

namespace reprise::runtime {

struct AmxScratch;

/// The addresses of one GEMM: of f32 or bf16, as its shape says. `workspace`
/// holds repriseGemmWorkspaceBytes(shape) bytes, which GEMMs with AMX do not
/// touch; `bias` is null without one. `squares` holds repriseGemmSquares(shape)
/// numbers, or is null where nobody reads what that epilogue makes.
struct GemmOperands {
  const void *a, *b, *bias;
  void *c;
  float *workspace;
  float *squares = nullptr;
};

/// The micro-kernels of one processor: tiles of equal width. `low` has fewer
/// rows than `full`, for what is left of the rows, or is the same. One of AMX
/// needs scratch for each thread (GemmAmx.h). The bytes of its L2
/// decide how GEMMs are divided, never their bits.
struct MicroKernels {
  const RepriseMicroKernel *full = nullptr, *low = nullptr;
  AmxScratch *scratches = nullptr;
  int64_t bytesOfL2 = 1 << 20;
};

/// Among the micro-kernels for operands of `typeAB` that a processor of this
/// level can run, the first of the highest level, and the next of that level
/// and width; null when there is none.
MicroKernels chooseMicroKernels(const RepriseMicroKernel *kernels, int count,
                                int cpuLevel, int typeAB = REPRISE_F32);

/// Computes a GEMM, or a batch of them, as declared at RepriseGemm. Any
/// m, n, k >= 1. The bits of the result depend on the operands and on (m, n, k)
/// only: not on the micro-kernel, unless that is of AMX, the threads or the
/// batch. Micro-kernels for f32 do GEMMs of bf16 too, on panels of f32.
///
/// The blocking is that of Goto and van de Geijn, "Anatomy of high-performance
/// matrix multiplication", ACM TOMS 34(3), 2008, with the two loops around the
/// micro-kernel exchanged: a panel of B stays in the first-level cache while
/// the panels of A pass from the second. Micro-kernels pack on their way what
/// they can: rows of the next panel of B as they lie, and panels of A. Narrow
/// GEMMs, and blocks of columns of some others, have the loops as the paper
/// has them, and read A where it lies.
void gemm(const RepriseGemm &shape, const GemmOperands &operands,
          const MicroKernels &kernels, ThreadPool &pool);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_COMPUTE_GEMM_H
