//===- GPT2.cpp - Builds GPT-2 ----------------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Radford et al., Language Models are Unsupervised Multitask Learners, 2019, in
// the form and with the names of Hugging Face's GPT2LMHeadModel. One layer:
//
//   n1 = layernorm(x0)            q, k, v = n1 Wq, n1 Wk, n1 Wv
//   ctx = attention(q, k, v)      a = ctx Wo        x1 = x0 + dropout(a)
//   n2 = layernorm(x1)            u = n2 W1         g = gelu(u)
//   y = g W2                      x2 = x1 + dropout(y)
//
// The published `attn.c_attn.weight` [C, 3C] is three parameters here: `.q`,
// `.k` and `.v` are its first, second and third C columns, and likewise for
// its bias.
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Families.h"

#include <cmath>

using namespace mlir;
using namespace reprise;
using namespace reprise::frontend;

namespace {
class GPT2Builder {
public:
  GPT2Builder(ModuleOp module, const Description &description)
      : model(description.model), train(description.train),
        forward(module, description) {}

  void build();

private:
  Value buildEmbedding(Value tokens, Value table);
  Value buildLayer(int64_t index, Value x0);
  Value buildAttention(const std::string &prefix, Value n1, int64_t stream);
  Value buildLoss(Value hidden, Value table, Value targets);

  Value layerNorm(const Twine &prefix, StringRef name, Value input);
  /// A projection to `width` columns whose weight starts with deviation `std`.
  Value linear(StringRef module, const Twine &prefix, StringRef name,
               Value input, int64_t width, double std);
  /// `input` itself if the rate is 0.
  Value dropout(StringRef module, StringRef name, Value input, double rate,
                int64_t stream);
  Value add(StringRef name, Value lhs, Value rhs);

  /// Projections into the residual stream start smaller, so that its variance
  /// does not grow with the number of layers.
  double getResidualStd() const {
    return model.initializerRange / std::sqrt(2.0 * model.numLayers);
  }

  const Model &model;
  const Train &train;
  ForwardBuilder forward;
  Value rng;
};
} // namespace

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

Value GPT2Builder::layerNorm(const Twine &prefix, StringRef name, Value input) {
  int64_t width = model.width;
  Value gain =
      forward.addParameter(prefix + ".weight", {width}, nn::Init::Ones);
  Value bias = forward.addParameter(prefix + ".bias", {width}, nn::Init::Zeros);
  RankedTensorType perRow =
      forward.getType({train.microBatchSize, train.seqLength});
  return forward
      .create<nn::LayerNormOp>(
          "layernorm", name, TypeRange{input.getType(), perRow, perRow}, input,
          gain, bias, forward.getF32(model.normEpsilon))
      .getOut();
}

Value GPT2Builder::linear(StringRef module, const Twine &prefix, StringRef name,
                          Value input, int64_t width, double std) {
  auto type = cast<RankedTensorType>(input.getType());
  Value weight =
      forward.addParameter(prefix + ".weight", {type.getShape().back(), width},
                           nn::Init::Normal, std);
  Value bias = forward.addParameter(prefix + ".bias", {width}, nn::Init::Zeros);
  SmallVector<int64_t> shape(type.getShape());
  shape.back() = width;
  return forward.create<nn::LinearOp>(module, name, forward.getType(shape),
                                      input, weight, bias,
                                      nn::WeightLayout::InOut);
}

Value GPT2Builder::dropout(StringRef module, StringRef name, Value input,
                           double rate, int64_t stream) {
  if (rate == 0)
    return input;
  return forward.create<nn::DropoutOp>(module, name, input.getType(), input,
                                       rng, forward.getF32(rate),
                                       forward.getI64(stream));
}

Value GPT2Builder::add(StringRef name, Value lhs, Value rhs) {
  return forward.create<nn::AddOp>("residual", name, lhs.getType(), lhs, rhs);
}

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

Value GPT2Builder::buildEmbedding(Value tokens, Value table) {
  Value positions = forward.addParameter(
      "transformer.wpe.weight", {model.numPositions, model.width},
      nn::Init::Normal, model.initializerRange);
  RankedTensorType type =
      forward.getType({train.microBatchSize, train.seqLength, model.width});
  Value e =
      forward.create<nn::EmbeddingOp>("embedding", "e", type, tokens, table);
  Value ep =
      forward.create<nn::AddPositionsOp>("embedding", "ep", type, e, positions);
  return dropout("embedding", "epd", ep, model.embdDropout, /*stream=*/0);
}

