//===- GemmBF16Test.cpp - GEMMs of bf16 -----------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MicroKernels.h"
#include "runtime/compute/Cpu.h"
#include "runtime/compute/GemmAmx.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <vector>

using namespace reprise::runtime;
using namespace reprise::runtime::test;

namespace {

using BF16s = std::vector<uint16_t>;

constexpr uint16_t kCanary = 0x4321;
constexpr float kWorkCanary = 12345.0f;

enum Flags {
  TransposeA = 1,
  TransposeB = 2,
  Bias = 4,
  Accumulate = 8,
  Alpha = 16,
  Round = 32, ///< C is of bf16.
};

/// A GEMM with operands of its own; C and bias are there as f32 and as bf16,
/// one of which is used. Rows are longer than they need to be.
struct Problem {
  RepriseGemm shape = {};
  BF16s a, b, rounded, roundedBias;
  std::vector<float> bias, c;

  Problem(int64_t m, int64_t n, int64_t k, int flags, int64_t outer = 1,
          int64_t inner = 1) {
    shape.m = m, shape.n = n, shape.k = k;
    shape.transposeA = bool(flags & TransposeA);
    shape.transposeB = bool(flags & TransposeB);
    shape.bias = bool(flags & Bias),
    shape.accumulate = bool(flags & Accumulate);
    shape.alpha = flags & Alpha ? 0.37f : 1.0f;
    shape.typeAB = REPRISE_BF16;
    shape.typeC = flags & Round ? REPRISE_BF16 : REPRISE_F32;
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
    for (uint32_t i = 0; i < uint32_t(n); ++i)
      bias.push_back(float(int32_t(i * 2654435761u)) * 0x1p-31f);
    for (float &value : bias) {
      roundedBias.push_back(toBF16(value));
      if (flags & Round)
        value = toFloat(roundedBias.back());
    }
    rounded.assign(size_t(outer * inner * sizeC), kCanary);
    for (uint32_t i = 0; i < rounded.size(); ++i)
      c.push_back(float(int32_t(i * 2246822519u)) * 0x1p-31f);
  }

  static void fill(BF16s &values, int64_t size, uint32_t state) {
    values.resize(size_t(size));
    for (uint16_t &value : values) {
      state = state * 1664525u + 1013904223u;
      value = toBF16(float(int32_t(state)) * 0x1p-31f);
    }
  }

  float elementA(int64_t entry, int64_t i, int64_t p) const {
    const uint16_t *from = a.data() + entry * shape.strideA[1];
    return p >= shape.k ? 0
                        : toFloat(shape.transposeA ? from[p * shape.lda + i]
                                                   : from[i * shape.lda + p]);
  }
  float elementB(int64_t entry, int64_t p, int64_t j) const {
    const uint16_t *from = b.data() + entry * shape.strideB[1];
    return p >= shape.k ? 0
                        : toFloat(shape.transposeB ? from[j * shape.ldb + p]
                                                   : from[p * shape.ldb + j]);
  }

  /// The order of RepriseGemm's comment, word by word.
  float stated(int64_t entry, int64_t i, int64_t j, bool isAmx) const {
    float sum = flush(c[size_t(entry * shape.strideC[1] + i * shape.ldc + j)]);
    for (int64_t first = 0; first < shape.k; first += REPRISE_GEMM_KC_BF16) {
      float block = 0;
      const int64_t end = std::min(first + REPRISE_GEMM_KC_BF16, shape.k);
      for (int64_t p = first; isAmx && p < end; p += 32)
        block = addTileStep([&](int q) { return elementA(entry, i, p + q); },
                            [&](int q) { return elementB(entry, p + q, j); },
                            block);
      for (int64_t p = first; !isAmx && p < end; p += 2)
        for (int64_t q : {p + 1, p})
          block = flush(std::fma(flush(elementA(entry, i, q)),
                                 flush(elementB(entry, q, j)), block));
      float scaled = flush(shape.alpha * block);
      sum = first == 0 && !shape.accumulate ? scaled : flush(sum + scaled);
    }
    return shape.bias ? flush(sum + bias[size_t(j)]) : sum;
  }

