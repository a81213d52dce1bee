//===- MicroKernels.h - GEMMs' inner loops in plain C++ ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_UNIT_RUNTIME_MICROKERNELS_H
#define REPRISE_TEST_UNIT_RUNTIME_MICROKERNELS_H

#include "reprise/ABI/Gemm.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <utility>
#include <vector>

namespace reprise::runtime::test {

/// What takes a denormal number for zero.
inline float flush(float value) {
  return std::fabs(value) < 0x1p-126f ? std::copysign(0.0f, value) : value;
}

inline float toFloat(uint16_t value) {
  uint32_t bits = uint32_t(value) << 16;
  float result;
  memcpy(&result, &bits, sizeof(result));
  return result;
}

/// One step of an element's sum, of two words that are f32 or pairs of bf16.
template <bool Pairs>
float multiplyAdd(const void *a, const void *b, int64_t atA, int64_t atB,
                  float sum) {
  if constexpr (!Pairs)
    return std::fma(static_cast<const float *>(a)[atA],
                    static_cast<const float *>(b)[atB], sum);
  for (int odd = 1; odd >= 0; --odd) {
    auto value = [&](const void *pairs, int64_t at) {
      return flush(toFloat(static_cast<const uint16_t *>(pairs)[2 * at + odd]));
    };
    sum = flush(std::fma(value(a, atA), value(b, atB), sum));
  }
  return sum;
}

/// One step of AMX: 32 products of bf16, `a(p) * b(p)`, and a sum.
template <typename A, typename B>
float addTileStep(A a, B b, float sum) {
  float chains[2] = {};
  for (int p = 0; p < REPRISE_GEMM_AMX_DEPTH; ++p)
    chains[p % 2] = flush(std::fma(flush(a(p)), flush(b(p)), chains[p % 2]));
  return flush(sum + flush(chains[0] + chains[1]));
}

/// Through f64, which holds both neighbours and what is between them.
inline uint16_t toBF16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  if (value != value)
    return 0x7FC0;
  auto down = uint16_t(bits >> 16), up = uint16_t(down + 1);
  if (down == 0x7F80 || down == 0xFF80) // An infinity.
    return down;
  double below = double(toFloat(down)), exact = double(value);
  // Above the largest number comes what would be the next power of two.
  double above = (up & 0x7F80) == 0x7F80 ? std::copysign(0x1p128, below)
                                         : double(toFloat(up));
  double toBelow = std::fabs(exact - below), toAbove = std::fabs(above - exact);
  if (toBelow != toAbove)
    return toBelow < toAbove ? down : up;
  return down & 1 ? up : down;
}

/// The sum of the squares of some rows and columns of C, word by word, in a
/// chain for each column or, of a tile of AMX, in two; `flushes` if denormal
/// numbers are zeros.
inline float statedSquares(const float *c, int64_t ldc, int64_t rows,
                           int64_t cols, bool flushes, bool isTile) {
  auto keep = [&](float value) { return flushes ? flush(value) : value; };
  constexpr int64_t kCols = REPRISE_GEMM_SQUARES_COLS;
  float sums[2 * kCols] = {};
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < cols; ++j) {
      float &sum = sums[(isTile ? r % 2 * kCols : 0) + j];
      float x = keep(c[r * ldc + j]);
      sum = keep(std::fma(x, x, sum));
    }
  for (int64_t half = isTile ? kCols : kCols / 2; half > 0; half /= 2)
    for (int64_t l = 0; l < half; ++l)
      sums[l] = sums[l] + sums[l + half];
  return sums[0];
}

/// Those of all blocks of a GEMM, as RepriseGemm has them.
inline std::vector<float> statedSquares(const RepriseGemm &shape,
                                        const float *c, bool isAmx = false) {
  constexpr int64_t kRows = REPRISE_GEMM_SQUARES_ROWS,
                    kCols = REPRISE_GEMM_SQUARES_COLS,
                    kTile = REPRISE_GEMM_AMX_ROW_ALIGN;
  auto sum = [&](int64_t i, int64_t j, int64_t rows, bool isTile) {
    return statedSquares(
        c + i * shape.ldc + j, shape.ldc, std::min(rows, shape.m - i),
        std::min(kCols, shape.n - j), shape.typeAB == REPRISE_BF16, isTile);
  };
  std::vector<float> squares;
  for (int64_t i = 0; i < shape.m; i += kRows)
    for (int64_t j = 0; j < shape.n; j += kCols) {
      bool isInTile =
          isAmx && i / kTile * kTile + kTile <= shape.m && j + kCols <= shape.n;
      squares.push_back(!isInTile        ? sum(i, j, kRows, false)
                        : i % kTile == 0 ? sum(i, j, kTile, true)
                                         : 0);
    }
  return squares;
}

