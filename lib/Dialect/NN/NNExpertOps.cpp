//===- NNExpertOps.cpp - Mixtures of experts ------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Verifiers, costs and derivatives. What a GEMM costs does not depend on how
// rows are shared out: each is multiplied with one matrix.
//
//===----------------------------------------------------------------------===//

#include "Verify.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Interfaces/EvenRows.h"
#include "reprise/Support/ExpertRows.h"
#include "llvm/ADT/SmallString.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

bool nn::mayBeReplayed(Operation *op) {
  return (isMemoryEffectFree(op) || isCollective(op)) &&
         !op->hasTrait<nn::NeverReplayed>();
}

//===----------------------------------------------------------------------===//
// Routing
//===----------------------------------------------------------------------===//

static LogicalResult verifyRouting(Operation *op, ArrayRef<Shaped> shapes) {
  Dims dims(op);
  if (failed(dims.match(shapes))) // C1
    return failure();
  if (dims['S'] > dims['E']) // C2
    return op->emitOpError("needs at most as many slots as experts, but got ")
           << dims['S'] << " slots and " << dims['E'] << " experts";
  return success();
}

/// That groups of experts are equal, and those that are kept have experts
/// enough.
static LogicalResult verifyGroups(ChooseExpertsOp op) {
  int64_t experts = getShape(op.getLogits()).back();
  int64_t slots = getShape(op.getIds()).back();
  if (!op.getGroups() && !op.getKeep() && !op.getByTwo())
    return success();
  if (!op.getGroups() || !op.getKeep()) // C3
    return op.emitOpError("needs 'groups' and 'keep' together, and 'by_two' "
                          "only with them");
  int64_t groups = *op.getGroups(), keep = *op.getKeep();
  if (groups < 1 || experts % groups != 0) // C3
    return op.emitOpError("needs groups of equal size, but got ")
           << groups << " of " << experts << " experts";
  int64_t size = experts / groups;
  if (keep < 1 || keep > groups) // C3
    return op.emitOpError("needs to keep from 1 to all ")
           << groups << " groups, but got " << keep;
  if (slots > keep * size) // C3
    return op.emitOpError("needs at most as many slots as experts of the "
                          "groups that are kept, but got ")
           << slots << " slots and " << keep << " groups of " << size;
  if (op.getByTwo() && size < 2) // C3
    return op.emitOpError("needs groups of 2 experts at least with 'by_two', "
                          "but got ")
           << size;
  return success();
}

LogicalResult ChooseExpertsOp::verify() {
  SmallVector<Shaped> shapes = {{"logits", getLogits(), ".E"},
                                {"ids", getIds(), ".S"}};
  if (getBias())
    shapes.push_back({"bias", getBias(), "E"});
  if (failed(verifyRouting(*this, shapes)))
    return failure();
  return verifyGroups(*this);
}

/// What a sigmoid takes: a negation, an exponential, an addition, a quotient.
static constexpr int64_t kSigmoidFlops = 4;

/// What it takes to find one of many: a comparison with the last that was
/// found, one with the best so far, and a choice for each.
static constexpr int64_t kSearchFlops = 4;

/// Scores, and the search that goes over all of them for each slot, once more
/// to write down who was chosen, and for each group that is kept over all
/// groups.
int64_t ChooseExpertsOp::getFlops() {
  int64_t perScore = (getSigmoid() ? kSigmoidFlops : 0) + (getBias() ? 1 : 0);
  int64_t tokens = countElements(getLogits()) / getShape(getLogits()).back();
  perScore += kSearchFlops * (getShape(getIds()).back() + 1);
  int64_t flops = multiply({perScore, countElements(getLogits())});
  if (!getGroups())
    return flops;
  return flops + multiply({2, countElements(getLogits())}) +
         multiply({kSearchFlops, int64_t(*getKeep()) + 1, int64_t(*getGroups()),
                   tokens});
}

static LogicalResult verifyScale(Operation *op, std::optional<APFloat> scale) {
  if (!scale || (scale->isFiniteNonZero() && !scale->isNegative())) // C3
    return success();
  SmallString<16> text;
  scale->toString(text);
  return op->emitOpError("needs a finite 'scale' above 0, but got ") << text;
}

