//===- Squares.cpp - Sums of squares of a GEMM's result -------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Squares.h"

#include "reprise/ABI/Gemm.h"

#include <algorithm>
#include <cstring>
#include <immintrin.h>

using namespace reprise::runtime;

static constexpr int64_t kRows = REPRISE_GEMM_SQUARES_ROWS,
                         kCols = REPRISE_GEMM_SQUARES_COLS;

/// Of 8 numbers.
static float sum(__m256 eight) {
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight),
                           _mm256_extractf128_ps(eight, 1));
  __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/// Of a block with all columns.
static inline float sumBlock(const float *block, int64_t stride, int64_t rows) {
  constexpr int64_t kLanes = 8, kVectors = kCols / kLanes;
  __m256 sums[kVectors];
  for (__m256 &chain : sums)
    chain = _mm256_setzero_ps();
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t v = 0; v < kVectors; ++v) {
      __m256 x = _mm256_loadu_ps(block + r * stride + v * kLanes);
      sums[v] = _mm256_fmadd_ps(x, x, sums[v]);
    }
  return sum(_mm256_add_ps(_mm256_add_ps(sums[0], sums[2]),
                           _mm256_add_ps(sums[1], sums[3])));
}

/// Of one with fewer.
static float sumPart(const float *block, int64_t stride, int64_t rows,
                     int64_t cols) {
  alignas(32) float whole[kRows * kCols] = {};
  for (int64_t r = 0; r < rows; ++r)
    memcpy(whole + r * kCols, block + r * stride, size_t(cols) * sizeof(float));
  return sumBlock(whole, kCols, rows);
}

void reprise::runtime::sumSquares(const float *c, int64_t stride, int64_t rows,
                                  int64_t cols, float *squares,
                                  int64_t squaresStride) {
  for (int64_t row = 0; row < rows; row += kRows, squares += squaresStride) {
    const float *block = c + row * stride;
    int64_t col = 0;
    // Of so many rows that it is unrolled, and several are under way.
    if (rows - row >= kRows)
      for (; cols - col >= kCols; col += kCols)
        squares[col / kCols] = sumBlock(block + col, stride, kRows);
    for (; col < cols; col += kCols)
      squares[col / kCols] =
          sumPart(block + col, stride, std::min(kRows, rows - row),
                  std::min(kCols, cols - col));
  }
}

__attribute__((target("avx512f,avx512dq"))) void
reprise::runtime::streamWithSquares(const float *tile, int64_t rows, float *to,
                                    int64_t stride, float *squares,
                                    int64_t squaresStride) {
  constexpr int64_t kLanes = 16;
  for (int64_t first = 0; first < rows; first += kRows) {
    __m512 low = _mm512_setzero_ps(), high = low;
    for (int64_t r = first; r < first + kRows; ++r) {
      const __m512 x = _mm512_loadu_ps(tile + r * kCols),
                   y = _mm512_loadu_ps(tile + r * kCols + kLanes);
      _mm512_stream_ps(to + r * stride, x);
      _mm512_stream_ps(to + r * stride + kLanes, y);
      low = _mm512_fmadd_ps(x, x, low);
      high = _mm512_fmadd_ps(y, y, high);
    }
    const __m512 both = _mm512_add_ps(low, high);
    *squares = sum(_mm256_add_ps(_mm512_castps512_ps256(both),
                                 _mm512_extractf32x8_ps(both, 1)));
    squares += squaresStride;
  }
}
