//===- AttentionNumbers.cpp - GEMMs of f32 ----------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionGemms.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::cuda;

namespace {
class NumberUnit : public MatrixUnit {
public:
  using MatrixUnit::MatrixUnit;

  Values gemm(Value own, Value tile, int64_t width,
              ValueRange kept) const override;
  Values addGemm(ValueRange sums, ValueRange weights,
                 Value tile) const override;
};
} // namespace

MatrixUnit::Values NumberUnit::gemm(Value own, Value tile, int64_t width,
                                    ValueRange) const {
  VectorType four = VectorType::get({4}, code.getF32Type());
  Value low = code.add(own, code.mul(ownRow(code, 0), layout.strideBytes));
  Value first = code.add(tile, code.mul(code.quad, 2 * layout.strideBytes));
  Values sums(division.tileRows / 2, code.f32(0));
  return code.repeat(
      code.i32(0), code.i32(shape.padded(width) * 4), kVectorBytes, sums,
      [&](Value k, ValueRange old) {
        Value rows[2];
        for (int64_t r = 0; r < 2; ++r)
          rows[r] = loadShared(
              code, four,
              code.add(code.add(low, k), 8 * r * layout.strideBytes));
        Values next(old);
        for (int64_t c = 0; c < division.tileRows; c += kBlockColumns)
          for (int64_t e = 0; e < 2; ++e) {
            Value column = loadShared(
                code, four,
                code.add(code.add(first, k), (c + e) * layout.strideBytes));
            for (int64_t r = 0; r < 2; ++r) {
              Value &sum = next[c / 2 + 2 * r + e];
              for (int64_t i = 0; i < 4; ++i)
                sum = code.fma(elementOf(code, rows[r], i),
                               elementOf(code, column, i), sum);
            }
          }
        return next;
      });
}

MatrixUnit::Values NumberUnit::addGemm(ValueRange sums, ValueRange weights,
                                       Value tile) const {
  VectorType two = VectorType::get({2}, code.getF32Type());
  VectorType four = VectorType::get({4}, code.getF32Type());
  int64_t stride = layout.weightStride;
  Value low = code.add(code.mul(ownRow(code, 0), stride), layout.weights);
  Value mine = code.add(low, code.mul(code.quad, 8));
  for (int64_t c = 0; c < division.tileRows; c += kBlockColumns)
    for (int64_t r = 0; r < 2; ++r) {
      Value pair = vector::FromElementsOp::create(
          code, two,
          ValueRange{weights[c / 2 + 2 * r], weights[c / 2 + 2 * r + 1]});
      storeShared(code, pair, code.add(mine, 8 * r * stride + 4 * c));
    }
  syncWarp(code);
  Value columns = code.add(tile, code.mul(code.quad, 8));
  Values result = code.repeat(
      code.i32(0), code.i32(division.tileRows), 4, sums,
      [&](Value k, ValueRange old) {
        Value rows[2];
        for (int64_t r = 0; r < 2; ++r)
          rows[r] = loadShared(
              code, four,
              code.add(code.add(low, code.mul(k, 4)), 8 * r * stride));
        Value at = code.add(columns, code.mul(k, layout.strideBytes));
        Values next(old);
        for (int64_t i = 0; i < 4; ++i)
          for (int64_t c = 0; c < int64_t(2 * old.size()); c += kBlockColumns) {
            Value terms = loadShared(
                code, two, code.add(at, i * layout.strideBytes + 4 * c));
            for (int64_t r = 0; r < 2; ++r)
              for (int64_t e = 0; e < 2; ++e) {
                Value &sum = next[c / 2 + 2 * r + e];
                sum = code.fma(elementOf(code, rows[r], i),
                               elementOf(code, terms, e), sum);
              }
          }
        return next;
      });
  syncWarp(code); // before the next weights
  return result;
}

std::unique_ptr<MatrixUnit> cuda::createNumberUnit(Warp &code,
                                                   const AttentionShape &shape,
                                                   const Division &division) {
  return std::make_unique<NumberUnit>(code, shape, division);
}
