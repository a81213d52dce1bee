//===- GemmTest.cpp - GEMMs -----------------------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/compute/Gemm.h"
#include "MicroKernels.h"
#include "runtime/compute/Cpu.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <thread>
#include <utility>
#include <vector>

using namespace reprise::runtime;
using namespace reprise::runtime::test;

namespace {

constexpr float kCanary = 12345.0f;

/// A GEMM with operands of its own: rows are longer than they need to be,
/// and what no GEMM may touch holds a canary.
struct Problem {
  RepriseGemm shape = {};
  std::vector<float> a, b, bias, c, workspace;

  Problem(int64_t m, int64_t n, int64_t k, int flags, int64_t outer = 1,
          int64_t inner = 1) {
    shape.m = m, shape.n = n, shape.k = k;
    shape.transposeA = flags & 1, shape.transposeB = flags >> 1 & 1;
    shape.bias = flags >> 2 & 1, shape.accumulate = flags >> 3 & 1;
    shape.alpha = flags & 16 ? 0.37f : 1.0f;
    shape.lda = (shape.transposeA ? m : k) + 3;
    shape.ldb = (shape.transposeB ? k : n) + 1;
    shape.ldc = n + 2;
    shape.batch[0] = outer, shape.batch[1] = inner;
    int64_t sizeA = (shape.transposeA ? k : m) * shape.lda;
    int64_t sizeB = (shape.transposeB ? n : k) * shape.ldb;
    int64_t sizeC = m * shape.ldc;
    int64_t *strides[] = {shape.strideA, shape.strideB, shape.strideC};
    int64_t sizes[] = {sizeA, sizeB, sizeC};
    for (int i = 0; i < 3; ++i)
      strides[i][0] = inner * sizes[i], strides[i][1] = sizes[i];
    fill(a, outer * inner * sizeA, 1);
    fill(b, outer * inner * sizeB, 2);
    fill(bias, n, 3);
    fill(c, outer * inner * sizeC, 4);
    workspace.assign(size_t(repriseGemmWorkspaceBytes(&shape) / 4) + 16,
                     kCanary);
  }

  static void fill(std::vector<float> &values, int64_t size, uint32_t state) {
    values.resize(size_t(size));
    for (float &value : values) {
      state = state * 1664525u + 1013904223u;
      value = float(int32_t(state)) * 0x1p-31f;
    }
  }

  float elementA(int64_t entry, int64_t i, int64_t p) const {
    const float *from = a.data() + entry * shape.strideA[1];
    return shape.transposeA ? from[p * shape.lda + i] : from[i * shape.lda + p];
  }
  float elementB(int64_t entry, int64_t p, int64_t j) const {
    const float *from = b.data() + entry * shape.strideB[1];
    return shape.transposeB ? from[j * shape.ldb + p] : from[p * shape.ldb + j];
  }

  /// The order of RepriseGemm's comment, word by word.
  float stated(int64_t entry, int64_t i, int64_t j) const {
    float sum = c[size_t(entry * shape.strideC[1] + i * shape.ldc + j)];
    for (int64_t first = 0; first < shape.k; first += REPRISE_GEMM_KC) {
      float block = 0;
      for (int64_t p = first; p < shape.k && p < first + REPRISE_GEMM_KC; ++p)
        block = std::fma(elementA(entry, i, p), elementB(entry, p, j), block);
      float scaled = shape.alpha * block;
      sum = first == 0 && !shape.accumulate ? scaled : sum + scaled;
    }
    return shape.bias ? sum + bias[size_t(j)] : sum;
  }

  double exact(int64_t entry, int64_t i, int64_t j) const {
    double sum = 0;
    for (int64_t p = 0; p < shape.k; ++p)
      sum += double(elementA(entry, i, p)) * double(elementB(entry, p, j));
    sum *= double(shape.alpha);
    if (shape.bias)
      sum += double(bias[size_t(j)]);
    if (shape.accumulate)
      sum += double(c[size_t(entry * shape.strideC[1] + i * shape.ldc + j)]);
    return sum;
  }

  std::vector<float> run(const MicroKernels &kernels, ThreadPool &pool) {
    std::vector<float> result = c;
    std::vector<float> squares(size_t(repriseGemmSquares(&shape)), kCanary);
    const bool isOne = shape.batch[0] * shape.batch[1] == 1;
    gemm(shape,
         {a.data(), b.data(), shape.bias ? bias.data() : nullptr, result.data(),
          workspace.data(), isOne ? squares.data() : nullptr},
         kernels, pool);
    if (isOne)
      EXPECT_TRUE(areSame(squares, statedSquares(shape, result.data())));
    for (size_t i = workspace.size() - 16; i < workspace.size(); ++i)
      EXPECT_EQ(workspace[i], kCanary) << "written behind the workspace";
    return result;
  }

