//===- AmxTileTest.cpp - The tile of AMX has the stated bits --------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelRunner.h"
#include "reprise/ABI/Gemm.h"
#include "reprise/Codegen/CPU/MicroKernels.h"
#include "runtime/compute/Cpu.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstring>
#include <random>

using namespace reprise::codegen;
namespace runtime = reprise::runtime;

static float toFloat(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

static uint32_t bitsOf(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/// What takes a denormal number for zero.
static float flush(float value) {
  return std::fabs(value) < 0x1p-126f ? std::copysign(0.0f, value) : value;
}

namespace {

constexpr int64_t kDepth = 32;

/// Operands of one tile, as matrices of bf16 and as panels.
struct Operands {
  int64_t rows, cols, depth;
  std::vector<uint16_t> a, b; ///< `[rows][depth]` and `[depth][cols]`
  std::vector<uint16_t> panelA, panelB;

  Operands(int64_t rows, int64_t cols, int64_t depth, bool extreme)
      : rows(rows), cols(cols), depth(depth) {
    std::mt19937 random(uint32_t(depth + 1));
    for (int64_t i = 0; i < rows * depth; ++i)
      a.push_back(randomBF16(random, extreme));
    for (int64_t i = 0; i < cols * depth; ++i)
      b.push_back(randomBF16(random, extreme));
    for (int64_t first = 0; first < depth; first += kDepth)
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t p = first; p < first + kDepth; ++p)
          panelA.push_back(a[r * depth + p]);
    for (int64_t p = 0; p < depth; p += 2)
      for (int64_t j = 0; j < cols; ++j)
        for (int64_t half = 0; half < 2; ++half)
          panelB.push_back(b[(p + half) * cols + j]);
  }

  /// The sum as RepriseTile's comment has it, from `sum` on.
  float sum(int64_t r, int64_t j, float sum) const {
    for (int64_t first = 0; first < depth; first += kDepth) {
      float chain[2] = {};
      for (int64_t p = first; p < first + kDepth; ++p)
        chain[p % 2] = flush(std::fma(
            flush(toFloat(uint32_t(a[r * depth + p]) << 16)),
            flush(toFloat(uint32_t(b[p * cols + j]) << 16)), chain[p % 2]));
      sum = flush(sum + flush(chain[0] + chain[1]));
    }
    return sum;
  }
};

struct AmxTile : testing::Test {
  void SetUp() override {
    if (runtime::cpuLevel() <= runtime::kPortableLevel)
      GTEST_SKIP() << "needs AMX_BF16";
    for (const MicroKernel &each : getMicroKernels())
      if (each.isAmx())
        kernel = &each;
    ASSERT_TRUE(kernel);
    runner = std::make_unique<KernelRunner>("module {}");
  }
  /// A tile of panels, of rows `ld` apart, with nothing else to do.
  RepriseTile makeTile(const Operands &operands, float *c, int64_t ld) const {
    RepriseTile tile = {};
    tile.a = operands.panelA.data(), tile.b = operands.panelB.data();
    tile.k = operands.depth / 2, tile.alpha = 1;
    tile.c = c, tile.ldc = tile.ldRounded = ld;
    return tile;
  }
  /// What RepriseTile has for the squares of a tile.
  float sumSquares(const float *c, int64_t ld) const {
    float sums[2 * REPRISE_GEMM_SQUARES_COLS] = {};
    for (int64_t r = 0; r < kernel->rows; ++r)
      for (int64_t j = 0; j < kernel->cols; ++j) {
        float &sum = sums[r % 2 * REPRISE_GEMM_SQUARES_COLS + j];
        sum = std::fma(c[r * ld + j], c[r * ld + j], sum);
      }
    for (int64_t half = REPRISE_GEMM_SQUARES_COLS; half > 0; half /= 2)
      for (int64_t l = 0; l < half; ++l)
        sums[l] = sums[l] + sums[l + half];
    return sums[0];
  }
  void run(const RepriseTile &tile) {
    runtime::TileRegisters registers(true);
    reinterpret_cast<RepriseMicroKernelFn>(runner->address(kernel->symbol()))(
        &tile);
  }

  const MicroKernel *kernel = nullptr;
  std::unique_ptr<KernelRunner> runner;
};

} // namespace

// Zeros of both signs, denormal numbers and infinities included; whether or not
// something is fetched meanwhile.
TEST_F(AmxTile, SumsHaveTheStatedOrder) {
  const int64_t cols = kernel->cols;
  for (bool extreme : {false, true})
    for (int64_t depth : {0, 32, 64, 352}) {
      Operands operands(kernel->rows, cols, depth, extreme);
      Floats c(kernel->rows * cols, NAN);
      RepriseTile tile = makeTile(operands, c.data(), cols);
      if (extreme) {
        tile.next = operands.b.data(), tile.nextStride = 4, tile.nextRows = 2;
        tile.nextSteps = REPRISE_TILE_FETCH_STEPS;
      }
      run(tile);
      for (size_t i = 0; i < c.size(); ++i) {
        float expected = operands.sum(int64_t(i) / cols, int64_t(i) % cols, 0);
        if (!std::isnan(expected) || !std::isnan(c[i]))
          ASSERT_EQ(bitsOf(c[i]), bitsOf(expected))
              << "depth " << depth << " at " << i << ": " << c[i] << " for "
              << expected;
      }
    }
}

// Inside a larger matrix, of whose other elements none may change: added to C,
// with a bias, rounded and scaled, each of them or not; with the sum of its
// squares.
TEST_F(AmxTile, EndsAsItIsTold) {
  constexpr uint16_t kCanary = 0x1234;
  const int64_t cols = kernel->cols, ld = cols + 5;
  Operands operands(kernel->rows, cols, 96, false);
  Floats bias = randomFloats(cols, 4);
  for (int flags = 0; flags < 16; ++flags) {
    bool adds = flags & 1, rounds = flags & 4;
    const float alpha = flags & 8 ? 0.7f : 1;
    Floats before = randomFloats(kernel->rows * ld, 3);
    if (!adds) // Nothing reads what is there.
      std::fill(before.begin(), before.end(), NAN);
    Floats c = before;
    std::vector<uint16_t> rounded(c.size(), kCanary);
    RepriseTile tile = makeTile(operands, c.data(), ld);
    tile.addToC = adds, tile.alpha = alpha;
    tile.bias = flags & 2 ? bias.data() : nullptr;
    tile.rounded = rounds ? rounded.data() : nullptr;
    float squares = NAN;
    tile.squares = rounds ? nullptr : &squares;
    run(tile);
    if (!rounds)
      ASSERT_EQ(bitsOf(squares), bitsOf(sumSquares(c.data(), ld)));
    for (int64_t r = 0; r < kernel->rows; ++r)
      for (int64_t j = 0; j < ld; ++j) {
        int64_t at = r * ld + j;
        float expected = before[at];
        if (j < cols) {
          float product = alpha * operands.sum(r, j, 0);
          expected = adds ? expected + product : product;
          if (tile.bias)
            expected = expected + bias[j];
        }
        // To nearest, ties to even: no sum here is large.
        uint32_t bits = bitsOf(expected);
        ASSERT_EQ(rounded[at], rounds && j < cols
                                   ? (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
                                   : kCanary)
            << "flags " << flags << " at " << r << ", " << j;
        ASSERT_EQ(bitsOf(c[at]), bitsOf(rounds ? before[at] : expected))
            << "flags " << flags << " at " << r << ", " << j;
      }
  }
}

// Straight from the tile registers, inside a larger matrix.
TEST_F(AmxTile, PlainResultIsWrittenAsItIs) {
  const int64_t cols = kernel->cols, ld = cols + 5;
  Operands operands(kernel->rows, cols, 96, false);
  Floats c(kernel->rows * ld, NAN);
  RepriseTile tile = makeTile(operands, c.data(), ld);
  tile.isPlain = 1;
  tile.alpha = 0.7f; // Nobody multiplies by it.
  run(tile);
  for (int64_t r = 0; r < kernel->rows; ++r)
    for (int64_t j = 0; j < ld; ++j)
      ASSERT_EQ(bitsOf(c[r * ld + j]),
                bitsOf(j < cols ? operands.sum(r, j, 0) : NAN))
          << "at " << r << ", " << j;
}

// Past the caches, to whole lines and to nothing else; the sum of the squares
// comes beside it.
TEST_F(AmxTile, StreamsItsResult) {
  const int64_t cols = kernel->cols, ld = cols + kLine;
  Operands operands(kernel->rows, cols, 96, false);
  Floats room((kernel->rows + 1) * ld, NAN);
  float *c = alignToLine(room);
  RepriseTile tile = makeTile(operands, c, ld);
  tile.alpha = 0.7f, tile.streams = 1;
  float squares = NAN;
  tile.squares = &squares;
  run(tile);
  EXPECT_EQ(bitsOf(squares), bitsOf(sumSquares(c, ld)));
  for (int64_t r = 0; r < kernel->rows; ++r)
    for (int64_t j = 0; j < ld; ++j)
      ASSERT_EQ(bitsOf(c[r * ld + j]),
                bitsOf(j < cols ? 0.7f * operands.sum(r, j, 0) : NAN))
          << "at " << r << ", " << j;
}

// The same while another tile is computed, of fewer steps than it has rows for,
// as many, more, or none; that tile leaves its sums where they had been.
TEST_F(AmxTile, StreamsTheTileBehind) {
  const int64_t cols = kernel->cols, ld = cols + kLine;
  Operands operands(kernel->rows, cols, 96, false);
  for (int64_t depth : {0, 32, 256, 352})
    for (bool sumsSquares : {false, true}) {
      Floats room((kernel->rows + 1) * ld, NAN), sums(kernel->rows * cols, NAN);
      RepriseTile behind = makeTile(operands, alignToLine(room), ld);
      behind.alpha = 0.7f, behind.streams = behind.goesOn = 1;
      behind.sums = sums.data();
      float squares = NAN;
      behind.squares = sumsSquares ? &squares : nullptr;
      run(behind);
      EXPECT_TRUE(std::isnan(behind.c[0]) && std::isnan(squares));

      Operands others(kernel->rows, cols, depth, false);
      RepriseTile tile = makeTile(others, nullptr, 0);
      tile.goesOn = 1, tile.sums = sums.data(), tile.behind = &behind;
      run(tile);
      if (sumsSquares)
        EXPECT_EQ(bitsOf(squares), bitsOf(sumSquares(behind.c, ld)));
      for (int64_t r = 0; r < kernel->rows; ++r)
        for (int64_t j = 0; j < ld; ++j) {
          ASSERT_EQ(bitsOf(behind.c[r * ld + j]),
                    bitsOf(j < cols ? 0.7f * operands.sum(r, j, 0) : NAN))
              << "at " << r << ", " << j;
          if (j < cols)
            ASSERT_EQ(bitsOf(sums[r * cols + j]), bitsOf(others.sum(r, j, 0)))
                << "at " << r << ", " << j;
        }
    }
}

// A chain may be cut between any two steps: it lies in f32 meanwhile, and C is
// not touched before its end.
TEST_F(AmxTile, SumsGoOnWhereTheyStopped) {
  const int64_t cols = kernel->cols;
  Operands first(kernel->rows, cols, 64, false);
  Operands second(kernel->rows, cols, 160, false);
  Floats c(kernel->rows * cols, NAN), sums = c;
  RepriseTile tile = makeTile(first, nullptr, 0);
  tile.sums = sums.data(), tile.goesOn = 1;
  tile.alpha = NAN, tile.bias = c.data(); // What an end would use.
  run(tile);
  tile = makeTile(second, c.data(), cols);
  tile.sums = sums.data(), tile.continues = 1;
  Floats stopped = sums;
  run(tile);
  EXPECT_EQ(stopped, sums);
  for (size_t i = 0; i < c.size(); ++i) {
    int64_t r = int64_t(i) / cols, j = int64_t(i) % cols;
    float expected = first.sum(r, j, 0);
    ASSERT_EQ(bitsOf(sums[i]), bitsOf(expected)) << "at " << i;
    ASSERT_EQ(bitsOf(c[i]), bitsOf(second.sum(r, j, expected))) << "at " << i;
  }
}
