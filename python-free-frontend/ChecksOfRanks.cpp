//===- ChecksOfRanks.cpp - Ranks and stages of a description --------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Checks.h"
#include "reprise/Support/ExpertRows.h"
#include "reprise/Support/LayerSplit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace reprise;
using namespace reprise::frontend;

namespace {
class RankChecker : public Checker {
public:
  explicit RankChecker(const Checker &checker) : Checker(checker) {}

  void checkReductionGroups();
  void checkParallel();
  void checkTensorParallel();
  void checkExpertParallel();

private:
  bool hasLetters() const;
  void countChunks();
  bool hasDenseLayer() const;
  StringRef getExpertWidthKey();
  StringRef getSharedWidthKey();
  void checkExpertTensorParallel();
  void checkExpertRounds();
  /// Whether a size fits those that are said beside it.
  using Fits = function_ref<bool(int64_t)>;
  bool checkShared(
      ArrayRef<StringRef> keys, StringRef what, int64_t size, StringRef key,
      int64_t ranks, Fits fits = [](int64_t) { return true; },
      bool mayDivide = false);
  bool fitsHeads(int64_t heads) const;
  bool fitsExperts(int64_t experts) const;
  bool checkPositions(ArrayRef<StringRef> keys);
};
} // namespace

/// "; the nearest are 4 and 8": the sizes next to `size` that are right.
static std::string nameNearest(int64_t size,
                               function_ref<bool(int64_t)> isRight) {
  constexpr int64_t most = 1 << 20;
  auto find = [&](int64_t step) -> int64_t {
    for (int64_t count = 1; count <= most && size + count * step > 0; ++count)
      if (isRight(size + count * step))
        return size + count * step;
    return 0;
  };
  int64_t below = find(-1), above = find(1);
  if (below && above)
    return "; the nearest are " + std::to_string(below) + " and " +
           std::to_string(above);
  if (below || above)
    return (below ? "; the nearest is " : "; the least is ") +
           std::to_string(below + above);
  return "; beside the other sizes no number is right";
}

/// Refuses `size`, which `key` says, unless each of `ranks` can have as much,
/// or with `mayDivide` as many ranks can have each. It is said at the first of
/// `keys` that was given.
bool RankChecker::checkShared(ArrayRef<StringRef> keys, StringRef what,
                              int64_t size, StringRef key, int64_t ranks,
                              Fits fits, bool mayDivide) {
  auto isShared = [&](int64_t size) {
    return size % ranks == 0 || (mayDivide && ranks % size == 0);
  };
  if (isShared(size))
    return true;
  // The columns of several experts are no number that a key has.
  std::string nearest;
  if (key != nameOf<&Model::numShared>())
    nearest = nameNearest(
        size, [&](int64_t size) { return isShared(size) && fits(size); });
  error(firstGiven(keys), "needs " + what + " that " + Twine(ranks) +
                              " ranks can share evenly, " +
                              (mayDivide ? "or that divide the ranks, " : "") +
                              "but got " + Twine(size) + " (" + key + ")" +
                              nearest);
  return false;
}

/// Whether so many heads have equal widths, which rotary positions can turn,
/// and equal numbers for each head of keys and values.
bool RankChecker::fitsHeads(int64_t heads) const {
  if (family->blocks.attention == AttentionKind::Latent)
    return true; // They are as wide as their keys say, each with its own keys.
  if ((!model.headWidth && model.width % heads != 0) ||
      heads % model.numKeyValueHeads.value_or(heads) != 0)
    return false;
  Model other = model;
  other.numHeads = heads;
  int64_t turned = other.getRotaryWidth();
  return !family->hasRotaryPositions() || (turned > 0 && turned % 2 == 0);
}

/// Whether so many experts are in equal groups, and those of a token in the
/// ones that it has.
bool RankChecker::fitsExperts(int64_t experts) const {
  int64_t groups = model.getNumGroups(), size = experts / groups;
  bool isBySums = groups > 1 && family->blocks.router == RouterKind::Sigmoid;
  return experts % groups == 0 && size >= (isBySums ? 2 : 1) &&
         model.expertsPerToken <= model.getKeptGroups() * size;
}

bool RankChecker::checkPositions(ArrayRef<StringRef> keys) {
  return checkShared(keys, "positions", train.seqLength, "seq_length",
                     parallel.tensorParallel,
                     [&](int64_t size) { return size <= model.numPositions; });
}