  /// The bytes of C after the GEMM.
  std::vector<char> run(const MicroKernels &kernels, ThreadPool &pool) {
    std::vector<float> result = c,
                       workspace(size_t(repriseGemmWorkspaceBytes(&shape)) / 4 +
                                     16,
                                 kWorkCanary);
    BF16s roundedResult = rounded;
    bool rounds = shape.typeC == REPRISE_BF16;
    const void *added =
        rounds ? static_cast<void *>(roundedBias.data()) : bias.data();
    bool isAmx = kernels.full->isa == REPRISE_ISA_AMX_BF16;
    std::vector<float> squares(size_t(repriseGemmSquares(&shape)), kWorkCanary);
    const bool hasSquares = !rounds && shape.batch[0] * shape.batch[1] == 1;
    gemm(shape,
         {a.data(), b.data(), shape.bias ? added : nullptr,
          rounds ? static_cast<void *>(roundedResult.data()) : result.data(),
          isAmx ? nullptr : workspace.data(),
          hasSquares ? squares.data() : nullptr},
         kernels, pool);
    if (hasSquares)
      EXPECT_TRUE(areSame(squares, statedSquares(shape, result.data(), isAmx)));
    for (size_t i = workspace.size() - 16; i < workspace.size(); ++i)
      EXPECT_EQ(workspace[i], kWorkCanary) << "written behind the workspace";
    if (shape.n % REPRISE_GEMM_COL_ALIGN == 0 && !isAmx && !shape.packedB)
      EXPECT_TRUE(usesEnd(workspace, kernels, pool.size()))
          << "the workspace's end is not used";
    return toBytes(rounds, result, roundedResult);
  }

  /// Whether the last panel of B, or a thread's own, ends where one may: each
  /// thread has places for two, from the workspace's end on, and one of them
  /// may come too late for any task.
  bool usesEnd(const std::vector<float> &workspace, const MicroKernels &kernels,
               int threads) const {
    const int64_t depth = std::min<int64_t>(shape.k, REPRISE_GEMM_KC_BF16);
    const int64_t pairs = (depth + 1) / 2;
    const bool hasBF16x2 = kernels.full->typeAB == REPRISE_BF16;
    const int64_t size = kernels.full->cols * (hasBF16x2 ? pairs : 2 * pairs);
    bool isUsed = false;
    for (int64_t slot = 0; slot < threads; ++slot) {
      int64_t behind = 17 + 2 * slot * size;
      isUsed |= behind <= int64_t(workspace.size()) &&
                workspace[workspace.size() - size_t(behind)] != kWorkCanary;
    }
    return isUsed;
  }

  static std::vector<char> toBytes(bool rounds, const std::vector<float> &c,
                                   const BF16s &rounded) {
    auto *from = rounds ? reinterpret_cast<const char *>(rounded.data())
                        : reinterpret_cast<const char *>(c.data());
    return {from, from + c.size() * (rounds ? 2 : 4)};
  }

  /// The bytes of C after a GEMM in the stated order.
  std::vector<char> statedBytes(bool isAmx) const {
    std::vector<float> expected = c;
    BF16s expectedRounded = rounded;
    for (int64_t e = 0; e < shape.batch[0] * shape.batch[1]; ++e)
      for (int64_t i = 0; i < shape.m; ++i)
        for (int64_t j = 0; j < shape.n; ++j) {
          auto at = size_t(e * shape.strideC[1] + i * shape.ldc + j);
          expected[at] = stated(e, i, j, isAmx);
          expectedRounded[at] = toBF16(expected[at]);
        }
    return toBytes(shape.typeC == REPRISE_BF16, expected, expectedRounded);
  }

  /// The same with B as RepriseGemm::packedB has it, of a few more rows than
  /// the GEMM reads.
  Problem pack() const {
    const int64_t rows = shape.transposeB ? shape.n : shape.k;
    const int64_t cols = shape.transposeB ? shape.k : shape.n;
    constexpr uint16_t kNaN = 0x7FC0;
    Problem packed = *this;
    packed.shape.packedB = 1;
    packed.shape.ldb = rows + REPRISE_PACKED_ROWS;
    packed.b.assign(size_t(packed.shape.ldb * cols), kNaN);
    auto *to =
        reinterpret_cast<uint16_t (*)[REPRISE_PACKED_COLS][2]>(packed.b.data());
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j) {
        int64_t panel = j / REPRISE_PACKED_COLS * (packed.shape.ldb / 2);
        to[panel + i / 2][j % REPRISE_PACKED_COLS][i % 2] =
            b[size_t(i * shape.ldb + j)];
      }
    return packed;
  }

