//===- Llama.cpp - Builds Llama, Qwen2 and Qwen3 ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Touvron et al., LLaMA, arXiv:2302.13971, in the form and with the names of
// Hugging Face's LlamaForCausalLM, and what Qwen2 (arXiv:2407.10671) and Qwen3
// (arXiv:2505.09388) change in it. One layer:
//
//   n1 = rmsnorm(x0)              q, k, v = n1 Wq, n1 Wk, n1 Wv
//   qn, kn = rmsnorm(q), rmsnorm(k) of each head, in Qwen3 alone
//   qr, kr = rotate(qn), rotate(kn)
//   ctx = attention(qr, kr, v)    a = ctx Wo        x1 = x0 + a
//   n2 = rmsnorm(x1)              gt, u = n2 Wg, n2 Wu
//   g = silu(gt) * u              y = g Wd          x2 = x1 + y
//
// Biases: on q, k and v in Qwen2; on these and a with `attention_bias`, on gt,
// u and y with `mlp_bias`. Weights are [out, in].
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Families.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::frontend;

namespace {
class LlamaBuilder {
public:
  LlamaBuilder(ModuleOp module, const Description &description)
      : description(description), model(description.model),
        forward(module, description) {}

  void build();

private:
  nn::RotaryAttr getRotary(MLIRContext *context) const;
  Value buildLayer(int64_t index, Value x0);
  Value buildAttention(const std::string &prefix, Value n1, int64_t stream);
  Value buildMLP(const std::string &prefix, Value n2);

  /// Of groups of `width` columns.
  Value rmsNorm(StringRef module, const Twine &prefix, StringRef name,
                Value input, int64_t width);
  /// A projection to `width` columns.
  Value linear(StringRef module, const Twine &prefix, StringRef name,
               Value input, int64_t width, bool hasBias);
  Value rotate(StringRef name, Value input, int64_t heads);

  const Description &description;
  const Model &model;
  ForwardBuilder forward;
  Value rotary;
};
} // namespace

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

Value LlamaBuilder::rmsNorm(StringRef module, const Twine &prefix,
                            StringRef name, Value input, int64_t width) {
  Value gain =
      forward.addParameter(prefix + ".weight", {width}, nn::Init::Ones);
  SmallVector<int64_t> groups(
      cast<RankedTensorType>(input.getType()).getShape());
  groups.back() /= width;
  if (groups.back() == 1)
    groups.pop_back();
  return forward
      .create<nn::RMSNormOp>(
          module, name, TypeRange{input.getType(), forward.getType(groups)},
          input, gain, forward.getF32(model.normEpsilon))
      .getOut();
}

Value LlamaBuilder::linear(StringRef module, const Twine &prefix,
                           StringRef name, Value input, int64_t width,
                           bool hasBias) {
  int64_t inputs = cast<RankedTensorType>(input.getType()).getShape().back();
  Value weight = forward.addParameter(prefix + ".weight", {width, inputs},
                                      nn::Init::Normal, model.initializerRange);
  Value bias;
  if (hasBias)
    bias = forward.addParameter(prefix + ".bias", {width}, nn::Init::Zeros);
  return forward.linear(module, name, input, weight, bias,
                        nn::WeightLayout::OutIn);
}

Value LlamaBuilder::rotate(StringRef name, Value input, int64_t heads) {
  return forward.create<nn::RopeOp>("attention", name, input.getType(), input,
                                    rotary, heads, nn::RopeStyle::HalfSplit);
}

/// With the numbers that the type uses; the description may have others.
nn::RotaryAttr LlamaBuilder::getRotary(MLIRContext *context) const {
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
// The model
//===----------------------------------------------------------------------===//

Value LlamaBuilder::buildAttention(const std::string &prefix, Value n1,
                                   int64_t stream) {
  int64_t width = model.getHeadWidth(), heads = model.numHeads;
  int64_t shared = model.getNumKeyValueHeads();
  auto project = [&](StringRef name, int64_t columns) {
    return linear("attention", prefix + "." + name + "_proj", name, n1, columns,
                  description.family == kQwen2 || model.attentionBias);
  };
  Value q = project("q", heads * width), k = project("k", shared * width);
  Value v = project("v", shared * width);
  if (description.family == kQwen3) {
    q = rmsNorm("attention", prefix + ".q_norm", "qn", q, width);
    k = rmsNorm("attention", prefix + ".k_norm", "kn", k, width);
  }
  Value qr = rotate("qr", q, heads), kr = rotate("kr", k, shared);
  Value ctx = forward.attention(qr, kr, v, stream);
  return linear("attention", prefix + ".o_proj", "a", ctx, model.width,
                model.attentionBias);
}

Value LlamaBuilder::buildMLP(const std::string &prefix, Value n2) {
  int64_t inner = model.getInnerWidth();
  Value gt =
      linear("mlp", prefix + ".gate_proj", "gt", n2, inner, model.mlpBias);
  Value u = linear("mlp", prefix + ".up_proj", "u", n2, inner, model.mlpBias);
  Value g = forward.create<nn::SwiGLUOp>("mlp", "g", gt.getType(), gt, u);
  return linear("mlp", prefix + ".down_proj", "y", g, model.width,
                model.mlpBias);
}

Value LlamaBuilder::buildLayer(int64_t index, Value x0) {
  forward.setLayer(index);
  std::string prefix = "model.layers." + std::to_string(index);
  Value n1 =
      rmsNorm("layernorm", prefix + ".input_layernorm", "n1", x0, model.width);
  // The one dropout of a layer has the layer's number as its stream.
  Value a = buildAttention(prefix + ".self_attn", n1, /*stream=*/index);
  Value x1 = forward.add("x1", x0, a);
  Value n2 = rmsNorm("layernorm", prefix + ".post_attention_layernorm", "n2",
                     x1, model.width);
  return forward.add("x2", x1, buildMLP(prefix + ".mlp", n2));
}

void LlamaBuilder::build() {
  rotary = forward.addRotary(getRotary(forward.getContext()));
  Value table = forward.addParameter("model.embed_tokens.weight",
                                     {model.vocabSize, model.width},
                                     nn::Init::Normal, model.initializerRange);
  Value hidden = forward.embed("e", table);
  for (int64_t i = 0; i < model.numLayers; ++i)
    hidden = buildLayer(i, hidden);
  forward.setLayer(-1);
  forward.finish(rmsNorm("layernorm", "model.norm", "nf", hidden, model.width),
                 table);
}

void reprise::frontend::buildLlama(ModuleOp module,
                                   const Description &description) {
  LlamaBuilder(module, description).build();
}
