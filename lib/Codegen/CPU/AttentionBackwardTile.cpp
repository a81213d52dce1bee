//===- AttentionBackwardTile.cpp - Blocks and tiles of backward -----------===//
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

//===----------------------------------------------------------------------===//
// Heads and blocks
//===----------------------------------------------------------------------===//

BackwardEmitter::KeyHead BackwardEmitter::keyHeadAt(Value head) {
  auto key = [&](Value base) {
    return tile.headAddress(tile.keyHeads, base, head);
  };
  auto value = [&](Value base) {
    return tile.headAddress(tile.valueHeads, base, head);
  };
  return {key(addressOf(kernel, op, 1)), value(addressOf(kernel, op, 2)),
          key(kernel.outputs[1]), value(kernel.outputs[2])};
}

BackwardEmitter::QueryHead BackwardEmitter::queryHeadAt(Value bh) {
  auto query = [&](Value base) {
    return tile.headAddress(tile.queryHeads, base, bh);
  };
  auto out = [&](Value base) {
    return tile.headAddress(tile.outHeads, base, bh);
  };
  return {bh, query(addressOf(kernel, op, 0)), out(addressOf(kernel, op, 3)),
          out(addressOf(kernel, op, 5)), query(kernel.outputs[0])};
}

void BackwardEmitter::forGroup(Value keyHead, function_ref<void(Value)> body) {
  Value first = code.mul(keyHead, tile.group());
  code.loop(first, code.add(first, tile.group()), 1, [&](Value head) {
    queries = queryHeadAt(head);
    body(isEqual(head, first));
  });
}

void BackwardEmitter::select(Value index) {
  auto queries = [&](Value array) {
    return tile.elementsOf(tile.queryHeads, array, index);
  };
  auto dout = [&](Value array) {
    return tile.elementsOf(tile.outHeads, array, index);
  };
  auto numbers = [&](Value array) { return tile.numbersOf(array, index); };
  one = {queries(all.queryElements),
         dout(all.doutElements),
         queries(all.queriesT),
         dout(all.doutT),
         queries(all.queryRows),
         dout(all.doutRows),
         tile.sumsOf(tile.queryHeads, all.dqueries, index),
         numbers(all.deltas),
         numbers(all.lse)};
}

void BackwardEmitter::loadKeys(Value first) {
  tile.gather(tile.keyHeads, keys.key, first, keyElements);
  tile.gather(tile.valueHeads, keys.value, first, valueElements);
}

/// What a block of queries needs, whatever the keys. In f32 gradients of keys
/// are made with scaled queries, so that of a score is never scaled itself.
void BackwardEmitter::loadQueries(Value first) {
  tile.gatherQueries(queries.query, first, one.queryElements);
  tile.gather(tile.outHeads, queries.dout, first, one.doutElements);
  prepareQueries(first);
}

/// What is made of elements of queries.
void BackwardEmitter::prepareQueries(Value first) {
  tile.transposeElements(tile.queryHeads, one.queryElements, one.queriesT);
  tile.transposeElements(tile.outHeads, one.doutElements, one.doutT);
  Value zero = code.i64(0);
  code.loop(zero, code.i64(tile.block), 1, [&](Value r) {
    code.store(tile.dot(queries.dout, queries.out, code.add(first, r)),
               one.deltas, r);
  });
  // Queries that do not exist see nothing: exp(score - infinity).
  Value infinite = code.splatF32(std::numeric_limits<double>::infinity());
  code.loop(zero, code.i64(tile.block), kLanes, [&](Value lane) {
    Value position = code.add(first, lane), exists = tile.exist(position);
    Value numbers = code.load(
        code.lanesOf(code.getF32Type()), addressOf(kernel, op, 4),
        code.add(code.mul(queries.bh, tile.length), position), exists);
    numbers = code.select(exists, numbers, infinite);
    code.store(tile.fromLogarithm(numbers), one.lse, lane);
  });
}

/// In a walk over heads up to `lastHead`, for a block of queries of those that
/// begin with `query`: the next block of keys or, from the last diagonal, of
/// queries, and what is written then.
BackwardEmitter::Next BackwardEmitter::nextOfHead(Value query, Value block,
                                                  Value first, Value lastHead) {
  Value zero = code.i64(0);
  const int64_t size = together * tile.block;
  Value isDiagonal = isEqual(block, first);
  Value lastBlock = code.add(query, size - tile.block);
  Value isLastKey = isEqual(first, lastBlock);
  Value isEnd = isEqual(query, code.i64(tile.blocks() * tile.block - size));
  Value nextBlock = code.add(code.select(isEnd, zero, code.add(query, size)),
                             code.sub(block, query));
  QueryHead nextQueries = queryHeadAt(code.select(
      isEnd, code.min(code.add(queries.bh, 1), lastHead), queries.bh));
  KeyHead nextKeys = keyHeadAt(keyHeadOf(nextQueries.bh));
  Value nextFirst = code.select(isLastKey, tile.hasPairs ? nextBlock : zero,
                                code.add(first, tile.block));
  // The last of these blocks asks for keys.
  Value asks = together > 1 ? isEqual(block, lastBlock) : Value();
  auto keysAt = [&](const AttentionTile::Heads &heads,
                    Value KeyHead::*rows) -> AttentionTile::Soon {
    return {heads, code.select(isLastKey, nextKeys.*rows, keys.*rows),
            nextFirst, asks};
  };
  Next next;
  next.scores = {keysAt(tile.keyHeads, &KeyHead::key),
                 keysAt(tile.valueHeads, &KeyHead::value)};
  next.dprobs = {{tile.outHeads, nextQueries.out, nextBlock, isDiagonal},
                 {tile.queryHeads, queries.dquery, block, isDiagonal, true}};
  next.dvalues = {{tile.queryHeads, nextQueries.query, nextBlock, isDiagonal},
                  {tile.outHeads, nextQueries.dout, nextBlock, isDiagonal}};
  if (hasAllSums())
    next.dkeys = {{tile.keyHeads, keys.dkey, first, isDiagonal, true},
                  {tile.valueHeads, keys.dvalue, first, isDiagonal, true}};
  else
    next.dkeys = {keysAt(tile.keyHeads, &KeyHead::dkey),
                  keysAt(tile.valueHeads, &KeyHead::dvalue)};
  return next;
}

