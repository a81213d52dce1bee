//===- Checks.cpp - What concerns more than one key -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Frontend.h"
#include "python-free-frontend/Keys.h"

#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Support/LayerSplit.h"
#include "reprise/Support/RecomputeLabels.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/GlobPattern.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace llvm;
using namespace reprise;
using namespace reprise::frontend;

namespace {
class Checker {
public:
  Checker(Description &description, const Origins &origins,
          Diagnostics &diagnostics)
      : description(description), family(description.family),
        model(description.model), rotary(description.rotary),
        train(description.train), recompute(description.recompute),
        parallel(description.parallel), origins(origins),
        diagnostics(diagnostics) {}

  void checkModel();
  void checkExperts();
  void checkBalance();
  void checkGroups();
  void checkFurther();
  void checkRotary();
  void checkReductionGroups();
  void checkTrain();
  void checkSizes();
  void checkRecompute();
  void checkParallel();
  void checkTensorParallel();
  void checkExpertTensorParallel();
  void checkExpertParallel();
  /// After `checkParallel`, which says what the chunks are.
  void checkNumLayers();

private:
  bool isGiven(StringRef key) const { return origins.count(key); }
  bool hasDenseLayer() const;
  StringRef getExpertWidthKey();
  StringRef getSharedWidthKey();
  void error(StringRef key, const Twine &message) {
    diagnostics.error(getKey(key), origins.lookup(key), message);
  }
  void warning(StringRef key, const Twine &message) {
    diagnostics.warning(getKey(key), origins.lookup(key), message);
  }
  /// By the name that origins know.
  const Key &getKey(StringRef name) const {
    return *llvm::find_if(allKeys(), [&](const Key &key) {
      return key.name == name && key.isOf(family);
    });
  }
  bool hasKey(StringRef name) const {
    return llvm::any_of(allKeys(), [&](const Key &key) {
      return key.name == name && key.isOf(family);
    });
  }
  /// The first of the keys that was given; or else, for defaults that do not
  /// fit what else was given, the first that the family has.
  StringRef firstGiven(ArrayRef<StringRef> keys) const {
    for (StringRef key : keys)
      if (isGiven(key))
        return key;
    return *llvm::find_if(keys, [&](StringRef key) { return hasKey(key); });
  }
  /// "; lr has its default", for those of the keys in a message that nobody
  /// gave; empty if there are none.
  std::string nameDefaults(ArrayRef<StringRef> keys) const {
    std::string text;
    for (StringRef key : keys)
      if (!isGiven(key))
        text += ("; " + key + " has its default").str();
    return text;
  }
  bool hasRegion(const RecomputeLabel &label) const;
  /// Whether the module is one that this model has; says what it is if not.
  bool checkModule(StringRef word, const Origin &origin);
  void checkModules();
  void checkPlan();
  void checkSharedInputs();
  void addExperts();
  void checkFrozen();
  void checkRotaryKeys(ArrayRef<StringRef> required,
                       ArrayRef<StringRef> optional);

  /// What the family calls the key for a member of Model; empty if it has none.
  template <auto member>
  StringRef nameOf() const {
    const Key *key = findKeyOf(family, modelField<member>);
    return key ? key->name : "";
  }

  const Description &description;
  const Family *family;
  const Model &model;
  const Rotary &rotary;
  const Train &train;
  Recompute &recompute;
  Parallel &parallel;
  const Origins &origins;
  Diagnostics &diagnostics;
};
} // namespace

//===----------------------------------------------------------------------===//
// Sections model and train
//===----------------------------------------------------------------------===//

void Checker::checkModel() {
  StringRef heads = nameOf<&Model::numHeads>();
  StringRef width = nameOf<&Model::width>();
  bool isLatent = family->blocks.attention == AttentionKind::Latent;
  if (isLatent && model.getNumKeyValueHeads() != model.numHeads)
    error("num_key_value_heads",
          "needs to be num_attention_heads " + Twine(model.numHeads) +
              ", since each head has keys and values of its own, but got " +
              Twine(model.getNumKeyValueHeads()));
  if (!isLatent && !model.headWidth && model.width % model.numHeads != 0)
    error(firstGiven({heads, width}),
          "needs heads of equal width, but got " + heads + " " +
              Twine(model.numHeads) + ", which does not divide " + width + " " +
              Twine(model.width) + nameDefaults({heads, width}));
  if (model.numHeads % model.getNumKeyValueHeads() != 0)
    error(firstGiven({"num_key_value_heads", heads}),
          "needs to divide num_attention_heads " + Twine(model.numHeads) +
              ", but got " + Twine(model.getNumKeyValueHeads()) +
              nameDefaults({"num_key_value_heads", heads}));
  if (model.rotaryShare > 1)
    return error("partial_rotary_factor",
                 formatv("needs to be at most 1, but got {0}",
                         format("%g", model.rotaryShare)));
  int64_t turned = model.getRotaryWidth();
  if (family->hasRotaryPositions() && (turned % 2 != 0 || turned == 0))
    error(isLatent
              ? StringRef("qk_rope_head_dim")
              : firstGiven({"partial_rotary_factor", "head_dim", heads, width}),
          "needs heads of an even width for rotary positions, but got " +
              Twine(turned));
}

