//===- ChecksOfExperts.cpp - Experts of a description ---------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Checks.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace reprise;
using namespace reprise::frontend;

namespace {
class ExpertChecker : public Checker {
public:
  explicit ExpertChecker(const Checker &checker) : Checker(checker) {}

  void checkExperts();

private:
  void checkBias(bool hasBias);
  void checkBalance();
  void checkTerms();
  void checkGroups();
};
} // namespace

/// The pattern of layers is read from zero on, as in Hugging Face's classes.
void ExpertChecker::checkExperts() {
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

/// What becomes of the bias that experts are chosen with, if the family has
/// one.
void ExpertChecker::checkBias(bool hasBias) {
  if (train.getBiasUpdateRate() > 0 && !hasBias)
    error(firstGiven(
              {"moe_router_bias_update_rate", "moe_router_enable_expert_bias"}),
          "needs a family whose experts are chosen by sigmoids and a bias, "
          "deepseek_v3, kimi_k2 or glm4_moe, but got " +
              model.modelType);
  bool isFixed = isGiven("moe_router_enable_expert_bias") && !train.updatesBias;
  if (isFixed && train.getBiasUpdateRate() > 0)
    error("moe_router_bias_update_rate",
          formatv("needs to be 0 or left out where "
                  "moe_router_enable_expert_bias is false, but got {0}",
                  format("%g", train.getBiasUpdateRate())));
  else if (isFixed && hasBias)
    warning("moe_router_enable_expert_bias",
            "leaves the bias of " + model.modelType +
                " as it is, zero or what weights have of it: its experts are "
                "chosen with one");
}

/// As a list is written.
static std::string join(ArrayRef<double> numbers) {
  std::string text;
  for (double number : numbers)
    text +=
        formatv("{0}{1}", text.empty() ? "" : ", ", format("%g", number)).str();
  return text;
}

/// A factor for each type of term; and not those of Hugging Face beside
/// Megatron's, which count the same rows in two ways.
void ExpertChecker::checkTerms() {
  StringRef type = "moe_router_load_balancing_type",
            factor = "moe_aux_loss_coeff";
  size_t types = train.balancing.size(), factors = train.moeAuxLoss.size();
  bool isNone = is_contained(train.balancing, "none");
  if (types == 0 || (isNone && types > 1))
    return error(type, "needs aux_loss, seq_aux_loss or global_aux_loss in a "
                       "list, or none alone");
  if (!isGiven(factor)) {
    if (isGiven(type) && !isNone)
      warning(type, "has no effect without moe_aux_loss_coeff");
    return;
  }
  if (types != factors)
    return error(factor,
                 "needs as many numbers as " + type + " has types, " +
                     Twine(types) + ", but got " + Twine(factors) + ": " +
                     join(train.moeAuxLoss) +
                     (factors > types && origins.lookup(factor).isOption()
                          ? "; an option that is given again adds to "
                            "its list"
                          : ""));
  if (isNone && train.moeAuxLoss.front() > 0)
    warning(factor, "has no effect with " + type + " none");
  if (model.hasAuxLoss && model.auxLossCoefficient > 0 &&
      train.balancesLayers())
    error(factor,
          formatv("needs to be 0 or left out where output_router_logits "
                  "balances the same experts, of all layers together, with "
                  "router_aux_loss_coef {0}, but got {1}; or write "
                  "output_router_logits false",
                  format("%g", model.auxLossCoefficient),
                  join(train.moeAuxLoss)) +
              nameDefaults({"router_aux_loss_coef"}));
}

/// What balances experts is there for them.
void ExpertChecker::checkBalance() {
  bool hasBias = family->blocks.router == RouterKind::Sigmoid;
  checkBias(hasBias);
  checkTerms();
  if (isGiven("moe_token_drop_policy") && !train.capacityFactor)
    warning("moe_token_drop_policy",
            "has no effect without moe_expert_capacity_factor, as no token is "
            "dropped");
  if (train.padsToCapacity && !train.capacityFactor)
    error("moe_pad_expert_input_to_capacity",
          "needs 'moe_expert_capacity_factor', which says how far");
  if (train.padsToCapacity && train.getBiasUpdateRate() > 0)
    error("moe_pad_expert_input_to_capacity",
          "needs a bias that does not change: where all experts have as many "
          "rows there is nothing to balance");
}

/// That the groups of experts are equal, and those of a token have enough.
void ExpertChecker::checkGroups() {
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

void reprise::frontend::checkExperts(const Checker &checker) {
  ExpertChecker(checker).checkExperts();
}
