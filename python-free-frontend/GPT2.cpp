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
// its bias. Weights are [in, out].
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
  Value buildEmbedding(Value table);
  Value buildLayer(int64_t index, Value x0);
  Value buildAttention(const std::string &prefix, Value n1, int64_t stream);

  Value layerNorm(const Twine &prefix, StringRef name, Value input);
  /// A projection to `width` columns whose weight starts with deviation `std`.
  Value linear(StringRef module, const Twine &prefix, StringRef name,
               Value input, int64_t width, double std);

  /// Projections into the residual stream start smaller, so that its variance
  /// does not grow with the number of layers.
  double getResidualStd() const {
    return model.initializerRange / std::sqrt(2.0 * model.numLayers);
  }

  const Model &model;
  const Train &train;
  ForwardBuilder forward;
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
  int64_t inputs = cast<RankedTensorType>(input.getType()).getShape().back();
  Value weight = forward.addParameter(prefix + ".weight", {inputs, width},
                                      nn::Init::Normal, std);
  Value bias = forward.addParameter(prefix + ".bias", {width}, nn::Init::Zeros);
  return forward.linear(module, name, input, weight, bias,
                        nn::WeightLayout::InOut);
}

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

Value GPT2Builder::buildEmbedding(Value table) {
  Value positions = forward.addParameter(
      "transformer.wpe.weight", {model.numPositions, model.width},
      nn::Init::Normal, model.initializerRange);
  Value e = forward.embed("e", table);
  Value ep = forward.create<nn::AddPositionsOp>("embedding", "ep", e.getType(),
                                                e, positions);
  return forward.dropout("embedding", "epd", ep, model.embdDropout,
                         /*stream=*/0);
}

Value GPT2Builder::buildAttention(const std::string &prefix, Value n1,
                                  int64_t stream) {
  int64_t width = model.width;
  auto project = [&](StringRef name, int64_t part) {
    std::string hub = prefix + ".c_attn", own = hub + "." + name.str();
    Value weight = forward.addParameter(
        own + ".weight", {width, width}, nn::Init::Normal,
        model.initializerRange, {hub + ".weight", part, 3});
    Value bias = forward.addParameter(own + ".bias", {width}, nn::Init::Zeros,
                                      /*std=*/0, {hub + ".bias", part, 3});
    return forward.linear("attention", name, n1, weight, bias,
                          nn::WeightLayout::InOut);
  };
  Value q = project("q", 0), k = project("k", 1), v = project("v", 2);
  return forward.attention(q, k, v, stream);
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
  Value ad =
      forward.dropout("residual", "ad", a, model.residDropout, stream + 1);
  Value x1 = forward.add("x1", x0, ad);

  Value n2 = layerNorm(prefix + ".ln_2", "n2", x1);
  Value u = linear("mlp", prefix + ".mlp.c_fc", "u", n2, model.getInnerWidth(),
                   model.initializerRange);
  nn::GeluForm form =
      model.activation == "gelu" ? nn::GeluForm::Erf : nn::GeluForm::Tanh;
  Value g = forward.create<nn::GeluOp>("mlp", "g", u.getType(), u, form);
  Value y = linear("mlp", prefix + ".mlp.c_proj", "y", g, model.width,
                   getResidualStd());
  Value yd =
      forward.dropout("residual", "yd", y, model.residDropout, stream + 2);
  return forward.add("x2", x1, yd);
}

void GPT2Builder::build() {
  Value table = forward.addParameter("transformer.wte.weight",
                                     {model.vocabSize, model.width},
                                     nn::Init::Normal, model.initializerRange);
  Value hidden = buildEmbedding(table);
  for (int64_t i = 0; i < model.numLayers; ++i)
    hidden = buildLayer(i, hidden);
  forward.setLayer(-1);
  forward.finish(layerNorm("transformer.ln_f", "nf", hidden), table);
}

void reprise::frontend::buildGPT2(ModuleOp module,
                                  const Description &description) {
  GPT2Builder(module, description).build();
}
