//===- ModelBuilder.cpp - Builds a model from blocks ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One layer, from x0 to x2; what a family does not have is left out:
//
//   n1 = norm(x0)                 q, k, v = n1 Wq, n1 Wk, n1 Wv
//   qn, kn = norm(q), norm(k)     qr, kr = rotate(qn), rotate(kn)
//   ctx = attention(qr, kr, v)    a = ctx Wo
//   an = norm(a)                  x1 = x0 + dropout(an)
//   n2 = norm(x1)                 y = mlp(n2)
//   yn = norm(y)                  x2 = x1 + dropout(yn)
//
// Latent attention has, with the latents cq, which may be missing, and ckv:
//
//   cq = n1 Wqa, cqn = norm(cq)   q = cqn Wqb, or n1 Wq; qr = rotate(q)
//   ckv, kr = n1 Wkva             kvn = norm(ckv), kv = kvn Wkvb
//   krr = rotate(kr)              k, v = kv and, for all heads, krr
//
// In a layer with experts, of which token t has ids[t,:], y is, with the rows
// of all tokens sorted by expert:
//
//   r = n2 Wr in f32              id = the largest of r
//   w = softmax(r)[id]            pm = sort(id), wr = w[pm]
//   gt, u = n2[pm] Wg, n2[pm] Wu  of each row's expert
//   g = silu(gt) * u * wr         yr = g Wd, y = sum of a token's yr
//
// Where experts have groups, id are the largest of those of the best groups.
// With scores s = sigmoid(r), id are the largest of s plus a bias that is not
// trained, and w = s[id], divided by their sum or not. w is times a factor.
//
// An expert that all tokens share adds ys to y, some without sw:
//
//   gts, us = n2 Wg, n2 Wu        sw = sigmoid(n2 ws)
//   gs = silu(gts) * us * sw      ys = gs Wd
//
// A layer that predicts the token d behind the next reads the embedding of the
// token before that, e, and what the head reads for that, h: of the last norm,
// or of such a layer with d - 1:
//
//   en, hn = norm(e), norm(h)     ehn = en and hn side by side
//   eh = ehn Wp                   a layer from eh to x2, and nf = norm(x2)
//
// which the head reads; its loss is a mean over positions whose text goes on
// for so long.
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/BalanceBuilder.h"
#include "python-free-frontend/Families.h"
#include "python-free-frontend/Family.h"
#include "reprise/Dialect/NN/NNActivationOps.h"
#include "reprise/Support/ExpertRows.h"
#include "reprise/Support/Modules.h"

#include <cmath>

using namespace mlir;
using namespace reprise;
using namespace reprise::frontend;

namespace {
class ModelBuilder {
public:
  ModelBuilder(ModuleOp module, const Description &description)
      : description(description), model(description.model),
        blocks(description.family->blocks), names(description.family->tensors),
        forward(module, description), balance(forward, description) {}

  void build();

private:
  /// What surrounds a block in the residual stream.
  struct Around {
    StringRef normBefore, normAfter; ///< Names of tensors; empty: none.
    StringRef before, after;         ///< Values: of the norms,
    StringRef dropped, sum;          ///< and of what follows.
    int64_t stream;
  };

  nn::RotaryAttr getRotary(MLIRContext *context) const;
  Value buildEmbedding(Value table);
  Value buildFurtherLayer(int64_t depth, Value hidden, Value table);
  Value buildFurther(Value last, Value table, Value head, Value loss,
                     SmallVectorImpl<Measure> &shown);
  Value buildLayer(int64_t index, Value x0);
  Value buildAround(const Around &around, Value input,
                    function_ref<Value(Value)> buildBlock);
  Value buildAttention(Value input, int64_t stream);
  Value buildLatentAttention(Value input, int64_t stream);
  Value buildLatentQueries(Value input);
  Value buildActivation(Value u);
  Value buildMLP(Value input);
  /// The experts of each token, and their weights.
  struct Router {
    Value logits, ids, weights;
  };
  Router buildRouter(Value input);
  Value buildExperts(Value input);
  Value buildExpertsOfText(Value input);
  Value buildSharedExpert(Value input);
  /// The weights of all experts that each expert has one of, [experts, outputs,
  /// inputs].
  Value addExperts(StringRef tensor, int64_t outputs, int64_t inputs,
                   double std);

