//===- Description.h - What to train, and how -------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A model description after it was read and checked. Keys.cpp has the table of
// all keys with their types, defaults and meanings; the members here are where
// the values go, and start with these defaults.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_FRONTEND_DESCRIPTION_H
#define REPRISE_FRONTEND_DESCRIPTION_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/LogicalResult.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace reprise::frontend {

/// A family of models, by `model_type`: see Family.h.
struct Family;

/// The section `model`, under the names of Hugging Face's `config.json`. What a
/// family has no key for keeps the value that it has here.
struct Model {
  std::string hfConfig;
  std::string modelType;
  int64_t vocabSize = 0, numPositions = 0, width = 0, numLayers = 0;
  int64_t numHeads = 0;
  std::optional<int64_t> numKeyValueHeads; ///< Unset: as many as heads.
  std::optional<int64_t> headWidth;        ///< Unset: width / heads.
  std::optional<int64_t> innerWidth;       ///< Unset: four times the width.
  std::string activation;
  double normEpsilon = 0, initializerRange = 0, ropeTheta = 0;
  double residDropout = 0, embdDropout = 0, attnDropout = 0;
  bool attentionBias = false, mlpBias = false, tieWordEmbeddings = false;
  /// Shorthands, resolved when read.
  bool untiesWordEmbeddings = false, hasPreSoftmax = false;
  bool groupsQueries = false;
  double hiddenDropout = 0;
  bool hasQueryKeyNorm = false;
  double rotaryShare = 1;        ///< Of the columns of a head.
  std::optional<int64_t> window; ///< Of attention; at least a sequence.
  /// Of latent attention: columns of the latents of queries, unset: they have
  /// none, and of keys and values; of a head of queries and keys, those without
  /// and with a position; of one of values.
  std::optional<int64_t> queryRank;
  int64_t latentRank = 0, plainWidth = 0, turnedWidth = 0, valueWidth = 0;
  /// Of the norms of latents, whatever that of others is.
  static constexpr double kLatentEpsilon = 1e-6;
  double latentEpsilon = kLatentEpsilon;
  bool isInterleaved = true; ///< Whether neighbouring columns are a pair.
  int64_t numExperts = 0;    ///< 0: no layer has experts.
  int64_t expertsPerToken = 0;
  std::optional<int64_t> expertWidth; ///< Unset: as that of the MLP.
  bool normalizesTopK = true;
  int64_t sparseStep = 1;
  std::vector<int64_t> denseLayers;
  int64_t firstExperts = 0; ///< The first layer that may have experts.
  std::optional<int64_t> sharedWidth; ///< Of the expert that all share.
  int64_t numShared = 0;       ///< Experts that all share, as wide as others.
  std::string expertLayers;    ///< As Megatron says it; resolved when read.
  int64_t vocabMultiple = 128; ///< What Megatron fills it up to; checked.
  double routedScale = 1;      ///< Of the weights of a token's experts.
  std::string choice; ///< "greedy" or "group_limited_greedy"; empty: by groups.
  std::optional<int64_t> numGroups;  ///< Of experts; unset: one.
  std::optional<int64_t> keptGroups; ///< Of a token; unset: all.
  bool hasAuxLoss = false;
  double auxLossCoefficient = 0; ///< Of all layers with experts together.

  int64_t getNumKeyValueHeads() const {
    return numKeyValueHeads.value_or(numHeads);
  }
  /// Columns of a head of queries and keys.
  int64_t getHeadWidth() const {
    return latentRank ? plainWidth + turnedWidth
                      : headWidth.value_or(width / numHeads);
  }
  int64_t getValueWidth() const {
    return latentRank ? valueWidth : getHeadWidth();
  }
  int64_t getInnerWidth() const { return innerWidth.value_or(4 * width); }
  int64_t getExpertWidth() const {
    return expertWidth.value_or(getInnerWidth());
  }
  int64_t getSharedWidth() const {
    return numShared ? numShared * getExpertWidth()
                     : sharedWidth.value_or(getInnerWidth());
  }
  /// Columns of a head that are turned.
  int64_t getRotaryWidth() const {
    return latentRank ? turnedWidth
                      : int64_t(double(getHeadWidth()) * rotaryShare);
  }
  /// Groups of experts that are chosen by their groups first: 1 if none are.
  int64_t getNumGroups() const {
    return choice == "greedy" ? 1 : numGroups.value_or(1);
  }
  int64_t getKeptGroups() const {
    return choice == "greedy" ? 1 : keptGroups.value_or(getNumGroups());
  }
  /// Whether the layer, counted from 0, has experts in place of an MLP.
  bool hasExperts(int64_t layer) const {
    return numExperts && layer >= firstExperts &&
           (layer + 1) % sparseStep == 0 &&
           std::find(denseLayers.begin(), denseLayers.end(), layer) ==
               denseLayers.end();
  }
};

