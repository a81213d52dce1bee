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
      : code(code), op(op), kernel(kernel), tile(code, op, kernel),
        keyElements(tile.newElements()), valueElements(tile.newElements()),
        queryElements(tile.newElements()), doutElements(tile.newElements()),
        queriesT(tile.newElements()), doutT(tile.newElements()),
        keyRows(tile.newRowsOf(keyElements)),
        queryRows(tile.newRowsOf(queryElements)),
        doutRows(tile.newRowsOf(doutElements)), dqueries(tile.newSums()),
        dkeys(newSums()), dvalues(newSums()), probs(tile.newTile()),
        dscores(tile.newTile()),
        dscoresOfKeys(tile.hasPairs ? tile.newTile() : dscores),
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
  Value keyHeadOf(Value bh) {
    return arith::DivSIOp::create(code, bh, code.i64(tile.group()));
  }
  int64_t keyHeads() const { return tile.batch * tile.keyHeads.count; }
  int64_t keyTasks() const { return keyHeads() * tile.blocks(); }
  int64_t queryTasks() const {
    return tile.batch * tile.queryHeads.count * tile.blocks();
  }

  // A task.
  void emitHead(Value head);
  void emitKeys(Value head, Value first);
  void emitQueries(Value head, Value first);

  /// The addresses of a head of keys, and of one of queries.
  struct KeyHead {
    Value key, value, dkey, dvalue;
  };
  struct QueryHead {
    Value bh, query, out, dout, dquery;
  };
  KeyHead keyHeadAt(Value head);
  QueryHead queryHeadAt(Value bh);
  /// Emits `body` for each head of queries that shares one of keys, in order.
  void forGroup(Value keyHead, function_ref<void(Value isFirst)> body);
  Value isEqual(Value a, Value b) {
    return arith::CmpIOp::create(code, arith::CmpIPredicate::eq, a, b);
  }
  void loadQueries(Value first);
  void makeQueryRows() {
    tile.makeRows(queryElements, queryRows);
    tile.makeRows(doutElements, doutRows);
  }
  void loadKeys(Value first);

  using AllSoon = SmallVector<AttentionTile::Soon>;
  /// What is loaded next, and written, while the products of a tile are
  /// computed: those that make it, and those of it.
  struct Next {
    AllSoon scores, dprobs, dvalues, dkeys;
  };
  /// The block of keys behind that from `first` on.
  AllSoon nextKeys(Value first) {
    Value next = code.add(first, tile.block);
    return {{tile.keyHeads, keys.key, next}, {tile.keyHeads, keys.value, next}};
  }
  Next nextOfHead(Value block, Value first, Value lastHead);
  /// probs and dscores of the block of queries from `query` on and that of
  /// keys from `first` on, for the products that make the gradients.
  enum class Gradients { OfKeys, OfQueries, All };
  void emitTile(Value query, Value first, Gradients of, const Next &next);
  void addToKeys(Value first, Value ahead, const Next &next);
  void addToQueries(Value ahead) {
    tile.makeRows(keyElements, keyRows);
    tile.weighKeys(dqueries, dscoresOfKeys, keyRows, ahead,
                   AttentionTile::Old::Sums);
  }
  void addToKeysInPlace(Value first, Value ahead, Value isFirstHead,
                        const Next &next);
  void writeKeys(Value first);
  void writeQueries(Value first);

  Code &code;
  rt::AttentionBackwardOp op;
  Kernel &kernel;
  AttentionTile tile;
  // On the stack.
  Value keyElements, valueElements, queryElements, doutElements, queriesT,
      doutT, keyRows, queryRows, doutRows, dqueries, dkeys, dvalues, probs,
      dscores, dscoresOfKeys, deltas, lse;
  RandomStream random;
  KeyHead keys;
  QueryHead queries;
};
static_assert(BackwardEmitter::stackBytes(256) <= kStackBytes &&
              BackwardEmitter::stackBytes(kMaxHeadWidth) <= kStackBytes &&
              BackwardEmitter::stackBytes(kMaxHeadWidth + 1) > kStackBytes);
} // namespace

//===----------------------------------------------------------------------===//
// Heads and blocks
//===----------------------------------------------------------------------===//

BackwardEmitter::KeyHead BackwardEmitter::keyHeadAt(Value head) {
  auto at = [&](Value base) {
    return tile.headAddress(tile.keyHeads, base, head);
  };
  return {at(addressOf(kernel, op, 1)), at(addressOf(kernel, op, 2)),
          at(kernel.outputs[1]), at(kernel.outputs[2])};
}

BackwardEmitter::QueryHead BackwardEmitter::queryHeadAt(Value bh) {
  auto at = [&](Value base) {
    return tile.headAddress(tile.queryHeads, base, bh);
  };
  return {bh, at(addressOf(kernel, op, 0)), at(addressOf(kernel, op, 3)),
          at(addressOf(kernel, op, 5)), at(kernel.outputs[0])};
}

