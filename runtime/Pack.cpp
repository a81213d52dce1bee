//===- Pack.cpp - Operands of products as panels --------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Pack.h"

#include <immintrin.h>

using namespace reprise::runtime;

/// Lines are neighbours in memory: one copy per depth.
static void packCopy(const float *source, int64_t stride, int64_t lines,
                     int64_t depth, int64_t width, float *panel) {
  int64_t whole = lines & ~int64_t(7);
  for (int64_t p = 0; p < depth; ++p, source += stride, panel += width) {
    int64_t i = 0;
    for (; i < whole; i += 8)
      _mm256_storeu_ps(panel + i, _mm256_loadu_ps(source + i));
    for (; i < lines; ++i)
      panel[i] = source[i];
    for (; i < width; ++i)
      panel[i] = 0.0f;
  }
}

/// Turns eight vectors, the rows of an 8x8 square, into its columns.
static void transpose(__m256 r[8]) {
  __m256 t[8], u[8];
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4)
    for (int j = 0; j < 2; ++j) {
      u[i + 2 * j] = _mm256_shuffle_ps(t[i + j], t[i + 2 + j], 0x44);
      u[i + 2 * j + 1] = _mm256_shuffle_ps(t[i + j], t[i + 2 + j], 0xEE);
    }
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
    r[i + 4] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
  }
}

/// Stores the first `count` of eight values.
static void storeFirst(float *to, __m256 value, int64_t count) {
  __m128 rest = _mm256_castps256_ps128(value);
  if (count == 8)
    return _mm256_storeu_ps(to, value);
  if (count >= 4) {
    _mm_storeu_ps(to, rest);
    rest = _mm256_extractf128_ps(value, 1);
    to += 4;
  }
  if (count & 2) {
    _mm_storel_pi(reinterpret_cast<__m64 *>(to), rest);
    rest = _mm_movehl_ps(rest, rest);
    to += 2;
  }
  if (count & 1)
    _mm_store_ss(to, rest);
}

/// Depths are neighbours in memory: eight lines at a time, transposed in
/// registers.
static void packTransposed(const float *source, int64_t stride, int64_t lines,
                           int64_t depth, int64_t width, float *panel) {
  for (int64_t first = 0; first < width; first += 8) {
    int64_t count = width - first < 8 ? width - first : 8;
    int64_t present = lines - first < count ? lines - first : count;
    const float *from = source + first * stride;
    float *to = panel + first;
    int64_t p = 0;
    for (; p + 8 <= depth; p += 8) {
      __m256 r[8];
      for (int64_t i = 0; i < 8; ++i)
        r[i] = i < present ? _mm256_loadu_ps(from + i * stride + p)
                           : _mm256_setzero_ps();
      transpose(r);
      for (int64_t i = 0; i < 8; ++i)
        storeFirst(to + (p + i) * width, r[i], count);
    }
    for (; p < depth; ++p)
      for (int64_t i = 0; i < count; ++i)
        to[p * width + i] = i < present ? from[i * stride + p] : 0.0f;
  }
}

void reprise::runtime::packPanel(const PanelSource &source, int64_t firstLine,
                                 int64_t lines, int64_t firstDepth,
                                 int64_t depth, int64_t width, float *panel) {
  if (source.depthIsFast)
    packTransposed(source.data + firstLine * source.stride + firstDepth,
                   source.stride, lines, depth, width, panel);
  else
    packCopy(source.data + firstDepth * source.stride + firstLine,
             source.stride, lines, depth, width, panel);
}