  /// Checks the bits of every element and of the sums of squares, and that
  /// nothing else has changed.
  void check() {
    std::vector<float> expected = c;
    for (int64_t e = 0; e < shape.batch[0] * shape.batch[1]; ++e)
      for (int64_t i = 0; i < shape.m; ++i)
        for (int64_t j = 0; j < shape.n; ++j) {
          float value = stated(e, i, j);
          ASSERT_NEAR(value, exact(e, i, j), 2e-6 * double(shape.k) + 1e-6);
          expected[size_t(e * shape.strideC[1] + i * shape.ldc + j)] = value;
        }
    std::vector<RepriseMicroKernel> tiles;
    for (const RepriseMicroKernel &kernel : kMicroKernels)
      tiles.push_back(forThisProcessor(kernel));
    tiles.push_back(kMicroKernels[1]), tiles.back().isa = REPRISE_ISA_V3;
    std::vector<MicroKernels> kinds = {{&tiles[1], &tiles[2]},
                                       {&tiles[0], &tiles[4]}};
    for (const RepriseMicroKernel &kernel : tiles)
      kinds.push_back({&kernel, &kernel});
    for (int threads = 1; threads <= 3; ++threads) {
      ThreadPool pool;
      Error error;
      ASSERT_TRUE(pool.start(threads, error)) << error.text;
      for (const MicroKernels &kernels : kinds)
        ASSERT_EQ(0, memcmp(expected.data(), run(kernels, pool).data(),
                            expected.size() * sizeof(float)))
            << shape.m << "x" << shape.n << "x" << shape.k << ", tiles "
            << kernels.full->rows << "x" << kernels.full->cols << " and "
            << kernels.low->rows << ", " << threads << " threads";
    }
  }
};

} // namespace

// Every form of a GEMM, at sizes around the tiles' and the blocks' edges.
TEST(Gemm, EveryFormHasTheStatedBits) {
  const int64_t sizes[][3] = {{1, 1, 1},     {7, 33, 5},    {8, 32, 256},
                              {16, 64, 9},   {28, 36, 40},  {24, 31, 513},
                              {65, 70, 257}, {129, 130, 13}};
  for (auto &[m, n, k] : sizes)
    for (int flags = 0; flags < 32; ++flags)
      Problem(m, n, k, flags).check();
}

// More rows than MC, more columns than NC, more depth than three times KC.
TEST(Gemm, EveryBlockLoopTurns) {
  Problem(REPRISE_GEMM_MC + 31, 40, 300, 8).check();
  Problem(20, REPRISE_GEMM_NC + 37, 260, 2 + 4).check();
  Problem(33, 65, 3 * REPRISE_GEMM_KC + 1, 1 + 8 + 16).check();
}

// Few panels of B: threads have rows of their own, more of them than MC, with a
// last share that is short, and shares too small to be worth it.
TEST(Gemm, RowsAreSharedOutWhereColumnsAreFew) {
  Problem(3 * REPRISE_GEMM_MC + 5, 40, REPRISE_GEMM_KC + 9, 2 + 4 + 8).check();
  Problem(REPRISE_GEMM_MC + 12, 7, 2 * REPRISE_GEMM_KC + 1, 1).check();
  Problem(97, 33, 300, 1 + 8 + 16).check();
}

// As many panels of B as usual, but more rows than MC; A is copied before, or
// transposed on the way or not, as its depth is a multiple of four or not.
TEST(Gemm, RowsAreSharedOutWhereTheyAreMany) {
  Problem(2 * REPRISE_GEMM_MC + 31, 258, REPRISE_GEMM_KC + 8, 1 + 8).check();
  Problem(2 * REPRISE_GEMM_MC + 5, 545, REPRISE_GEMM_KC + 4, 0).check();
  Problem(8 * REPRISE_GEMM_MC + 5, 385, 5, 4).check();
}

// Shares of threads that the room for A does not divide among, each of whole
// blocks of squares with AVX2.
TEST(Gemm, ManyThreadsHaveShares) {
  const MicroKernels kinds[] = {{&kMicroKernels[0], &kMicroKernels[4]},
                                {&kMicroKernels[0], &kMicroKernels[0]}};
  for (auto [m, n] : {std::pair(256, 128), {289, 70}, {240, 64}, {54, 64}}) {
    Problem problem(m, n, REPRISE_GEMM_KC + 12, 1);
    ThreadPool one;
    std::vector<float> expected = problem.run(kinds[0], one);
    for (int threads : {4, 5, 7, 8})
      for (const MicroKernels &kernels : kinds) {
        ThreadPool pool;
        Error error;
        ASSERT_TRUE(pool.start(threads, error)) << error.text;
        EXPECT_EQ(problem.run(kernels, pool), expected)
            << m << "x" << n << ", " << threads << " threads";
      }
  }
}