  /// Checks the bits of every element and of the sums of squares, and that
  /// nothing else has changed.
  void check() {
    // Panels of AMX are packed by AVX-512; the tile is plain code here.
    std::vector<char> bytes = statedBytes(/*isAmx=*/false), bytesOfAmx;
    if (cpuLevel() >= 4)
      bytesOfAmx = statedBytes(/*isAmx=*/true);
    forEach([&](const MicroKernels &kernels, ThreadPool &pool) {
      bool isAmx = kernels.full->isa == REPRISE_ISA_AMX_BF16;
      return run(kernels, pool) == (isAmx ? bytesOfAmx : bytes);
    });
  }

  /// Checks that a B which lies packed makes no difference.
  void checkPacked() {
    Problem packed = pack();
    forEach([&](const MicroKernels &kernels, ThreadPool &pool) {
      return packed.run(kernels, pool) == run(kernels, pool);
    });
  }

private:
  /// Asks for all micro-kernels and one to four threads whether bits are as
  /// they should be.
  template <typename Fn>
  void forEach(Fn areRight) {
    std::vector<RepriseMicroKernel> tiles;
    for (const RepriseMicroKernel &kernel :
         {kMicroKernels[0], kMicroKernels[1], kMicroKernels[2],
          kPairMicroKernels[0], kPairMicroKernels[1], kPairMicroKernels[2]})
      tiles.push_back(forThisProcessor(kernel));
    std::vector<MicroKernels> kinds = {{&tiles[0], &tiles[0]},
                                       {&tiles[1], &tiles[2]},
                                       {&tiles[3], &tiles[4]},
                                       {&tiles[5], &tiles[5]}};
    if (cpuLevel() >= 4)
      kinds.push_back({&kAmxMicroKernel, &kAmxMicroKernel});
    for (int threads = 1; threads <= 4; ++threads) {
      ThreadPool pool;
      AmxScratches scratches;
      Error error;
      ASSERT_TRUE(pool.start(threads, error)) << error.text;
      ASSERT_TRUE(scratches.allocate(threads, error)) << error.text;
      kinds.back().scratches = scratches.get();
      for (const MicroKernels &kernels : kinds)
        ASSERT_TRUE(areRight(kernels, pool))
            << shape.m << "x" << shape.n << "x" << shape.k << ", tiles "
            << kernels.full->rows << "x" << kernels.full->cols
            << (kernels.full->typeAB ? " of pairs, " : " of f32, ") << threads
            << " threads";
    }
  }
};

} // namespace

// Every form of a GEMM, at sizes around the tiles' edges and odd depths.
TEST(GemmBF16, EveryFormHasTheStatedBits) {
  const int64_t sizes[][3] = {{1, 1, 1},    {7, 33, 5},    {8, 32, 64},
                              {16, 64, 9},  {28, 36, 40},  {24, 31, 130},
                              {65, 70, 77}, {129, 130, 13}};
  for (auto &[m, n, k] : sizes)
    for (int flags = 0; flags < 64; ++flags)
      if (!(flags & Round && flags & Accumulate))
        Problem(m, n, k, flags).check();
}

// More rows than MC, more columns than NC, more depth than KC: there sums of a
// C of bf16 wait in the workspace.
TEST(GemmBF16, EveryBlockLoopTurns) {
  for (int flags :
       {0, TransposeB + Round, Bias + Alpha + Round, TransposeA + Accumulate}) {
    Problem(REPRISE_GEMM_MC + 31, 40, 30, flags).check();
    Problem(5, REPRISE_GEMM_NC + 37, 26, flags).check();
    Problem(33, 64, REPRISE_GEMM_KC_BF16 + 1, flags).check();
    Problem(26, 35, 2 * REPRISE_GEMM_KC_BF16 + 7, flags).check();
    Problem(3, REPRISE_GEMM_NC + 5, REPRISE_GEMM_KC_BF16 + 2, flags).check();
  }
}

