//===- Mistral.cpp - Mistral ------------------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Jiang et al., Mistral 7B, arXiv:2310.06825, in the form and with the names of
// Hugging Face's MistralForCausalLM: Llama without biases. Its attention may
// reach back over a window alone, which changes nothing in sequences that are
// no longer; a file that does not say so has one of 4096.
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
    {"hidden_act", "silu"},
    {"rms_norm_eps", "1e-6"},
    {"rope_theta", "10000.0"},
    {"rope_scaling", "unset", Need::Unset},
    {"attention_dropout", "0.0"},
    {"sliding_window", "unset", Need::Unset, "4096"},
    {"initializer_range", "0.02"},
    {"tie_word_embeddings", "false"},
};

static constexpr Family getFamily() {
  Family family;
  family.name = "mistral";
  family.className = "Mistral";
  family.keys = kKeys;
  family.blocks.queryKeyValueBias = BiasKind::Never;
  family.blocks.outputBias = BiasKind::Never;
  family.blocks.mlpBias = BiasKind::Never;
  return family;
}

constexpr Family reprise::frontend::kMistral = getFamily();
