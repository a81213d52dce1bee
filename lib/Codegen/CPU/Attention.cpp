//===- Attention.cpp - Causal attention, forward ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A task is a block of queries of a head, or several. It walks the keys up to
// its last query in blocks, with the running maximum and sum of each query and
// its weighted sum of values on the stack.
//
// Source: Dao, FlashAttention-2, arXiv:2307.08691, section 3.1.
//
//===----------------------------------------------------------------------===//

#include "AttentionTile.h"
#include "RTKernels.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

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

namespace {
/// Emits one task.
class ForwardEmitter {
public:
  ForwardEmitter(Code &code, rt::AttentionOp op, Kernel &kernel)
      : code(code), op(op), kernel(kernel), tile(code, op, kernel),
        keys(tile.newElements(tile.keyHeads)),
        values(tile.hasPairs ? tile.newRows(tile.valueHeads)
                             : tile.newElements(tile.valueHeads)),
        otherValues(tile.hasPairs ? tile.newRows(tile.valueHeads) : values),
        probs(tile.newTile()), together(tile.blocksTogether(mostTogether())),
        all{{},
            tile.newElements(tile.queryHeads, together),
            tile.newSums(tile.outHeads, together),
            tile.newNumbers(together),
            tile.newNumbers(together),
            tile.newNumbers(together)},
        random(RandomStream::load(code, kernel, addressOf(kernel, op, 3),
                                  op.getStream())) {}

  int64_t tasks() const {
    return tile.batch * tile.queryHeads.count * tile.blocks() / together;
  }
  void emit(Value task);

private:
  /// The queries from `query` on of head `bh`, and the addresses of the heads
  /// that they read.
  struct Place {
    Value bh, query, queries, keys, values;
  };
  Place placeOf(Value task);
  /// Blocks of queries that the stack has room for.
  int64_t mostTogether() const {
    auto fit = [&](int64_t blocks) {
      int64_t columns = tile.queryHeads.padded + tile.outHeads.padded;
      int64_t rows = (1 + blocks) * columns + tile.block + 3 * blocks;
      return 4 * rows * tile.block <= kStackBytes;
    };
    return fit(4) ? 4 : fit(2) ? 2 : 1;
  }
  /// Keys from `first` on, already on the stack as elements, and their values
  /// as pairs in `valuesFrom(first)`. Next come those of the block from `next`
  /// on, unless that is null.
  void emitPairs(const Place &at, Value first, Value ahead, Value next,
                 ArrayRef<AttentionTile::Soon> soonKeys,
                 ArrayRef<AttentionTile::Soon> soonQueries);
  Value valuesFrom(Value first);
  /// Of the block of keys from `first` on, rows `row` and `row + 1`.
  void gatherKeys(const Place &at, Value first, Value row);
  void softmax(Value first, Value ahead,
               function_ref<void(Value row)> meanwhile = {});
  void emitBlocks(const Place &at, const Place &next, Value out);
  void begin(const Place &at);
  void write(Value out);

  /// What a block of queries from `first` on has on the stack, the last three
  /// for each query.
  struct Queries {
    Value first, queriesT, sums, maxima, totals, factors;
  };
  /// Goes on with block `index` of the task.
  void select(const Place &at, Value index) {
    queries = {code.add(at.query, code.mul(index, tile.block)),
               tile.elementsOf(tile.queryHeads, all.queriesT, index),
               tile.sumsOf(tile.outHeads, all.sums, index),
               tile.numbersOf(all.maxima, index),
               tile.numbersOf(all.totals, index),
               tile.numbersOf(all.factors, index)};
  }

  Code &code;
  rt::AttentionOp op;
  Kernel &kernel;
  AttentionTile tile;
  // On the stack.
  Value keys, values, otherValues, probs;
  const int64_t together; ///< Blocks of queries of a task.
  const Queries all;      ///< of them
  Queries queries;        ///< of one
  RandomStream random;
  Value bh; ///< of the task
};
} // namespace

ForwardEmitter::Place ForwardEmitter::placeOf(Value task) {
  Value perHead = code.i64(tile.blocks() / together);
  Value bh = arith::DivSIOp::create(code, task, perHead);
  Value query = code.mul(arith::RemSIOp::create(code, task, perHead),
                         together * tile.block);
  // Of entry and head of keys together, as of bh itself, since groups are
  // equal.
  Value keyHead = arith::DivSIOp::create(code, bh, code.i64(tile.group()));
  auto keysOf = [&](const AttentionTile::Heads &heads, unsigned input) {
    return tile.headAddress(heads, addressOf(kernel, op, input), keyHead);
  };
  return {bh, query,
          tile.headAddress(tile.queryHeads, addressOf(kernel, op, 0), bh),
          keysOf(tile.keyHeads, 1), keysOf(tile.valueHeads, 2)};
}