// More rows than MC that threads share, in one block or two: sums of the second
// wait behind those of the first.
TEST(GemmBF16, ThreadsShareRowsInTwoBlocks) {
  Problem(301, 420, REPRISE_GEMM_KC_BF16 + 2, Round).check();
  Problem(301, 420, 30, TransposeA + Accumulate).check();
}

// So many rows that threads with pairs pack B for their shares of them, whose
// panels of A go on where panels of B would be, and leave the sums alone.
TEST(GemmBF16, ThreadsPackBThemselvesForLongShares) {
  Problem(2 * REPRISE_GEMM_MC + 5, 390, 41, TransposeA + Accumulate).check();
  const RepriseMicroKernel tiles[] = {forThisProcessor(kPairMicroKernels[0]),
                                      forThisProcessor(kPairMicroKernels[1])};
  for (int64_t n : {720, REPRISE_GEMM_NC + 37}) {
    Problem problem(576, n, REPRISE_GEMM_KC_BF16 + 2, Bias + Round);
    ThreadPool one, three;
    Error error;
    ASSERT_TRUE(three.start(3, error)) << error.text;
    // A thread's own B is packed ahead; one that all share is not.
    numAhead = 0;
    std::vector<char> result = problem.run({&tiles[0], &tiles[1]}, three);
    EXPECT_GT(numAhead, 0);
    EXPECT_EQ(result, problem.run({&tiles[0], &tiles[1]}, one))
        << n << " columns";
  }
}

// As pairs, of whole groups of steps.
TEST(GemmBF16, PanelsOfAAreCopiedOnTheWay) {
  const RepriseMicroKernel tile = forThisProcessor(kPairMicroKernels[0]);
  ThreadPool pool;
  Error error;
  ASSERT_TRUE(pool.start(1, error)) << error.text;
  auto count = [&](int64_t k, int flags) {
    const int64_t before = numCopiedA;
    Problem problem(10 * tile.rows + 1, 800, k, flags);
    problem.run({&tile, &tile}, pool);
    return numCopiedA - before;
  };
  EXPECT_EQ(count(64, TransposeA), 10);
  EXPECT_EQ(count(REPRISE_GEMM_KC_BF16 + 12, TransposeA + Round), 10);
  EXPECT_EQ(count(64, 0), 0) << "transposed instead";
}

// So many rows for few columns that pairs of A are read where they lie, of one
// block of the depth and of two.
TEST(GemmBF16, NarrowGemmsReadAWhereItLies) {
  numReadA = 0;
  Problem(580, 40, 24, Bias + Round).check();
  Problem(580, 33, REPRISE_GEMM_KC_BF16 + 8, TransposeB + Round).check();
  EXPECT_GT(numReadA, 0);
  numReadA = 0;
  Problem(580, 40, 28, 0).check();
  EXPECT_EQ(numReadA, 0) << "pairs of a depth of no whole groups of steps";
  // Rows of A that meet in L1, and that do not.
  for (int64_t stride : {2048, 1024}) {
    Problem problem(580, 40, 24, Round);
    problem.shape.lda = stride;
    Problem::fill(problem.a, 580 * stride, 1);
    problem.check();
    EXPECT_EQ(numReadA > 0, stride == 1024) << stride;
  }
  numReadA = 0;
  // By blocks of columns of their own threads would share the room for sums.
  Problem(100, 264, REPRISE_GEMM_KC_BF16 + 8, TransposeB + Round).check();
  EXPECT_EQ(numReadA, 0);
}

// More rows than a room of AMX has, rows that threads share, with a depth that
// it takes in parts, and in blocks.
TEST(GemmBF16, EveryLoopOfAmxTurns) {
  Problem(AmxScratch::kRows + 70, 40, 550, Bias + Round).check();
  Problem(AmxScratch::kRows / 2 + 9, 270, 700, TransposeA + Accumulate).check();
  Problem(2 * 384 + 5, 290, 37, TransposeA).check();
  Problem(90, 600, AmxScratch::kDepth + 40, TransposeB + Round).check();
  Problem(AmxScratch::kRowsOfSums + 9, 70, AmxScratch::kDepth + 6, Round)
      .check();
  Problem(45, 300, AmxScratch::kDepth + 40, Accumulate + Alpha).check();
}