/// The pattern of layers is read from zero on, as in Hugging Face's classes.
void Checker::checkExperts() {
  if (!model.numExperts)
    return;
  checkBalance();
  StringRef experts = nameOf<&Model::numExperts>();
  if (model.expertsPerToken > model.numExperts)
    error(firstGiven({"num_experts_per_tok", experts}),
          "needs to be at most " + experts + " " + Twine(model.numExperts) +
              ", but got " + Twine(model.expertsPerToken) +
              nameDefaults({"num_experts_per_tok", experts}));
  if (model.normalizesTopK && model.expertsPerToken == 1)
    error(firstGiven({"num_experts_per_tok", "norm_topk_prob"}),
          "needs to be 2 or more where the weights of a token's experts add up "
          "to 1: the weight of one would be 1, and its router not be trained");
  for (int64_t layer : model.denseLayers)
    if (layer >= model.numLayers)
      warning("mlp_only_layers", "has layer " + Twine(layer) +
                                     ", which has no effect: the model has " +
                                     Twine(model.numLayers) + " layers");
  bool hasAny = false;
  for (int64_t layer = 0; layer < model.numLayers; ++layer)
    hasAny |= model.hasExperts(layer);
  StringRef dense = firstGiven({"moe_layer_freq", "decoder_sparse_step",
                                "first_k_dense_replace", "mlp_only_layers"});
  if (!hasAny)
    error(dense, "needs to leave a layer with experts, but got " +
                     Twine(model.numLayers) + " layers with an MLP" +
                     nameDefaults({dense}));
  if (model.normalizesTopK && family->findUse("topk_method"))
    error("norm_topk_prob",
          "needs to be false: DeepSeek's code then leaves "
          "routed_scaling_factor out, and Hugging Face's divides by no sum");
  checkGroups();
}

/// What balances experts is there for them, and on one stage, where the loss
/// and all layers are.
void Checker::checkBalance() {
  bool hasBias = family->blocks.router == RouterKind::Sigmoid;
  bool hasLoss =
      model.hasAuxLoss || train.getBalanceFactor() > 0 || train.moeZLoss > 0;
  bool isShown = train.showsLoads || train.getBiasUpdateRate() > 0;
  if (train.getBiasUpdateRate() > 0 && !hasBias)
    error(firstGiven(
              {"moe_router_bias_update_rate", "moe_router_enable_expert_bias"}),
          "needs a family whose experts are chosen by sigmoids and a bias, "
          "deepseek_v3, kimi_k2 or glm4_moe, but got " +
              model.modelType);
  if (hasBias && isGiven("moe_router_enable_expert_bias") &&
      !train.updatesBias && train.getBiasUpdateRate() == 0)
    warning("moe_router_enable_expert_bias",
            "leaves the bias of " + model.modelType +
                " as it is, zero or what weights have of it: its experts are "
                "chosen with one");
  if (train.balancing == "none" && train.moeAuxLoss > 0)
    warning("moe_aux_loss_coeff", "has no effect with "
                                  "moe_router_load_balancing_type none");
  if (train.padsToCapacity && !train.capacityFactor)
    error("moe_pad_expert_input_to_capacity",
          "needs 'moe_expert_capacity_factor', which says how far");
  if (train.padsToCapacity && train.getBiasUpdateRate() > 0)
    error("moe_pad_expert_input_to_capacity",
          "needs a bias that does not change: where all experts have as many "
          "rows there is nothing to balance");
  if (parallel.stages > 1 && (hasLoss || isShown))
    error(firstGiven({"output_router_logits", "moe_aux_loss_coeff",
                      "moe_z_loss_coeff", "moe_router_bias_update_rate",
                      "moe_router_enable_expert_bias", "moe_per_layer_logging",
                      "pipeline_stages"}),
          "needs pipeline_stages 1, where one stage has the routers of all "
          "layers and the loss, but got " +
              Twine(parallel.stages) +
              (hasLoss ? "; stages train without terms for the balance of "
                         "experts"
                       : "; stages train without it"));
}