// All of B is small: threads pack it for their rows, over several blocks of the
// depth, of which the last is short. And just too large for that.
TEST(Gemm, ThreadsPackASmallBThemselves) {
  Problem(3 * REPRISE_GEMM_MC + 5, 161, REPRISE_GEMM_KC + 9, 8 + 16).check();
  Problem(200, 165, 2 * REPRISE_GEMM_KC + 4, 1 + 4).check();
  Problem(2 * REPRISE_GEMM_MC + 31, 380, REPRISE_GEMM_KC + 100, 1 + 8).check();

  // Two threads have four places, the last, and leave that of the second panel
  // alone.
  const RepriseMicroKernel tile = forThisProcessor(kMicroKernels[1]);
  ThreadPool pool;
  Error error;
  ASSERT_TRUE(pool.start(2, error)) << error.text;
  auto usesSecondPlace = [&](int64_t n) {
    Problem problem(2 * REPRISE_GEMM_MC + 31, n, REPRISE_GEMM_KC + 100, 1);
    problem.run({&tile, &tile}, pool);
    int64_t places = (n + tile.cols - 1) / tile.cols - 1;
    return problem.workspace[problem.workspace.size() - 16 -
                             size_t(places * tile.cols * REPRISE_GEMM_KC)] !=
           kCanary;
  };
  EXPECT_FALSE(usesSecondPlace(161));
  EXPECT_TRUE(usesSecondPlace(380));
}

// So many rows that threads pack B for their shares of them, over several
// blocks of columns and of the depth; with panels of A where panels of B would
// be, for which wide tiles have no room in 330 columns.
TEST(Gemm, ThreadsPackBThemselvesForLongShares) {
  Problem(2 * REPRISE_GEMM_MC + 5, 390, REPRISE_GEMM_KC + 9, 8).check();
  Problem(2 * REPRISE_GEMM_MC + 12, 330, 300, 1).check();
  Problem(3 * REPRISE_GEMM_MC, 740, 20, 1).check();
  Problem(3 * REPRISE_GEMM_MC + 5, 330, 300, 1 + 2 + 4).check();
  Problem(530, REPRISE_GEMM_NC + 37, REPRISE_GEMM_KC + 4, 1 + 16).check();
}

// One panel of B, for which there is one place; and more threads than have any
// of their own where rows are more than MC.
TEST(Gemm, PlacesOfPanelsAreThoseThereAre) {
  Problem(97, 32, 2 * REPRISE_GEMM_KC, 0).check();
  const RepriseMicroKernel tile = forThisProcessor(kMicroKernels[1]);
  Problem problem(REPRISE_GEMM_MC + 31, 800, 2 * REPRISE_GEMM_KC + 4, 0);
  ThreadPool one, six;
  Error error;
  ASSERT_TRUE(six.start(6, error)) << error.text;
  EXPECT_EQ(problem.run({&tile, &tile}, one), problem.run({&tile, &tile}, six));
}

namespace {
/// Two threads that, if they are to, begin with each panel of B together: so
/// neither has done all of its own while there is something of the other's to
/// take.
struct InStep {
  static inline std::atomic<int> gemm{0}, numBegun{0};
  static inline bool isActive = false;

  static void begin(bool active) {
    ++gemm, numBegun = 0;
    isActive = active;
  }
  static void atTile(const RepriseTile *work) {
    if (!isActive)
      return;
    thread_local int last = 0, mine = 0;
    thread_local const void *panel = nullptr;
    if (std::exchange(last, gemm) != gemm)
      mine = 0, panel = nullptr;
    if (std::exchange(panel, work->b) == work->b)
      return;
    ++mine, ++numBegun;
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (numBegun < 2 * mine && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
  }
};
} // namespace

// A tile that packs zeros: all panels but each thread's first multiply them.
TEST(Gemm, WhatIsPackedAheadIsUsed) {
  RepriseMicroKernel tile = forThisProcessor(kMicroKernels[1]);
  tile.fn = [](const RepriseTile *work) {
    InStep::atTile(work);
    std::fill_n(static_cast<float *>(work->ahead), work->aheadRows * 32, 0.0f);
    RepriseTile rest = *work;
    rest.aheadRows = 0;
    kMicroKernels[1].fn(&rest);
  };
  auto expectZeros = [&](int64_t m, int64_t n, int threads) {
    ThreadPool pool;
    Error error;
    ASSERT_TRUE(pool.start(threads, error)) << error.text;
    Problem problem(m, n, REPRISE_GEMM_KC, 1);
    InStep::begin(threads == 2);
    std::vector<float> c = problem.run({&tile, &tile}, pool);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = tile.cols; j < n; ++j)
        ASSERT_EQ(c[size_t(i * problem.shape.ldc + j)], 0) << i << ", " << j;
  };
  expectZeros(REPRISE_GEMM_MC, 320, 1);
  expectZeros(2 * REPRISE_GEMM_MC, 320, 1);
  expectZeros(REPRISE_GEMM_MC + 132, 640, 2);
}

