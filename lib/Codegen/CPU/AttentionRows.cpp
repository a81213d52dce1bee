//===- AttentionRows.cpp - Rows of heads on the stack -----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionRows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "reprise/Codegen/Common/Numbers.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;
using namespace reprise::codegen::attention;

//===----------------------------------------------------------------------===//
// Arrays on the stack
//===----------------------------------------------------------------------===//

Value attention::newElements(Code &code, const AttentionShape &shape,
                             const Heads &heads, int64_t blocks) {
  return code.scratch(blocks * shape.block * heads.words);
}

Value attention::newRows(Code &code, const AttentionShape &shape,
                         const Heads &heads) {
  return code.scratch(shape.block / 2 * heads.padded);
}

Value attention::newRowsOf(Code &code, const AttentionShape &shape,
                           const Heads &heads, Value elements) {
  return shape.hasBF16x2 ? newRows(code, shape, heads) : elements;
}

Value attention::newSums(Code &code, const AttentionShape &shape,
                         const Heads &heads, int64_t blocks) {
  return code.scratch(blocks * shape.block * heads.padded);
}

Value attention::newTile(Code &code, const AttentionShape &shape) {
  return code.scratch(shape.block * shape.block);
}

Value attention::newNumbers(Code &code, const AttentionShape &shape,
                            int64_t blocks) {
  return code.scratch(blocks * shape.block);
}

static Value partOf(Code &code, Value array, Value index, int64_t size) {
  return code.address(array, code.getF32Type(), code.mul(index, size));
}

Value attention::elementsOf(Code &code, const AttentionShape &shape,
                            const Heads &heads, Value elements, Value index) {
  return partOf(code, elements, index, shape.block * heads.words);
}

Value attention::sumsOf(Code &code, const AttentionShape &shape,
                        const Heads &heads, Value sums, Value index) {
  return partOf(code, sums, index, shape.block * heads.padded);
}

Value attention::numbersOf(Code &code, const AttentionShape &shape,
                           Value numbers, Value index) {
  return partOf(code, numbers, index, shape.block);
}

Value attention::loadLanes(Code &code, Value base, Value offset) {
  return code.load(code.lanesOf(code.getF32Type()), base, offset);
}

void attention::fillZero(Code &code, const AttentionShape &shape,
                         const Heads &heads, Value sums) {
  code.loop(code.i64(0), code.i64(shape.block * heads.padded), kLanes,
            [&](Value i) { code.store(code.splatF32(0), sums, i); });
}

void attention::transpose(Code &code, Value from, int64_t rows, int64_t cols,
                          Value to) {
  code.loop(code.i64(0), code.i64(cols), kLanes, [&](Value c) {
    code.loop(code.i64(0), code.i64(rows), kLanes, [&](Value r) {
      SmallVector<Value> x;
      for (int64_t k = 0; k < kLanes; ++k)
        x.push_back(
            loadLanes(code, from, code.add(code.mul(code.add(r, k), cols), c)));
      // Each round swaps one bit of the numbers of rows with that of lanes.
      for (int64_t bit = 1; bit < kLanes; bit *= 2)
        for (int64_t k = 0; k < kLanes; ++k) {
          if (k & bit)
            continue;
          SmallVector<int64_t> low, high;
          for (int64_t lane = 0; lane < kLanes; ++lane) {
            low.push_back(lane & bit ? kLanes + lane - bit : lane);
            high.push_back(lane & bit ? kLanes + lane : lane + bit);
          }
          Value a = x[k], b = x[k + bit];
          x[k] = vector::ShuffleOp::create(code, a, b, low);
          x[k + bit] = vector::ShuffleOp::create(code, a, b, high);
        }
      for (int64_t k = 0; k < kLanes; ++k)
        code.store(x[k], to, code.add(code.mul(code.add(c, k), rows), r));
    });
  });
}

void attention::transposeElements(Code &code, const AttentionShape &shape,
                                  const Heads &heads, Value elements,
                                  Value to) {
  transpose(code, elements, shape.block, heads.words, to);
}

