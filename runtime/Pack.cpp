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

/// How many depths ahead the source is fetched where it jumps from row to row.
static constexpr int64_t kFetchAhead = 12;

/// Lines are neighbours in memory: one copy per depth.
static void packCopy(const float *source, int64_t stride, int64_t lines,
                     int64_t depth, int64_t width, float *panel) {
  int64_t whole = lines & ~int64_t(7);
  for (int64_t p = 0; p < depth; ++p, source += stride, panel += width) {
    int64_t i = 0;
    for (; i + 16 <= whole; i += 16)
      __builtin_prefetch(source + kFetchAhead * stride + i);
    for (i = 0; i < whole; i += 8)
      _mm256_storeu_ps(panel + i, _mm256_loadu_ps(source + i));
    for (; i < lines; ++i)
      panel[i] = source[i];
    for (; i < width; ++i)
      panel[i] = 0.0f;
  }
}

/// Stores the first `Count` of eight values.
template <int Count>
static void storeFirst(float *to, __m256 value) {
  if constexpr (Count == 8)
    return _mm256_storeu_ps(to, value);
  _mm_storeu_ps(to, _mm256_castps256_ps128(value));
  if constexpr (Count == 6)
    _mm_storel_pi(reinterpret_cast<__m64 *>(to + 4),
                  _mm256_extractf128_ps(value, 1));
}

/// Transposes four depths of `Count` (4, 6 or 8) lines. Both halves of a vector
/// are loaded on their own, so no value crosses halves later.
template <int Count>
static void transposeFour(const float *from, int64_t stride, float *to,
                          int64_t width) {
  __m256 line[4];
  for (int i = 0; i < 4; ++i) {
    __m128 low = _mm_loadu_ps(from + i * stride);
    __m128 high = i + 4 < Count ? _mm_loadu_ps(from + (i + 4) * stride)
                                : _mm_setzero_ps();
    line[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
  }
  __m256 t0 = _mm256_unpacklo_ps(line[0], line[1]);
  __m256 t1 = _mm256_unpackhi_ps(line[0], line[1]);
  __m256 t2 = _mm256_unpacklo_ps(line[2], line[3]);
  __m256 t3 = _mm256_unpackhi_ps(line[2], line[3]);
  storeFirst<Count>(to, _mm256_shuffle_ps(t0, t2, 0x44));
  storeFirst<Count>(to + width, _mm256_shuffle_ps(t0, t2, 0xEE));
  storeFirst<Count>(to + 2 * width, _mm256_shuffle_ps(t1, t3, 0x44));
  storeFirst<Count>(to + 3 * width, _mm256_shuffle_ps(t1, t3, 0xEE));
}

/// Depths are neighbours in memory: `Count` lines are transposed in registers,
/// the depths that are no multiple of four one by one.
template <int Count>
static void packLines(const float *from, int64_t stride, int64_t depth,
                      int64_t width, float *to) {
  int64_t p = 0;
  for (; p + 4 <= depth; p += 4)
    transposeFour<Count>(from + p, stride, to + p * width, width);
  for (; p < depth; ++p)
    for (int64_t i = 0; i < Count; ++i)
      to[p * width + i] = from[i * stride + p];
}

/// Any panel whose depths are neighbours in memory: groups of lines that fill a
/// vector, then what is left and what is missing.
static void packTransposed(const float *source, int64_t stride, int64_t lines,
                           int64_t depth, int64_t width, float *panel) {
  int64_t line = 0;
  auto next = [&](int64_t count, auto pack) {
    for (; line + count <= lines; line += count)
      pack(source + line * stride, stride, depth, width, panel + line);
  };
  next(8, packLines<8>);
  next(6, packLines<6>);
  next(4, packLines<4>);
  for (; line < width; ++line)
    for (int64_t p = 0; p < depth; ++p)
      panel[p * width + line] = line < lines ? source[line * stride + p] : 0.0f;
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
