//===- DeepSeek.h - What DeepSeek's families share --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// And families that have their experts from there.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_PYTHON_FREE_FRONTEND_FAMILIES_DEEPSEEK_H
#define REPRISE_PYTHON_FREE_FRONTEND_FAMILIES_DEEPSEEK_H

#include "python-free-frontend/Family.h"

namespace reprise::frontend {

/// Keys of their `config.json` that Hugging Face's classes do not read either,
/// or that follow from others.
inline constexpr llvm::StringLiteral kIgnoredOfDeepSeek[] = {
    "aux_loss_alpha",
    "ep_size",
    "head_dim",
    "num_mtp_layers",
    "num_nextn_predict_layers",
    "output_router_logits",
    "seq_aux"};

/// Of DeepSeek-V3 and what has its classes.
inline constexpr KeyUse kKeysOfV3[] = {
    {"vocab_size", "129280", Need::HFDefault},
    {"max_position_embeddings", "4096"},
    {"hidden_size", "7168", Need::HFDefault},
    {"num_hidden_layers", "61", Need::HFDefault},
    {"num_attention_heads", "128", Need::HFDefault},
    {"num_key_value_heads", "num_attention_heads", Need::Unset},
    {"q_lora_rank", "unset", Need::Unset, "1536"},
    {"kv_lora_rank", "512"},
    {"qk_nope_head_dim", "128"},
    {"qk_rope_head_dim", "64"},
    {"v_head_dim", "128"},
    {"intermediate_size", "18432", Need::HFDefault},
    {"n_routed_experts", "256", Need::HFDefault},
    {"num_experts_per_tok", "8"},
    {"moe_intermediate_size", "2048", Need::HFDefault},
    {"moe_shared_expert_intermediate_size", "unset", Need::Unset},
    {"n_shared_experts", "1"},
    {"first_k_dense_replace", "3"},
    {"norm_topk_prob", "true", Need::Defaulted, "", "false"},
    {"routed_scaling_factor", "2.5"},
    {"n_group", "8"},
    {"topk_group", "4"},
    {"hidden_act", "silu"},
    {"rms_norm_eps", "1e-6"},
    {"rope_theta", "10000.0"},
    {"rope_scaling", "unset", Need::Unset},
    {"rope_interleave", "true", Need::Defaulted, "", "false"},
    {"attention_bias", "false"},
    {"attention_dropout", "0.0"},
    {"initializer_range", "0.02"},
    {"tie_word_embeddings", "false"},
};

inline constexpr RefusedKey kRefusedOfV3[] = {{"moe_layer_freq", "1"},
                                              {"topk_method", "noaux_tc"}};

/// Names of tensors of the experts that all tokens share.
constexpr void nameSharedExperts(TensorNames &tensors) {
  tensors.sharedGate = ".mlp.shared_experts.gate_proj";
  tensors.sharedUp = ".mlp.shared_experts.up_proj";
  tensors.sharedDown = ".mlp.shared_experts.down_proj";
}

/// DeepSeek-V3 under a name of its own.
constexpr Family getFamilyOfV3(llvm::StringLiteral name) {
  Family family;
  family.name = name;
  family.className = "DeepseekV3";
  family.keys = kKeysOfV3;
  family.refused = kRefusedOfV3;
  family.ignored = kIgnoredOfDeepSeek;
  family.blocks.attention = AttentionKind::Latent;
  family.blocks.mlpBias = BiasKind::Never;
  family.blocks.experts = ExpertKind::RoutedPlusShared;
  family.blocks.router = RouterKind::Sigmoid;
  family.blocks.mayPredictFurther = true;
  nameSharedExperts(family.tensors);
  return family;
}

} // namespace reprise::frontend

#endif // REPRISE_PYTHON_FREE_FRONTEND_FAMILIES_DEEPSEEK_H
