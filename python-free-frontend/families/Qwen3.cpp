//===- Qwen3.cpp - Qwen3 ----------------------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Yang et al., Qwen3 Technical Report, arXiv:2505.09388, in the form and with
// the names of Hugging Face's Qwen3ForCausalLM: Llama with a width of heads of
// its own, and with qn, kn = rmsnorm(q), rmsnorm(k) of each head, which are
// then turned.
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Family.h"

using namespace reprise::frontend;

static constexpr KeyUse kKeys[] = {
    {"vocab_size", "151936", Need::HFDefault},
    {"max_position_embeddings", "32768"},
    {"hidden_size", "4096", Need::HFDefault},
    {"num_hidden_layers", "32", Need::HFDefault},
    {"num_attention_heads", "32", Need::HFDefault},
    {"num_key_value_heads", "num_attention_heads", Need::Unset, "32"},
    {"head_dim", "128"},
    {"intermediate_size", "22016", Need::HFDefault},
    {"hidden_act", "silu"},
    {"rms_norm_eps", "1e-6"},
    {"rope_theta", "10000.0"},
    {"rope_scaling", "unset", Need::Unset},
    {"attention_bias", "false"},
    {"attention_dropout", "0.0"},
    {"use_sliding_window", "false"},
    {"initializer_range", "0.02"},
    {"tie_word_embeddings", "false"},
};

static constexpr Family getFamily() {
  Family family;
  family.name = "qwen3";
  family.className = "Qwen3";
  family.keys = kKeys;
  family.blocks.queryKeyNorm = QueryKeyNorm::Head;
  return family;
}

constexpr Family reprise::frontend::kQwen3 = getFamily();