LogicalResult ExpertWeightsOp::verify() {
  if (failed(verifyScale(*this, getScale())))
    return failure();
  return verifyRouting(*this, {{"logits", getLogits(), ".E"},
                               {"ids", getIds(), ".S"},
                               {"weights", getWeights(), ".S"}});
}

/// A sigmoid of each slot and, of those that are normalized, an addition and a
/// quotient. An exponential is of a difference (2) and added (1): of each
/// expert, or of those that were chosen; each weight is a quotient. A scale is
/// a product more.
template <typename OpTy>
static int64_t countWeightFlops(OpTy op) {
  int64_t slots = countElements(op.getIds());
  int64_t scales = op.getScale() ? slots : 0;
  if (op.getSigmoid())
    return multiply({kSigmoidFlops + (op.getNormalized() ? 2 : 0), slots}) +
           scales;
  int64_t exponentials =
      op.getNormalized() ? slots : countElements(op.getLogits());
  return multiply({3, exponentials}) + slots + scales;
}

int64_t ExpertWeightsOp::getFlops() { return countWeightFlops(*this); }

LogicalResult ExpertWeightsBackwardOp::verify() {
  if (failed(verifyScale(*this, getScale())))
    return failure();
  return verifyRouting(*this, {{"logits", getLogits(), ".E"},
                               {"ids", getIds(), ".S"},
                               {"dweights", getDweights(), ".S"}});
}

/// The weights again; of each slot the sum (2); a difference and a product of
/// each slot, or of each expert, of which there is a quotient too. A sigmoid's
/// slope is a difference and two products, and without a sum that is all.
int64_t ExpertWeightsBackwardOp::getFlops() {
  int64_t slots = countElements(getIds()), flops = countWeightFlops(*this);
  if (getSigmoid())
    return flops + multiply({getNormalized() ? 7 : 3, slots});
  flops += multiply({2, slots});
  return flops + (getNormalized() ? multiply({2, slots})
                                  : multiply({3, countElements(getLogits())}));
}

LogicalResult SortRowsOp::verify() {
  if (failed(Dims(*this).match({{"ids", getIds(), ".S"},
                                {"inverse", getInverse(), ".S"},
                                {"order", getOrder(), "R"},
                                {"offsets", getOffsets(), "E"}}))) // C1
    return failure();
  if (countElements(getOffsets()) < 2) // C1
    return emitOpError("needs 'offsets' to be [E + 1] with an expert at least, "
                       "but got ")
           << getOffsets().getType();
  if (getWeights() &&
      (!getCapacity() || getShape(getWeights()) != getShape(getIds()))) // C3
    return emitOpError("needs 'weights' of the shape of 'ids', and a "
                       "'capacity', but got ")
           << getWeights().getType()
           << (getCapacity() ? "" : " and no capacity");
  if (getCapacity() && *getCapacity() < 1) // C2
    return emitOpError("needs a 'capacity' of at least 1, but got ")
           << *getCapacity();
  int64_t rows = getMostRows(countElements(getIds()),
                             countElements(getOffsets()) - 1, getCapacity());
  if (countElements(getOrder()) == rows)
    return success();
  if (getCapacity()) // C2
    return emitOpError("needs 'order' to have ")
           << rows << " rows for " << countElements(getIds()) << " ids, "
           << countElements(getOffsets()) - 1 << " experts and a capacity of "
           << *getCapacity() << ", but got " << getOrder().getType();
  return emitOpError("needs 'order' to have a row for each of the ") // C1
         << rows << " ids, but got " << getOrder().getType();
}

/// Ids are counted, and dealt out. The weights of an expert's places are halved
/// by the bits of their numbers, from the highest on.
int64_t SortRowsOp::getFlops() {
  constexpr int64_t kBits = 31;
  int64_t perId = 4 + (getWeights() ? 2 * kBits : 0);
  return multiply({perId, countElements(getIds())});
}

//===----------------------------------------------------------------------===//
// Rows and tokens
//===----------------------------------------------------------------------===//

/// Whether `order` can be that of places: `[R]`, with one row more at most.
static bool isOrderOf(Value order, Value inverse) {
  return getShape(order).size() == 1 &&
         countElements(order) <= countElements(inverse) + 1;
}

/// That `order` is `[R]`, and `inverse` has as many elements but one, or more.
static LogicalResult verifyOrder(Operation *op, Value order, Value inverse) {
  if (isOrderOf(order, inverse))
    return success();
  return op->emitOpError("needs 'order' to be [R] and 'inverse' of R - 1 "
                         "elements or more, but got ")
         << order.getType() << " and " << inverse.getType();
}

