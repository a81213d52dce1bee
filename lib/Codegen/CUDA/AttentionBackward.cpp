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
#include "AttentionGemms.h"
#include "AttentionRowNumbers.h"
#include "AttentionScores.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::cuda;

static constexpr double kLog2E = 1.4426950408889634;

namespace {
/// The matrices of a head of an entry: outputs have heads of queries, as wide
/// as values.
class BackwardBuffers {
public:
  BackwardBuffers(const SharedTiles &tiles, const AttentionShape &shape,
                  const AttentionPlaces &places)
      : tiles(tiles), shape(shape), places(places) {}

  Matrix query(Value entry, Value head) const {
    return ofQueries(places.operands[0], entry, head, shape.width);
  }
  Matrix key(Value entry, Value head) const {
    return ofKeys(places.operands[1], entry, head, shape.width);
  }
  Matrix value(Value entry, Value head) const {
    return ofKeys(places.operands[2], entry, head, shape.valueWidth);
  }
  Matrix out(Value entry, Value head) const {
    return ofQueries(places.operands[3], entry, head, shape.valueWidth);
  }
  Value lse() const { return places.operands[4]; }
  Matrix dout(Value entry, Value head) const {
    return ofQueries(places.operands[5], entry, head, shape.valueWidth);
  }
  Matrix dquery(Value entry, Value head) const {
    return ofQueries(places.results[0], entry, head, shape.width);
  }
  Matrix dkey(Value entry, Value head) const {
    return ofKeys(places.results[1], entry, head, shape.width);
  }
  Matrix dvalue(Value entry, Value head) const {
    return ofKeys(places.results[2], entry, head, shape.valueWidth);
  }
  /// Of head `inEntry`, which is `head` of all.
  RowNumbers::Source rowsOf(Value entry, Value inEntry, Value head) const {
    return {out(entry, inEntry), lse(), head};
  }

private:
  Matrix ofQueries(Value buffer, Value entry, Value head, int64_t width) const {
    return tiles.matrix(buffer, entry, head, shape.queryHeads, width);
  }
  Matrix ofKeys(Value buffer, Value entry, Value head, int64_t width) const {
    return tiles.matrix(buffer, entry, head, shape.keyHeads, width);
  }

  const SharedTiles &tiles;
  const AttentionShape &shape;
  const AttentionPlaces &places;
};

class BackwardEmitter {
public:
  using Values = Warp::Values;

  BackwardEmitter(codegen::Code &outer, const AttentionShape &shape,
                  const Division &division, const AttentionPlaces &places)
      : code(outer, places.shared), shape(shape), division(division),
        tiles(code, shape, division), buffers(tiles, shape, places),
        unit(MatrixUnit::create(code, shape, division)),
        numbers(code, shape, division, tiles),
        dropout(code, shape, division, places, places.operands[6]) {}

  int64_t numTiles() const {
    return llvm::divideCeil(shape.length, division.ownRows());
  }
  int64_t keyBlocks() const {
    return numTiles() * shape.keyHeads * shape.batch;
  }
  int64_t queryBlocks() const {
    return numTiles() * shape.queryHeads * shape.batch;
  }
  void emit();

private:
  struct QueryWalk;
  Values addQueries(const QueryWalk &walk, Value first, Value step,
                    ValueRange sums, size_t width);
  void ownKeys(Value index);
  void ownQueries(Value index);
  struct Weights {
    Values kept, gradients;
  };
  Weights weights(const Scores &where, Value step, function_ref<void()> beside,
                  function_ref<Value(size_t)> logSum,
                  function_ref<Value(size_t)> delta);
  /// Begins to copy both tiles of a step.
  void copyTiles(const Matrix &c, const Matrix &d, Value first, Value step) {
    tiles.copy(c, first, division.tileRows, tiles.walked(step, 0));
    tiles.copy(d, first, division.tileRows, tiles.walked(step, 1));
  }
  void copyOwn(const Matrix &a, const Matrix &b, Value first) {
    tiles.copy(a, first, division.ownRows(), tiles.own(0));
    tiles.copy(b, first, division.ownRows(), tiles.own(1));
  }

