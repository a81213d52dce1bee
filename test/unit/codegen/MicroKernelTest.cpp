//===- MicroKernelTest.cpp - Every tile gives the same bits -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelRunner.h"
#include "reprise/ABI/Gemm.h"
#include "reprise/Codegen/CPU/MicroKernels.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstring>
#include <immintrin.h>
#include <random>

using namespace reprise::codegen;

static uint32_t bitsOf(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/// What a micro-kernel may do with a tile, each of them or not.
struct Options {
  bool add, hasBias, rounds, scales;
};

/// Words of four bytes, f32 or pairs of bf16.
using Words = std::vector<uint32_t>;

/// What a panel, `[k][width]`, is packed from: rows that lie further apart than
/// they are long.
struct Unpacked {
  std::vector<uint16_t> source; ///< Halves of words.
  Words packed;
  int64_t ld;

  Unpacked(bool transposes, const uint32_t *panel, int64_t k, int64_t width,
           bool hasBF16x2)
      : packed(k * width + 1, 7) {
    int64_t perWord = hasBF16x2 ? 2 : 1;
    ld = (transposes ? k * perWord : width) + 3;
    source.assign((transposes ? width : k * perWord) * ld * 2 / perWord,
                  0xFFFF);
    for (int64_t p = 0; p < k; ++p)
      for (int64_t i = 0; i < width; ++i)
        for (int64_t half = 0; half < 2; ++half) {
          auto bits = uint16_t(panel[p * width + i] >> 16 * half);
          int64_t row = hasBF16x2 ? 2 * p + half : p, col = i;
          if (transposes)
            std::swap(row, col);
          source[hasBF16x2 ? row * ld + col : 2 * (row * ld + col) + half] =
              bits;
        }
  }
  /// As a panel of A, in a form that is not packed.
  void giveTo(RepriseTile &tile, int form) {
    tile.form = form;
    tile.source = source.data(), tile.ldSource = ld;
    tile.a = tile.packed = packed.data();
  }
  /// As the next panel of B, or its first rows.
  void giveAheadTo(RepriseTile &tile, int64_t rows) {
    tile.aheadSource = source.data(), tile.ldAhead = ld;
    tile.aheadRows = rows, tile.ahead = packed.data();
  }
  void check(const uint32_t *panel) const {
    EXPECT_TRUE(std::equal(packed.begin(), packed.end() - 1, panel));
    EXPECT_EQ(packed.back(), 7u) << "written behind the panel";
  }
  /// That it is packed where its form says so, and nothing is written if not.
  void check(const uint32_t *panel, int form) const {
    if (form == REPRISE_TILE_TRANSPOSES_A || form == REPRISE_TILE_COPIES_A)
      return check(panel);
    EXPECT_EQ(packed, Words(packed.size(), 7)) << "written in form " << form;
  }
};

/// The forms that a micro-kernel has of so many steps.
static std::vector<int> formsOf(int64_t steps) {
  std::vector<int> forms = {REPRISE_TILE_PACKED};
  if (steps > 0 && steps % 4 == 0)
    forms.insert(forms.end(), {REPRISE_TILE_TRANSPOSES_A, REPRISE_TILE_READS_A,
                               REPRISE_TILE_COPIES_A});
  return forms;
}

/// A tile inside a larger matrix, of whose other elements none may change.
static void checkTile(KernelRunner &runner, const MicroKernel &kernel,
                      const Floats &a, const Floats &b, int64_t k, int form,
                      Options options) {
  const float alpha = options.scales ? 0.7f : 1;
  constexpr uint16_t kCanary = 0x1234;
  const int64_t ldc = kernel.cols + 5;
  Floats before = randomFloats(kernel.rows * ldc, 3);
  if (!options.add) // Nothing reads what is there.
    std::fill(before.begin(), before.end(), NAN);
  Floats bias = randomFloats(kernel.cols, 4), c = before;
  std::vector<uint16_t> rounded(kernel.rows * ldc, kCanary);
  RepriseTile tile = {};
  tile.a = a.data(), tile.b = b.data(), tile.k = k;
  tile.c = c.data(), tile.ldc = ldc;
  if (options.rounds)
    tile.rounded = rounded.data(), tile.ldRounded = ldc;
  if (options.hasBias)
    tile.bias = bias.data();
  tile.alpha = alpha, tile.addToC = options.add;
  tile.next = b.data(), tile.nextStride = 4, tile.nextRows = 2;
  tile.nextSteps = 8;
  auto *panel = reinterpret_cast<const uint32_t *>(a.data());
  Unpacked unpacked(form != REPRISE_TILE_COPIES_A, panel, k, kernel.rows,
                    false);
  unpacked.giveTo(tile, form);
  if (form == REPRISE_TILE_PACKED)
    tile.a = a.data();
  reinterpret_cast<RepriseMicroKernelFn>(runner.address(kernel.symbol()))(
      &tile);
  unpacked.check(panel, form);
  for (int64_t r = 0; r < kernel.rows; ++r)
    for (int64_t j = 0; j < ldc; ++j) {
      int64_t at = r * ldc + j;
      float expected = before[at];
      if (j < kernel.cols) {
        float sum = 0;
        for (int64_t p = 0; p < k; ++p)
          sum = std::fma(a[p * kernel.rows + r], b[p * kernel.cols + j], sum);
        float product = alpha * sum;
        expected = options.add ? expected + product : product;
        if (options.hasBias)
          expected = expected + bias[j];
      }
      bool isRounded = options.rounds && j < kernel.cols;
      // To nearest, ties to even: no sum here is large.
      uint32_t bits = bitsOf(expected);
      ASSERT_EQ(rounded[at],
                isRounded ? (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 : kCanary)
          << kernel.symbol() << " k " << k << " at " << r << ", " << j;
      ASSERT_EQ(bitsOf(c[at]), bitsOf(options.rounds ? before[at] : expected))
          << kernel.symbol() << " k " << k << " at " << r << ", " << j << ": "
          << c[at] << " for " << expected;
    }
}

TEST(MicroKernel, IsTheChainOfFusedMultiplyAdds) {
  KernelRunner runner("module {}");
  int ran = 0;
  for (const MicroKernel &kernel : getMicroKernels()) {
    if (kernel.hasBF16x2() ||
        (kernel.isa >= REPRISE_ISA_V4 && !__builtin_cpu_supports("avx512vl")))
      continue;
    ++ran;
    // None, fewer than the unrolling, more with and without a remainder.
    for (int64_t k : {0, 1, 3, 4, 8, 13, 256}) {
      Floats a = randomFloats(k * kernel.rows, 1),
             b = randomFloats(k * kernel.cols, 2);
      for (int form : formsOf(k))
        for (int flags = 0; flags < 16; ++flags)
          checkTile(runner, kernel, a, b, k, form,
                    {bool(flags & 1), bool(flags & 2), bool(flags & 4),
                     bool(flags & 8)});
    }
  }
  EXPECT_GE(ran, 1);
}

// Past the caches, to whole lines and to nothing else.
TEST(MicroKernel, StreamsItsResult) {
  KernelRunner runner("module {}");
  constexpr int64_t k = 8;
  for (const MicroKernel &kernel : getMicroKernels()) {
    if (kernel.hasBF16x2() ||
        (kernel.isa >= REPRISE_ISA_V4 && !__builtin_cpu_supports("avx512vl")))
      continue;
    const int64_t ldc = kernel.cols + kLine;
    Floats a = randomFloats(k * kernel.rows, 1),
           b = randomFloats(k * kernel.cols, 2);
    auto run = [&](bool streams) {
      Floats room((kernel.rows + 1) * ldc, 7);
      float *c = alignToLine(room);
      RepriseTile tile = {};
      tile.a = a.data(), tile.b = tile.next = b.data(), tile.k = k;
      tile.c = c, tile.ldc = ldc, tile.alpha = 0.7f;
      tile.nextSteps = REPRISE_TILE_FETCH_STEPS;
      tile.streams = streams;
      reinterpret_cast<RepriseMicroKernelFn>(runner.address(kernel.symbol()))(
          &tile);
      return Floats(c, c + kernel.rows * ldc);
    };
    EXPECT_EQ(run(true), run(false)) << kernel.symbol();
  }
}

// Meanwhile rows of another panel are packed: as many as are asked for, at any
// pace, whatever else the tile does, and nothing behind them.
TEST(MicroKernel, PacksRowsAhead) {
  KernelRunner runner("module {}");
  int ran = 0;
  for (const MicroKernel &kernel : getMicroKernels()) {
    if (kernel.isAmx() ||
        (kernel.isa >= REPRISE_ISA_V4 && !__builtin_cpu_supports("avx512vl")) ||
        (kernel.hasBF16x2() && !__builtin_cpu_supports("avx512bf16")))
      continue;
    ++ran;
    for (int64_t k : {4, 7, 64, 255})
      for (int32_t pace : {4, 8, 16, 64})
        for (int64_t rows : {k / pace, k / pace / 2}) {
          Floats a = randomFloats(k * kernel.rows, 1),
                 b = randomFloats(k * kernel.cols, 2),
                 next = randomFloats(rows * kernel.cols, 3),
                 c(kernel.rows * kernel.cols);
          auto *panel = reinterpret_cast<const uint32_t *>(next.data());
          RepriseTile tile = {};
          tile.a = a.data(), tile.b = tile.next = b.data(), tile.k = k;
          tile.c = c.data(), tile.ldc = kernel.cols, tile.alpha = 1;
          tile.nextRows = 1, tile.nextSteps = pace;
          auto run = [&] {
            Unpacked unpacked(/*transposes=*/false, panel, rows, kernel.cols,
                              kernel.hasBF16x2());
            unpacked.giveAheadTo(tile, rows);
            reinterpret_cast<RepriseMicroKernelFn>(
                runner.address(kernel.symbol()))(&tile);
            unpacked.check(panel);
          };
          for (int form : formsOf(k)) {
            Unpacked ofA(form != REPRISE_TILE_COPIES_A,
                         reinterpret_cast<const uint32_t *>(a.data()), k,
                         kernel.rows, kernel.hasBF16x2());
            if (form != REPRISE_TILE_PACKED)
              ofA.giveTo(tile, form);
            run();
          }
        }
  }
  EXPECT_GE(ran, 1);
}

namespace {
/// Panels of pairs, the odd number in the high half, and the same as f32 with
/// the odd number first.
struct PairPanel {
  std::vector<uint32_t> pairs;
  Floats floats;

  PairPanel(int64_t rows, int64_t width, uint32_t seed, bool extreme)
      : pairs(rows * width), floats(2 * rows * width) {
    std::mt19937 random(seed);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < width; ++i) {
        uint32_t even = randomBF16(random, extreme);
        uint32_t odd = randomBF16(random, extreme);
        pairs[row * width + i] = odd << 16 | even;
        odd <<= 16, even <<= 16;
        memcpy(&floats[2 * row * width + i], &odd, 4);
        memcpy(&floats[(2 * row + 1) * width + i], &even, 4);
      }
  }
};
} // namespace

// What makes GEMMs of bf16 the same on every processor: the instruction for
// pairs is two fused multiply-adds, with zeros in place of denormal numbers.
TEST(MicroKernel, PairsAreTwoMultiplyAdds) {
  if (!__builtin_cpu_supports("avx512bf16"))
    GTEST_SKIP() << "needs AVX512_BF16";
  KernelRunner runner("module {}");
  auto run = [&](const std::string &symbol, RepriseTile tile) {
    tile.alpha = 1, tile.nextSteps = REPRISE_TILE_FETCH_STEPS;
    reinterpret_cast<RepriseMicroKernelFn>(runner.address(symbol))(&tile);
  };
  int compared = 0;
  for (const MicroKernel &kernel : getMicroKernels()) {
    if (!kernel.hasBF16x2() || kernel.isAmx())
      continue;
    auto same = llvm::find_if(getMicroKernels(), [&](const MicroKernel &other) {
      return !other.hasBF16x2() && other.rows == kernel.rows &&
             other.cols == kernel.cols;
    });
    ASSERT_NE(same, getMicroKernels().end());
    for (bool extreme : {false, true})
      for (int64_t rows : {0, 1, 3, 4, 7, 120}) {
        PairPanel a(rows, kernel.rows, 1 + rows, extreme);
        PairPanel b(rows, kernel.cols, 2 + rows, extreme);
        Floats byPairs(kernel.rows * kernel.cols, NAN), byFloats = byPairs;
        RepriseTile tile = {};
        tile.a = a.pairs.data(), tile.b = b.pairs.data(), tile.k = rows;
        tile.c = byPairs.data(), tile.ldc = kernel.cols;
        run(kernel.symbol(), tile);
        // Rounded, and with panels that are packed on the way.
        std::vector<uint16_t> rounded(byPairs.size());
        tile.rounded = rounded.data(), tile.ldRounded = kernel.cols;
        for (int form : formsOf(rows)) {
          Unpacked unpacked(form != REPRISE_TILE_COPIES_A, a.pairs.data(), rows,
                            kernel.rows, true);
          RepriseTile packs = tile;
          unpacked.giveTo(packs, form);
          if (form == REPRISE_TILE_PACKED)
            packs.a = tile.a;
          std::fill(rounded.begin(), rounded.end(), 0x1234);
          run(kernel.symbol(), packs);
          unpacked.check(a.pairs.data(), form);
          for (size_t i = 0; i < byPairs.size(); ++i)
            if (uint32_t bits = bitsOf(byPairs[i]); !std::isnan(byPairs[i]))
              ASSERT_EQ(rounded[i], (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)
                  << kernel.symbol() << ", form " << form << ", " << byPairs[i];
        }
        RepriseTile other = {};
        other.a = a.floats.data(), other.b = b.floats.data();
        other.k = 2 * rows;
        other.c = byFloats.data(), other.ldc = kernel.cols;
        unsigned saved = _mm_getcsr();
        _mm_setcsr(saved | _MM_FLUSH_ZERO_ON | _MM_DENORMALS_ZERO_ON);
        run(same->symbol(), other);
        _mm_setcsr(saved);
        for (size_t i = 0; i < byPairs.size(); ++i) {
          ++compared;
          if (!std::isnan(byPairs[i]) || !std::isnan(byFloats[i]))
            ASSERT_EQ(memcmp(&byPairs[i], &byFloats[i], 4), 0)
                << kernel.symbol() << ", " << rows << " pairs, at " << i << ": "
                << byPairs[i] << " for " << byFloats[i];
        }
      }
  }
  EXPECT_GT(compared, 0);
}
