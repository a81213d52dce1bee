//===- AttentionTiles.cpp - Tiles in shared memory --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionTiles.h"
#include "AsyncCopies.h"
#include "WarpGroup.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "reprise/Codegen/Common/Numbers.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::cuda;

bool cuda::hasVectors(const AttentionShape &shape, int64_t width) {
  return width * shape.elementBytes() % kVectorBytes == 0;
}

Value cuda::elementOf(Warp &code, Value vector, int64_t index) {
  return vector::ExtractOp::create(code, vector, index);
}

Value cuda::ownRow(Warp &code, int64_t which) {
  return code.add(code.add(code.mul(code.warp, kWarpRows), code.group),
                  8 * which);
}

Matrix SharedTiles::matrix(Value buffer, Value entry, Value head, int64_t heads,
                           int64_t width) const {
  int64_t stride = heads * width;
  Value offset = code.add(code.mul(code.widen(entry), shape.length * stride),
                          code.mul(code.widen(head), width));
  return {code.address(toDevice(code, buffer), shape.element, offset), stride,
          width};
}

Value SharedTiles::own(int64_t index) const {
  return code.i32(index * division.ownRows() * layout.strideBytes);
}

Value SharedTiles::walked(Value step, int64_t index) const {
  int64_t bytes = division.tileRows * layout.strideBytes;
  return code.add(code.mul(code.bits(step, 1), 2 * bytes),
                  layout.walkedTiles + index * bytes);
}

Value SharedTiles::vectorOf(Value tile, int64_t rows, Value row,
                            Value vector) const {
  if (!division.byWarpGroup)
    return code.add(tile, code.add(code.mul(row, layout.strideBytes),
                                   code.mul(vector, kVectorBytes)));
  constexpr int64_t inRow = kPanelRowBytes / kVectorBytes;
  Value place = arith::XOrIOp::create(code, code.rem(vector, inRow),
                                      code.rem(row, inRow));
  Value panel = code.mul(code.div(vector, inRow), rows * kPanelRowBytes);
  return code.add(
      code.add(tile, panel),
      code.add(code.mul(row, kPanelRowBytes), code.mul(place, kVectorBytes)));
}

void SharedTiles::copy(const Matrix &from, Value first, int64_t rows,
                       Value to) const {
  if (!hasVectors(shape, from.width))
    return copyElements(from, first, rows, to);
  // Columns of padding are vectors of which nothing is read.
  int64_t perVector = kVectorBytes / shape.elementBytes();
  int64_t inRow = shape.padded(from.width) / perVector;
  int64_t inDevice = from.width / perVector;
  int64_t total = rows * inRow, threads = division.threads();
  for (int64_t begin = 0; begin < total; begin += threads) {
    Value index = code.add(code.thread, begin);
    auto copyOne = [&]() -> Warp::Values {
      Value row = code.div(index, inRow), vector = code.rem(index, inRow);
      Value position = code.add(first, row);
      Value exists = code.isLess(position, shape.length);
      if (inDevice < inRow)
        exists = code.both(exists, code.isLess(vector, inDevice));
      Value zero = code.i32(0);
      Value offset = code.add(code.mul(code.widen(position), from.stride),
                              code.mul(code.widen(vector), perVector));
      offset = code.select(exists, offset, code.i64(0));
      copyVector(code, vectorOf(to, rows, row, vector),
                 code.address(from.base, shape.element, offset),
                 code.select(exists, code.i32(kVectorBytes), zero));
      return {};
    };
    if (begin + threads <= total)
      copyOne();
    else
      code.choose(code.isLess(index, total), copyOne,
                  [] { return Warp::Values(); });
  }
}

/// Rows that begin anywhere go through registers, element by element.
void SharedTiles::copyElements(const Matrix &from, Value first, int64_t rows,
                               Value to) const {
  int64_t padded = shape.padded(from.width);
  Value zero =
      arith::ConstantOp::create(code, code.getFloatAttr(shape.element, 0));
  code.repeat(
      code.thread, code.i32(rows * padded), division.threads(), {},
      [&](Value index, ValueRange) -> Values {
        Value row = code.div(index, padded), column = code.rem(index, padded);
        Value position = code.add(first, row);
        Value exists = code.both(code.isLess(position, shape.length),
                                 code.isLess(column, from.width));
        Value element = code.choose(
            exists,
            [&]() -> Values {
              Value offset =
                  code.add(code.mul(code.widen(position), from.stride),
                           code.widen(column));
              return {loadDevice(code, shape.element, from.base, offset)};
            },
            [&]() -> Values { return {zero}; })[0];
        storeShared(
            code, element,
            code.add(to, code.add(code.mul(row, layout.strideBytes),
                                  code.mul(column, shape.elementBytes()))));
        return {};
      });
}

SharedTiles::Values SharedTiles::walk(Value count, ValueRange state,
                                      function_ref<void(Value)> begin,
                                      function_ref<void()> prepare,
                                      Warp::Body body) const {
  begin(code.i32(0));
  commitCopies(code);
  prepare();
  return code.repeat(code.i32(0), count, 1, state,
                     [&](Value step, ValueRange old) {
                       waitForCopies(code, 0);
                       if (division.byWarpGroup)
                         showToMmas(code);
                       // What this step reads is there, and nobody reads what
                       // the last step read: the next copies may land there.
                       barrier(code);
                       Value next = code.add(step, 1);
                       code.choose(
                           code.isLess(next, count),
                           [&]() -> Values {
                             begin(next);
                             return {};
                           },
                           [] { return Values(); });
                       commitCopies(code);
                       return body(step, old);
                     });
}

void SharedTiles::store(const Matrix &to, Value first, ValueRange sums,
                        ValueRange factors) const {
  bool pairs = to.width % 2 == 0;
  VectorType two = VectorType::get({2}, shape.element);
  for (int64_t r = 0; r < 2; ++r) {
    Value position = code.add(first, ownRow(code, r));
    Value row = code.mul(code.widen(position), to.stride);
    auto storeRow = [&]() -> Values {
      for (int64_t c = 0; c < to.width; c += kBlockColumns) {
        Value column = code.add(code.mul(code.quad, 2), c);
        auto value = [&](int64_t e) {
          return fromF32(code, code.mul(sums[c / 2 + 2 * r + e], factors[r]),
                         shape.element);
        };
        auto at = [&](int64_t e) {
          return code.add(row, code.widen(code.add(column, e)));
        };
        auto storeAll = [&]() -> Values {
          if (pairs) {
            Value pair = vector::FromElementsOp::create(
                code, two, ValueRange{value(0), value(1)});
            storeDevice(code, pair, to.base, at(0));
          } else {
            storeDevice(code, value(0), to.base, at(0));
            code.choose(
                code.isLess(code.add(column, 1), to.width),
                [&]() -> Values {
                  storeDevice(code, value(1), to.base, at(1));
                  return {};
                },
                [] { return Values(); });
          }
          return {};
        };
        if (c + kBlockColumns <= to.width)
          storeAll();
        else
          code.choose(code.isLess(column, to.width), storeAll,
                      [] { return Values(); });
      }
      return {};
    };
    code.choose(code.isLess(position, shape.length), storeRow,
                [] { return Values(); });
  }
}