// What comes next is packed while it is fetched wherever it can be: all panels
// of a GEMM but each thread's first, and those that are not whole.
TEST(Gemm, PanelsArePackedAhead) {
  bool inStep = false;
  RepriseMicroKernel tile = forThisProcessor(kMicroKernels[1]);
  tile.fn = [](const RepriseTile *work) {
    InStep::atTile(work);
    kMicroKernels[1].fn(work);
  };
  auto countAhead = [&](int64_t m, int64_t n, int64_t k, int threads) {
    ThreadPool pool;
    Error error;
    EXPECT_TRUE(pool.start(threads, error)) << error.text;
    Problem problem(m, n, k, 1);
    numAhead = 0;
    InStep::begin(inStep);
    problem.run({&tile, &tile}, pool);
    return int64_t(numAhead);
  };
  const int64_t kc = REPRISE_GEMM_KC, mc = REPRISE_GEMM_MC;
  EXPECT_EQ(countAhead(mc, 320, kc, 1), 9 * kc);
  EXPECT_EQ(countAhead(mc, 320, 2 * kc, 1), 19 * kc);
  // Of the last panel, which is not whole, no row.
  EXPECT_EQ(countAhead(mc, 330, kc, 1), 9 * kc);
  // Blocks of rows but the first find B packed.
  EXPECT_EQ(countAhead(2 * mc, 320, 2 * kc, 1), 19 * kc);
  // Two long shares, each for itself.
  inStep = true;
  EXPECT_EQ(countAhead(mc + 132, 640, 2 * kc, 2), 2 * 39 * kc);
  inStep = false;
  // Without room for these, for which all pack B.
  EXPECT_EQ(countAhead(2 * mc + 31, 320, 2 * kc, 2), 0);
  // Two threads with panels of their own. (One may come too late for any.)
  EXPECT_GE(countAhead(mc, 640, kc, 2), 18 * kc);
  // Too few tiles to fetch a panel and then pack it.
  EXPECT_EQ(countAhead(24, 320, kc, 1), 0);
}

// Two threads share pairs of panels with AVX2, for whose columns one sums
// squares, and each goes on with its own: of 22 panels with 10 or 12. A tile
// packs zeros, so all panels are zeros but each thread's first, one that the
// first to be done may take from the other, and that which the other, having
// expected the one taken, comes to then.
TEST(Gemm, ThreadsGoOnWithTheirOwnPairsOfPanels) {
  static std::atomic<int> numPackedLate;
  RepriseMicroKernel tile = kMicroKernels[0];
  tile.fn = [](const RepriseTile *work) {
    thread_local int last = 0, begun = 0;
    thread_local int64_t panel = -1;
    if (std::exchange(last, InStep::gemm) != InStep::gemm)
      panel = -1, begun = 0;
    // By its columns of C, which begin anywhere, and its block.
    const auto at = int64_t(reinterpret_cast<uintptr_t>(work->c) / 4);
    const int64_t id = 2 * (at % work->ldc) + work->addToC;
    if (std::exchange(panel, id) != id) {
      numPackedLate += *static_cast<const float *>(work->b) != 0;
      ++begun;
    }
    if (begun <= 20) // So many each has, or more.
      InStep::atTile(work);
    std::fill_n(static_cast<float *>(work->ahead), work->aheadRows * 16, 0.0f);
    RepriseTile rest = *work;
    rest.aheadRows = 0;
    kMicroKernels[0].fn(&rest);
  };
  ThreadPool pool;
  Error error;
  ASSERT_TRUE(pool.start(2, error)) << error.text;
  Problem problem(REPRISE_GEMM_MC, 22 * tile.cols, 2 * REPRISE_GEMM_KC, 1);
  InStep::begin(true);
  numPackedLate = 0;
  problem.run({&tile, &tile}, pool);
  EXPECT_GE(numPackedLate, 2);
  EXPECT_LE(numPackedLate, 4);
}

