//===- AttentionBackwardTile.cpp - Gradients of a tile ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionBackward.h"
#include <limits>

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;
using namespace reprise::codegen::attention;

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

BackwardPlan::BackwardPlan(const AttentionShape &shape) {
  const Heads &keys = shape.keyHeads, &values = shape.valueHeads;
  auto fit = [&](int64_t blocks) {
    return stackBytes(keys.width, values.width, blocks) <= kStackBytes;
  };
  together = shape.blocksTogether(fit(4) ? 4 : fit(2) ? 2 : 1);
  int64_t all = shape.blocks() * shape.block;
  bool allFit = 4 * all * (keys.padded + values.padded) <= kSumsBytes;
  rowsOfSums = allFit ? all : shape.block;
  hasAllSums = rowsOfSums >= shape.length;
  beginsOnDiagonal = shape.hasBF16x2 && shape.group() == 1;
  isWhole = hasAllSums || shape.element.isF32();
  int64_t numKeyHeads = shape.batch * keys.count;
  keyTasks = numKeyHeads * shape.blocks();
  queryTasks = shape.batch * shape.queryHeads.count * shape.blocks();
  tasks = isWhole ? numKeyHeads : keyTasks + queryTasks;
}

//===----------------------------------------------------------------------===//
// Heads in memory
//===----------------------------------------------------------------------===//

KeyHead BackwardBuffers::keysOf(Value head) const {
  auto key = [&](Value base) {
    return headAddress(code, shape, shape.keyHeads, base, head);
  };
  auto value = [&](Value base) {
    return headAddress(code, shape, shape.valueHeads, base, head);
  };
  return {key(addressOf(kernel, op, 1)), value(addressOf(kernel, op, 2)),
          key(kernel.outputs[1]), value(kernel.outputs[2])};
}

QueryHead BackwardBuffers::queriesOf(Value bh) const {
  auto query = [&](Value base) {
    return headAddress(code, shape, shape.queryHeads, base, bh);
  };
  auto out = [&](Value base) {
    return headAddress(code, shape, shape.outHeads, base, bh);
  };
  return {bh, query(addressOf(kernel, op, 0)), out(addressOf(kernel, op, 3)),
          out(addressOf(kernel, op, 5)), query(kernel.outputs[0])};
}

//===----------------------------------------------------------------------===//
// Blocks of queries
//===----------------------------------------------------------------------===//

QueryRows QueryRows::create(Code &code, const AttentionShape &shape,
                            int64_t blocks) {
  Value queries = newElements(code, shape, shape.queryHeads, blocks);
  Value dout = newElements(code, shape, shape.outHeads, blocks);
  return {queries,
          dout,
          newElements(code, shape, shape.queryHeads, blocks),
          newElements(code, shape, shape.outHeads, blocks),
          newRowsOf(code, shape, shape.queryHeads, queries),
          newRowsOf(code, shape, shape.outHeads, dout),
          newSums(code, shape, shape.queryHeads, blocks),
          newNumbers(code, shape, blocks),
          newNumbers(code, shape, blocks)};
}

QueryRows QueryRows::at(Code &code, const AttentionShape &shape,
                        Value index) const {
  auto ofQueries = [&](Value array) {
    return elementsOf(code, shape, shape.queryHeads, array, index);
  };
  auto ofDout = [&](Value array) {
    return elementsOf(code, shape, shape.outHeads, array, index);
  };
  auto numbers = [&](Value array) {
    return numbersOf(code, shape, array, index);
  };
  return {ofQueries(queryElements),
          ofDout(doutElements),
          ofQueries(queriesT),
          ofDout(doutT),
          ofQueries(queryRows),
          ofDout(doutRows),
          sumsOf(code, shape, shape.queryHeads, dqueries, index),
          numbers(deltas),
          numbers(lse)};
}

void QueryRows::load(Code &code, const AttentionShape &shape,
                     const QueryHead &head, Value lse, Value first) const {
  gatherQueries(code, shape, head.query, first, queryElements);
  gather(code, shape, shape.outHeads, head.dout, first, doutElements);
  prepare(code, shape, head, lse, first);
}