LogicalResult PermuteOp::verify() {
  if (getShape(getOut()) != getShape(getOrder()) ||
      getShape(getInput()) != getShape(getInverse())) // C1
    return emitOpError("needs 'out' of the shape of 'order', and 'input' of "
                       "that of 'inverse', but got ")
           << getOut().getType() << " and " << getInput().getType();
  if (isOrderOf(getOrder(), getInverse()) ||
      isOrderOf(getInverse(), getOrder())) // C1
    return success();
  return emitOpError("needs one of 'order' and 'inverse' to have one dimension "
                     "and at most one element more than the other, but got ")
         << getOrder().getType() << " and " << getInverse().getType();
}

int64_t PermuteOp::getFlops() { return 0; }

LogicalResult DispatchOp::verify() {
  if (failed(Dims(*this).match({{"input", getInput(), ".C"},
                                {"inverse", getInverse(), ".S"},
                                {"order", getOrder(), "R"},
                                {"out", getOut(), "RC"}}))) // C1
    return failure();
  return verifyOrder(*this, getOrder(), getInverse());
}

int64_t DispatchOp::getFlops() { return 0; }

LogicalResult CombineOp::verify() {
  if (failed(Dims(*this).match({{"input", getInput(), "RC"},
                                {"order", getOrder(), "R"},
                                {"inverse", getInverse(), ".S"},
                                {"out", getOut(), ".C"}}))) // C1
    return failure();
  return verifyOrder(*this, getOrder(), getInverse());
}

/// An addition for each row but the first of each token.
int64_t CombineOp::getFlops() {
  return multiply({getShape(getInverse()).back() - 1, countElements(getOut())});
}

//===----------------------------------------------------------------------===//
// GEMMs
//===----------------------------------------------------------------------===//

/// Checks `[R, letter]`, or with `order` `[..., letter]`, and what is the same
/// of all GEMMs.
static LogicalResult verifyGroups(Operation *op, SmallVector<Shaped> shapes,
                                  Value offsets, Value weight, Value order,
                                  Value inverse) {
  if (order) {
    shapes.push_back({"order", order, "R"});
    if (inverse)
      shapes.push_back({"inverse", inverse, ".S"});
  }
  if (failed(Dims(op).match(shapes))) // C2
    return failure();
  if (getShape(offsets).size() != 1 ||
      countElements(offsets) != getShape(weight)[0] + 1) // C2
    return op->emitOpError("needs 'offsets' to be [E + 1] with E = ")
           << getShape(weight)[0] << ", but got " << offsets.getType();
  if (bool(order) != bool(inverse)) // C3
    return op->emitOpError("needs 'order' and 'inverse' together");
  return order ? verifyOrder(op, order, inverse) : success();
}

/// A multiply-add for each row that comes and element of a matrix.
static int64_t countGroupedFlops(Operation *op, Value rows, Value weight) {
  return multiply({2, getEvenRows(op, kEvenNNRowsAttr, countRows(rows)),
                   getShape(weight)[1], getShape(weight)[2]});
}

LogicalResult GroupedLinearOp::verify() {
  return verifyGroups(*this,
                      {{"input", getInput(), getOrder() ? ".K" : "RK"},
                       {"weight", getWeight(), "ENK"},
                       {"out", getOut(), "RN"}},
                      getOffsets(), getWeight(), getOrder(), getInverse());
}

int64_t GroupedLinearOp::getFlops() {
  return countGroupedFlops(*this, getOut(), getWeight());
}

bool GroupedLinearOp::isGemm() { return true; }

LogicalResult GroupedLinearBackwardInputOp::verify() {
  return verifyGroups(*this,
                      {{"dout", getDout(), getOrder() ? ".N" : "RN"},
                       {"weight", getWeight(), "ENK"},
                       {"dinput", getDinput(), "RK"}},
                      getOffsets(), getWeight(), getOrder(), getInverse());
}

int64_t GroupedLinearBackwardInputOp::getFlops() {
  return countGroupedFlops(*this, getDinput(), getWeight());
}

bool GroupedLinearBackwardInputOp::isGemm() { return true; }