// Rows of A lie as they are summed, and threads have many for few columns: A is
// read there. Also of columns that are many and of a B that must be transposed,
// by blocks: one, two and three threads make 3, 4 and 3 of 1045 columns.
TEST(Gemm, NarrowGemmsReadAWhereItLies) {
  Problem(589, 70, 2 * REPRISE_GEMM_KC + 8, 4 + 8).check();
  Problem(580, 33, 12, 2 + 16).check();
  Problem(600, 320, 300, 8).check();
  Problem(580, REPRISE_GEMM_NC - 5, 20, 4).check();
  Problem(530, REPRISE_GEMM_NC + 37, 20, 2).check();
  Problem(530, 1045, REPRISE_GEMM_KC + 4, 2 + 8).check();

  RepriseMicroKernel tile = forThisProcessor(kMicroKernels[1]);
  int64_t bytesOfL2 = 1 << 20;
  auto countReads = [&](int64_t m, int64_t n, int64_t k, int flags,
                        int threads) {
    ThreadPool pool;
    Error error;
    EXPECT_TRUE(pool.start(threads, error)) << error.text;
    Problem problem(m, n, k, flags);
    numReadA = 0;
    problem.run({&tile, &tile, nullptr, bytesOfL2}, pool);
    if (m % tile.rows == 0) // There is no last panel that must be packed.
      EXPECT_EQ(numReadA == 0, problem.workspace[0] != kCanary);
    return int64_t(numReadA);
  };
  const int64_t kc = REPRISE_GEMM_KC;
  EXPECT_EQ(countReads(384, 70, 2 * kc, 0, 1), 32 * 3 * 2);
  EXPECT_EQ(countReads(389, 70, 2 * kc, 0, 1), 32 * 3 * 2);
  EXPECT_EQ(countReads(384, 70, 2 * kc, 2, 2), 32 * 3 * 2);
  EXPECT_EQ(countReads(384, 512, kc, 0, 2), 32 * 16);
  EXPECT_EQ(countReads(384, 768, kc, 2, 1), 32 * 24);
  EXPECT_EQ(countReads(540, 768, kc, 2, 2), 45 * 24);
  // Rows of A are columns of its storage; a depth in no whole groups of steps;
  // few rows, or few enough for panels of B to be shared; a B that is wide, and
  // lies as panels have it or has too few columns for eight threads.
  EXPECT_EQ(countReads(384, 70, 2 * kc, 1, 1), 0);
  EXPECT_EQ(countReads(384, 70, 2 * kc + 1, 0, 1), 0);
  EXPECT_EQ(countReads(372, 70, 2 * kc, 0, 2), 0);
  EXPECT_EQ(countReads(384, 520, kc, 0, 1), 0);
  EXPECT_EQ(countReads(372, 768, kc, 2, 1), 0);
  EXPECT_EQ(countReads(384, 768, kc, 2, 2), 0);
  EXPECT_EQ(countReads(540, 768, kc, 2, 8), 0);
  // An L2 of half the size, and of four times as much.
  bytesOfL2 /= 2;
  EXPECT_EQ(countReads(384, 512, kc, 0, 1), 0);
  EXPECT_EQ(countReads(384, 256, kc, 0, 1), 32 * 8);
  bytesOfL2 *= 8;
  EXPECT_EQ(countReads(384, 512, kc, 0, 1), 32 * 16);
  EXPECT_EQ(countReads(384, 520, kc, 0, 1), 0);
  bytesOfL2 /= 4;
  // Tiles of fewer rows, which read B more often.
  tile = kMicroKernels[0];
  EXPECT_EQ(countReads(384, 70, 2 * kc, 2, 1), 64 * 5 * 2);
  EXPECT_EQ(countReads(768, 768, kc, 2, 1), 0);
}

// The first tile of a panel packs it where its rows are 4 KiB apart, at a place
// of its thread's, if there is one for each.
TEST(Gemm, NarrowGemmsPackRowsOfAThatMeetInL1) {
  const int64_t kc = REPRISE_GEMM_KC;
  auto getProblem = [](int64_t m, int64_t n, int64_t k, int flags) {
    Problem problem(m, n, k, flags);
    problem.shape.lda = 1024;
    Problem::fill(problem.a, m * problem.shape.lda, 1);
    return problem;
  };
  getProblem(589, 70, 2 * kc + 8, 4 + 8).check();
  getProblem(530, 1045, kc + 4, 2 + 8).check();

  static std::atomic<int64_t> numTransposed, numPacked;
  RepriseMicroKernel tile = forThisProcessor(kMicroKernels[1]);
  tile.fn = [](const RepriseTile *work) {
    numTransposed += work->form == REPRISE_TILE_TRANSPOSES_A;
    numPacked += work->form == REPRISE_TILE_PACKED;
    kMicroKernels[1].fn(work);
  };
  for (auto [m, n, flags, threads] : {std::tuple(384, 70, 0, 1),
                                      {384, 70, 0, 2},
                                      {540, 768, 2, 2},
                                      {12 * 16 * 23, 40, 0, 23}}) {
    ThreadPool pool;
    Error error;
    ASSERT_TRUE(pool.start(threads, error)) << error.text;
    numTransposed = numPacked = numReadA = 0;
    Problem problem = getProblem(m, n, kc, flags);
    const std::vector<float> result = problem.run({&tile, &tile}, pool);
    EXPECT_EQ(numReadA, 0);
    const int64_t panels = m / tile.rows, blocks = n == 768 ? 2 : 1;
    const int64_t tiles = panels * ((n + tile.cols - 1) / tile.cols);
    EXPECT_EQ(numTransposed + numPacked, tiles);
    if (threads < 23)
      EXPECT_EQ(numTransposed, panels * blocks);
    ThreadPool one;
    EXPECT_EQ(problem.run({&tile, &tile}, one), result) << threads;
  }
}