void QueryRows::prepare(Code &code, const AttentionShape &shape,
                        const QueryHead &head, Value allLse,
                        Value first) const {
  transposeElements(code, shape, shape.queryHeads, queryElements, queriesT);
  transposeElements(code, shape, shape.outHeads, doutElements, doutT);
  Value zero = code.i64(0);
  code.loop(zero, code.i64(shape.block), 1, [&](Value r) {
    code.store(dot(code, shape, head.dout, head.out, code.add(first, r)),
               deltas, r);
  });
  // Queries that do not exist see nothing: exp(score - infinity).
  Value infinite = code.splatF32(std::numeric_limits<double>::infinity());
  code.loop(zero, code.i64(shape.block), kLanes, [&](Value lane) {
    Value position = code.add(first, lane);
    Value exists = exist(code, shape, position);
    Value numbers =
        code.load(code.lanesOf(code.getF32Type()), allLse,
                  code.add(code.mul(head.bh, shape.length), position), exists);
    numbers = code.select(exists, numbers, infinite);
    code.store(fromLogarithm(code, shape, numbers), lse, lane);
  });
}

void QueryRows::makeRows(Code &code, const AttentionShape &shape) const {
  attention::makeRows(code, shape, shape.queryHeads, queryElements, queryRows);
  attention::makeRows(code, shape, shape.outHeads, doutElements, doutRows);
}

void QueryRows::write(Code &code, const AttentionShape &shape,
                      const QueryHead &head, Value first) const {
  Value scale = code.splatF32(shape.scale);
  scatter(code, shape, shape.queryHeads, dqueries, head.dquery, first,
          [&](Value) { return scale; });
}

//===----------------------------------------------------------------------===//
// Blocks of keys
//===----------------------------------------------------------------------===//

KeyRows KeyRows::create(Code &code, const AttentionShape &shape) {
  Value keys = newElements(code, shape, shape.keyHeads);
  Value values = newElements(code, shape, shape.valueHeads);
  return {keys, values, newRowsOf(code, shape, shape.keyHeads, keys)};
}

void KeyRows::load(Code &code, const AttentionShape &shape, const KeyHead &head,
                   Value first) const {
  gather(code, shape, shape.keyHeads, head.key, first, keyElements);
  gather(code, shape, shape.valueHeads, head.value, first, valueElements);
}

void KeyRows::loadTwo(Code &code, const AttentionShape &shape,
                      const KeyHead &head, Value first, Value row) const {
  gatherTwo(code, shape, shape.keyHeads, head.key, first, row, keyElements, {});
  gatherTwo(code, shape, shape.valueHeads, head.value, first, row,
            valueElements, {});
}

KeySums KeySums::create(Code &code, const AttentionShape &shape,
                        const BackwardPlan &plan) {
  Value ofKeys = code.scratch(plan.rowsOfSums * shape.keyHeads.padded);
  Value ofValues = code.scratch(plan.rowsOfSums * shape.valueHeads.padded);
  return {ofKeys, ofValues, plan.hasAllSums};
}

static Value rowsFrom(Code &code, const Heads &heads, Value sums, Value first) {
  return code.address(sums, code.getF32Type(), code.mul(first, heads.padded));
}

Value KeySums::keysFrom(Code &code, const AttentionShape &shape,
                        Value first) const {
  return hasAll ? rowsFrom(code, shape.keyHeads, dkeys, first) : dkeys;
}

Value KeySums::valuesFrom(Code &code, const AttentionShape &shape,
                          Value first) const {
  return hasAll ? rowsFrom(code, shape.valueHeads, dvalues, first) : dvalues;
}

void KeySums::fill(Code &code, const AttentionShape &shape, Value first) const {
  fillZero(code, shape, shape.keyHeads, keysFrom(code, shape, first));
  fillZero(code, shape, shape.valueHeads, valuesFrom(code, shape, first));
}

void KeySums::load(Code &code, const AttentionShape &shape, const KeyHead &head,
                   Value first, Value isNew) const {
  code.when(
      isNew, [&] { fill(code, shape, first); },
      [&] {
        gatherSums(code, shape, shape.keyHeads, head.dkey, first, dkeys);
        gatherSums(code, shape, shape.valueHeads, head.dvalue, first, dvalues);
      });
}

