//===- MicroKernels.h - Products' inner loops in plain C++ ------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_UNIT_RUNTIME_MICROKERNELS_H
#define REPRISE_TEST_UNIT_RUNTIME_MICROKERNELS_H

#include "reprise/ABI/Model.h"

#include <cmath>

namespace reprise::runtime::test {

/// What RepriseMicroKernelFn asks for, to the letter.
template <int Rows, int Cols>
void microKernel(const float *a, const float *b, int64_t k, float *c,
                 int64_t ldc, float alpha, int32_t addToC, const float *bias) {
  float tile[Rows * Cols] = {};
  for (int64_t p = 0; p < k; ++p)
    for (int r = 0; r < Rows; ++r)
      for (int j = 0; j < Cols; ++j)
        tile[r * Cols + j] =
            std::fma(a[p * Rows + r], b[p * Cols + j], tile[r * Cols + j]);
  for (int r = 0; r < Rows; ++r)
    for (int j = 0; j < Cols; ++j) {
      float value = alpha * tile[r * Cols + j];
      if (addToC)
        value = c[r * ldc + j] + value;
      if (bias)
        value = value + bias[j];
      c[r * ldc + j] = value;
    }
}

/// What RepriseMicroKernelPackFn asks for.
template <int Rows, int Cols>
void microKernelPack(const float *a, const float *b, int64_t k, float *c,
                     int64_t ldc, float alpha, int32_t addToC,
                     const float *bias, int64_t ldb, float *packedB) {
  for (int64_t p = 0; p < k; ++p)
    for (int j = 0; j < Cols; ++j)
      packedB[p * Cols + j] = b[p * ldb + j];
  microKernel<Rows, Cols>(a, packedB, k, c, ldc, alpha, addToC, bias);
}

template <int Rows, int Cols>
constexpr RepriseMicroKernel tile(uint32_t isa) {
  return {
      microKernel<Rows, Cols>, microKernelPack<Rows, Cols>, Rows, Cols, isa, 0};
}

/// The shapes that the compiler emits, and one that no vector fits.
inline constexpr RepriseMicroKernel kMicroKernels[] = {
    tile<6, 16>(0), tile<12, 32>(1), tile<8, 32>(1), tile<3, 8>(1)};

} // namespace reprise::runtime::test

#endif // REPRISE_TEST_UNIT_RUNTIME_MICROKERNELS_H