// Panels of A, of 8 times 128 bytes, are fetched while 8 tiles use the one
// before, and that of the next block behind the last.
TEST(Gemm, PanelsThatAreReadAreFetchedOneAhead) {
  static std::map<const void *, int> timesAsked;
  RepriseMicroKernel tile = forThisProcessor(kMicroKernels[1]);
  tile.fn = [](const RepriseTile *work) {
    for (int64_t row = 0; row < work->nextRows; ++row)
      ++timesAsked[static_cast<const char *>(work->next) +
                   row * work->nextStride];
    kMicroKernels[1].fn(work);
  };
  ThreadPool one;
  const int64_t m = 384, kc = REPRISE_GEMM_KC;
  Problem problem(m, 256, 2 * kc, 0);
  timesAsked.clear();
  problem.run({&tile, &tile}, one);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t p = 0; p < 2 * kc; p += 32)
      ASSERT_EQ(timesAsked[&problem.a[size_t(i * problem.shape.lda + p)]],
                i >= tile.rows || p >= kc)
          << i << ", " << p;
}

// Each thread has rows of its own, or columns and then a place for the last
// panel of A. The first tile of one waits until another has come, or the first
// of the last panel, which nobody then takes from the other.
TEST(Gemm, ThreadsShareNarrowGemms) {
  static std::atomic<int> numThreads, gemm;
  static int form;
  RepriseMicroKernel tile = forThisProcessor(kMicroKernels[1]);
  tile.fn = [](const RepriseTile *work) {
    thread_local int last = -1;
    if (work->form == form && std::exchange(last, gemm) != gemm) {
      ++numThreads;
      auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (numThreads < 2 && std::chrono::steady_clock::now() < end)
        std::this_thread::yield();
    }
    kMicroKernels[1].fn(work);
  };
  ThreadPool pool;
  Error error;
  ASSERT_TRUE(pool.start(2, error)) << error.text;
  auto run = [&](Problem &problem) {
    ++gemm, numThreads = 0;
    problem.run({&tile, &tile}, pool);
    EXPECT_EQ(numThreads, 2);
  };
  const int64_t kc = REPRISE_GEMM_KC;
  Problem rows(384, 70, kc, 0), columns(545, 768, kc, 2);
  form = REPRISE_TILE_READS_A;
  run(rows);
  form = REPRISE_TILE_PACKED;
  run(columns);
  EXPECT_NE(columns.workspace[0], kCanary);
  EXPECT_NE(columns.workspace[size_t(tile.rows * kc)], kCanary);
}

// Many panels of B and few of A: each thread has panels of A of its own, where
// panels of B would be, or not, as there is room for them; the last block of
// the depth is short, and of 2085 columns one of the columns, too. Of 380
// columns two threads leave 288 to A's 264 rows, of 340 they leave 256.
TEST(Gemm, ThreadsHavePanelsOfAOfTheirOwnWhereThereIsRoom) {
  Problem(29, 300, REPRISE_GEMM_KC + 9, 2).check();
  Problem(150, 390, 2 * REPRISE_GEMM_KC + 1, 1 + 8).check();
  Problem(190, 390, 40, 4 + 16).check();
  Problem(200, 262, 2 * REPRISE_GEMM_KC, 1).check();
  Problem(264, 380, 300, 0).check();
  Problem(264, 340, 300, 0).check();
  Problem(61, REPRISE_GEMM_NC + 37, REPRISE_GEMM_KC + 1, 8 + 16).check();
}

// More rows than MC, but few enough for threads to share panels of B: in one
// block or, where L2 or the room for A is too small for that, in two, and each
// thread copies all of A. One thread has one block, or several of MC rows.
TEST(Gemm, ThreadsShareRowsInOneBlockOrTwo) {
  Problem(300, 545, REPRISE_GEMM_KC + 9, 2 + 8).check();
  Problem(517, 800, 41, 4 + 16).check();

  RepriseMicroKernel tile = forThisProcessor(kMicroKernels[1]);
  tile.fn = [](const RepriseTile *work) {
    InStep::atTile(work);
    kMicroKernels[1].fn(work);
  };
  const int64_t kc = REPRISE_GEMM_KC, panels = 300 / tile.rows;
  Problem problem(300, 768, 2 * kc, 1);
  std::vector<float> expected;
  auto expectPacked = [&](int threads, int64_t bytesOfL2, int64_t ofA,
                          int64_t ofB) {
    ThreadPool pool;
    Error error;
    ASSERT_TRUE(pool.start(threads, error)) << error.text;
    const MicroKernels kernels = {&tile, &tile, nullptr, bytesOfL2};
    InStep::begin(threads > 1);
    numCopiedA = numAhead = 0;
    const std::vector<float> result = problem.run(kernels, pool);
    EXPECT_EQ(numCopiedA, 2 * panels * ofA) << threads << ", " << bytesOfL2;
    EXPECT_EQ(numAhead, ofB * kc) << threads << ", " << bytesOfL2;
    if (expected.empty())
      expected = result;
    EXPECT_EQ(result, expected) << threads << ", " << bytesOfL2;
  };
  expectPacked(1, 1 << 20, 1, 2 * 24 - 1);
  expectPacked(1, 1 << 19, 1, 2 * (24 - 1)); // And one block finds B packed.
  expectPacked(2, 1 << 20, 2, 2 * (2 * 12 - 1));
  expectPacked(2, 1 << 19, 2, 2 * (4 * 12 - 1));
}

