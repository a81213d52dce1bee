//===- GroupedGemmTest.cpp - GEMMs of rows that belong to groups ----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A GEMM with groups has the bits of a GEMM of each group's rows, which
// the test gathers itself; whatever the threads, and whatever rows others have.
//
//===----------------------------------------------------------------------===//

#include "runtime/compute/GroupedGemm.h"
#include "MicroKernels.h"
#include "runtime/compute/Cpu.h"

#include <numeric>

using namespace reprise::runtime;
using namespace reprise::runtime::test;

namespace {
constexpr float kCanary = 12345.0f;

/// What is not 0 of a shape's flags.
struct Flags {
  bool isSum = false, transposeB = false, accumulate = false;
  int32_t gather = REPRISE_GATHER_NONE;
};

template <typename T>
struct Problem {
  RepriseGemm shape = {};
  std::vector<int32_t> offsets = {0}, order;
  std::vector<T> a, b;
  std::vector<float> c, workspace;

  /// Rows of each group; `rows` by `cols` is the matrix of a group.
  Problem(const std::vector<int> &sizes, int64_t rows, int64_t cols,
          Flags flags) {
    for (int size : sizes)
      offsets.push_back(offsets.back() + size);
    const int64_t all = offsets.back();
    shape.groups = int32_t(sizes.size());
    shape.alpha = 1;
    shape.batch[0] = shape.batch[1] = 1;
    shape.transposeA = flags.isSum, shape.transposeB = flags.transposeB;
    shape.accumulate = flags.accumulate;
    shape.gather = flags.gather;
    shape.slots = flags.gather ? 2 : 1;
    shape.places = flags.gather ? all : 0;
    shape.typeAB = sizeof(T) == 2 ? REPRISE_BF16 : REPRISE_F32;
    shape.m = flags.isSum ? rows : all, shape.k = flags.isSum ? all : rows;
    shape.n = cols;
    shape.lda = flags.isSum ? rows : shape.k;
    shape.ldb = flags.transposeB ? shape.k : shape.n, shape.ldc = shape.n;
    (flags.isSum ? shape.strideC : shape.strideB)[1] = rows * cols;
    // A permutation, of numbers that have no common divisor with 7919.
    for (int64_t row = 0; row < all; ++row)
      order.push_back(int32_t(row * 7919 % all));
    fill(a, all * (flags.isSum ? rows : shape.k), 1);
    fill(b, flags.isSum ? all * cols : shape.groups * rows * cols, 2);
    fill(c, flags.isSum ? shape.groups * rows * cols : all * cols, 3);
    workspace.assign(size_t(repriseGemmWorkspaceBytes(&shape) / 4) + 16,
                     kCanary);
  }

  template <typename U>
  static void fill(std::vector<U> &values, int64_t size, uint32_t state) {
    for (int64_t i = 0; i < size; ++i) {
      state = state * 1664525u + 1013904223u;
      float value = float(int32_t(state)) * 0x1p-31f;
      if constexpr (sizeof(U) == 2)
        values.push_back(toBF16(value));
      else
        values.push_back(value);
    }
  }

  bool compute(std::vector<float> &result, const MicroKernels &kernels,
               ThreadPool &pool, Error &error) {
    return groupedGemm(shape,
                       {a.data(), b.data(), offsets.data(),
                        shape.gather ? order.data() : nullptr, result.data(),
                        workspace.data()},
                       kernels, pool, "gt", error);
  }

  std::vector<float> run(const MicroKernels &kernels, ThreadPool &pool) {
    std::vector<float> result = c;
    Error error;
    EXPECT_TRUE(compute(result, kernels, pool, error)) << error.text;
    for (size_t i = workspace.size() - 16; i < workspace.size(); ++i)
      EXPECT_EQ(workspace[i], kCanary) << "written behind the workspace";
    return result;
  }

  /// The rows of a group, where an operand has them.
  std::vector<T> getRows(const std::vector<T> &from, int32_t operand,
                         int64_t group, int64_t width) const {
    std::vector<T> rows;
    for (int32_t row = offsets[group]; row < offsets[group + 1]; ++row) {
      int64_t at = shape.gather == operand ? order[row] / 2 : row;
      rows.insert(rows.end(), from.begin() + at * width,
                  from.begin() + (at + 1) * width);
    }
    return rows;
  }

  std::vector<float> getExpected(const MicroKernels &kernels) const {
    std::vector<float> result = c;
    ThreadPool one;
    for (int64_t group = 0; group < shape.groups; ++group) {
      int64_t size = offsets[group + 1] - offsets[group];
      float *to = result.data() + (shape.transposeA ? group * shape.strideC[1]
                                                    : offsets[group] * shape.n);
      if (size == 0) {
        if (shape.transposeA && !shape.accumulate)
          std::fill_n(to, shape.m * shape.n, 0.0f);
        continue;
      }
      RepriseGemm own = repriseGemmOfGroup(&shape, size);
      std::vector<T> rowsOfA = getRows(a, REPRISE_GATHER_A, group, shape.lda);
      std::vector<T> rowsOfB = getRows(b, REPRISE_GATHER_B, group, shape.n);
      std::vector<float> room(size_t(repriseGemmWorkspaceBytes(&own) / 4));
      gemm(own,
           {rowsOfA.data(),
            shape.transposeA ? rowsOfB.data()
                             : b.data() + group * shape.strideB[1],
            nullptr, to, room.data()},
           kernels, one);
    }
    return result;
  }