LogicalResult GroupedLinearBackwardWeightOp::verify() {
  if (bool(getOrder()) != bool(getGathered())) // C3
    return emitOpError("needs 'order' where rows are tokens, and only there");
  bool isInput = getGathered() == GatheredRows::Input;
  bool isDout = getGathered() == GatheredRows::Dout;
  return verifyGroups(*this,
                      {{"input", getInput(), isInput ? ".K" : "RK"},
                       {"dout", getDout(), isDout ? ".N" : "RN"},
                       {"dweight", getDweight(), "ENK"}},
                      getOffsets(), getDweight(), getOrder(), getInverse());
}

int64_t GroupedLinearBackwardWeightOp::getFlops() {
  Value rows = getGathered() == GatheredRows::Input ? getDout() : getInput();
  return countGroupedFlops(*this, rows, getDweight());
}

bool GroupedLinearBackwardWeightOp::isGemm() { return true; }

//===----------------------------------------------------------------------===//
// Activation
//===----------------------------------------------------------------------===//

LogicalResult WeightedSwiGLUOp::verify() {
  return Dims(*this).match(
      {{"gate", getGate(), ".F"}, {"weight", getWeight(), "."}}); // C2
}

/// nn.swiglu (6) and a product.
int64_t WeightedSwiGLUOp::getFlops() {
  return multiply({7, countElements(getOut())});
}

LogicalResult WeightedSwiGLUBackwardOp::verify() {
  return Dims(*this).match(
      {{"gate", getGate(), ".F"}, {"weight", getWeight(), "."}}); // C2
}

/// The gradient of nn.swiglu (11), the product with the weight, and of the sum
/// two products and an addition.
int64_t WeightedSwiGLUBackwardOp::getFlops() {
  return multiply({15, countElements(getDout())});
}

static LogicalResult verifyGate(Operation *op, StringRef name, Value gate,
                                Value weight) {
  Dims dims(op);
  if (failed(dims.match({{name, gate, ".C"}, {"weight", weight, "."}}))) // C1
    return failure();
  if (dims['C'] != 1) // C1
    return op->emitOpError("needs '")
           << name << "' to be [..., 1], but got " << gate.getType();
  return success();
}

LogicalResult GateWeightOp::verify() {
  return verifyGate(*this, "input", getInput(), getWeight());
}

/// A negation, an exponential and what is around it, an addition, a quotient.
int64_t GateWeightOp::getFlops() {
  return multiply({4, countElements(getWeight())});
}

LogicalResult GateWeightBackwardOp::verify() {
  return verifyGate(*this, "dinput", getDinput(), getWeight());
}

int64_t GateWeightBackwardOp::getFlops() {
  return multiply({3, countElements(getWeight())});
}

//===----------------------------------------------------------------------===//
// Balance
//===----------------------------------------------------------------------===//

LogicalResult CountRowsOp::verify() {
  if (getOffsets().empty() || getShape(getRows()).size() != 1) // C1
    return emitOpError(
               "needs 'offsets' of one layer at least, and 'rows' to be "
               "[E], but got ")
           << getOffsets().size() << " and " << getRows().getType();
  for (Value each : getOffsets())
    if (getShape(each).size() != 1 ||
        countElements(each) != countElements(getRows()) + 1) // C1
      return emitOpError("needs 'offsets' to be [E + 1] with E = ")
             << countElements(getRows()) << ", but got " << each.getType();
  return success();
}

/// Whole numbers.
int64_t CountRowsOp::getFlops() { return 0; }

/// Of all tokens `[E]`, or of each sequence `[B, E]`.
static LogicalResult verifyCounts(Operation *op, StringRef name, Value tokens,
                                  Value counts, SmallVector<Shaped> shapes) {
  bool bySequence = getShape(counts).size() == 2;
  shapes.push_back({"rows", counts, bySequence ? "BE" : "E"});
  Dims dims(op);
  if (failed(dims.match(shapes))) // C1
    return failure();
  ArrayRef<int64_t> shape = getShape(tokens);
  if (bySequence && (shape.size() != 3 || shape[0] != dims['B'])) // C1
    return op->emitOpError("needs '")
           << name << "' of three dimensions, the first " << dims['B']
           << ", for rows of each sequence, but got " << tokens.getType();
  return success();
}

LogicalResult CountChoicesOp::verify() {
  return verifyCounts(*this, "ids", getIds(), getRows(), {});
}

