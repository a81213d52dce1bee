//===- NNTrainingOps.cpp - Loss, phases of a step, optimizer ----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Verifiers, canonicalizers and costs. A cost is that of the formula in the
// op's description: 2 for a multiply-add, 1 for any other function of a number.
//
//===----------------------------------------------------------------------===//

#include "Verify.h"
#include "mlir/IR/PatternMatch.h"
#include "reprise/Dialect/NN/NNOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

//===----------------------------------------------------------------------===//
// Loss
//===----------------------------------------------------------------------===//

LogicalResult CrossEntropyOp::verify() {
  return Dims(*this).match({{"logits", getLogits(), "BTV"},
                            {"targets", getTargets(), "BT"},
                            {"losses", getLosses(), "BT"}}); // C2
}

/// A logit: maximum, difference, exp, sum. A row: logarithm, the sum with the
/// maximum, the difference with the target's logit.
int64_t CrossEntropyOp::getFlops() {
  return multiply({4, countElements(getLogits())}) +
         3 * countElements(getLosses());
}

LogicalResult CrossEntropyBackwardOp::verify() {
  return Dims(*this).match({{"logits", getLogits(), "BTV"},
                            {"targets", getTargets(), "BT"},
                            {"lse", getLse(), "BT"}}); // C2
}

/// A logit: difference, exp, product. A row: minus 1 at the target.
int64_t CrossEntropyBackwardOp::getFlops() {
  return multiply({3, countElements(getLogits())}) + countElements(getLse());
}

/// The sum and one division.
int64_t MeanOp::getFlops() { return countElements(getInput()) + 1; }

/// One product, copied to every element.
int64_t BroadcastOp::getFlops() { return 1; }

/// A constant times a constant is a constant, rounded once as the op would.
LogicalResult BroadcastOp::canonicalize(BroadcastOp op,
                                        PatternRewriter &rewriter) {
  auto constant = op.getInput().getDefiningOp<ConstantOp>();
  if (!constant)
    return failure();
  DictionaryAttr attributes = op->getDiscardableAttrDictionary();
  auto product = rewriter.replaceOpWithNewOp<ConstantOp>(
      op, op.getType(),
      rewriter.getFloatAttr(rewriter.getF32Type(),
                            constant.getValue() * op.getFactor()));
  product->setDiscardableAttrs(attributes);
  return success();
}

int64_t ConstantOp::getFlops() { return 0; }

//===----------------------------------------------------------------------===//
// Gradients and the optimizer
//===----------------------------------------------------------------------===//

int64_t AccumulateOp::getFlops() { return countElements(getOut()); }

LogicalResult GlobalNormOp::verify() {
  if (getGradients().empty()) // C1
    return emitOpError("needs at least one gradient, but got none");
  return success();
}

/// The sum of squares and one root.
int64_t GlobalNormOp::getFlops() {
  int64_t flops = 1;
  for (Value gradient : getGradients())
    flops += 2 * countElements(gradient);
  return flops;
}

LogicalResult ClipScaleOp::verify() {
  if (!(getMaxNorm().convertToFloat() > 0)) // C1
    return emitOpError("needs a largest norm above 0, but got ")
           << getMaxNormAttr();
  return success();
}

/// Sum, division, minimum.
int64_t ClipScaleOp::getFlops() { return 3; }

LogicalResult AdamWOp::verify() {
  for (FloatAttr beta : {getBeta1Attr(), getBeta2Attr()}) // C2
    if (!(beta.getValueAsDouble() >= 0 && beta.getValueAsDouble() < 1))
      return emitOpError("needs 'beta1' and 'beta2' in [0, 1), but got ")
             << beta;
  if (!getEps().isFiniteNonZero() || getEps().isNegative()) // C3
    return emitOpError("needs a finite 'eps' above 0, but got ")
           << getEpsAttr();
  if (!getWeightDecay().isFinite() ||
      getWeightDecay().convertToFloat() < 0) // C3
    return emitOpError("needs a finite weight decay of at least 0, but got ")
           << getWeightDecayAttr();
  return success();
}

/// An element: `g`, first moment (3), second moment (4), decay (2), update (7:
/// two corrections, root, plus `eps`, quotient, times `lr`, difference).
int64_t AdamWOp::getFlops() {
  return multiply({17, countElements(getParameter())});
}