// Weights in the order that micro-kernels read, of blocks and parts of the
// depth, one panel and several, more columns than a block has, and as many rows
// as all ways to share the work need.
TEST(GemmBF16, PackedStorageMakesNoDifference) {
  const int64_t sizes[][3] = {{1, 32, 32},
                              {7, 96, 1056},
                              {33, 160, 544},
                              {33, 32, 2080},
                              {256, 96, 96},
                              {600, 160, 96},
                              {5, REPRISE_GEMM_NC + 96, 64},
                              {2 * 384, 288, 32}};
  for (auto &[m, n, k] : sizes)
    for (int flags : {Bias + Round, TransposeA + Accumulate + Alpha})
      for (int transposed : {0, int(TransposeB)})
        Problem(m, n, k, flags + transposed).checkPacked();
  // Too large as panels of f32 for every thread to make its own.
  Problem(REPRISE_GEMM_MC + 16, 96, 1408, Round).checkPacked();
}

/// How often a micro-kernel was asked for each piece that it can fetch.
static std::map<const void *, int> timesAsked;

// A panel that lies packed is fetched while the tiles of the one before it are
// computed, each piece once: all but the first panel, and nothing else.
TEST(GemmBF16, PackedPanelsAreFetchedOneAhead) {
  if (cpuLevel() < 4)
    GTEST_SKIP() << "needs AVX-512";
  RepriseMicroKernel kernel = kAmxMicroKernel;
  kernel.fn = [](const RepriseTile *tile) {
    for (int64_t row = 0; tile->next && row < tile->nextRows; ++row)
      ++timesAsked[static_cast<const char *>(tile->next) +
                   row * tile->nextStride];
    // A row takes so many steps, and a call has no more than its own.
    if (tile->next)
      EXPECT_LE(tile->nextRows * tile->nextSteps, tile->k);
    kAmxMicroKernel.fn(tile);
  };
  const int64_t n = AmxScratch::kCols + 64, inPanel = REPRISE_PACKED_COLS;
  for (int flags : {0, int(TransposeB)})
    for (int64_t k : {int64_t(672), int64_t(768), 2 * AmxScratch::kDepth}) {
      Problem problem = Problem(256, n, k, flags + Round).pack();
      ThreadPool pool;
      AmxScratches scratches;
      Error error;
      ASSERT_TRUE(scratches.allocate(1, error)) << error.text;
      timesAsked.clear();
      problem.run({&kernel, &kernel, scratches.get()}, pool);
      const int64_t rows = flags ? n : k, cols = flags ? k : n;
      std::map<const void *, int> expected;
      for (int64_t row = 0; row < rows; row += 2)
        for (int64_t col = 0; col < cols; col += inPanel)
          if ((flags ? row : col) >= inPanel ||
              (flags ? col : row) >= AmxScratch::kDepth)
            expected[reinterpret_cast<const char *>(problem.b.data()) +
                     (col / inPanel * problem.shape.ldb + row) * inPanel * 2] =
                1;
      EXPECT_EQ(timesAsked, expected) << "depth " << k << ", flags " << flags;
    }
}

// Blocks of the depth, of twice the columns that sums have room for.
TEST(GemmBF16, SumsOfAmxFitTheirRoom) {
  if (cpuLevel() < 4)
    GTEST_SKIP() << "needs AVX-512";
  constexpr int64_t kRows = AmxScratch::kRowsOfSums;
  Problem problem(kRows, 2 * AmxScratch::kSums / kRows, AmxScratch::kDepth + 2,
                  Bias + Round);
  ThreadPool pool;
  AmxScratches scratches;
  Error error;
  ASSERT_TRUE(scratches.allocate(1, error)) << error.text;
  std::vector<char> bytes =
      problem.run({&kAmxMicroKernel, &kAmxMicroKernel, scratches.get()}, pool);
  const RepriseGemm &shape = problem.shape;
  for (int64_t i = 0; i < shape.m; i += 31)
    for (int64_t j = i % 7; j < shape.n; j += 7) {
      uint16_t result;
      memcpy(&result, bytes.data() + 2 * (i * shape.ldc + j), sizeof(result));
      ASSERT_EQ(result, toBF16(problem.stated(0, i, j, /*isAmx=*/true)))
          << i << ", " << j;
    }
}