/// The map `rope_scaling` of the section `model`: how the angles of rotary
/// positions are stretched.
struct Rotary {
  std::string type; ///< "default", "linear", "llama3" or "yarn".
  std::optional<double> factor, lowFreqFactor, highFreqFactor;
  std::optional<int64_t> originalPositions;
  std::optional<double> betaFast, betaSlow;
  std::optional<double> attentionFactor, mscale, mscaleAllDim;
  bool truncate = true;
};

/// The section `train`.
struct Train {
  int64_t seqLength, microBatchSize;
  /// Unset: a step has one micro-batch for each rank.
  std::optional<int64_t> globalBatchSize;
  std::string attention;                ///< "flash" or "unfused".
  std::optional<int64_t> headChunkRows; ///< Unset: as the pass decides.
  std::string precision;                ///< "fp32" or "bf16".
  bool isBF16 = false;                  ///< A shorthand, resolved when read.
  std::string optimizer;                ///< "adamw".
  double lr, minLr;
  std::string lrDecayStyle; ///< "constant", "linear" or "cosine".
  int64_t lrWarmupIters, trainIters;
  std::optional<int64_t> lrDecayIters; ///< Unset: `trainIters`.
  /// Shorthands for these, resolved when read.
  std::optional<double> warmupFraction;
  std::optional<int64_t> warmupSamples, decaySamples, trainSamples;
  int64_t getLRDecayIters() const { return lrDecayIters.value_or(trainIters); }
  double adamBeta1, adamBeta2, adamEps, weightDecay;
  std::optional<double> startWeightDecay, endWeightDecay; ///< The same.
  double clipGrad; ///< 0: gradients are not clipped.
  /// "aux_loss", "seq_aux_loss" and "global_aux_loss", each once, or "none";
  /// and factors of their terms of each layer with experts, 0: none.
  std::vector<std::string> balancing;
  std::vector<double> moeAuxLoss;
  double moeZLoss = 0; ///< Of the logits of each layer's router; 0: none.
  bool updatesBias = false;
  std::optional<double> biasUpdateRate; ///< Unset: as `updatesBias` says.
  std::optional<double> capacityFactor; ///< Unset: no token is dropped.
  std::string dropPolicy;               ///< "probs" or "position".
  bool padsToCapacity = false, showsLoads = false;
  int64_t furtherLayers = 0; ///< That predict a further token each.
  double furtherFactor = 0;  ///< Of the mean of their losses.
  int64_t seed;
  /// Shell patterns for names of parameters that are not trained.
  std::optional<std::vector<std::string>> frozen;

  /// Of the bias that experts are chosen with; 0: it stays as it is.
  double getBiasUpdateRate() const {
    return biasUpdateRate.value_or(updatesBias ? 1e-3 : 0);
  }
  /// Of the term of type `type` for the balance of each layer's experts; 0:
  /// there is none, as of "none".
  double getBalanceFactor(llvm::StringRef type) const {
    for (size_t i = 0; i < balancing.size() && i < moeAuxLoss.size(); ++i)
      if (balancing[i] == type && type != "none")
        return moeAuxLoss[i];
    return 0;
  }
  /// Whether there is any.
  bool balancesLayers() const {
    return getBalanceFactor("aux_loss") > 0 ||
           getBalanceFactor("seq_aux_loss") > 0 || balancesStep();
  }
  /// Whether one is with the rows of the step so far, in training alone.
  bool balancesStep() const { return getBalanceFactor("global_aux_loss") > 0; }
};

/// The section `recompute`, checked, aliases and shorthands resolved.
struct Recompute {
  std::string granularity; ///< Empty: nothing; "selective" or "full".
  std::string method;      ///< With "full": "uniform" or "block".
  std::optional<int64_t> numLayers;
  /// With "selective": what was given, or `core_attn`; empty means none.
  std::optional<std::vector<std::string>> modules;
  bool activations = false, experts = false; ///< Short for some of it.
  std::string planFile; ///< Instead of a granularity; empty: none.
  bool distributesSaved;
  std::string lastSegment; ///< "auto" or "always".
  std::string isFree;      ///< "on" or "off".
};

/// The section `parallel`: the ranks of the program, and what plans of a
/// pipeline are about.
struct Parallel {
  int64_t dataParallel;      ///< Ranks that have samples of their own.
  bool distributedOptimizer; ///< And a share of the optimizer's state.
  /// Groups of micro-batches in which gradients are summed; unset: one for each
  /// of `dataParallel`.
  std::optional<int64_t> reductionGroups;
  int64_t tensorParallel; ///< Ranks that share the parameters of layers.
  bool sequenceParallel;  ///< And the positions between these.
  /// Ranks of `dataParallel`, or of all, that each have some of the experts.
  int64_t expertParallel;
  /// That an expert has at a time; unset: all.
  std::optional<int64_t> expertRows;
  /// Those that have a part of each expert, or 1; unset: all of them.
  std::optional<int64_t> expertTensorParallel;
  int64_t stages, virtualStages; ///< Of the pipeline; `virtualStages` on each.
  std::optional<int64_t> firstStage, lastStage; ///< Their numbers of layers.
  bool countsEmbedding, countsLoss;
  std::string schedule; ///< Of stages; empty: unset.
  std::optional<int64_t> microBatchGroup;
  std::optional<std::vector<std::string>> layout;
  /// Layers of each chunk, in the order of the model; empty: one for all.
  std::vector<int64_t> chunks;
};