void KeySums::write(Code &code, const AttentionShape &shape,
                    const KeyHead &head, Value first) const {
  Value scale = code.splatF32(shape.scoreScale());
  scatter(code, shape, shape.keyHeads, keysFrom(code, shape, first), head.dkey,
          first, [&](Value) { return scale; });
  Value weight = code.splatF32(shape.weightScale());
  scatter(code, shape, shape.valueHeads, valuesFrom(code, shape, first),
          head.dvalue, first, [&](Value) { return weight; });
}

//===----------------------------------------------------------------------===//
// A tile
//===----------------------------------------------------------------------===//

void GradientTile::store(Value key, Value lane, Gradients of,
                         ValueRange weights, ValueRange gradients) const {
  if (of != Gradients::OfQueries) {
    storeQueries(code, shape, probs, key, lane, weights);
    storeQueries(code, shape, dscores, key, lane, gradients);
  }
  // These are the same unless they are pairs.
  if (of == Gradients::OfQueries || (of == Gradients::All && shape.hasBF16x2))
    storeKeys(code, shape, dscoresOfKeys, key, lane, gradients);
}

void GradientTile::emit(const ScoreStream &stream, const TilePlace &at,
                        const QueryRows &queries, const KeyRows &keys,
                        Gradients of, const Next &next,
                        function_ref<void(Value)> meanwhile) const {
  unit.scores(shape.keyHeads, keys.keyElements, queries.queriesT, probs,
              at.ahead, next.scores);
  unit.scores(shape.valueHeads, keys.valueElements, queries.doutT, dscores,
              at.ahead, next.dprobs);
  forQueries(code, shape, at.ahead, [&](Value lane, Value count) {
    Value total = loadLanes(code, queries.lse, lane),
          delta = loadLanes(code, queries.deltas, lane);
    Value zero = code.splatF32(0);
    auto emitTwo = [&](Value j, ArrayRef<Value> factors, ValueRange) {
      SmallVector<Value> weights, gradients;
      for (auto [k, factor] : llvm::enumerate(factors)) {
        Value key = code.add(j, k), place = placeOf(code, shape, key, lane);
        Value p = power(
            code, shape,
            exponentLess(code, shape, loadLanes(code, probs, place), total));
        p = whereSeen(code, lane, at.ahead, key, p, zero);
        Value dp = code.mul(loadLanes(code, dscores, place), factor);
        weights.push_back(weight(code, shape, p, factor));
        gradients.push_back(code.mul(p, code.sub(dp, delta)));
      }
      store(j, lane, of, weights, gradients);
      return SmallVector<Value>();
    };
    auto copy = [&](Value j) { meanwhile(rowOf(code, shape, lane, j)); };
    stream.forKeys(
        code, shape,
        stream.elements(code, shape, at.bh, code.add(at.query, lane)), at.first,
        count, {}, emitTwo,
        meanwhile ? function_ref<void(Value)>(copy)
                  : function_ref<void(Value)>());
    forUnseen(code, shape, count, [&](Value key) {
      store(key, lane, of, {zero, zero}, {zero, zero});
    });
  });
}

void GradientTile::addToKeys(const KeySums &sums, const QueryRows &queries,
                             const TilePlace &at, const Next &next) const {
  Old old = at.ahead && plan.beginsOnDiagonal ? Old::None : Old::Sums;
  unit.weighQueries(shape.valueHeads, sums.valuesFrom(code, shape, at.first),
                    probs, queries.doutRows, at.ahead, old, next.dvalues);
  unit.weighQueries(shape.keyHeads, sums.keysFrom(code, shape, at.first),
                    dscores, queries.queryRows, at.ahead, old, next.dkeys);
}

void GradientTile::addToQueries(const QueryRows &queries, const KeyRows &keys,
                                Value ahead, Value isNew) const {
  unit.weighKeys(shape.keyHeads, queries.dqueries, dscoresOfKeys, keys.keyRows,
                 ahead, Old::Sums, /*factors=*/{}, /*soon=*/{}, isNew);
}
