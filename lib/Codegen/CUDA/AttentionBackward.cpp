//===- AttentionBackward.cpp - Causal attention, backward -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two kinds of blocks. One owns some keys of a head and walks over the queries
// that see them, of all heads that share these keys, in order: it makes the
// gradients of keys and values. The other owns some queries and walks over the
// keys that they see: it makes the gradient of the queries. Each computes the
// weights again, so that no two blocks add to one sum, and the order of every
// sum is always the same.
//
// Both do the same: with own rows a and b, and tiles c and d, scores are a . c
// and gradients of weights b . d. For own keys, a and b are keys and values,
// c and d queries and the gradient of the output; for own queries, the other
// way round.
//
// Source: Dao, FlashAttention-2, arXiv:2307.08691, section 3.2.
//
//===----------------------------------------------------------------------===//

#include "AsyncCopies.h"
#include "Attention.h"
#include "AttentionTile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::cuda;

static constexpr double kLog2E = 1.4426950408889634;

namespace {
class BackwardEmitter {
public:
  using Values = Warp::Values;

  BackwardEmitter(codegen::Code &outer, const AttentionShape &shape,
                  const Division &division, const AttentionPlaces &places)
      : code(outer, places.shared), places(places), shape(shape),
        division(division),
        tile(code, shape, division, places, places.operands[6]) {}

  int64_t tiles() const {
    return llvm::divideCeil(shape.length, division.ownRows());
  }
  int64_t keyBlocks() const { return tiles() * shape.keyHeads * shape.batch; }
  int64_t queryBlocks() const {
    return tiles() * shape.queryHeads * shape.batch;
  }
  void emit();

private:
  using Matrix = AttentionTile::Matrix;
  enum { kQuery, kKey, kValue, kOut, kLse, kDout };

  void ownKeys(Value index);
  void ownQueries(Value index);
  struct Weights {
    Values kept, gradients;
  };
  Weights weights(const Scores &where, Value step, function_ref<void()> beside,
                  function_ref<Value(size_t)> logSum,
                  function_ref<Value(size_t)> delta);
  Matrix ofQueries(Value buffer, Value entry, Value head) {
    return tile.matrix(buffer, entry, head, shape.queryHeads, shape.width);
  }
  Matrix ofKeys(Value buffer, Value entry, Value head) {
    return tile.matrix(buffer, entry, head, shape.keyHeads, shape.width);
  }
  /// Outputs have heads of queries, as wide as values.
  Matrix ofOutputs(Value buffer, Value entry, Value head) {
    return tile.matrix(buffer, entry, head, shape.queryHeads, shape.valueWidth);
  }
  Matrix ofValues(Value buffer, Value entry, Value head) {
    return tile.matrix(buffer, entry, head, shape.keyHeads, shape.valueWidth);
  }
  AttentionTile::RowSource rowsOf(Value entry, Value inEntry, Value head) {
    return {ofOutputs(places.operands[kOut], entry, inEntry),
            places.operands[kLse], head};
  }
  /// Begins to copy both tiles of a step.
  void copyTiles(const Matrix &c, const Matrix &d, Value first, Value step) {
    tile.copy(c, first, division.tileRows, tile.walkedTile(step, 0));
    tile.copy(d, first, division.tileRows, tile.walkedTile(step, 1));
  }
  void copyOwn(const Matrix &a, const Matrix &b, Value first) {
    tile.copy(a, first, division.ownRows(), tile.ownTile(0));
    tile.copy(b, first, division.ownRows(), tile.ownTile(1));
  }

  Warp code;
  const AttentionPlaces &places;
  const AttentionShape &shape;
  const Division &division;
  AttentionTile tile;
};
} // namespace

void BackwardEmitter::emit() {
  Value index = code.blockIndex();
  code.choose(
      code.isLess(index, keyBlocks()),
      [&]() -> Values {
        ownKeys(index);
        return {};
      },
      [&]() -> Values {
        ownQueries(code.sub(index, code.i32(keyBlocks())));
        return {};
      });
}