/// Groups of micro-batches have equal sizes, and each rank has as many.
void RankChecker::checkReductionGroups() {
  if (!parallel.reductionGroups)
    return;
  int64_t groups = *parallel.reductionGroups, ranks = parallel.dataParallel;
  int64_t batches = description.getGlobalBatchSize() / train.microBatchSize;
  if (groups % ranks != 0)
    error("gradient_reduction_groups",
          "needs to be a multiple of data_parallel_size " + Twine(ranks) +
              ", so that each rank has as many groups, but got " +
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

bool RankChecker::hasDenseLayer() const {
  for (int64_t layer = 0; layer < model.numLayers; ++layer)
    if (!model.hasExperts(layer))
      return true;
  return false;
}

/// The keys that say how wide an expert is, and the one that all share.
StringRef RankChecker::getExpertWidthKey() {
  return model.expertWidth ? nameOf<&Model::expertWidth>()
                           : nameOf<&Model::innerWidth>();
}

StringRef RankChecker::getSharedWidthKey() {
  return model.numShared ? nameOf<&Model::numShared>()
                         : nameOf<&Model::sharedWidth>();
}

/// Every rank along tp has a part of each expert, or whole ones for its part of
/// the positions.
void RankChecker::checkExpertTensorParallel() {
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
  checkPositions({key, "tensor_model_parallel_size", "seq_length"});
}

/// Rounds are as many as the rows need that tokens of all ranks can send to one
/// expert.
void RankChecker::checkExpertRounds() {
  uint64_t tokens =
      SaturatingMultiply<uint64_t>(train.microBatchSize, train.seqLength) /
      (hasWholeExperts(parallel) ? parallel.tensorParallel : 1);
  if (std::optional<int64_t> capacity = description.getExpertCapacity())
    tokens = std::min<uint64_t>(tokens, *capacity);
  uint64_t rows = SaturatingMultiply<uint64_t>(tokens, parallel.expertParallel);
  uint64_t least = divideCeil(rows, uint64_t(kMostExpertRounds));
  uint64_t given = *parallel.expertRows;
  if (given < least)
    error("moe_expert_rows_per_round",
          "needs to be at least " + Twine(least) +
              ", since an expert can have " + Twine(rows) +
              " rows, which are for at most " + Twine(kMostExpertRounds) +
              " rounds, each of them compiled, but got " + Twine(given));
}

/// Along ep each rank has some of the experts.
void RankChecker::checkExpertParallel() {
  StringRef key = "expert_model_parallel_size";
  int64_t ranks = parallel.expertParallel, tensor = parallel.tensorParallel;
  if (ranks > 1 && !model.numExperts)
    return error(key, "needs a model with experts, but " + model.modelType +
                          " has none here: leave it out; ranks share other "
                          "layers by tensor_model_parallel_size, and have "
                          "samples of their own by data_parallel_size");
  // Rounds are of rows of other ranks; on one rank experts have all theirs in
  // the room of the tokens' rows.
  if (ranks == 1 && parallel.expertRows)
    error("moe_expert_rows_per_round",
          "needs expert_model_parallel_size above 1, but got 1: experts have "
          "no rows of other ranks then, and no room for more than there are");
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
  StringRef experts = nameOf<&Model::numExperts>();
  if (ranks > 1 &&
      checkShared({key, experts}, "experts", model.numExperts, experts, ranks,
                  [&](int64_t size) { return fitsExperts(size); }) &&
      parallel.expertRows)
    checkExpertRounds();
}

/// Ranks have parts of equal shape.
void RankChecker::checkTensorParallel() {
  int64_t ranks = parallel.tensorParallel;
  if (ranks == 1) {
    if (parallel.sequenceParallel)
      error("sequence_parallel",
            "needs tensor_model_parallel_size above 1, but got 1");
    return;
  }
  StringRef tensor = "tensor_model_parallel_size";
  auto check = [&](StringRef key, StringRef what, int64_t size) {
    return checkShared({tensor, key}, what, size, key, ranks);
  };
  StringRef heads = nameOf<&Model::numHeads>();
  if (!checkShared({tensor, heads}, "heads", model.numHeads, heads, ranks,
                   [&](int64_t size) { return fitsHeads(size); }) ||
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
  StringRef keys = nameOf<&Model::numKeyValueHeads>();
  checkShared(
      {tensor, keys}, "heads of keys and values", model.getNumKeyValueHeads(),
      keys, ranks, [&](int64_t size) { return model.numHeads % size == 0; },
      /*mayDivide=*/true);
  if (parallel.sequenceParallel)
    checkPositions({tensor, "seq_length"});
}

bool RankChecker::hasLetters() const {
  return parallel.layout && !parallel.layout->empty() &&
         StringRef(parallel.layout->front()).starts_with("E");
}

/// As in Megatron, letters say how many chunks there are.
void RankChecker::countChunks() {
  LayerSplit split;
  int64_t further = 0;
  if (!hasLetters() || isGiven("virtual_stages") ||
      parseLayout(llvm::join(*parallel.layout, ""), split.layout, further))
    return;
  int64_t chunks = split.layout.size();
  if (chunks % parallel.stages == 0)
    parallel.virtualStages = chunks / parallel.stages;
}

void RankChecker::checkParallel() {
  if (parallel.distributedOptimizer && !hasEqualStates(parallel))
    warning("use_distributed_optimizer",
            "has no effect with data_parallel_size 1");
  if (parallel.stages > 1)
    countChunks();
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
  int64_t further = 0;
  // In letters a comma is for people, and so is what it separates.
  if (hasLetters()) {
    if (std::optional<std::string> fault = parseLayout(
            llvm::join(*parallel.layout, ""), split.layout, further))
      return error("pipeline_layout", *fault);
  } else if (parallel.layout && parallel.layout->empty()) {
    return error("pipeline_layout", "needs layers of each of the " +
                                        Twine(split.getNumChunks()) +
                                        " chunks, but got none");
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
  if (further && further != train.furtherLayers)
    return error("pipeline_layout", "needs an m for each of mtp_num_layers " +
                                        Twine(train.furtherLayers) +
                                        ", or none, but got " + Twine(further));
  if (further)
    split.layout.back() -= further;
  if (std::optional<std::string> fault =
          splitLayers(split, model.numLayers, parallel.chunks))
    return error(given, *fault);
  // They have their place behind the layers of the last chunk.
  parallel.chunks.back() += train.furtherLayers;
}

void reprise::frontend::checkReductionGroups(const Checker &checker) {
  RankChecker(checker).checkReductionGroups();
}

void reprise::frontend::checkRanks(const Checker &checker) {
  RankChecker own(checker);
  own.checkParallel();
  own.checkTensorParallel();
  own.checkExpertParallel();
}
