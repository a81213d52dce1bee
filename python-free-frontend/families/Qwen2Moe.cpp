//===- Qwen2Moe.cpp - Qwen2 with experts ------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Yang et al., Qwen2 Technical Report, arXiv:2407.10671, in the form and with
// the names of Hugging Face's Qwen2MoeForCausalLM: Qwen2 with experts in place
// of the MLP of some layers, and one more that all tokens share, times the
// sigmoid of a dot product. The weights of a token's experts are those of a
// softmax over all, divided by their sum with `norm_topk_prob`.
//
//===----------------------------------------------------------------------===//

#include "Qwen.h"

using namespace reprise::frontend;

static constexpr KeyUse kKeys[] = {
    {"vocab_size", "151936", Need::HFDefault},
    {"max_position_embeddings", "32768"},
    {"hidden_size", "2048", Need::HFDefault},
    {"num_hidden_layers", "24", Need::HFDefault},
    {"num_attention_heads", "16", Need::HFDefault},
    {"num_key_value_heads", "num_attention_heads", Need::Unset, "16"},
    {"head_dim", "hidden_size / num_attention_heads", Need::Unset},
    {"intermediate_size", "5632", Need::HFDefault},
    {"num_experts", "60", Need::HFDefault},
    {"num_experts_per_tok", "4"},
    {"moe_intermediate_size", "1408", Need::HFDefault},
    {"shared_expert_intermediate_size", "5632", Need::HFDefault},
    {"norm_topk_prob", "false"},
    {"moe_router_pre_softmax", "unset", Need::Unset},
    {"decoder_sparse_step", "1"},
    {"mlp_only_layers", "none", Need::Unset},
    {"hidden_act", "silu"},
    {"rms_norm_eps", "1e-6"},
    {"rope_theta", "10000.0"},
    {"rope_scaling", "unset", Need::Unset},
    {"qkv_bias", "true"},
    {"attention_dropout", "0.0"},
    {"use_sliding_window", "false"},
    {"output_router_logits", "false"},
    {"router_aux_loss_coef", "0.001"},
    {"initializer_range", "0.02"},
    {"tie_word_embeddings", "false"},
};

static constexpr Family getFamily() {
  Family family;
  family.name = "qwen2_moe";
  family.className = "Qwen2Moe";
  family.otherNames = "qwen2moe|qwen2-moe|qwen1.5-moe";
  family.keys = kKeys;
  family.ignored = kIgnoredOfQwen2;
  family.blocks.queryKeyValueBias = BiasKind::Always;
  family.blocks.outputBias = BiasKind::Never;
  family.blocks.experts = ExpertKind::RoutedAndShared;
  return family;
}

constexpr Family reprise::frontend::kQwen2Moe = getFamily();
