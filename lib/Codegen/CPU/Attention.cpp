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

#include "AttentionGemms.h"
#include "AttentionSoftmax.h"
#include "RTKernels.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;
using namespace reprise::codegen::attention;

/// Blocks of queries that the stack has room for.
static int64_t mostTogether(const AttentionShape &shape) {
  auto fit = [&](int64_t blocks) {
    int64_t columns = shape.queryHeads.padded + shape.outHeads.padded;
    int64_t rows = (1 + blocks) * columns + shape.block + 3 * blocks;
    return 4 * rows * shape.block <= kStackBytes;
  };
  return fit(4) ? 4 : fit(2) ? 2 : 1;
}

namespace {
/// The queries from `query` on of head `bh`, and the addresses of the heads
/// that they read.
struct Place {
  Value bh, query, queries, keys, values;
};

/// Emits one task.
class ForwardEmitter {
public:
  ForwardEmitter(Code &code, rt::AttentionOp op, Kernel &kernel)
      : code(code), op(op), kernel(kernel), shape(op, kernel),
        unit(MatrixUnit::create(code, shape, kernel)),
        keys(newElements(code, shape, shape.keyHeads)),
        values(shape.hasBF16x2 ? newRows(code, shape, shape.valueHeads)
                               : newElements(code, shape, shape.valueHeads)),
        otherValues(shape.hasBF16x2 ? newRows(code, shape, shape.valueHeads)
                                    : values),
        probs(newTile(code, shape)),
        together(shape.blocksTogether(mostTogether(shape))),
        all(QueryBlock::create(code, shape, together)),
        stream{loadRank(code, op, kernel),
               RandomStream::load(code, kernel, addressOf(kernel, op, 3),
                                  op.getStream())},
        softmax(code, shape, stream, probs) {}

  int64_t tasks() const {
    return shape.batch * shape.queryHeads.count * shape.blocks() / together;
  }
  void emit(Value task) const;

private:
  Place placeOf(Value task) const;
  void emitAllPairs(const Place &at, const Place &next, Value out) const;
  void emitPairs(const Place &at, const QueryBlock &queries, Value first,
                 Value ahead, Value next, ArrayRef<Soon> soonKeys,
                 ArrayRef<Soon> soonQueries) const;
  Value valuesFrom(Value first) const;
  void gatherKeys(const Place &at, Value first, Value row) const;
  void emitBlocks(const Place &at, const Place &next, Value out) const;
  void begin(const Place &at, const QueryBlock &queries) const;
  void write(const QueryBlock &queries, Value bh, Value out) const;

  Code &code;
  rt::AttentionOp op;
  Kernel &kernel;
  const AttentionShape shape;
  const std::unique_ptr<MatrixUnit> unit;
  // On the stack.
  const Value keys, values, otherValues, probs;
  const int64_t together; ///< Blocks of queries of a task.
  const QueryBlock all;   ///< of them
  const ScoreStream stream;
  const Softmax softmax;
};
} // namespace

Place ForwardEmitter::placeOf(Value task) const {
  Value perHead = code.i64(shape.blocks() / together);
  Value bh = arith::DivSIOp::create(code, task, perHead);
  Value query = code.mul(arith::RemSIOp::create(code, task, perHead),
                         together * shape.block);
  // Of entry and head of keys together, as of bh itself, since groups are
  // equal.
  Value keyHead = arith::DivSIOp::create(code, bh, code.i64(shape.group()));
  auto keysOf = [&](const Heads &heads, unsigned input) {
    return headAddress(code, shape, heads, addressOf(kernel, op, input),
                       keyHead);
  };
  return {
      bh, query,
      headAddress(code, shape, shape.queryHeads, addressOf(kernel, op, 0), bh),
      keysOf(shape.keyHeads, 1), keysOf(shape.valueHeads, 2)};
}

void ForwardEmitter::emit(Value task) const {
  Place at = placeOf(task);
  // The task that this thread goes on with.
  Place next =
      placeOf(code.min(code.add(task, 1), code.sub(kernel.end, code.i64(1))));
  Value out =
      headAddress(code, shape, shape.outHeads, kernel.outputs[0], at.bh);
  if (shape.hasBF16x2)
    emitAllPairs(at, next, out);
  else
    emitBlocks(at, next, out);
}

/// All that is made of a block of queries before it meets keys.
void ForwardEmitter::begin(const Place &at, const QueryBlock &queries) const {
  gatherQueries(code, shape, at.queries, queries.first, keys);
  transposeElements(code, shape, shape.queryHeads, keys, queries.queriesT);
  if (!shape.hasBF16x2)
    fillZero(code, shape, shape.outHeads, queries.sums);
  softmax.begin(queries);
}

void ForwardEmitter::write(const QueryBlock &queries, Value bh,
                           Value out) const {
  softmax.finish(queries, bh, kernel.outputs[1]);
  scatter(code, shape, shape.outHeads, queries.sums, out, queries.first,
          [&](Value r) {
            return code.splat(code.load(code.getF32Type(), queries.factors, r));
          });
}

//===----------------------------------------------------------------------===//
// In f32
//===----------------------------------------------------------------------===//

