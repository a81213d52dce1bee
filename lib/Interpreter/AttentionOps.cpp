//===- AttentionOps.cpp - Attention -----------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Semantics.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace reprise;
using namespace reprise::interpreter;
using namespace reprise::nn;

namespace {
/// How `[B, T, H*D]`, `[B, T, G*D]` and `[B, H, T, T]` are indexed. Heads of
/// values may have another width `D`: they are others.
struct Heads {
  int64_t batch, length, heads, keyHeads, width;
  int64_t rank = 0, ranks = 1; ///< which heads these are, of those of all

  Heads(const Tensor &wide, int64_t heads, int64_t keyHeads)
      : batch(wide.shape[0]), length(wide.shape[1]), heads(heads),
        keyHeads(keyHeads), width(wide.shape[2] / heads) {}

  int64_t row(int64_t b, int64_t t, int64_t h) const {
    return ((b * length + t) * heads + h) * width;
  }
  /// Of the key or value that head `h` of the query reads.
  int64_t keyRow(int64_t b, int64_t t, int64_t h) const {
    return ((b * length + t) * keyHeads + h / (heads / keyHeads)) * width;
  }
  int64_t stat(int64_t b, int64_t h, int64_t i) const {
    return (b * heads + h) * length + i;
  }
  int64_t score(int64_t b, int64_t h, int64_t i, int64_t j) const {
    return stat(b, h, i) * length + j;
  }
  /// The same among the heads of all ranks.
  int64_t scoreOfAll(int64_t b, int64_t h, int64_t i, int64_t j) const {
    return (((b * ranks + rank) * heads + h) * length + i) * length + j;
  }
  /// Of the rows that begin at `lhsRow` and `rhsRow`.
  double dot(const Tensor &lhs, int64_t lhsRow, const Tensor &rhs,
             int64_t rhsRow) const {
    double sum = 0;
    for (int64_t d = 0; d < width; ++d)
      sum += lhs.values[lhsRow + d] * rhs.values[rhsRow + d];
    return sum;
  }
  /// to[toRow, :] += weight * from[fromRow, :]
  void add(Tensor &to, int64_t toRow, double weight, const Tensor &from,
           int64_t fromRow) const {
    for (int64_t d = 0; d < width; ++d)
      to.values[toRow + d] += weight * from.values[fromRow + d];
  }
  template <typename Function>
  void forEachRow(Function function) const {
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t i = 0; i < length; ++i)
          function(b, h, i);
  }
};
} // namespace

static void attention(AttentionOp op, const Frame &frame) {
  const Tensor &query = frame.in(0), &key = frame.in(1), &value = frame.in(2),
               &rng = frame.in(3);
  Heads at(query, op.getHeads(), op.getKeyHeads());
  Heads of(frame.out(), op.getHeads(), op.getKeyHeads());
  at.rank = frame.rank;
  at.ranks = frame.ranks;
  double scale = op.getScale().convertToFloat();
  double rate = op.getRate().convertToFloat();
  at.forEachRow([&](int64_t b, int64_t h, int64_t i) {
    int64_t row = at.row(b, i, h);
    std::vector<double> s;
    double max = -INFINITY, sum = 0;
    for (int64_t j = 0; j <= i; ++j) {
      s.push_back(scale * at.dot(query, row, key, at.keyRow(b, j, h)));
      max = std::max(max, s.back());
    }
    for (double x : s)
      sum += std::exp(x - max);
    double lse = max + std::log(sum);
    frame.out(1).values[at.stat(b, h, i)] = lse;
    for (int64_t j = 0; j <= i; ++j) {
      double factor = getDropoutFactor(rng, rate, op.getStream(),
                                       at.scoreOfAll(b, h, i, j));
      of.add(frame.out(), of.row(b, i, h), factor * std::exp(s[j] - lse), value,
             of.keyRow(b, j, h));
    }
  });
}