void ForwardEmitter::emit(Value task) {
  Place at = placeOf(task);
  bh = at.bh;
  // The task that this thread goes on with.
  Place next =
      placeOf(code.min(code.add(task, 1), code.sub(kernel.end, code.i64(1))));
  Value out = tile.headAddress(tile.outHeads, kernel.outputs[0], bh);
  if (!tile.hasPairs)
    return emitBlocks(at, next, out);

  Value zero = code.i64(0), query = at.query;
  select(at, zero);
  begin(at);
  code.loop(zero, code.i64(tile.block), 2,
            [&](Value row) { gatherKeys(at, zero, row); });
  if (tile.blocks() > 1)
    code.loop(zero, query, tile.block, [&](Value first) {
      emitPairs(at, first, /*ahead=*/{}, code.add(first, tile.block), {}, {});
    });
  emitPairs(at, query, /*ahead=*/zero, /*next=*/{},
            {{tile.keyHeads, next.keys, next.query},
             {tile.valueHeads, next.values, next.query}},
            {{tile.queryHeads, next.queries, next.query},
             {tile.outHeads, out, query, {}, /*isWritten=*/true}});
  write(out);
}

/// All that is made of a block of queries before it meets keys.
void ForwardEmitter::begin(const Place &at) {
  tile.gatherQueries(at.queries, queries.first, keys);
  tile.transposeElements(tile.queryHeads, keys, queries.queriesT);
  if (!tile.hasPairs)
    tile.fillZero(tile.outHeads, queries.sums);
  code.loop(code.i64(0), code.i64(tile.block), kLanes, [&](Value lane) {
    code.store(code.splatF32(kLowest), queries.maxima, lane);
    code.store(code.splatF32(0), queries.totals, lane);
  });
}

/// Each block of keys, in f32, meets the blocks of queries that see it.
void ForwardEmitter::emitBlocks(const Place &at, const Place &next, Value out) {
  Value zero = code.i64(0), blocks = code.i64(together);
  auto isEqual = [&](Value a, Value b) -> Value {
    return arith::CmpIOp::create(code, arith::CmpIPredicate::eq, a, b);
  };
  auto forBlocks = [&](Value begin, function_ref<void(Value)> body) {
    code.loop(begin, blocks, 1, [&](Value index) {
      select(at, index);
      body(index);
    });
  };
  forBlocks(zero, [&](Value) { begin(at); });
  const int64_t lastBlock = (together - 1) * tile.block;
  Value lastQuery = code.add(at.query, lastBlock);
  code.loop(zero, code.add(lastQuery, 1), tile.block, [&](Value first) {
    tile.gather(tile.keyHeads, at.keys, first, keys);
    tile.gather(tile.valueHeads, at.values, first, values);
    Value isEnd = isEqual(first, lastQuery);
    Value nextFirst = code.select(isEnd, zero, code.add(first, tile.block));
    forBlocks(tile.firstToSee(at.query, first), [&](Value index) {
      Value ahead = code.sub(queries.first, first);
      // The last of them asks for keys, each for what it has next and writes.
      Value isLast = isEqual(index, code.i64(together - 1));
      Value isDiagonal = isEqual(ahead, zero);
      Value nextQuery = code.add(next.query, code.sub(queries.first, at.query));
      tile.scores(tile.queryHeads, keys, queries.queriesT, probs, ahead,
                  {{tile.keyHeads, code.select(isEnd, next.keys, at.keys),
                    nextFirst, isLast},
                   {tile.valueHeads, code.select(isEnd, next.values, at.values),
                    nextFirst, isLast}});
      softmax(first, ahead);
      tile.weighKeys(tile.outHeads, queries.sums, probs, values, ahead,
                     AttentionTile::Old::Scaled, queries.factors,
                     {{tile.queryHeads, next.queries, nextQuery, isDiagonal},
                      {tile.outHeads, out, queries.first, isDiagonal, true}});
    });
  });
  forBlocks(zero, [&](Value) { write(out); });
}

/// Values, of pairs, are in two arrays in turn: the next ones come before those
/// that are there have been used.
Value ForwardEmitter::valuesFrom(Value first) {
  Value half = arith::AndIOp::create(code, first, code.i64(tile.block));
  Value isOther =
      arith::CmpIOp::create(code, arith::CmpIPredicate::ne, half, code.i64(0));
  return code.select(isOther, otherValues, values);
}

void ForwardEmitter::gatherKeys(const Place &at, Value first, Value row) {
  tile.gatherTwo(tile.keyHeads, at.keys, first, row, keys, /*rows=*/{});
  tile.gatherTwo(tile.valueHeads, at.values, first, row, /*elements=*/{},
                 valuesFrom(first));
}

void ForwardEmitter::emitPairs(const Place &at, Value first, Value ahead,
                               Value next,
                               ArrayRef<AttentionTile::Soon> soonKeys,
                               ArrayRef<AttentionTile::Soon> soonQueries) {
  Value isNew =
      arith::CmpIOp::create(code, arith::CmpIPredicate::eq, first, code.i64(0));
  tile.scores(tile.queryHeads, keys, queries.queriesT, probs, ahead, soonKeys);
  // Elements have been used. Exponentials leave time to copy the next ones.
  auto copy = [&](Value row) { gatherKeys(at, next, row); };
  if (next)
    softmax(first, ahead, copy);
  else
    softmax(first, ahead);
  tile.weighKeys(tile.outHeads, queries.sums, probs, valuesFrom(first), ahead,
                 AttentionTile::Old::Sums,
                 /*factors=*/{}, soonQueries, isNew);
}