/// Each block of keys meets the blocks of queries that see it.
void ForwardEmitter::emitBlocks(const Place &at, const Place &next,
                                Value out) const {
  const int64_t block = shape.block;
  Value zero = code.i64(0), blocks = code.i64(together);
  auto isEqual = [&](Value a, Value b) -> Value {
    return arith::CmpIOp::create(code, arith::CmpIPredicate::eq, a, b);
  };
  auto forBlocks = [&](Value begin,
                       function_ref<void(Value, const QueryBlock &)> body) {
    code.loop(begin, blocks, 1, [&](Value index) {
      Value first = code.add(at.query, code.mul(index, block));
      body(index, all.at(code, shape, first, index));
    });
  };
  forBlocks(zero,
            [&](Value, const QueryBlock &queries) { begin(at, queries); });
  Value lastQuery = code.add(at.query, (together - 1) * block);
  code.loop(zero, code.add(lastQuery, 1), block, [&](Value first) {
    gather(code, shape, shape.keyHeads, at.keys, first, keys);
    gather(code, shape, shape.valueHeads, at.values, first, values);
    Value isEnd = isEqual(first, lastQuery);
    Value nextFirst = code.select(isEnd, zero, code.add(first, block));
    Value begin = firstToSee(code, shape, at.query, first);
    forBlocks(begin, [&](Value index, const QueryBlock &queries) {
      Value ahead = code.sub(queries.first, first);
      // The last of them asks for keys, each for what it has next and writes.
      Value isLast = isEqual(index, code.i64(together - 1));
      Value isDiagonal = isEqual(ahead, zero);
      Value nextQuery = code.add(next.query, code.sub(queries.first, at.query));
      unit->scores(
          shape.queryHeads, keys, queries.queriesT, probs, ahead,
          {{shape.keyHeads, code.select(isEnd, next.keys, at.keys), nextFirst,
            isLast},
           {shape.valueHeads, code.select(isEnd, next.values, at.values),
            nextFirst, isLast}});
      softmax.add(queries, at.bh, first, ahead);
      unit->weighKeys(shape.outHeads, queries.sums, probs, values, ahead,
                      Old::Scaled, queries.factors,
                      {{shape.queryHeads, next.queries, nextQuery, isDiagonal},
                       {shape.outHeads, out, queries.first, isDiagonal, true}});
    });
  });
  forBlocks(zero, [&](Value, const QueryBlock &queries) {
    write(queries, at.bh, out);
  });
}

//===----------------------------------------------------------------------===//
// In pairs of bf16
//===----------------------------------------------------------------------===//

/// A block of queries meets those of the keys that it sees.
void ForwardEmitter::emitAllPairs(const Place &at, const Place &next,
                                  Value out) const {
  Value zero = code.i64(0), query = at.query;
  Value first = code.add(query, code.mul(zero, shape.block));
  QueryBlock queries = all.at(code, shape, first, zero);
  begin(at, queries);
  code.loop(zero, code.i64(shape.block), 2,
            [&](Value row) { gatherKeys(at, zero, row); });
  if (shape.blocks() > 1)
    code.loop(zero, query, shape.block, [&](Value first) {
      emitPairs(at, queries, first, /*ahead=*/{}, code.add(first, shape.block),
                {}, {});
    });
  emitPairs(at, queries, query, /*ahead=*/zero, /*next=*/{},
            {{shape.keyHeads, next.keys, next.query},
             {shape.valueHeads, next.values, next.query}},
            {{shape.queryHeads, next.queries, next.query},
             {shape.outHeads, out, query, {}, /*isWritten=*/true}});
  write(queries, at.bh, out);
}

/// Keys from `first` on, already on the stack as elements, and their values as
/// pairs in `valuesFrom(first)`. Next come those of the block from `next` on,
/// unless that is null.
void ForwardEmitter::emitPairs(const Place &at, const QueryBlock &queries,
                               Value first, Value ahead, Value next,
                               ArrayRef<Soon> soonKeys,
                               ArrayRef<Soon> soonQueries) const {
  Value isNew =
      arith::CmpIOp::create(code, arith::CmpIPredicate::eq, first, code.i64(0));
  unit->scores(shape.queryHeads, keys, queries.queriesT, probs, ahead,
               soonKeys);
  // Elements have been used. Exponentials leave time to copy the next ones.
  auto copy = [&](Value row) { gatherKeys(at, next, row); };
  if (next)
    softmax.add(queries, at.bh, first, ahead, copy);
  else
    softmax.add(queries, at.bh, first, ahead);
  unit->weighKeys(shape.outHeads, queries.sums, probs, valuesFrom(first), ahead,
                  Old::Sums, /*factors=*/{}, soonQueries, isNew);
}

/// Values are in two arrays in turn: the next ones come before those that are
/// there have been used.
Value ForwardEmitter::valuesFrom(Value first) const {
  Value half = arith::AndIOp::create(code, first, code.i64(shape.block));
  Value isOther =
      arith::CmpIOp::create(code, arith::CmpIPredicate::ne, half, code.i64(0));
  return code.select(isOther, otherValues, values);
}

/// Of the block of keys from `first` on, rows `row` and `row + 1`.
void ForwardEmitter::gatherKeys(const Place &at, Value first, Value row) const {
  gatherTwo(code, shape, shape.keyHeads, at.keys, first, row, keys,
            /*rows=*/{});
  gatherTwo(code, shape, shape.valueHeads, at.values, first, row,
            /*elements=*/{}, valuesFrom(first));
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
