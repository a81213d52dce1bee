//===- Checks.cpp - What concerns more than one key -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Checks.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/GlobPattern.h"
#include <cmath>

using namespace llvm;
using namespace reprise;
using namespace reprise::frontend;

namespace {
class ModelChecker : public Checker {
public:
  explicit ModelChecker(const Checker &checker) : Checker(checker) {}

  void checkModel();
  void checkFurther();
  void checkRotary();
  void checkTrain();
  void checkSizes();

private:
  void checkRotaryKeys(ArrayRef<StringRef> required,
                       ArrayRef<StringRef> optional);
  void checkFrozen();

  const Rotary &rotary = description.rotary;
};
} // namespace

void ModelChecker::checkModel() {
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

/// Layers that predict further tokens are where the loss is, and read the
/// table of the embedding.
void ModelChecker::checkFurther() {
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
  if (layers > 1 && hasWholeExperts(parallel) &&
      model.hasExperts(model.numLayers - 1))
    error(firstGiven({"mtp_num_layers", "expert_tensor_parallel_size"}),
          "needs to be 1 with expert_tensor_parallel_size 1, since ranks share "
          "positions evenly, and the second such layer has one less for its "
          "experts, but got " +
              Twine(layers));
}

/// Those that `rope_type` needs are there; those that it does not use are not.
void ModelChecker::checkRotaryKeys(ArrayRef<StringRef> required,
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

void ModelChecker::checkRotary() {
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
  // Of the scores of latent attention, whatever the type.
  SmallVector<StringRef> ofScores;
  if (model.latentRank)
    ofScores.push_back("mscale_all_dim");
  if (rotary.type == "default") {
    checkRotaryKeys({}, {});
  } else if (rotary.type == "linear") {
    checkRotaryKeys({kFactor}, ofScores);
  } else if (rotary.type == "llama3") {
    checkRotaryKeys({kFactor, kLow, kHigh, kOriginal}, ofScores);
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

void ModelChecker::checkTrain() {
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
  checkReductionGroups(*this);
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

void ModelChecker::checkFrozen() {
  if (!train.frozen)
    return;
  for (auto [index, pattern] : enumerate(*train.frozen))
    if (Expected<GlobPattern> glob = GlobPattern::create(pattern); !glob)
      diagnostics.error(getKey("frozen"),
                        origins.lookup("frozen").getItem(index),
                        "needs a shell pattern, but got '" + pattern +
                            "': " + toString(glob.takeError()));
}

void ModelChecker::checkSizes() {
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

void reprise::frontend::checkDescription(Description &description,
                                         const Origins &origins,
                                         Diagnostics &diagnostics) {
  const Checker checker(description, origins, diagnostics);
  ModelChecker own(checker);
  own.checkModel();
  checkExperts(checker);
  own.checkFurther();
  own.checkRotary();
  own.checkTrain();
  own.checkSizes();
  checkRecompute(checker);
  checkRanks(checker);
  checkNumLayers(checker);
}
