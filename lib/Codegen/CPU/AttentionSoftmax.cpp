//===- AttentionSoftmax.cpp - The softmax of attention ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionSoftmax.h"
#include "AttentionRows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;
using namespace reprise::codegen::attention;

/// Below every score, and yet finite: differences of it are numbers.
static constexpr double kLowest = -1e30;

/// How far an exponent may lie above what is subtracted from it. Powers of so
/// much are exact as any, and most blocks of keys then leave sums as they are.
static constexpr double kSlack = 12;

/// The greater, in one instruction, where neither is NaN.
static Value greater(Code &code, Value a, Value b) {
  return code.select(
      arith::CmpFOp::create(code, arith::CmpFPredicate::OGT, a, b), a, b);
}

QueryBlock QueryBlock::create(Code &code, const AttentionShape &shape,
                              int64_t blocks) {
  return {{},
          newElements(code, shape, shape.queryHeads, blocks),
          newSums(code, shape, shape.outHeads, blocks),
          newNumbers(code, shape, blocks),
          newNumbers(code, shape, blocks),
          newNumbers(code, shape, blocks)};
}

QueryBlock QueryBlock::at(Code &code, const AttentionShape &shape, Value first,
                          Value index) const {
  return {first,
          elementsOf(code, shape, shape.queryHeads, queriesT, index),
          sumsOf(code, shape, shape.outHeads, sums, index),
          numbersOf(code, shape, maxima, index),
          numbersOf(code, shape, totals, index),
          numbersOf(code, shape, factors, index)};
}

void Softmax::begin(const QueryBlock &queries) const {
  code.loop(code.i64(0), code.i64(shape.block), kLanes, [&](Value lane) {
    code.store(code.splatF32(kLowest), queries.maxima, lane);
    code.store(code.splatF32(0), queries.totals, lane);
  });
}

/// Four maxima of the scores of each of 16 queries: one alone would wait for
/// itself.
SmallVector<Value> Softmax::findMaxima(Value lane, Value ahead,
                                       Value keys) const {
  Value lowest = code.splatF32(kLowest);
  constexpr int64_t kSideBySide = 4;
  SmallVector<Value> max(kSideBySide, lowest);
  return code.loop(
      code.i64(0), keys, kSideBySide, max, [&](Value j, ValueRange old) {
        SmallVector<Value> next;
        for (int64_t k = 0; k < kSideBySide; ++k) {
          Value key = code.add(j, k);
          Value score = loadLanes(code, tile, placeOf(code, shape, key, lane));
          score = whereSeen(code, lane, ahead, key, score, lowest);
          next.push_back(greater(code, old[k], score));
        }
        return next;
      });
}

/// Scores of 16 queries become weights, times dropout; gives `total` and what
/// they add to it.
Value Softmax::emitWeights(Value elements, Value lane, Value first, Value ahead,
                           Value keys, Value greatest, Value total,
                           function_ref<void(Value)> meanwhile) const {
  Value zero = code.splatF32(0);
  auto emitTwo = [&](Value j, ArrayRef<Value> dropout, ValueRange sum) {
    SmallVector<Value> weights;
    Value next = sum[0];
    for (auto [k, factor] : llvm::enumerate(dropout)) {
      Value key = code.add(j, k);
      Value score = loadLanes(code, tile, placeOf(code, shape, key, lane));
      Value p = power(code, shape, exponentLess(code, shape, score, greatest));
      p = whereSeen(code, lane, ahead, key, p, zero);
      weights.push_back(weight(code, shape, p, factor));
      next = code.add(next, p);
    }
    storeKeys(code, shape, tile, j, lane, weights);
    return SmallVector<Value>{next};
  };
  auto copy = [&](Value j) { meanwhile(rowOf(code, shape, lane, j)); };
  total = stream.forKeys(code, shape, elements, first, keys, total, emitTwo,
                         meanwhile ? function_ref<void(Value)>(copy)
                                   : function_ref<void(Value)>())[0];
  forUnseen(code, shape, keys, [&](Value key) {
    storeKeys(code, shape, tile, key, lane, {zero, zero});
  });
  return total;
}

/// Of pairs, sums have their factors here where one of 16 queries `isRaised`.
void Softmax::scaleSums(const QueryBlock &queries, Value lane, Value isRaised,
                        Value first) const {
  Value bits = LLVM::BitcastOp::create(code, code.getI16Type(), isRaised);
  Value none = code.scalar(code.getI16Type(), 0);
  Value isAny =
      arith::CmpIOp::create(code, arith::CmpIPredicate::ne, bits, none);
  Value isOld =
      arith::CmpIOp::create(code, arith::CmpIPredicate::ne, first, code.i64(0));
  code.when(arith::AndIOp::create(code, isAny, isOld), [&] {
    scaleRows(code, shape.outHeads, queries.sums, lane, queries.factors);
  });
}

void Softmax::add(const QueryBlock &queries, Value bh, Value first, Value ahead,
                  function_ref<void(Value)> meanwhile) const {
  forQueries(code, shape, ahead, [&](Value lane, Value keys) {
    SmallVector<Value> max = findMaxima(lane, ahead, keys);
    Value old = loadLanes(code, queries.maxima, lane);
    Value here = greater(code, greater(code, max[0], max[1]),
                         greater(code, max[2], max[3]));
    here = exponentOf(code, shape, here);
    Value now = greater(code, old, here);
    Value isRaised;
    if (shape.hasBF16x2) {
      isRaised = arith::CmpFOp::create(code, arith::CmpFPredicate::OGT, here,
                                       code.add(old, code.splatF32(kSlack)));
      now = code.select(isRaised, here, old);
    }
    Value decay = power(code, shape, code.sub(old, now));
    Value total = code.mul(loadLanes(code, queries.totals, lane), decay);
    Value elements =
        stream.elements(code, shape, bh, code.add(queries.first, lane));
    total =
        emitWeights(elements, lane, first, ahead, keys, now, total, meanwhile);
    code.store(now, queries.maxima, lane);
    code.store(total, queries.totals, lane);
    code.store(decay, queries.factors, lane);
    if (shape.hasBF16x2)
      scaleSums(queries, lane, isRaised, first);
  });
}

void Softmax::finish(const QueryBlock &queries, Value bh, Value lse) const {
  code.loop(code.i64(0), code.i64(shape.block), kLanes, [&](Value lane) {
    Value total = loadLanes(code, queries.totals, lane),
          at = code.add(queries.first, lane);
    Value logarithm = code.add(
        toLogarithm(code, shape, loadLanes(code, queries.maxima, lane)),
        math::LogOp::create(code, total));
    code.store(logarithm, lse, code.add(code.mul(bh, shape.length), at),
               exist(code, shape, at));
    Value scale = code.splatF32(shape.weightScale());
    code.store(arith::DivFOp::create(code, scale, total), queries.factors,
               lane);
  });
}