  void check(const MicroKernels &kernels) {
    std::vector<float> expected = getExpected(kernels);
    for (int threads : {1, 2, 3}) {
      ThreadPool pool;
      Error error;
      ASSERT_TRUE(pool.start(threads, error)) << error.text;
      EXPECT_TRUE(areSame(run(kernels, pool), expected))
          << threads << " threads, gather " << shape.gather << ", sum "
          << shape.transposeA;
    }
  }
};

/// Groups without rows, one row, many, and more than a part has; at the ends,
/// too.
const std::vector<int> kSizes = {
    0, 1, 5, 0, 27, 2 * REPRISE_GEMM_GROUP_ROWS + 9, 12, 0};

template <typename T>
void checkAll(const MicroKernels &kernels) {
  for (auto [rows, cols] : {std::pair(20, 37), {300, 70}, {7, 1}}) {
    for (bool transposeB : {false, true})
      for (int32_t gather : {REPRISE_GATHER_NONE, REPRISE_GATHER_A})
        Problem<T>(kSizes, rows, cols, {false, transposeB, false, gather})
            .check(kernels);
    for (int32_t gather :
         {REPRISE_GATHER_NONE, REPRISE_GATHER_A, REPRISE_GATHER_B})
      for (bool accumulate : {false, true})
        Problem<T>(kSizes, rows, cols, {true, false, accumulate, gather})
            .check(kernels);
  }
}
} // namespace

TEST(GroupedGemm, HasTheBitsOfEachGroupAlone) {
  checkAll<float>({&kMicroKernels[0], &kMicroKernels[0]});
}

TEST(GroupedGemm, HasTheBitsOfEachGroupAloneInBF16) {
  checkAll<uint16_t>({&kMicroKernels[0], &kMicroKernels[0]});
}

// Sizes that have the threads share panels of B, and rows in one block or two.
TEST(GroupedGemm, HasTheBitsOfEachGroupAloneAtUnevenSizes) {
  const RepriseMicroKernel full = forThisProcessor(kMicroKernels[1]),
                           low = forThisProcessor(kMicroKernels[2]);
  const std::vector<int> sizes = {300, 91, 517, 0, 274};
  for (bool transposeB : {false, true}) {
    const Flags flags = {false, transposeB};
    Problem<float>(sizes, 270, 420, flags).check({&full, &low});
    Problem<uint16_t>(sizes, 270, 420, flags).check({&full, &low});
    Problem<float>(sizes, 270, 420, flags).check({&full, &low, nullptr, 1024});
  }
  Problem<float>(sizes, 300, 420, {true}).check({&full, &low});
}

// A group's rows are what they are whatever stands behind them: numbers that
// are none do not get into a GEMM or a sum.
TEST(GroupedGemm, DoesNotReadRowsOfOthers) {
  for (bool isSum : {false, true}) {
    Problem<float> problem({3, 2}, 20, 33, {isSum});
    std::vector<float> expected =
        problem.getExpected({&kMicroKernels[0], &kMicroKernels[0]});
    std::fill(problem.a.begin() + 3 * problem.shape.lda, problem.a.end(), NAN);
    ThreadPool one;
    std::vector<float> result =
        problem.run({&kMicroKernels[0], &kMicroKernels[0]}, one);
    size_t count = isSum ? problem.shape.strideC[1] : 3 * 33;
    expected.resize(count), result.resize(count);
    EXPECT_TRUE(areSame(result, expected));
  }
}

// Rows that are not there are refused before anything is computed.
TEST(GroupedGemm, RefusesRowsThatAreNotThere) {
  const MicroKernels kernels = {&kMicroKernels[0], &kMicroKernels[0]};
  ThreadPool one;
  auto refuse = [&](auto change, const char *message) {
    Problem<float> problem({3, 2}, 20, 33,
                           {false, false, false, REPRISE_GATHER_A});
    change(problem);
    std::vector<float> result = problem.c;
    Error error;
    EXPECT_FALSE(problem.compute(result, kernels, one, error));
    EXPECT_STREQ(error.text, message);
    EXPECT_TRUE(areSame(result, problem.c));
  };
  refuse([](auto &problem) { problem.offsets[1] = 6; },
         "gt has 5 rows, but its group 1 begins at row 6 behind row 0");
  refuse([](auto &problem) { problem.offsets[0] = 1; },
         "gt has 5 rows, but its group 0 begins at row 1 behind row 0");
  refuse([](auto &problem) { problem.offsets[2] = 2; },
         "gt has 5 rows, but its group 2 begins at row 2 behind row 3");
  refuse([](auto &problem) { problem.offsets[2] = 6; },
         "gt has 5 rows, but its group 2 begins at row 6 behind row 3");
  refuse([](auto &problem) { problem.order[3] = 5; },
         "gt has 5 places, but row 3 is gathered from place 5");
}

// Rows of no group are zero, whatever is in what they are made of, and have no
// part in a sum.
TEST(GroupedGemm, MakesZerosOfRowsOfNoGroup) {
  const MicroKernels kernels = {&kMicroKernels[0], &kMicroKernels[0]};
  ThreadPool one;
  for (bool isSum : {false, true}) {
    Problem<float> problem({3, 2}, 20, 33, {isSum});
    std::vector<float> expected = problem.getExpected(kernels);
    problem.offsets[2] = 3;
    std::fill(problem.a.begin() + 3 * problem.shape.lda, problem.a.end(), NAN);
    std::vector<float> result = problem.run(kernels, one);
    std::fill(expected.begin() + (isSum ? problem.shape.strideC[1] : 3 * 33),
              expected.end(), 0.0f);
    EXPECT_TRUE(areSame(result, expected)) << isSum;
  }
}
