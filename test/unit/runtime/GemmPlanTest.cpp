//===- GemmPlanTest.cpp - How GEMMs go over their blocks ------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A table of shapes and their plans, the same on every machine: micro-kernels
// are given by their tiles, and so are threads and L2.
// Where a number decides, there is a row on either side of it.
//
//===----------------------------------------------------------------------===//

#include "runtime/compute/GemmPlan.h"

#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <string>
#include <tuple>

using namespace reprise::runtime;

namespace {

RepriseMicroKernel makeKernel(int rows, int cols, int isa, int type) {
  RepriseMicroKernel kernel = {};
  kernel.rows = rows, kernel.cols = cols;
  kernel.isa = isa, kernel.typeAB = type;
  return kernel;
}

/// A processor's micro-kernels, full and low, and its L2.
struct Kernels {
  RepriseMicroKernel full, low;
  int64_t bytesOfL2 = 1 << 20;
  MicroKernels get() const {
    MicroKernels kernels;
    kernels.bytesOfL2 = bytesOfL2;
    kernels.full = &full, kernels.low = &low;
    return kernels;
  }
};

const Kernels kAVX2 = {makeKernel(6, 16, REPRISE_ISA_V3, REPRISE_F32),
                       makeKernel(4, 16, REPRISE_ISA_V3, REPRISE_F32)};
const Kernels kAVX512 = {makeKernel(12, 32, REPRISE_ISA_V4, REPRISE_F32),
                         makeKernel(8, 32, REPRISE_ISA_V4, REPRISE_F32)};
const Kernels kPairs = {
    makeKernel(12, 32, REPRISE_ISA_AVX512_BF16, REPRISE_BF16),
    makeKernel(8, 32, REPRISE_ISA_AVX512_BF16, REPRISE_BF16)};
const Kernels kTiles = {makeKernel(32, 32, REPRISE_ISA_AMX_BF16, REPRISE_BF16),
                        makeKernel(32, 32, REPRISE_ISA_AMX_BF16, REPRISE_BF16)};

const Kernels kAVX512WithSmallL2 = {kAVX512.full, kAVX512.low, 1 << 19};

/// The forms of the three GEMMs of a linear layer.
enum Form { Forward, InputGradient, WeightGradient };

RepriseGemm makeGemm(Form form, int type, int64_t m, int64_t n, int64_t k) {
  RepriseGemm gemm = {};
  gemm.m = m, gemm.n = n, gemm.k = k;
  gemm.transposeA = form == WeightGradient;
  gemm.transposeB = form == InputGradient;
  gemm.lda = gemm.transposeA ? m : k;
  gemm.ldb = gemm.transposeB ? k : n;
  gemm.ldc = n;
  gemm.batch[0] = gemm.batch[1] = 1;
  gemm.alpha = 1;
  gemm.typeAB = type;
  gemm.typeC = form == WeightGradient ? REPRISE_F32 : type;
  return gemm;
}

std::string planOf(const RepriseGemm &gemm, const Kernels &kernels, int threads,
                   const GemmRequest &request = {false, true}) {
  char text[256];
  describePlan(choosePlan(gemm, kernels.get(), threads, request), text,
               sizeof(text));
  return text;
}

struct Row {
  const Kernels &kernels;
  int type;
  Form form;
  int64_t m, n, k;
  int threads;
  const char *plan;
};

} // namespace