  /// Of groups of `width` columns, with the tensors of `tensor`; with the
  /// model's epsilon unless another is given.
  Value norm(StringRef module, const Twine &tensor, StringRef name, Value input,
             int64_t width, std::optional<double> epsilon = {});
  /// A projection to `width` columns whose weight starts with deviation `std`,
  /// with the tensors of `tensor`, which may be parts of published ones.
  Value linear(StringRef module, const Twine &tensor, StringRef name,
               Value input, int64_t width, BiasKind bias, double std,
               const Published &published = {});
  /// Of queries, keys or values: the `part` of the three.
  Value project(StringRef tensor, StringRef name, Value input, int64_t width,
                int64_t part);
  Value normProjection(StringRef tensor, StringRef name, Value input);
  /// The columns of each head that are turned begin with column `from`.
  Value rotate(StringRef module, StringRef name, Value input, int64_t heads,
               int64_t from = 0);

  /// The tensor of this layer.
  std::string inLayer(StringRef name) const {
    return (names.layer + Twine(layer) + name).str();
  }
  double getResidualStd() const {
    return blocks.scalesResidualInit
               ? model.initializerRange / std::sqrt(2.0 * model.numLayers)
               : model.initializerRange;
  }

  const Description &description;
  const Model &model;
  const Blocks &blocks;
  const TensorNames &names;
  ForwardBuilder forward;
  BalanceBuilder balance;
  Value rotary;
  int64_t layer = 0;
};
} // namespace

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

Value ModelBuilder::norm(StringRef module, const Twine &tensor, StringRef name,
                         Value input, int64_t width,
                         std::optional<double> given) {
  Value gain =
      forward.addParameter(tensor + ".weight", {width}, nn::Init::Ones);
  FloatAttr epsilon = forward.getF32(given.value_or(model.normEpsilon));
  SmallVector<int64_t> groups(
      cast<RankedTensorType>(input.getType()).getShape());
  groups.back() /= width;
  if (groups.back() == 1)
    groups.pop_back();
  RankedTensorType statistic = forward.getType(groups);
  if (blocks.norm == NormKind::RMSNorm)
    return forward
        .create<nn::RMSNormOp>(module, name,
                               TypeRange{input.getType(), statistic}, input,
                               gain, epsilon)
        .getOut();
  Value bias = forward.addParameter(tensor + ".bias", {width}, nn::Init::Zeros);
  return forward
      .create<nn::LayerNormOp>(module, name,
                               TypeRange{input.getType(), statistic, statistic},
                               input, gain, bias, epsilon)
      .getOut();
}

Value ModelBuilder::linear(StringRef module, const Twine &tensor,
                           StringRef name, Value input, int64_t width,
                           BiasKind bias, double std,
                           const Published &published) {
  int64_t inputs = cast<RankedTensorType>(input.getType()).getShape().back();
  bool isInOut = blocks.layout == nn::WeightLayout::InOut;
  auto publishedAs = [&](const char *end) {
    Published result = published;
    if (!result.hub.empty())
      result.hub += end;
    return result;
  };
  Value weight = forward.addParameter(
      tensor + ".weight", {isInOut ? inputs : width, isInOut ? width : inputs},
      nn::Init::Normal, std, publishedAs(".weight"));
  bool isGiven = module == "mlp" ? model.mlpBias : model.attentionBias;
  Value sum;
  if (bias == BiasKind::Always || (bias == BiasKind::ByKey && isGiven))
    sum = forward.addParameter(tensor + ".bias", {width}, nn::Init::Zeros,
                               /*std=*/0, publishedAs(".bias"));
  return forward.linear(module, name, input, weight, sum, blocks.layout);
}

