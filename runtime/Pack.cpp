//===- Pack.cpp - Operands of products as panels --------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Pack.h"

#include <cstring>
#include <immintrin.h>

using namespace reprise::runtime;

/// How many depths ahead the source is fetched where it jumps from row to row.
static constexpr int64_t kFetchAhead = 12;

//===----------------------------------------------------------------------===//
// How words reach a panel
//===----------------------------------------------------------------------===//

/// Stores the first `Count` of eight words.
template <int Count>
static void storeFirst(float *to, __m256 words) {
  if constexpr (Count == 8)
    return _mm256_storeu_ps(to, words);
  _mm_storeu_ps(to, _mm256_castps256_ps128(words));
  if constexpr (Count == 6)
    _mm_storel_pi(reinterpret_cast<__m64 *>(to + 4),
                  _mm256_extractf128_ps(words, 1));
}

namespace {

/// A row of words, f32 or pairs, is a row of the panel.
struct AsTheyAre {
  template <int Count>
  static void put(float *panel, int64_t width, int64_t row, __m256 words) {
    storeFirst<Count>(panel + row * width, words);
  }
  static void putOne(float *panel, int64_t width, int64_t row, uint32_t word) {
    memcpy(panel + row * width, &word, sizeof(word));
  }
};

/// A row of pairs is two rows of f32, the high halves first.
struct TwoRows {
  template <int Count>
  static void put(float *panel, int64_t width, int64_t row, __m256 words) {
    __m256i pairs = _mm256_castps_si256(words);
    __m256i high = _mm256_and_si256(pairs, _mm256_set1_epi32(int(0xFFFF0000)));
    float *to = panel + 2 * row * width;
    storeFirst<Count>(to, _mm256_castsi256_ps(high));
    storeFirst<Count>(to + width,
                      _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)));
  }
  static void putOne(float *panel, int64_t width, int64_t row, uint32_t word) {
    AsTheyAre::putOne(panel, width, 2 * row, word & 0xFFFF0000);
    AsTheyAre::putOne(panel, width, 2 * row + 1, word << 16);
  }
};

/// Where words come from, and how far apart rows of the source are, in bytes.
struct Source {
  const char *data;
  int64_t stride;
};

} // namespace

template <typename T>
static T load(const char *from) {
  T value;
  memcpy(&value, from, sizeof(T));
  return value;
}

//===----------------------------------------------------------------------===//
// Lines that are neighbours in memory
//===----------------------------------------------------------------------===//

/// One copy per depth.
static void packCopy(Source source, int64_t lines, int64_t depth, int64_t width,
                     float *panel) {
  int64_t whole = lines & ~int64_t(7);
  for (int64_t p = 0; p < depth; ++p, source.data += source.stride) {
    auto *from = reinterpret_cast<const float *>(source.data);
    float *to = panel + p * width;
    int64_t i = 0;
    for (; i + 16 <= whole; i += 16)
      __builtin_prefetch(source.data + kFetchAhead * source.stride + 4 * i);
    for (i = 0; i < whole; i += 8)
      _mm256_storeu_ps(to + i, _mm256_loadu_ps(from + i));
    for (; i < lines; ++i)
      to[i] = from[i];
    for (; i < width; ++i)
      to[i] = 0.0f;
  }
}

/// Pairs of two rows of bf16. The last of an odd depth is paired with zeros.
template <typename Rows>
static void packTwo(Source source, int64_t lines, int64_t depth, int64_t width,
                    float *panel) {
  for (int64_t row = 0; row < (depth + 1) / 2;
       ++row, source.data += 2 * source.stride) {
    bool single = 2 * row + 1 == depth;
    const char *even = source.data, *odd = source.data + source.stride;
    int64_t i = 0;
    for (; i < lines; i += 32) {
      __builtin_prefetch(even + kFetchAhead * source.stride + 2 * i);
      __builtin_prefetch(odd + kFetchAhead * source.stride + 2 * i);
    }
    for (i = 0; i + 16 <= lines; i += 16) {
      __m256i low = load<__m256i>(even + 2 * i);
      __m256i high =
          single ? _mm256_setzero_si256() : load<__m256i>(odd + 2 * i);
      __m256i a = _mm256_unpacklo_epi16(low, high);
      __m256i b = _mm256_unpackhi_epi16(low, high);
      Rows::template put<8>(
          panel + i, width, row,
          _mm256_castsi256_ps(_mm256_permute2x128_si256(a, b, 0x20)));
      Rows::template put<8>(
          panel + i + 8, width, row,
          _mm256_castsi256_ps(_mm256_permute2x128_si256(a, b, 0x31)));
    }
    for (; i < width; ++i) {
      uint32_t word = 0;
      if (i < lines)
        word = load<uint16_t>(even + 2 * i);
      if (i < lines && !single)
        word |= uint32_t(load<uint16_t>(odd + 2 * i)) << 16;
      Rows::putOne(panel + i, width, row, word);
    }
  }
}