void attention::scaleRows(Code &code, const Heads &heads, Value sums,
                          Value lane, Value factors) {
  code.loop(lane, code.add(lane, kLanes), 1, [&](Value r) {
    Value factor = code.splat(code.load(code.getF32Type(), factors, r));
    Value row = code.mul(r, heads.padded);
    for (int64_t c = 0; c < heads.padded; c += kLanes) {
      Value at = code.add(row, c);
      code.store(code.mul(loadLanes(code, sums, at), factor), sums, at);
    }
  });
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value attention::headAddress(Code &code, const AttentionShape &shape,
                             const Heads &heads, Value base, Value index) {
  Value count = code.i64(heads.count);
  Value b = arith::DivSIOp::create(code, index, count);
  Value h = arith::RemSIOp::create(code, index, count);
  return code.address(base, shape.element,
                      code.add(code.mul(b, shape.length * heads.stride()),
                               code.mul(h, heads.width)));
}

Value attention::rowOffset(Code &code, const AttentionShape &shape,
                           const Heads &heads, Value position) {
  return code.mul(code.min(position, code.i64(shape.length - 1)),
                  heads.stride());
}

Value attention::firstToSee(Code &code, const AttentionShape &shape,
                            Value query, Value first) {
  Value behind =
      arith::MaxSIOp::create(code, code.sub(first, query), code.i64(0));
  return arith::DivUIOp::create(code, behind, code.i64(shape.block));
}

/// Calls `body` for each vector of a row in memory.
static void forVectors(Code &code, const Heads &heads,
                       function_ref<void(Value, Value)> body) {
  int64_t width = heads.width, whole = width / kLanes * kLanes;
  if (whole > 0)
    code.loop(code.i64(0), code.i64(whole), kLanes,
              [&](Value column) { body(column, {}); });
  if (whole < width)
    body(code.i64(whole), code.maskOf(width - whole));
}

/// 16 numbers of a row in memory, in f32.
static Value loadRow(Code &code, const AttentionShape &shape, Value base,
                     Value offset, Value mask) {
  return toF32(code,
               code.load(code.lanesOf(shape.element), base, offset, mask));
}

void attention::gather(Code &code, const AttentionShape &shape,
                       const Heads &heads, Value base, Value first,
                       Value elements) {
  if (!shape.hasBF16x2)
    return gatherSums(code, shape, heads, base, first, elements);
  code.loop(code.i64(0), code.i64(shape.block), 1, [&](Value r) {
    copyPairs(code, shape, heads, base, first, r, elements);
  });
}

void attention::gatherQueries(Code &code, const AttentionShape &shape,
                              Value base, Value first, Value elements) {
  if (shape.hasBF16x2)
    gather(code, shape, shape.queryHeads, base, first, elements);
  else
    gatherSums(code, shape, shape.queryHeads, base, first, elements,
               shape.scale);
}

void attention::gatherSums(Code &code, const AttentionShape &shape,
                           const Heads &heads, Value base, Value first,
                           Value sums, double factor) {
  code.loop(code.i64(0), code.i64(shape.block), 1, [&](Value r) {
    Value from = rowOffset(code, shape, heads, code.add(first, r));
    Value to = code.mul(r, heads.padded);
    forVectors(code, heads, [&](Value column, Value mask) {
      Value x = loadRow(code, shape, base, code.add(from, column), mask);
      if (factor != 1)
        x = code.mul(x, code.splatF32(factor));
      code.store(x, sums, code.add(to, column));
    });
  });
}

void attention::scatter(Code &code, const AttentionShape &shape,
                        const Heads &heads, Value sums, Value base, Value first,
                        Factor factor) {
  Value count =
      code.min(code.sub(code.i64(shape.length), first), code.i64(shape.block));
  code.loop(code.i64(0), count, 1, [&](Value r) {
    Value to = code.mul(code.add(first, r), heads.stride());
    Value from = code.mul(r, heads.padded);
    Value times = factor ? factor(r) : Value();
    if (shape.hasBF16x2)
      return roundRow(code, heads, sums, from, times, base, to);
    forVectors(code, heads, [&](Value column, Value mask) {
      Value x = loadLanes(code, sums, code.add(from, column));
      if (times)
        x = code.mul(x, times);
      x = fromF32(code, x, shape.element);
      code.store(x, base, code.add(to, column), mask);
    });
  });
}

Value attention::dot(Code &code, const AttentionShape &shape, Value base,
                     Value other, Value position) {
  Value row = rowOffset(code, shape, shape.outHeads, position);
  auto add = [&](Value column, Value mask, Value sum) {
    Value at = code.add(row, column);
    return code.fma(loadRow(code, shape, base, at, mask),
                    loadRow(code, shape, other, at, mask), sum);
  };
  int64_t width = shape.outHeads.width, whole = width / kLanes * kLanes;
  Value sum = code.loop(code.i64(0), code.i64(whole), kLanes, code.splatF32(0),
                        [&](Value column, ValueRange old) {
                          return SmallVector<Value>{add(column, {}, old[0])};
                        })[0];
  if (whole < width)
    sum = add(code.i64(whole), code.maskOf(width - whole), sum);
  return code.sum(sum);
}

/// Bytes of a line of a cache.
static constexpr int64_t kLine = 64;

void attention::fetchRow(Code &code, const AttentionShape &shape,
                         const Soon &rows, Value row) {
  int64_t bytes =
      rows.heads.width * (shape.element.getIntOrFloatBitWidth() / 8);
  Value offset = rowOffset(code, shape, rows.heads, code.add(rows.first, row));
  for (int64_t at = 0; at < bytes; at += kLine)
    code.prefetch(rows.base, shape.element, offset, at, rows.isWritten);
}
