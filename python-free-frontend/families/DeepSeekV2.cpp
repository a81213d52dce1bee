//===- DeepSeekV2.cpp - DeepSeek-V2 -----------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// DeepSeek-V2, arXiv:2405.04434, in the form and with the names of Hugging
// Face's DeepseekV2ForCausalLM: latent attention, and experts in place of the
// MLP of all but the first layers. The weights of a token's experts are those
// of a softmax over all times a factor; with `group_limited_greedy` they are of
// the groups whose best expert is best. An expert that all tokens share is
// added as it is.
//
//===----------------------------------------------------------------------===//

#include "DeepSeek.h"

using namespace reprise::frontend;

static constexpr KeyUse kKeys[] = {
    {"vocab_size", "102400", Need::HFDefault},
    {"max_position_embeddings", "2048"},
    {"hidden_size", "4096", Need::HFDefault},
    {"num_hidden_layers", "32", Need::HFDefault},
    {"num_attention_heads", "32", Need::HFDefault},
    {"num_key_value_heads", "num_attention_heads", Need::Unset},
    {"q_lora_rank", "unset", Need::Unset, "1536"},
    {"kv_lora_rank", "512"},
    {"qk_nope_head_dim", "128"},
    {"qk_rope_head_dim", "64"},
    {"v_head_dim", "128"},
    {"intermediate_size", "11008", Need::HFDefault},
    {"n_routed_experts", "64", Need::HFDefault},
    {"num_experts_per_tok", "required", Need::Required},
    {"moe_intermediate_size", "1407", Need::HFDefault},
    {"moe_shared_expert_intermediate_size", "unset", Need::Unset},
    {"n_shared_experts", "2"},
    {"first_k_dense_replace", "0"},
    {"norm_topk_prob", "false"},
    {"moe_router_pre_softmax", "unset", Need::Unset},
    {"routed_scaling_factor", "1.0"},
    {"topk_method", "greedy"},
    {"n_group", "1", Need::Unset},
    {"topk_group", "n_group", Need::Unset},
    {"hidden_act", "silu"},
    {"rms_norm_eps", "1e-6"},
    {"rope_theta", "10000.0"},
    {"rope_scaling", "unset", Need::Unset},
    {"attention_bias", "false"},
    {"attention_dropout", "0.0"},
    {"initializer_range", "0.02"},
    {"tie_word_embeddings", "false"},
};

static constexpr RefusedKey kRefused[] = {{"moe_layer_freq", "1"}};

static constexpr Family getFamily() {
  Family family;
  family.name = "deepseek_v2";
  family.className = "DeepseekV2";
  family.otherNames = "deepseekv2|deepseek-v2|deepseek";
  family.keys = kKeys;
  family.refused = kRefused;
  family.ignored = kIgnoredOfDeepSeek;
  family.blocks.attention = AttentionKind::Latent;
  family.blocks.mlpBias = BiasKind::Never;
  family.blocks.experts = ExpertKind::RoutedPlusShared;
  nameSharedExperts(family.tensors);
  return family;
}

constexpr Family reprise::frontend::kDeepSeekV2 = getFamily();
