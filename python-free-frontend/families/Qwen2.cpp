//===- Qwen2.cpp - Qwen2 ----------------------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Yang et al., Qwen2 Technical Report, arXiv:2407.10671, in the form and with
// the names of Hugging Face's Qwen2ForCausalLM: Llama with biases on q, k and
// v.
//
//===----------------------------------------------------------------------===//

#include "Qwen.h"

using namespace reprise::frontend;

static constexpr KeyUse kKeys[] = {
    {"vocab_size", "151936", Need::HFDefault},
    {"max_position_embeddings", "32768"},
    {"hidden_size", "4096", Need::HFDefault},
    {"num_hidden_layers", "32", Need::HFDefault},
    {"num_attention_heads", "32", Need::HFDefault},
    {"num_key_value_heads", "num_attention_heads", Need::Unset, "32"},
    {"head_dim", "hidden_size / num_attention_heads", Need::Unset},
    {"intermediate_size", "22016", Need::HFDefault},
    {"hidden_act", "silu"},
    {"rms_norm_eps", "1e-6"},
    {"rope_theta", "10000.0"},
    {"rope_scaling", "unset", Need::Unset},
    {"attention_dropout", "0.0"},
    {"use_sliding_window", "false"},
    {"initializer_range", "0.02"},
    {"tie_word_embeddings", "false"},
};

static constexpr Family getFamily() {
  Family family;
  family.name = "qwen2";
  family.className = "Qwen2";
  family.otherNames = "qwen2.5|qwen2_5";
  family.keys = kKeys;
  family.ignored = kIgnoredOfQwen2;
  family.blocks.queryKeyValueBias = BiasKind::Always;
  return family;
}

constexpr Family reprise::frontend::kQwen2 = getFamily();