/// Whether sums are the same to the bit, or no numbers.
inline bool areSame(const std::vector<float> &sums,
                    const std::vector<float> &others) {
  return std::equal(
      sums.begin(), sums.end(), others.begin(), others.end(),
      [](float a, float b) { return a == b || (a != a && b != b); });
}

/// Tiles that were asked to go past the caches.
inline std::atomic<int64_t> numStreamed{0};

/// From the sums of a tile to where it goes.
template <int Rows, int Cols>
void endTile(const RepriseTile *tile, const float *sums) {
  if (tile->streams) {
    ++numStreamed;
    EXPECT_FALSE(tile->addToC || tile->bias || tile->rounded);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tile->c) % 64, 0u);
    EXPECT_EQ(tile->ldc % 16, 0);
  }
  for (int r = 0; r < Rows; ++r)
    for (int j = 0; j < Cols; ++j) {
      float value = tile->alpha * sums[r * Cols + j];
      if (tile->addToC)
        value = tile->c[r * tile->ldc + j] + value;
      if (tile->bias)
        value = value + tile->bias[j];
      if (tile->rounded)
        tile->rounded[r * tile->ldRounded + j] = toBF16(value);
      else
        tile->c[r * tile->ldc + j] = value;
    }
  if (tile->squares)
    *tile->squares = statedSquares(tile->c, tile->ldc, Rows, Cols,
                                   /*flushes=*/true, /*isTile=*/true);
}

/// Word `i` of row `p` of a panel, of f32 or pairs, from rows of `source`; or
/// with `transposes` from a column.
template <bool Pairs>
void packWord(const void *source, int64_t ld, bool transposes, int64_t p,
              int64_t i, char *word) {
  constexpr int kPerWord = Pairs ? 2 : 1, kSize = 4 / kPerWord;
  for (int half = 0; half < kPerWord; ++half) {
    int64_t row = kPerWord * p + half, col = i;
    if (transposes)
      std::swap(row, col);
    memcpy(word + half * kSize,
           static_cast<const char *>(source) + (row * ld + col) * kSize, kSize);
  }
}

/// Tiles that read A where it lies, and that copy it.
inline std::atomic<int64_t> numReadA{0}, numCopiedA{0};

/// A's panel. Packs it if it is not packed yet; `room` is for one that is not
/// to be.
template <int Rows, bool Pairs>
const void *getPanelOfA(const RepriseTile *tile, std::vector<float> &room) {
  if (tile->form == REPRISE_TILE_PACKED)
    return tile->a;
  EXPECT_EQ(tile->k % 4, 0);
  void *panel = tile->packed;
  if (tile->form == REPRISE_TILE_READS_A) {
    ++numReadA;
    room.resize(size_t(tile->k * Rows));
    panel = room.data();
  } else {
    EXPECT_EQ(tile->packed, tile->a);
  }
  const bool copies = tile->form == REPRISE_TILE_COPIES_A;
  numCopiedA += copies;
  for (int64_t p = 0; p < tile->k; ++p)
    for (int i = 0; i < Rows; ++i)
      packWord<Pairs>(tile->source, tile->ldSource, !copies, p, i,
                      static_cast<char *>(panel) + 4 * (p * Rows + i));
  return panel;
}

/// How many rows of a next panel tiles have packed.
inline std::atomic<int64_t> numAhead{0};

/// Packs rows of the next panel of B.
template <int Cols, bool Pairs>
void packAhead(const RepriseTile *tile) {
  EXPECT_LE(tile->aheadRows * tile->nextSteps, tile->k)
      << "steps for " << tile->k / tile->nextSteps << " rows";
  for (int64_t row = 0; row < tile->aheadRows; ++row)
    for (int j = 0; j < Cols; ++j)
      packWord<Pairs>(tile->aheadSource, tile->ldAhead, /*transposes=*/false,
                      row, j,
                      static_cast<char *>(tile->ahead) + 4 * (row * Cols + j));
  numAhead += tile->aheadRows;
}