Value GPT2Builder::buildAttention(const std::string &prefix, Value n1,
                                  int64_t stream) {
  auto project = [&](StringRef name) {
    return linear("attention", prefix + ".c_attn." + name, name, n1,
                  model.width, model.initializerRange);
  };
  Value q = project("q"), k = project("k"), v = project("v");

  int64_t batch = train.microBatchSize, length = train.seqLength;
  IntegerAttr heads = forward.getI64(model.numHeads);
  FloatAttr scale = forward.getF32(
      1.0 / std::sqrt(static_cast<double>(model.width / model.numHeads)));
  if (train.attention == "flash") {
    RankedTensorType lse = forward.getType({batch, model.numHeads, length});
    return forward
        .create<nn::AttentionOp>(
            "core_attn", "ctx", TypeRange{q.getType(), lse}, q, k, v, rng,
            heads, scale, forward.getF32(model.attnDropout),
            forward.getI64(stream))
        .getOut();
  }
  RankedTensorType square =
      forward.getType({batch, model.numHeads, length, length});
  Value s = forward.create<nn::ScoresOp>("core_attn", "s", square, q, k, heads,
                                         scale);
  Value p = forward.create<nn::SoftmaxOp>("core_attn", "p", square, s);
  Value pd = dropout("core_attn", "pd", p, model.attnDropout, stream);
  return forward.create<nn::ContextOp>("core_attn", "ctx", q.getType(), pd, v,
                                       heads, forward.getF32(1.0), UnitAttr());
}

Value GPT2Builder::buildLayer(int64_t index, Value x0) {
  forward.setLayer(index);
  std::string prefix = "transformer.h." + std::to_string(index);
  // Streams count dropouts that are off as well: what is drawn for one does not
  // depend on the others, nor on the form of attention.
  int64_t stream = 1 + 3 * index;

  Value n1 = layerNorm(prefix + ".ln_1", "n1", x0);
  Value ctx = buildAttention(prefix + ".attn", n1, stream);
  Value a = linear("attention", prefix + ".attn.c_proj", "a", ctx, model.width,
                   getResidualStd());
  Value ad = dropout("residual", "ad", a, model.residDropout, stream + 1);
  Value x1 = add("x1", x0, ad);

  Value n2 = layerNorm(prefix + ".ln_2", "n2", x1);
  Value u = linear("mlp", prefix + ".mlp.c_fc", "u", n2, model.getInnerWidth(),
                   model.initializerRange);
  nn::GeluForm form =
      model.activation == "gelu" ? nn::GeluForm::Erf : nn::GeluForm::Tanh;
  Value g = forward.create<nn::GeluOp>("mlp", "g", u.getType(), u, form);
  Value y = linear("mlp", prefix + ".mlp.c_proj", "y", g, model.width,
                   getResidualStd());
  Value yd = dropout("residual", "yd", y, model.residDropout, stream + 2);
  return add("x2", x1, yd);
}

Value GPT2Builder::buildLoss(Value hidden, Value table, Value targets) {
  int64_t batch = train.microBatchSize, length = train.seqLength;
  Value nf = layerNorm("transformer.ln_f", "nf", hidden);
  Value head = table;
  if (!model.tieWordEmbeddings)
    head =
        forward.addParameter("lm_head.weight", {model.vocabSize, model.width},
                             nn::Init::Normal, model.initializerRange);
  Value logits = forward.create<nn::LinearOp>(
      "head", "logits", forward.getType({batch, length, model.vocabSize}), nf,
      head, /*bias=*/Value(), nn::WeightLayout::OutIn);
  RankedTensorType perRow = forward.getType({batch, length});
  auto losses = forward.create<nn::CrossEntropyOp>(
      "loss", "losses", TypeRange{perRow, perRow}, logits, targets);
  return forward.create<nn::MeanOp>("loss", "loss", forward.getType({}),
                                    losses.getLosses());
}

void GPT2Builder::build() {
  int64_t batch = train.microBatchSize, length = train.seqLength;
  Value tokens = forward.addInput("tokens", {batch, length});
  Value targets = forward.addInput("targets", {batch, length});
  rng = forward.addInput("rng", {4});
  Value table = forward.addParameter("transformer.wte.weight",
                                     {model.vocabSize, model.width},
                                     nn::Init::Normal, model.initializerRange);

  Value hidden = buildEmbedding(tokens, table);
  for (int64_t i = 0; i < model.numLayers; ++i)
    hidden = buildLayer(i, hidden);
  forward.setLayer(-1);
  forward.finish(buildLoss(hidden, table, targets));
}

void reprise::frontend::buildGPT2(ModuleOp module,
                                  const Description &description) {
  const Model &model = description.model;
  std::string name = "gpt2 " + std::to_string(model.numLayers) + "x" +
                     std::to_string(model.width);
  module->setAttr(nn::kModelAttr, StringAttr::get(module.getContext(), name));
  GPT2Builder(module, description).build();
}
