//===- NNModelOps.cpp - Embeddings, norms, projections, activations -------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Verifiers, folders and costs. A cost is that of the formula in the op's
// description: 2 for a multiply-add, 1 for any other function of a number, 0
// for copies, conversions and what is done on integers.
//
//===----------------------------------------------------------------------===//

#include "Verify.h"
#include "mlir/IR/TypeUtilities.h"
#include "reprise/Dialect/NN/NNOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

//===----------------------------------------------------------------------===//
// Embeddings
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingOp::verify() {
  Type table = getElementTypeOrSelf(getTable());
  Type out = getElementTypeOrSelf(getOut());
  if (out != table && !(out.isBF16() && table.isF32())) // C1
    return emitOpError("needs rows of ")
           << table << (table.isF32() ? " or bf16" : "") << ", but got " << out;
  return Dims(*this).match({{"ids", getIds(), "BT"},
                            {"table", getTable(), "VC"},
                            {"out", getOut(), "BTC"}}); // C2
}

int64_t EmbeddingOp::getFlops() { return 0; }

LogicalResult EmbeddingBackwardOp::verify() {
  return Dims(*this).match({{"ids", getIds(), "BT"},
                            {"dout", getDout(), "BTC"},
                            {"dtable", getDtable(), "VC"}}); // C2
}

/// An addition for each element that comes in.
int64_t EmbeddingBackwardOp::getFlops() { return countElements(getDout()); }

static LogicalResult verifyPositions(Operation *op, Shaped values, Value table,
                                     StringRef tableName) {
  Dims dims(op);
  if (failed(dims.match({values, {tableName, table, "PC"}}))) // C2
    return failure();
  if (dims['T'] > dims['P']) // C3
    return op->emitOpError("needs a row of '")
           << tableName << "' for each of the " << dims['T']
           << " positions, but got " << dims['P'] << " rows";
  return success();
}

LogicalResult AddPositionsOp::verify() {
  return verifyPositions(*this, {"input", getInput(), "BTC"}, getTable(),
                         "table");
}

int64_t AddPositionsOp::getFlops() { return countElements(getOut()); }

LogicalResult PositionsBackwardOp::verify() {
  return verifyPositions(*this, {"dout", getDout(), "BTC"}, getDtable(),
                         "dtable");
}

/// An addition for each element that comes in.
int64_t PositionsBackwardOp::getFlops() { return countElements(getDout()); }

LogicalResult TakePositionOp::verify() {
  return Dims(*this).match({{"input", getInput(), "BTC"},
                            {"position", getPosition(), "B"},
                            {"out", getOut(), "BC"}}); // C2
}

int64_t TakePositionOp::getFlops() { return 0; }

//===----------------------------------------------------------------------===//
// Layer normalisation
//===----------------------------------------------------------------------===//

static LogicalResult verifyEps(Operation *op, FloatAttr eps) {
  if (!eps.getValue().isFiniteNonZero() || eps.getValue().isNegative())
    return op->emitOpError("needs a finite 'eps' above 0, but got ") << eps;
  return success();
}

LogicalResult LayerNormOp::verify() {
  if (failed(Dims(*this).match({{"input", getInput(), ".C"},
                                {"gain", getGain(), "C"},
                                {"bias", getBias(), "C"},
                                {"mean", getMean(), "."},
                                {"rstd", getRstd(), "."}}))) // C2
    return failure();
  return verifyEps(*this, getEpsAttr()); // C3
}

/// An element: sum, difference, square and its sum (2), times `rstd`, times
/// gain plus bias (2). A row: two means, plus `eps`, root, reciprocal.
int64_t LayerNormOp::getFlops() {
  return multiply({countElements(getInput()), 7}) + 5 * countRows(getInput());
}

LogicalResult LayerNormBackwardOp::verify() {
  return Dims(*this).match({{"input", getInput(), ".C"},
                            {"gain", getGain(), "C"},
                            {"mean", getMean(), "."},
                            {"rstd", getRstd(), "."}}); // C2
}

/// An element: `n` (2), `g`, the sums (1 and 2), the formula (4). A row: two
/// means.
int64_t LayerNormBackwardOp::getFlops() {
  return multiply({countElements(getInput()), 10}) + 2 * countRows(getInput());
}