/// That the groups of experts are equal, and those of a token have enough.
void Checker::checkGroups() {
  int64_t groups = model.getNumGroups(), kept = model.getKeptGroups();
  StringRef experts = nameOf<&Model::numExperts>();
  if (model.numExperts % groups != 0)
    return error(firstGiven({"n_group", experts}),
                 "needs to divide " + experts + " " + Twine(model.numExperts) +
                     ", but got " + Twine(groups));
  if (kept > groups)
    return error(firstGiven({"topk_group", "n_group"}),
                 "needs to be at most n_group " + Twine(groups) + ", but got " +
                     Twine(kept) + nameDefaults({"topk_group", "n_group"}));
  int64_t size = model.numExperts / groups;
  if (groups > 1 && size < 2 && family->blocks.router == RouterKind::Sigmoid)
    return error("n_group",
                 "needs groups of 2 experts at least, whose two best scores "
                 "are those of the group, but got " +
                     Twine(groups) + " of " + Twine(size));
  if (model.expertsPerToken <= model.numExperts &&
      model.expertsPerToken > kept * size)
    error(firstGiven({"topk_group", "num_experts_per_tok"}),
          "needs groups for a token's " + Twine(model.expertsPerToken) +
              " experts, but got " + Twine(kept) + " of " + Twine(size) +
              " experts");
}

/// Layers that predict further tokens are where the loss is, and read the
/// table of the embedding.
void Checker::checkFurther() {
  int64_t layers = train.furtherLayers;
  if (layers == 0 && isGiven("mtp_loss_scaling_factor"))
    warning("mtp_loss_scaling_factor",
            "has no effect without mtp_num_layers above 0");
  if (layers == 0)
    return;
  if (train.seqLength <= layers)
    error(firstGiven({"mtp_num_layers", "seq_length"}),
          "needs to be below seq_length " + Twine(train.seqLength) +
              ", so that a text has the tokens that are predicted, but got " +
              Twine(layers));
  if (parallel.stages > 1)
    error(firstGiven({"mtp_num_layers", "pipeline_stages"}),
          "needs pipeline_stages 1, so that what predicts further tokens has "
          "embedding, head and loss, but got " +
              Twine(parallel.stages));
  if (layers > 1 && hasWholeExperts(parallel) &&
      model.hasExperts(model.numLayers - 1))
    error(firstGiven({"mtp_num_layers", "expert_tensor_parallel_size"}),
          "needs to be 1 with expert_tensor_parallel_size 1, since ranks share "
          "positions evenly, and the second such layer has one less for its "
          "experts, but got " +
              Twine(layers));
}

/// Those that `rope_type` needs are there; those that it does not use are not.
void Checker::checkRotaryKeys(ArrayRef<StringRef> required,
                              ArrayRef<StringRef> optional) {
  for (StringRef key : required)
    if (!isGiven(key))
      error("rope_type", rotary.type + " needs '" + key + "'");
  for (const Key &key : allKeys())
    if (key.section == kRopeScaling && key.name != "rope_type" &&
        isGiven(key.name) && !is_contained(required, key.name) &&
        !is_contained(optional, key.name))
      diagnostics.noEffect(origins.lookup(key.name), key.name,
                           " with rope_type " + rotary.type);
}

void Checker::checkRotary() {
  if (!family->hasRotaryPositions())
    return;
  // At 1, all columns would turn alike; yarn divides by its logarithm.
  if (static_cast<float>(model.ropeTheta) <= 1)
    error("rope_theta",
          formatv("needs a number that is above 1 in f32, but got {0}",
                  format("%.17g", model.ropeTheta)));
  constexpr StringLiteral kFactor = "factor", kLow = "low_freq_factor",
                          kHigh = "high_freq_factor",
                          kOriginal = "original_max_position_embeddings";
  if (rotary.type == "default") {
    checkRotaryKeys({}, {});
  } else if (rotary.type == "linear") {
    checkRotaryKeys({kFactor}, {});
  } else if (rotary.type == "llama3") {
    checkRotaryKeys({kFactor, kLow, kHigh, kOriginal}, {});
    if (rotary.lowFreqFactor && rotary.highFreqFactor &&
        *rotary.lowFreqFactor >= *rotary.highFreqFactor)
      error(kHigh, formatv("needs to be above low_freq_factor {0}, but got {1}",
                           format("%g", *rotary.lowFreqFactor),
                           format("%g", *rotary.highFreqFactor)));
  } else {
    checkRotaryKeys({kFactor, kOriginal},
                    {"beta_fast", "beta_slow", "attention_factor", "mscale",
                     "mscale_all_dim", "truncate"});
    double fast = rotary.betaFast.value_or(32);
    double slow = rotary.betaSlow.value_or(1);
    if (slow > fast)
      error(firstGiven({"beta_slow", "beta_fast"}),
            formatv("needs beta_slow to be at most beta_fast, but got "
                    "beta_slow {0} and beta_fast {1}",
                    format("%g", slow), format("%g", fast)));
    double original = rotary.originalPositions.value_or(0);
    if (rotary.factor && original > 0 &&
        *rotary.factor * original != model.numPositions)
      warning(kFactor,
              formatv("is {0}, but max_position_embeddings {1} / "
                      "original_max_position_embeddings {2} is {3}, which some "
                      "versions of transformers take instead",
                      format("%g", *rotary.factor), model.numPositions,
                      *rotary.originalPositions,
                      format("%g", model.numPositions / original)));
    // In latent attention the other one sharpens scores by itself.
    bool isOfScores = model.latentRank && rotary.mscaleAllDim;
    if (rotary.mscale.has_value() != rotary.mscaleAllDim.has_value() &&
        !isOfScores)
      warning(firstGiven({"mscale", "mscale_all_dim"}),
              "has no effect without mscale and mscale_all_dim both");
    if (rotary.mscale && rotary.mscaleAllDim && rotary.factor &&
        !rotary.attentionFactor) {
      double slope = 0.1 * std::log(std::max<double>(*rotary.factor, 1));
      double scale =
          (slope * *rotary.mscale + 1) / (slope * *rotary.mscaleAllDim + 1);
      if (!std::isfinite(float(scale)))
        error("mscale",
              formatv("makes attention_factor {0}, more than the largest f32",
                      format("%g", scale)));
    }
  }
}

