//===- Glm4Moe.cpp - GLM-4.5 ------------------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// GLM-4.5, arXiv:2508.06471, in the form and with the names of Hugging Face's
// Glm4MoeForCausalLM: Llama, of whose heads a share of the columns is turned,
// with experts in place of the MLP of all but the first layers. Scores are
// sigmoids, a bias that is not trained chooses with them, and an expert that
// all tokens share is added as it is.
//
//===----------------------------------------------------------------------===//

#include "DeepSeek.h"

using namespace reprise::frontend;

static constexpr KeyUse kKeys[] = {
    {"vocab_size", "151552", Need::HFDefault},
    {"max_position_embeddings", "131072"},
    {"hidden_size", "4096", Need::HFDefault},
    {"num_hidden_layers", "46", Need::HFDefault},
    {"num_attention_heads", "96", Need::HFDefault},
    {"num_key_value_heads", "num_attention_heads", Need::Unset, "8"},
    {"head_dim", "hidden_size / num_attention_heads", Need::Unset},
    {"intermediate_size", "10944", Need::HFDefault},
    {"n_routed_experts", "128", Need::HFDefault},
    {"num_experts_per_tok", "8"},
    {"moe_intermediate_size", "1408", Need::HFDefault},
    {"moe_shared_expert_intermediate_size", "unset", Need::Unset},
    {"n_shared_experts", "1"},
    {"first_k_dense_replace", "1"},
    {"norm_topk_prob", "true"},
    {"routed_scaling_factor", "1.0"},
    {"n_group", "1", Need::Unset},
    {"topk_group", "n_group", Need::Unset, "1"},
    {"hidden_act", "silu"},
    {"rms_norm_eps", "1e-5"},
    {"rope_theta", "10000.0"},
    {"rope_scaling", "unset", Need::Unset},
    {"partial_rotary_factor", "0.5", Need::Defaulted, "", "1"},
    {"attention_bias", "false"},
    {"use_qk_norm", "false"},
    {"attention_dropout", "0.0"},
    {"initializer_range", "0.02"},
    {"tie_word_embeddings", "false"},
};

static constexpr Family getFamily() {
  Family family;
  family.name = "glm4_moe";
  family.className = "Glm4Moe";
  family.otherNames = "glm4moe|glm4-moe|glm-4.5";
  family.keys = kKeys;
  family.refused = kRefusedOfV3;
  family.ignored = kIgnoredOfDeepSeek;
  family.blocks.queryKeyNorm = QueryKeyNorm::HeadByKey;
  family.blocks.outputBias = BiasKind::Never;
  family.blocks.mlpBias = BiasKind::Never;
  family.blocks.experts = ExpertKind::RoutedPlusShared;
  family.blocks.router = RouterKind::Sigmoid;
  family.blocks.mayPredictFurther = true;
  nameSharedExperts(family.tensors);
  return family;
}

constexpr Family reprise::frontend::kGlm4Moe = getFamily();