/// One block of keys: scores become exponentials, times dropout. If all queries
/// see all keys, every second row of the block goes to `meanwhile`, which takes
/// the next one, too.
void ForwardEmitter::softmax(Value first, Value ahead,
                             function_ref<void(Value)> meanwhile) {
  tile.forQueries(ahead, [&](Value lane, Value count) {
    Value lowest = code.splatF32(kLowest), zero = code.splatF32(0);
    // Four maxima at a time, for one alone would wait for itself.
    constexpr int64_t kSideBySide = 4;
    SmallVector<Value> max(kSideBySide, lowest);
    max = code.loop(code.i64(0), count, kSideBySide, max,
                    [&](Value j, ValueRange old) {
                      SmallVector<Value> next;
                      for (int64_t k = 0; k < kSideBySide; ++k) {
                        Value key = code.add(j, k);
                        Value score = tile.load(probs, tile.at(key, lane));
                        score = tile.whereSeen(lane, ahead, key, score, lowest);
                        next.push_back(greater(code, old[k], score));
                      }
                      return next;
                    });
    Value old = tile.load(queries.maxima, lane);
    Value here = greater(code, greater(code, max[0], max[1]),
                         greater(code, max[2], max[3]));
    here = tile.exponentOf(here);
    Value now = greater(code, old, here);
    Value isRaised;
    if (tile.hasPairs) {
      isRaised = arith::CmpFOp::create(code, arith::CmpFPredicate::OGT, here,
                                       code.add(old, code.splatF32(kSlack)));
      now = code.select(isRaised, here, old);
    }
    Value decay = tile.power(code.sub(old, now));
    Value total = code.mul(tile.load(queries.totals, lane), decay);
    auto rowOf = [&](Value j) { meanwhile(tile.rowOf(lane, j)); };
    function_ref<void(Value)> copy;
    if (meanwhile)
      copy = rowOf;
    total = tile.forKeys(
        random, tile.elements(bh, code.add(queries.first, lane)), first, count,
        total,
        [&](Value j, ArrayRef<Value> dropout, ValueRange sum) {
          SmallVector<Value> weights;
          Value next = sum[0];
          for (auto [k, factor] : llvm::enumerate(dropout)) {
            Value key = code.add(j, k);
            Value score = tile.load(probs, tile.at(key, lane));
            Value p = tile.power(tile.exponentLess(score, now));
            p = tile.whereSeen(lane, ahead, key, p, zero);
            weights.push_back(tile.weight(p, factor));
            next = code.add(next, p);
          }
          tile.storeKeys(probs, j, lane, weights);
          return SmallVector<Value>{next};
        },
        copy)[0];
    tile.forUnseen(count, [&](Value key) {
      tile.storeKeys(probs, key, lane, {zero, zero});
    });
    code.store(now, queries.maxima, lane);
    code.store(total, queries.totals, lane);
    code.store(decay, queries.factors, lane);
    if (!tile.hasPairs)
      return;
    Value bits = LLVM::BitcastOp::create(code, code.getI16Type(), isRaised);
    Value none = code.scalar(code.getI16Type(), 0);
    Value isAny =
        arith::CmpIOp::create(code, arith::CmpIPredicate::ne, bits, none);
    Value isOld = arith::CmpIOp::create(code, arith::CmpIPredicate::ne, first,
                                        code.i64(0));
    code.when(arith::AndIOp::create(code, isAny, isOld), [&] {
      tile.scaleRows(tile.outHeads, queries.sums, lane, queries.factors);
    });
  });
}

void ForwardEmitter::write(Value out) {
  code.loop(code.i64(0), code.i64(tile.block), kLanes, [&](Value lane) {
    Value total = tile.load(queries.totals, lane),
          at = code.add(queries.first, lane);
    Value lse = code.add(tile.toLogarithm(tile.load(queries.maxima, lane)),
                         math::LogOp::create(code, total));
    code.store(lse, kernel.outputs[1], code.add(code.mul(bh, tile.length), at),
               tile.exist(at));
    Value scale = code.splatF32(tile.weightScale());
    code.store(arith::DivFOp::create(code, scale, total), queries.factors,
               lane);
  });
  tile.scatter(tile.outHeads, queries.sums, out, queries.first, [&](Value r) {
    return code.splat(code.load(code.getF32Type(), queries.factors, r));
  });
}

LogicalResult codegen::emitAttention(Code &code, rt::AttentionOp op,
                                     Kernel &kernel) {
  if (failed(verifyHeadWidth(op, op.getQuery(), op.getOut(), op.getHeads())))
    return failure();
  ForwardEmitter forward(code, op, kernel);
  kernel.function->setAttr(rt::kTasksAttr,
                           code.getI64IntegerAttr(forward.tasks()));
  kernel.tasks(code, [&](Value task) { forward.emit(task); });
  return success();
}