// A large C of f32 goes past the caches, to the same bits, where its tiles are
// whole lines that are written once. What is large for a gradient is not for
// tiles whose rows are single lines.
TEST(GemmBF16, LargeResultsGoPastTheCaches) {
  Problem problem(1, 1, 1, 0);
  std::vector<float> room, plain;
  size_t toLine = 0;
  auto use = [&](int64_t m, int64_t n, int64_t k) {
    problem = Problem(m, n, k, TransposeA);
    problem.shape.ldc = n;
    room.resize(size_t(m * n) + 32);
    toLine = (64 - reinterpret_cast<uintptr_t>(room.data()) % 64) / 4 % 16;
  };
  ThreadPool pool;
  AmxScratches scratches;
  Error error;
  ASSERT_TRUE(pool.start(2, error)) << error.text;
  ASSERT_TRUE(scratches.allocate(2, error)) << error.text;
  RepriseMicroKernel tiles[] = {kMicroKernels[0], kPairMicroKernels[0],
                                kAmxMicroKernel};
  // The tiles of C that micro-kernels let go past the caches. With squares
  // those of vectors do not: they lie in a cache until they are summed.
  auto runWith = [&](const RepriseMicroKernel &tile, size_t offset,
                     bool hasSquares) {
    std::vector<float> workspace(
        size_t(repriseGemmWorkspaceBytes(&problem.shape)) / 4);
    std::vector<float> squares(size_t(repriseGemmSquares(&problem.shape)));
    int64_t before = numStreamed;
    std::fill(room.begin(), room.end(), kWorkCanary);
    gemm(problem.shape,
         {problem.a.data(), problem.b.data(), problem.bias.data(),
          room.data() + offset, workspace.data(),
          hasSquares ? squares.data() : nullptr},
         {&tile, &tile, scratches.get()}, pool);
    if (hasSquares)
      EXPECT_TRUE(
          areSame(squares, statedSquares(problem.shape, room.data() + offset,
                                         tile.isa == REPRISE_ISA_AMX_BF16)));
    return numStreamed - before;
  };
  auto run = [&](const RepriseMicroKernel &tile, size_t offset) {
    bool areSummed = tile.isa != REPRISE_ISA_AMX_BF16;
    int64_t count = runWith(tile, offset, /*hasSquares=*/false);
    std::vector<float> without = room;
    EXPECT_EQ(runWith(tile, offset, /*hasSquares=*/true),
              areSummed ? 0 : count);
    EXPECT_EQ(room, without);
    return count;
  };
  for (const RepriseMicroKernel &tile : tiles) {
    if (cpuLevel() < 4 && tile.isa != REPRISE_ISA_V3)
      continue;
    const bool hasSingleLines = tile.cols == 16;
    use(512, 768, 3);
    if (hasSingleLines) {
      EXPECT_EQ(run(tile, toLine), 0) << "a gradient";
      use(2048, 4096, 3);
    }
    const int64_t m = problem.shape.m, n = problem.shape.n;
    int64_t whole = m / tile.rows * (n / tile.cols);
    EXPECT_EQ(run(tile, toLine + 1), 0) << "C begins within a line";
    plain.assign(room.begin() + toLine + 1, room.end());
    EXPECT_EQ(run(tile, toLine), whole);
    EXPECT_TRUE(std::equal(plain.begin(), plain.begin() + m * n,
                           room.begin() + toLine));
    for (auto change : std::initializer_list<void (*)(RepriseGemm &)>{
             [](RepriseGemm &shape) { shape.m -= 1; },
             [](RepriseGemm &shape) { shape.n -= 1, shape.ldc -= 1; },
             [](RepriseGemm &shape) {
               shape.transposeA = 0, shape.lda = shape.k;
             },
             [](RepriseGemm &shape) { shape.accumulate = 1; },
             [](RepriseGemm &shape) { shape.bias = 1; }}) {
      Problem before = problem;
      change(problem.shape);
      const bool isGradient = problem.shape.transposeA;
      EXPECT_EQ(run(tile, toLine), hasSingleLines && !isGradient ? whole : 0);
      problem = before;
    }
  }
  use(2048, 4096, REPRISE_GEMM_KC_BF16 + 1);
  EXPECT_EQ(run(kMicroKernels[0], toLine), 0) << "two blocks of the depth";
  use(512, 768, REPRISE_GEMM_KC_BF16 + 1);
  if (cpuLevel() >= 4)
    EXPECT_EQ(run(kAmxMicroKernel, toLine), 0) << "two blocks of the depth";

  // Deep enough for tiles that are written while the next one is computed, in
  // one part and in two, beside tiles at an edge.
  for (int64_t depth : {256, 544}) {
    if (cpuLevel() < 4)
      break;
    const int64_t rows = 521, cols = 784;
    use(rows, cols, depth);
    EXPECT_EQ(run(kAmxMicroKernel, toLine + 1), 0);
    plain.assign(room.begin() + toLine + 1, room.end());
    EXPECT_EQ(run(kAmxMicroKernel, toLine), rows / 32 * (cols / 32));
    EXPECT_TRUE(std::equal(plain.begin(), plain.begin() + rows * cols,
                           room.begin() + toLine));
  }

  // What no cache holds goes there in any form.
  const int64_t rows = 2048, cols = 4096;
  problem = Problem(rows, cols, 1, 0);
  problem.shape.ldc = cols;
  room.resize(size_t(rows * cols) + 16);
  toLine = (64 - reinterpret_cast<uintptr_t>(room.data()) % 64) / 4 % 16;
  EXPECT_EQ(run(kMicroKernels[0], toLine), rows / 6 * (cols / 16));
  problem.shape.m -= 1;
  EXPECT_EQ(run(kMicroKernels[0], toLine), 0) << "less than that";
}