void BackwardEmitter::writeQueries(Value first) {
  Value scale = code.splatF32(tile.scale);
  tile.scatter(tile.queryHeads, one.dqueries, queries.dquery, first,
               [&](Value) { return scale; });
}

//===----------------------------------------------------------------------===//
// A tile
//===----------------------------------------------------------------------===//

/// probs[j] = p * m and dscores[j] = p * (m * dot(dout, value) - delta), zero
/// where the query does not see the key.
void BackwardEmitter::emitTile(Value queryBlock, Value first, Value ahead,
                               Gradients of, const Next &next,
                               function_ref<void(Value)> meanwhile) {
  tile.scores(tile.keyHeads, keyElements, one.queriesT, probs, ahead,
              next.scores);
  tile.scores(tile.valueHeads, valueElements, one.doutT, dscores, ahead,
              next.dprobs);
  auto store = [&](Value key, Value lane, ValueRange p, ValueRange ds) {
    if (of != Gradients::OfQueries) {
      tile.storeQueries(probs, key, lane, p);
      tile.storeQueries(dscores, key, lane, ds);
    }
    // These are the same unless they are pairs.
    if (of == Gradients::OfQueries || (of == Gradients::All && tile.hasPairs))
      tile.storeKeys(dscoresOfKeys, key, lane, ds);
  };
  tile.forQueries(ahead, [&](Value lane, Value count) {
    Value total = tile.load(one.lse, lane), delta = tile.load(one.deltas, lane);
    Value zero = code.splatF32(0);
    auto rowOf = [&](Value j) { meanwhile(tile.rowOf(lane, j)); };
    function_ref<void(Value)> copy;
    if (meanwhile)
      copy = rowOf;
    tile.forKeys(
        random, tile.elements(queries.bh, code.add(queryBlock, lane)), first,
        count, {},
        [&](Value j, ArrayRef<Value> factors, ValueRange) {
          SmallVector<Value> weights, gradients;
          for (auto [k, factor] : llvm::enumerate(factors)) {
            Value key = code.add(j, k), at = tile.at(key, lane);
            Value p =
                tile.power(tile.exponentLess(tile.load(probs, at), total));
            p = tile.whereSeen(lane, ahead, key, p, zero);
            Value dp = code.mul(tile.load(dscores, at), factor);
            weights.push_back(tile.weight(p, factor));
            gradients.push_back(code.mul(p, code.sub(dp, delta)));
          }
          store(j, lane, weights, gradients);
          return SmallVector<Value>();
        },
        copy);
    tile.forUnseen(count, [&](Value key) {
      store(key, lane, {zero, zero}, {zero, zero});
    });
  });
}

void BackwardEmitter::addToKeys(Value first, Value ahead, const Next &next) {
  using Old = AttentionTile::Old;
  Old old = ahead && beginsOnDiagonal() ? Old::None : Old::Sums;
  tile.weighQueries(tile.valueHeads, sumsOf(tile.valueHeads, dvalues, first),
                    probs, one.doutRows, ahead, old, next.dvalues);
  tile.weighQueries(tile.keyHeads, sumsOf(tile.keyHeads, dkeys, first), dscores,
                    one.queryRows, ahead, old, next.dkeys);
}

/// Sums that lie where they belong, of which there may be nothing yet.
void BackwardEmitter::loadSumsOfKeys(Value first, Value isNew) {
  code.when(
      isNew, [&] { fillSumsOfKeys(); },
      [&] {
        tile.gatherSums(tile.keyHeads, keys.dkey, first, dkeys);
        tile.gatherSums(tile.valueHeads, keys.dvalue, first, dvalues);
      });
}

void BackwardEmitter::writeKeys(Value first) {
  auto write = [&](const AttentionTile::Heads &heads, Value sums,
                   Value gradients, float factor) {
    Value times = code.splatF32(factor);
    tile.scatter(heads, sumsOf(heads, sums, first), gradients, first,
                 [&](Value) { return times; });
  };
  write(tile.keyHeads, dkeys, keys.dkey, tile.scoreScale());
  write(tile.valueHeads, dvalues, keys.dvalue, tile.weightScale());
}
