//===- GPT2.cpp - GPT-2 -----------------------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Radford et al., Language Models are Unsupervised Multitask Learners, 2019, in
// the form and with the names of Hugging Face's GPT2LMHeadModel. One layer:
//
//   n1 = layernorm(x0)            q, k, v = n1 Wq, n1 Wk, n1 Wv
//   ctx = attention(q, k, v)      a = ctx Wo        x1 = x0 + dropout(a)
//   n2 = layernorm(x1)            u = n2 W1         g = act(u)
//   y = g W2                      x2 = x1 + dropout(y)
//
// The published `attn.c_attn.weight` [C, 3C] is three parameters here: `.q`,
// `.k` and `.v` are its first, second and third C columns, and likewise for
// its bias. Weights are [in, out].
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/ConfigKeys.h"
#include "python-free-frontend/Family.h"

using namespace reprise;
using namespace reprise::frontend;

static constexpr KeyUse kKeys[] = {
    {"vocab_size", "50257", Need::HFDefault},
    {"n_positions", "1024"},
    {"n_embd", "768", Need::HFDefault},
    {"n_layer", "12", Need::HFDefault},
    {"n_head", "12", Need::HFDefault},
    {"n_inner", "4 * n_embd", Need::Unset},
    {"activation_function", "gelu_new"},
    {"layer_norm_epsilon", "1e-5"},
    {"initializer_range", "0.02"},
    {"resid_pdrop", "0.1"},
    {"embd_pdrop", "0.1"},
    {"hidden_dropout", "unset", Need::Unset},
    {"attn_pdrop", "0.1"},
    {"tie_word_embeddings", "true"},
    {"scale_attn_weights", "true"},
    {"scale_attn_by_inverse_layer_idx", "false"},
    {"reorder_and_upcast_attn", "false"},
};

/// Some files also have it under the other families' name.
static std::string activation(const HubModel &model) {
  return model.file.getString("activation_function").value_or("gelu_new").str();
}

static constexpr RefusedKey kRefused[] = {
    {"hidden_act", "", activation},
    {"rope_parameters"},
    {"rope_scaling"},
};

static constexpr Family getFamily() {
  Family family;
  family.name = "gpt2";
  family.className = "GPT2";
  family.headClass = "LMHeadModel";
  family.keys = kKeys;
  family.padsEmbedding = false;
  family.refused = kRefused;

  Blocks &blocks = family.blocks;
  blocks.norm = NormKind::LayerNorm;
  blocks.positions = PositionKind::Learned;
  blocks.mlp = MLPKind::Plain;
  blocks.layout = nn::WeightLayout::InOut;
  blocks.queryKeyValueBias = BiasKind::Always;
  blocks.outputBias = BiasKind::Always;
  blocks.mlpBias = BiasKind::Always;
  blocks.scalesResidualInit = true;
  blocks.streamsBefore = 1;
  blocks.streamsPerLayer = 3;

  TensorNames &tensors = family.tensors;
  tensors.embedding = "transformer.wte";
  tensors.positions = "transformer.wpe";
  tensors.layer = "transformer.h.";
  tensors.attentionNorm = ".ln_1";
  tensors.queryKeyValue = ".attn.c_attn";
  tensors.query = ".attn.c_attn.q";
  tensors.key = ".attn.c_attn.k";
  tensors.value = ".attn.c_attn.v";
  tensors.output = ".attn.c_proj";
  tensors.mlpNorm = ".ln_2";
  tensors.up = ".mlp.c_fc";
  tensors.down = ".mlp.c_proj";
  tensors.finalNorm = "transformer.ln_f";
  return family;
}

constexpr Family reprise::frontend::kGPT2 = getFamily();
