//===- Squares.h - Sums of squares of a GEMM's result -----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_COMPUTE_SQUARES_H
#define REPRISE_RUNTIME_COMPUTE_SQUARES_H

#include <cstdint>

namespace reprise::runtime {

/// The sums of the squares of blocks of C, each of at most
/// REPRISE_GEMM_SQUARES_ROWS rows and REPRISE_GEMM_SQUARES_COLS columns, in the
/// order that RepriseGemm states: of `rows` x `cols` elements from the first
/// one of a block on, to `squares`, where rows of blocks are `squaresStride`
/// apart.
void sumSquares(const float *c, int64_t stride, int64_t rows, int64_t cols,
                float *squares, int64_t squaresStride);

/// Copies a tile of `rows` rows, whole blocks, and REPRISE_GEMM_SQUARES_COLS
/// columns past the caches, to rows that begin at cache lines, `stride` apart;
/// sums of squares of its blocks go to `squares`, `squaresStride` apart. For
/// processors with AVX-512.
void streamWithSquares(const float *tile, int64_t rows, float *to,
                       int64_t stride, float *squares, int64_t squaresStride);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_COMPUTE_SQUARES_H
