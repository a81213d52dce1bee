//===- NNBalanceOps.cpp - Balance of experts over a step ------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Dialect/NN/NNBalanceOps.h"
#include "Verify.h"
#include "llvm/ADT/SmallString.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

LogicalResult RowSharesOp::verify() {
  return Dims(*this).match({{"rows", getRows(), "E"}}); // C1
}

/// A sum, and a quotient for each.
int64_t RowSharesOp::getFlops() {
  return multiply({2, countElements(getRows())});
}

//===----------------------------------------------------------------------===//
// Of all layers together
//===----------------------------------------------------------------------===//

LogicalResult RowLogSumExpOp::verify() {
  return Dims(*this).match(
      {{"input", getInput(), ".E"}, {"lse", getLse(), "."}}); // C1
}

/// An exponential is of a difference (2) and added (1); of each row the
/// logarithm, and what was taken off.
int64_t RowLogSumExpOp::getFlops() {
  return multiply({3, countElements(getInput())}) +
         multiply({2, countElements(getLse())});
}

LogicalResult SumProbabilitiesOp::verify() {
  return Dims(*this).match({{"logits", getLogits(), ".E"},
                            {"lse", getLse(), "."},
                            {"out", getOut(), "E"}}); // C1
}

int64_t SumProbabilitiesOp::getFlops() {
  return multiply({3, countElements(getLogits())});
}

/// With `p` the softmax, `p * (dout - sum of p * dout)` for each token.
LogicalResult SumProbabilitiesOp::buildVjp(OpBuilder &builder,
                                           ArrayRef<Value> cotangents,
                                           ArrayRef<bool> needed,
                                           MutableArrayRef<Value> gradients) {
  if (!needed[0])
    return success();
  Value one = ConstantOp::create(builder, getLoc(), getLse().getType(),
                                 builder.getF32FloatAttr(1));
  gradients[0] = ExpectedRowsBackwardOp::create(
      builder, getLoc(), getLogits().getType(), getLogits(), cotangents[0], one,
      /*sigmoid=*/UnitAttr());
  return success();
}

static LogicalResult verifyFactor(Operation *op, const APFloat &factor) {
  if (factor.isFinite()) // C2
    return success();
  SmallString<16> text;
  factor.toString(text);
  return op->emitOpError("needs a finite 'factor', but got ") << text;
}

LogicalResult BalanceLossOp::verify() {
  if (failed(Dims(*this).match(
          {{"rows", getRows(), "E"}, {"sums", getSums(), "E"}}))) // C1
    return failure();
  return verifyFactor(*this, getFactor());
}

/// A product is added for each expert.
int64_t BalanceLossOp::getFlops() {
  return multiply({2, countElements(getRows())}) + 1;
}

LogicalResult BalanceLossOp::buildVjp(OpBuilder &builder,
                                      ArrayRef<Value> cotangents,
                                      ArrayRef<bool> needed,
                                      MutableArrayRef<Value> gradients) {
  if (needed[1])
    gradients[1] = BalanceLossBackwardOp::create(
        builder, getLoc(), getSums().getType(), getRows(), cotangents[0],
        getFactorAttr());
  return success();
}

LogicalResult BalanceLossBackwardOp::verify() {
  if (failed(Dims(*this).match({{"rows", getRows(), "E"}}))) // C1
    return failure();
  return verifyFactor(*this, getFactor());
}

int64_t BalanceLossBackwardOp::getFlops() {
  return countElements(getRows()) + 1;
}
