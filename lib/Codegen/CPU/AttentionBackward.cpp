//===- AttentionBackward.cpp - Causal attention, backward -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A task is a head of keys. It walks the blocks of keys and for each, head by
// head of those that share them, the queries that see them, 16 at a time. The
// gradients of a block's keys and values are summed on the stack, heads and
// their queries in order; those of the queries where they belong, blocks in
// order: one task, so nothing is atomic and the order is always the same.
//
// Source: Dao, FlashAttention-2, arXiv:2307.08691, section 3.2.
//
//===----------------------------------------------------------------------===//

#include "AttentionTile.h"
#include "RTKernels.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

namespace {
/// Emits one task. Arrays on the stack have rows of whole vectors; what is
/// beyond the width of a head is zero.
class BackwardEmitter {
public:
  BackwardEmitter(Code &code, rt::AttentionBackwardOp op, Kernel &kernel)
      : code(code), op(op), kernel(kernel), tile(code, op),
        chunks(llvm::divideCeil(tile.width, kLanes)), padded(chunks * kLanes),
        delta(code.scratch(kLanes)),
        queriesT(code.scratch(tile.width * kLanes)),
        doutT(code.scratch(tile.width * kLanes)),
        queryRows(code.scratch(kLanes * padded)),
        doutRows(code.scratch(kLanes * padded)),
        dqueryRows(code.scratch(kLanes * padded)),
        keyRows(code.scratch(kKeys * padded)),
        dkeyRows(code.scratch(kKeys * padded)),
        dvalueRows(code.scratch(kKeys * padded)),
        probs(code.scratch(kKeys * kLanes)),
        dscores(code.scratch(kKeys * kLanes)),
        random(RandomStream::load(code, kernel, addressOf(kernel, op, 6),
                                  op.getStream())) {}

  /// How many numbers the arrays on the stack have for heads of `width`.
  static constexpr int64_t scratch(int64_t width) {
    int64_t padded = (width + kLanes - 1) / kLanes * kLanes;
    return kLanes + 2 * width * kLanes + 3 * (kLanes + kKeys) * padded +
           2 * kKeys * kLanes;
  }

  int64_t tasks() const { return tile.batch * tile.keyHeads.count; }
  void emit(Value task);

private:
  void forHeads(Value task, function_ref<void()> body);
  void keys(Value task, Value first);
  void queries(Value first, Value count, Value query);
  void deltas(Value query);
  void scores(Value first, Value count, Value query);
  void addProducts(Value sums, Value rows, int64_t sideBySide, Value weights,
                   int64_t rowStep, int64_t termStep, Value terms,
                   Value numTerms);
  void addDquery(Value query);

  Value mask(int64_t chunk) {
    int64_t left = tile.width - chunk * kLanes;
    return left < kLanes ? code.maskOf(left) : Value();
  }
  /// to[r] = from[first + r], for all rows of `to`.
  void gather(const AttentionTile::Heads &heads, Value from, Value first,
              int64_t rows, Value to);
  void fillZero(Value base, int64_t rows);
  /// Writes `count` rows to the positions of keys from `first` on.
  void scatter(Value from, Value to, Value first, Value count);

  Code &code;
  rt::AttentionBackwardOp op;
  Kernel &kernel;
  AttentionTile tile;
  int64_t chunks, padded;
  Value delta, queriesT, doutT, queryRows, doutRows, dqueryRows, keyRows,
      dkeyRows, dvalueRows, probs, dscores;
  RandomStream random;
  Value key, value, dkey, dvalue;     ///< of the task
  Value bh, query, out, dout, dquery; ///< of one of its heads of queries
};
static_assert(BackwardEmitter::scratch(kMaxHeadWidth) * 4 <= kStackBytes &&
              BackwardEmitter::scratch(kMaxHeadWidth + 1) * 4 > kStackBytes);
} // namespace

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

void BackwardEmitter::gather(const AttentionTile::Heads &heads, Value from,
                             Value first, int64_t rows, Value to) {
  VectorType lanes = code.lanesOf(code.getF32Type());
  code.loop(code.i64(0), code.i64(rows), 1, [&](Value r) {
    Value source = tile.rowOffset(heads, code.add(first, r));
    for (int64_t c = 0; c < chunks; ++c)
      code.store(code.load(lanes, from, code.add(source, c * kLanes), mask(c)),
                 to, code.add(code.mul(r, padded), c * kLanes));
  });
}