/// Whole numbers.
int64_t CountChoicesOp::getFlops() { return 0; }

LogicalResult ExpectedRowsOp::verify() {
  return verifyCounts(*this, "logits", getLogits(), getRows(),
                      {{"logits", getLogits(), ".E"}, {"out", getOut(), "."}});
}

/// An exponential is of a difference (2) and added (1); its product with the
/// rows is added (2). A quotient for each token.
template <typename OpTy>
static int64_t countExpectedFlops(OpTy op, int64_t tokens) {
  int64_t perLogit = (op.getSigmoid() ? kSigmoidFlops : 2) + 3;
  return multiply({perLogit, countElements(op.getLogits())}) + tokens;
}

int64_t ExpectedRowsOp::getFlops() {
  return countExpectedFlops(*this, countElements(getOut()));
}

LogicalResult ExpectedRowsBackwardOp::verify() {
  return verifyCounts(
      *this, "logits", getLogits(), getRows(),
      {{"logits", getLogits(), ".E"}, {"dout", getDout(), "."}});
}

/// As nn.expected_rows; a difference and a product for each element, of
/// sigmoids two more, and for each token another quotient.
int64_t ExpectedRowsBackwardOp::getFlops() {
  int64_t tokens = countElements(getDout());
  return countExpectedFlops(*this, tokens) + tokens +
         multiply({getSigmoid() ? 4 : 2, countElements(getLogits())});
}

LogicalResult SquaredLogSumExpOp::verify() {
  return Dims(*this).match(
      {{"logits", getLogits(), ".E"}, {"out", getOut(), "."}}); // C1
}

/// An exponential is of a difference (2) and added (1); of each token the
/// logarithm, what was taken off, and the square.
int64_t SquaredLogSumExpOp::getFlops() {
  return multiply({3, countElements(getLogits())}) +
         multiply({3, countElements(getOut())});
}

LogicalResult SquaredLogSumExpBackwardOp::verify() {
  return Dims(*this).match(
      {{"logits", getLogits(), ".E"}, {"dout", getDout(), "."}}); // C1
}

/// The same, and a product for each element; of each token two products and a
/// quotient in place of the square.
int64_t SquaredLogSumExpBackwardOp::getFlops() {
  return multiply({4, countElements(getLogits())}) +
         multiply({5, countElements(getDout())});
}

LogicalResult BalanceBiasOp::verify() {
  if (failed(Dims(*this).match({{"bias", getBias(), "E"}}))) // C1
    return failure();
  APFloat rate = getRate();
  if (rate.isFinite() && !rate.isNegative()) // C2
    return success();
  SmallString<16> text;
  rate.toString(text);
  return emitOpError("needs a finite 'rate' of at least 0, but got ") << text;
}

/// Rows are added up; a difference, its sign, a product and an addition.
int64_t BalanceBiasOp::getFlops() {
  return multiply({5, countElements(getBias())});
}

//===----------------------------------------------------------------------===//
// Derivatives
//===----------------------------------------------------------------------===//

LogicalResult ExpertWeightsOp::buildVjp(OpBuilder &builder,
                                        ArrayRef<Value> cotangents,
                                        ArrayRef<bool> needed,
                                        MutableArrayRef<Value> gradients) {
  if (needed[0])
    gradients[0] = ExpertWeightsBackwardOp::create(
        builder, getLoc(), getLogits().getType(), getLogits(), getIds(),
        cotangents[0], getSigmoidAttr(), getNormalizedAttr(), getScaleAttr());
  return success();
}

LogicalResult PermuteOp::buildVjp(OpBuilder &builder,
                                  ArrayRef<Value> cotangents,
                                  ArrayRef<bool> needed,
                                  MutableArrayRef<Value> gradients) {
  if (needed[0])
    gradients[0] = PermuteOp::create(builder, getLoc(), getInput().getType(),
                                     cotangents[0], getInverse(), getOrder());
  return success();
}

LogicalResult DispatchOp::buildVjp(OpBuilder &builder,
                                   ArrayRef<Value> cotangents,
                                   ArrayRef<bool> needed,
                                   MutableArrayRef<Value> gradients) {
  if (needed[0])
    gradients[0] = CombineOp::create(builder, getLoc(), getInput().getType(),
                                     cotangents[0], getOrder(), getInverse());
  return success();
}