TEST(GemmPlan, Table) {
  const Row rows[] = {
      {kAVX512, REPRISE_F32, Forward, 1024, 768, 768, 2,
       "long partitions, f32, blocks of 1024 x 768 x 256, 4 partitions"},
      {kAVX512, REPRISE_F32, Forward, 1024, 128, 768, 2,
       "read A, f32, blocks of 1024 x 128 x 256"},
      {kAVX512, REPRISE_F32, Forward, 1024, 128, 768, 64,
       "tiles, f32, blocks of 264 x 128 x 256"},
      {kAVX512, REPRISE_F32, InputGradient, 1024, 3072, 768, 2,
       "read A by columns, f32, blocks of 1024 x 512 x 256"},
      {kAVX512, REPRISE_F32, InputGradient, 128, 768, 3072, 4,
       "whole depth, f32, blocks of 128 x 768 x 256"},
      {kAVX512, REPRISE_F32, WeightGradient, 768, 3072, 1024, 2,
       "long partitions, f32, blocks of 768 x 2048 x 256, 4 partitions"},
      {kAVX512, REPRISE_F32, WeightGradient, 768, 2304, 256, 2,
       "long partitions, f32, blocks of 768 x 2048 x 256, 4 partitions, C past "
       "the caches"},
      {kAVX512, REPRISE_F32, WeightGradient, 200, 96, 256, 4,
       "partitions, f32, blocks of 200 x 96 x 256, 8 partitions"},
      {kAVX512, REPRISE_F32, Forward, 128, 4096, 1024, 2,
       "whole depth, f32, blocks of 128 x 2048 x 256"},
      {kAVX512, REPRISE_F32, Forward, 200, 4096, 1024, 32,
       "tiles, f32, blocks of 200 x 2048 x 256"},
      {kAVX512, REPRISE_F32, Forward, 256, 2112, 1024, 2,
       "whole depth, f32, blocks of 256 x 1056 x 256"},
      {kAVX512, REPRISE_F32, Forward, 256, 768, 3072, 1,
       "own panels, f32, blocks of 256 x 768 x 256"},
      {kAVX512, REPRISE_F32, Forward, 1, 50257, 768, 2,
       "whole depth, f32, blocks of 1 x 2016 x 256"},
      {kAVX512, REPRISE_F32, Forward, 1024, 50304, 256, 1,
       "own panels, f32, blocks of 264 x 2048 x 256, C past the caches"},
      {kAVX2, REPRISE_F32, Forward, 1024, 768, 768, 2,
       "long partitions, f32, blocks of 1024 x 768 x 256, 4 partitions"},
      {kAVX2, REPRISE_F32, InputGradient, 1024, 3072, 768, 2,
       "long partitions, f32, blocks of 1024 x 2048 x 256, 4 partitions"},
      {kAVX2, REPRISE_F32, WeightGradient, 768, 3072, 1024, 1,
       "own panels, f32, blocks of 264 x 2048 x 256"},
      {kPairs, REPRISE_BF16, Forward, 1024, 768, 768, 2,
       "long partitions, bf16x2, blocks of 1024 x 768 x 768, 4 partitions"},
      {kPairs, REPRISE_BF16, InputGradient, 1024, 768, 3072, 2,
       "long partitions, bf16x2, blocks of 1024 x 768 x 1024, 4 partitions"},
      {kPairs, REPRISE_BF16, WeightGradient, 768, 3072, 1024, 2,
       "long partitions, bf16x2, blocks of 768 x 2048 x 1024, 4 partitions, C "
       "past the caches"},
      {kAVX512, REPRISE_BF16, Forward, 1024, 768, 768, 2,
       "partitions, bf16 as f32, blocks of 1024 x 768 x 768, 8 partitions"},
      {kAVX512, REPRISE_BF16, Forward, 512, 128, 768, 2,
       "small B, bf16 as f32, blocks of 512 x 128 x 768, 4 partitions"},
      {kAVX512, REPRISE_F32, Forward, 300, 4160, 512, 16,
       "own panels, f32, blocks of 264 x 2048 x 256, the last tiles"},
      {kAVX2, REPRISE_F32, Forward, 1024, 128, 768, 2,
       "read A, f32, blocks of 1024 x 128 x 256"},
      {kAVX512, REPRISE_F32, Forward, 452, 768, 768, 2,
       "whole depth, f32, blocks of 452 x 768 x 256"},
      {kAVX512, REPRISE_F32, Forward, 453, 768, 768, 2,
       "long partitions, f32, blocks of 453 x 768 x 256, 2 partitions"},
      {kAVX512, REPRISE_F32, Forward, 512, 2048, 768, 2,
       "whole depth, f32, blocks of 512 x 2048 x 256"},
      {kAVX512, REPRISE_F32, Forward, 513, 2048, 768, 2,
       "long partitions, f32, blocks of 513 x 2048 x 256, 2 partitions"},
      {kAVX512, REPRISE_F32, Forward, 513, 2048, 128, 2,
       "whole depth, f32, blocks of 513 x 2048 x 128"},
      {kAVX512, REPRISE_F32, Forward, 529, 2048, 128, 2,
       "long partitions, f32, blocks of 529 x 2048 x 128, 4 partitions"},
      {kAVX512WithSmallL2, REPRISE_F32, Forward, 264, 768, 768, 2,
       "whole depth, f32, blocks of 264 x 768 x 256"},
      {kAVX512WithSmallL2, REPRISE_F32, Forward, 265, 768, 768, 2,
       "whole depth, f32, blocks of 144 x 768 x 256"},
      {kAVX512WithSmallL2, REPRISE_F32, Forward, 372, 768, 768, 2,
       "whole depth, f32, blocks of 192 x 768 x 256"},
      {kAVX512WithSmallL2, REPRISE_F32, Forward, 384, 768, 768, 2,
       "long partitions, f32, blocks of 384 x 768 x 256, 2 partitions"},
      {kAVX512, REPRISE_F32, Forward, 300, 320, 768, 2,
       "whole depth, f32, blocks of 156 x 320 x 256"},
      {kAVX512, REPRISE_BF16, Forward, 512, 2048, 768, 2,
       "whole depth, bf16 as f32, blocks of 264 x 2048 x 768"},
      {kAVX512, REPRISE_BF16, Forward, 529, 2048, 768, 2,
       "partitions, bf16 as f32, blocks of 529 x 2048 x 768, 6 partitions"},
      {kAVX512, REPRISE_F32, Forward, 300, 768, 768, 1,
       "own panels, f32, blocks of 300 x 768 x 256"},
      {kAVX512, REPRISE_F32, Forward, 512, 2048, 768, 1,
       "own panels, f32, blocks of 512 x 2048 x 256"},
      {kAVX512, REPRISE_F32, Forward, 513, 2048, 768, 1,
       "own panels, f32, blocks of 264 x 2048 x 256"},
      {kAVX512, REPRISE_F32, Forward, 384, 128, 768, 2,
       "read A, f32, blocks of 384 x 128 x 256"},
      {kAVX512, REPRISE_F32, Forward, 372, 128, 768, 2,
       "small B, f32, blocks of 372 x 128 x 256, 4 partitions"},
      {kAVX512, REPRISE_F32, Forward, 300, 128, 1024, 2,
       "small B, f32, blocks of 300 x 128 x 256, 4 partitions"},
      {kAVX512, REPRISE_F32, Forward, 300, 128, 1028, 2,
       "partitions, f32, blocks of 300 x 128 x 256, 4 partitions"},
      {kAVX512, REPRISE_F32, InputGradient, 513, 3072, 768, 2,
       "read A by columns, f32, blocks of 513 x 512 x 256"},
      {kAVX512, REPRISE_F32, InputGradient, 512, 3072, 768, 2,
       "whole depth, f32, blocks of 512 x 1536 x 256"},
      {kAVX512, REPRISE_F32, InputGradient, 384, 768, 768, 1,
       "read A by columns, f32, blocks of 384 x 384 x 256"},
      {kAVX512, REPRISE_F32, InputGradient, 372, 768, 768, 1,
       "own panels, f32, blocks of 372 x 768 x 256"},
      {kAVX512, REPRISE_F32, Forward, 300, 480, 768, 2,
       "whole depth, f32, blocks of 300 x 480 x 256"},
      {kAVX512, REPRISE_F32, Forward, 96, 128, 2048, 2,
       "partitions, f32, blocks of 96 x 128 x 256, 2 partitions"},
      {kAVX512, REPRISE_F32, Forward, 72, 128, 2048, 2,
       "tiles, f32, blocks of 72 x 128 x 256"},
      {kAVX512, REPRISE_F32, Forward, 128, 256, 2048, 2,
       "whole depth, f32, blocks of 128 x 256 x 256"},
      {kAVX512, REPRISE_F32, Forward, 128, 224, 4096, 2,
       "partitions, f32, blocks of 128 x 224 x 256, 2 partitions"},
      {kAVX512, REPRISE_F32, Forward, 1024, 8192, 256, 1,
       "own panels, f32, blocks of 264 x 2048 x 256, C past the caches"},
      {kAVX512, REPRISE_F32, Forward, 1024, 8160, 256, 1,
       "own panels, f32, blocks of 264 x 2048 x 256"},
      {kAVX512, REPRISE_F32, WeightGradient, 768, 512, 256, 1,
       "own panels, f32, blocks of 264 x 512 x 256, C past the caches"},
      {kAVX512, REPRISE_F32, WeightGradient, 768, 480, 256, 1,
       "own panels, f32, blocks of 264 x 480 x 256"},
      {kTiles, REPRISE_BF16, Forward, 1024, 768, 768, 2, "AMX"},
  };
  for (const Row &row : rows)
    EXPECT_EQ(planOf(makeGemm(row.form, row.type, row.m, row.n, row.k),
                     row.kernels, row.threads),
              row.plan)
        << "m " << row.m << ", n " << row.n << ", k " << row.k << ", form "
        << row.form << ", " << row.threads << " threads";
}

