//===- AttentionTile.cpp - A block of queries and one of keys ---*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionTile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

AttentionTile::AttentionTile(Code &code, ShapedType query, int64_t outWidth,
                             int64_t heads, int64_t keyHeads, double scale,
                             double rate, const Kernel &kernel)
    : hasPairs(kernel.pairs), hasTiles(kernel.tiles),
      batch(query.getDimSize(0)), length(query.getDimSize(1)),
      queryHeads(heads, query.getDimSize(2) / heads, hasPairs),
      keyHeads(keyHeads, queryHeads.width, hasPairs),
      valueHeads(keyHeads, outWidth / heads, hasPairs),
      outHeads(heads, outWidth / heads, hasPairs),
      block(std::min(
          blockOf(std::max(queryHeads.width, outHeads.width)),
          int64_t(llvm::alignTo(length, kernel.pairs ? kTerms : kLanes)))),
      element(query.getElementType()), scale(float(scale)), dropout(rate),
      code(code), tileRows(kernel.tiles  ? kTerms
                           : kernel.wide ? 8
                                         : 4),
      tileVectors(kernel.wide ? 2 : 1) {}

LogicalResult codegen::verifyHeadWidth(Operation *op, Value query, Value out,
                                       int64_t heads) {
  int64_t width = 0;
  for (Value value : {query, out})
    width = std::max(width,
                     cast<ShapedType>(value.getType()).getDimSize(2) / heads);
  if (width <= kMaxHeadWidth)
    return success();
  return op->emitOpError("needs a head width of at most ")
         << kMaxHeadWidth << ", for a task to do with " << kStackBytes
         << " bytes of stack, but got " << width;
}

//===----------------------------------------------------------------------===//
// Where things are
//===----------------------------------------------------------------------===//

Value AttentionTile::headAddress(const Heads &heads, Value base, Value index) {
  Value count = code.i64(heads.count);
  Value b = arith::DivSIOp::create(code, index, count);
  Value h = arith::RemSIOp::create(code, index, count);
  return code.address(
      base, element,
      code.add(code.mul(b, length * heads.stride()), code.mul(h, heads.width)));
}

Value AttentionTile::rowOffset(const Heads &heads, Value position) {
  return code.mul(code.min(position, code.i64(length - 1)), heads.stride());
}

Value AttentionTile::firstToSee(Value query, Value first) {
  Value behind =
      arith::MaxSIOp::create(code, code.sub(first, query), code.i64(0));
  return arith::DivUIOp::create(code, behind, code.i64(block));
}

Value AttentionTile::load(Value base, Value offset) {
  return code.load(code.lanesOf(code.getF32Type()), base, offset);
}

Value AttentionTile::sees(Value lane, Value ahead, Value key) {
  // In 32 bits, half the work of 64: a tile has fewer.
  Type i32 = code.getI32Type();
  Value first = code.splat(code.cast(code.add(lane, ahead), i32));
  return arith::CmpIOp::create(code, arith::CmpIPredicate::sle,
                               code.splat(code.cast(key, i32)),
                               code.add(first, code.iota(i32)));
}

Value AttentionTile::whereSeen(Value lane, Value ahead, Value key, Value number,
                               Value otherwise) {
  if (!ahead)
    return number;
  return code.select(sees(lane, ahead, key), number, otherwise);
}

Value AttentionTile::exist(Value query) {
  Type i64 = code.getI64Type();
  Value left = code.sub(code.i64(length), query);
  return arith::CmpIOp::create(code, arith::CmpIPredicate::slt, code.iota(i64),
                               code.splat(left));
}

