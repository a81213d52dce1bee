//===- HubFamilies.cpp - Keys of a config.json, by family -----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A list for each family, with the defaults of its class in transformers. Keys
// stand in the order in which differences are looked for.
//
//===----------------------------------------------------------------------===//

#include "HubFamilies.h"

#include <cmath>
#include <cstdio>

using namespace reprise::runtime;

//===----------------------------------------------------------------------===//
// What other keys make
//===----------------------------------------------------------------------===//

/// The number of a key; NaN if it has none.
static double numberOf(const JsonValue &config, std::string_view key,
                       std::string_view alias = {}) {
  double value = NAN;
  if (!config.find(key).asDouble(value) && !alias.empty())
    config.find(alias).asDouble(value);
  return value;
}

static double widthOfMLP(const JsonValue &config, bool) {
  return 4 * numberOf(config, "n_embd", "hidden_size");
}

static double widthOfHeads(const JsonValue &config, bool) {
  return std::floor(numberOf(config, "hidden_size") /
                    numberOf(config, "num_attention_heads"));
}

/// Null means that queries have no latent.
static double rankOfQueries(const JsonValue &, bool isNull) {
  return isNull ? 0 : 1536;
}

static double numberOfHeads(const JsonValue &config, bool) {
  return numberOf(config, "num_attention_heads");
}

/// In some classes only null means as many as heads.
template <int absent>
static double keyValueHeads(const JsonValue &config, bool isNull) {
  return isNull ? numberOfHeads(config, isNull) : absent;
}

//===----------------------------------------------------------------------===//
// Families
//===----------------------------------------------------------------------===//

// GPT-2

static constexpr HubKey kGPT2Keys[] = {
    {"vocab_size"},
    {"n_positions", "max_position_embeddings"},
    {"n_embd", "hidden_size"},
    {"n_layer", "num_hidden_layers"},
    {"n_head", "num_attention_heads", "12"},
    {"n_inner", "", nullptr, widthOfMLP},
    {"activation_function", "", "gelu_new"},
    {"layer_norm_epsilon", "", "1e-05"},
    {"scale_attn_weights", "", "true"},
    {"scale_attn_by_inverse_layer_idx", "", "false"},
    {"add_cross_attention", "", "false"},
    {"tie_word_embeddings", "", "true"},
};

// Llama

static constexpr HubKey kLlamaKeys[] = {
    {"vocab_size"},
    {"hidden_size"},
    {"intermediate_size"},
    {"num_hidden_layers"},
    {"num_attention_heads", "", "32"},
    {"num_key_value_heads", "", nullptr, numberOfHeads},
    {"head_dim", "", nullptr, widthOfHeads},
    {"hidden_act", "", "silu"},
    {"rms_norm_eps", "", "1e-06"},
    {"attention_bias", "", "false"},
    {"mlp_bias", "", "false"},
    {"partial_rotary_factor", "", "1.0"},
    {"use_mrope", "", "false"},
    {"tie_word_embeddings", "", "false"},
};

// Mistral

static constexpr HubKey kMistralKeys[] = {
    {"vocab_size"},
    {"hidden_size"},
    {"intermediate_size"},
    {"num_hidden_layers"},
    {"num_attention_heads", "", "32"},
    {"num_key_value_heads", "", nullptr, keyValueHeads<8>},
    {"head_dim", "", nullptr, widthOfHeads},
    {"hidden_act", "", "silu"},
    {"rms_norm_eps", "", "1e-06"},
    {"sliding_window", "", "4096", nullptr, nullptr, "none",
     "max_position_embeddings"},
    {"partial_rotary_factor", "", "1.0"},
    {"use_mrope", "", "false"},
    {"tie_word_embeddings", "", "false"},
};

// Qwen2