// Squares and the layout of B and C decide on what the loops alone do not.
TEST(GemmPlan, SquaresStoresAndPackedWeights) {
  RepriseGemm weight = makeGemm(WeightGradient, REPRISE_F32, 768, 2304, 256);
  const GemmRequest squares = {true, true}, atAnyByte = {true, false};
  EXPECT_EQ(planOf(weight, kAVX512, 2, squares),
            "long partitions, f32, blocks of 768 x 2048 x 256, 4 partitions, C "
            "past the caches, squares by tile");
  EXPECT_EQ(planOf(weight, kAVX512, 2, atAnyByte),
            "long partitions, f32, blocks of 768 x 2048 x 256, 4 partitions, "
            "squares by tile");
  // Tiles of 6 rows are no whole blocks of 4: a thread sums behind its panels,
  // of which it has all, and nobody looks behind the caches.
  EXPECT_EQ(planOf(weight, kAVX2, 2, squares),
            "long partitions, f32, blocks of 768 x 2048 x 256, 4 partitions, "
            "squares by panel");
  // Here several threads have tiles of a block.
  EXPECT_EQ(planOf(makeGemm(WeightGradient, REPRISE_F32, 64, 64, 256), kAVX2, 8,
                   squares),
            "tiles, f32, blocks of 64 x 64 x 256, squares at the end");
  // An old C, or more than one k-block, is read before it is written.
  weight.accumulate = 1;
  EXPECT_EQ(planOf(weight, kAVX512, 2),
            "long partitions, f32, blocks of 768 x 2048 x 256, 4 partitions");

  RepriseGemm forward = makeGemm(Forward, REPRISE_BF16, 1024, 768, 768);
  forward.packedB = 1;
  EXPECT_EQ(planOf(forward, kPairs, 2),
            "long partitions, bf16x2, blocks of 1024 x 768 x 768, 4 "
            "partitions, B read in place");
  forward.transposeB = 1;
  EXPECT_EQ(planOf(forward, kPairs, 2),
            "long partitions, bf16x2, blocks of 1024 x 768 x 768, 4 "
            "partitions");
}