/// Groups of micro-batches have equal sizes, and each rank has whole branches
/// of their tree.
void Checker::checkReductionGroups() {
  if (!parallel.reductionGroups)
    return;
  int64_t groups = *parallel.reductionGroups, ranks = parallel.dataParallel;
  int64_t batches = description.getGlobalBatchSize() / train.microBatchSize;
  if (groups % ranks != 0 ||
      (ranks > 1 && !llvm::isPowerOf2_64(uint64_t(groups / ranks))))
    error("gradient_reduction_groups",
          "needs to be data_parallel_size " + Twine(ranks) +
              " times a power of two, so that each rank has a branch of the "
              "tree that adds groups up, but got " +
              Twine(groups));
  else if (batches % groups != 0)
    error("gradient_reduction_groups",
          "needs to divide the " + Twine(batches) +
              " micro-batches of a step, but got " + Twine(groups));
  else if (groups > ranks && train.balancesStep())
    error("gradient_reduction_groups",
          "needs data_parallel_size " + Twine(ranks) +
              " with global_aux_loss, since groups count anew, but got " +
              Twine(groups));
}

void Checker::checkTrain() {
  StringRef positions = nameOf<&Model::numPositions>();
  if (train.seqLength > model.numPositions)
    error(firstGiven({"seq_length", positions}),
          "needs seq_length to be at most " + positions +
              ", but got seq_length " + Twine(train.seqLength) + " and " +
              positions + " " + Twine(model.numPositions) +
              nameDefaults({"seq_length", positions}));
  if (int64_t window = model.window.value_or(train.seqLength);
      window < train.seqLength)
    error(firstGiven({"sliding_window", "seq_length"}),
          "needs to be at least seq_length " + Twine(train.seqLength) +
              ", since attention reaches back over the whole sequence, but "
              "got " +
              Twine(window));
  int64_t global = description.getGlobalBatchSize();
  int64_t together = train.microBatchSize * parallel.dataParallel;
  if (global % together != 0)
    error(
        firstGiven(
            {"global_batch_size", "micro_batch_size", "data_parallel_size"}),
        "needs to be a multiple of micro_batch_size " +
            Twine(train.microBatchSize) +
            (parallel.dataParallel == 1
                 ? std::string()
                 : " times data_parallel_size " +
                       std::to_string(parallel.dataParallel)) +
            ", but got " + Twine(global) +
            suggestBatch(global, train.microBatchSize, parallel.dataParallel) +
            nameDefaults({"micro_batch_size", "global_batch_size"}));
  checkReductionGroups();
  constexpr int64_t kBlock = 256, kBlockOfBF16 = 1024;
  bool isBF16 = train.precision == "bf16";
  if (train.headChunkRows.value_or(0) % (isBF16 ? kBlockOfBF16 : kBlock) != 0)
    error("head_chunk_rows",
          "needs to be a multiple of " + Twine(isBF16 ? kBlockOfBF16 : kBlock) +
              (isBF16 ? " in bf16" : "") + ", or 0, but got " +
              Twine(*train.headChunkRows));
  if (train.minLr > train.lr)
    error(firstGiven({"min_lr", "lr"}),
          formatv(
              "needs min_lr to be at most lr, but got min_lr {0} and lr {1}{2}",
              format("%g", train.minLr), format("%g", train.lr),
              nameDefaults({"min_lr", "lr"})));
  StringRef decay = train.lrDecayIters ? "lr_decay_iters" : "train_iters";
  if (train.lrWarmupIters > train.getLRDecayIters())
    error(firstGiven({"lr_warmup_iters", decay}),
          "needs lr_warmup_iters to be at most " + decay +
              ", but got lr_warmup_iters " + Twine(train.lrWarmupIters) +
              " and " + decay + " " + Twine(train.getLRDecayIters()) +
              nameDefaults({"lr_warmup_iters", decay}));
  checkFrozen();
}

