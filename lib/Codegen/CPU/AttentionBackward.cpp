//===- AttentionBackward.cpp - Causal attention, backward -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A task is a head of keys. Head by head of those that share it, it walks the
// blocks of queries and for each the blocks of keys that they see. The gradient
// of the queries is summed on the stack, and so are those of keys and values of
// a short sequence. Those of a long one are summed where they belong if they
// are f32. One task, so nothing is atomic and the order is always the same.
//
// In bf16, sums must not be rounded on the way. So of a long sequence a task is
// either a block of keys, which walks the queries that see it, or a block of
// queries, which walks the keys that it sees: two products more in return for
// sums that stay on the stack, in the same order.
//
// Source: Dao, FlashAttention-2, arXiv:2307.08691, section 3.2.
//
//===----------------------------------------------------------------------===//

#include "AttentionTile.h"
#include "RTKernels.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <limits>

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

/// What the sums of a sequence may take, so that they stay in a second-level
/// cache. Longer sequences make tasks enough by blocks.
static constexpr int64_t kSumsBytes = 512 << 10;

namespace {
/// Emits one task.
class BackwardEmitter {
public:
  BackwardEmitter(Code &code, rt::AttentionBackwardOp op, Kernel &kernel)
      : code(code), op(op), kernel(kernel), tile(code, op, kernel.wide),
        keyRows(tile.newRows()), valueRows(tile.newRows()),
        queryRows(tile.newRows()), doutRows(tile.newRows()),
        queriesT(tile.newRows()), doutT(tile.newRows()),
        dqueryRows(tile.newRows()), dkeyRows(newSums()), dvalueRows(newSums()),
        probs(tile.newTile()), dscores(tile.newTile()),
        deltas(tile.newNumbers()), lse(tile.newNumbers()),
        random(RandomStream::load(code, kernel, addressOf(kernel, op, 6),
                                  op.getStream())) {}

  /// The bytes of the arrays on the stack for heads of `width`, with the sums
  /// of so many rows of keys.
  static constexpr int64_t stackBytes(int64_t width, int64_t rows) {
    int64_t padded = (width + kLanes - 1) / kLanes * kLanes;
    int64_t block = blockOf(width);
    return 4 *
           ((7 * block + 2 * rows) * padded + 2 * block * block + 2 * block);
  }
  static constexpr int64_t stackBytes(int64_t width) {
    return stackBytes(width, blockOf(width));
  }

  int64_t tasks() const {
    return isWhole() ? keyHeads() : keyTasks() + queryTasks();
  }
  void emit(Value task);

private:
  /// Rows of keys whose gradients are summed on the stack: those of a sequence
  /// if they fit, otherwise those of a block.
  int64_t rowsOfSums() const {
    int64_t all = tile.blocks() * tile.block;
    bool fit = 2 * 4 * all * tile.padded <= kSumsBytes &&
               stackBytes(tile.width, all) <= kStackBytes;
    return fit ? all : tile.block;
  }
  bool hasAllSums() const { return rowsOfSums() >= tile.length; }
  Value newSums() { return code.scratch(rowsOfSums() * tile.padded); }
  /// Those of the block from `first` on.
  Value sumsOf(Value sums, Value first) {
    return hasAllSums() ? code.address(sums, code.getF32Type(),
                                       code.mul(first, tile.padded))
                        : sums;
  }
  bool isWhole() const { return hasAllSums() || tile.element.isF32(); }
  int64_t keyHeads() const { return tile.batch * tile.keyHeads.count; }
  int64_t keyTasks() const { return keyHeads() * tile.blocks(); }
  int64_t queryTasks() const {
    return tile.batch * tile.queryHeads.count * tile.blocks();
  }

  // A task.
  void emitHead(Value head);
  void emitKeys(Value head, Value first);
  void emitQueries(Value head, Value first);

  void enterKeyHead(Value head);
  void enterQueryHead(Value head);
  /// Emits `body` for each head of queries that shares one of keys, in order.
  void forGroup(Value keyHead, function_ref<void(Value isFirst)> body);
  void loadQueries(Value first);
  void loadKeys(Value first);
  /// probs and dscores of the block of queries from `query` on and that of
  /// keys from `first` on.
  void emitTile(Value query, Value first);
  void addToKeys(Value first, Value ahead);
  void addToKeysInPlace(Value first, Value ahead, Value isFirstHead);
  void writeKeys(Value first);
  void writeQueries(Value first);

  Code &code;
  rt::AttentionBackwardOp op;
  Kernel &kernel;
  AttentionTile tile;
  // On the stack.
  Value keyRows, valueRows, queryRows, doutRows, queriesT, doutT, dqueryRows,
      dkeyRows, dvalueRows, probs, dscores, deltas, lse;
  RandomStream random;
  Value key, value, dkey, dvalue;     ///< of a head of keys
  Value bh, query, out, dout, dquery; ///< of one of queries
};
static_assert(BackwardEmitter::stackBytes(256) <= kStackBytes &&
              BackwardEmitter::stackBytes(kMaxHeadWidth) <= kStackBytes &&
              BackwardEmitter::stackBytes(kMaxHeadWidth + 1) > kStackBytes);
} // namespace