/// What RepriseTile asks for, to the letter.
template <int Rows, int Cols, bool Pairs = false>
void microKernel(const RepriseTile *tile) {
  EXPECT_EQ(tile->squares, nullptr) << "only tiles of AMX have them";
  EXPECT_NE(tile->next, nullptr);
  EXPECT_GE(tile->nextRows, 1);
  EXPECT_GE(tile->nextSteps, REPRISE_TILE_FETCH_STEPS);
  EXPECT_EQ(tile->nextSteps & (tile->nextSteps - 1), 0);
  std::vector<float> room;
  const void *a = getPanelOfA<Rows, Pairs>(tile, room);
  packAhead<Cols, Pairs>(tile);
  float sums[Rows * Cols] = {};
  for (int64_t p = 0; p < tile->k; ++p)
    for (int r = 0; r < Rows; ++r)
      for (int j = 0; j < Cols; ++j)
        sums[r * Cols + j] = multiplyAdd<Pairs>(
            a, tile->b, p * Rows + r, p * Cols + j, sums[r * Cols + j]);
  endTile<Rows, Cols>(tile, sums);
}

/// The same of AMX.
template <int Rows, int Cols>
void amxMicroKernel(const RepriseTile *tile) {
  constexpr int kWords = REPRISE_GEMM_AMX_DEPTH / 2;
  EXPECT_EQ(tile->k % kWords, 0);
  EXPECT_EQ(tile->form, REPRISE_TILE_PACKED);
  auto *a = static_cast<const uint16_t *>(tile->a);
  auto *b = static_cast<const uint16_t *>(tile->b);
  float sums[Rows * Cols] = {};
  if (tile->continues)
    memcpy(sums, tile->sums, sizeof(sums));
  for (int64_t q = 0; q < tile->k; q += kWords)
    for (int r = 0; r < Rows; ++r)
      for (int j = 0; j < Cols; ++j)
        sums[r * Cols + j] = addTileStep(
            [&](int p) { return toFloat(a[2 * (q * Rows + r * kWords) + p]); },
            [&](int p) {
              return toFloat(b[2 * ((q + p / 2) * Cols + j) + p % 2]);
            },
            sums[r * Cols + j]);
  if (tile->behind)
    endTile<Rows, Cols>(tile->behind, tile->behind->sums);
  if (tile->goesOn)
    return void(memcpy(tile->sums, sums, sizeof(sums)));
  if (!tile->isPlain)
    return endTile<Rows, Cols>(tile, sums);
  EXPECT_FALSE(tile->rounded || tile->bias || tile->addToC || tile->streams ||
               tile->squares);
  EXPECT_EQ(tile->alpha, 1);
  for (int r = 0; r < Rows; ++r)
    memcpy(tile->c + r * tile->ldc, sums + r * Cols, Cols * sizeof(float));
}

template <int Rows, int Cols, bool Pairs = false>
constexpr RepriseMicroKernel tile(uint32_t isa) {
  return {microKernel<Rows, Cols, Pairs>, Rows, Cols, isa,
          Pairs ? REPRISE_BF16 : REPRISE_F32};
}

template <int Rows, int Cols>
constexpr RepriseMicroKernel tileOfPairs(uint32_t isa) {
  return tile<Rows, Cols, true>(isa);
}

/// The shapes that the compiler emits, and one that no vector fits.
inline constexpr RepriseMicroKernel kMicroKernels[] = {
    tile<6, 16>(REPRISE_ISA_V3), tile<12, 32>(REPRISE_ISA_V4),
    tile<8, 32>(REPRISE_ISA_V4), tile<3, 8>(REPRISE_ISA_V4),
    tile<4, 16>(REPRISE_ISA_V3)};
inline constexpr RepriseMicroKernel kPairMicroKernels[] = {
    tileOfPairs<12, 32>(REPRISE_ISA_AVX512_BF16),
    tileOfPairs<8, 32>(REPRISE_ISA_AVX512_BF16),
    tileOfPairs<3, 8>(REPRISE_ISA_AVX512_BF16)};
inline constexpr RepriseMicroKernel kAmxMicroKernel = {
    amxMicroKernel<32, 32>, 32, 32, REPRISE_ISA_AMX_BF16, REPRISE_BF16};

/// A kernel of these, with an instruction set that this processor has: what
/// packs its panels may use it.
inline RepriseMicroKernel forThisProcessor(RepriseMicroKernel kernel) {
  if (!__builtin_cpu_supports("avx512dq"))
    kernel.isa = REPRISE_ISA_V3;
  return kernel;
}

} // namespace reprise::runtime::test

#endif // REPRISE_TEST_UNIT_RUNTIME_MICROKERNELS_H