void Checker::checkFrozen() {
  if (!train.frozen)
    return;
  for (auto [index, pattern] : enumerate(*train.frozen))
    if (Expected<GlobPattern> glob = GlobPattern::create(pattern); !glob)
      diagnostics.error(getKey("frozen"),
                        origins.lookup("frozen").getItem(index),
                        "needs a shell pattern, but got '" + pattern +
                            "': " + toString(glob.takeError()));
}

void Checker::checkSizes() {
  // A tensor of 2^40 elements has 4 TiB. Far below the end of 64 bits, so that
  // sums of sizes need no care anywhere else.
  constexpr int64_t most = int64_t(1) << 40;
  struct Tensor {
    StringRef what, key;
    SmallVector<int64_t, 4> shape;
  };
  int64_t batch = train.microBatchSize, length = train.seqLength;
  int64_t width = model.width, inner = model.getInnerWidth();
  int64_t queries =
      model.numHeads * std::max(model.getHeadWidth(), model.getValueWidth());
  StringRef widthKey = nameOf<&Model::width>();
  SmallVector<Tensor> tensors = {
      {"the token embedding", "vocab_size", {model.vocabSize, width}},
      {"a weight of attention", nameOf<&Model::headWidth>(), {width, queries}},
      {"a weight of the MLP", nameOf<&Model::innerWidth>(), {width, inner}},
      {"the hidden state", "micro_batch_size", {batch, length, width}},
      {"the queries", "micro_batch_size", {batch, length, queries}},
      {"the MLP's hidden state", "micro_batch_size", {batch, length, inner}},
      {"the logits", "vocab_size", {batch, length, model.vocabSize}}};
  if (model.numExperts) {
    int64_t rows = batch * length * model.expertsPerToken;
    tensors.push_back({"the experts' weight",
                       nameOf<&Model::numExperts>(),
                       {model.numExperts, model.getExpertWidth(), width}});
    tensors.push_back({"the experts' hidden state",
                       "micro_batch_size",
                       {rows, model.getExpertWidth()}});
  }
  if (!family->hasRotaryPositions())
    tensors.push_back({"the table of positions",
                       nameOf<&Model::numPositions>(),
                       {model.numPositions, width}});
  if (train.attention == "unfused")
    tensors.push_back({"the attention scores",
                       "seq_length",
                       {batch, model.numHeads, length, length}});
  for (const Tensor &tensor : tensors) {
    int64_t elements = 1;
    bool tooMany = false;
    for (int64_t size : tensor.shape) {
      if (size < 1) // More heads than columns, which is refused already.
        return;
      tooMany |= elements > most / size;
      elements = tooMany ? elements : elements * size;
    }
    if (!tooMany)
      continue;
    std::string shape;
    raw_string_ostream os(shape);
    interleave(tensor.shape, os, "x");
    return error(firstGiven({tensor.key, widthKey, "seq_length"}),
                 "makes " + tensor.what + " too large: " + shape +
                     " elements, more than 2^40");
  }
}

//===----------------------------------------------------------------------===//
// Section recompute
//===----------------------------------------------------------------------===//

/// Whether a layer of the model has the region of the label.
bool Checker::hasRegion(const RecomputeLabel &label) const {
  bool hasMLP = false, hasExperts = false;
  for (int64_t layer = 0; layer < model.numLayers; ++layer)
    (model.hasExperts(layer) ? hasExperts : hasMLP) = true;
  if (label.covers("moe_act"))
    return hasExperts;
  if (label.covers("shared_experts"))
    return hasExperts && family->blocks.experts != ExpertKind::Routed;
  if (label.covers("mla_up_proj"))
    return family->blocks.attention == AttentionKind::Latent;
  return label.covers("mlp") ? hasMLP : label.isAccepted();
}

bool Checker::checkModule(StringRef word, const Origin &origin) {
  // What frees nothing is accepted, but nobody is led to it.
  SmallVector<StringRef> useful;
  const RecomputeLabel *label = nullptr;
  for (const RecomputeLabel &known : kRecomputeLabels) {
    if (known.isAccepted() && hasRegion(known))
      useful.push_back(known.name);
    if (known.name == word)
      label = &known;
  }
  std::string list = join(useful, ", ");

  const Key &key = *findKey("recompute_modules");
  if (!label)
    diagnostics.error(key, origin,
                      "needs any of " + list + ", but got '" + word + "'" +
                          suggest(word, useful));
  else if (label->kind == LabelKind::Newer)
    diagnostics.error(key, origin,
                      "cannot have '" + word + "' for " + label->what +
                          ", which is in no release of Megatron Core up to "
                          "0.19; it can have " +
                          list);
  else if (hasRegion(*label))
    return true;
  else if (!label->isAccepted() || label->without == WithoutRegion::Refuses)
    diagnostics.error(key, origin,
                      "cannot have '" + word + "': a model of type " +
                          model.modelType + " has no " + label->what +
                          "; it can have " + list);
  else
    diagnostics.warning(key, origin,
                        "buys nothing with '" + word + "': this model has no " +
                            label->what);
  return false;
}