//===----------------------------------------------------------------------===//
// Heads and blocks
//===----------------------------------------------------------------------===//

void BackwardEmitter::enterKeyHead(Value head) {
  auto at = [&](Value base) {
    return tile.headAddress(tile.keyHeads, base, head);
  };
  key = at(addressOf(kernel, op, 1)), value = at(addressOf(kernel, op, 2));
  dkey = at(kernel.outputs[1]), dvalue = at(kernel.outputs[2]);
}

void BackwardEmitter::enterQueryHead(Value head) {
  auto at = [&](Value base) {
    return tile.headAddress(tile.queryHeads, base, head);
  };
  bh = head;
  query = at(addressOf(kernel, op, 0)), out = at(addressOf(kernel, op, 3));
  dout = at(addressOf(kernel, op, 5)), dquery = at(kernel.outputs[0]);
}

void BackwardEmitter::forGroup(Value keyHead, function_ref<void(Value)> body) {
  Value first = code.mul(keyHead, tile.group());
  code.loop(first, code.add(first, tile.group()), 1, [&](Value head) {
    enterQueryHead(head);
    body(arith::CmpIOp::create(code, arith::CmpIPredicate::eq, head, first));
  });
}

void BackwardEmitter::loadKeys(Value first) {
  tile.gather(tile.keyHeads, key, first, keyRows);
  tile.gather(tile.keyHeads, value, first, valueRows);
}

/// What a block of queries needs, whatever the keys. Gradients of keys are made
/// with scaled queries, so that of a score is never scaled itself.
void BackwardEmitter::loadQueries(Value first) {
  tile.gather(tile.queryHeads, query, first, queryRows, tile.scale);
  tile.gather(tile.queryHeads, dout, first, doutRows);
  tile.transpose(queryRows, queriesT);
  tile.transpose(doutRows, doutT);
  // deltas[r] = dot(dout[r], out[r]); keys come later.
  tile.gather(tile.queryHeads, out, first, valueRows);
  Value zero = code.i64(0);
  code.loop(zero, code.i64(tile.block), 1, [&](Value r) {
    Value sum = code.loop(zero, code.i64(tile.padded), kLanes, code.splatF32(0),
                          [&](Value c, ValueRange old) {
                            Value at = code.add(code.mul(r, tile.padded), c);
                            return SmallVector<Value>{
                                code.fma(tile.load(doutRows, at),
                                         tile.load(valueRows, at), old[0])};
                          })[0];
    code.store(code.sum(sum), deltas, r);
  });
  // Queries that do not exist see nothing: exp(score - infinity).
  Value infinite = code.splatF32(std::numeric_limits<double>::infinity());
  code.loop(zero, code.i64(tile.block), kLanes, [&](Value lane) {
    Value position = code.add(first, lane), exists = tile.exist(position);
    Value numbers =
        code.load(code.lanesOf(code.getF32Type()), addressOf(kernel, op, 4),
                  code.add(code.mul(bh, tile.length), position), exists);
    code.store(code.select(exists, numbers, infinite), lse, lane);
  });
}

void BackwardEmitter::writeQueries(Value first) {
  Value scale = code.splatF32(tile.scale);
  code.loop(
      code.i64(0), code.i64(tile.block * tile.padded), kLanes, [&](Value i) {
        code.store(code.mul(tile.load(dqueryRows, i), scale), dqueryRows, i);
      });
  tile.scatter(tile.queryHeads, dqueryRows, dquery, first);
}

//===----------------------------------------------------------------------===//
// A tile
//===----------------------------------------------------------------------===//

/// probs[j] = p * m and dscores[j] = p * (m * dot(dout, value) - delta), zero
/// where the query does not see the key.
void BackwardEmitter::emitTile(Value queryBlock, Value first) {
  Value ahead = code.sub(queryBlock, first);
  tile.scores(keyRows, queriesT, probs, ahead,
              tile.nextKeys(key, value, first));
  tile.scores(valueRows, doutT, dscores, ahead);
  tile.forQueries(ahead, [&](Value lane, Value count) {
    Value total = tile.load(lse, lane), delta = tile.load(deltas, lane);
    Value zero = code.splatF32(0);
    tile.forKeys(random, tile.elements(bh, code.add(queryBlock, lane)), first,
                 count, {}, [&](Value j, Value factors, ValueRange) {
                   Value at = tile.at(j, lane);
                   Value p = code.exp(code.sub(tile.load(probs, at), total));
                   p = code.select(tile.sees(lane, ahead, j), p, zero);
                   Value dp = code.mul(tile.load(dscores, at), factors);
                   code.store(code.mul(p, factors), probs, at);
                   code.store(code.mul(p, code.sub(dp, delta)), dscores, at);
                   return SmallVector<Value>();
                 });
  });
}