  Warp code;
  const AttentionShape &shape;
  const Division &division;
  const SharedTiles tiles;
  const BackwardBuffers buffers;
  const std::unique_ptr<MatrixUnit> unit;
  const RowNumbers numbers;
  const ScoreDropout dropout;
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
/// GEMMs, and is done while they are under way.
BackwardEmitter::Weights BackwardEmitter::weights(
    const Scores &where, Value step, function_ref<void()> beside,
    function_ref<Value(size_t)> logSum, function_ref<Value(size_t)> delta) {
  if (!unit->isAsync())
    beside();
  Values scores = unit->gemm(tiles.own(0), tiles.walked(step, 0), shape.width);
  Values gradients =
      unit->gemm(tiles.own(1), tiles.walked(step, 1), shape.valueWidth);
  if (unit->isAsync())
    beside();
  scores = masked(code, division, unit->finish(scores, /*later=*/1), where);
  Values factors = dropout.factors(where);
  Value scale = code.f32(shape.scale * kLog2E);
  for (size_t i = 0; i < scores.size(); ++i)
    scores[i] = exp2(code, code.fma(scores[i], scale, logSum(i)));
  gradients = unit->finish(gradients);
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

/// The steps of a block that owns keys of one head: a head of the group and a
/// tile of its queries, from the first that sees a key.
struct BackwardEmitter::QueryWalk {
  Warp &code;
  const AttentionShape &shape;
  const Division &division;
  Value entry, keyHead, hidden, perHead;

  QueryWalk(Warp &code, const AttentionShape &shape, const Division &division,
            Value entry, Value keyHead, Value firstKey)
      : code(code), shape(shape), division(division), entry(entry),
        keyHead(keyHead), hidden(code.div(firstKey, division.tileRows)),
        perHead(code.sub(
            code.i32(llvm::divideCeil(shape.length, division.tileRows)),
            hidden)) {}

  Value count() const { return code.mul(perHead, shape.group()); }
  bool isAlone() const { return shape.group() == 1; } // divisions take time
  Value headOf(Value step) const {
    if (isAlone())
      return keyHead;
    return code.add(code.mul(keyHead, shape.group()), code.div(step, perHead));
  }
  Value firstOf(Value step) const {
    Value inHead = isAlone() ? step : code.rem(step, perHead);
    return code.mul(code.add(hidden, inHead), division.tileRows);
  }
  /// Of `head` of the entry, the number among the heads of all.
  Value inBatch(Value head) const {
    return code.add(code.mul(entry, shape.queryHeads), head);
  }
};

/// One tile of queries for own keys: adds to the sums of keys, of which there
/// are `width`, and to those of values behind them.
BackwardEmitter::Values BackwardEmitter::addQueries(const QueryWalk &walk,
                                                    Value first, Value step,
                                                    ValueRange sums,
                                                    size_t width) {
  Value head = walk.headOf(step), firstQuery = walk.firstOf(step);
  Scores where = {walk.inBatch(head), first, firstQuery, true};
  auto column = [&](size_t i) {
    return code.add(code.mul(code.quad, 2), i / 4 * kBlockColumns + i % 2);
  };
  auto writeNumbers = [&] {
    numbers.write(buffers.rowsOf(walk.entry, head, where.head),
                  tiles.walked(step, 1), firstQuery, division.tileRows, step);
    barrier(code);
  };
  Weights found = weights(
      where, step, writeNumbers,
      [&](size_t i) { return numbers.logSum(column(i)); },
      [&](size_t i) { return numbers.delta(column(i), division.tileRows); });
  Values more =
      unit->addGemm(sums.drop_front(width), found.kept, tiles.walked(step, 1));
  Values next = unit->addGemm(sums.take_front(width), found.gradients,
                              tiles.walked(step, 0));
  next.append(more);
  return unit->finish(next);
}

void BackwardEmitter::ownKeys(Value index) {
  Value head = code.div(index, numTiles()); // entry * keyHeads + head of keys
  Value first = code.mul(code.rem(index, numTiles()), division.ownRows());
  Value entry = code.div(head, shape.keyHeads);
  Value keyHead = code.rem(head, shape.keyHeads);
  copyOwn(buffers.key(entry, keyHead), buffers.value(entry, keyHead), first);
  commitCopies(code);

  QueryWalk walk(code, shape, division, entry, keyHead, first);
  Values state = unit->zeros(shape.width);
  size_t width = state.size();
  state.append(unit->zeros(shape.valueWidth));
  state = tiles.walk(
      walk.count(), state,
      [&](Value step) {
        Value head = walk.headOf(step);
        copyTiles(buffers.query(entry, head), buffers.dout(entry, head),
                  walk.firstOf(step), step);
        if (unit->isAsync())
          numbers.copy(buffers.rowsOf(entry, head, walk.inBatch(head)),
                       walk.firstOf(step), division.tileRows, step);
      },
      [] {},
      [&](Value step, ValueRange sums) {
        return addQueries(walk, first, step, sums, width);
      });
  Values scale(2, code.f32(shape.scale)), one(2, code.f32(1));
  ValueRange sums(state);
  tiles.store(buffers.dkey(entry, keyHead), first, sums.take_front(width),
              scale);
  tiles.store(buffers.dvalue(entry, keyHead), first, sums.drop_front(width),
              one);
}

void BackwardEmitter::ownQueries(Value index) {
  Value head = code.div(index, numTiles()); // entry * queryHeads + head
  // Blocks with most keys come first.
  Value first =
      code.mul(code.sub(code.i32(numTiles() - 1), code.rem(index, numTiles())),
               division.ownRows());
  Value entry = code.div(head, shape.queryHeads);
  Value inEntry = code.rem(head, shape.queryHeads);
  Value keyHead = code.div(inEntry, shape.group());
  copyOwn(buffers.query(entry, inEntry), buffers.dout(entry, inEntry), first);
  RowNumbers::Source rows = buffers.rowsOf(entry, inEntry, head);
  if (unit->isAsync())
    numbers.copy(rows, first, division.ownRows(), code.i32(0));
  commitCopies(code);
  Value logSums[2], deltas[2];
  auto prepare = [&] {
    waitForCopies(code, 1);
    barrier(code);
    numbers.write(rows, tiles.own(1), first, division.ownRows(), code.i32(0));
    barrier(code);
    for (int64_t r = 0; r < 2; ++r) {
      logSums[r] = numbers.logSum(ownRow(code, r));
      deltas[r] = numbers.delta(ownRow(code, r), division.ownRows());
    }
  };

  Matrix key = buffers.key(entry, keyHead);
  Matrix value = buffers.value(entry, keyHead);
  Value end =
      code.min(code.add(first, division.ownRows()), code.i32(shape.length));
  Value count =
      code.div(code.add(end, division.tileRows - 1), division.tileRows);
  auto firstOf = [&](Value step) { return code.mul(step, division.tileRows); };
  Values sums = tiles.walk(
      count, unit->zeros(shape.width),
      [&](Value step) { copyTiles(key, value, firstOf(step), step); }, prepare,
      [&](Value step, ValueRange sums) {
        Weights found = weights(
            {head, first, firstOf(step), false}, step, [] {},
            [&](size_t i) { return logSums[i / 2 % 2]; },
            [&](size_t i) { return deltas[i / 2 % 2]; });
        return unit->finish(
            unit->addGemm(sums, found.gradients, tiles.walked(step, 0)));
      });
  Values scale(2, code.f32(shape.scale));
  tiles.store(buffers.dquery(entry, inEntry), first, sums, scale);
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