/// Weights with their dropout, p * m, and gradients of scores but for the
/// scale, p * (m * dot(dout, value) - delta). What `beside` writes needs no
/// products, and is done while they are under way.
BackwardEmitter::Weights BackwardEmitter::weights(
    const Scores &where, Value step, function_ref<void()> beside,
    function_ref<Value(size_t)> logSum, function_ref<Value(size_t)> delta) {
  if (!tile.isAsync())
    beside();
  Values scores =
      tile.products(tile.ownTile(0), tile.walkedTile(step, 0), shape.width);
  Values gradients = tile.products(tile.ownTile(1), tile.walkedTile(step, 1),
                                   shape.valueWidth);
  if (tile.isAsync())
    beside();
  scores = tile.masked(tile.finish(scores, /*later=*/1), where);
  Values factors = tile.factors(where);
  Value scale = code.f32(shape.scale * kLog2E);
  for (size_t i = 0; i < scores.size(); ++i)
    scores[i] = code.exp2(code.fma(scores[i], scale, logSum(i)));
  gradients = tile.finish(gradients);
  for (size_t i = 0; i < scores.size(); ++i) {
    Value p = scores[i];
    if (!factors.empty()) {
      scores[i] = code.mul(p, factors[i]);
      gradients[i] = code.mul(gradients[i], factors[i]);
    }
    gradients[i] = code.mul(p, code.sub(gradients[i], delta(i)));
  }
  return {scores, gradients};
}

void BackwardEmitter::ownKeys(Value index) {
  Value head = code.div(index, tiles()); // entry * keyHeads + head of keys
  Value first = code.mul(code.rem(index, tiles()), division.ownRows());
  Value entry = code.div(head, shape.keyHeads);
  Value keyHead = code.rem(head, shape.keyHeads);
  copyOwn(ofKeys(places.operands[kKey], entry, keyHead),
          ofValues(places.operands[kValue], entry, keyHead), first);
  commitCopies(code);

  // A step is a head of the group and a tile of its queries, from the first
  // that sees a key.
  int64_t all = llvm::divideCeil(shape.length, division.tileRows);
  Value hidden = code.div(first, division.tileRows);
  Value perHead = code.sub(code.i32(all), hidden);
  bool isAlone = shape.group() == 1; // divisions cost instructions
  auto headOf = [&](Value step) {
    if (isAlone)
      return keyHead;
    return code.add(code.mul(keyHead, shape.group()), code.div(step, perHead));
  };
  auto firstOf = [&](Value step) {
    Value inHead = isAlone ? step : code.rem(step, perHead);
    return code.mul(code.add(hidden, inHead), division.tileRows);
  };
  auto inBatch = [&](Value head) {
    return code.add(code.mul(entry, shape.queryHeads), head);
  };
  Values state = tile.zeros(shape.width);
  size_t width = state.size();
  state.append(tile.zeros(shape.valueWidth));
  state = tile.walk(
      code.mul(perHead, shape.group()), state,
      [&](Value step) {
        Value head = headOf(step);
        copyTiles(ofQueries(places.operands[kQuery], entry, head),
                  ofOutputs(places.operands[kDout], entry, head), firstOf(step),
                  step);
        if (tile.isAsync())
          tile.copyForRowNumbers(rowsOf(entry, head, inBatch(head)),
                                 firstOf(step), division.tileRows, step);
      },
      [] {},
      [&](Value step, ValueRange sums) {
        Value head = headOf(step), firstQuery = firstOf(step);
        Scores where = {inBatch(head), first, firstQuery, true};
        auto column = [&](size_t i) {
          return code.add(code.mul(code.quad, 2),
                          i / 4 * kBlockColumns + i % 2);
        };
        auto writeNumbers = [&] {
          tile.writeRowNumbers(rowsOf(entry, head, where.head),
                               tile.walkedTile(step, 1), firstQuery,
                               division.tileRows, step);
          code.barrier();
        };
        Weights found = weights(
            where, step, writeNumbers,
            [&](size_t i) { return tile.logSum(column(i)); },
            [&](size_t i) { return tile.delta(column(i), division.tileRows); });
        Values more = tile.addProducts(sums.drop_front(width), found.kept,
                                       tile.walkedTile(step, 1));
        Values next = tile.addProducts(sums.take_front(width), found.gradients,
                                       tile.walkedTile(step, 0));
        next.append(more);
        return tile.finish(next);
      });
  Values scale(2, code.f32(shape.scale)), one(2, code.f32(1));
  ValueRange sums(state);
  tile.store(ofKeys(places.results[1], entry, keyHead), first,
             sums.take_front(width), scale);
  tile.store(ofValues(places.results[2], entry, keyHead), first,
             sums.drop_front(width), one);
}