// Rows become few panels, and little is computed in vain.
TEST(GemmPlan, RowsBecomePanels) {
  for (auto [rows, ofFull, ofLow, numFull, numLow] :
       {std::tuple(256, 12, 8, 20, 2),
        {256, 6, 4, 42, 1},
        {12, 12, 8, 1, 0},
        {13, 12, 8, 0, 2},
        {1, 12, 8, 0, 1},
        {9, 12, 8, 1, 0},
        {33, 12, 12, 3, 0},
        {264, 12, 8, 22, 0}}) {
    const RowPanels panels = RowPanels::divide(rows, ofFull, ofLow);
    EXPECT_EQ(panels.numFull, numFull) << rows << " rows of " << ofFull;
    EXPECT_EQ(panels.numLow, numLow) << rows << " rows of " << ofFull;
  }
}

// The page has the table that the plan is chosen by, row for row.
TEST(GemmPlan, ThePageHasTheTable) {
  std::ifstream page(REPRISE_DOCS "/gemm.md");
  const std::string text{std::istreambuf_iterator<char>(page), {}};
  std::string table = "| order | condition | A | B | threads divide | barrier |"
                      "\n|---|---|---|---|---|---|\n";
  for (const LoopOrderInfo &info : kLoopOrders) {
    EXPECT_EQ(int(info.order), &info - kLoopOrders) << info.name;
    for (const char *cell : {info.name, info.when, info.packsA, info.packsB,
                             info.divides, info.barrier})
      table += std::string("| ") + cell + " ";
    table += "|\n";
  }
  EXPECT_NE(text.find(table), std::string::npos)
      << "docs/gemm.md needs this table:\n"
      << table;
}
