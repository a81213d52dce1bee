//===- Llama.cpp - Llama ----------------------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Touvron et al., LLaMA, arXiv:2302.13971, in the form and with the names of
// Hugging Face's LlamaForCausalLM. One layer:
//
//   n1 = rmsnorm(x0)              q, k, v = n1 Wq, n1 Wk, n1 Wv
//   qr, kr = rotate(q), rotate(k)
//   ctx = attention(qr, kr, v)    a = ctx Wo        x1 = x0 + a
//   n2 = rmsnorm(x1)              gt, u = n2 Wg, n2 Wu
//   g = silu(gt) * u              y = g Wd          x2 = x1 + y
//
// Biases: on q, k, v and a with `attention_bias`, on gt, u and y with
// `mlp_bias`. Weights are [out, in].
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Family.h"

using namespace reprise::frontend;

static constexpr KeyUse kKeys[] = {
    {"vocab_size", "32000", Need::HFDefault},
    {"max_position_embeddings", "2048"},
    {"hidden_size", "4096", Need::HFDefault},
    {"num_hidden_layers", "32", Need::HFDefault},
    {"num_attention_heads", "32", Need::HFDefault},
    {"num_key_value_heads", "num_attention_heads", Need::Unset},
    {"head_dim", "hidden_size / num_attention_heads", Need::Unset},
    {"intermediate_size", "11008", Need::HFDefault},
    {"hidden_act", "silu"},
    {"rms_norm_eps", "1e-6"},
    {"rope_theta", "10000.0"},
    {"rope_scaling", "unset", Need::Unset},
    {"attention_bias", "false"},
    {"mlp_bias", "false"},
    {"attention_dropout", "0.0"},
    {"initializer_range", "0.02"},
    {"tie_word_embeddings", "false"},
};

/// Meta's `params.json`, which does not say what it is.
static bool isParams(const llvm::json::Object &object) {
  return object.get("dim") && object.get("n_layers") && object.get("n_heads") &&
         !object.get("moe");
}

static constexpr Family getFamily() {
  Family family;
  family.name = "llama";
  family.className = "Llama";
  family.otherNames = "llama2|llama3|llama-2|llama-3";
  family.keys = kKeys;
  family.recognizes = isParams;
  return family;
}

constexpr Family reprise::frontend::kLlama = getFamily();
