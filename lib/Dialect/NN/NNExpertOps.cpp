//===- NNExpertOps.cpp - Mixtures of experts ------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Verifiers, costs and derivatives. What a product costs does not depend on how
// rows are shared out: each is multiplied with one matrix.
//
//===----------------------------------------------------------------------===//

#include "Verify.h"
#include "reprise/Dialect/NN/NNOps.h"
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

/// Comparisons are no arithmetic, scores are.
int64_t ChooseExpertsOp::getFlops() {
  int64_t perScore = (getSigmoid() ? kSigmoidFlops : 0) + (getBias() ? 1 : 0);
  return multiply({perScore, countElements(getLogits())});
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
  if (countElements(getOrder()) != countElements(getIds())) // C1
    return emitOpError("needs 'order' to have a row for each of the ")
           << countElements(getIds()) << " ids, but got "
           << getOrder().getType();
  if (countElements(getOffsets()) < 2) // C1
    return emitOpError("needs 'offsets' to be [E + 1] with an expert at least, "
                       "but got ")
           << getOffsets().getType();
  return success();
}

int64_t SortRowsOp::getFlops() { return 0; }

//===----------------------------------------------------------------------===//
// Rows and tokens
//===----------------------------------------------------------------------===//

/// That `order` is `[R]`, and `inverse` has as many elements.
static LogicalResult verifyOrder(Operation *op, Value order, Value inverse) {
  if (getShape(order).size() == 1 &&
      countElements(order) == countElements(inverse))
    return success();
  return op->emitOpError("needs 'order' to be [R] and 'inverse' of as many "
                         "elements, but got ")
         << order.getType() << " and " << inverse.getType();
}

LogicalResult PermuteOp::verify() {
  if (getShape(getOut()) != getShape(getOrder()) ||
      getShape(getInput()) != getShape(getInverse())) // C1
    return emitOpError("needs 'out' of the shape of 'order', and 'input' of "
                       "that of 'inverse', but got ")
           << getOut().getType() << " and " << getInput().getType();
  if (countElements(getOrder()) != countElements(getInverse())) // C1
    return emitOpError("needs 'order' and 'inverse' of as many elements, but "
                       "got ")
           << getOrder().getType() << " and " << getInverse().getType();
  return success();
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
  return countElements(getInput()) - countElements(getOut());
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Checks `[R, letter]`, or with `order` `[..., letter]`, and what is the same
/// of all products.
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

/// A multiply-add for each row and element of a matrix.
static int64_t countGroupedFlops(int64_t rows, Value weight) {
  return multiply({2, rows, getShape(weight)[1], getShape(weight)[2]});
}

LogicalResult GroupedLinearOp::verify() {
  return verifyGroups(*this,
                      {{"input", getInput(), getOrder() ? ".K" : "RK"},
                       {"weight", getWeight(), "ENK"},
                       {"out", getOut(), "RN"}},
                      getOffsets(), getWeight(), getOrder(), getInverse());
}

int64_t GroupedLinearOp::getFlops() {
  return countGroupedFlops(countRows(getOut()), getWeight());
}

bool GroupedLinearOp::isProduct() { return true; }

LogicalResult GroupedLinearBackwardInputOp::verify() {
  return verifyGroups(*this,
                      {{"dout", getDout(), getOrder() ? ".N" : "RN"},
                       {"weight", getWeight(), "ENK"},
                       {"dinput", getDinput(), "RK"}},
                      getOffsets(), getWeight(), getOrder(), getInverse());
}

int64_t GroupedLinearBackwardInputOp::getFlops() {
  return countGroupedFlops(countRows(getDinput()), getWeight());
}

bool GroupedLinearBackwardInputOp::isProduct() { return true; }

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
  return countGroupedFlops(countRows(rows), getDweight());
}

bool GroupedLinearBackwardWeightOp::isProduct() { return true; }

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

LogicalResult ExpectedRowsOp::verify() {
  return Dims(*this).match({{"logits", getLogits(), ".E"},
                            {"rows", getRows(), "E"},
                            {"out", getOut(), "."}}); // C1
}

/// An exponential is of a difference (2) and added (1); its product with the
/// rows is added (2). A quotient for each token.
int64_t ExpectedRowsOp::getFlops() {
  return multiply({5, countElements(getLogits())}) + countElements(getOut());
}

LogicalResult ExpectedRowsBackwardOp::verify() {
  return Dims(*this).match({{"logits", getLogits(), ".E"},
                            {"rows", getRows(), "E"},
                            {"dout", getDout(), "."}}); // C1
}

/// As nn.expected_rows; a difference and a product for each element, and for
/// each token another quotient.
int64_t ExpectedRowsBackwardOp::getFlops() {
  return multiply({7, countElements(getLogits())}) +
         multiply({2, countElements(getDout())});
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
  if (needed[1])
    gradients[1] = GroupedLinearBackwardWeightOp::create(
        builder, getLoc(), getSumType(getWeight()), getInput(), dout,
        getOffsets(), doutOrder ? doutOrder : getOrder(),
        doutInverse ? doutInverse : getInverse(),
        gathered ? GatheredRowsAttr::get(getContext(), *gathered)
                 : GatheredRowsAttr());
  if (!needed[0])
    return success();
  auto rows =
      RankedTensorType::get({countRows(getOut()), getShape(getWeight())[2]},
                            getInput().getType().getElementType());
  Value drows = GroupedLinearBackwardInputOp::create(
      builder, getLoc(), rows, dout, getWeight(), getOffsets(), doutOrder,
      doutInverse);
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
    gradients[0] =
        ExpectedRowsBackwardOp::create(builder, getLoc(), getLogits().getType(),
                                       getLogits(), getRows(), cotangents[0]);
  return success();
}
