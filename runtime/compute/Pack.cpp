//===- Pack.cpp - Operands of GEMMs as panels -----------------------------===//
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

/// Compiled for AVX-512, and called where there is.
#define AVX512 __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl")))

//===----------------------------------------------------------------------===//
// How words reach a panel
//===----------------------------------------------------------------------===//

/// The first `count` of 16 lanes.
static __mmask16 firstOf16(int64_t count) {
  return count >= 16 ? 0xFFFF : count <= 0 ? 0 : __mmask16((1 << count) - 1);
}

/// Stores the first `count` of 16 words, or all. A store with a mask that ends
/// in the next cache line takes as long as one that fills it: 12 are stored in
/// two.
AVX512 static void storeFirst16(float *to, __m512i words, int64_t count) {
  if (count >= 16)
    return _mm512_storeu_si512(to, words);
  if (count != 12)
    return _mm512_mask_storeu_epi32(to, firstOf16(count), words);
  _mm256_storeu_si256(reinterpret_cast<__m256i *>(to),
                      _mm512_castsi512_si256(words));
  _mm_storeu_si128(reinterpret_cast<__m128i *>(to + 8),
                   _mm512_extracti32x4_epi32(words, 2));
}

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
  AVX512 static void put16(float *panel, int64_t width, int64_t row,
                           __m512i words, int64_t columns) {
    storeFirst16(panel + row * width, words, columns);
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
  AVX512 static void put16(float *panel, int64_t width, int64_t row,
                           __m512i words, int64_t columns) {
    __m512i high = _mm512_and_si512(words, _mm512_set1_epi32(int(0xFFFF0000)));
    float *to = panel + 2 * row * width;
    storeFirst16(to, high, columns);
    storeFirst16(to + width, _mm512_slli_epi32(words, 16), columns);
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

/// One copy per depth, of as many lines as the panel is wide.
template <int Width>
static void packWhole(Source source, int64_t depth, float *panel) {
  for (int64_t p = 0; p < depth;
       ++p, source.data += source.stride, panel += Width) {
    auto *from = reinterpret_cast<const float *>(source.data);
    for (int i = 0; i < Width; i += 16)
      __builtin_prefetch(source.data + kFetchAhead * source.stride + 4 * i);
    int i = 0;
    for (; i + 8 <= Width; i += 8)
      _mm256_storeu_ps(panel + i, _mm256_loadu_ps(from + i));
    for (; i + 4 <= Width; i += 4)
      _mm_storeu_ps(panel + i, _mm_loadu_ps(from + i));
    for (; i < Width; ++i)
      panel[i] = from[i];
  }
}

/// The same with lines that are missing.
static void packSome(Source source, int64_t lines, int64_t depth, int64_t width,
                     float *panel) {
  for (int64_t p = 0; p < depth;
       ++p, source.data += source.stride, panel += width) {
    memcpy(panel, source.data, size_t(lines) * sizeof(float));
    memset(panel + lines, 0, size_t(width - lines) * sizeof(float));
  }
}

/// Both with AVX-512.
AVX512 static void packCopyWide(Source source, int64_t lines, int64_t depth,
                                int64_t width, float *panel) {
  for (int64_t p = 0; p < depth;
       ++p, source.data += source.stride, panel += width)
    for (int64_t i = 0; i < width; i += 16) {
      const char *from = source.data + 4 * i;
      __builtin_prefetch(from + kFetchAhead * source.stride);
      storeFirst16(panel + i,
                   _mm512_maskz_loadu_epi32(firstOf16(lines - i), from),
                   width - i);
    }
}

static void packCopy(Source source, int64_t lines, int64_t depth, int64_t width,
                     float *panel) {
  switch (lines == width ? width : 0) {
  case 6:
    return packWhole<6>(source, depth, panel);
  case 8:
    return packWhole<8>(source, depth, panel);
  case 12:
    return packWhole<12>(source, depth, panel);
  case 16:
    return packWhole<16>(source, depth, panel);
  case 32:
    return packWhole<32>(source, depth, panel);
  }
  packSome(source, lines, depth, width, panel);
}

/// Rows of bf16 as f32, each odd one before its even one.
static void packExpanded(Source source, int64_t lines, int64_t depth,
                         int64_t width, float *panel) {
  int64_t paired = (depth + 1) / 2 * 2;
  for (int64_t p = 0; p < paired; ++p, source.data += source.stride) {
    float *to = panel + (p ^ 1) * width;
    if (p == depth) {
      memset(to, 0, size_t(width) * sizeof(float));
      break;
    }
    for (int64_t i = 0; i < lines; i += 32)
      __builtin_prefetch(source.data + kFetchAhead * source.stride + 2 * i);
    int64_t i = 0;
    for (; i + 8 <= lines; i += 8) {
      __m256i wide = _mm256_cvtepu16_epi32(load<__m128i>(source.data + 2 * i));
      _mm256_storeu_ps(to + i,
                       _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16)));
    }
    for (; i + 4 <= lines; i += 4) {
      __m128i wide = _mm_cvtepu16_epi32(
          _mm_cvtsi64_si128(load<int64_t>(source.data + 2 * i)));
      _mm_storeu_ps(to + i, _mm_castsi128_ps(_mm_slli_epi32(wide, 16)));
    }
    for (; i < width; ++i)
      AsTheyAre::putOne(
          to + i, 0, 0,
          i < lines ? uint32_t(load<uint16_t>(source.data + 2 * i)) << 16 : 0);
  }
}

