//===- ForwardBuilder.cpp - What builders of models share -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/ForwardBuilder.h"

#include "reprise/Dialect/NN/Terms.h"
#include "reprise/Support/Modules.h"

#include <cmath>

using namespace mlir;
using namespace reprise;
using namespace reprise::frontend;

ForwardBuilder::ForwardBuilder(ModuleOp module, const Description &description)
    : builder(OpBuilder::atBlockEnd(module.getBody())),
      location(module.getLoc()),
      function(func::FuncOp::create(builder, location, nn::kForwardFunction,
                                    builder.getFunctionType({}, {}))),
      body(function.addEntryBlock()), description(description),
      model(description.model), train(description.train) {
  function->setAttr(nn::kMicroBatchesAttr,
                    getI64(description.getMicroBatchesPerRank()));
  if (int64_t groups = description.getReductionGroupsPerRank(); groups > 1)
    function->setAttr(nn::kReductionGroupsAttr, getI64(groups));
  builder.setInsertionPointToEnd(body);
  int64_t batch = train.microBatchSize, length = train.seqLength;
  tokens = addInput("tokens", {batch, length});
  targets = addInput("targets", {batch, length});
  rng = addInput("rng", {4});
}

/// One over the root of the width of a head; in latent attention, whatever
/// stretches positions makes scores sharper by the square of the other factor
/// of yarn.
///
/// Source: DeepSeek-V2, arXiv:2405.04434, section 3.1.4, and the code published
/// with it.
double Description::getScoreScale() const {
  double scale = 1 / std::sqrt(double(model.getHeadWidth()));
  if (!model.latentRank || rotary.type == "default" || !rotary.mscaleAllDim)
    return scale;
  double factor = std::max(rotary.factor.value_or(1), 1.0);
  double magnitude = 0.1 * *rotary.mscaleAllDim * std::log(factor) + 1;
  return scale * magnitude * magnitude;
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// Where the description says how wide the result of `op` is: of the keys that
/// could, the first that is given, or else the section `model`.
Location ForwardBuilder::getSource(Operation *op, StringRef module) {
  ArrayRef<int64_t> shape =
      cast<RankedTensorType>(op->getResult(0).getType()).getShape();
  int64_t columns = shape.empty() ? 1 : shape.back();
  int64_t head = model.getHeadWidth(), heads = model.numHeads;
  int64_t shared = model.getNumKeyValueHeads();
  SmallVector<StringRef> keys;
  if (module == "loss")
    keys = {"seq_length"};
  else if (module == "head")
    keys = {"vocab_size"};
  else if (module == "mlp" && columns == model.getInnerWidth())
    keys = {"n_inner", "intermediate_size"};
  else if (module == "moe" && columns == model.numExperts)
    keys = {"num_local_experts", "num_experts", "n_routed_experts"};
  else if (module == "shared_experts" && columns == model.getSharedWidth())
    keys = {"shared_expert_intermediate_size", "n_shared_experts",
            "moe_intermediate_size"};
  else if (module.starts_with("moe") && columns == model.getExpertWidth())
    keys = {"moe_intermediate_size", "intermediate_size"};
  else if (module == "attention" && columns == model.queryRank.value_or(0))
    keys = {"q_lora_rank"};
  else if (module == "attention" && model.latentRank &&
           (columns == model.latentRank ||
            columns == model.latentRank + model.turnedWidth))
    keys = {"kv_lora_rank"};
  else if (module == "core_attn" && shape.size() == 4)
    keys = {"seq_length"};
  else if (module == "attention" && shared < heads && columns == shared * head)
    keys = {"num_key_value_heads"};
  else if (columns == heads * head && columns != model.width)
    keys = {"head_dim", "num_attention_heads"};
  keys.append({"n_embd", "hidden_size"});
  for (StringRef key : keys)
    if (auto given = description.positions.find(key);
        given != description.positions.end())
      return FileLineColLoc::get(builder.getContext(), given->second.file,
                                 given->second.line, given->second.column);
  return location;
}

Location ForwardBuilder::getLocation(Operation *op, StringRef module,
                                     StringRef name) {
  std::string full =
      ((layer < 0 ? Twine() : "layer" + Twine(layer) + ".") + name).str();
  return NameLoc::get(builder.getStringAttr(full), getSource(op, module));
}

Value ForwardBuilder::addArgument(Type type, StringRef name, StringRef role,
                                  Attribute value) {
  argumentAttrs.push_back(
      builder.getDictionaryAttr(builder.getNamedAttr(role, value)));
  return body->addArgument(type,
                           NameLoc::get(builder.getStringAttr(name), location));
}

Value ForwardBuilder::addInput(StringRef role, ArrayRef<int64_t> shape) {
  return addArgument(RankedTensorType::get(shape, builder.getI32Type()), role,
                     nn::kInputAttr, builder.getStringAttr(role));
}

Value ForwardBuilder::addRotary(nn::RotaryAttr rotary) {
  return addArgument(getType({train.seqLength, model.getRotaryWidth()}),
                     "rotary", nn::kRotaryAttr, rotary);
}

Value ForwardBuilder::addParameter(const Twine &name, ArrayRef<int64_t> shape,
                                   nn::Init init, double std,
                                   const Published &published, bool isExact) {
  std::string text = name.str();
  bool isPart = !published.hub.empty();
  auto parameter = nn::ParameterAttr::get(
      builder.getContext(), text, init,
      init == nn::Init::Normal ? getF32(std) : FloatAttr(),
      /*decay=*/shape.size() >= 2, /*frozen=*/false, published.hub,
      isPart ? published.part : 0, isPart ? published.parts : 1);
  Value argument =
      addArgument(getType(shape), text, nn::kParameterAttr, parameter);
  return shape.size() < 2 || isExact ? argument : toActivation(argument);
}

Value ForwardBuilder::addConstant(const Twine &name, int64_t size,
                                  StringRef follows) {
  std::string text = name.str();
  auto parameter = nn::ParameterAttr::get(
      builder.getContext(), text, nn::Init::Zeros, /*std=*/FloatAttr(),
      /*decay=*/false, /*frozen=*/true, /*hub=*/"", /*part=*/0, /*parts=*/1);
  Value argument =
      addArgument(getType({size}), text, nn::kParameterAttr, parameter);
  if (!follows.empty()) {
    NamedAttrList attributes(argumentAttrs.back());
    attributes.set(nn::kFollowsAttr, builder.getStringAttr(follows));
    argumentAttrs.back() = attributes.getDictionary(getContext());
  }
  return argument;
}

Value ForwardBuilder::toActivation(Value parameter) {
  RankedTensorType type =
      getActivationType(cast<RankedTensorType>(parameter.getType()).getShape());
  if (parameter.getType() == type)
    return parameter;
  return nn::CastOp::create(builder, parameter.getLoc(), type, parameter);
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

RankedTensorType ForwardBuilder::getActivationType(ArrayRef<int64_t> shape) {
  Type element = train.precision == "bf16" ? Type(builder.getBF16Type())
                                           : Type(builder.getF32Type());
  return RankedTensorType::get(shape, element);
}

Value ForwardBuilder::embed(StringRef name, Value table) {
  RankedTensorType type =
      getActivationType({train.microBatchSize, train.seqLength, model.width});
  return create<nn::EmbeddingOp>("embedding", name, type, tokens, table);
}

Value ForwardBuilder::embedFurther(const Twine &name, Value table,
                                   int64_t depth) {
  int64_t batch = train.microBatchSize, length = train.seqLength;
  RankedTensorType type = getActivationType({batch, length, model.width});
  std::string whole = name.str();
  if (depth == 1)
    return create<nn::EmbeddingOp>(getName(ModuleKind::Embedding), whole, type,
                                   targets, table);
  int64_t known = length - depth + 1;
  auto ids = cast<RankedTensorType>(targets.getType()).clone({batch, known});
  Value further = create<nn::CropPositionsOp>(getName(ModuleKind::Embedding),
                                              whole + "_tokens", ids, targets,
                                              getI64(depth - 1));
  Value some = create<nn::EmbeddingOp>(
      getName(ModuleKind::Embedding), whole + "_known",
      type.clone({batch, known, model.width}), further, table);
  return create<nn::PadPositionsOp>(getName(ModuleKind::Embedding), whole, type,
                                    some, getI64(0));
}

Value ForwardBuilder::linear(StringRef module, StringRef name, Value input,
                             Value weight, Value bias,
                             nn::WeightLayout layout) {
  SmallVector<int64_t> shape(
      cast<RankedTensorType>(input.getType()).getShape());
  shape.back() = cast<RankedTensorType>(weight.getType())
                     .getDimSize(layout == nn::WeightLayout::InOut);
  if (bias)
    bias = toActivation(bias);
  return create<nn::LinearOp>(module, name, getActivationType(shape), input,
                              weight, bias, layout);
}

Value ForwardBuilder::add(StringRef name, Value lhs, Value rhs) {
  return create<nn::AddOp>("residual", name, lhs.getType(), lhs, rhs);
}

Value ForwardBuilder::toF32(StringRef module, StringRef name, Value input) {
  auto type = cast<RankedTensorType>(input.getType());
  if (type.getElementType().isF32())
    return input;
  return create<nn::CastOp>(module, name, getType(type.getShape()), input);
}

Value ForwardBuilder::dropout(StringRef module, StringRef name, Value input,
                              double rate, int64_t stream) {
  if (rate == 0)
    return input;
  return create<nn::DropoutOp>(module, name, input.getType(), input, rng,
                               getF32(rate), getI64(stream),
                               /*part=*/nn::PartAttr());
}

Value ForwardBuilder::attention(Value q, Value k, Value v, int64_t stream) {
  int64_t batch = train.microBatchSize, length = train.seqLength;
  IntegerAttr heads = getI64(model.numHeads), shared;
  if (model.getNumKeyValueHeads() != model.numHeads)
    shared = getI64(model.getNumKeyValueHeads());
  FloatAttr scale = getF32(description.getScoreScale());
  RankedTensorType out = getActivationType(
      {batch, length, model.numHeads * model.getValueWidth()});
  if (train.attention == "flash") {
    RankedTensorType lse = getType({batch, model.numHeads, length});
    return create<nn::AttentionOp>("core_attn", "ctx", TypeRange{out, lse}, q,
                                   k, v, rng, heads, shared, scale,
                                   getF32(model.attnDropout), getI64(stream),
                                   /*part=*/nn::PartAttr())
        .getOut();
  }
  RankedTensorType square =
      getActivationType({batch, model.numHeads, length, length});
  Value s = create<nn::ScoresOp>("core_attn", "s", square, q, k, heads, shared,
                                 scale);
  Value p = create<nn::SoftmaxOp>("core_attn", "p", square, s);
  Value pd = dropout("core_attn", "pd", p, model.attnDropout, stream);
  return create<nn::ContextOp>("core_attn", "ctx", out, pd, v, heads, shared,
                               getF32(1.0), UnitAttr());
}

Value ForwardBuilder::addHead(Value table) {
  if (model.tieWordEmbeddings)
    return table;
  return addParameter("lm_head.weight", {model.vocabSize, model.width},
                      nn::Init::Normal, model.initializerRange);
}

Value ForwardBuilder::predict(Value hidden, Value head, Value targets,
                              const Twine &end, StringRef name) {
  Value logits = linear("head", ("logits" + end).str(), hidden, head,
                        /*bias=*/Value(), nn::WeightLayout::OutIn);
  RankedTensorType perRow =
      getType(cast<RankedTensorType>(targets.getType()).getShape());
  auto losses =
      create<nn::CrossEntropyOp>("loss", ("losses" + end).str(),
                                 TypeRange{perRow, perRow}, logits, targets);
  return create<nn::MeanOp>("loss", name, getType({}), losses.getLosses());
}

Value ForwardBuilder::predictFurther(Value hidden, Value head, int64_t depth) {
  std::string end = std::to_string(depth);
  auto crop = [&](ModuleKind module, StringRef name, Value value,
                  int64_t from) -> Value {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[1] -= depth;
    return create<nn::CropPositionsOp>(getName(module), (name + end).str(),
                                       type.clone(shape), value, getI64(from));
  };
  Value some = crop(ModuleKind::Head, "nfc", hidden, 0);
  Value further = crop(ModuleKind::Loss, "targets", targets, depth);
  return predict(some, head, further, end, "lm_loss" + end);
}

Value ForwardBuilder::addTerms(Value loss, ArrayRef<Measure> terms,
                               StringRef name) {
  for (const Measure &term : terms)
    loss = create<nn::AddOp>(getName(ModuleKind::Loss),
                             &term == &terms.back() ? name : "lm_sum",
                             getType({}), loss, term.value);
  return loss;
}

void ForwardBuilder::finish(Value loss, ArrayRef<Measure> shown) {
  SmallVector<Value> results = {loss};
  for (const Measure &measure : shown)
    results.push_back(measure.value);
  func::ReturnOp::create(builder, location, results);
  function.setType(builder.getFunctionType(body->getArgumentTypes(),
                                           ValueRange(results).getTypes()));
  function.setAllArgAttrs(argumentAttrs);
  for (auto [index, measure] : llvm::enumerate(shown)) {
    function.setResultAttr(index + 1, nn::kMeasureAttr,
                           builder.getStringAttr(measure.name));
    if (!measure.termOf.empty())
      function.setResultAttr(index + 1, nn::kTermAttr,
                             builder.getStringAttr(measure.termOf));
  }
}
