//===- BalanceBuilder.cpp - What keeps experts in balance -----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Losses for the balance of experts are means over tokens of how many rows a
// token's expert has, times experts / tokens, so that they are the number of
// slots where all experts have as many rows: with those of all layers, and the
// mean over layers, or of each layer by itself, divided by the slots. The rows
// of a layer are those of the largest scores, whatever else has a part in the
// choice, and before any are dropped; each sequence may have its own. Those of
// a step are of all ranks and of its micro-batches so far: in place of rows,
// each expert has its share of them.
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/BalanceBuilder.h"
#include "python-free-frontend/Family.h"
#include "reprise/Dialect/NN/NNBalanceOps.h"

#include <cmath>

using namespace mlir;
using namespace reprise;
using namespace reprise::frontend;

BalanceBuilder::BalanceBuilder(ForwardBuilder &forward,
                               const Description &description)
    : description(description), model(description.model),
      blocks(description.family->blocks), forward(forward) {}

/// As Megatron rounds it: the mean first, and then up.
std::optional<int64_t> Description::getExpertCapacity() const {
  if (!train.capacityFactor)
    return std::nullopt;
  int64_t tokens = train.microBatchSize * train.seqLength;
  double mean =
      double(tokens * model.expertsPerToken) / double(model.numExperts);
  double capacity = std::ceil(mean * *train.capacityFactor);
  // An expert has a row of a token at most.
  if (capacity >= double(tokens))
    return std::nullopt;
  return int64_t(capacity);
}

Value BalanceBuilder::addTerms(StringRef name, Value a, Value b) {
  return !a ? b
            : Value(forward.create<nn::AddOp>("loss", name, b.getType(), a, b));
}

Value BalanceBuilder::countRows(ArrayRef<Routing> layers, StringRef name) {
  RankedTensorType perExpert = forward.getType({model.numExperts});
  if (!description.getExpertCapacity()) {
    SmallVector<Value> offsets = llvm::map_to_vector(
        layers, [](const Routing &routing) { return routing.offsets; });
    return forward.create<nn::CountRowsOp>("loss", name, perExpert, offsets);
  }
  Value sum;
  for (const Routing &routing : layers) {
    std::string own = (name + Twine(routing.layer)).str();
    Value rows =
        forward.create<nn::CountChoicesOp>("loss", own, perExpert, routing.ids);
    sum = addTerms(own + "_sum", sum, rows);
  }
  return sum;
}

Value BalanceBuilder::countLargest(const Routing &routing, StringRef name) {
  bool isSigmoid = blocks.router == RouterKind::Sigmoid;
  bool bySequence = description.train.balancing == "seq_aux_loss";
  bool isChosen = !isSigmoid && model.getNumGroups() == 1;
  if (isChosen && !bySequence)
    return countRows(routing, name);
  Value ids = routing.ids;
  if (!isChosen) {
    Builder builder(forward.getContext());
    ids = forward.create<nn::ChooseExpertsOp>(
        "loss", (name + "_ids").str(), ids.getType(), routing.logits,
        /*bias=*/Value(), isSigmoid ? builder.getUnitAttr() : UnitAttr(),
        /*groups=*/IntegerAttr(), /*keep=*/IntegerAttr(), UnitAttr());
  }
  SmallVector<int64_t> shape = {model.numExperts};
  if (bySequence)
    shape.insert(shape.begin(), description.train.microBatchSize);
  return forward.create<nn::CountChoicesOp>("loss", name,
                                            forward.getType(shape), ids);
}

/// `factor` times the mean over tokens of the rows that the expert of a token
/// has, of `routings`, added up.
Value BalanceBuilder::buildBalance(ArrayRef<Routing> layers, Value rows,
                                   StringRef name, double factor) {
  Builder builder(forward.getContext());
  // Megatron's losses are of shares of sigmoids; others are of a softmax.
  bool isSigmoid = blocks.router == RouterKind::Sigmoid;
  Value sum;
  for (const Routing &routing : layers) {
    ArrayRef<int64_t> shape =
        cast<RankedTensorType>(routing.logits.getType()).getShape().drop_back();
    std::string own = (name + Twine(routing.layer)).str();
    Value expected = forward.create<nn::ExpectedRowsOp>(
        "loss", own + "_tokens", forward.getType(shape), routing.logits, rows,
        isSigmoid ? builder.getUnitAttr() : UnitAttr());
    Value mean =
        forward.create<nn::MeanOp>("loss", own, forward.getType({}), expected);
    sum = addTerms(own + "_sum", sum, mean);
  }
  return forward.create<nn::ScaleOp>("loss", name, forward.getType({}), sum,
                                     forward.getF32(factor));
}