void BackwardEmitter::forGroup(Value keyHead, function_ref<void(Value)> body) {
  Value first = code.mul(keyHead, tile.group());
  code.loop(first, code.add(first, tile.group()), 1, [&](Value head) {
    queries = queryHeadAt(head);
    body(isEqual(head, first));
  });
}

void BackwardEmitter::loadKeys(Value first) {
  tile.gather(tile.keyHeads, keys.key, first, keyElements);
  tile.gather(tile.keyHeads, keys.value, first, valueElements);
}

/// What a block of queries needs, whatever the keys. In f32 gradients of keys
/// are made with scaled queries, so that of a score is never scaled itself.
void BackwardEmitter::loadQueries(Value first) {
  tile.gatherQueries(queries.query, first, queryElements);
  tile.gather(tile.queryHeads, queries.dout, first, doutElements);
  tile.transposeElements(queryElements, queriesT);
  tile.transposeElements(doutElements, doutT);
  Value zero = code.i64(0);
  code.loop(zero, code.i64(tile.block), 1, [&](Value r) {
    code.store(tile.dot(queries.dout, queries.out, code.add(first, r)), deltas,
               r);
  });
  // Queries that do not exist see nothing: exp(score - infinity).
  Value infinite = code.splatF32(std::numeric_limits<double>::infinity());
  code.loop(zero, code.i64(tile.block), kLanes, [&](Value lane) {
    Value position = code.add(first, lane), exists = tile.exist(position);
    Value numbers = code.load(
        code.lanesOf(code.getF32Type()), addressOf(kernel, op, 4),
        code.add(code.mul(queries.bh, tile.length), position), exists);
    code.store(code.select(exists, numbers, infinite), lse, lane);
  });
}

/// In a walk over heads up to `lastHead`: the next block of keys or, from the
/// diagonal, of queries, and what is written then.
BackwardEmitter::Next BackwardEmitter::nextOfHead(Value block, Value first,
                                                  Value lastHead) {
  Value zero = code.i64(0);
  Value isDiagonal = isEqual(block, first);
  Value isEnd = isEqual(block, code.i64((tile.blocks() - 1) * tile.block));
  Value nextBlock = code.select(isEnd, zero, code.add(block, tile.block));
  QueryHead nextQueries = queryHeadAt(code.select(
      isEnd, code.min(code.add(queries.bh, 1), lastHead), queries.bh));
  KeyHead nextKeys = keyHeadAt(keyHeadOf(nextQueries.bh));
  Value nextFirst = code.select(isDiagonal, zero, code.add(first, tile.block));
  auto keysAt = [&](Value KeyHead::*rows) -> AttentionTile::Soon {
    return {tile.keyHeads, code.select(isDiagonal, nextKeys.*rows, keys.*rows),
            nextFirst};
  };
  Next next;
  next.scores = {keysAt(&KeyHead::key), keysAt(&KeyHead::value)};
  next.dprobs = {{tile.queryHeads, nextQueries.out, nextBlock, isDiagonal},
                 {tile.queryHeads, queries.dquery, block, isDiagonal, true}};
  next.dvalues = {{tile.queryHeads, nextQueries.query, nextBlock, isDiagonal},
                  {tile.queryHeads, nextQueries.dout, nextBlock, isDiagonal}};
  if (hasAllSums())
    next.dkeys = {{tile.keyHeads, keys.dkey, first, isDiagonal, true},
                  {tile.keyHeads, keys.dvalue, first, isDiagonal, true}};
  else
    next.dkeys = {keysAt(&KeyHead::dkey), keysAt(&KeyHead::dvalue)};
  return next;
}

void BackwardEmitter::writeQueries(Value first) {
  Value scale = code.splatF32(tile.scale);
  tile.scatter(tile.queryHeads, dqueries, queries.dquery, first,
               [&](Value) { return scale; });
}

//===----------------------------------------------------------------------===//
// A tile
//===----------------------------------------------------------------------===//

/// probs[j] = p * m and dscores[j] = p * (m * dot(dout, value) - delta), zero
/// where the query does not see the key.
void BackwardEmitter::emitTile(Value queryBlock, Value first, Gradients of,
                               const Next &next) {
  Value ahead = code.sub(queryBlock, first);
  tile.scores(keyElements, queriesT, probs, ahead, next.scores);
  tile.scores(valueElements, doutT, dscores, ahead, next.dprobs);
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
    Value total = tile.load(lse, lane), delta = tile.load(deltas, lane);
    Value zero = code.splatF32(0);
    tile.forKeys(
        random, tile.elements(queries.bh, code.add(queryBlock, lane)), first,
        count, {}, [&](Value j, ArrayRef<Value> factors, ValueRange) {
          SmallVector<Value> weights, gradients;
          for (auto [k, factor] : llvm::enumerate(factors)) {
            Value key = code.add(j, k), at = tile.at(key, lane);
            Value p = code.exp(tile.scaledLess(tile.load(probs, at), total));
            p = code.select(tile.sees(lane, ahead, key), p, zero);
            Value dp = code.mul(tile.load(dscores, at), factor);
            weights.push_back(tile.weight(p, factor));
            gradients.push_back(code.mul(p, code.sub(dp, delta)));
          }
          store(j, lane, weights, gradients);
          return SmallVector<Value>();
        });
    tile.forUnseen(count, [&](Value key) {
      store(key, lane, {zero, zero}, {zero, zero});
    });
  });
}