// Threads with columns or rows of their own do not wait for each other from
// block to block: all but one stay in their first tile, with their panels of A
// or, where A is read in place, of B, until that one has come to the last
// block, whose panels are shorter.
TEST(Gemm, ThreadsGoThroughTheDepthAlone) {
  static std::atomic<int> numThreads, gemm, going;
  static std::atomic<bool> isInLastBlock;
  static constexpr int64_t kLast = 12;
  RepriseMicroKernel tile = forThisProcessor(kMicroKernels[1]);
  tile.fn = [](const RepriseTile *work) {
    thread_local int last = -1;
    if (work->k == kLast)
      isInLastBlock = true;
    if (std::exchange(last, gemm) != gemm && numThreads++ != going) {
      auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (!isInLastBlock && std::chrono::steady_clock::now() < end)
        std::this_thread::yield();
      EXPECT_TRUE(isInLastBlock);
    }
    kMicroKernels[1].fn(work);
  };
  const int64_t k = 2 * REPRISE_GEMM_KC + kLast;
  Problem columns(100, 800, k, 1),
      rows(2 * REPRISE_GEMM_MC + 60, 800, k, 1 + 8), wide(545, 1045, k, 2);
  ThreadPool one;
  for (Problem *problem : {&columns, &rows, &wide}) {
    isInLastBlock = true;
    const std::vector<float> expected = problem->run({&tile, &tile}, one);
    for (int threads : {2, 3})
      for (going = 0; going < threads; ++going) {
        ThreadPool pool;
        Error error;
        ASSERT_TRUE(pool.start(threads, error)) << error.text;
        ++gemm, numThreads = 0, isInLastBlock = false;
        EXPECT_EQ(problem->run({&tile, &tile}, pool), expected)
            << threads << " threads, " << problem->shape.m << " rows";
      }
  }
}

// Micro-kernels copy whole panels of A as they use them first, once for each
// block of the depth that is a multiple of four.
TEST(Gemm, PanelsOfAAreCopiedOnTheWay) {
  ThreadPool pool;
  Error error;
  ASSERT_TRUE(pool.start(1, error)) << error.text;
  auto count = [&](const RepriseMicroKernel &tile, int64_t k, int flags) {
    const int64_t before = numCopiedA;
    Problem problem(100, 800, k, flags);
    problem.run({&tile, &tile}, pool);
    return numCopiedA - before;
  };
  const RepriseMicroKernel &narrow = kMicroKernels[0];
  const RepriseMicroKernel wide = forThisProcessor(kMicroKernels[1]);
  EXPECT_EQ(count(narrow, REPRISE_GEMM_KC, 1), 16);
  EXPECT_EQ(count(narrow, 2 * REPRISE_GEMM_KC + 6, 1), 2 * 16);
  EXPECT_EQ(count(narrow, REPRISE_GEMM_KC, 0), 0) << "transposed instead";
  EXPECT_EQ(count(wide, REPRISE_GEMM_KC, 1), 8);
  EXPECT_EQ(count(wide, 2 * REPRISE_GEMM_KC + 6, 1), 2 * 8);
}