void BackwardEmitter::fillZero(Value base, int64_t rows) {
  code.loop(code.i64(0), code.i64(rows * padded), kLanes,
            [&](Value i) { code.store(code.splatF32(0), base, i); });
}

void BackwardEmitter::scatter(Value from, Value to, Value first, Value count) {
  VectorType lanes = code.lanesOf(code.getF32Type());
  code.loop(code.i64(0), count, 1, [&](Value r) {
    Value target = tile.rowOffset(tile.keyHeads, code.add(first, r));
    for (int64_t c = 0; c < chunks; ++c)
      code.store(
          code.load(lanes, from, code.add(code.mul(r, padded), c * kLanes)), to,
          code.add(target, c * kLanes), mask(c));
  });
}

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

/// Emits `body` for each head of queries of the task, in order.
void BackwardEmitter::forHeads(Value task, function_ref<void()> body) {
  auto head = [&](Value index) {
    bh = index;
    Value offset = tile.headOffset(tile.queryHeads, bh);
    auto at = [&](Value base) {
      return code.address(base, code.getF32Type(), offset);
    };
    query = at(addressOf(kernel, op, 0)), out = at(addressOf(kernel, op, 3));
    dout = at(addressOf(kernel, op, 5)), dquery = at(kernel.outputs[0]);
    body();
  };
  if (tile.group() == 1)
    return head(task);
  Value first = code.mul(task, tile.group());
  code.loop(first, code.add(first, tile.group()), 1, head);
}

void BackwardEmitter::emit(Value task) {
  Value head = tile.headOffset(tile.keyHeads, task);
  auto at = [&](Value base) {
    return code.address(base, code.getF32Type(), head);
  };
  key = at(addressOf(kernel, op, 1)), value = at(addressOf(kernel, op, 2));
  dkey = at(kernel.outputs[1]), dvalue = at(kernel.outputs[2]);

  forHeads(task, [&] {
    code.loop(code.i64(0), code.i64(tile.length), 1, [&](Value i) {
      Value row = tile.rowOffset(tile.queryHeads, i);
      for (int64_t c = 0; c < chunks; ++c)
        code.store(code.splatF32(0), dquery, code.add(row, c * kLanes),
                   mask(c));
    });
  });
  code.loop(code.i64(0), code.i64(tile.length), kKeys,
            [&](Value first) { keys(task, first); });
}

void BackwardEmitter::keys(Value task, Value first) {
  Value count =
      code.min(code.sub(code.i64(tile.length), first), code.i64(kKeys));
  gather(tile.keyHeads, key, first, kKeys, keyRows);
  fillZero(dkeyRows, kKeys);
  fillZero(dvalueRows, kKeys);
  // Blocks of keys begin where blocks of queries do.
  static_assert(kKeys % kLanes == 0 && kKeys % kKeyGroup == 0);
  forHeads(task, [&] {
    code.loop(first, code.i64(tile.length), kLanes,
              [&](Value q) { queries(first, count, q); });
  });
  scatter(dkeyRows, dkey, first, count);
  scatter(dvalueRows, dvalue, first, count);
}

void BackwardEmitter::queries(Value first, Value count, Value q) {
  tile.transpose(query, q, queriesT);
  tile.transpose(dout, q, doutT);
  gather(tile.queryHeads, query, q, kLanes, queryRows);
  gather(tile.queryHeads, dout, q, kLanes, doutRows);
  deltas(q);
  // None of these queries sees a key beyond the last of them.
  count = code.min(count, code.sub(code.add(q, kLanes), first));
  Value whole = tile.wholeGroups(count);
  scores(first, whole, q);
  Value lanes = code.i64(kLanes);
  addProducts(dvalueRows, whole, kSideBySide, probs, kLanes, 1, doutRows,
              lanes);
  addProducts(dkeyRows, whole, kSideBySide, dscores, kLanes, 1, queryRows,
              lanes);
  fillZero(dqueryRows, kLanes);
  addProducts(dqueryRows, lanes, 4, dscores, 1, kLanes, keyRows, count);
  addDquery(q);
}

