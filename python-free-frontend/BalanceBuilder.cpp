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
// mean over layers, or of each layer by itself, divided by the slots. Those of
// a layer are added up once a step, whichever stages have the layers. The rows
// of a layer are those of the largest scores, whatever else has a part in the
// choice, and before any are dropped; each sequence may have its own. Those of
// a step are of all ranks and of its micro-batches so far: in place of rows,
// each expert has its share of them.
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/BalanceBuilder.h"
#include "python-free-frontend/Family.h"
#include "reprise/Dialect/NN/NNBalanceOps.h"
#include "reprise/Support/Modules.h"

#include <cmath>

using namespace mlir;
using namespace reprise;
using namespace reprise::frontend;

static constexpr StringLiteral kLoss = getName(ModuleKind::Loss);

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

Value BalanceBuilder::countRows(const Routing &routing, StringRef name) {
  RankedTensorType perExpert = forward.getType({model.numExperts});
  if (description.getExpertCapacity())
    return forward.create<nn::CountChoicesOp>("loss", name, perExpert,
                                              routing.ids);
  return forward.create<nn::CountRowsOp>("loss", name, perExpert,
                                         routing.offsets);
}

Value BalanceBuilder::countLargest(const Routing &routing, StringRef name,
                                   bool bySequence) {
  bool isSigmoid = blocks.router == RouterKind::Sigmoid;
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
/// has.
Value BalanceBuilder::buildBalance(const Routing &routing, Value rows,
                                   StringRef name, double factor) {
  Builder builder(forward.getContext());
  // Megatron's losses are of shares of sigmoids; others are of a softmax.
  bool isSigmoid = blocks.router == RouterKind::Sigmoid;
  ArrayRef<int64_t> shape =
      cast<RankedTensorType>(routing.logits.getType()).getShape().drop_back();
  std::string own = (name + Twine(routing.layer)).str();
  Value expected = forward.create<nn::ExpectedRowsOp>(
      "loss", own + "_tokens", forward.getType(shape), routing.logits, rows,
      isSigmoid ? builder.getUnitAttr() : UnitAttr());
  Value mean =
      forward.create<nn::MeanOp>("loss", own, forward.getType({}), expected);
  return forward.create<nn::ScaleOp>("loss", name, forward.getType({}), mean,
                                     forward.getF32(factor));
}

/// Those that are routed.
static double countTokens(const Routing &routing) {
  auto ids = cast<RankedTensorType>(routing.ids.getType());
  return double(ids.getNumElements() / ids.getShape().back());
}

Value BalanceBuilder::sumProbabilities(const Routing &routing) {
  std::string name = "aux_sums" + std::to_string(routing.layer);
  ArrayRef<int64_t> shape =
      cast<RankedTensorType>(routing.logits.getType()).getShape().drop_back();
  Value lse = forward.create<nn::RowLogSumExpOp>(
      kLoss, name + "_lse", forward.getType(shape), routing.logits);
  return forward.create<nn::SumProbabilitiesOp>(
      kLoss, name, forward.getType({model.numExperts}), routing.logits, lse);
}

/// What a layer adds depends on no other layer: sums so far are all that stages
/// pass on of it.
Value BalanceBuilder::buildModelTerm() {
  if (!model.hasAuxLoss || routings.empty())
    return {};
  Value rows, sums;
  for (const Routing &routing : routings) {
    std::string layer = std::to_string(routing.layer);
    rows = addTerms("aux_rows_to" + layer, rows,
                    countRows(routing, "aux_rows" + layer));
    sums = addTerms("aux_sums_to" + layer, sums, sumProbabilities(routing));
  }
  double layers = double(routings.size());
  double tokens = countTokens(routings.front());
  double experts = double(model.numExperts);
  return forward.create<nn::BalanceLossOp>(
      kLoss, "aux", forward.getType({}), rows, sums,
      forward.getF32(model.auxLossCoefficient * (experts / tokens) /
                     (tokens * layers * layers)));
}

Value BalanceBuilder::buildLayerTerm(const Routing &routing, bool bySequence,
                                     double factor) {
  double sequences = bySequence ? double(description.train.microBatchSize) : 1;
  factor *= (double(model.numExperts) / (countTokens(routing) / sequences)) /
            double(std::max<int64_t>(model.expertsPerToken, 1));
  std::string name =
      (bySequence ? "seq_aux_of" : "aux_of") + std::to_string(routing.layer);
  return buildBalance(
      routing, countLargest(routing, name + "_rows", bySequence), name, factor);
}

Value BalanceBuilder::buildStepTerm(const Routing &routing, double factor) {
  std::string end = std::to_string(routing.layer);
  std::string measure = "global" + end, name = "global_aux_of" + end;
  Value rows = countLargest(routing, name + "_rows", /*bySequence=*/false);
  counted.push_back({measure, rows, /*termOf=*/""});
  auto shares = forward.create<nn::RowSharesOp>("loss", name + "_shares",
                                                rows.getType(), rows);
  shares->setAttr(nn::kSoFarAttr,
                  Builder(forward.getContext()).getStringAttr(measure));
  // Of even shares, 1 / experts, that is the factor.
  return buildBalance(routing, shares, name, factor * double(model.numExperts));
}

Value BalanceBuilder::buildTerm(const Routing &routing, StringRef type) {
  const Train &train = description.train;
  if (type == "z_loss")
    return buildLogitsTerm(routing);
  double factor = train.getBalanceFactor(type);
  if (type == "global_aux_loss")
    return buildStepTerm(routing, factor);
  return buildLayerTerm(routing, type == "seq_aux_loss", factor);
}

Value BalanceBuilder::buildLogitsTerm(const Routing &routing) {
  ArrayRef<int64_t> shape =
      cast<RankedTensorType>(routing.logits.getType()).getShape().drop_back();
  std::string name = "z_of" + std::to_string(routing.layer);
  Value squares = forward.create<nn::SquaredLogSumExpOp>(
      "loss", name + "_tokens", forward.getType(shape), routing.logits);
  Value mean = forward.create<nn::MeanOp>("loss", name + "_mean",
                                          forward.getType({}), squares);
  return forward.create<nn::ScaleOp>(
      "loss", name, forward.getType({}), mean,
      forward.getF32(description.train.moeZLoss));
}

bool BalanceBuilder::hasTerms() const {
  const Train &train = description.train;
  return !routings.empty() && (train.balancesLayers() || train.moeZLoss > 0);
}

SmallVector<Measure> BalanceBuilder::buildTerms() {
  const Train &train = description.train;
  SmallVector<StringRef> types;
  for (StringRef type : train.balancing)
    if (train.getBalanceFactor(type) > 0)
      types.push_back(type);
  if (train.moeZLoss > 0)
    types.push_back("z_loss");
  SmallVector<Measure> terms;
  for (StringRef type : types)
    for (const Routing &routing : routings)
      terms.push_back({(type + ".layer" + Twine(routing.layer)).str(),
                       buildTerm(routing, type), type.str()});
  return terms;
}

SmallVector<Measure> BalanceBuilder::buildCounts() {
  const Train &train = description.train;
  SmallVector<Measure> counts = counted;
  if (!train.showsLoads && train.getBiasUpdateRate() == 0)
    return counts;
  for (const Routing &routing : routings) {
    std::string name = getCountName(routing.layer);
    counts.push_back({name,
                      forward.create<nn::CountRowsOp>(
                          "loss", name + "_rows",
                          forward.getType({model.numExperts}), routing.offsets),
                      /*termOf=*/""});
  }
  return counts;
}