static constexpr HubKey kQwen2Keys[] = {
    {"vocab_size"},
    {"hidden_size"},
    {"intermediate_size"},
    {"num_hidden_layers"},
    {"num_attention_heads", "", "32"},
    {"num_key_value_heads", "", nullptr, keyValueHeads<32>},
    {"head_dim", "", nullptr, widthOfHeads},
    {"hidden_act", "", "silu"},
    {"rms_norm_eps", "", "1e-06"},
    {"use_sliding_window", "", "false"},
    {"partial_rotary_factor", "", "1.0"},
    {"use_mrope", "", "false"},
    {"tie_word_embeddings", "", "false"},
};

// Qwen3

static constexpr HubKey kQwen3Keys[] = {
    {"vocab_size"},
    {"hidden_size"},
    {"intermediate_size"},
    {"num_hidden_layers"},
    {"num_attention_heads", "", "32"},
    {"num_key_value_heads", "", nullptr, keyValueHeads<32>},
    {"head_dim", "", "128"},
    {"hidden_act", "", "silu"},
    {"rms_norm_eps", "", "1e-06"},
    {"attention_bias", "", "false"},
    {"use_sliding_window", "", "false"},
    {"partial_rotary_factor", "", "1.0"},
    {"use_mrope", "", "false"},
    {"tie_word_embeddings", "", "false"},
};

// OLMo 2

static constexpr HubKey kOlmo2Keys[] = {
    {"vocab_size"},
    {"hidden_size"},
    {"intermediate_size"},
    {"num_hidden_layers"},
    {"num_attention_heads", "", "32"},
    {"num_key_value_heads", "", nullptr, numberOfHeads},
    {"head_dim", "", nullptr, widthOfHeads},
    {"hidden_act", "", "silu"},
    {"rms_norm_eps", "", "1e-05"},
    {"attention_bias", "", "false"},
    {"partial_rotary_factor", "", "1.0"},
    {"use_mrope", "", "false"},
    {"tie_word_embeddings", "", "false"},
};

// Mixtral

static constexpr HubKey kMixtralKeys[] = {
    {"vocab_size"},
    {"hidden_size"},
    {"intermediate_size"},
    {"num_hidden_layers"},
    {"num_attention_heads", "", "32"},
    {"num_key_value_heads", "", nullptr, keyValueHeads<8>},
    {"head_dim", "", nullptr, widthOfHeads},
    {"hidden_act", "", "silu"},
    {"rms_norm_eps", "", "1e-05"},
    {"num_local_experts", "num_experts"},
    {"num_experts_per_tok", "", "2"},
    {"router_jitter_noise", "", "0.0"},
    {"sliding_window", "", "none", nullptr, nullptr, nullptr,
     "max_position_embeddings"},
    {"partial_rotary_factor", "", "1.0"},
    {"use_mrope", "", "false"},
    {"tie_word_embeddings", "", "false"},
};

// Qwen3-MoE

static constexpr HubKey kQwen3MoeKeys[] = {
    {"vocab_size"},
    {"hidden_size"},
    {"intermediate_size"},
    {"num_hidden_layers"},
    {"num_attention_heads", "", "32"},
    {"num_key_value_heads", "", nullptr, keyValueHeads<4>},
    {"head_dim", "", nullptr, widthOfHeads},
    {"hidden_act", "", "silu"},
    {"rms_norm_eps", "", "1e-06"},
    {"attention_bias", "", "false"},
    {"num_experts", "num_local_experts"},
    {"num_experts_per_tok", "", "8"},
    {"moe_intermediate_size"},
    {"norm_topk_prob", "", "false"},
    {"decoder_sparse_step", "", "1"},
    {"mlp_only_layers", "", "[]"},
    {"use_sliding_window", "", "false"},
    {"partial_rotary_factor", "", "1.0"},
    {"use_mrope", "", "false"},
    {"tie_word_embeddings", "", "false"},
};

// Qwen2-MoE