//===----------------------------------------------------------------------===//
// Depths that are neighbours in memory
//===----------------------------------------------------------------------===//

/// Transposes four words of `Count` (4, 6 or 8) lines. Both halves of a vector
/// are loaded on their own, so no value crosses halves later.
template <int Count, typename Rows>
static void transposeFour(Source from, float *to, int64_t width, int64_t row) {
  auto lineAt = [&](int line) {
    return _mm_loadu_ps(
        reinterpret_cast<const float *>(from.data + line * from.stride));
  };
  __m256 line[4];
  for (int i = 0; i < 4; ++i) {
    __m128 high = i + 4 < Count ? lineAt(i + 4) : _mm_setzero_ps();
    line[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(lineAt(i)), high, 1);
  }
  __m256 t0 = _mm256_unpacklo_ps(line[0], line[1]);
  __m256 t1 = _mm256_unpackhi_ps(line[0], line[1]);
  __m256 t2 = _mm256_unpacklo_ps(line[2], line[3]);
  __m256 t3 = _mm256_unpackhi_ps(line[2], line[3]);
  Rows::template put<Count>(to, width, row, _mm256_shuffle_ps(t0, t2, 0x44));
  Rows::template put<Count>(to, width, row + 1,
                            _mm256_shuffle_ps(t0, t2, 0xEE));
  Rows::template put<Count>(to, width, row + 2,
                            _mm256_shuffle_ps(t1, t3, 0x44));
  Rows::template put<Count>(to, width, row + 3,
                            _mm256_shuffle_ps(t1, t3, 0xEE));
}

/// `Count` lines are transposed in registers, the words that are no multiple of
/// four one by one.
template <int Count, typename Rows>
static void packLines(Source from, int64_t words, int64_t width, float *to) {
  int64_t row = 0;
  for (; row + 4 <= words; row += 4)
    transposeFour<Count, Rows>({from.data + 4 * row, from.stride}, to, width,
                               row);
  for (; row < words; ++row)
    for (int64_t i = 0; i < Count; ++i)
      Rows::putOne(to + i, width, row,
                   load<uint32_t>(from.data + i * from.stride + 4 * row));
}

/// Any panel of whole words: groups of lines that fill a vector, then what is
/// left and what is missing.
template <typename Rows>
static void packTransposed(Source source, int64_t lines, int64_t words,
                           int64_t width, float *panel) {
  int64_t line = 0;
  auto next = [&](int64_t count, auto pack) {
    for (; line + count <= lines; line += count)
      pack({source.data + line * source.stride, source.stride}, words, width,
           panel + line);
  };
  next(8, packLines<8, Rows>);
  next(6, packLines<6, Rows>);
  next(4, packLines<4, Rows>);
  for (; line < width; ++line)
    for (int64_t row = 0; row < words; ++row)
      Rows::putOne(panel + line, width, row,
                   line < lines ? load<uint32_t>(source.data +
                                                 line * source.stride + 4 * row)
                                : 0);
}

/// Panels of bf16.
template <typename Rows>
static void packPairs(Source source, bool depthIsFast, int64_t lines,
                      int64_t depth, int64_t width, float *panel) {
  if (!depthIsFast)
    return packTwo<Rows>(source, lines, depth, width, panel);
  packTransposed<Rows>(source, lines, depth / 2, width, panel);
  if (depth % 2 == 0)
    return;
  for (int64_t line = 0; line < width; ++line) {
    const char *last = source.data + line * source.stride + 2 * (depth - 1);
    Rows::putOne(panel + line, width, depth / 2,
                 line < lines ? load<uint16_t>(last) : 0);
  }
}

void reprise::runtime::packPanel(PanelForm form, const PanelSource &source,
                                 int64_t firstLine, int64_t lines,
                                 int64_t firstDepth, int64_t depth,
                                 int64_t width, float *panel) {
  int64_t bytes = form == PanelForm::Floats ? 4 : 2;
  int64_t row = source.depthIsFast ? firstLine : firstDepth;
  int64_t col = source.depthIsFast ? firstDepth : firstLine;
  Source from = {static_cast<const char *>(source.data) +
                     (row * source.stride + col) * bytes,
                 source.stride * bytes};
  if (form == PanelForm::Pairs)
    packPairs<AsTheyAre>(from, source.depthIsFast, lines, depth, width, panel);
  else if (form == PanelForm::Expanded)
    packPairs<TwoRows>(from, source.depthIsFast, lines, depth, width, panel);
  else if (source.depthIsFast)
    packTransposed<AsTheyAre>(from, lines, depth, width, panel);
  else
    packCopy(from, lines, depth, width, panel);
}
