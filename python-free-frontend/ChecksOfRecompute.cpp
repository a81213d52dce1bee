//===- ChecksOfRecompute.cpp - What a description recomputes --------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Checks.h"
#include "reprise/Support/RecomputeLabels.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace reprise;
using namespace reprise::frontend;

namespace {
class RecomputeChecker : public Checker {
public:
  explicit RecomputeChecker(const Checker &checker) : Checker(checker) {}

  void checkRecompute();
  void checkNumLayers();

private:
  bool hasRegion(const RecomputeLabel &label) const;
  /// Whether the module is one that this model has; says what it is if not.
  bool checkModule(StringRef word, const Origin &origin);
  void checkModules();
  void checkPlan();
  void checkSharedInputs();
  void addExperts();
};
} // namespace

/// Whether a layer of the model has the region of the label.
bool RecomputeChecker::hasRegion(const RecomputeLabel &label) const {
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

bool RecomputeChecker::checkModule(StringRef word, const Origin &origin) {
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
void RecomputeChecker::checkModules() {
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
void RecomputeChecker::checkPlan() {
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
void RecomputeChecker::addExperts() {
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
void RecomputeChecker::checkSharedInputs() {
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

void RecomputeChecker::checkRecompute() {
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

/// Megatron takes more layers than there are as all of them.
void RecomputeChecker::checkNumLayers() {
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

void reprise::frontend::checkRecompute(const Checker &checker) {
  RecomputeChecker(checker).checkRecompute();
}

void reprise::frontend::checkNumLayers(const Checker &checker) {
  RecomputeChecker(checker).checkNumLayers();
}