/// Each module that the model has once, in the order of the first mentions.
void Checker::checkModules() {
  Origin list = origins.lookup("recompute_modules");
  std::vector<std::string> modules;
  for (auto [index, word] : enumerate(*recompute.modules)) {
    Origin origin = list.getItem(index);
    if (is_contained(modules, word)) {
      diagnostics.warning(*findKey("recompute_modules"), origin,
                          "has '" + word + "' already");
      continue;
    }
    if (checkModule(word, origin))
      modules.push_back(word);
  }
  recompute.modules = std::move(modules);
}

/// A plan file decides everything, or nothing.
void Checker::checkPlan() {
  if (!recompute.granularity.empty())
    return error("recompute_plan",
                 "decides in place of recompute_granularity, but got both, " +
                     Twine(recompute.granularity));
  for (StringRef key : {"recompute_method", "recompute_num_layers",
                        "recompute_modules", "distribute_saved_activations"})
    if (isGiven(key))
      error(key, "has no place beside recompute_plan");
}

/// As Megatron does it: beside the modules that are given, or `core_attn`.
void Checker::addExperts() {
  if (!recompute.experts)
    return;
  if (recompute.granularity == "full")
    return error("moe_layer_recompute",
                 "means recompute_granularity selective, but got full");
  if (!isGiven("recompute_modules") || !recompute.modules)
    recompute.modules = {"core_attn"};
  recompute.granularity = "selective";
  if (!is_contained(*recompute.modules, "moe"))
    recompute.modules->push_back("moe");
}

/// Ranks that share layers keep parts of what is kept of a segment.
void Checker::checkSharedInputs() {
  constexpr StringLiteral key = "distribute_saved_activations";
  if (!recompute.distributesSaved)
    return;
  int64_t ranks = parallel.tensorParallel;
  StringRef granularity = recompute.granularity;
  if (granularity != "full")
    error(key, "is for recompute_granularity full, but got " +
                   Twine(granularity.empty() ? "none" : granularity));
  else if (ranks < 2)
    error(key,
          "needs tensor_model_parallel_size above 1, but got " + Twine(ranks));
  else if (parallel.sequenceParallel)
    error(key, "has no place beside sequence_parallel, with which the " +
                   Twine(ranks) + " ranks keep parts of positions already");
}

void Checker::checkRecompute() {
  if (recompute.activations) {
    if (recompute.granularity == "full")
      return error("recompute_activations",
                   "means recompute_granularity selective, but got full");
    recompute.granularity = "selective";
  }
  addExperts();
  if (!recompute.planFile.empty())
    return checkPlan();
  StringRef granularity = recompute.granularity;
  bool isFull = granularity == "full", isSelective = granularity == "selective";

  for (StringRef key : {"recompute_method", "recompute_num_layers"}) {
    if (isFull && !isGiven(key))
      error("recompute_granularity", "full needs '" + key + "'");
    else if (isSelective && isGiven(key))
      error(key, "is for recompute_granularity full, but got selective");
    else if (granularity.empty() && isGiven(key))
      warning(key, "has no effect without recompute_granularity full");
  }
  if (recompute.modules)
    checkModules();
  else if (isSelective)
    recompute.modules = {"core_attn"};
  if (isGiven("recompute_modules") && !isSelective)
    warning("recompute_modules",
            "has no effect without recompute_granularity selective");
  checkSharedInputs();
  if (isGiven("recompute_last_segment") && !isFull)
    warning("recompute_last_segment",
            "has no effect without recompute_granularity full");
}

//===----------------------------------------------------------------------===//
// Section parallel
//===----------------------------------------------------------------------===//

bool Checker::hasDenseLayer() const {
  for (int64_t layer = 0; layer < model.numLayers; ++layer)
    if (!model.hasExperts(layer))
      return true;
  return false;
}

/// The keys that say how wide an expert is, and the one that all share.
StringRef Checker::getExpertWidthKey() {
  return model.expertWidth ? nameOf<&Model::expertWidth>()
                           : nameOf<&Model::innerWidth>();
}
StringRef Checker::getSharedWidthKey() {
  return model.numShared ? nameOf<&Model::numShared>()
                         : nameOf<&Model::sharedWidth>();
}