LogicalResult CombineOp::buildVjp(OpBuilder &builder,
                                  ArrayRef<Value> cotangents,
                                  ArrayRef<bool> needed,
                                  MutableArrayRef<Value> gradients) {
  if (needed[0])
    gradients[0] = DispatchOp::create(builder, getLoc(), getInput().getType(),
                                      cotangents[0], getOrder(), getInverse());
  return success();
}

LogicalResult GroupedLinearOp::buildVjp(OpBuilder &builder,
                                        ArrayRef<Value> cotangents,
                                        ArrayRef<bool> needed,
                                        MutableArrayRef<Value> gradients) {
  Value dout = cotangents[0], doutOrder, doutInverse;
  std::optional<GatheredRows> gathered;
  if (getOrder())
    gathered = GatheredRows::Input;
  // Rows of a gradient that are those of tokens are read where they are, too;
  // of one operand.
  auto dispatch = dout.getDefiningOp<DispatchOp>();
  if (dispatch && !getOrder()) {
    gathered = GatheredRows::Dout;
    dout = dispatch.getInput();
    doutOrder = dispatch.getOrder(), doutInverse = dispatch.getInverse();
  }
  auto count = [&](Operation *op) {
    if (Attribute rows = (*this)->getAttr(kEvenNNRowsAttr))
      op->setAttr(kEvenNNRowsAttr, rows);
    return op->getResult(0);
  };
  if (needed[1])
    gradients[1] = count(GroupedLinearBackwardWeightOp::create(
        builder, getLoc(), getSumType(getWeight()), getInput(), dout,
        getOffsets(), doutOrder ? doutOrder : getOrder(),
        doutInverse ? doutInverse : getInverse(),
        gathered ? GatheredRowsAttr::get(getContext(), *gathered)
                 : GatheredRowsAttr()));
  if (!needed[0])
    return success();
  auto rows =
      RankedTensorType::get({countRows(getOut()), getShape(getWeight())[2]},
                            getInput().getType().getElementType());
  Value drows = count(GroupedLinearBackwardInputOp::create(
      builder, getLoc(), rows, dout, getWeight(), getOffsets(), doutOrder,
      doutInverse));
  gradients[0] =
      getOrder() ? CombineOp::create(builder, getLoc(), getInput().getType(),
                                     drows, getOrder(), getInverse())
                       .getOut()
                 : drows;
  return success();
}

LogicalResult WeightedSwiGLUOp::buildVjp(OpBuilder &builder,
                                         ArrayRef<Value> cotangents,
                                         ArrayRef<bool> needed,
                                         MutableArrayRef<Value> gradients) {
  Type type = getOut().getType();
  auto backward = WeightedSwiGLUBackwardOp::create(
      builder, getLoc(), TypeRange{type, type, getWeight().getType()},
      getGate(), getUp(), getWeight(), cotangents[0]);
  for (unsigned index : {0u, 1u, 2u})
    if (needed[index])
      gradients[index] = backward.getResult(index);
  return success();
}

LogicalResult GateWeightOp::buildVjp(OpBuilder &builder,
                                     ArrayRef<Value> cotangents,
                                     ArrayRef<bool> needed,
                                     MutableArrayRef<Value> gradients) {
  if (needed[0])
    gradients[0] = GateWeightBackwardOp::create(
        builder, getLoc(), getInput().getType(), getWeight(), cotangents[0]);
  return success();
}

LogicalResult ExpectedRowsOp::buildVjp(OpBuilder &builder,
                                       ArrayRef<Value> cotangents,
                                       ArrayRef<bool> needed,
                                       MutableArrayRef<Value> gradients) {
  if (needed[0])
    gradients[0] = ExpectedRowsBackwardOp::create(
        builder, getLoc(), getLogits().getType(), getLogits(), getRows(),
        cotangents[0], getSigmoidAttr());
  return success();
}

LogicalResult SquaredLogSumExpOp::buildVjp(OpBuilder &builder,
                                           ArrayRef<Value> cotangents,
                                           ArrayRef<bool> needed,
                                           MutableArrayRef<Value> gradients) {
  if (needed[0])
    gradients[0] = SquaredLogSumExpBackwardOp::create(
        builder, getLoc(), getLogits().getType(), getLogits(), cotangents[0]);
  return success();
}
