//===- Mixtral.cpp - Mixtral ------------------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Jiang et al., Mixtral of Experts, arXiv:2401.04088, in the form and with the
// names of Hugging Face's MixtralForCausalLM: Llama with experts in place of
// the MLP of every layer. The weights of a token's experts add up to 1.
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Family.h"

using namespace reprise::frontend;

static constexpr KeyUse kKeys[] = {
    {"vocab_size", "32000", Need::HFDefault},
    {"max_position_embeddings", "131072"},
    {"hidden_size", "4096", Need::HFDefault},
    {"num_hidden_layers", "32", Need::HFDefault},
    {"num_attention_heads", "32", Need::HFDefault},
    {"num_key_value_heads", "num_attention_heads", Need::Unset, "8"},
    {"head_dim", "hidden_size / num_attention_heads", Need::Unset},
    {"intermediate_size", "14336", Need::HFDefault},
    {"num_local_experts", "8", Need::HFDefault},
    {"num_experts_per_tok", "2"},
    {"hidden_act", "silu"},
    {"rms_norm_eps", "1e-5"},
    {"rope_theta", "1000000.0"},
    {"rope_scaling", "unset", Need::Unset},
    {"attention_dropout", "0.0"},
    {"sliding_window", "unset", Need::Unset},
    {"output_router_logits", "false"},
    {"router_aux_loss_coef", "0.001"},
    {"initializer_range", "0.02"},
    {"tie_word_embeddings", "false"},
};

/// Mistral's `params.json` of a Mixtral, which does not say what it is.
static bool isParams(const llvm::json::Object &object) {
  return object.get("dim") && object.get("n_layers") && object.getObject("moe");
}

static constexpr Family getFamily() {
  Family family;
  family.name = "mixtral";
  family.className = "Mixtral";
  family.keys = kKeys;
  family.recognizes = isParams;
  family.blocks.experts = ExpertKind::Routed;
  TensorNames &tensors = family.tensors;
  tensors.router = ".block_sparse_moe.gate";
  tensors.expertGate = ".block_sparse_moe.experts.*.w1";
  tensors.expertUp = ".block_sparse_moe.experts.*.w3";
  tensors.expertDown = ".block_sparse_moe.experts.*.w2";
  return family;
}

constexpr Family reprise::frontend::kMixtral = getFamily();
