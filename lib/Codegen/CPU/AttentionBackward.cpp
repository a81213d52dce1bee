//===- AttentionBackward.cpp - Causal attention, backward -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionBackward.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;
using namespace reprise::codegen::attention;

namespace {
/// Emits one task.
class BackwardEmitter {
public:
  BackwardEmitter(Code &code, rt::AttentionBackwardOp op, Kernel &kernel)
      : code(code), kernel(kernel), shape(op, kernel), plan(shape),
        buffers(code, shape, op, kernel),
        unit(MatrixUnit::create(code, shape, kernel)),
        keyRows(KeyRows::create(code, shape)),
        all(QueryRows::create(code, shape, plan.together)),
        sums(KeySums::create(code, shape, plan)),
        tile(code, shape, plan, *unit),
        stream{loadRank(code, op, kernel),
               RandomStream::load(code, kernel, addressOf(kernel, op, 6),
                                  op.getStream())} {}

  int64_t tasks() const { return plan.tasks; }
  void emit(Value task) const;

private:
  void emitHead(Value head) const;
  void emitBlocks(const KeyHead &keys, const QueryHead &queries, Value query,
                  Value lastHead, Value isFirstHead) const;
  void emitKeys(Value head, Value first) const;
  void emitQueries(Value head, Value block) const;
  void walkKeys(const KeyHead &keys, const QueryHead &queries, Value query,
                Gradients of, const Next &next) const;
  void walkQueries(const KeyHead &keys, const QueryHead &queries,
                   Value first) const;
  void
  forGroup(Value keyHead,
           function_ref<void(const QueryHead &, Value isFirst)> body) const;
  Next nextOfHead(const KeyHead &keys, const QueryHead &queries, Value query,
                  Value block, Value first, Value lastHead) const;

  Code &code;
  Kernel &kernel;
  const AttentionShape shape;
  const BackwardPlan plan;
  const BackwardBuffers buffers;
  const std::unique_ptr<MatrixUnit> unit;
  // On the stack.
  const KeyRows keyRows;
  const QueryRows all; ///< of the blocks that go over keys together
  const KeySums sums;
  const GradientTile tile;
  const ScoreStream stream;
};
} // namespace

static Value isEqual(Code &code, Value a, Value b) {
  return arith::CmpIOp::create(code, arith::CmpIPredicate::eq, a, b);
}

/// Emits `body` for each head of queries that shares one of keys, in order.
void BackwardEmitter::forGroup(
    Value keyHead, function_ref<void(const QueryHead &, Value)> body) const {
  Value first = code.mul(keyHead, shape.group());
  code.loop(first, code.add(first, shape.group()), 1, [&](Value head) {
    QueryHead queries = buffers.queriesOf(head);
    body(queries, isEqual(code, head, first));
  });
}

//===----------------------------------------------------------------------===//
// A task for a head of keys
//===----------------------------------------------------------------------===//

/// In a walk over heads up to `lastHead`, for a block of queries of those that
/// begin with `query`: the next block of keys or, from the last diagonal, of
/// queries, and what is written then.
Next BackwardEmitter::nextOfHead(const KeyHead &keys, const QueryHead &queries,
                                 Value query, Value block, Value first,
                                 Value lastHead) const {
  Value zero = code.i64(0);
  const int64_t size = plan.together * shape.block;
  Value isDiagonal = isEqual(code, block, first);
  Value lastBlock = code.add(query, size - shape.block);
  Value isLastKey = isEqual(code, first, lastBlock);
  Value isEnd =
      isEqual(code, query, code.i64(shape.blocks() * shape.block - size));
  Value nextBlock = code.add(code.select(isEnd, zero, code.add(query, size)),
                             code.sub(block, query));
  QueryHead nextQueries = buffers.queriesOf(code.select(
      isEnd, code.min(code.add(queries.bh, 1), lastHead), queries.bh));
  KeyHead nextKeys = buffers.keysOf(
      arith::DivSIOp::create(code, nextQueries.bh, code.i64(shape.group())));
  Value nextFirst = code.select(isLastKey, shape.hasBF16x2 ? nextBlock : zero,
                                code.add(first, shape.block));
  // The last of these blocks asks for keys.
  Value asks = plan.together > 1 ? isEqual(code, block, lastBlock) : Value();
  auto keysAt = [&](const Heads &heads, Value KeyHead::*rows) -> Soon {
    return {heads, code.select(isLastKey, nextKeys.*rows, keys.*rows),
            nextFirst, asks};
  };
  Next next;
  next.scores = {keysAt(shape.keyHeads, &KeyHead::key),
                 keysAt(shape.valueHeads, &KeyHead::value)};
  next.dprobs = {{shape.outHeads, nextQueries.out, nextBlock, isDiagonal},
                 {shape.queryHeads, queries.dquery, block, isDiagonal, true}};
  next.dvalues = {{shape.queryHeads, nextQueries.query, nextBlock, isDiagonal},
                  {shape.outHeads, nextQueries.dout, nextBlock, isDiagonal}};
  if (plan.hasAllSums)
    next.dkeys = {{shape.keyHeads, keys.dkey, first, isDiagonal, true},
                  {shape.valueHeads, keys.dvalue, first, isDiagonal, true}};
  else
    next.dkeys = {keysAt(shape.keyHeads, &KeyHead::dkey),
                  keysAt(shape.valueHeads, &KeyHead::dvalue)};
  return next;
}

