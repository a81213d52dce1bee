//===- Olmo2.cpp - OLMo 2 ---------------------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// OLMo team, 2 OLMo 2 Furious, arXiv:2501.00656, in the form and with the names
// of Hugging Face's Olmo2ForCausalLM: Llama with norms behind its blocks
// instead of before them, and with norms of queries and keys over all heads
// together.
//
//   q, k, v = x0 Wq, x0 Wk, x0 Wv
//   qr, kr = rotate(rmsnorm(q)), rotate(rmsnorm(k))
//   ctx = attention(qr, kr, v)    a = ctx Wo        x1 = x0 + rmsnorm(a)
//   gt, u = x1 Wg, x1 Wu          g = silu(gt) * u
//   y = g Wd                      x2 = x1 + rmsnorm(y)
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Family.h"

using namespace reprise::frontend;

static constexpr KeyUse kKeys[] = {
    {"vocab_size", "50304", Need::HFDefault},
    {"max_position_embeddings", "2048"},
    {"hidden_size", "4096", Need::HFDefault},
    {"num_hidden_layers", "32", Need::HFDefault},
    {"num_attention_heads", "32", Need::HFDefault},
    {"num_key_value_heads", "num_attention_heads", Need::Unset},
    {"head_dim", "hidden_size / num_attention_heads", Need::Unset},
    {"intermediate_size", "11008", Need::HFDefault},
    {"hidden_act", "silu"},
    {"rms_norm_eps", "1e-5"},
    {"rope_theta", "10000.0"},
    {"rope_scaling", "unset", Need::Unset},
    {"attention_bias", "false"},
    {"attention_dropout", "0.0"},
    {"initializer_range", "0.02"},
    {"tie_word_embeddings", "false"},
};

static constexpr Family getFamily() {
  Family family;
  family.name = "olmo2";
  family.className = "Olmo2";
  family.otherNames = "olmo-2|olmo_2";
  family.keys = kKeys;
  family.padToken = 1;
  family.blocks.queryKeyNorm = QueryKeyNorm::Projection;
  TensorNames &tensors = family.tensors;
  tensors.attentionNorm = tensors.mlpNorm = "";
  tensors.attentionNormAfter = ".post_attention_layernorm";
  tensors.mlpNormAfter = ".post_feedforward_layernorm";
  return family;
}

constexpr Family reprise::frontend::kOlmo2 = getFamily();