Value AttentionTile::elements(Value bh, Value query) {
  if (rank) { // ((b * ranks) + rank) * heads + h
    Value heads = code.i64(queryHeads.count);
    Value b = arith::DivSIOp::create(code, bh, heads);
    Value before = code.add(code.mul(b, ranks - 1), rank);
    bh = code.add(bh, code.mul(before, heads));
  }
  Value first = code.add(code.mul(bh, length), query);
  Value rows = code.add(code.splat(first), code.iota(code.getI64Type()));
  return code.mul(rows, code.splat(code.i64(length)));
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// Calls `body` for each vector of a row in memory.
void AttentionTile::forVectors(const Heads &heads,
                               function_ref<void(Value, Value)> body) {
  int64_t width = heads.width, whole = width / kLanes * kLanes;
  if (whole > 0)
    code.loop(code.i64(0), code.i64(whole), kLanes,
              [&](Value column) { body(column, {}); });
  if (whole < width)
    body(code.i64(whole), code.maskOf(width - whole));
}

Value AttentionTile::loadRow(Value base, Value offset, Value mask) {
  Value x = code.load(code.lanesOf(element), base, offset, mask);
  if (element.isF32())
    return x;
  return arith::ExtFOp::create(code, code.lanesOf(code.getF32Type()), x);
}

void AttentionTile::gather(const Heads &heads, Value base, Value first,
                           Value elements) {
  if (!hasPairs)
    return gatherSums(heads, base, first, elements);
  code.loop(code.i64(0), code.i64(block), 1,
            [&](Value r) { copyPairs(heads, base, first, r, elements); });
}

void AttentionTile::gatherQueries(Value base, Value first, Value elements) {
  if (hasPairs)
    gather(queryHeads, base, first, elements);
  else
    gatherSums(queryHeads, base, first, elements, scale);
}

void AttentionTile::gatherSums(const Heads &heads, Value base, Value first,
                               Value sums, double factor) {
  code.loop(code.i64(0), code.i64(block), 1, [&](Value r) {
    Value from = rowOffset(heads, code.add(first, r));
    Value to = code.mul(r, heads.padded);
    forVectors(heads, [&](Value column, Value mask) {
      Value x = loadRow(base, code.add(from, column), mask);
      if (factor != 1)
        x = code.mul(x, code.splatF32(factor));
      code.store(x, sums, code.add(to, column));
    });
  });
}

void AttentionTile::scatter(const Heads &heads, Value sums, Value base,
                            Value first, Factor factor) {
  Value count = code.min(code.sub(code.i64(length), first), code.i64(block));
  code.loop(code.i64(0), count, 1, [&](Value r) {
    Value to = code.mul(code.add(first, r), heads.stride());
    Value from = code.mul(r, heads.padded);
    Value times = factor ? factor(r) : Value();
    if (hasPairs)
      return roundRow(heads, sums, from, times, base, to);
    forVectors(heads, [&](Value column, Value mask) {
      Value x = load(sums, code.add(from, column));
      if (times)
        x = code.mul(x, times);
      if (!element.isF32())
        x = arith::TruncFOp::create(code, code.lanesOf(element), x);
      code.store(x, base, code.add(to, column), mask);
    });
  });
}

void AttentionTile::fillZero(const Heads &heads, Value sums) {
  code.loop(code.i64(0), code.i64(block * heads.padded), kLanes,
            [&](Value i) { code.store(code.splatF32(0), sums, i); });
}

Value AttentionTile::dot(Value base, Value other, Value position) {
  Value row = rowOffset(outHeads, position);
  auto add = [&](Value column, Value mask, Value sum) {
    Value at = code.add(row, column);
    return code.fma(loadRow(base, at, mask), loadRow(other, at, mask), sum);
  };
  int64_t width = outHeads.width, whole = width / kLanes * kLanes;
  Value sum = code.loop(code.i64(0), code.i64(whole), kLanes, code.splatF32(0),
                        [&](Value column, ValueRange old) {
                          return SmallVector<Value>{add(column, {}, old[0])};
                        })[0];
  if (whole < width)
    sum = add(code.i64(whole), code.maskOf(width - whole), sum);
  return code.sum(sum);
}

void AttentionTile::transpose(Value from, int64_t rows, int64_t cols,
                              Value to) {
  code.loop(code.i64(0), code.i64(cols), kLanes, [&](Value c) {
    code.loop(code.i64(0), code.i64(rows), kLanes, [&](Value r) {
      SmallVector<Value> x;
      for (int64_t k = 0; k < kLanes; ++k)
        x.push_back(load(from, code.add(code.mul(code.add(r, k), cols), c)));
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

//===----------------------------------------------------------------------===//
// The elements of a tile
//===----------------------------------------------------------------------===//

void AttentionTile::forQueries(Value ahead,
                               function_ref<void(Value, Value)> body) {
  code.loop(code.i64(0), code.i64(block), kLanes, [&](Value lane) {
    if (!ahead)
      return body(lane, code.i64(block));
    Value keys = code.add(code.add(lane, ahead), kLanes);
    body(lane, code.min(keys, code.i64(block)));
  });
}

Value AttentionTile::power(Value exponent) {
  if (!hasPairs)
    return code.exp(exponent);
  return math::Exp2Op::create(code, exponent);
}

Value AttentionTile::exponentOf(Value score) {
  if (!hasPairs)
    return score;
  return code.mul(score, code.splatF32(exponentScale()));
}

Value AttentionTile::exponentLess(Value score, Value exponent) {
  if (!hasPairs)
    return code.sub(score, exponent);
  return code.fma(score, code.splatF32(exponentScale()),
                  arith::NegFOp::create(code, exponent));
}

Value AttentionTile::fromLogarithm(Value number) {
  if (!hasPairs)
    return number;
  return code.mul(number, code.splatF32(llvm::numbers::log2e));
}

Value AttentionTile::toLogarithm(Value exponent) {
  if (!hasPairs)
    return exponent;
  return code.mul(exponent, code.splatF32(llvm::numbers::ln2));
}

Value AttentionTile::weight(Value p, Value factor) {
  if (weightScale() == 1)
    return code.mul(p, factor);
  Value zero = code.splatF32(0);
  Value isKept =
      arith::CmpFOp::create(code, arith::CmpFPredicate::OGT, factor, zero);
  return code.select(isKept, p, zero);
}

SmallVector<Value> AttentionTile::forKeys(const RandomStream &random,
                                          Value elements, Value first,
                                          Value count, ValueRange carried,
                                          KeysBody body,
                                          function_ref<void(Value)> meanwhile) {
  Type i32 = code.getI32Type();
  Value two = code.i64(2);
  // The first keys of the queries, and of these the blocks of four words.
  bool hasBlocks = length % 4 == 0 && !dropout.isNone();
  Value start;
  if (hasBlocks)
    start = code.cast(arith::ShRUIOp::create(code, elements, code.splat(two)),
                      code.lanesOf(i32));
  auto drawFour = [&](Value j) {
    SmallVector<Value> factors(4, code.splatF32(1));
    if (hasBlocks) {
      // Four keys side by side are the four words of one block.
      Value step = arith::ShRUIOp::create(code, code.add(first, j), two);
      Value drawnFrom = code.add(start, code.splat(code.cast(step, i32)));
      for (auto [factor, words] :
           llvm::zip(factors, emitPhilox(code, random, drawnFrom)))
        factor = dropout.emit(code, words);
    } else if (!dropout.isNone()) {
      for (int64_t k = 0; k < 4; ++k) {
        Value position = code.add(first, code.add(j, k));
        Value element = code.add(elements, code.splat(position));
        factors[k] = dropout.emit(code, emitWords(code, random, element));
      }
    }
    return factors;
  };
  int64_t step = meanwhile ? 8 : 4;
  return code.loop(
      code.i64(0), count, step, carried, [&](Value j, ValueRange old) {
        SmallVector<Value> state(old);
        for (int64_t four = 0; four < step; four += 4) {
          Value from = code.add(j, four);
          SmallVector<Value> factors = drawFour(from);
          for (int64_t k = 0; k < 4; k += 2)
            state =
                body(code.add(from, k), ArrayRef(factors).slice(k, 2), state);
        }
        if (meanwhile)
          meanwhile(j);
        return state;
      });
}
