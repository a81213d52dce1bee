//===- GemmAmx.h - GEMMs of bf16 with AMX -----------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_COMPUTE_GEMMAMX_H
#define REPRISE_RUNTIME_COMPUTE_GEMMAMX_H

#include "Gemm.h"
#include "runtime/base/Error.h"

namespace reprise::runtime {

/// What one thread works in. It is where it was in every GEMM, and so what a
/// GEMM uses of it is in L2 of its processor, of 2 MiB where
/// there is AMX: panels that lie elsewhere each time are read from memory
/// before they are written.
struct AmxScratch {
  /// A block of A, what is packed of B at a time, and the sums of a C of bf16
  /// from block to block of the depth.
  static constexpr int64_t kRows = 512, kCols = 128,
                           kDepth = REPRISE_GEMM_KC_BF16, kRowsOfSums = 256,
                           kSums = kRowsOfSums * 768;

  alignas(64) uint32_t a[kRows * kDepth / 2];
  uint32_t b[kCols * kDepth / 2];
  float sums[kSums];
  float partial[kRows * REPRISE_GEMM_COL_ALIGN]; ///< Of parts of a block.
  uint16_t rounded[kRows * kCols]; ///< Of a C that goes past the caches.
};

/// One for each thread. Their memory is taken when they are first used.
class AmxScratches {
public:
  AmxScratches() = default;
  AmxScratches(const AmxScratches &) = delete;
  AmxScratches &operator=(const AmxScratches &) = delete;
  ~AmxScratches();

  bool allocate(int threads, Error &error);

  AmxScratch *get() const { return scratches; }

private:
  AmxScratch *scratches = nullptr;
};

/// Computes entry `entry` of a batch, as `gemm` does, with the pool's threads
/// or, if it is null, as thread `slot` alone.
void gemmAmx(const RepriseGemm &shape, const GemmOperands &operands,
             const MicroKernels &kernels, int64_t entry, ThreadPool *pool,
             int slot);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_COMPUTE_GEMMAMX_H