static constexpr HubKey kQwen2MoeKeys[] = {
    {"vocab_size"},
    {"hidden_size"},
    {"intermediate_size"},
    {"num_hidden_layers"},
    {"num_attention_heads", "", "16"},
    {"num_key_value_heads", "", nullptr, keyValueHeads<16>},
    {"head_dim", "", nullptr, widthOfHeads},
    {"hidden_act", "", "silu"},
    {"rms_norm_eps", "", "1e-06"},
    {"num_experts", "num_local_experts"},
    {"num_experts_per_tok", "", "4"},
    {"moe_intermediate_size"},
    {"shared_expert_intermediate_size"},
    {"qkv_bias", "", "true"},
    {"norm_topk_prob", "", "false"},
    {"decoder_sparse_step", "", "1"},
    {"mlp_only_layers", "", "[]"},
    {"use_sliding_window", "", "false"},
    {"partial_rotary_factor", "", "1.0"},
    {"use_mrope", "", "false"},
    {"tie_word_embeddings", "", "false"},
};

// GLM-4.5

static constexpr HubKey kGlm4MoeKeys[] = {
    {"vocab_size"},
    {"hidden_size"},
    {"intermediate_size"},
    {"num_hidden_layers"},
    {"num_attention_heads", "", "96"},
    {"num_key_value_heads", "", nullptr, keyValueHeads<8>},
    {"head_dim", "", nullptr, widthOfHeads},
    {"hidden_act", "", "silu"},
    {"rms_norm_eps", "", "1e-05"},
    {"attention_bias", "", "false"},
    {"use_qk_norm", "", "false"},
    {"n_routed_experts", "num_local_experts"},
    {"num_experts_per_tok", "", "8"},
    {"moe_intermediate_size"},
    {"n_shared_experts", "", "1"},
    {"first_k_dense_replace", "", "1"},
    {"routed_scaling_factor", "", "1.0"},
    {"n_group", "", "1"},
    {"topk_group", "", "1"},
    {"norm_topk_prob", "", "true"},
    {"moe_layer_freq", "", "1"},
    {"scoring_func", "", "sigmoid"},
    {"topk_method", "", "noaux_tc"},
    {"partial_rotary_factor", "", "0.5", nullptr, nullptr, "1.0"},
    {"use_mrope", "", "false"},
    {"tie_word_embeddings", "", "false"},
};

// DeepSeek-V2

/// Its gate looks at groups by one of its two methods alone.
static bool hasGroups(const JsonValue &config) {
  return config.find("topk_method").text() == "group_limited_greedy";
}

static constexpr HubKey kDeepSeekV2Keys[] = {
    {"vocab_size"},
    {"hidden_size"},
    {"intermediate_size"},
    {"num_hidden_layers"},
    {"num_attention_heads", "", "32"},
    {"num_key_value_heads", "", nullptr, numberOfHeads},
    {"hidden_act", "", "silu"},
    {"rms_norm_eps", "", "1e-06"},
    {"attention_bias", "", "false"},
    {"q_lora_rank", "", nullptr, rankOfQueries},
    {"kv_lora_rank", "", "512"},
    {"qk_nope_head_dim", "", "128"},
    {"qk_rope_head_dim", "", "64"},
    {"v_head_dim", "", "128"},
    {"n_routed_experts", "num_local_experts"},
    {"num_experts_per_tok"},
    {"moe_intermediate_size"},
    {"n_shared_experts", "", "2"},
    {"first_k_dense_replace", "", "0"},
    {"routed_scaling_factor", "", "1.0"},
    {"topk_method", "", "greedy"},
    {"n_group", "", nullptr, nullptr, hasGroups},
    {"topk_group", "", nullptr, nullptr, hasGroups},
    {"norm_topk_prob", "", "false"},
    {"moe_layer_freq", "", "1"},
    {"scoring_func", "", "softmax"},
    {"sliding_window", "", "none", nullptr, nullptr, nullptr,
     "max_position_embeddings"},
    {"partial_rotary_factor", "", "1.0"},
    {"use_mrope", "", "false"},
    {"tie_word_embeddings", "", "false"},
};

// DeepSeek-V3 and Kimi K2

