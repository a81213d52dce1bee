//===- AttentionScores.cpp - The elements of a tile -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionScores.h"
#include "AttentionRows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;
using namespace reprise::codegen::attention;

Value attention::placeOf(Code &code, const AttentionShape &shape, Value key,
                         Value lane) {
  return code.add(code.mul(key, shape.block), lane);
}

void attention::forQueries(Code &code, const AttentionShape &shape, Value ahead,
                           function_ref<void(Value, Value)> body) {
  code.loop(code.i64(0), code.i64(shape.block), kLanes, [&](Value lane) {
    if (!ahead)
      return body(lane, code.i64(shape.block));
    Value keys = code.add(code.add(lane, ahead), kLanes);
    body(lane, code.min(keys, code.i64(shape.block)));
  });
}

void attention::forUnseen(Code &code, const AttentionShape &shape, Value keys,
                          function_ref<void(Value)> body) {
  if (!shape.hasBF16x2)
    return;
  Value end = code.add(keys, kTerms - 1);
  end = arith::AndIOp::create(code, end, code.i64(-kTerms));
  code.loop(keys, end, 2, body);
}

/// Whether 16 queries see `key`.
static Value sees(Code &code, Value lane, Value ahead, Value key) {
  // In 32 bits, half the work of 64: a tile has fewer.
  Type i32 = code.getI32Type();
  Value first = code.splat(code.cast(code.add(lane, ahead), i32));
  return arith::CmpIOp::create(code, arith::CmpIPredicate::sle,
                               code.splat(code.cast(key, i32)),
                               code.add(first, code.iota(i32)));
}

Value attention::whereSeen(Code &code, Value lane, Value ahead, Value key,
                           Value number, Value otherwise) {
  if (!ahead)
    return number;
  return code.select(sees(code, lane, ahead, key), number, otherwise);
}

Value attention::exist(Code &code, const AttentionShape &shape, Value query) {
  Type i64 = code.getI64Type();
  Value left = code.sub(code.i64(shape.length), query);
  return arith::CmpIOp::create(code, arith::CmpIPredicate::slt, code.iota(i64),
                               code.splat(left));
}

Value attention::rowOf(Code &code, const AttentionShape &shape, Value lane,
                       Value j) {
  assert(shape.block == 4 * kLanes && "as many rows as fours of keys");
  return code.add(lane, arith::ShRUIOp::create(code, j, code.i64(2)));
}

//===----------------------------------------------------------------------===//
// Powers
//===----------------------------------------------------------------------===//

Value attention::power(Code &code, const AttentionShape &shape,
                       Value exponent) {
  if (!shape.hasBF16x2)
    return code.exp(exponent);
  return math::Exp2Op::create(code, exponent);
}

/// What a score becomes an exponent of 2 by.
static float exponentScale(const AttentionShape &shape) {
  return shape.scale * llvm::numbers::log2ef;
}

Value attention::exponentOf(Code &code, const AttentionShape &shape,
                            Value score) {
  if (!shape.hasBF16x2)
    return score;
  return code.mul(score, code.splatF32(exponentScale(shape)));
}

Value attention::exponentLess(Code &code, const AttentionShape &shape,
                              Value score, Value exponent) {
  if (!shape.hasBF16x2)
    return code.sub(score, exponent);
  return code.fma(score, code.splatF32(exponentScale(shape)),
                  arith::NegFOp::create(code, exponent));
}

Value attention::fromLogarithm(Code &code, const AttentionShape &shape,
                               Value number) {
  if (!shape.hasBF16x2)
    return number;
  return code.mul(number, code.splatF32(llvm::numbers::log2e));
}

Value attention::toLogarithm(Code &code, const AttentionShape &shape,
                             Value exponent) {
  if (!shape.hasBF16x2)
    return exponent;
  return code.mul(exponent, code.splatF32(llvm::numbers::ln2));
}

Value attention::weight(Code &code, const AttentionShape &shape, Value p,
                        Value factor) {
  if (shape.weightScale() == 1)
    return code.mul(p, factor);
  Value zero = code.splatF32(0);
  Value isKept =
      arith::CmpFOp::create(code, arith::CmpFPredicate::OGT, factor, zero);
  return code.select(isKept, p, zero);
}

//===----------------------------------------------------------------------===//
// Elements of GEMMs
//===----------------------------------------------------------------------===//

void attention::storeKeys(Code &code, const AttentionShape &shape, Value tile,
                          Value key, Value lane, ValueRange numbers) {
  if (shape.hasBF16x2) {
    Value both = roundBoth(code, numbers);
    SmallVector<int64_t> order;
    for (int64_t i = 0; i < kLanes; ++i)
      order.append({i, i + kLanes});
    Value pair = arith::ShRUIOp::create(code, key, code.i64(1));
    return code.store(vector::ShuffleOp::create(code, both, both, order), tile,
                      code.mul(placeOf(code, shape, pair, lane), 2));
  }
  for (auto [k, number] : llvm::enumerate(numbers))
    code.store(number, tile, placeOf(code, shape, code.add(key, k), lane));
}

void attention::storeQueries(Code &code, const AttentionShape &shape,
                             Value tile, Value key, Value lane,
                             ValueRange numbers) {
  if (!shape.hasBF16x2)
    return storeKeys(code, shape, tile, key, lane, numbers);
  Value both = roundBoth(code, numbers);
  for (int64_t k = 0; k < 2; ++k) {
    SmallVector<int64_t> half;
    for (int64_t i = 0; i < kLanes; ++i)
      half.push_back(k * kLanes + i);
    // Rows as far apart as those of scores.
    code.store(vector::ShuffleOp::create(code, both, both, half), tile,
               code.add(code.mul(code.add(key, k), 2 * shape.block), lane));
  }
}

//===----------------------------------------------------------------------===//
// Dropout
//===----------------------------------------------------------------------===//

Value ScoreStream::elements(Code &code, const AttentionShape &shape, Value bh,
                            Value query) const {
  if (rank) { // ((b * ranks) + rank) * heads + h
    Value heads = code.i64(shape.queryHeads.count);
    Value b = arith::DivSIOp::create(code, bh, heads);
    Value before = code.add(code.mul(b, shape.ranks - 1), rank);
    bh = code.add(bh, code.mul(before, heads));
  }
  Value first = code.add(code.mul(bh, shape.length), query);
  Value rows = code.add(code.splat(first), code.iota(code.getI64Type()));
  return code.mul(rows, code.splat(code.i64(shape.length)));
}

SmallVector<Value>
ScoreStream::forKeys(Code &code, const AttentionShape &shape, Value elements,
                     Value first, Value count, ValueRange carried, Body body,
                     function_ref<void(Value)> meanwhile) const {
  Type i32 = code.getI32Type();
  Value two = code.i64(2);
  // The first keys of the queries, and of these the blocks of four words.
  bool hasBlocks = shape.length % 4 == 0 && !shape.dropout.isNone();
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
        factor = shape.dropout.emit(code, words);
    } else if (!shape.dropout.isNone()) {
      for (int64_t k = 0; k < 4; ++k) {
        Value position = code.add(first, code.add(j, k));
        Value element = code.add(elements, code.splat(position));
        factors[k] = shape.dropout.emit(code, emitWords(code, random, element));
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
