//===- Attention.cpp - Causal attention, forward ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block of threads owns some queries of a head and walks over the keys up to
// the last of them, with the running maximum, the running sum and the weighted
// sum of values in registers.
//
// Source: Dao, FlashAttention-2, arXiv:2307.08691, section 3.1.
//
//===----------------------------------------------------------------------===//

#include "Attention.h"
#include "AsyncCopies.h"
#include "AttentionGemms.h"
#include "AttentionScores.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::cuda;

static constexpr double kLn2 = 0.6931471805599453;

namespace {
class ForwardEmitter {
public:
  using Values = Warp::Values;

  ForwardEmitter(codegen::Code &outer, const AttentionShape &shape,
                 const Division &division, const AttentionPlaces &places)
      : code(outer, places.shared), places(places), shape(shape),
        division(division), tiles(code, shape, division),
        unit(MatrixUnit::create(code, shape, division)),
        dropout(code, shape, division, places, places.operands[3]) {}

  int64_t numTiles() const {
    return llvm::divideCeil(shape.length, division.ownRows());
  }
  void emit();

private:
  /// The queries from `first` on of head `head`, which is head `inEntry` of an
  /// entry of the batch.
  struct Place {
    Value head, first, entry, inEntry, keyHead;
  };
  Place placeOf(Value index);
  Values step(ValueRange state, const Scores &where, Value keys, Value values);
  void write(ValueRange state, Value head, Value first, const Matrix &out);

  Warp code;
  const AttentionPlaces &places;
  const AttentionShape &shape;
  const Division &division;
  const SharedTiles tiles;
  const std::unique_ptr<MatrixUnit> unit;
  const ScoreDropout dropout;
  Values queries; ///< kept
};
} // namespace

ForwardEmitter::Place ForwardEmitter::placeOf(Value index) {
  // Blocks with most keys come first: no block is left that runs alone.
  Value head = code.div(index, numTiles());
  Value first =
      code.mul(code.sub(code.i32(numTiles() - 1), code.rem(index, numTiles())),
               division.ownRows());
  Value entry = code.div(head, shape.queryHeads);
  Value inEntry = code.rem(head, shape.queryHeads);
  return {head, first, entry, inEntry, code.div(inEntry, shape.group())};
}

void ForwardEmitter::emit() {
  const Place at = placeOf(code.blockIndex());
  auto query = tiles.matrix(places.operands[0], at.entry, at.inEntry,
                            shape.queryHeads, shape.width);
  auto key = tiles.matrix(places.operands[1], at.entry, at.keyHead,
                          shape.keyHeads, shape.width);
  auto value = tiles.matrix(places.operands[2], at.entry, at.keyHead,
                            shape.keyHeads, shape.valueWidth);

  tiles.copy(query, at.first, division.ownRows(), tiles.own(0));
  commitCopies(code);

  // The maximum and, of this thread's columns, the sum for both of its rows.
  Values state = {code.f32(-1e30), code.f32(-1e30), code.f32(0), code.f32(0)};
  state.append(unit->zeros(shape.valueWidth));
  Value end =
      code.min(code.add(at.first, division.ownRows()), code.i32(shape.length));
  Value count =
      code.div(code.add(end, division.tileRows - 1), division.tileRows);
  auto firstOf = [&](Value step) { return code.mul(step, division.tileRows); };
  state = tiles.walk(
      count, state,
      [&](Value step) {
        tiles.copy(key, firstOf(step), division.tileRows,
                   tiles.walked(step, 0));
        tiles.copy(value, firstOf(step), division.tileRows,
                   tiles.walked(step, 1));
      },
      [&] {
        if (unit->isAsync())
          return;
        waitForCopies(code, 1);
        barrier(code);
        queries = unit->rowsToKeep(tiles.own(0), shape.width);
      },
      [&](Value index, ValueRange state) {
        return step(state, {at.head, at.first, firstOf(index), false},
                    tiles.walked(index, 0), tiles.walked(index, 1));
      });
  write(state, at.head, at.first,
        tiles.matrix(places.results[0], at.entry, at.inEntry, shape.queryHeads,
                     shape.valueWidth));
}

/// One tile of keys.
ForwardEmitter::Values ForwardEmitter::step(ValueRange state,
                                            const Scores &where, Value keys,
                                            Value values) {
  Values scores =
      masked(code, division,
             unit->finish(unit->gemm(tiles.own(0), keys, shape.width, queries)),
             where);
  Values factors = dropout.factors(where);
  // In powers of two: p = 2^(log2(e) scale (score - max)).
  Value scale = code.f32(shape.scale / kLn2);
  Values next(state.begin(), state.begin() + 4), sums(state.drop_front(4));
  Value decay[2];
  for (int64_t r = 0; r < 2; ++r) {
    auto ofRow = [&](size_t i) { return int64_t(i / 2 % 2) == r; };
    Value max = state[r];
    Value best = scores[2 * r];
    for (size_t i = 0; i < scores.size(); ++i)
      if (ofRow(i))
        best = code.max(best, scores[i]);
    max = code.max(max, reduceLanes(code, best, 4, [&](Value a, Value b) {
                     return code.max(a, b);
                   }));
    decay[r] = exp2(code, code.mul(code.sub(state[r], max), scale));
    Value shift = arith::NegFOp::create(code, code.mul(max, scale));
    Value total = code.mul(state[2 + r], decay[r]);
    for (size_t i = 0; i < scores.size(); ++i)
      if (ofRow(i)) {
        scores[i] = exp2(code, code.fma(scores[i], scale, shift));
        total = code.add(total, scores[i]);
        if (!factors.empty())
          scores[i] = code.mul(scores[i], factors[i]);
      }
    next[r] = max, next[2 + r] = total;
  }
  for (size_t i = 0; i < sums.size(); ++i)
    sums[i] = code.mul(sums[i], decay[i / 2 % 2]);
  next.append(unit->finish(unit->addGemm(sums, scores, values)));
  return next;
}

void ForwardEmitter::write(ValueRange state, Value head, Value first,
                           const Matrix &out) {
  Value shares[2];
  Value lse = toDevice(code, places.results[1]);
  for (int64_t r = 0; r < 2; ++r) {
    Value total = reduceLanes(code, state[2 + r], 4,
                              [&](Value a, Value b) { return code.add(a, b); });
    shares[r] = arith::DivFOp::create(code, code.f32(1), total);
    Value position = code.add(first, ownRow(code, r));
    Value writes = code.both(code.isLess(code.quad, 1),
                             code.isLess(position, shape.length));
    code.choose(
        writes,
        [&]() -> Values {
          Value logSum = code.fma(state[r], code.f32(shape.scale),
                                  math::LogOp::create(code, total));
          Value at = code.add(code.mul(code.widen(head), shape.length),
                              code.widen(position));
          storeDevice(code, logSum, lse, at);
          return {};
        },
        [] { return Values(); });
  }
  tiles.store(out, first, state.drop_front(4), shares);
}

FailureOr<LaunchShape> cuda::emitAttention(codegen::Code &code,
                                           rt::AttentionOp op,
                                           const AttentionPlaces &places,
                                           bool byWarpGroup) {
  AttentionShape shape(op);
  if (failed(verifyShape(op, shape)))
    return failure();
  Division division = divide(shape, Direction::Forward, byWarpGroup);
  ForwardEmitter forward(code, shape, division, places);
  forward.emit();
  return launchOf(shape, division,
                  forward.numTiles() * shape.queryHeads * shape.batch);
}

bool cuda::hasWarpGroupForm(rt::AttentionOp op) {
  return canDivideByWarpGroup(AttentionShape(op), Direction::Forward);
}
