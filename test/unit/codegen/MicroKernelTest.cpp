//===- MicroKernelTest.cpp - Every tile gives the same bits -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelRunner.h"
#include "reprise/ABI/Model.h"
#include "reprise/Codegen/CPU/MicroKernels.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace reprise::codegen;

TEST(MicroKernel, IsTheChainOfFusedMultiplyAdds) {
  KernelRunner runner("module {}");
  int ran = 0;
  for (const MicroKernel &kernel : getMicroKernels()) {
    if (kernel.isa > 0 && !__builtin_cpu_supports("avx512vl"))
      continue;
    ++ran;
    auto fn =
        reinterpret_cast<RepriseMicroKernelFn>(runner.address(kernel.symbol()));
    // None, fewer than the unrolling, more with and without a remainder.
    for (int64_t k : {0, 1, 3, 4, 8, 13, 256}) {
      Floats a = randomFloats(k * kernel.rows, 1),
             b = randomFloats(k * kernel.cols, 2);
      Floats tile(kernel.rows * kernel.cols, NAN);
      fn(a.data(), b.data(), tile.data(), k);
      for (int r = 0; r < kernel.rows; ++r)
        for (int c = 0; c < kernel.cols; ++c) {
          float sum = 0;
          for (int64_t p = 0; p < k; ++p)
            sum = std::fma(a[p * kernel.rows + r], b[p * kernel.cols + c], sum);
          ASSERT_EQ(tile[r * kernel.cols + c], sum)
              << kernel.symbol() << " k " << k << " at " << r << ", " << c;
        }
    }
  }
  EXPECT_GE(ran, 1);
}
