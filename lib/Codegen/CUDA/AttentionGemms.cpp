//===- AttentionGemms.cpp - The GEMMs of a block ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionGemms.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::cuda;

std::unique_ptr<MatrixUnit> MatrixUnit::create(Warp &code,
                                               const AttentionShape &shape,
                                               const Division &division) {
  if (!shape.isBF16())
    return createNumberUnit(code, shape, division);
  return division.byWarpGroup ? createWarpGroupUnit(code, shape, division)
                              : createWarpUnit(code, shape, division);
}

namespace {
/// GEMMs of bf16 by mma.sync.
class WarpUnit : public MatrixUnit {
public:
  using MatrixUnit::MatrixUnit;

  Values rowsToKeep(Value own, int64_t width) const override;
  Values gemm(Value own, Value tile, int64_t width,
              ValueRange kept) const override;
  Values addGemm(ValueRange sums, ValueRange weights,
                 Value tile) const override;
};
} // namespace

MatrixUnit::Values WarpUnit::rowsToKeep(Value own, int64_t width) const {
  Values kept;
  Value row = code.add(code.mul(code.warp, kWarpRows), code.rem(code.lane, 16));
  Value at = code.add(code.add(own, code.mul(row, layout.strideBytes)),
                      code.mul(code.div(code.lane, 16), kVectorBytes));
  for (int64_t k = 0; k < shape.padded(width); k += 16)
    kept.append(loadMatrices(code, code.add(at, 2 * k), /*transposed=*/false));
  return kept;
}

MatrixUnit::Values WarpUnit::gemm(Value own, Value tile, int64_t width,
                                  ValueRange kept) const {
  Values loaded;
  if (kept.empty())
    loaded = rowsToKeep(own, width), kept = loaded;
  // Matrices of 8 rows by 8 terms: two of terms, then those of the next rows.
  Value row =
      code.add(code.mul(code.div(code.lane, 16), 8), code.rem(code.lane, 8));
  Value half = code.bits(code.div(code.lane, 8), 1);
  Value at = code.add(code.add(tile, code.mul(row, layout.strideBytes)),
                      code.mul(half, kVectorBytes));
  Values sums(division.tileRows / 2, code.f32(0));
  for (int64_t k = 0; k < shape.padded(width); k += 16)
    for (int64_t c = 0; c < division.tileRows; c += 16) {
      Values rows =
          loadMatrices(code, code.add(at, c * layout.strideBytes + 2 * k),
                       /*transposed=*/false);
      for (int64_t h = 0; h < 2; ++h) {
        MutableArrayRef<Value> part(sums.data() + c / 2 + 4 * h, 4);
        llvm::copy(multiply(code, ValueRange(kept).slice(k / 4, 4),
                            ValueRange(rows).slice(2 * h, 2),
                            ValueRange(ArrayRef<Value>(part))),
                   part.begin());
      }
    }
  return sums;
}

MatrixUnit::Values WarpUnit::addGemm(ValueRange old, ValueRange weights,
                                     Value tile) const {
  // What a thread has of two blocks of weights is what it needs of 16 terms.
  Value row = code.rem(code.lane, 16), half = code.div(code.lane, 16);
  Value at = code.add(code.add(tile, code.mul(row, layout.strideBytes)),
                      code.mul(half, kVectorBytes));
  Values sums(old);
  for (int64_t k = 0; k < division.tileRows; k += 16) {
    Values packed;
    for (int64_t i = 0; i < 8; i += 2)
      packed.push_back(pack(code, weights[k / 2 + i], weights[k / 2 + i + 1]));
    for (int64_t c = 0; c < int64_t(2 * old.size()); c += 16) {
      Values rows =
          loadMatrices(code, code.add(at, k * layout.strideBytes + 2 * c),
                       /*transposed=*/true);
      for (int64_t h = 0; h < 2; ++h) {
        MutableArrayRef<Value> part(sums.data() + c / 2 + 4 * h, 4);
        llvm::copy(multiply(code, packed, ValueRange(rows).slice(2 * h, 2),
                            ValueRange(ArrayRef<Value>(part))),
                   part.begin());
      }
    }
  }
  return sums;
}

std::unique_ptr<MatrixUnit> cuda::createWarpUnit(Warp &code,
                                                 const AttentionShape &shape,
                                                 const Division &division) {
  return std::make_unique<WarpUnit>(code, shape, division);
}