// A large C of bf16 of AMX goes past the caches, to the same bits, where its
// rows are whole lines: it waits for that in the scratches.
TEST(GemmBF16, LargeRoundedResultsGoPastTheCaches) {
  if (cpuLevel() < 4)
    GTEST_SKIP() << "needs AVX-512";
  const int64_t m = 1010, n = 784;
  ThreadPool pool;
  AmxScratches scratches;
  Error error;
  ASSERT_TRUE(pool.start(2, error)) << error.text;
  ASSERT_TRUE(scratches.allocate(2, error)) << error.text;
  for (int64_t k : {int64_t(40), AmxScratch::kDepth + 6}) {
    Problem problem(m, n, k, Bias + Round);
    problem.shape.ldc = n + 16;
    BF16s room(size_t(m * problem.shape.ldc) + 64);
    auto toLine = (64 - reinterpret_cast<uintptr_t>(room.data()) % 64) / 2 % 32;
    // Whether something has waited that is no tile at an edge.
    auto run = [&](size_t offset) {
      std::fill(room.begin(), room.end(), kCanary);
      for (int i = 0; i < 2; ++i)
        scratches.get()[i].rounded[REPRISE_GEMM_COL_ALIGN] = kCanary;
      gemm(problem.shape,
           {problem.a.data(), problem.b.data(), problem.roundedBias.data(),
            room.data() + offset, nullptr},
           {&kAmxMicroKernel, &kAmxMicroKernel, scratches.get()}, pool);
      return scratches.get()[0].rounded[REPRISE_GEMM_COL_ALIGN] != kCanary ||
             scratches.get()[1].rounded[REPRISE_GEMM_COL_ALIGN] != kCanary;
    };
    auto check = [&](size_t offset) {
      for (int64_t i = 0; i < m; i += 9)
        for (int64_t j = i % 5; j < problem.shape.ldc; j += 5)
          ASSERT_EQ(room[offset + size_t(i * problem.shape.ldc + j)],
                    j < n ? toBF16(problem.stated(0, i, j, /*isAmx=*/true))
                          : kCanary)
              << i << ", " << j << " of depth " << k;
    };
    EXPECT_TRUE(run(toLine));
    check(toLine);
    if (k > AmxScratch::kDepth)
      continue;
    EXPECT_FALSE(run(toLine + 1)) << "C begins within a line";
    check(toLine + 1);
  }
}