static constexpr HubKey kDeepSeekV3Keys[] = {
    {"vocab_size"},
    {"hidden_size"},
    {"intermediate_size"},
    {"num_hidden_layers"},
    {"num_attention_heads", "", "128"},
    {"num_key_value_heads", "", nullptr, numberOfHeads},
    {"hidden_act", "", "silu"},
    {"rms_norm_eps", "", "1e-06"},
    {"attention_bias", "", "false"},
    {"q_lora_rank", "", nullptr, rankOfQueries},
    {"kv_lora_rank", "", "512"},
    {"qk_nope_head_dim", "", "128"},
    {"qk_rope_head_dim", "", "64"},
    {"v_head_dim", "", "128"},
    {"rope_interleave", "", "true", nullptr, nullptr, "false"},
    {"n_routed_experts", "num_local_experts"},
    {"num_experts_per_tok", "", "8"},
    {"moe_intermediate_size"},
    {"n_shared_experts", "", "1"},
    {"first_k_dense_replace", "", "3"},
    {"routed_scaling_factor", "", "2.5"},
    {"n_group", "", "8"},
    {"topk_group", "", "4"},
    {"norm_topk_prob", "", "true", nullptr, nullptr, "false"},
    {"moe_layer_freq", "", "1"},
    {"scoring_func", "", "sigmoid"},
    {"topk_method", "", "noaux_tc"},
    {"sliding_window", "", "none", nullptr, nullptr, nullptr,
     "max_position_embeddings"},
    {"partial_rotary_factor", "", "1.0"},
    {"use_mrope", "", "false"},
    {"tie_word_embeddings", "", "false"},
};

static constexpr HubFamily kFamilies[] = {
    {"gpt2", "GPT2", kGPT2Keys, nullptr, kAllBiases},
    {"llama", "Llama", kLlamaKeys, "10000.0"},
    {"mistral", "Mistral", kMistralKeys, "10000.0"},
    {"qwen2", "Qwen2", kQwen2Keys, "10000.0", kBiasOfQueries, "attention_bias"},
    {"qwen3", "Qwen3", kQwen3Keys, "10000.0", kNormsQueries},
    {"olmo2", "Olmo2", kOlmo2Keys, "10000.0", kNormsAfter | kNormsQueries},
    {"mixtral", "Mixtral", kMixtralKeys, "1000000.0"},
    {"qwen3_moe", "Qwen3Moe", kQwen3MoeKeys, "10000.0", kNormsQueries},
    {"qwen2_moe", "Qwen2Moe", kQwen2MoeKeys, "10000.0",
     kBiasOfQueries | kNoBiasOfOutput, "attention_bias"},
    {"glm4_moe", "Glm4Moe", kGlm4MoeKeys, "10000.0",
     kNoBiasOfOutput | kScoresBySigmoid},
    {"deepseek_v2", "DeepseekV2", kDeepSeekV2Keys, "10000.0", 0, "head_dim"},
    {"deepseek_v3", "DeepseekV3", kDeepSeekV3Keys, "10000.0", kScoresBySigmoid,
     "head_dim"},
    {"kimi_k2", "DeepseekV3", kDeepSeekV3Keys, "10000.0", kScoresBySigmoid,
     "head_dim"}};

/// What a class is called behind its family.
static constexpr std::string_view kClassEnds[] = {"LMHeadModel", "ForCausalLM",
                                                  "Model"};

bool HubFamily::has(std::string_view key) const {
  for (const HubKey &known : *this)
    if (known.name == key || known.alias == key)
      return true;
  return false;
}

const HubFamily *reprise::runtime::findHubFamily(std::string_view type) {
  for (const HubFamily &family : kFamilies)
    if (family.type == type)
      return &family;
  return nullptr;
}

const HubFamily *reprise::runtime::findHubFamilyOfClass(std::string_view name) {
  for (const HubFamily &family : kFamilies)
    for (std::string_view end : kClassEnds) {
      char known[64];
      snprintf(known, sizeof(known), "%s%s", family.className.data(),
               end.data());
      if (name == known)
        return &family;
    }
  return nullptr;
}
