//===- AttentionRowNumbers.cpp - What belongs to rows -----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionRowNumbers.h"
#include "AsyncCopies.h"
#include "reprise/Codegen/Common/Numbers.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::cuda;

/// What a query has that does not exist: its weights are zero.
static constexpr double kLowest = -1e30;
static constexpr double kLog2E = 1.4426950408889634;

Value RowNumbers::outTile(Value step) const {
  return code.add(
      code.mul(code.bits(step, 1), division.tileRows * layout.strideBytes),
      layout.outTiles);
}

Value RowNumbers::lseCopy(Value step) const {
  return code.add(code.mul(code.bits(step, 1), division.tileRows * 4),
                  layout.lseCopies);
}

/// Part `part` of `parts` of dot(a[row], tile[tileRow]): every parts-th vector,
/// or element where rows begin anywhere.
Value RowNumbers::dotOf(const Matrix &a, Value row, Value tile, Value tileRow,
                        Value part, int64_t parts) const {
  int64_t size =
      hasVectors(shape, a.width) ? kVectorBytes / shape.elementBytes() : 1;
  Type type = shape.element;
  if (size > 1)
    type = VectorType::get({size}, type);
  Value base = code.mul(code.widen(row), a.stride);
  Value shared = code.add(tile, code.mul(tileRow, layout.strideBytes));
  return code.repeat(
      part, code.i32(a.width / size), parts, code.f32(0),
      [&](Value index, ValueRange old) -> Warp::Values {
        Value from = code.add(base, code.mul(code.widen(index), size));
        Value left = loadDevice(code, type, a.base, from);
        Value right = loadShared(
            code, type,
            code.add(shared, code.mul(index, size * shape.elementBytes())));
        Value sum = old[0];
        for (int64_t i = 0; i < size; ++i) {
          auto at = [&](Value of) {
            return toF32(code, size > 1 ? elementOf(code, of, i) : of);
          };
          sum = code.fma(at(left), at(right), sum);
        }
        return {sum};
      })[0];
}

void RowNumbers::copy(const Source &source, Value first, int64_t rows,
                      Value step) const {
  tiles.copy(source.out, first, rows, outTile(step));
  auto copyOne = [&]() -> Warp::Values {
    constexpr int64_t bytes = 4;
    Value position = code.add(first, code.thread);
    Value exists = code.isLess(position, shape.length);
    position = code.select(exists, position, code.i32(0));
    Value offset = code.add(code.mul(code.widen(source.head), shape.length),
                            code.widen(position));
    Value to = code.add(lseCopy(step), code.mul(code.thread, bytes));
    copyAsync(
        code, code.sharedAddress(to),
        code.address(toDevice(code, source.lse), code.getF32Type(), offset),
        bytes, code.select(exists, code.i32(bytes), code.i32(0)));
    return {};
  };
  code.choose(code.isLess(code.thread, rows), copyOne,
              [] { return Warp::Values(); });
}

/// Part `part` of `parts` of dot(a[row], b[row]) for tiles of `rows` rows:
/// vectors side by side, which no other thread of a quarter of a warp meets in
/// a bank where rows are one panel wide.
Value RowNumbers::sumOfCopies(Value a, Value b, int64_t rows, Value row,
                              Value part, int64_t parts) const {
  int64_t size = kVectorBytes / shape.elementBytes();
  int64_t count = shape.valueWidth / size / parts;
  auto type = VectorType::get({size}, shape.element);
  Value first = code.mul(part, count), total;
  for (int64_t v = 0; v < count; ++v) {
    Value vector = code.add(first, v), sum = code.f32(0);
    Value left = loadShared(code, type, tiles.vectorOf(a, rows, row, vector));
    Value right = loadShared(code, type, tiles.vectorOf(b, rows, row, vector));
    for (int64_t i = 0; i < size; ++i)
      sum = code.fma(toF32(code, elementOf(code, left, i)),
                     toF32(code, elementOf(code, right, i)), sum);
    total = total ? code.add(total, sum) : sum;
  }
  return total;
}

void RowNumbers::write(const Source &source, Value dout, Value first,
                       int64_t rows, Value step) const {
  int64_t parts = division.threads() / rows;
  Value row = code.div(code.thread, parts), part = code.rem(code.thread, parts);
  Value position = code.add(first, row);
  Value exists = code.isLess(position, shape.length);
  Value sum, logSum;
  if (division.byWarpGroup) {
    logSum = loadShared(code, code.getF32Type(),
                        code.add(lseCopy(step), code.mul(row, 4)));
    sum = sumOfCopies(outTile(step), dout, rows, row, part, parts);
  } else {
    position = code.select(exists, position, code.i32(shape.length - 1));
    Value offset = code.add(code.mul(code.widen(source.head), shape.length),
                            code.widen(position));
    logSum =
        loadDevice(code, code.getF32Type(), toDevice(code, source.lse), offset);
    sum = dotOf(source.out, position, dout, row, part, parts);
  }
  sum = reduceLanes(code, sum, parts,
                    [&](Value a, Value b) { return code.add(a, b); });
  // Weights of a query that does not exist are zero, whatever the last one has.
  logSum = code.select(exists, code.mul(logSum, code.f32(-kLog2E)),
                       code.f32(kLowest));
  Value to = code.add(code.i32(layout.rowNumbers), code.mul(row, 4));
  storeShared(code, logSum, to);
  storeShared(code, sum, code.add(to, 4 * rows));
}

Value RowNumbers::logSum(Value row) const {
  return loadShared(code, code.getF32Type(),
                    code.add(code.i32(layout.rowNumbers), code.mul(row, 4)));
}

Value RowNumbers::delta(Value row, int64_t rows) const {
  return loadShared(
      code, code.getF32Type(),
      code.add(code.add(code.i32(layout.rowNumbers), code.mul(row, 4)),
               4 * rows));
}
