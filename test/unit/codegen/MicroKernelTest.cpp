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
#include <cstring>

using namespace reprise::codegen;

/// A tile inside a larger matrix, of whose other elements none may change.
static void checkTile(const MicroKernel &kernel, RepriseMicroKernelFn fn,
                      const Floats &a, const Floats &b, int64_t k, bool add,
                      bool hasBias, RepriseMicroKernelPackFn packFn) {
  constexpr float kAlpha = 0.7f;
  const int64_t ldc = kernel.cols + 5;
  Floats before = randomFloats(kernel.rows * ldc, 3);
  if (!add) // Nothing reads what is there.
    std::fill(before.begin(), before.end(), NAN);
  Floats bias = randomFloats(kernel.cols, 4), c = before;
  const float *biasRow = hasBias ? bias.data() : nullptr;
  if (packFn) {
    // B's rows lie further apart than they are long.
    const int64_t ldb = kernel.cols + 3;
    Floats spread(k * ldb, NAN), packed(k * kernel.cols + 1, 7.0f);
    for (int64_t p = 0; p < k; ++p)
      std::copy_n(&b[p * kernel.cols], kernel.cols, &spread[p * ldb]);
    packFn(a.data(), spread.data(), k, c.data(), ldc, kAlpha, add, biasRow, ldb,
           packed.data());
    EXPECT_TRUE(
        std::equal(b.begin(), b.begin() + k * kernel.cols, packed.begin()));
    EXPECT_EQ(packed.back(), 7.0f);
  } else {
    fn(a.data(), b.data(), k, c.data(), ldc, kAlpha, add, biasRow);
  }
  for (int64_t r = 0; r < kernel.rows; ++r)
    for (int64_t j = 0; j < ldc; ++j) {
      float expected = before[r * ldc + j];
      if (j < kernel.cols) {
        float sum = 0;
        for (int64_t p = 0; p < k; ++p)
          sum = std::fma(a[p * kernel.rows + r], b[p * kernel.cols + j], sum);
        float product = kAlpha * sum;
        expected = add ? expected + product : product;
        if (hasBias)
          expected = expected + bias[j];
      }
      ASSERT_EQ(memcmp(&c[r * ldc + j], &expected, 4), 0)
          << kernel.symbol() << " k " << k << " at " << r << ", " << j << ": "
          << c[r * ldc + j] << " for " << expected;
    }
}

TEST(MicroKernel, IsTheChainOfFusedMultiplyAdds) {
  KernelRunner runner("module {}");
  int ran = 0;
  for (const MicroKernel &kernel : getMicroKernels()) {
    if (kernel.isa > 0 && !__builtin_cpu_supports("avx512vl"))
      continue;
    ++ran;
    auto fn =
        reinterpret_cast<RepriseMicroKernelFn>(runner.address(kernel.symbol()));
    auto packFn = reinterpret_cast<RepriseMicroKernelPackFn>(
        runner.address(kernel.packSymbol()));
    // None, fewer than the unrolling, more with and without a remainder.
    for (int64_t k : {0, 1, 3, 4, 8, 13, 256}) {
      Floats a = randomFloats(k * kernel.rows, 1),
             b = randomFloats(k * kernel.cols, 2);
      for (bool add : {false, true})
        for (bool bias : {false, true})
          for (bool packs : {false, true})
            checkTile(kernel, fn, a, b, k, add, bias, packs ? packFn : nullptr);
    }
  }
  EXPECT_GE(ran, 1);
}
