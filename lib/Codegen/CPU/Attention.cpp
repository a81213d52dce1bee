//===- Attention.cpp - Causal attention, forward ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A task is 16 queries of a head. It walks the keys up to its last query in
// blocks, with the running maximum and sum of each query and its weighted sum
// of values, transposed, on the stack.
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
      : code(code), op(op), kernel(kernel), tile(code, op),
        queries(code.scratch(tile.width * kLanes)),
        scores(code.scratch(kKeys * kLanes)),
        sums(code.scratch(tile.width * kLanes)),
        random(RandomStream::load(code, kernel, addressOf(kernel, op, 3),
                                  op.getStream())) {}

  /// How many numbers the arrays on the stack have for heads of `width`.
  static constexpr int64_t scratch(int64_t width) {
    return (2 * width + kKeys) * kLanes;
  }

  int64_t blocksOfQueries() const {
    return llvm::divideCeil(tile.length, kLanes);
  }
  int64_t tasks() const {
    return tile.batch * tile.queryHeads.count * blocksOfQueries();
  }
  void emit(Value task);

private:
  SmallVector<Value> block(Value first, Value count, ValueRange state);
  void accumulate(Value first, Value count, Value decay);
  void write(Value max, Value total);

  Code &code;
  rt::AttentionOp op;
  Kernel &kernel;
  AttentionTile tile;
  Value queries, scores, sums; ///< on the stack
  RandomStream random;
  Value bh, query, head, keyHead, elements; ///< of the task
};
static_assert(ForwardEmitter::scratch(kMaxHeadWidth) * 4 <= kStackBytes);
} // namespace

void ForwardEmitter::emit(Value task) {
  Value blocks = code.i64(blocksOfQueries());
  bh = arith::DivSIOp::create(code, task, blocks);
  query = code.mul(arith::RemSIOp::create(code, task, blocks), kLanes);
  head = tile.headOffset(tile.queryHeads, bh);
  // Of entry and head of keys together, as of bh itself, since groups are
  // equal.
  keyHead = tile.group() == 1
                ? head
                : tile.headOffset(
                      tile.keyHeads,
                      arith::DivSIOp::create(code, bh, code.i64(tile.group())));
  elements = tile.elements(bh, query);
  Type f32 = code.getF32Type();
  tile.transpose(code.address(addressOf(kernel, op, 0), f32, head), query,
                 queries);
  code.loop(code.i64(0), code.i64(tile.width), 1,
            [&](Value d) { tile.storeRow(code.splatF32(0), sums, d); });

  Value end = code.min(code.add(query, kLanes), code.i64(tile.length));
  SmallVector<Value> state = code.loop(
      code.i64(0), end, kKeys, {code.splatF32(kLowest), code.splatF32(0)},
      [&](Value first, ValueRange state) {
        Value count = code.min(code.sub(end, first), code.i64(kKeys));
        return block(first, count, state);
      });
  write(state[0], state[1]);
}

/// One block of keys. State: the maximum and the sum of exponentials so far.
SmallVector<Value> ForwardEmitter::block(Value first, Value count,
                                         ValueRange state) {
  Value whole = tile.wholeGroups(count);
  Value keys =
      code.address(addressOf(kernel, op, 1), code.getF32Type(), keyHead);
  tile.products(keys, first, whole, queries, scores);

  Value scale = code.splatF32(tile.scale), lowest = code.splatF32(kLowest);
  Value max =
      code.loop(code.i64(0), whole, 1, state[0], [&](Value j, ValueRange old) {
        Value score = code.mul(tile.loadRow(scores, j), scale);
        score =
            code.select(tile.sees(query, code.add(first, j)), score, lowest);
        tile.storeRow(score, scores, j);
        return SmallVector<Value>{greater(code, old[0], score)};
      })[0];
  Value decay = code.exp(code.sub(state[0], max));
  Value total = code.mul(state[1], decay);
  total = code.loop(code.i64(0), whole, 1, total, [&](Value j, ValueRange old) {
    Value p = code.exp(code.sub(tile.loadRow(scores, j), max));
    tile.storeRow(p, scores, j);
    return SmallVector<Value>{code.add(old[0], p)};
  })[0];
  if (!tile.dropout.isNone())
    tile.forKeys(random, elements, first, whole, [&](Value j, Value factors) {
      tile.storeRow(code.mul(tile.loadRow(scores, j), factors), scores, j);
    });
  accumulate(first, count, decay);
  return {max, total};
}

/// sums = sums * decay + the block's values, weighted.
void ForwardEmitter::accumulate(Value first, Value count, Value decay) {
  Value values =
      code.address(addressOf(kernel, op, 2), code.getF32Type(), keyHead);
  auto columns = [&](Value column, int64_t number) {
    SmallVector<Value> state;
    for (int64_t k = 0; k < number; ++k)
      state.push_back(code.mul(tile.loadRow(sums, code.add(column, k)), decay));
    state = tile.weigh(values, first, count, scores, column, number, state);
    for (int64_t k = 0; k < number; ++k)
      tile.storeRow(state[k], sums, code.add(column, k));
  };
  int64_t rest = tile.width % kSideBySide, whole = tile.width - rest;
  if (whole > 0)
    code.loop(code.i64(0), code.i64(whole), kSideBySide,
              [&](Value column) { columns(column, kSideBySide); });
  if (rest > 0)
    columns(code.i64(whole), rest);
}

void ForwardEmitter::write(Value max, Value total) {
  Type f32 = code.getF32Type();
  Value lse = code.add(max, math::LogOp::create(code, total));
  Value exists = tile.sees(query, code.i64(0));
  Value at = code.add(code.mul(bh, tile.length), query);
  code.store(lse, kernel.outputs[1], at, exists);

  Value share = arith::DivFOp::create(code, code.splatF32(1), total);
  code.loop(code.i64(0), code.i64(tile.width), 1, [&](Value d) {
    tile.storeRow(code.mul(tile.loadRow(sums, d), share), sums, d);
  });
  Value out = code.address(kernel.outputs[0], f32, head);
  Value left = code.sub(code.i64(tile.length), query);
  code.loop(code.i64(0), code.min(left, code.i64(kLanes)), 1, [&](Value lane) {
    Value row = tile.rowOffset(tile.queryHeads, code.add(query, lane));
    code.loop(code.i64(0), code.i64(tile.width), 1, [&](Value d) {
      Value x = code.load(f32, sums, code.add(code.mul(d, kLanes), lane));
      code.store(x, out, code.add(row, d));
    });
  });
}

LogicalResult codegen::emitAttention(Code &code, rt::AttentionOp op,
                                     Kernel &kernel) {
  if (failed(verifyHeadWidth(op, cast<ShapedType>(op.getQuery().getType()),
                             op.getHeads())))
    return failure();
  ForwardEmitter forward(code, op, kernel);
  kernel.function->setAttr(rt::kTasksAttr,
                           code.getI64IntegerAttr(forward.tasks()));
  kernel.tasks(code, [&](Value task) { forward.emit(task); });
  return success();
}