// With AVX2 squares are summed once, behind the last panel of B of a block of
// them, in the last block of the depth.
TEST(Gemm, SquaresAreSummedBehindPanelsWithAVX2) {
  constexpr int64_t kLastDepth = 4, kLastPanel = 48;
  static const float *result;
  static float *squares;
  static int numMarked;
  RepriseMicroKernel full = kMicroKernels[0];
  full.fn = [](const RepriseTile *work) {
    kMicroKernels[0].fn(work);
    const int64_t at = work->c - result, row = at / work->ldc;
    if (at % work->ldc != kLastPanel)
      return;
    // The columns before have their squares then, which nobody sums again.
    float &first = squares[row / REPRISE_GEMM_SQUARES_ROWS * 2];
    if (work->k != kLastDepth) {
      EXPECT_EQ(first, kCanary) << "row " << row;
      return;
    }
    EXPECT_NE(first, kCanary) << "row " << row;
    first = -1;
    ++numMarked;
  };
  ThreadPool one;
  Problem problem(60, 64, REPRISE_GEMM_KC + kLastDepth, 1);
  std::vector<float> c = problem.c,
                     sums(size_t(repriseGemmSquares(&problem.shape)), kCanary);
  result = c.data(), squares = sums.data(), numMarked = 0;
  gemm(problem.shape,
       {problem.a.data(), problem.b.data(), nullptr, c.data(),
        problem.workspace.data(), squares},
       {&full, &kMicroKernels[4]}, one);
  EXPECT_EQ(numMarked, 10);
  EXPECT_EQ(std::count(sums.begin(), sums.end(), -1), 10);
  std::vector<float> expected = statedSquares(problem.shape, c.data());
  for (size_t i = 0; i < sums.size(); ++i)
    EXPECT_TRUE(sums[i] == expected[i] || sums[i] == -1) << i;
}

// A large result of whole lines goes past the caches, to the same bits as one
// that begins within a line, and so do the sums of its squares. A gradient is
// large sooner, but not with tiles whose rows are single lines; where squares
// are wanted, it does so with what sums them, or not at all.
TEST(Gemm, LargeResultsGoPastTheCachesWithTheirSquares) {
  struct Result {
    int64_t m, n;
    bool isGradient;
  };
  ThreadPool pool;
  Error error;
  ASSERT_TRUE(pool.start(2, error)) << error.text;
  for (Result result : {Result{512, 768, true}, Result{512, 768, false},
                        Result{2048, 4096, false}}) {
    const int64_t m = result.m, n = result.n;
    Problem problem(m, n, 24, result.isGradient ? 1 : 0);
    problem.shape.ldc = n;
    std::vector<float> room(size_t(m * n) + 32);
    auto toLine = (64 - reinterpret_cast<uintptr_t>(room.data()) % 64) / 4 % 16;
    for (int kind : {0, 1}) {
      const RepriseMicroKernel &tile = kMicroKernels[kind];
      if (cpuLevel() < 4 && tile.isa != REPRISE_ISA_V3)
        continue;
      int64_t streamed;
      auto run = [&](size_t offset, bool wantsSquares) {
        std::vector<float> squares(size_t(repriseGemmSquares(&problem.shape)));
        std::fill(room.begin(), room.end(), kCanary);
        float *c = room.data() + offset;
        const int64_t before = numStreamed;
        gemm(problem.shape,
             {problem.a.data(), problem.b.data(), nullptr, c,
              problem.workspace.data(),
              wantsSquares ? squares.data() : nullptr},
             {&tile, &tile}, pool);
        streamed = numStreamed - before;
        if (wantsSquares)
          EXPECT_TRUE(areSame(squares, statedSquares(problem.shape, c)));
        return std::vector<float>(c, c + m * n);
      };
      const std::vector<float> plain = run(toLine + 1, false);
      EXPECT_EQ(streamed, 0);
      EXPECT_EQ(run(toLine + 1, true), plain);
      EXPECT_EQ(streamed, 0);
      EXPECT_EQ(run(toLine, true), plain);
      EXPECT_EQ(streamed, 0);
      EXPECT_EQ(run(toLine, false), plain);
      const bool isLarge = m * n * 4 >= 32 << 20 ||
                           (result.isGradient && tile.isa >= REPRISE_ISA_V4);
      EXPECT_EQ(streamed > 0, isLarge) << m << " x " << n;
    }
  }
}

// Fewer entries than threads, more than threads, more than slots; small ones
// and ones worth sharing out.
TEST(Gemm, EntriesOfABatchAreIndependent) {
  Problem(80, 70, 300, 2, 1, 2).check();
  Problem(17, 19, 23, 0, 3, 4).check();
  Problem(9, 33, 7, 2 + 8 + 16, 13, 11).check();
  Problem(70, 65, 64, 1 + 4, 2, 3).check();
}

TEST(Gemm, TheBestKernelThatRunsIsChosen) {
  auto choose = [](int first, int count, int level) {
    MicroKernels chosen =
        chooseMicroKernels(kMicroKernels + first, count, level);
    return std::pair(chosen.full, chosen.low);
  };
  const RepriseMicroKernel *all = kMicroKernels;
  EXPECT_EQ(choose(0, 4, 4), std::pair(all + 1, all + 2));
  EXPECT_EQ(choose(0, 2, 4), std::pair(all + 1, all + 1));
  EXPECT_EQ(choose(0, 4, 3), std::pair(all, all));
  EXPECT_EQ(choose(0, 5, 3), std::pair(all, all + 4));
  EXPECT_EQ(choose(1, 2, 3).first, nullptr);
  EXPECT_EQ(choose(0, 0, 4).first, nullptr);
}