void BackwardEmitter::emitHead(Value head) const {
  KeyHead keys = buffers.keysOf(head);
  auto forBlocks = [&](Value end, function_ref<void(Value)> body) {
    code.loop(code.i64(0), end, shape.block, body);
  };
  Value length = code.i64(shape.length);
  Value lastHead = code.sub(code.mul(kernel.end, shape.group()), code.i64(1));
  if (plan.hasAllSums && !plan.beginsOnDiagonal)
    forBlocks(length, [&](Value first) { sums.fill(code, shape, first); });
  forGroup(head, [&](const QueryHead &queries, Value isFirst) {
    if (!shape.hasBF16x2)
      return code.loop(code.i64(0), length, plan.together * shape.block,
                       [&](Value query) {
                         emitBlocks(keys, queries, query, lastHead, isFirst);
                       });
    forBlocks(length, [&](Value block) {
      all.load(code, shape, queries, buffers.lse(), block);
      all.makeRows(code, shape);
      walkKeys(keys, queries, block, Gradients::All,
               nextOfHead(keys, queries, block, block, block, lastHead));
      all.write(code, shape, queries, block);
    });
  });
  if (plan.hasAllSums)
    forBlocks(length,
              [&](Value first) { sums.write(code, shape, keys, first); });
}

/// The blocks of queries from `query` on that go over keys together, in f32.
void BackwardEmitter::emitBlocks(const KeyHead &keys, const QueryHead &queries,
                                 Value query, Value lastHead,
                                 Value isFirstHead) const {
  Value zero = code.i64(0);
  auto forBlocks = [&](Value begin,
                       function_ref<void(const QueryRows &, Value)> body) {
    code.loop(begin, code.i64(plan.together), 1, [&](Value index) {
      QueryRows one = all.at(code, shape, index);
      body(one, code.add(query, code.mul(index, shape.block)));
    });
  };
  forBlocks(zero, [&](const QueryRows &one, Value block) {
    one.load(code, shape, queries, buffers.lse(), block);
    fillZero(code, shape, shape.queryHeads, one.dqueries);
  });
  Value last = code.add(query, (plan.together - 1) * shape.block);
  code.loop(zero, code.add(last, 1), shape.block, [&](Value first) {
    keyRows.load(code, shape, keys, first);
    // No queries before these have seen keys from the first of them on.
    if (!plan.hasAllSums)
      sums.load(code, shape, keys, first,
                arith::AndIOp::create(
                    code, isFirstHead,
                    arith::CmpIOp::create(code, arith::CmpIPredicate::sge,
                                          first, query)));
    forBlocks(firstToSee(code, shape, query, first), [&](const QueryRows &one,
                                                         Value block) {
      Next next = nextOfHead(keys, queries, query, block, first, lastHead);
      Value ahead = code.sub(block, first);
      TilePlace at = {queries.bh, block, first, ahead};
      tile.emit(stream, at, one, keyRows, Gradients::All, next);
      tile.addToKeys(sums, one, at, next);
      tile.addToQueries(one, keyRows, ahead);
    });
    if (!plan.hasAllSums)
      sums.write(code, shape, keys, first);
  });
  forBlocks(zero, [&](const QueryRows &one, Value block) {
    one.write(code, shape, queries, block);
  });
}

/// The blocks of keys that the block of queries from `query` on sees, if
/// GEMMs are of pairs: `next` comes with the last of them.
void BackwardEmitter::walkKeys(const KeyHead &keys, const QueryHead &queries,
                               Value query, Gradients of,
                               const Next &next) const {
  auto emit = [&](Value first, Value ahead, const Next &next,
                  function_ref<void(Value)> meanwhile) {
    makeRows(code, shape, shape.keyHeads, keyRows.keyElements, keyRows.keyRows);
    TilePlace at = {queries.bh, query, first, ahead};
    tile.emit(stream, at, all, keyRows, of, next, meanwhile);
    if (of == Gradients::All)
      tile.addToKeys(sums, all, at, next);
    tile.addToQueries(all, keyRows, ahead,
                      /*isNew=*/isEqual(code, first, code.i64(0)));
  };
  Value zero = code.i64(0);
  keyRows.load(code, shape, keys, zero);
  if (shape.blocks() > 1)
    code.loop(zero, query, shape.block, [&](Value first) {
      // Elements have been used by then.
      emit(first, /*ahead=*/{}, {}, [&](Value row) {
        keyRows.loadTwo(code, shape, keys, code.add(first, shape.block), row);
      });
    });
  emit(query, /*ahead=*/zero, next, {});
}