/// delta[lane] = dot(dout[q + lane], out[q + lane]). Every block of keys makes
/// them anew: they cost less than room for the whole sequence.
void BackwardEmitter::deltas(Value q) {
  VectorType lanes = code.lanesOf(code.getF32Type());
  code.loop(code.i64(0), code.i64(kLanes), 1, [&](Value lane) {
    Value row = tile.rowOffset(tile.queryHeads, code.add(q, lane));
    Value sum = code.splatF32(0);
    for (int64_t c = 0; c < chunks; ++c) {
      Value at = code.add(code.mul(lane, padded), c * kLanes);
      sum = code.fma(code.load(lanes, doutRows, at),
                     code.load(lanes, out, code.add(row, c * kLanes), mask(c)),
                     sum);
    }
    code.store(code.sum(sum), delta, lane);
  });
}

/// probs[j] = p * m and dscores[j] = scale * p * (m * dot(dout, value) -
/// delta), zero where the query does not see the key.
void BackwardEmitter::scores(Value first, Value count, Value q) {
  tile.products(key, first, count, queriesT, probs);
  tile.products(value, first, count, doutT, dscores);

  VectorType lanes = code.lanesOf(code.getF32Type());
  Value exists = tile.sees(q, code.i64(0));
  Value lse = code.load(lanes, addressOf(kernel, op, 4),
                        code.add(code.mul(bh, tile.length), q), exists);
  Value deltas = code.load(lanes, delta, code.i64(0));
  Value scale = code.splatF32(tile.scale), zero = code.splatF32(0);
  tile.forKeys(
      random, tile.elements(bh, q), first, count, [&](Value j, Value factors) {
        Value sees = tile.sees(q, code.add(first, j));
        Value score = code.mul(tile.loadRow(probs, j), scale);
        Value p = code.exp(code.sub(score, lse));
        Value dp = code.mul(tile.loadRow(dscores, j), factors);
        Value ds = code.mul(code.mul(p, code.sub(dp, deltas)), scale);
        tile.storeRow(code.select(sees, code.mul(p, factors), zero), probs, j);
        tile.storeRow(code.select(sees, ds, zero), dscores, j);
      });
}

/// sums[r] += sum over t of weights[r * rowStep + t * termStep] * terms[t], for
/// `rows` rows, a multiple of `sideBySide`.
void BackwardEmitter::addProducts(Value sums, Value rows, int64_t sideBySide,
                                  Value weights, int64_t rowStep,
                                  int64_t termStep, Value terms,
                                  Value numTerms) {
  Type f32 = code.getF32Type();
  VectorType lanes = code.lanesOf(f32);
  code.loop(code.i64(0), rows, sideBySide, [&](Value r) {
    code.loop(code.i64(0), code.i64(padded), kLanes, [&](Value c) {
      auto at = [&](int64_t k) {
        return code.add(code.mul(code.add(r, k), padded), c);
      };
      SmallVector<Value> state;
      for (int64_t k = 0; k < sideBySide; ++k)
        state.push_back(code.load(lanes, sums, at(k)));
      state = code.loop(
          code.i64(0), numTerms, 1, state, [&](Value t, ValueRange old) {
            Value term =
                code.load(lanes, terms, code.add(code.mul(t, padded), c));
            Value weight =
                code.add(code.mul(r, rowStep), code.mul(t, termStep));
            SmallVector<Value> next;
            for (int64_t k = 0; k < sideBySide; ++k) {
              Value x = code.load(f32, weights, code.add(weight, k * rowStep));
              next.push_back(code.fma(code.splat(x), term, old[k]));
            }
            return next;
          });
      for (int64_t k = 0; k < sideBySide; ++k)
        code.store(state[k], sums, at(k));
    });
  });
}

void BackwardEmitter::addDquery(Value q) {
  VectorType lanes = code.lanesOf(code.getF32Type());
  Value left = code.sub(code.i64(tile.length), q);
  code.loop(code.i64(0), code.min(left, code.i64(kLanes)), 1, [&](Value r) {
    Value row = tile.rowOffset(tile.queryHeads, code.add(q, r));
    for (int64_t c = 0; c < chunks; ++c) {
      Value at = code.add(row, c * kLanes);
      Value term = code.load(lanes, dqueryRows,
                             code.add(code.mul(r, padded), c * kLanes));
      code.store(code.add(code.load(lanes, dquery, at, mask(c)), term), dquery,
                 at, mask(c));
    }
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