/// Pairs of two rows of bf16. The last of an odd depth is paired with zeros.
AVX512 static void packTwoWide(Source source, int64_t lines, int64_t depth,
                               int64_t width, float *panel) {
  const __m512i lowHalf = _mm512_set_epi16(
      47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38,
      6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i highHalf = _mm512_add_epi16(lowHalf, _mm512_set1_epi16(16));
  for (int64_t p = 0; p < depth;
       p += 2, source.data += 2 * source.stride, panel += width)
    for (int64_t i = 0; i < width; i += 32) {
      const char *even = source.data + 2 * i, *odd = even + source.stride;
      __builtin_prefetch(even + kFetchAhead * source.stride);
      __builtin_prefetch(odd + kFetchAhead * source.stride);
      int64_t left = lines - i;
      __mmask32 there = left >= 32
                            ? ~__mmask32(0)
                            : (__mmask32(1) << (left < 0 ? 0 : left)) - 1;
      __m512i a = _mm512_maskz_loadu_epi16(there, even);
      __m512i b = p + 1 < depth ? _mm512_maskz_loadu_epi16(there, odd)
                                : _mm512_setzero_si512();
      storeFirst16(panel + i, _mm512_permutex2var_epi16(a, lowHalf, b),
                   width - i);
      if (width - i > 16)
        storeFirst16(panel + i + 16, _mm512_permutex2var_epi16(a, highHalf, b),
                     width - i - 16);
    }
}

/// The same without AVX-512.
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
      AsTheyAre::put<8>(
          panel + i, width, row,
          _mm256_castsi256_ps(_mm256_permute2x128_si256(a, b, 0x20)));
      AsTheyAre::put<8>(
          panel + i + 8, width, row,
          _mm256_castsi256_ps(_mm256_permute2x128_si256(a, b, 0x31)));
    }
    for (; i < width; ++i) {
      uint32_t word = 0;
      if (i < lines)
        word = load<uint16_t>(even + 2 * i);
      if (i < lines && !single)
        word |= uint32_t(load<uint16_t>(odd + 2 * i)) << 16;
      AsTheyAre::putOne(panel + i, width, row, word);
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

/// Word by word, of fewer lines than `columns`.
template <typename Rows>
static void packFew(Source from, int64_t lines, int64_t words, int64_t width,
                    int64_t columns, float *to) {
  for (int64_t row = 0; row < words; ++row)
    for (int64_t i = 0; i < columns; ++i)
      Rows::putOne(to + i, width, row,
                   i < lines
                       ? load<uint32_t>(from.data + i * from.stride + 4 * row)
                       : 0);
}

/// Transposes the quarters of four vectors that are `Step` apart.
template <int Step>
AVX512 static void transposeQuarters(const __m512i *from, __m512i *to) {
  __m512i a = _mm512_shuffle_i32x4(from[0], from[Step], 0x88);
  __m512i b = _mm512_shuffle_i32x4(from[0], from[Step], 0xDD);
  __m512i c = _mm512_shuffle_i32x4(from[2 * Step], from[3 * Step], 0x88);
  __m512i d = _mm512_shuffle_i32x4(from[2 * Step], from[3 * Step], 0xDD);
  to[0] = _mm512_shuffle_i32x4(a, c, 0x88);
  to[Step] = _mm512_shuffle_i32x4(b, d, 0x88);
  to[2 * Step] = _mm512_shuffle_i32x4(a, c, 0xDD);
  to[3 * Step] = _mm512_shuffle_i32x4(b, d, 0xDD);
}

/// Transposes 16 words of up to 16 lines, of which it loads `Lines`: a cache
/// line each, for lines that are a multiple of 4 KiB apart push each other out
/// of L1. Words outside `words` and lines that are missing are
/// zeros.
template <int Lines>
AVX512 static void transpose16(Source from, __mmask16 words, __m512i rows[16]) {
  __m512i line[16], t[16];
#pragma clang loop unroll(full)
  for (int i = 0; i < 16; ++i)
    line[i] = i < Lines
                  ? _mm512_maskz_loadu_epi32(words, from.data + i * from.stride)
                  : _mm512_setzero_si512();
#pragma clang loop unroll(full)
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(line[i], line[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(line[i], line[i + 1]);
  }
  // Word w of lines 4 g .. 4 g + 3 is quarter w / 4 of line[4 g + w % 4].
#pragma clang loop unroll(full)
  for (int g = 0; g < 16; g += 4) {
    line[g] = _mm512_unpacklo_epi64(t[g], t[g + 2]);
    line[g + 1] = _mm512_unpackhi_epi64(t[g], t[g + 2]);
    line[g + 2] = _mm512_unpacklo_epi64(t[g + 1], t[g + 3]);
    line[g + 3] = _mm512_unpackhi_epi64(t[g + 1], t[g + 3]);
  }
#pragma clang loop unroll(full)
  for (int w = 0; w < 4; ++w)
    transposeQuarters<4>(line + w, rows + w);
}

/// As `packLines`, of `Lines` lines that fill `columns` of the panel.
template <int Lines, typename Rows>
AVX512 static void packWide(Source from, int64_t words, int64_t width,
                            int64_t columns, float *to) {
  for (int64_t row = 0; row < words; row += 16) {
    __m512i rows[16];
    int64_t count = words - row;
    transpose16<Lines>({from.data + 4 * row, from.stride}, firstOf16(count),
                       rows);
#pragma clang loop unroll(full)
    for (int i = 0; i < 16; ++i)
      if (i < count)
        Rows::put16(to, width, row + i, rows[i], columns);
  }
}

/// `lines` lines, 16 at a time; what is missing becomes zeros.
template <typename Rows>
static void packTransposedWide(Source source, int64_t lines, int64_t words,
                               int64_t width, float *panel) {
  for (int64_t line = 0; line < width; line += 16) {
    Source from = {source.data + line * source.stride, source.stride};
    int64_t columns = width - line, left = lines - line;
    float *to = panel + line;
    if (left >= 16)
      packWide<16, Rows>(from, words, width, columns, to);
    else if (left == 12)
      packWide<12, Rows>(from, words, width, columns, to);
    else if (left == 8)
      packWide<8, Rows>(from, words, width, columns, to);
    else
      packFew<Rows>(from, left, words, width, columns < 16 ? columns : 16, to);
  }
}

/// Any panel of whole words: groups of lines that fill a vector, then what is
/// left and what is missing.
template <typename Rows>
static void packTransposed(Source source, bool hasAVX512, int64_t lines,
                           int64_t words, int64_t width, float *panel) {
  int64_t line = 0;
  auto next = [&](int64_t count, auto pack) {
    for (; line + count <= lines; line += count)
      pack({source.data + line * source.stride, source.stride}, words, width,
           panel + line);
  };
  if (hasAVX512)
    return packTransposedWide<Rows>(source, lines, words, width, panel);
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

/// Depths of bf16 as pairs; the last of an odd depth is paired with zeros.
template <typename Rows>
static void packPairs(Source source, bool hasAVX512, int64_t lines,
                      int64_t depth, int64_t width, float *panel) {
  packTransposed<Rows>(source, hasAVX512, lines, depth / 2, width, panel);
  if (depth % 2 == 0)
    return;
  for (int64_t line = 0; line < width; ++line) {
    const char *last = source.data + line * source.stride + 2 * (depth - 1);
    Rows::putOne(panel + line, width, depth / 2,
                 line < lines ? load<uint16_t>(last) : 0);
  }
}

/// Tiles of lines that are rows: cache lines are copied.
AVX512 static void packTilesOfRows(Source source, int64_t lines, int64_t depth,
                                   int64_t width, float *panel) {
  for (int64_t first = 0; first < depth; first += 32) {
    int64_t left = depth - first;
    __mmask32 there = left >= 32 ? ~__mmask32(0) : (__mmask32(1) << left) - 1;
    const char *from = source.data + 2 * first;
    for (int64_t i = 0; i < width; ++i, panel += 16, from += source.stride)
      _mm512_storeu_si512(
          panel, _mm512_maskz_loadu_epi16(i < lines ? there : 0, from));
  }
}

/// Tiles of lines that are neighbours: pairs are made, and then transposed.
AVX512 static void packTilesOfColumns(Source source, int64_t lines,
                                      int64_t depth, int64_t width,
                                      float *panel) {
  for (int64_t first = 0; first < depth; first += 32, panel += 16 * width) {
    alignas(64) float pairs[16 * 32];
    const Source from = {source.data + first * source.stride, source.stride};
    int64_t left = depth - first;
    if (left < 32)
      memset(pairs, 0, sizeof(pairs));
    packTwoWide(from, lines, left < 32 ? left : 32, 32, pairs);
    packWide<16, AsTheyAre>({reinterpret_cast<const char *>(pairs), 128}, width,
                            16, 16, panel);
  }
}

//===----------------------------------------------------------------------===//
// Storage that is packed
//===----------------------------------------------------------------------===//

/// From one pair of rows of a panel to the next, in bytes.
static constexpr int64_t kPackedStride = 4 * REPRISE_PACKED_COLS;

static Source findPacked(const PanelSource &source, int64_t row, int64_t col) {
  return {reinterpret_cast<const char *>(source.findPacked(row, col)),
          kPackedStride};
}

/// Words of two depths that lie as the panel has them, as two rows of f32.
static void expandWords(Source from, int64_t words, int64_t width,
                        float *panel) {
  for (int64_t row = 0; row < words; ++row, from.data += from.stride) {
    __builtin_prefetch(from.data + kFetchAhead * from.stride);
    for (int64_t i = 0; i < width; i += 8)
      TwoRows::put<8>(panel + i, width, row,
                      _mm256_castsi256_ps(load<__m256i>(from.data + 4 * i)));
  }
}

/// Of two depths of two lines, four values, the middle ones change places:
/// words of two lines become words of two depths.
static __m128i getExchange() {
  return _mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15);
}

/// Transposes eight depths of eight lines, of which a word has two.
template <typename Rows>
static void transposePacked(Source from, float *to, int64_t width,
                            int64_t row) {
  const __m256i exchange = _mm256_broadcastsi128_si256(getExchange());
  __m256i two[4], t[4];
  for (int i = 0; i < 4; ++i)
    two[i] = _mm256_shuffle_epi8(load<__m256i>(from.data + i * from.stride),
                                 exchange);
  for (int i = 0; i < 4; i += 2) {
    t[i] = _mm256_unpacklo_epi64(two[i], two[i + 1]);
    t[i + 1] = _mm256_unpackhi_epi64(two[i], two[i + 1]);
  }
  for (int w = 0; w < 2; ++w) {
    __m256i low = _mm256_permute2x128_si256(t[w], t[2 + w], 0x20);
    __m256i high = _mm256_permute2x128_si256(t[w], t[2 + w], 0x31);
    Rows::template put<8>(to, width, row + w, _mm256_castsi256_ps(low));
    Rows::template put<8>(to, width, row + 2 + w, _mm256_castsi256_ps(high));
  }
}

/// The same of 16 depths of 16 lines.
template <typename Rows>
AVX512 static void transposePackedWide(Source from, float *to, int64_t width,
                                       int64_t row) {
  const __m512i exchange = _mm512_broadcast_i32x4(getExchange());
  __m512i two[8], t[8], rows[8];
#pragma clang loop unroll(full)
  for (int i = 0; i < 8; ++i)
    two[i] = _mm512_shuffle_epi8(
        _mm512_loadu_si512(from.data + i * from.stride), exchange);
#pragma clang loop unroll(full)
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm512_unpacklo_epi64(two[i], two[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi64(two[i], two[i + 1]);
  }
  transposeQuarters<2>(t, rows);
  transposeQuarters<2>(t + 1, rows + 1);
#pragma clang loop unroll(full)
  for (int w = 0; w < 8; ++w)
    Rows::put16(to, width, row + w, rows[w], 16);
}

/// Lines that are rows of the storage: 32 depths of them are neighbours.
template <typename Rows>
static void transposeWords(const PanelSource &source, bool hasAVX512,
                           int64_t firstLine, int64_t firstDepth, int64_t depth,
                           int64_t width, float *panel) {
  const int64_t lines = hasAVX512 && width % 16 == 0 ? 16 : 8;
  auto *transpose =
      lines == 16 ? transposePackedWide<Rows> : transposePacked<Rows>;
  for (int64_t first = 0; first < depth; first += REPRISE_PACKED_COLS) {
    Source from = findPacked(source, firstLine, firstDepth + first);
    for (int64_t line = 0; line < width; line += lines)
      for (int64_t pair = 0; pair < REPRISE_PACKED_COLS / 2; pair += lines / 2)
        transpose({from.data + line / 2 * from.stride + 8 * pair, from.stride},
                  panel + line, width, first / 2 + pair);
  }
}

/// Of whole panels.
static void packPacked(PanelForm form, bool hasAVX512,
                       const PanelSource &source, int64_t firstLine,
                       int64_t firstDepth, int64_t depth, int64_t width,
                       float *panel) {
  if (source.depthIsFast) {
    auto *transpose = form == PanelForm::Pairs ? transposeWords<AsTheyAre>
                                               : transposeWords<TwoRows>;
    return transpose(source, hasAVX512, firstLine, firstDepth, depth, width,
                     panel);
  }
  Source from = findPacked(source, firstDepth, firstLine);
  if (form == PanelForm::Pairs)
    packCopy(from, width, depth / 2, width, panel);
  else
    expandWords(from, depth / 2, width, panel);
}

void reprise::runtime::packPanel(PanelForm form, bool hasAVX512,
                                 const PanelSource &source, int64_t firstLine,
                                 int64_t lines, int64_t firstDepth,
                                 int64_t depth, int64_t width, float *panel) {
  if (source.isPacked)
    return packPacked(form, hasAVX512, source, firstLine, firstDepth, depth,
                      width, panel);
  int64_t bytes = form == PanelForm::Floats ? 4 : 2;
  bool isFast = source.depthIsFast;
  int64_t row = isFast ? firstLine : firstDepth;
  int64_t col = isFast ? firstDepth : firstLine;
  Source from = {static_cast<const char *>(source.data) +
                     (row * source.stride + col) * bytes,
                 source.stride * bytes};
  switch (form) {
  case PanelForm::Floats:
    return isFast ? packTransposed<AsTheyAre>(from, hasAVX512, lines, depth,
                                              width, panel)
           : hasAVX512 && lines != width
               ? packCopyWide(from, lines, depth, width, panel)
               : packCopy(from, lines, depth, width, panel);
  case PanelForm::Pairs:
    return isFast ? packPairs<AsTheyAre>(from, hasAVX512, lines, depth, width,
                                         panel)
           : hasAVX512 ? packTwoWide(from, lines, depth, width, panel)
                       : packTwo(from, lines, depth, width, panel);
  case PanelForm::Expanded:
    return isFast
               ? packPairs<TwoRows>(from, hasAVX512, lines, depth, width, panel)
               : packExpanded(from, lines, depth, width, panel);
  case PanelForm::Tiles:
    return isFast ? packTilesOfRows(from, lines, depth, width, panel)
                  : packTilesOfColumns(from, lines, depth, width, panel);
  }
}