void BackwardEmitter::ownQueries(Value index) {
  Value head = code.div(index, tiles()); // entry * queryHeads + head
  // Blocks with most keys come first.
  Value first =
      code.mul(code.sub(code.i32(tiles() - 1), code.rem(index, tiles())),
               division.ownRows());
  Value entry = code.div(head, shape.queryHeads);
  Value inEntry = code.rem(head, shape.queryHeads);
  Value keyHead = code.div(inEntry, shape.group());
  copyOwn(ofQueries(places.operands[kQuery], entry, inEntry),
          ofOutputs(places.operands[kDout], entry, inEntry), first);
  AttentionTile::RowSource rows = rowsOf(entry, inEntry, head);
  if (tile.isAsync())
    tile.copyForRowNumbers(rows, first, division.ownRows(), code.i32(0));
  commitCopies(code);
  Value logSums[2], deltas[2];
  auto prepare = [&] {
    waitForCopies(code, 1);
    code.barrier();
    tile.writeRowNumbers(rows, tile.ownTile(1), first, division.ownRows(),
                         code.i32(0));
    code.barrier();
    for (int64_t r = 0; r < 2; ++r) {
      logSums[r] = tile.logSum(tile.ownRow(r));
      deltas[r] = tile.delta(tile.ownRow(r), division.ownRows());
    }
  };

  Matrix key = ofKeys(places.operands[kKey], entry, keyHead);
  Matrix value = ofValues(places.operands[kValue], entry, keyHead);
  Value end =
      code.min(code.add(first, division.ownRows()), code.i32(shape.length));
  Value count =
      code.div(code.add(end, division.tileRows - 1), division.tileRows);
  auto firstOf = [&](Value step) { return code.mul(step, division.tileRows); };
  Values sums = tile.walk(
      count, tile.zeros(shape.width),
      [&](Value step) { copyTiles(key, value, firstOf(step), step); }, prepare,
      [&](Value step, ValueRange sums) {
        Weights found = weights(
            {head, first, firstOf(step), false}, step, [] {},
            [&](size_t i) { return logSums[i / 2 % 2]; },
            [&](size_t i) { return deltas[i / 2 % 2]; });
        return tile.finish(
            tile.addProducts(sums, found.gradients, tile.walkedTile(step, 0)));
      });
  Values scale(2, code.f32(shape.scale));
  tile.store(ofQueries(places.results[0], entry, inEntry), first, sums, scale);
}

FailureOr<LaunchShape>
cuda::emitAttentionBackward(codegen::Code &code, rt::AttentionBackwardOp op,
                            const AttentionPlaces &places, bool byWarpGroup) {
  AttentionShape shape(op);
  if (failed(verifyShape(op, shape)))
    return failure();
  Division division = divide(shape, Direction::Backward, byWarpGroup);
  BackwardEmitter backward(code, shape, division, places);
  backward.emit();
  return launchOf(shape, division,
                  backward.keyBlocks() + backward.queryBlocks());
}

bool cuda::hasWarpGroupForm(rt::AttentionBackwardOp op) {
  return canDivideByWarpGroup(AttentionShape(op), Direction::Backward);
}
