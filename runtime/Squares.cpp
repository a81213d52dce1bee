//===- Squares.cpp - Sums of the squares of a product ---------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Squares.h"

#include "reprise/ABI/Model.h"

#include <cstring>
#include <immintrin.h>

using namespace reprise::runtime;

static constexpr int64_t kSize = REPRISE_GEMM_SQUARES, kLanes = 8;
/// Vectors of a row, and of partial sums: those of even rows, then of odd ones.
static constexpr int64_t kOfRow = kSize / kLanes, kSums = 2 * kOfRow;

/// Of whole rows. Each partial sum is a chain, which waits for itself four
/// cycles a row: with those of even and odd rows there are enough of them to
/// keep the processor busy.
static float sumRows(const float *block, int64_t stride, int64_t rows) {
  __m256 sums[kSums];
  for (__m256 &sum : sums)
    sum = _mm256_setzero_ps();
  auto addRow = [&](__m256 *chains, const float *row) {
    for (int64_t v = 0; v < kOfRow; ++v) {
      __m256 x = _mm256_loadu_ps(row + v * kLanes);
      chains[v] = _mm256_fmadd_ps(x, x, chains[v]);
    }
  };
  int64_t r = 0;
  for (; r + 2 <= rows; r += 2) {
    addRow(sums, block + r * stride);
    addRow(sums + kOfRow, block + (r + 1) * stride);
  }
  if (r < rows)
    addRow(sums, block + r * stride);
  for (int64_t half = kSums / 2; half > 0; half /= 2)
    for (int64_t v = 0; v < half; ++v)
      sums[v] = _mm256_add_ps(sums[v], sums[v + half]);
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(sums[0]),
                           _mm256_extractf128_ps(sums[0], 1));
  __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

float reprise::runtime::sumSquares(const float *block, int64_t stride,
                                   int64_t rows, int64_t cols) {
  if (cols == kSize)
    return sumRows(block, stride, rows);
  alignas(32) float whole[kSize * kSize];
  for (int64_t r = 0; r < rows; ++r) {
    float *row = whole + r * kSize;
    memcpy(row, block + r * stride, size_t(cols) * sizeof(float));
    memset(row + cols, 0, size_t(kSize - cols) * sizeof(float));
  }
  return sumRows(whole, kSize, rows);
}
