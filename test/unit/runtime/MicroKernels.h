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

/// The shapes that the compiler emits, and one that no vector fits.
inline const RepriseMicroKernel kMicroKernels[] = {
    {microKernel<6, 16>, 6, 16, 0, 0},
    {microKernel<8, 32>, 8, 32, 1, 0},
    {microKernel<3, 8>, 3, 8, 1, 0}};

} // namespace reprise::runtime::test

#endif // REPRISE_TEST_UNIT_RUNTIME_MICROKERNELS_H