// Fewer entries than threads, more than threads, more than slots.
TEST(GemmBF16, EntriesOfABatchAreIndependent) {
  Problem(80, 70, 300, TransposeB + Round, 1, 2).check();
  Problem(17, 19, 23, Round, 3, 4).check();
  Problem(9, 33, 7, TransposeB + Accumulate + Alpha, 13, 11).check();
  Problem(12, 15, REPRISE_GEMM_KC_BF16 + 3, TransposeA + Bias + Round, 2, 3)
      .check();
}

// Zeros of both signs, denormal numbers and infinities, in operands and sums.
TEST(GemmBF16, ExtremeNumbersHaveTheStatedBits) {
  for (int flags :
       {0, TransposeA + TransposeB, Accumulate + Alpha, int(Round)}) {
    Problem problem(14, 40, 37, flags);
    const uint16_t some[] = {0x0000, 0x8000, 0x0001, 0x807F, 0x0080, 0x8080,
                             0x1F80, 0x9FFF, 0x2000, 0x2345, 0x3F80, 0xBF80};
    for (BF16s *values : {&problem.a, &problem.b})
      for (size_t i = 0; i < values->size(); ++i)
        (*values)[i] = some[(i * 7 + i / 5) % std::size(some)];
    for (size_t i = 0; i < problem.c.size(); i += 3)
      problem.c[i] = i % 2 ? 0x1p-130f : -0x1.8p-127f;
    problem.check();
    // Infinite, and far from the others' edge of what is finite.
    problem.a[3] = 0x7F80, problem.b[5] = 0xFF80;
    problem.a[9] = 0x7F7F, problem.b[9] = 0x7F7F;
    problem.check();
  }
}

// Halfway cases go to the even neighbour, and what is above the largest number
// to infinity.
TEST(GemmBF16, SumsAreRoundedToNearestEven) {
  const float values[][2] = {{1.0f + 0x1p-8f, 1.0f},
                             {1.0f + 0x3p-8f, 1.0f + 0x4p-8f},
                             {1.0f + 0x1.8p-8f, 1.0f + 0x2p-8f},
                             {-1.0f - 0x1p-8f, -1.0f},
                             {0x1.FFp127f, INFINITY},
                             {0x1.FEp127f, 0x1.FEp127f}};
  for (auto &[sum, expected] : values) {
    Problem problem(1, 1, 1, Round);
    problem.a[0] = problem.b[0] = toBF16(1);
    problem.shape.alpha = sum;
    ThreadPool pool;
    std::vector<char> bytes =
        problem.run({&kMicroKernels[0], &kMicroKernels[0]}, pool);
    uint16_t result;
    memcpy(&result, bytes.data(), sizeof(result));
    EXPECT_EQ(toFloat(result), expected) << sum;
  }
}

TEST(GemmBF16, KernelsAreChosenByTheirOperands) {
  const RepriseMicroKernel all[] = {kMicroKernels[0],     kMicroKernels[1],
                                    kMicroKernels[2],     kPairMicroKernels[0],
                                    kPairMicroKernels[1], kAmxMicroKernel};
  MicroKernels amx = chooseMicroKernels(all, 6, 6, REPRISE_BF16);
  EXPECT_EQ(amx.full, all + 5);
  EXPECT_EQ(amx.low, all + 5);
  EXPECT_EQ(chooseMicroKernels(all, 6, kPortableLevel, REPRISE_BF16).full,
            all + 3);
  MicroKernels pairs = chooseMicroKernels(all, 5, 5, REPRISE_BF16);
  EXPECT_EQ(pairs.full, all + 3);
  EXPECT_EQ(pairs.low, all + 4);
  EXPECT_EQ(chooseMicroKernels(all, 5, 4, REPRISE_BF16).full, nullptr);
  EXPECT_EQ(chooseMicroKernels(all, 5, 5).full, all + 1);
  EXPECT_EQ(chooseMicroKernels(all, 5, 5).low, all + 2);
}