LogicalResult LayerNormBackwardGainOp::verify() {
  return Dims(*this).match({{"input", getInput(), ".C"},
                            {"mean", getMean(), "."},
                            {"rstd", getRstd(), "."},
                            {"dgain", getDgain(), "C"}}); // C2
}

/// An element: difference, times `rstd`, times `dout` and its sum (2).
int64_t LayerNormBackwardGainOp::getFlops() {
  return multiply({countElements(getInput()), 4});
}

LogicalResult SumRowsOp::verify() {
  return Dims(*this).match(
      {{"input", getInput(), ".C"}, {"out", getOut(), "C"}}); // C2
}

int64_t SumRowsOp::getFlops() { return countElements(getInput()); }

//===----------------------------------------------------------------------===//
// RMS normalisation
//===----------------------------------------------------------------------===//

/// Checks what nn.rms_norm and its gradients have in common: that the width of
/// `input` is a number of groups as wide as `gain`, and that there is an `rstd`
/// for each of them.
static LogicalResult verifyRMSNorm(Operation *op, Shaped input, Shaped gain,
                                   Value rstd) {
  Dims dims(op);
  if (failed(dims.match({input, gain})))
    return failure();
  int64_t width = dims['W'], group = dims['D'];
  if (width % group != 0) // C2
    return op->emitOpError("needs a width of '")
           << gain.name << "' that divides that of '" << input.name
           << "', but got " << group << " and " << width;
  SmallVector<int64_t> expected(getShape(input.value).drop_back());
  if (width != group)
    expected.push_back(width / group);
  if (getShape(rstd) != ArrayRef<int64_t>(expected)) // C3
    return op->emitOpError("needs 'rstd' to be ")
           << RankedTensorType::get(expected,
                                    Float32Type::get(op->getContext()))
           << " with H = " << width / group << " and D = " << group
           << ", but got " << rstd.getType();
  return success();
}

LogicalResult RMSNormOp::verify() {
  if (failed(verifyRMSNorm(*this, {"input", getInput(), ".W"},
                           {"gain", getGain(), "D"}, getRstd())))
    return failure();
  return verifyEps(*this, getEpsAttr()); // C4
}

/// An element: square and its sum (2), times `rstd`, times gain. A group: mean,
/// plus `eps`, root, reciprocal.
int64_t RMSNormOp::getFlops() {
  return multiply({countElements(getInput()), 4}) +
         4 * countElements(getRstd());
}

LogicalResult RMSNormBackwardOp::verify() {
  return verifyRMSNorm(*this, {"input", getInput(), ".W"},
                       {"gain", getGain(), "D"}, getRstd());
}

/// An element: `n`, `g`, the sum (2), the formula (3). A group: mean.
int64_t RMSNormBackwardOp::getFlops() {
  return multiply({countElements(getInput()), 7}) + countElements(getRstd());
}

LogicalResult RMSNormBackwardGainOp::verify() {
  return verifyRMSNorm(*this, {"input", getInput(), ".W"},
                       {"dgain", getDgain(), "D"}, getRstd());
}

/// An element: times `rstd`, times `dout` and its sum (2).
int64_t RMSNormBackwardGainOp::getFlops() {
  return multiply({countElements(getInput()), 3});
}

//===----------------------------------------------------------------------===//
// Projections
//===----------------------------------------------------------------------===//

static StringRef getWeightLetters(WeightLayout layout) {
  return layout == WeightLayout::InOut ? "KN" : "NK";
}

/// A multiply-add for each row of `activations` and element of `weight`.
static int64_t countGemmFlops(Value activations, Value weight) {
  return multiply({2, countRows(activations), countElements(weight)});
}

LogicalResult LinearOp::verify() {
  SmallVector<Shaped> shapes = {
      {"input", getInput(), ".K"},
      {"weight", getWeight(), getWeightLetters(getLayout())}};
  if (Value bias = getBias()) {
    Type element = getInput().getType().getElementType();
    if (getElementTypeOrSelf(bias) != element) // C1
      return emitOpError("needs a bias of ")
             << element << " like the input, but got " << bias.getType();
    shapes.push_back({"bias", bias, "N"});
  }
  shapes.push_back({"out", getOut(), ".N"});
  return Dims(*this).match(shapes); // C2
}

/// With a bias, one addition more for each element of the result.
int64_t LinearOp::getFlops() {
  return countGemmFlops(getInput(), getWeight()) +
         (getBias() ? countElements(getOut()) : 0);
}

bool LinearOp::isGemm() { return true; }