//===----------------------------------------------------------------------===//
// Tasks for blocks
//===----------------------------------------------------------------------===//

/// The blocks of queries that see the block of keys from `first` on.
void BackwardEmitter::walkQueries(const KeyHead &keys, const QueryHead &queries,
                                  Value first) const {
  auto add = [&](Value block, Value ahead, const Next &next,
                 function_ref<void(Value)> meanwhile) {
    all.makeRows(code, shape);
    TilePlace at = {queries.bh, block, first, ahead};
    tile.emit(stream, at, all, keyRows, Gradients::OfKeys, next, meanwhile);
    tile.addToKeys(sums, all, at, next);
  };
  Value length = code.i64(shape.length);
  if (!shape.hasBF16x2)
    return code.loop(first, length, shape.block, [&](Value block) {
      all.load(code, shape, queries, buffers.lse(), block);
      Value after = code.add(block, shape.block);
      Next next;
      next.dprobs = {{shape.queryHeads, queries.query, after},
                     {shape.outHeads, queries.dout, after}};
      next.dvalues = {{shape.outHeads, queries.out, after}};
      add(block, code.sub(block, first), next, {});
    });
  all.load(code, shape, queries, buffers.lse(), first);
  add(first, /*ahead=*/code.i64(0), {}, {});
  Value second = code.add(first, shape.block);
  gatherQueries(code, shape, queries.query, second, all.queryElements);
  gather(code, shape, shape.outHeads, queries.dout, second, all.doutElements);
  code.loop(second, length, shape.block, [&](Value block) {
    all.prepare(code, shape, queries, buffers.lse(), block);
    add(block, /*ahead=*/{}, {}, [&](Value row) {
      Value after = code.add(block, shape.block);
      gatherTwo(code, shape, shape.queryHeads, queries.query, after, row,
                all.queryElements, {});
      gatherTwo(code, shape, shape.outHeads, queries.dout, after, row,
                all.doutElements, {});
    });
  });
}

void BackwardEmitter::emitKeys(Value head, Value first) const {
  KeyHead keys = buffers.keysOf(head);
  keyRows.load(code, shape, keys, first);
  if (!plan.beginsOnDiagonal)
    sums.fill(code, shape, first);
  forGroup(head, [&](const QueryHead &queries, Value) {
    walkQueries(keys, queries, first);
  });
  sums.write(code, shape, keys, first);
}

void BackwardEmitter::emitQueries(Value head, Value block) const {
  KeyHead keys = buffers.keysOf(
      arith::DivSIOp::create(code, head, code.i64(shape.group())));
  QueryHead queries = buffers.queriesOf(head);
  all.load(code, shape, queries, buffers.lse(), block);
  if (shape.hasBF16x2) {
    walkKeys(keys, queries, block, Gradients::OfQueries, {});
  } else {
    fillZero(code, shape, shape.queryHeads, all.dqueries);
    code.loop(code.i64(0), code.add(block, 1), shape.block, [&](Value first) {
      keyRows.load(code, shape, keys, first);
      Value ahead = code.sub(block, first);
      Value after = code.add(first, shape.block);
      Next next;
      next.scores = {{shape.keyHeads, keys.key, after},
                     {shape.valueHeads, keys.value, after}};
      tile.emit(stream, {queries.bh, block, first, ahead}, all, keyRows,
                Gradients::OfQueries, next);
      tile.addToQueries(all, keyRows, ahead);
    });
  }
  all.write(code, shape, queries, block);
}

void BackwardEmitter::emit(Value task) const {
  if (plan.isWhole)
    return emitHead(task);
  auto split = [&](Value number, function_ref<void(Value, Value)> emit) {
    Value blocks = code.i64(shape.blocks());
    Value block = arith::RemSIOp::create(code, number, blocks);
    emit(arith::DivSIOp::create(code, number, blocks),
         code.mul(block, shape.block));
  };
  Value isOfKeys = arith::CmpIOp::create(code, arith::CmpIPredicate::slt, task,
                                         code.i64(plan.keyTasks));
  code.when(
      isOfKeys,
      [&] {
        split(task, [&](Value head, Value first) { emitKeys(head, first); });
      },
      [&] {
        split(code.sub(task, code.i64(plan.keyTasks)),
              [&](Value head, Value block) { emitQueries(head, block); });
      });
}

LogicalResult codegen::emitAttentionBackward(Code &code,
                                             rt::AttentionBackwardOp op,
                                             Kernel &kernel) {
  if (failed(verifyHeadWidth(op, op.getQuery(), op.getOut(), op.getHeads())))
    return failure();
  BackwardEmitter backward(code, op, kernel);
  kernel.function->setAttr(rt::kTasksAttr,
                           code.getI64IntegerAttr(backward.tasks()));
  kernel.tasks(code, [&](Value task) { backward.emit(task); });
  return success();
}