/// Every rank along tp has a part of each expert, or whole ones for its part of
/// the positions.
void Checker::checkExpertTensorParallel() {
  StringRef key = "expert_tensor_parallel_size";
  int64_t ranks = parallel.tensorParallel;
  int64_t given = parallel.expertTensorParallel.value_or(ranks);
  if (given != ranks && given != 1)
    return error(key, "needs to be tensor_model_parallel_size, " +
                          Twine(ranks) +
                          ", where ranks have parts of experts as of the rest, "
                          "or 1, where they have whole ones, but got " +
                          Twine(given));
  if (!hasWholeExperts(parallel))
    return;
  if (!model.numExperts)
    return error(key, "needs a model with experts, but got 1 with "
                      "tensor_model_parallel_size " +
                          Twine(ranks));
  if (train.capacityFactor)
    return error("moe_expert_capacity_factor",
                 "needs expert_tensor_parallel_size " + Twine(ranks) +
                     ", tensor_model_parallel_size, since each of these ranks "
                     "sorts the rows of its own positions, but got 1");
  if (train.seqLength % ranks != 0)
    error(firstGiven({key, "tensor_model_parallel_size", "seq_length"}),
          "needs positions that " + Twine(ranks) +
              " ranks can share evenly, but got " + Twine(train.seqLength) +
              " (seq_length)");
}

/// Along ep each rank has some of the experts.
void Checker::checkExpertParallel() {
  StringRef key = "expert_model_parallel_size";
  int64_t ranks = parallel.expertParallel, tensor = parallel.tensorParallel;
  if (ranks > 1 && !model.numExperts)
    return error(key, "needs a model with experts, but " + model.modelType +
                          " has none here: leave it out; ranks share other "
                          "layers by tensor_model_parallel_size, and have "
                          "samples of their own by data_parallel_size");
  checkExpertTensorParallel();
  if (hasWholeExperts(parallel) &&
      (parallel.dataParallel * tensor % ranks != 0 ||
       (ranks % tensor != 0 && tensor % ranks != 0)))
    return error(
        firstGiven({key, "data_parallel_size", "tensor_model_parallel_size"}),
        "needs to divide the " + Twine(parallel.dataParallel * tensor) +
            " ranks that have experts, data_parallel_size " +
            Twine(parallel.dataParallel) +
            " times tensor_model_parallel_size " + Twine(tensor) +
            ", and to be a multiple or a divisor of the latter, but "
            "got " +
            Twine(ranks));
  if (!hasWholeExperts(parallel) && parallel.dataParallel % ranks != 0)
    return error(firstGiven({key, "data_parallel_size"}),
                 "needs to divide data_parallel_size " +
                     Twine(parallel.dataParallel) +
                     ", the ranks that have experts, but got " + Twine(ranks) +
                     "; Megatron makes data_parallel_size of the number of "
                     "processes, and here it is to be said, as in "
                     "data_parallel_size " +
                     Twine(llvm::alignTo(parallel.dataParallel, ranks)));
  if (ranks > 1 && model.numExperts % ranks != 0)
    return error(firstGiven({key, nameOf<&Model::numExperts>()}),
                 "needs experts that " + Twine(ranks) +
                     " ranks can share evenly, but got " +
                     Twine(model.numExperts) + " (" +
                     nameOf<&Model::numExperts>() + ")");
}

/// Ranks have parts of equal shape.
void Checker::checkTensorParallel() {
  int64_t ranks = parallel.tensorParallel;
  if (ranks == 1) {
    if (parallel.sequenceParallel)
      error("sequence_parallel",
            "needs tensor_model_parallel_size above 1, but got 1");
    return;
  }
  auto check = [&](StringRef key, StringRef what, int64_t size) {
    if (size % ranks != 0)
      error(firstGiven({"tensor_model_parallel_size", key}),
            "needs " + what + " that " + Twine(ranks) +
                " ranks can share evenly, but got " + Twine(size) + " (" + key +
                ")");
    return size % ranks == 0;
  };
  if (!check(nameOf<&Model::numHeads>(), "heads", model.numHeads) ||
      (hasDenseLayer() &&
       !check(nameOf<&Model::innerWidth>(), "columns of the MLP",
              model.getInnerWidth())) ||
      (model.numExperts && !hasWholeExperts(parallel) &&
       !check(getExpertWidthKey(), "columns of an expert",
              model.getExpertWidth())) ||
      (model.numExperts && family->blocks.experts != ExpertKind::Routed &&
       !check(getSharedWidthKey(), "columns of the shared expert",
              model.getSharedWidth())))
    return;
  // Of fewer heads of keys and values, neighbours have the same one.
  if (int64_t heads = model.getNumKeyValueHeads();
      heads % ranks != 0 && ranks % heads != 0)
    error(firstGiven({"tensor_model_parallel_size",
                      nameOf<&Model::numKeyValueHeads>()}),
          "needs heads of keys and values that " + Twine(ranks) +
              " ranks can share evenly, or that divide the ranks, but got " +
              Twine(heads) + " (" + nameOf<&Model::numKeyValueHeads>() + ")");
  if (parallel.sequenceParallel)
    check("seq_length", "positions", train.seqLength);
}