void BackwardEmitter::addToKeys(Value first, Value ahead, const Next &next) {
  tile.weighQueries(sumsOf(dvalues, first), probs, doutRows, ahead,
                    next.dvalues);
  tile.weighQueries(sumsOf(dkeys, first), dscores, queryRows, ahead,
                    next.dkeys);
}

/// Adds to sums that lie where they belong. Nothing is there yet where the
/// first head sees a block of keys for the first time.
void BackwardEmitter::addToKeysInPlace(Value first, Value ahead,
                                       Value isFirstHead, const Next &next) {
  Value isNew =
      arith::AndIOp::create(code, isFirstHead, isEqual(ahead, code.i64(0)));
  code.when(
      isNew, [&] { tile.fillZero(dkeys), tile.fillZero(dvalues); },
      [&] {
        tile.gatherSums(tile.keyHeads, keys.dkey, first, dkeys);
        tile.gatherSums(tile.keyHeads, keys.dvalue, first, dvalues);
      });
  addToKeys(first, ahead, next);
  writeKeys(first);
}

void BackwardEmitter::writeKeys(Value first) {
  auto write = [&](Value sums, Value gradients, float factor) {
    Value times = code.splatF32(factor);
    tile.scatter(tile.keyHeads, sumsOf(sums, first), gradients, first,
                 [&](Value) { return times; });
  };
  write(dkeys, keys.dkey, tile.scoreScale());
  write(dvalues, keys.dvalue, tile.weightScale());
}

//===----------------------------------------------------------------------===//
// Tasks
//===----------------------------------------------------------------------===//

void BackwardEmitter::emitHead(Value head) {
  keys = keyHeadAt(head);
  auto forBlocks = [&](Value end, function_ref<void(Value)> body) {
    code.loop(code.i64(0), end, tile.block, body);
  };
  Value all = code.i64(tile.length);
  Value lastHead = code.sub(code.mul(kernel.end, tile.group()), code.i64(1));
  if (hasAllSums())
    forBlocks(all, [&](Value first) {
      tile.fillZero(sumsOf(dkeys, first));
      tile.fillZero(sumsOf(dvalues, first));
    });
  forGroup(head, [&](Value isFirst) {
    forBlocks(all, [&](Value block) {
      loadQueries(block);
      makeQueryRows();
      tile.fillZero(dqueries);
      forBlocks(code.add(block, 1), [&](Value first) {
        Next next = nextOfHead(block, first, lastHead);
        loadKeys(first);
        emitTile(block, first, Gradients::All, next);
        Value ahead = code.sub(block, first);
        if (hasAllSums())
          addToKeys(first, ahead, next);
        else
          addToKeysInPlace(first, ahead, isFirst, next);
        addToQueries(ahead);
      });
      writeQueries(block);
    });
  });
  if (hasAllSums())
    forBlocks(all, [&](Value first) { writeKeys(first); });
}

void BackwardEmitter::emitKeys(Value head, Value first) {
  keys = keyHeadAt(head);
  loadKeys(first);
  tile.fillZero(dkeys), tile.fillZero(dvalues);
  forGroup(head, [&](Value) {
    code.loop(first, code.i64(tile.length), tile.block, [&](Value block) {
      loadQueries(block);
      makeQueryRows();
      Value after = code.add(block, tile.block);
      Next next;
      next.dprobs = {{tile.queryHeads, queries.query, after},
                     {tile.queryHeads, queries.dout, after}};
      next.dvalues = {{tile.queryHeads, queries.out, after}};
      emitTile(block, first, Gradients::OfKeys, next);
      addToKeys(first, code.sub(block, first), next);
    });
  });
  writeKeys(first);
}

void BackwardEmitter::emitQueries(Value head, Value block) {
  keys = keyHeadAt(keyHeadOf(head));
  queries = queryHeadAt(head);
  loadQueries(block);
  tile.fillZero(dqueries);
  code.loop(code.i64(0), code.add(block, 1), tile.block, [&](Value first) {
    loadKeys(first);
    emitTile(block, first, Gradients::OfQueries, {nextKeys(first), {}, {}, {}});
    addToQueries(code.sub(block, first));
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