/// A place in a file, from 1; without a file, the command line.
struct SourcePosition {
  std::string file;
  unsigned line = 1, column = 1;
};

struct Description {
  /// With the default of every key of `family` that has one; null is one that
  /// is not known.
  explicit Description(const Family *family = nullptr);

  const Family *family;
  Model model;
  Rotary rotary;
  Train train;
  Recompute recompute;
  Parallel parallel;
  /// Sequences in a step of all ranks.
  int64_t getGlobalBatchSize() const {
    return train.globalBatchSize.value_or(train.microBatchSize *
                                          parallel.dataParallel);
  }
  /// By which scores are multiplied.
  double getScoreScale() const;
  /// The most rows of a micro-batch that an expert may have, if any token can
  /// be dropped.
  std::optional<int64_t> getExpertCapacity() const;
  /// Micro-batches in a step of one rank.
  int64_t getMicroBatchesPerRank() const {
    return getGlobalBatchSize() / train.microBatchSize / parallel.dataParallel;
  }

  /// Groups of these whose gradients are summed by themselves.
  int64_t getReductionGroupsPerRank() const {
    return parallel.reductionGroups.value_or(parallel.dataParallel) /
           parallel.dataParallel;
  }

  SourcePosition modelPosition; ///< Of the section `model`.
  /// Of each key that a file gives, by its name in the family.
  std::map<std::string, SourcePosition, std::less<>> positions;
  std::vector<SourcePosition> frozenPositions; ///< Of each of `train.frozen`.
  /// The ids of special tokens in the Hugging Face file, names and JSON: they
  /// mean nothing to training, but to who generates text with the weights.
  std::vector<std::pair<std::string, std::string>> tokenIds;
  /// Keys of the Hugging Face file that mean nothing to training.
  std::vector<std::string> ignoredKeys;
};

/// Reads one description. Diagnostics go through the source manager, to its
/// handler or to stderr: `file:line:column: error: …` with the line and a
/// caret, or `error: option --lr: …`.
///
/// No input crashes it. Files above 1 MiB, lines above 4096 bytes and brackets
/// more than 32 deep are refused before a parser sees them.
class DescriptionReader {
public:
  explicit DescriptionReader(llvm::SourceMgr &sources);
  ~DescriptionReader();

  /// Gives a key as an option of the command line, which wins over the file.
  /// The key is spelt with dashes or underscores, without `--`. An empty
  /// `value` means `true` for switches and the empty list for lists. Fails,
  /// with a diagnostic, if there is no such key or the value is not of its
  /// type.
  llvm::LogicalResult setOption(llvm::StringRef key, llvm::StringRef value);

  /// Reads and checks the file; `-` is standard input. Fails, with at least one
  /// diagnostic, if anything is wrong.
  llvm::FailureOr<Description> read(llvm::StringRef path);

private:
  class Impl;
  std::unique_ptr<Impl> impl;
};

/// One key of a description, as an option of the command line.
struct KeyInfo {
  std::string name;         ///< `lr_decay_style`
  llvm::StringRef section;  ///< `train`
  std::string families;     ///< `gpt2`, `llama and qwen3`; empty: all
  std::string type;         ///< `one of constant, linear, cosine`
  std::string defaultValue; ///< `cosine`, `required`, `unset`
  llvm::StringRef summary;  ///< one sentence without full stop
  std::vector<std::string> aliases;
  bool isSwitch; ///< true or false: needs no value as an option
};

/// All keys that are options, each name once, in the order of the
/// documentation.
std::vector<KeyInfo> listKeys();

/// The key for what other programs call `name`, spelt with underscores; empty
/// if there is none. Names that mean the same are aliases of a key instead.
llvm::StringRef findOwnName(llvm::StringRef name);

/// Whether `lhs` and `rhs` say the same of the key that is the option `name`,
/// spelt with underscores; not if there is none.
bool isSameText(llvm::StringRef name, llvm::StringRef lhs, llvm::StringRef rhs);

/// An option of Megatron's for what is decided or does not exist here: it is
/// read, and refused if its value would change something.
struct ForeignOption {
  enum Kind { Switch, MaybeText, Text, List };
  llvm::StringRef name; ///< With underscores.
  Kind kind;            ///< What its value is.
};
std::vector<ForeignOption> listForeignOptions();

/// What stands here in place of a key of Megatron's or NeMo's that is none
/// here; empty if it is no such key.
llvm::StringRef explainForeignKey(llvm::StringRef name);
/// The candidate that `word` is near enough to; empty if none is.
llvm::StringRef findNearest(llvm::StringRef word,
                            llvm::ArrayRef<llvm::StringRef> candidates);

/// The tables of docs/description.md, a heading and a table for each section.
void printKeysAsMarkdown(llvm::raw_ostream &os);

} // namespace reprise::frontend

#endif // REPRISE_FRONTEND_DESCRIPTION_H