/// Those that are routed.
static double countTokens(const Routing &routing) {
  auto ids = cast<RankedTensorType>(routing.ids.getType());
  return double(ids.getNumElements() / ids.getShape().back());
}

Value BalanceBuilder::buildAuxiliaryLoss() {
  const Train &train = description.train;
  double layers = double(routings.size());
  double experts = double(model.numExperts);
  Value sum;
  if (model.hasAuxLoss && !routings.empty())
    sum = buildBalance(routings, countRows(routings, "aux_rows"), "aux",
                       model.auxLossCoefficient *
                           (experts / countTokens(routings.front())) /
                           (layers * layers));
  bool bySequence = train.balancing == "seq_aux_loss";
  double sequences = bySequence ? double(train.microBatchSize) : 1;
  if (train.getBalanceFactor() > 0 && !train.balancesStep())
    for (const Routing &routing : routings) {
      double factor = train.getBalanceFactor() *
                      (experts / (countTokens(routing) / sequences)) /
                      double(std::max<int64_t>(model.expertsPerToken, 1));
      std::string name = "aux_of" + std::to_string(routing.layer);
      Value rows = countLargest(routing, name + "_rows");
      sum = addTerms("aux_sum", sum, buildBalance(routing, rows, name, factor));
    }
  return sum;
}

Measure BalanceBuilder::buildStepTerm() {
  const Train &train = description.train;
  Value sum;
  if (train.balancesStep())
    for (const Routing &routing : routings) {
      std::string end = std::to_string(routing.layer);
      std::string measure = "global" + end, name = "global_aux_of" + end;
      Value rows = countLargest(routing, name + "_rows");
      counted.push_back({measure, rows});
      auto shares = forward.create<nn::RowSharesOp>("loss", name + "_shares",
                                                    rows.getType(), rows);
      shares->setAttr(nn::kSoFarAttr,
                      Builder(forward.getContext()).getStringAttr(measure));
      // Of even shares, 1 / experts, that is the factor.
      double factor = train.getBalanceFactor() * double(model.numExperts);
      sum = addTerms("global_aux_sum", sum,
                     buildBalance(routing, shares, name, factor));
    }
  return {"global_aux_loss", sum};
}

Value BalanceBuilder::buildLogitsLoss() {
  double factor = description.train.moeZLoss;
  if (factor == 0 || routings.empty())
    return {};
  Value sum;
  for (const Routing &routing : routings) {
    ArrayRef<int64_t> shape =
        cast<RankedTensorType>(routing.logits.getType()).getShape().drop_back();
    std::string own = "z" + std::to_string(routing.layer);
    Value squares = forward.create<nn::SquaredLogSumExpOp>(
        "loss", own + "_tokens", forward.getType(shape), routing.logits);
    Value mean =
        forward.create<nn::MeanOp>("loss", own, forward.getType({}), squares);
    sum = addTerms(own + "_sum", sum, mean);
  }
  return forward.create<nn::ScaleOp>("loss", "z", forward.getType({}), sum,
                                     forward.getF32(factor));
}

SmallVector<Measure> BalanceBuilder::buildTerms() {
  SmallVector<Measure> terms;
  if (Value auxiliary = buildAuxiliaryLoss())
    terms.push_back({"aux_loss", auxiliary});
  if (Value ofLogits = buildLogitsLoss())
    terms.push_back({"z_loss", ofLogits});
  return terms;
}

SmallVector<Measure> BalanceBuilder::buildCounts() {
  const Train &train = description.train;
  SmallVector<Measure> counts = counted;
  if (!train.showsLoads && train.getBiasUpdateRate() == 0)
    return counts;
  for (const Routing &routing : routings) {
    std::string name = getCountName(routing.layer);
    counts.push_back(
        {name, forward.create<nn::CountRowsOp>(
                   "loss", name + "_rows", forward.getType({model.numExperts}),
                   routing.offsets)});
  }
  return counts;
}
