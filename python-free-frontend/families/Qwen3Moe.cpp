//===- Qwen3Moe.cpp - Qwen3 with experts ------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Yang et al., Qwen3 Technical Report, arXiv:2505.09388, in the form and with
// the names of Hugging Face's Qwen3MoeForCausalLM: Qwen3 with experts in place
// of the MLP of some layers. The weights of a token's experts are those of a
// softmax over all, divided by their sum with `norm_topk_prob`.
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Family.h"

using namespace reprise::frontend;

static constexpr KeyUse kKeys[] = {
    {"vocab_size", "151936", Need::HFDefault},
    {"max_position_embeddings", "32768"},
    {"hidden_size", "2048", Need::HFDefault},
    {"num_hidden_layers", "24", Need::HFDefault},
    {"num_attention_heads", "32", Need::HFDefault},
    {"num_key_value_heads", "num_attention_heads", Need::Unset, "4"},
    {"head_dim", "hidden_size / num_attention_heads", Need::Unset},
    {"intermediate_size", "6144", Need::HFDefault},
    {"num_experts", "128", Need::HFDefault},
    {"num_experts_per_tok", "8"},
    {"moe_intermediate_size", "768", Need::HFDefault},
    {"norm_topk_prob", "false"},
    {"moe_router_pre_softmax", "unset", Need::Unset},
    {"decoder_sparse_step", "1"},
    {"mlp_only_layers", "none", Need::Unset},
    {"hidden_act", "silu"},
    {"rms_norm_eps", "1e-6"},
    {"rope_theta", "10000.0"},
    {"rope_scaling", "unset", Need::Unset},
    {"attention_bias", "false"},
    {"attention_dropout", "0.0"},
    {"use_sliding_window", "false"},
    {"output_router_logits", "false"},
    {"router_aux_loss_coef", "0.001"},
    {"initializer_range", "0.02"},
    {"tie_word_embeddings", "false"},
};

static constexpr Family getFamily() {
  Family family;
  family.name = "qwen3_moe";
  family.className = "Qwen3Moe";
  family.otherNames = "qwen3moe|qwen3-moe";
  family.keys = kKeys;
  family.blocks.queryKeyNorm = QueryKeyNorm::Head;
  family.blocks.experts = ExpertKind::Routed;
  return family;
}

constexpr Family reprise::frontend::kQwen3Moe = getFamily();