void BackwardEmitter::addToKeys(Value first, Value ahead) {
  tile.weighQueries(sumsOf(dvalueRows, first), probs, doutRows, ahead);
  tile.weighQueries(sumsOf(dkeyRows, first), dscores, queryRows, ahead);
}

/// Adds to sums that lie where they belong. Nothing is there yet where the
/// first head sees a block of keys for the first time.
void BackwardEmitter::addToKeysInPlace(Value first, Value ahead,
                                       Value isFirstHead) {
  Value isNew = arith::AndIOp::create(
      code, isFirstHead,
      arith::CmpIOp::create(code, arith::CmpIPredicate::eq, ahead,
                            code.i64(0)));
  code.when(
      isNew, [&] { tile.fillZero(dkeyRows), tile.fillZero(dvalueRows); },
      [&] {
        tile.gather(tile.keyHeads, dkey, first, dkeyRows);
        tile.gather(tile.keyHeads, dvalue, first, dvalueRows);
      });
  addToKeys(first, ahead);
  writeKeys(first);
}

void BackwardEmitter::writeKeys(Value first) {
  tile.scatter(tile.keyHeads, sumsOf(dkeyRows, first), dkey, first);
  tile.scatter(tile.keyHeads, sumsOf(dvalueRows, first), dvalue, first);
}

//===----------------------------------------------------------------------===//
// Tasks
//===----------------------------------------------------------------------===//

void BackwardEmitter::emitHead(Value head) {
  enterKeyHead(head);
  auto forBlocks = [&](Value end, function_ref<void(Value)> body) {
    code.loop(code.i64(0), end, tile.block, body);
  };
  Value all = code.i64(tile.length);
  if (hasAllSums())
    forBlocks(all, [&](Value first) {
      tile.fillZero(sumsOf(dkeyRows, first));
      tile.fillZero(sumsOf(dvalueRows, first));
    });
  forGroup(head, [&](Value isFirst) {
    forBlocks(all, [&](Value block) {
      loadQueries(block);
      tile.fillZero(dqueryRows);
      forBlocks(code.add(block, 1), [&](Value first) {
        loadKeys(first);
        emitTile(block, first);
        Value ahead = code.sub(block, first);
        if (hasAllSums())
          addToKeys(first, ahead);
        else
          addToKeysInPlace(first, ahead, isFirst);
        tile.weighKeys(dqueryRows, dscores, keyRows, ahead,
                       AttentionTile::Old::Sums);
      });
      writeQueries(block);
    });
  });
  if (hasAllSums())
    forBlocks(all, [&](Value first) { writeKeys(first); });
}

void BackwardEmitter::emitKeys(Value head, Value first) {
  enterKeyHead(head);
  tile.fillZero(dkeyRows), tile.fillZero(dvalueRows);
  forGroup(head, [&](Value) {
    code.loop(first, code.i64(tile.length), tile.block, [&](Value block) {
      loadQueries(block);
      loadKeys(first);
      emitTile(block, first);
      addToKeys(first, code.sub(block, first));
    });
  });
  writeKeys(first);
}

void BackwardEmitter::emitQueries(Value head, Value block) {
  enterKeyHead(arith::DivSIOp::create(code, head, code.i64(tile.group())));
  enterQueryHead(head);
  loadQueries(block);
  tile.fillZero(dqueryRows);
  code.loop(code.i64(0), code.add(block, 1), tile.block, [&](Value first) {
    loadKeys(first);
    emitTile(block, first);
    tile.weighKeys(dqueryRows, dscores, keyRows, code.sub(block, first),
                   AttentionTile::Old::Sums);
  });
  writeQueries(block);
}

void BackwardEmitter::emit(Value task) {
  if (isWhole())
    return emitHead(task);
  auto split = [&](Value number, function_ref<void(Value, Value)> emit) {
    Value blocks = code.i64(tile.blocks());
    Value block = arith::RemSIOp::create(code, number, blocks);
    emit(arith::DivSIOp::create(code, number, blocks),
         code.mul(block, tile.block));
  };
  Value isOfKeys = arith::CmpIOp::create(code, arith::CmpIPredicate::slt, task,
                                         code.i64(keyTasks()));
  code.when(
      isOfKeys,
      [&] {
        split(task, [&](Value head, Value first) { emitKeys(head, first); });
      },
      [&] {
        split(code.sub(task, code.i64(keyTasks())),
              [&](Value head, Value block) { emitQueries(head, block); });
      });
}

LogicalResult codegen::emitAttentionBackward(Code &code,
                                             rt::AttentionBackwardOp op,
                                             Kernel &kernel) {
  if (failed(verifyHeadWidth(op, cast<ShapedType>(op.getQuery().getType()),
                             op.getHeads())))
    return failure();
  BackwardEmitter backward(code, op, kernel);
  kernel.function->setAttr(rt::kTasksAttr,
                           code.getI64IntegerAttr(backward.tasks()));
  kernel.tasks(code, [&](Value task) { backward.emit(task); });
  return success();
}
