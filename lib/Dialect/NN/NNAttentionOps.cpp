//===- NNAttentionOps.cpp - Attention, fused and unfused --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Verifiers and costs. A cost is that of the formula in the op's description:
// 2 for a multiply-add, 1 for any other function of a number. Where a formula
// runs over `j <= i` alone, so does the count: T(T+1)/2 pairs, not T*T.
//
//===----------------------------------------------------------------------===//

#include "Verify.h"
#include "reprise/Dialect/NN/NNOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

/// The pairs `j <= i` of all heads.
static int64_t countPairs(int64_t batch, int64_t heads, int64_t length) {
  // One of two neighbours is even.
  return multiply({batch, heads, length % 2 ? length : length / 2,
                   length % 2 ? (length + 1) / 2 : length + 1});
}

//===----------------------------------------------------------------------===//
// Fused
//===----------------------------------------------------------------------===//

/// Checks that a head of `value` is as wide as one of `out`, whatever that of
/// keys is.
template <typename OpTy>
static LogicalResult verifyValues(OpTy op, Dims &dims) {
  if (failed(dims.match(
          {{"value", op.getValue(), "BTY"}, {"out", op.getOut(), "BTZ"}})))
    return failure();
  int64_t heads = op.getHeads(), keyHeads = op.getKeyHeads();
  if (dims['Y'] % keyHeads != 0 || dims['Z'] % heads != 0 ||
      dims['Y'] / keyHeads != dims['Z'] / heads) // C2
    return op.emitOpError("needs heads of 'value' as wide as those of 'out', "
                          "but got ")
           << keyHeads << " in " << dims['Y'] << " columns and " << heads
           << " in " << dims['Z'];
  return success();
}

/// Checks what nn.attention and its gradient have in common.
template <typename OpTy>
static LogicalResult verifyAttention(OpTy op) {
  Dims dims(op);
  int64_t heads = op.getHeads();
  if (failed(dims.match({{"query", op.getQuery(), "BTW"}})) ||
      failed(dims.bindHeads(heads, op.getKvHeads())) || // C3
      failed(dims.match(
          {{"key", op.getKey(), "BTX"}, {"lse", op.getLse(), "BHT"}})) || // C2
      failed(verifyValues(op, dims)))
    return failure();
  PartAttr part = op.getPartAttr();
  if (part && part.getDim() != 1) // C4
    return op.emitOpError("needs a part of the heads, dimension 1, but got ")
           << part;
  return verifyDropout(op, op.getRateAttr(), op.getStream(), part,
                       {dims['B'], heads, dims['T'], dims['T']}); // C4
}

template <typename OpTy>
static int64_t countPairs(OpTy op) {
  ArrayRef<int64_t> shape = getShape(op.getQuery());
  return countPairs(shape[0], op.getHeads(), shape[1]);
}

template <typename OpTy>
static int64_t getHeadWidth(OpTy op, Value value) {
  return getShape(value).back() / int64_t(op.getHeads());
}

LogicalResult AttentionOp::verify() { return verifyAttention(*this); }

/// A pair: a dot product of the width of a key and one of that of a value,
/// `scale`, maximum, difference, exp, sum, and dropout if there is any. An
/// element of the result: the division by the sum. A row: logarithm and the sum
/// with the maximum.
int64_t AttentionOp::getFlops() {
  int64_t widths =
      getHeadWidth(*this, getQuery()) + getHeadWidth(*this, getOut());
  int64_t perPair = 2 * widths + (getRate().isZero() ? 5 : 6);
  return multiply({countPairs(*this), perPair}) + countElements(getOut()) +
         2 * countElements(getLse());
}

LogicalResult AttentionBackwardOp::verify() { return verifyAttention(*this); }

/// A pair: three dot products of the width of a key (`s`, `dquery`, `dkey`) and
/// two of that of a value (`dp`, `dvalue`), `scale`, `p` (2), `ds` (2), and
/// with dropout `m` twice. An element of `out`: `delta` (2); one of `dquery` or
/// `dkey`: `scale`.
int64_t AttentionBackwardOp::getFlops() {
  int64_t width = getHeadWidth(*this, getQuery());
  int64_t valueWidth = getHeadWidth(*this, getOut());
  int64_t perPair = 6 * width + 4 * valueWidth + (getRate().isZero() ? 5 : 7);
  return multiply({countPairs(*this), perPair}) + 2 * countElements(getOut()) +
         countElements(getDquery()) + countElements(getDkey());
}

//===----------------------------------------------------------------------===//
// Unfused
//===----------------------------------------------------------------------===//

/// Checks the shapes of nn.scores and nn.context: rows of all heads, rows of
/// the heads of keys and values, and what has a number for each pair of rows.
static LogicalResult verifyUnfused(Operation *op, int64_t heads,
                                   std::optional<int64_t> kvHeads, Shaped wide,
                                   Shaped narrow, Shaped square) {
  Dims dims(op);
  if (failed(dims.match({wide})) ||
      failed(dims.bindHeads(heads, kvHeads))) // C3
    return failure();
  return dims.match({narrow, square}); // C2
}

/// Every pair of rows, head by head: a dot product of the head width. A scale
/// of other than 1 counts for each element of `out`.
static int64_t countUnfusedFlops(Value square, int64_t headWidth, Value out,
                                 const APFloat &scale) {
  return multiply({2, countElements(square), headWidth}) +
         (scale.isExactlyValue(1.0) ? 0 : countElements(out));
}

LogicalResult ScoresOp::verify() {
  return verifyUnfused(*this, getHeads(), getKvHeads(),
                       {"lhs", getLhs(), "BTW"}, {"rhs", getRhs(), "BTX"},
                       {"out", getOut(), "BHTT"});
}

int64_t ScoresOp::getFlops() {
  return countUnfusedFlops(getOut(), getHeadWidth(*this, getLhs()), getOut(),
                           getScale());
}

bool ScoresOp::isGemm() { return true; }

LogicalResult ContextOp::verify() {
  Shaped wide = {"out", getOut(), "BTW"}, narrow = {"rows", getRows(), "BTX"};
  if (getTransposed())
    wide = {"rows", getRows(), "BTW"}, narrow = {"out", getOut(), "BTX"};
  return verifyUnfused(*this, getHeads(), getKvHeads(), wide, narrow,
                       {"probs", getProbs(), "BHTT"});
}

int64_t ContextOp::getFlops() {
  Value wide = getTransposed() ? getRows() : getOut();
  return countUnfusedFlops(getProbs(), getHeadWidth(*this, wide), getOut(),
                           getScale());
}

bool ContextOp::isGemm() { return true; }

LogicalResult SoftmaxOp::verify() {
  return Dims(*this).match({{"input", getInput(), "BHTT"}}); // C1
}

/// A pair: maximum, difference, exp, sum, division.
int64_t SoftmaxOp::getFlops() {
  ArrayRef<int64_t> shape = getShape(getInput());
  return multiply({5, countPairs(shape[0], shape[1], shape[2])});
}

LogicalResult SoftmaxBackwardOp::verify() {
  return Dims(*this).match({{"probs", getProbs(), "BHTT"}}); // C1
}

/// An element, above the diagonal too: a multiply-add, difference, product.
int64_t SoftmaxBackwardOp::getFlops() {
  return multiply({4, countElements(getProbs())});
}