Value ModelBuilder::rotate(StringRef module, StringRef name, Value input,
                           int64_t heads, int64_t from) {
  bool isInterleaved =
      blocks.attention == AttentionKind::Latent && model.isInterleaved;
  return forward.create<nn::RopeOp>(
      module, name, input.getType(), input, rotary, heads,
      from ? forward.getI64(from) : IntegerAttr(),
      isInterleaved ? nn::RopeStyle::Interleaved : nn::RopeStyle::HalfSplit);
}

/// With the numbers that the type uses; the description may have others.
nn::RotaryAttr ModelBuilder::getRotary(MLIRContext *context) const {
  const Rotary &given = description.rotary;
  Builder builder(context);
  auto number = [&](const std::optional<double> &value, bool isUsed) {
    return value && isUsed ? builder.getF64FloatAttr(*value) : FloatAttr();
  };
  nn::RotaryType type = *nn::symbolizeRotaryType(given.type);
  bool isLlama3 = type == nn::RotaryType::Llama3;
  bool isYarn = type == nn::RotaryType::Yarn;
  return nn::RotaryAttr::get(
      context, builder.getF64FloatAttr(model.ropeTheta), type,
      number(given.factor, type != nn::RotaryType::Default),
      number(given.lowFreqFactor, isLlama3),
      number(given.highFreqFactor, isLlama3),
      isLlama3 || isYarn ? given.originalPositions.value_or(0) : 0,
      number(given.betaFast, isYarn), number(given.betaSlow, isYarn),
      !isYarn || given.truncate, number(given.attentionFactor, isYarn),
      number(given.mscale, isYarn), number(given.mscaleAllDim, isYarn));
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

Value ModelBuilder::project(StringRef tensor, StringRef name, Value input,
                            int64_t width, int64_t part) {
  Published published;
  if (!names.queryKeyValue.empty())
    published = {inLayer(names.queryKeyValue), part, 3};
  return linear("attention", inLayer(tensor), name, input, width,
                blocks.queryKeyValueBias, model.initializerRange, published);
}

Value ModelBuilder::normProjection(StringRef tensor, StringRef name,
                                   Value input) {
  switch (blocks.queryKeyNorm) {
  case QueryKeyNorm::None:
    return input;
  case QueryKeyNorm::HeadByKey:
    if (!model.hasQueryKeyNorm)
      return input;
    [[fallthrough]];
  case QueryKeyNorm::Head:
    return norm("attention", inLayer(tensor), name, input,
                model.getHeadWidth());
  case QueryKeyNorm::Projection:
    return norm("attention", inLayer(tensor), name, input,
                cast<RankedTensorType>(input.getType()).getShape().back());
  }
  llvm_unreachable("a kind of norm");
}

Value ModelBuilder::buildAttention(Value input, int64_t stream) {
  int64_t width = model.getHeadWidth(), heads = model.numHeads;
  int64_t shared = model.getNumKeyValueHeads();
  Value q = project(names.query, "q", input, heads * width, /*part=*/0);
  Value k = project(names.key, "k", input, shared * width, /*part=*/1);
  Value v = project(names.value, "v", input, shared * width, /*part=*/2);
  q = normProjection(names.queryNorm, "qn", q);
  k = normProjection(names.keyNorm, "kn", k);
  if (blocks.positions == PositionKind::Rotary) {
    q = rotate("attention", "qr", q, heads);
    k = rotate("attention", "kr", k, shared);
  }
  Value ctx = forward.attention(q, k, v, stream);
  return linear("attention", inLayer(names.output), "a", ctx, model.width,
                blocks.outputBias, getResidualStd());
}

Value ModelBuilder::buildLatentQueries(Value input) {
  double std = model.initializerRange;
  int64_t width = model.numHeads * model.getHeadWidth();
  if (!model.queryRank)
    return linear("mla_up_proj", inLayer(names.query), "q", input, width,
                  BiasKind::Never, std);
  int64_t rank = *model.queryRank;
  Value cq = linear("attention", inLayer(names.queryDown), "cq", input, rank,
                    blocks.queryKeyValueBias, std);
  Value normed = norm("attention", inLayer(names.queryLatentNorm), "cqn", cq,
                      rank, model.latentEpsilon);
  return linear("mla_up_proj", inLayer(names.queryUp), "q", normed, width,
                BiasKind::Never, std);
}

Value ModelBuilder::buildLatentAttention(Value input, int64_t stream) {
  int64_t heads = model.numHeads, rank = model.latentRank;
  int64_t plain = model.plainWidth, turned = model.turnedWidth;
  double std = model.initializerRange;
  auto shape = cast<RankedTensorType>(input.getType()).getShape();
  auto getType = [&](int64_t width) {
    return forward.getActivationType({shape[0], shape[1], width});
  };
  Value q = buildLatentQueries(input);
  Value kva = linear("attention", inLayer(names.keyValueDown), "kva", input,
                     rank + turned, blocks.queryKeyValueBias, std);
  auto split = forward.create<nn::SplitColumnsOp>(
      "attention", "ckv", TypeRange{getType(rank), getType(turned)}, kva);
  Value kvn = norm("attention", inLayer(names.latentNorm), "kvn",
                   split.getLeft(), rank, model.latentEpsilon);
  Value kv = linear("mla_up_proj", inLayer(names.keyValueUp), "kv", kvn,
                    heads * (plain + model.valueWidth), BiasKind::Never, std);
  q = rotate("mla_up_proj", "qr", q, heads, plain);
  Value kr = rotate("mla_up_proj", "krr", split.getRight(), /*heads=*/1);
  auto k = forward.create<nn::LatentHeadsOp>(
      "mla_up_proj", "k",
      TypeRange{getType(heads * model.getHeadWidth()),
                getType(heads * model.valueWidth)},
      kv, kr, heads);
  Value ctx = forward.attention(q, k.getKey(), k.getValue(), stream);
  return linear("attention", inLayer(names.output), "a", ctx, model.width,
                blocks.outputBias, getResidualStd());
}

static constexpr StringLiteral kMLP = "mlp";

/// The one of an MLP without a gate.
Value ModelBuilder::buildActivation(Value u) {
  if (model.activation == "relu2")
    return forward.create<nn::SquaredReluOp>(kMLP, "g", u.getType(), u);
  nn::GeluForm form =
      model.activation == "gelu" ? nn::GeluForm::Erf : nn::GeluForm::Tanh;
  return forward.create<nn::GeluOp>(kMLP, "g", u.getType(), u, form);
}

Value ModelBuilder::buildMLP(Value input) {
  int64_t inner = model.getInnerWidth();
  auto widen = [&](StringRef tensor, StringRef name) {
    return linear(kMLP, inLayer(tensor), name, input, inner, blocks.mlpBias,
                  model.initializerRange);
  };
  Value g;
  if (blocks.mlp == MLPKind::SwiGLU) {
    Value gt = widen(names.gate, "gt"), u = widen(names.up, "u");
    g = forward.create<nn::SwiGLUOp>(kMLP, "g", gt.getType(), gt, u);
  } else {
    g = buildActivation(widen(names.up, "u"));
  }
  return linear(kMLP, inLayer(names.down), "y", g, model.width, blocks.mlpBias,
                getResidualStd());
}

//===----------------------------------------------------------------------===//
// Experts
//===----------------------------------------------------------------------===//

Value ModelBuilder::addExperts(StringRef tensor, int64_t outputs,
                               int64_t inputs, double std) {
  std::string published = inLayer(tensor) + ".weight", name = published;
  name.erase(name.find("*."), 2);
  return forward.addParameter(name, {model.numExperts, outputs, inputs},
                              nn::Init::Normal, std, {published});
}

ModelBuilder::Router ModelBuilder::buildRouter(Value input) {
  Builder builder(forward.getContext());
  int64_t experts = model.numExperts, groups = model.getNumGroups();
  bool isSigmoid = blocks.router == RouterKind::Sigmoid;
  auto unitIf = [&](bool condition) {
    return condition ? builder.getUnitAttr() : UnitAttr();
  };
  auto numberIf = [&](bool condition, int64_t number) {
    return condition ? forward.getI64(number) : IntegerAttr();
  };
  SmallVector<int64_t> shape(
      cast<RankedTensorType>(input.getType()).getShape());
  shape.back() = experts;
  // The choice is made of f32, in bf16 too.
  Value weight = forward.addParameter(
      inLayer(names.router) + ".weight", {experts, model.width},
      nn::Init::Normal, model.initializerRange, {}, /*isExact=*/true);
  Value bias;
  if (isSigmoid)
    bias = forward.addConstant(inLayer(names.routerBias), experts,
                               description.train.getBiasUpdateRate() > 0
                                   ? BalanceBuilder::getCountName(layer)
                                   : "");
  Value exact = forward.toF32("moe", "n2f", input);
  Value r = forward.create<nn::LinearOp>("moe", "r", forward.getType(shape),
                                         exact, weight, /*bias=*/Value(),
                                         nn::WeightLayout::OutIn);
  shape.back() = model.expertsPerToken;
  Value id = forward.create<nn::ChooseExpertsOp>(
      "moe", "id", RankedTensorType::get(shape, builder.getI32Type()), r, bias,
      unitIf(isSigmoid), numberIf(groups > 1, groups),
      numberIf(groups > 1, model.getKeptGroups()),
      unitIf(isSigmoid && groups > 1));
  Value w = forward.create<nn::ExpertWeightsOp>(
      "moe", "w", forward.getType(shape), r, id, unitIf(isSigmoid),
      unitIf(model.normalizesTopK),
      model.routedScale != 1 ? forward.getF32(model.routedScale) : FloatAttr());
  return {r, id, w};
}

Value ModelBuilder::buildExperts(Value input) {
  int64_t inner = model.getExpertWidth();
  Router router = buildRouter(input);
  auto perSlot = cast<RankedTensorType>(router.ids.getType());
  std::optional<int64_t> capacity = description.getExpertCapacity();
  int64_t rows =
      getMostRows(perSlot.getNumElements(), model.numExperts, capacity);
  Type i32 = perSlot.getElementType();
  auto perRow = RankedTensorType::get({rows}, i32);
  auto perExpert = RankedTensorType::get({model.numExperts + 1}, i32);
  auto pm = forward.create<nn::SortRowsOp>(
      "moe", "pm", TypeRange{perRow, perSlot, perExpert}, router.ids,
      capacity && description.train.dropPolicy == "probs" ? router.weights
                                                          : Value(),
      capacity ? forward.getI64(*capacity) : IntegerAttr());
  Value order = pm.getOrder(), inverse = pm.getInverse();
  Value wr = forward.create<nn::PermuteOp>("moe", "wr", forward.getType({rows}),
                                           router.weights, order, inverse);
  RankedTensorType hidden = forward.getActivationType({rows, inner});
  auto widen = [&](StringRef tensor, StringRef name) -> Value {
    Value weights =
        addExperts(tensor, inner, model.width, model.initializerRange);
    return forward.create<nn::GroupedLinearOp>(
        "moe", name, hidden, input, weights, pm.getOffsets(), order, inverse);
  };
  Value gt = widen(names.expertGate, "gt"), u = widen(names.expertUp, "u");
  Value g =
      forward.create<nn::WeightedSwiGLUOp>("moe_act", "g", hidden, gt, u, wr);
  Value down =
      addExperts(names.expertDown, model.width, inner, getResidualStd());
  Value yr = forward.create<nn::GroupedLinearOp>(
      "moe", "yr", forward.getActivationType({rows, model.width}), g, down,
      pm.getOffsets(), Value(), Value());
  balance.add({layer, router.logits, router.ids, pm.getOffsets()});
  bool isShared = blocks.experts != ExpertKind::Routed;
  Value y = forward.create<nn::CombineOp>("moe", isShared ? "yc" : "y",
                                          input.getType(), yr, order, inverse);
  if (!isShared)
    return y;
  Value ys = buildSharedExpert(input);
  return forward.create<nn::AddOp>("moe", "y", y.getType(), y, ys);
}

/// Positions behind the end of a text, which only layers that predict further
/// tokens have, go to no expert.
Value ModelBuilder::buildExpertsOfText(Value input) {
  int64_t behind = std::max<int64_t>(layer - model.numLayers, 0);
  if (behind == 0)
    return buildExperts(input);
  auto whole = cast<RankedTensorType>(input.getType());
  SmallVector<int64_t> shape(whole.getShape());
  shape[1] -= behind;
  Value known = forward.create<nn::CropPositionsOp>(
      getName(ModuleKind::LayerNorm), "n2_known", whole.clone(shape), input,
      forward.getI64(0));
  return forward.create<nn::PadPositionsOp>(getName(ModuleKind::MoE), "y_all",
                                            whole, buildExperts(known),
                                            forward.getI64(0));
}

/// The weight comes before the last GEMM, as those of other experts do.
Value ModelBuilder::buildSharedExpert(Value input) {
  auto project = [&](StringRef tensor, StringRef name, Value value,
                     int64_t width, double std) {
    return linear("shared_experts", inLayer(tensor), name, value, width,
                  BiasKind::Never, std);
  };
  double std = model.initializerRange;
  int64_t inner = model.getSharedWidth();
  Value gt = project(names.sharedGate, "gts", input, inner, std);
  Value u = project(names.sharedUp, "us", input, inner, std);
  auto finish = [&](Value g) {
    return project(names.sharedDown, "ys", g, model.width, getResidualStd());
  };
  if (blocks.experts == ExpertKind::RoutedPlusShared)
    return finish(forward.create<nn::SwiGLUOp>("shared_experts", "gs",
                                               gt.getType(), gt, u));
  Value gate = project(names.sharedWeight, "sg", input, 1, std);
  ArrayRef<int64_t> shape =
      cast<RankedTensorType>(input.getType()).getShape().drop_back();
  Value weight = forward.create<nn::GateWeightOp>("shared_experts", "sw",
                                                  forward.getType(shape), gate);
  return finish(forward.create<nn::WeightedSwiGLUOp>(
      "shared_experts", "gs", gt.getType(), gt, u, weight));
}

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

Value ModelBuilder::buildAround(const Around &around, Value input,
                                function_ref<Value(Value)> buildBlock) {
  Value value = input;
  if (!around.normBefore.empty())
    value = norm("layernorm", inLayer(around.normBefore), around.before, value,
                 model.width);
  value = buildBlock(value);
  if (!around.normAfter.empty())
    value = norm("layernorm", inLayer(around.normAfter), around.after, value,
                 model.width);
  value = forward.dropout("residual", around.dropped, value, model.residDropout,
                          around.stream);
  return forward.add(around.sum, input, value);
}

Value ModelBuilder::buildLayer(int64_t index, Value x0) {
  layer = index;
  forward.setLayer(index);
  // Streams count dropouts that are off as well: what is drawn for one does not
  // depend on the others, nor on the form of attention.
  int64_t stream = blocks.streamsBefore + blocks.streamsPerLayer * index;
  Value x1 = buildAround({names.attentionNorm, names.attentionNormAfter, "n1",
                          "an", "ad", "x1", stream + 1},
                         x0, [&](Value input) {
                           return blocks.attention == AttentionKind::Latent
                                      ? buildLatentAttention(input, stream)
                                      : buildAttention(input, stream);
                         });
  return buildAround(
      {names.mlpNorm, names.mlpNormAfter, "n2", "yn", "yd", "x2", stream + 2},
      x1, [&](Value input) {
        // What predicts a further token is as the last of the others.
        return model.hasExperts(std::min(index, model.numLayers - 1))
                   ? buildExpertsOfText(input)
                   : buildMLP(input);
      });
}

Value ModelBuilder::buildEmbedding(Value table) {
  if (blocks.positions != PositionKind::Learned)
    return forward.embed("e", table);
  Value positions = forward.addParameter(
      names.positions + Twine(".weight"), {model.numPositions, model.width},
      nn::Init::Normal, model.initializerRange);
  Value e = forward.embed("e", table);
  Value ep = forward.create<nn::AddPositionsOp>("embedding", "ep", e.getType(),
                                                e, positions);
  return forward.dropout("embedding", "epd", ep, model.embdDropout,
                         /*stream=*/0);
}

//===----------------------------------------------------------------------===//
// Further tokens
//===----------------------------------------------------------------------===//

static constexpr StringLiteral kFurther = getName(ModuleKind::FurtherToken);
static constexpr StringLiteral kLoss = getName(ModuleKind::Loss);

Value ModelBuilder::buildFurtherLayer(int64_t depth, Value hidden,
                                      Value table) {
  std::string end = std::to_string(depth);
  Value e = forward.embedFurther("e" + end, table, depth);
  layer = model.numLayers + depth - 1;
  forward.setLayer(layer);
  Value en = norm(kFurther, inLayer(names.embeddingNorm), "en", e, model.width);
  Value hn =
      norm(kFurther, inLayer(names.hiddenNorm), "hn", hidden, model.width);
  SmallVector<int64_t> shape(
      cast<RankedTensorType>(hidden.getType()).getShape());
  shape.back() *= 2;
  Value ehn = forward.create<nn::JoinColumnsOp>(
      kFurther, "ehn", forward.getActivationType(shape), en, hn);
  Value eh = linear(kFurther, inLayer(names.furtherProjection), "eh", ehn,
                    model.width, BiasKind::Never, model.initializerRange);
  Value x2 = buildLayer(layer, eh);
  forward.setLayer(-1);
  return norm(getName(ModuleKind::LayerNorm), inLayer(names.furtherNorm),
              "nf" + end, x2, model.width);
}

/// What is trained: `loss`, and the term of layers that predict further tokens,
/// which is shown beside others.
Value ModelBuilder::buildFurther(Value last, Value table, Value head,
                                 Value loss, SmallVectorImpl<Measure> &shown) {
  const Train &train = description.train;
  SmallVector<Measure> losses;
  Value hidden = last;
  for (int64_t depth = 1; depth <= train.furtherLayers; ++depth) {
    hidden = buildFurtherLayer(depth, hidden, table);
    losses.push_back(
        {"", forward.predictFurther(hidden, head, depth), /*termOf=*/""});
  }
  Value sum = forward.addTerms(losses.front().value,
                               ArrayRef(losses).drop_front(), "mtp_sum");
  FloatAttr factor =
      forward.getF32(train.furtherFactor / double(train.furtherLayers));
  shown.push_back({"mtp_loss",
                   forward.create<nn::ScaleOp>(
                       kLoss, "mtp_loss", forward.getType({}), sum, factor),
                   /*termOf=*/""});
  return forward.create<nn::TrainingTermOp>(kLoss, kLoss, forward.getType({}),
                                            loss, sum, factor);
}

void ModelBuilder::build() {
  if (blocks.positions == PositionKind::Rotary)
    rotary = forward.addRotary(getRotary(forward.getContext()));
  Value table = forward.addParameter(names.embedding + Twine(".weight"),
                                     {model.vocabSize, model.width},
                                     nn::Init::Normal, model.initializerRange);
  Value hidden = buildEmbedding(table);
  for (int64_t i = 0; i < model.numLayers; ++i)
    hidden = buildLayer(i, hidden);
  forward.setLayer(-1);
  Value last = norm("layernorm", names.finalNorm, "nf", hidden, model.width);
  Value ofModel = balance.buildModelTerm();
  bool isFurther = description.train.furtherLayers > 0;
  bool isSum = ofModel || isFurther || balance.hasTerms();
  Value head = forward.addHead(table);
  Value loss = forward.predict(last, head, forward.getTargets(), "",
                               isSum ? "lm_loss" : StringRef(kLoss));
  SmallVector<Measure> shown;
  if (isSum)
    shown.push_back({"lm_loss", loss, /*termOf=*/""});
  if (ofModel) {
    shown.push_back({"aux_loss", ofModel, /*termOf=*/""});
    loss = forward.addTerms(loss, shown.back(),
                            isFurther ? "eval_loss" : StringRef(kLoss));
  }
  if (isFurther)
    loss = buildFurther(last, table, head, loss, shown);
  llvm::append_range(shown, balance.buildTerms());
  llvm::append_range(shown, balance.buildCounts());
  forward.finish(loss, shown);
}

void reprise::frontend::buildForward(ModuleOp module,
                                     const Description &description) {
  ModelBuilder(module, description).build();
}
