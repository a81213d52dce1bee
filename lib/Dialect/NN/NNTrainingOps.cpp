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

/// The columns that count are some of `columns`.
static LogicalResult
verifyClasses(Operation *op, std::optional<uint64_t> classes, int64_t columns) {
  if (!classes || (*classes >= 1 && *classes <= uint64_t(columns)))
    return success();
  return op->emitOpError("needs 'classes' from 1 to ")
         << columns << ", but got " << int64_t(*classes);
}

LogicalResult CrossEntropyOp::verify() {
  if (failed(Dims(*this).match({{"logits", getLogits(), "BTV"},
                                {"targets", getTargets(), "BT"},
                                {"losses", getLosses(), "BT"}}))) // C2
    return failure();
  return verifyClasses(*this, getClasses(), getShape(getLogits())[2]); // C3
}

/// A logit: maximum, difference, exp, sum. A row: logarithm, the sum with the
/// maximum, the difference with the target's logit.
int64_t CrossEntropyOp::getFlops() {
  return multiply({4, countElements(getLogits())}) +
         3 * countElements(getLosses());
}

LogicalResult CrossEntropyBackwardOp::verify() {
  if (failed(Dims(*this).match({{"logits", getLogits(), "BTV"},
                                {"targets", getTargets(), "BT"},
                                {"lse", getLse(), "BT"}}))) // C2
    return failure();
  return verifyClasses(*this, getClasses(), getShape(getLogits())[2]); // C3
}

/// A logit: difference, exp, product. A row: minus 1 at the target.
int64_t CrossEntropyBackwardOp::getFlops() {
  return multiply({3, countElements(getLogits())}) + countElements(getLse());
}

LogicalResult LinearCrossEntropyOp::verify() {
  bool isOutIn = getLayout() == WeightLayout::OutIn;
  if (failed(Dims(*this).match({{"input", getInput(), "BTK"},
                                {"weight", getWeight(), isOutIn ? "VK" : "KV"},
                                {"targets", getTargets(), "BT"},
                                {"losses", getLosses(), "BT"}}))) // C1
    return failure();
  int64_t vocabulary = getShape(getWeight())[isOutIn ? 0 : 1];
  if (getAxis()) // Other ranks have further classes.
    vocabulary = std::numeric_limits<int64_t>::max();
  if (failed(verifyClasses(*this, getClasses(), vocabulary))) // C4
    return failure();
  if (getAxis() && failed(verifyAxis(*this, getAxisAttr()))) // C5
    return failure();
  int64_t rows = getRows();
  int64_t block = getRowBlock(getInput().getType().getElementType());
  if (rows < block || rows % block != 0) // C2
    return emitOpError("needs rows that are a multiple of ")
           << block << ", and at least that, but got " << rows;
  SmallVector<Type> wanted; // C3
  if (getDinput())
    wanted.push_back(getInput().getType());
  auto sumType = cast<RankedTensorType>(getWeight().getType())
                     .clone(Float32Type::get(getContext()));
  if (getSum())
    wanted.push_back(sumType);
  if (bool(getFactor()) != !wanted.empty())
    return emitOpError("needs the gradient of the losses, 'by', with ")
           << "'dinput' or 'sum' and only there, but got "
           << (getFactor() ? "one" : "none") << " with " << wanted.size()
           << " of them";
  if (getSum() && getSum().getType() != sumType)
    return emitOpError("needs a sum of the shape of the weight, ")
           << sumType << ", but got " << getSum().getType();
  if (getGradients().size() != wanted.size())
    return emitOpError("needs ")
           << wanted.size() << " gradients, those asked for, but got "
           << getGradients().size();
  for (auto [gradient, type] : llvm::zip(getGradients(), wanted))
    if (gradient.getType() != type)
      return emitOpError("needs a gradient of type ")
             << type << ", but got " << gradient.getType();
  return success();
}

/// Those of the ops that it stands for.
int64_t LinearCrossEntropyOp::getFlops() {
  int64_t losses = countElements(getLosses());
  int64_t gemms = 1 + getGradients().size();
  int64_t vocabulary = countElements(getWeight()) / getShape(getInput()).back();
  int64_t flops = multiply({2 * gemms, losses, countElements(getWeight())}) +
                  multiply({4, losses, vocabulary}) + 3 * losses;
  if (getFactor())
    flops += multiply({3, losses, vocabulary}) + losses;
  if (getSum())
    flops += countElements(getWeight());
  return flops;
}

bool LinearCrossEntropyOp::isGemm() { return true; }

/// Ranks that have parts of the vocabulary meet in each chunk.
void LinearCrossEntropyOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  if (!getAxis())
    return;
  effects.emplace_back(MemoryEffects::Read::get(), NetworkResource::get());
  effects.emplace_back(MemoryEffects::Write::get(), NetworkResource::get());
}

Value LinearCrossEntropyOp::getInputGradient() {
  return getDinput() ? getGradients().front() : Value();
}

Value LinearCrossEntropyOp::getNewSum() {
  return getSum() ? getGradients().back() : Value();
}

SmallVector<int64_t> LinearCrossEntropyOp::getChunks() {
  SmallVector<int64_t> chunks;
  for (int64_t left = countElements(getLosses()); left > 0; left -= getRows())
    chunks.push_back(std::min<int64_t>(left, getRows()));
  return chunks;
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

int64_t PushOp::getFlops() {
  return multiply({int64_t(getOlder().size()), countElements(getPushed())});
}

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
  if (getMaxNorm() && !(getMaxNorm()->convertToFloat() > 0)) // C1
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
  if (bool(getWorking()) != bool(getNewWorking())) // C1
    return emitOpError("needs a working copy and a new one, or neither, but "
                       "got ")
           << (getWorking() ? "no new one" : "none before");
  for (Value working : {getWorking(), getNewWorking()})
    if (working && getShape(working) != getShape(getParameter())) // C1
      return emitOpError("needs working copies of the shape of the parameter, ")
             << getParameter().getType() << ", but got " << working.getType();
  return success();
}

/// An element: `g`, first moment (3), second moment (4), decay (2), update (7:
/// two corrections, root, plus `eps`, quotient, times `lr`, difference).
int64_t AdamWOp::getFlops() {
  return multiply({17, countElements(getParameter())});
}
