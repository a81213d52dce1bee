//===- MegatronModel.cpp - What Megatron says of a model --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Keys of Megatron's that say in one word what keys of a family say in others:
// they become these, or have to mean the same.
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Keys.h"
#include "python-free-frontend/LayerPattern.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace llvm;
using namespace reprise::frontend;

namespace {
class Resolver {
public:
  Resolver(Description &description, const Origins &origins,
           Diagnostics &diagnostics)
      : model(description.model), family(*description.family),
        ranks(description.parallel.tensorParallel), origins(origins),
        diagnostics(diagnostics) {}

  void resolveGroups();
  void resolveLayers();
  void resolveSharedWidth();
  void checkVocabulary();

private:
  /// Whether `rival` says the same thing from a place of no lower rank.
  bool isSaid(StringRef rival, StringRef key) const {
    return origins.count(rival) && (origins.lookup(rival).isOption() ||
                                    !origins.lookup(key).isOption());
  }
  void error(StringRef key, const Twine &message) {
    diagnostics.error(*findKey(key), origins.lookup(key), message);
  }

  Model &model;
  const Family &family;
  int64_t ranks;
  const Origins &origins;
  Diagnostics &diagnostics;
};
} // namespace

/// Whether heads share keys and values: one for all, unless something says how
/// many there are. In latent attention none do.
void Resolver::resolveGroups() {
  constexpr StringLiteral key = "group_query_attention";
  constexpr StringLiteral number = "num_key_value_heads";
  if (!origins.count(key))
    return;
  bool isLatent = family.blocks.attention == AttentionKind::Latent;
  if (model.groupsQueries && !origins.count(number) && !isLatent)
    model.numKeyValueHeads = 1;
  if (model.groupsQueries)
    return;
  if (isSaid(number, key) && model.getNumKeyValueHeads() != model.numHeads)
    return error(key, "is false, but '" + number + "' is " +
                          Twine(model.getNumKeyValueHeads()) + " for " +
                          Twine(model.numHeads) + " heads");
  model.numKeyValueHeads.reset();
}

/// Which layers have experts.
void Resolver::resolveLayers() {
  constexpr StringLiteral key = "moe_layer_freq";
  if (model.expertLayers.empty())
    return;
  std::optional<std::vector<bool>> layers =
      parseLayerPattern(model.expertLayers, model.numLayers);
  if (!layers)
    return error(key, "needs a whole number of at least 1, or a 0 or 1 for "
                      "each of " +
                          Twine(model.numLayers) +
                          " layers, as in ([0]*3+[1]*58), but got '" +
                          model.expertLayers + "'");
  std::string rival;
  for (StringRef name :
       {"decoder_sparse_step", "first_k_dense_replace", "mlp_only_layers"})
    if (isSaid(name, key))
      rival = "'" + name.str() + "'";
  if (rival.empty()) {
    model.denseLayers.clear();
    model.sparseStep = 1;
    model.firstExperts = 0;
  }
  if (rival.empty() && family.findUse("first_k_dense_replace"))
    model.firstExperts =
        std::find(layers->begin(), layers->end(), true) - layers->begin();
  else if (rival.empty() && family.findUse("mlp_only_layers"))
    for (auto [layer, hasExperts] : enumerate(*layers))
      if (!hasExperts)
        model.denseLayers.push_back(layer);
  for (auto [layer, hasExperts] : enumerate(*layers))
    if (model.hasExperts(layer) != hasExperts)
      return error(key,
                   "says that layer " + Twine(layer) + " has " +
                       (hasExperts ? "experts" : "none") + ", but " +
                       (rival.empty() ? "no layers of " + family.name.str() +
                                            " are chosen in that way"
                                      : rival + " says otherwise"));
}

/// The width of all experts that are shared, as a number of experts.
void Resolver::resolveSharedWidth() {
  if (!model.sharedWidth || !family.findUse("n_shared_experts"))
    return;
  int64_t width = model.getExpertWidth();
  if (*model.sharedWidth % width != 0)
    return error("moe_shared_expert_intermediate_size",
                 "needs a multiple of moe_intermediate_size " + Twine(width) +
                     ", but got " + Twine(*model.sharedWidth));
  int64_t number = *model.sharedWidth / width;
  if (isSaid("n_shared_experts", "moe_shared_expert_intermediate_size") &&
      model.numShared != number)
    return error("moe_shared_expert_intermediate_size",
                 "is that of " + Twine(number) +
                     " experts, but n_shared_experts is " +
                     Twine(model.numShared));
  model.numShared = number;
  model.sharedWidth.reset();
}

/// Megatron fills the vocabulary up to a multiple, for each rank along tp.
void Resolver::checkVocabulary() {
  constexpr StringLiteral key = "make_vocab_size_divisible_by";
  int64_t multiple = model.vocabMultiple * ranks;
  if (origins.count(key) && model.vocabSize % multiple != 0)
    error(key,
          "fills the vocabulary up, which is not done here: write vocab_size " +
              Twine(alignTo(model.vocabSize, multiple)) + ", not " +
              Twine(model.vocabSize));
}

void reprise::frontend::resolveMegatron(Description &description,
                                        const Origins &origins,
                                        Diagnostics &diagnostics) {
  Resolver resolver(description, origins, diagnostics);
  resolver.resolveGroups();
  resolver.resolveLayers();
  resolver.resolveSharedWidth();
  resolver.checkVocabulary();
}