void Checker::checkParallel() {
  if (parallel.distributedOptimizer && !hasEqualStates(parallel))
    warning("use_distributed_optimizer",
            "has no effect with data_parallel_size 1");
  LayerSplit split;
  split.stages = parallel.stages;
  split.virtualStages = parallel.virtualStages;
  split.first = parallel.firstStage;
  split.last = parallel.lastStage;
  split.countsEmbedding = parallel.countsEmbedding;
  split.countsLoss = parallel.countsLoss;
  // What says how to split, the most explicit first.
  StringRef given =
      firstGiven({"pipeline_layout", "num_layers_in_first_pipeline_stage",
                  "num_layers_in_last_pipeline_stage",
                  "account_for_embedding_in_pipeline_split",
                  "account_for_loss_in_pipeline_split", "pipeline_stages",
                  "virtual_stages"});
  if (parallel.stages == 1) {
    if (parallel.virtualStages > 1)
      error("virtual_stages", "needs pipeline_stages above 1, but got 1");
    else if (isGiven(given) && given != "pipeline_stages")
      warning(given, "has no effect without pipeline_stages above 1");
    for (StringRef key :
         {"pipeline_schedule", "microbatch_group_size_per_vp_stage"})
      if (isGiven(key))
        warning(key, "has no effect without pipeline_stages above 1");
    return;
  }
  bool isInterleaved = parallel.schedule == "interleaved";
  if (isGiven("pipeline_schedule") && !isInterleaved &&
      parallel.virtualStages > 1)
    return error("pipeline_schedule",
                 "needs interleaved for " + Twine(parallel.virtualStages) +
                     " chunks on each stage, but got " + parallel.schedule);
  if (parallel.microBatchGroup && !isInterleaved &&
      parallel.virtualStages == 1) {
    warning("microbatch_group_size_per_vp_stage",
            "has no effect with one chunk on each stage");
    parallel.microBatchGroup.reset();
  }
  // In letters a comma is for people, and so is what it separates.
  if (parallel.layout && !parallel.layout->empty() &&
      StringRef(parallel.layout->front()).starts_with("E")) {
    if (std::optional<std::string> fault =
            parseLayout(llvm::join(*parallel.layout, ""), split.layout))
      return error("pipeline_layout", *fault);
  } else if (parallel.layout) {
    Origin list = origins.lookup("pipeline_layout");
    for (auto [index, word] : enumerate(*parallel.layout)) {
      int64_t size = 0;
      if (StringRef(word).getAsInteger(10, size))
        return diagnostics.error(
            getKey("pipeline_layout"), list.getItem(index),
            "needs numbers of layers, or letters from E on, "
            "but got '" +
                word + "'");
      split.layout.push_back(size);
    }
  }
  bool hasEnds = split.first || split.last;
  if (hasEnds + (split.countsEmbedding || split.countsLoss) +
          parallel.layout.has_value() >
      1)
    return error(given, "needs to be the only one that says how to split "
                        "layers, but got two of pipeline_layout, "
                        "num_layers_in_(first|last)_pipeline_stage and "
                        "account_for_(embedding|loss)_in_pipeline_split");
  if (std::optional<std::string> fault =
          splitLayers(split, model.numLayers, parallel.chunks))
    error(given, *fault);
}

/// Megatron takes more layers than there are as all of them.
void Checker::checkNumLayers() {
  if (recompute.granularity != "full" || !recompute.numLayers)
    return;
  int64_t most = model.numLayers;
  if (!parallel.chunks.empty())
    most = *llvm::max_element(parallel.chunks);
  if (*recompute.numLayers <= most)
    return;
  warning("recompute_num_layers",
          "is " + Twine(*recompute.numLayers) + ", but " +
              (parallel.chunks.empty() ? "the model has "
                                       : "the largest chunk of a stage has ") +
              Twine(most) + " layers: " +
              (recompute.method == "block"
                   ? "all of them are recomputed, one by one"
                   : "all of them are one segment"));
}

void reprise::frontend::checkDescription(Description &description,
                                         const Origins &origins,
                                         Diagnostics &diagnostics) {
  Checker checker(description, origins, diagnostics);
  checker.checkModel();
  checker.checkExperts();
  checker.checkFurther();
  checker.checkRotary();
  checker.checkTrain();
  checker.checkSizes();
  checker.checkRecompute();
  checker.checkParallel();
  checker.checkTensorParallel();
  checker.checkExpertParallel();
  checker.checkNumLayers();
}