LogicalResult LinearBackwardInputOp::verify() {
  return Dims(*this).match(
      {{"dout", getDout(), ".N"},
       {"weight", getWeight(), getWeightLetters(getLayout())},
       {"dinput", getDinput(), ".K"}}); // C2
}

int64_t LinearBackwardInputOp::getFlops() {
  return countGemmFlops(getDout(), getWeight());
}

bool LinearBackwardInputOp::isGemm() { return true; }

LogicalResult LinearBackwardWeightOp::verify() {
  return Dims(*this).match(
      {{"input", getInput(), ".K"},
       {"dout", getDout(), ".N"},
       {"dweight", getDweight(), getWeightLetters(getLayout())}}); // C2
}

int64_t LinearBackwardWeightOp::getFlops() {
  return countGemmFlops(getInput(), getDweight());
}

bool LinearBackwardWeightOp::isGemm() { return true; }

//===----------------------------------------------------------------------===//
// Pointwise
//===----------------------------------------------------------------------===//

/// `tanh`: the argument of tanh (5: two products, a multiply-add, a product),
/// tanh, plus 1, half of `x`, the product. `erf`: 1 for its argument.
int64_t GeluOp::getFlops() {
  return multiply(
      {countElements(getInput()), getForm() == GeluForm::Tanh ? 9 : 5});
}

/// With `t = tanh(u)` of above (6), `u'` (3: `x^2` is there, a multiply-add, a
/// product) and `dout * (0.5 (1 + t) + 0.5 x (1 - t^2) u')` (9).
/// `erf`: `dout * (0.5 (1 + erf(x / sqrt(2))) + x exp(-x^2 / 2) / sqrt(2 pi))`.
int64_t GeluBackwardOp::getFlops() {
  return multiply(
      {countElements(getInput()), getForm() == GeluForm::Tanh ? 18 : 11});
}

/// The sigmoid (4: sign, exp, plus 1, reciprocal) and two products.
int64_t SwiGLUOp::getFlops() { return multiply({countElements(getOut()), 6}); }

/// The sigmoid (4); `gate * s` and its product with `dout`; and of the other
/// result 1 - s, a multiply-add, two products.
int64_t SwiGLUBackwardOp::getFlops() {
  return multiply({countElements(getDout()), 11});
}

int64_t AddOp::getFlops() { return countElements(getOut()); }

OpFoldResult ScaleOp::fold(FoldAdaptor adaptor) {
  return getFactor().isExactlyValue(1.0) ? OpFoldResult(getInput())
                                         : OpFoldResult();
}

int64_t ScaleOp::getFlops() { return countElements(getOut()); }

LogicalResult nn::verifyDropout(Operation *op, FloatAttr rate, int64_t stream,
                                PartAttr part, ArrayRef<int64_t> shape) {
  double value = rate.getValueAsDouble();
  if (!(value >= 0 && value < 1)) // C2
    return op->emitOpError("needs a rate in [0, 1), but got ") << rate;
  constexpr int64_t kMaxStream = std::numeric_limits<uint32_t>::max();
  if (stream < 0 || stream > kMaxStream) // C3
    return op->emitOpError("needs a stream in [0, 2^32), but got ") << stream;
  constexpr int64_t kMaxElements = int64_t(1) << 34;
  int64_t elements =
      multiply({multiply(shape), part ? part.getRanks() : int64_t(1)});
  if (value > 0 && elements > kMaxElements) // C4
    return op->emitOpError("needs at most ")
           << kMaxElements << " elements to draw for, but got " << elements;
  return part ? verifyPart(op, part, shape.size()) : success(); // C5
}

LogicalResult DropoutOp::verify() {
  return verifyDropout(*this, getRateAttr(), getStream(), getPartAttr(),
                       getShape(getInput()));
}

/// Every element is kept, and then it is not multiplied either.
OpFoldResult DropoutOp::fold(FoldAdaptor adaptor) {
  return getRate().isZero() ? OpFoldResult(getInput()) : OpFoldResult();
}

/// The product with `1 / (1 - rate)`; drawing is work on integers.
int64_t DropoutOp::getFlops() { return countElements(getOut()); }

OpFoldResult CastOp::fold(FoldAdaptor adaptor) {
  return getInput().getType() == getType() ? OpFoldResult(getInput())
                                           : OpFoldResult();
}

int64_t CastOp::getFlops() { return 0; }