static void attentionBackward(AttentionBackwardOp op, const Frame &frame) {
  const Tensor &query = frame.in(0), &key = frame.in(1), &value = frame.in(2),
               &out = frame.in(3), &lse = frame.in(4), &dout = frame.in(5),
               &rng = frame.in(6);
  Heads at(query, op.getHeads(), op.getKeyHeads());
  Heads of(out, op.getHeads(), op.getKeyHeads());
  at.rank = frame.rank;
  at.ranks = frame.ranks;
  double scale = op.getScale().convertToFloat();
  double rate = op.getRate().convertToFloat();
  at.forEachRow([&](int64_t b, int64_t h, int64_t i) {
    int64_t row = at.row(b, i, h), outRow = of.row(b, i, h);
    double delta = of.dot(dout, outRow, out, outRow);
    for (int64_t j = 0; j <= i; ++j) {
      int64_t keyRow = at.keyRow(b, j, h), valueRow = of.keyRow(b, j, h);
      double factor = getDropoutFactor(rng, rate, op.getStream(),
                                       at.scoreOfAll(b, h, i, j));
      double p = std::exp(scale * at.dot(query, row, key, keyRow) -
                          lse.values[at.stat(b, h, i)]);
      double ds = p * (factor * of.dot(dout, outRow, value, valueRow) - delta);
      at.add(frame.out(0), row, scale * ds, key, keyRow);
      at.add(frame.out(1), keyRow, scale * ds, query, row);
      of.add(frame.out(2), valueRow, factor * p, dout, outRow);
    }
  });
}

static void scores(ScoresOp op, const Frame &frame) {
  Heads at(frame.in(0), op.getHeads(), op.getKeyHeads());
  double scale = op.getScale().convertToFloat();
  at.forEachRow([&](int64_t b, int64_t h, int64_t i) {
    for (int64_t j = 0; j < at.length; ++j)
      frame.out().values[at.score(b, h, i, j)] =
          scale *
          at.dot(frame.in(0), at.row(b, i, h), frame.in(1), at.keyRow(b, j, h));
  });
}

static void context(ContextOp op, const Frame &frame) {
  const Tensor &probs = frame.in(0), &rows = frame.in(1);
  bool transposed = op.getTransposed();
  Heads at(transposed ? rows : frame.out(), op.getHeads(), op.getKeyHeads());
  double scale = op.getScale().convertToFloat();
  at.forEachRow([&](int64_t b, int64_t h, int64_t i) {
    for (int64_t j = 0; j < at.length; ++j) {
      double weight = scale * probs.values[at.score(b, h, i, j)];
      if (transposed)
        at.add(frame.out(), at.keyRow(b, j, h), weight, rows, at.row(b, i, h));
      else
        at.add(frame.out(), at.row(b, i, h), weight, rows, at.keyRow(b, j, h));
    }
  });
}

static void softmax(const Frame &frame) {
  const Tensor &input = frame.in(0);
  int64_t length = input.cols();
  for (int64_t row = 0; row < input.rows(); ++row) {
    const double *s = &input.values[row * length];
    int64_t visible = row % length + 1;
    double max = *std::max_element(s, s + visible), sum = 0;
    for (int64_t j = 0; j < visible; ++j)
      sum += std::exp(s[j] - max);
    for (int64_t j = 0; j < visible; ++j)
      frame.out().values[row * length + j] = std::exp(s[j] - max) / sum;
  }
}

static void softmaxBackward(const Frame &frame) {
  const Tensor &probs = frame.in(0), &dout = frame.in(1);
  int64_t length = probs.cols();
  for (int64_t row = 0; row < probs.rows(); ++row) {
    double sum = 0;
    for (int64_t e = row * length; e < (row + 1) * length; ++e)
      sum += dout.values[e] * probs.values[e];
    for (int64_t e = row * length; e < (row + 1) * length; ++e)
      frame.out().values[e] = probs.values[e] * (dout.values[e] - sum);
  }
}

FailureOr<bool> interpreter::evaluateAttentionOp(Operation *op,
                                                 const Frame &frame) {
  return TypeSwitch<Operation *, FailureOr<bool>>(op)
      .Case([&](AttentionOp op) { return attention(op, frame), true; })
      .Case([&](AttentionBackwardOp op) {
        return attentionBackward(op, frame), true;
      })
      .Case([&](ScoresOp op) { return scores(op, frame), true; })
      .Case([&](ContextOp op) { return context(op, frame), true; })
      .Case([&](SoftmaxOp) { return softmax(frame), true; })
      .Case([&](SoftmaxBackwardOp) { return softmaxBackward(frame), true; })
      .Default([](Operation *) { return false; });
}
