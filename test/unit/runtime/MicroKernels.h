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
#include <cstring>

namespace reprise::runtime::test {

/// What takes a denormal number for zero.
inline float flush(float value) {
  return std::fabs(value) < 0x1p-126f ? std::copysign(0.0f, value) : value;
}

/// One step of an element's sum, of two words that are f32 or pairs of bf16.
template <bool Pairs>
float multiplyAdd(const void *a, const void *b, int64_t atA, int64_t atB,
                  float sum) {
  if constexpr (!Pairs)
    return std::fma(static_cast<const float *>(a)[atA],
                    static_cast<const float *>(b)[atB], sum);
  for (int odd = 1; odd >= 0; --odd) {
    auto value = [&](const void *pairs, int64_t at) {
      uint32_t bits =
          uint32_t(static_cast<const uint16_t *>(pairs)[2 * at + odd]) << 16;
      float result;
      memcpy(&result, &bits, sizeof(result));
      return flush(result);
    };
    sum = flush(std::fma(value(a, atA), value(b, atB), sum));
  }
  return sum;
}

/// What RepriseMicroKernelFn asks for, to the letter.
template <int Rows, int Cols, bool Pairs = false>
void microKernel(const void *a, const void *b, int64_t k, float *c, int64_t ldc,
                 float alpha, int32_t addToC, const float *bias,
                 const void * /*next*/, int64_t, int64_t) {
  float tile[Rows * Cols] = {};
  for (int64_t p = 0; p < k; ++p)
    for (int r = 0; r < Rows; ++r)
      for (int j = 0; j < Cols; ++j)
        tile[r * Cols + j] = multiplyAdd<Pairs>(
            a, b, p * Rows + r, p * Cols + j, tile[r * Cols + j]);
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
void microKernelPack(const void *a, const void *b, int64_t k, float *c,
                     int64_t ldc, float alpha, int32_t addToC,
                     const float *bias, const void *next, int64_t stride,
                     int64_t rows, int64_t ldb, void *packedB) {
  for (int64_t p = 0; p < k; ++p)
    memcpy(static_cast<float *>(packedB) + p * Cols,
           static_cast<const float *>(b) + p * ldb, Cols * sizeof(float));
  microKernel<Rows, Cols>(a, packedB, k, c, ldc, alpha, addToC, bias, next,
                          stride, rows);
}

template <int Rows, int Cols>
constexpr RepriseMicroKernel tile(uint32_t isa) {
  return {microKernel<Rows, Cols>,
          microKernelPack<Rows, Cols>,
          Rows,
          Cols,
          isa,
          REPRISE_F32};
}

template <int Rows, int Cols>
constexpr RepriseMicroKernel tileOfPairs(uint32_t isa) {
  return {
      microKernel<Rows, Cols, true>, nullptr, Rows, Cols, isa, REPRISE_BF16};
}

/// The shapes that the compiler emits, and one that no vector fits.
inline constexpr RepriseMicroKernel kMicroKernels[] = {
    tile<6, 16>(0), tile<12, 32>(1), tile<8, 32>(1), tile<3, 8>(1)};
inline constexpr RepriseMicroKernel kPairMicroKernels[] = {
    tileOfPairs<12, 32>(2), tileOfPairs<8, 32>(2), tileOfPairs<3, 8>(2)};

/// A kernel of these, with an instruction set that this processor has: what
/// packs its panels may use it.
inline RepriseMicroKernel forThisProcessor(RepriseMicroKernel kernel) {
  if (!__builtin_cpu_supports("avx512dq"))
    kernel.isa = 0;
  return kernel;
}

} // namespace reprise::runtime::test

#endif // REPRISE_TEST_UNIT_RUNTIME_MICROKERNELS_H
