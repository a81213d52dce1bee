//===- HubConfigTest.cpp - The config.json beside weights -----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CheckpointRun.h"

#include "runtime/checkpoint/HubConfig.h"

using namespace reprise::runtime;
using namespace reprise::runtime::test;

namespace {
/// Programs' configurations, which have every key of the family.
const char kLlamaConfig[] =
    R"({"attention_bias": false, "attention_dropout": 0.1,
        "bos_token_id": null, "head_dim": 32, "hidden_act": "silu",
        "hidden_size": 128, "intermediate_size": 300, "mlp_bias": false,
        "max_position_embeddings": 64, "model_type": "llama",
        "num_attention_heads": 4, "num_hidden_layers": 2,
        "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_scaling": null,
        "rope_theta": 10000.0, "tie_word_embeddings": false,
        "torch_dtype": "float32", "vocab_size": 99})";
const char kGPT2Config[] =
    R"({"activation_function": "gelu_new", "embd_pdrop": 0.1,
        "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_embd": 48,
        "n_head": 12, "n_inner": null, "n_layer": 2, "n_positions": 64,
        "scale_attn_by_inverse_layer_idx": false, "scale_attn_weights": true,
        "tie_word_embeddings": true, "vocab_size": 99})";
const char kQwen3Config[] =
    R"({"attention_bias": false, "head_dim": 64, "hidden_act": "silu",
        "hidden_size": 128, "model_type": "qwen3", "num_attention_heads": 32,
        "num_key_value_heads": 8, "rms_norm_eps": 1e-06,
        "rope_theta": 1000000.0, "tie_word_embeddings": true,
        "use_sliding_window": false})";

/// A configuration with another value for a key; `value` is JSON, empty for a
/// key that is not there.
std::string with(const std::string &config, const std::string &key,
                 const std::string &value) {
  std::string result = config;
  size_t at = result.find("\"" + key + "\": ");
  if (at == result.npos) {
    result.insert(1, "\"" + key + "\": " + value + ", ");
    return result;
  }
  size_t end = result.find_first_of(",}", at);
  if (!value.empty())
    return result.replace(at, end - at, "\"" + key + "\": " + value);
  return result.erase(at, result[end] == ',' ? end + 1 - at : end - at);
}

class HubConfig : public testing::Test {
protected:
  /// Why weights of a model with `theirs` are not for one with `ours`; empty if
  /// they are.
  std::string check(const std::string &theirs, const std::string &ours) {
    folder.write("config.json", theirs);
    reprise::runtime::Error error;
    warning = {};
    bool good = checkHubConfig((folder.path + "model.safetensors").c_str(),
                               ours, warning, error);
    EXPECT_EQ(good, error.text[0] == '\0');
    reprise::runtime::Error again, ignored;
    EXPECT_EQ(checkHubConfig(folder.path.c_str(), ours, ignored, again), good);
    std::string text = error.text;
    const std::string begin = "'" + folder.path + "config.json' has ";
    const std::string end = ": its weights would compute something else";
    if (text.rfind(end) != text.npos)
      text.erase(text.rfind(end));
    if (text.find(begin) == 0)
      text.erase(0, begin.size());
    return text;
  }

  Folder folder;
  reprise::runtime::Error warning;
};
} // namespace

TEST_F(HubConfig, WhatIsAboutOtherThingsMayDiffer) {
  EXPECT_EQ(check(kLlamaConfig, kLlamaConfig), "");
  EXPECT_EQ(check("{", kLlamaConfig).find(folder.path + "config.json:1:2: "),
            0u);
  EXPECT_EQ(check(std::string("\xEF\xBB\xBF") + kLlamaConfig, kLlamaConfig),
            "");
  for (auto [key, value] : std::vector<std::array<const char *, 2>>{
           {"attention_dropout", "0"},
           {"bos_token_id", "7"},
           {"torch_dtype", "\"bfloat16\""},
           {"dtype", "\"bfloat16\""},
           {"max_position_embeddings", "4096"},
           {"use_cache", "true"},
           {"architectures", "[\"LlamaForCausalLM\"]"},
           {"layer_types", "[\"full_attention\", \"full_attention\"]"},
           {"quantization_config", "null"}})
    EXPECT_EQ(check(with(kLlamaConfig, key, value), kLlamaConfig), "") << key;
}

// A value has several spellings, and so have keys.
TEST_F(HubConfig, SpellingsOfTheSame) {
  for (auto [key, value] : std::vector<std::array<const char *, 2>>{
           {"rms_norm_eps", "0.000001"},
           {"rms_norm_eps", "9.999999974752427e-07"}, // As f32 has it.
           {"hidden_act", "\"swish\""},
           {"head_dim", "null"},
           {"head_dim", ""},
           {"rope_theta", "1e4"},
           {"rope_theta", ""},
           {"rope_parameters",
            R"({"rope_theta": 10000, "rope_type": "default"})"},
           {"rope_scaling", R"({"type": "linear", "factor": 1.0})"}})
    EXPECT_EQ(check(with(kLlamaConfig, key, value), kLlamaConfig), "") << value;
  for (auto [key, value] : std::vector<std::array<const char *, 2>>{
           {"n_inner", "192"},
           {"n_inner", ""},
           {"activation_function", "\"gelu_pytorch_tanh\""},
           {"activation_function", ""},
           {"layer_norm_epsilon", ""},
           {"tie_word_embeddings", ""},
           {"n_head", ""},
           {"hidden_size", "48"}})
    EXPECT_EQ(check(with(kGPT2Config, key, value), kGPT2Config), "") << key;
  std::string renamed = with(with(kGPT2Config, "n_embd", ""), "n_head", "");
  renamed = with(with(renamed, "hidden_size", "48"), "n_inner", "192");
  EXPECT_EQ(check(with(renamed, "num_attention_heads", "12"), kGPT2Config), "");
  EXPECT_EQ(check(with(renamed, "num_attention_heads", "6"), kGPT2Config),
            "num_attention_heads 6, but this program's model has 12");
  // Under two names, each counts.
  EXPECT_EQ(check(with(kGPT2Config, "hidden_size", "96"), kGPT2Config),
            "hidden_size 96, but this program's model has 48");
}

// Both values are named, and "by default" where a key is not there.
TEST_F(HubConfig, WhatChangesTheFunction) {
  const std::string mid = ", but this program's model has ";
  struct Case {
    const char *key, *value, *refusal;
  };
  for (auto [key, value, refusal] : std::vector<Case>{
           {"rms_norm_eps", "1e-5", "1e-5|1e-06"},
           {"num_attention_heads", "8", "8|4"},
           {"num_attention_heads", "", "32 (by default)|4"},
           {"num_key_value_heads", "", "4 (by default)|2"},
           {"num_key_value_heads", "null", "4 (by default)|2"},
           {"head_dim", "16", "16|32"},
           {"hidden_act", "\"gelu\"", "gelu|silu"},
           {"attention_bias", "true", "true|false"},
           {"mlp_bias", "true", "true|false"},
           {"tie_word_embeddings", "true", "true|false"},
           {"rope_theta", "500000.0", "500000.0|10000.0"},
           {"vocab_size", "100", "100|99"},
           {"partial_rotary_factor", "0.5", "0.5|1.0 (by default)"},
           {"model_type", "\"mistral\"", "mistral|llama"}}) {
    std::string expected = std::string(key) + " " + refusal;
    expected.replace(expected.find('|'), 1, mid);
    EXPECT_EQ(check(with(kLlamaConfig, key, value), kLlamaConfig), expected);
  }
  // The program's value is none of the defaults; the file is silent.
  for (auto [key, value, refusal] : std::vector<Case>{
           {"rms_norm_eps", "0.01", "1e-06 (by default)|0.01"},
           {"rope_theta", "5e5", "10000.0 (by default)|5e5"},
           {"attention_bias", "true", "false (by default)|true"},
           {"tie_word_embeddings", "true", "false (by default)|true"},
           {"head_dim", "64", "32 (by default)|64"}}) {
    std::string expected = std::string(key) + " " + refusal;
    expected.replace(expected.find('|'), 1, mid);
    EXPECT_EQ(
        check(with(kLlamaConfig, key, ""), with(kLlamaConfig, key, value)),
        expected);
  }
  for (auto [key, value, refusal] : std::vector<Case>{
           {"layer_norm_epsilon", "1e-6", "1e-05 (by default)|1e-6"},
           {"activation_function", "\"gelu\"", "gelu_new (by default)|gelu"},
           {"tie_word_embeddings", "false", "true (by default)|false"},
           {"n_head", "6", "12 (by default)|6"},
           {"n_inner", "200", "192 (by default)|200"}}) {
    std::string expected = std::string(key) + " " + refusal;
    expected.replace(expected.find('|'), 1, mid);
    EXPECT_EQ(check(with(kGPT2Config, key, ""), with(kGPT2Config, key, value)),
              expected);
  }
  // Of qwen3 the width of a head is a number, whatever the model's width.
  EXPECT_EQ(check(with(kQwen3Config, "head_dim", ""), kQwen3Config),
            "head_dim 128 (by default)" + mid + "64");
  EXPECT_EQ(check(with(kQwen3Config, "num_key_value_heads", ""), kQwen3Config),
            "num_key_value_heads 32 (by default)" + mid + "8");
  EXPECT_EQ(
      check(with(kQwen3Config, "use_sliding_window", "true"), kQwen3Config),
      "use_sliding_window true" + mid + "false");
  // Of olmo2 the epsilon has a default of its own.
  const std::string olmo2 = with(kLlamaConfig, "model_type", "\"olmo2\"");
  EXPECT_EQ(check(with(olmo2, "rms_norm_eps", ""), olmo2),
            "rms_norm_eps 1e-05 (by default)" + mid + "1e-06");
  EXPECT_EQ(check(with(olmo2, "num_key_value_heads", ""), olmo2),
            "num_key_value_heads 4 (by default)" + mid + "2");
  EXPECT_EQ(check(R"({"architectures": ["Olmo2ForCausalLM"]})", kLlamaConfig),
            "model_type olmo2" + mid + "llama");
  // Of families with experts, whose number has two names.
  std::string mixtral = with(kLlamaConfig, "model_type", "\"mixtral\"");
  mixtral = with(mixtral, "num_local_experts", "8");
  EXPECT_EQ(check(with(mixtral, "num_local_experts", "4"), mixtral),
            "num_local_experts 4" + mid + "8");
  const std::string unnamed = with(mixtral, "num_local_experts", "");
  EXPECT_EQ(check(with(unnamed, "num_experts", "8"), mixtral), "");
  EXPECT_EQ(check(with(unnamed, "num_experts", "4"), mixtral),
            "num_experts 4" + mid + "8");
  EXPECT_EQ(check(with(mixtral, "num_key_value_heads", ""), mixtral),
            "num_key_value_heads 8 (by default)" + mid + "2");
  EXPECT_EQ(check(with(mixtral, "rms_norm_eps", ""), mixtral),
            "rms_norm_eps 1e-05 (by default)" + mid + "1e-06");
  EXPECT_EQ(check(with(mixtral, "rope_theta", ""), mixtral),
            "rope_theta 1000000.0 (by default)" + mid + "10000.0");
  std::string qwen = with(kLlamaConfig, "model_type", "\"qwen3_moe\"");
  qwen = with(with(qwen, "norm_topk_prob", "true"), "head_dim", "32");
  const std::string silent = with(qwen, "num_experts", "8");
  qwen = with(silent, "mlp_only_layers", "[0, 2]");
  EXPECT_EQ(check(with(qwen, "norm_topk_prob", ""), qwen),
            "norm_topk_prob false (by default)" + mid + "true");
  EXPECT_EQ(check(qwen, qwen), "");
  EXPECT_EQ(check(with(silent, "mlp_only_layers", "[0, 1]"), qwen),
            "mlp_only_layers [0, 1]" + mid + "[0, 2]");
  EXPECT_EQ(check(silent, qwen),
            "mlp_only_layers [] (by default)" + mid + "[0, 2]");
  // Newer files have the share of columns that turn among their positions.
  std::string glm = with(kLlamaConfig, "model_type", "\"glm4_moe\"");
  glm = with(with(glm, "partial_rotary_factor", "0.25"), "rope_theta", "");
  const std::string inside = R"({"partial_rotary_factor": )";
  const std::string plain = with(glm, "partial_rotary_factor", "");
  EXPECT_EQ(check(with(plain, "rope_parameters", inside + "0.25}"), glm), "");
  EXPECT_EQ(check(with(plain, "rope_parameters", inside + "0.75}"), glm),
            "partial_rotary_factor 0.75" + mid + "0.25");
  EXPECT_EQ(check(plain, glm),
            "partial_rotary_factor 0.5 (by default)" + mid + "0.25");
  // A null is no latent of queries, and a missing key one of 1536 columns.
  std::string latent = with(kLlamaConfig, "model_type", "\"deepseek_v3\"");
  latent = with(with(latent, "q_lora_rank", "null"), "n_group", "1");
  EXPECT_EQ(check(latent, latent), "");
  EXPECT_EQ(check(with(latent, "q_lora_rank", "16"), latent),
            "q_lora_rank 16" + mid + "0 (by default)");
  EXPECT_EQ(check(with(latent, "q_lora_rank", ""), latent),
            "q_lora_rank 1536 (by default)" + mid + "0 (by default)");
  // What the class computes in any case, and what other programs do not.
  EXPECT_EQ(check(with(latent, "scoring_func", "\"sigmoid\""), latent), "");
  EXPECT_EQ(check(with(latent, "scoring_func", "\"softmax\""), latent),
            "scoring_func softmax" + mid + "sigmoid (by default)");
  EXPECT_EQ(check(with(latent, "moe_layer_freq", "2"), latent),
            "moe_layer_freq 2" + mid + "1 (by default)");
  EXPECT_EQ(check(with(latent, "sliding_window", "null"), latent), "");
  EXPECT_EQ(check(with(latent, "n_group", ""), latent),
            "n_group 8 (by default)" + mid + "1");
  // Groups are nothing to a gate that takes the best experts of all.
  std::string gate = with(kLlamaConfig, "model_type", "\"deepseek_v2\"");
  gate = with(with(gate, "num_experts_per_tok", "2"), "n_group", "1");
  std::string greedy = with(gate, "topk_method", "\"greedy\"");
  EXPECT_EQ(check(with(greedy, "n_group", "4"), greedy), "");
  gate = with(gate, "topk_method", "\"group_limited_greedy\"");
  EXPECT_EQ(check(gate, gate), "");
  EXPECT_EQ(check(with(gate, "n_group", "4"), gate), "n_group 4" + mid + "1");
  EXPECT_EQ(check(silent, with(silent, "mlp_only_layers", "[]")), "");
  EXPECT_EQ(check(with(qwen, "num_key_value_heads", ""), qwen),
            "num_key_value_heads 4 (by default)" + mid + "2");
  // Files from before model_type.
  EXPECT_EQ(check(R"({"architectures": ["GPT2LMHeadModel"]})", kLlamaConfig),
            "model_type gpt2" + mid + "llama");
  EXPECT_EQ(
      check(with(kLlamaConfig, "pruned_heads", R"({"bits": 4})"), kLlamaConfig),
      "pruned_heads, which this program's model has not");
  for (const char *storage :
       {R"({"quant_method": "fp8"})",
        R"({"quant_method": "fp8", "weight_block_size": null})",
        R"({"quant_method": "fp8", "weight_block_size": [128, 64]})"})
    EXPECT_EQ(
        check(with(kLlamaConfig, "quantization_config", storage), kLlamaConfig),
        "");
  EXPECT_EQ(check(with(kLlamaConfig, "quantization_config",
                       R"({"quant_method": "gptq"})"),
                  kLlamaConfig),
            "quantization_config with the quant_method 'gptq': weights are "
            "read as F32, BF16 or F16, or F8_E4M3 or F8_E5M2 with scales "
            "(fp8); convert them to one of these, and take the key out");
  for (const char *size : {"[128]", "[128, 0]", "[1.5, 2]", "128"})
    EXPECT_EQ(check(with(kLlamaConfig, "quantization_config",
                         R"({"quant_method": "fp8", "weight_block_size": )" +
                             std::string(size) + "}"),
                    kLlamaConfig)
                  .find("quantization_config with a weight_block_size that "
                        "needs to be two whole numbers above 0, or null, but "
                        "got "),
              0u)
        << size;
  EXPECT_EQ(check(with(kLlamaConfig, "layer_types",
                       R"(["full_attention", "sliding_attention"])"),
                  kLlamaConfig),
            "layer_types, which this program's model has not");
}

// The classes have an optional truth, whose null is false, and a share of
// columns whose default a null replaces.
TEST_F(HubConfig, NullMayBeAValue) {
  const std::string mid = ", but this program's model has ";
  for (const char *type : {"\"deepseek_v3\"", "\"kimi_k2\""})
    for (const char *key : {"norm_topk_prob", "rope_interleave"}) {
      std::string latent = with(kLlamaConfig, "model_type", type);
      latent = with(latent, "q_lora_rank", "null");
      const std::string on = with(latent, key, "true");
      EXPECT_EQ(check(latent, on), "") << key;
      EXPECT_EQ(check(with(latent, key, "null"), with(latent, key, "false")),
                "");
      EXPECT_EQ(check(with(latent, key, "null"), on),
                key + (" false (by default)" + mid) + "true");
    }
  const std::string glm = with(kLlamaConfig, "model_type", "\"glm4_moe\"");
  const std::string share = "partial_rotary_factor",
                    all = with(glm, share, "1.0");
  EXPECT_EQ(check(with(glm, share, "null"), all), "");
  EXPECT_EQ(check(with(glm, share, "null"), with(glm, share, "0.5")),
            share + " 1.0 (by default)" + mid + "0.5");
  auto stretched = [](const std::string &truncate) {
    return with(kLlamaConfig, "rope_scaling",
                R"({"factor": 4.0, "original_max_position_embeddings": 16,
                    "rope_type": "yarn", "truncate": )" +
                    truncate + "}");
  };
  EXPECT_EQ(check(stretched("null"), stretched("false")), "");
  EXPECT_EQ(check(stretched("null"), stretched("true")),
            "truncate false (by default)" + mid + "true");
}

// What reprisec refuses in a description's file, by the same rows.
TEST_F(HubConfig, KeysThatNoModelHereHasAreRefused) {
  const std::string has = ", which this program's model has not";
  for (auto [key, value] : std::vector<std::array<const char *, 2>>{
           {"logits_scaling", "8"},
           {"residual_multiplier", "0.2"},
           {"attn_logit_softcapping", "50"},
           {"qk_norm", "true"},
           {"bias", "true"},
           {"sliding_window", "4"},
           {"query_pre_attn_scalar", "64"},
           {"position_embedding_type", "learned"},
           {"norm_type", "layernorm"},
           {"num_local_experts", "8"}}) {
    bool isWord = !strchr("0123456789tf", *value);
    std::string json = isWord ? "\"" + std::string(value) + "\"" : value;
    EXPECT_EQ(check(with(kLlamaConfig, key, json), kLlamaConfig),
              std::string(key) + " " + value + has);
  }
  for (auto [key, value] : std::vector<std::array<const char *, 2>>{
           {"logits_scaling", "1.0"},
           {"attn_logit_softcapping", "null"},
           {"qk_norm", "false"},
           {"bias", "false"},
           {"sliding_window", "64"},
           {"query_pre_attn_scalar", "32"},
           {"attention_multiplier", "0.176776695"},
           {"position_embedding_type", "\"rope\""},
           {"norm_type", "\"RMSNorm\""},
           {"num_local_experts", "1"},
           {"hidden_dropout", "0.1"}})
    EXPECT_EQ(check(with(kLlamaConfig, key, value), kLlamaConfig), "") << key;
  EXPECT_EQ(check(with(kQwen3Config, "qk_norm", "true"), kQwen3Config), "");
  EXPECT_EQ(check(with(kQwen3Config, "sliding_window", "4"), kQwen3Config), "");
  EXPECT_EQ(check(with(kGPT2Config, "bias", "true"), kGPT2Config), "");
}

// A key that nobody reads may be one that the file has not. It is passed over
// with a warning, as in the file of a description.
TEST_F(HubConfig, MisspeltKeysAreNamed) {
  const std::string bare = with(kLlamaConfig, "rms_norm_eps", "");
  EXPECT_EQ(check(with(bare, "rms_norm_epsilon", "1e-3"), kLlamaConfig), "");
  EXPECT_EQ(warning.text,
            "'" + folder.path +
                "config.json' has keys that are passed over; rms_norm_epsilon "
                "1e-3: did you mean rms_norm_eps, of which this program's "
                "model has 1e-06?");
  EXPECT_EQ(check(with(bare, "rms_norm_epsilon", "[1, 2]"), kLlamaConfig), "");
  EXPECT_NE(strstr(warning.text, "over; rms_norm_epsilon: did"), nullptr);
  // One of another family, that is near `use_mrope`.
  EXPECT_EQ(check(with(kLlamaConfig, "use_rope", "true"), kLlamaConfig), "");
  EXPECT_EQ(check(with(bare, "rms_norm_epsilon", "1e-6"), kLlamaConfig), "");
  EXPECT_EQ(check(with(kLlamaConfig, "rms_norm_epsilon", "1e-3"), kLlamaConfig),
            "");
  EXPECT_STREQ(warning.text, "");
}

TEST_F(HubConfig, RotaryPositionsAreCompared) {
  const std::string mid = ", but this program's model has ";
  auto config = [](const std::string &scaling) {
    return with(kLlamaConfig, "rope_scaling", scaling);
  };
  const std::string llama3 = config(R"({"factor": 8.0, "high_freq_factor": 4.0,
                 "low_freq_factor": 1.0, "rope_type": "llama3",
                 "original_max_position_embeddings": 16})");
  const std::string yarn =
      config(R"({"factor": 4.0, "original_max_position_embeddings": 16,
                 "rope_type": "yarn", "truncate": true})");
  EXPECT_EQ(check(kLlamaConfig, llama3), "rope_type default" + mid + "llama3");
  EXPECT_EQ(check(config(R"({"type": "linear", "factor": 2})"), kLlamaConfig),
            "rope_type linear" + mid + "default");
  EXPECT_EQ(check(llama3, llama3), "");
  EXPECT_EQ(
      check(with(kLlamaConfig, "rope_parameters",
                 R"({"rope_theta": 10000, "factor": 8, "rope_type": "llama3",
                     "low_freq_factor": 1, "high_freq_factor": 4,
                     "original_max_position_embeddings": 16})"),
            llama3),
      "");
  EXPECT_EQ(check(with(llama3, "factor", "32.0"), llama3),
            "factor 32.0" + mid + "8.0");
  EXPECT_EQ(check(with(llama3, "high_freq_factor", "2"), llama3),
            "high_freq_factor 2" + mid + "4.0");
  EXPECT_EQ(check(with(llama3, "high_freq_factor", ""), llama3),
            "no high_freq_factor" + mid + "4.0");
  // YaRN's own defaults, and what makes them.
  EXPECT_EQ(check(yarn, yarn), "");
  auto more = [&](const std::string &members) {
    std::string result = yarn;
    return result.replace(result.find("\"truncate\": true"), 16, members);
  };
  EXPECT_EQ(check(more("\"beta_fast\": 32, \"beta_slow\": 1.0, "
                       "\"attention_factor\": 1.138629436"),
                  yarn),
            "");
  EXPECT_EQ(check(more("\"mscale\": 1.0, \"mscale_all_dim\": 1.0"), yarn),
            "attention_factor 1 (by default)" + mid +
                "1.13862944 (by default)");
  EXPECT_EQ(check(more("\"beta_fast\": 16"), yarn),
            "beta_fast 16" + mid + "32 (by default)");
  EXPECT_EQ(check(more("\"beta_fast\": 0, \"beta_slow\": 0.0"), yarn), "");
  EXPECT_EQ(check(more("\"mscale\": 0, \"mscale_all_dim\": 0"), yarn), "");
  EXPECT_EQ(check(more("\"truncate\": false"), yarn),
            "truncate false" + mid + "true");
  // The length before the stretching: beside the map, in it, or the longest.
  std::string beside = with(yarn, "original_max_position_embeddings", "");
  EXPECT_EQ(check(beside, yarn),
            "original_max_position_embeddings 64 (by default)" + mid + "16");
  EXPECT_EQ(check(with(beside, "original_max_position_embeddings", "16"), yarn),
            "");
}

// A model with a head of its own does not take the embedding for it.

// In latent attention mscale_all_dim is of the scores, whatever else it is in;
// with as large an mscale the angles have no trace of it.
TEST_F(HubConfig, ScoresOfLatentAttentionAreScaled) {
  const std::string mid = ", but this program's model has ";
  std::string latent = with(kLlamaConfig, "model_type", "\"deepseek_v3\"");
  latent = with(latent, "q_lora_rank", "null");
  auto map = [](const std::string &config, const std::string &more) {
    return with(config, "rope_scaling",
                R"({"factor": 4.0, "original_max_position_embeddings": 16,
                    "rope_type": "yarn")" +
                    more + "}");
  };
  const std::string one = R"(, "mscale": 1.0, "mscale_all_dim": 1.0)";
  const std::string less = R"(, "mscale": 0.7, "mscale_all_dim": 0.7)";
  EXPECT_EQ(check(map(latent, one), map(latent, one)), "");
  EXPECT_EQ(check(map(latent, less), map(latent, one)),
            "mscale_all_dim 0.7" + mid + "1.0");
  EXPECT_EQ(
      check(map(latent, R"(, "attention_factor": 1.0)"), map(latent, one)),
      "mscale_all_dim 0 (by default)" + mid + "1.0");
  EXPECT_EQ(check(map(latent, R"(, "mscale_all_dim": 0)"), map(latent, "")),
            "");
  EXPECT_EQ(check(map(kLlamaConfig, less), map(kLlamaConfig, one)), "");
  const std::string linear = R"({"rope_type": "linear", "factor": 4.0)";
  EXPECT_EQ(
      check(with(latent, "rope_scaling", linear + R"(, "mscale_all_dim": 1})"),
            with(latent, "rope_scaling", linear + "}")),
      "mscale_all_dim 1" + mid + "0 (by default)");
}

// As in the classes, rope_scaling replaces rope_parameters and all that is in
// it, unless it is empty.
TEST_F(HubConfig, OneMapOfTwoCounts) {
  const std::string mid = ", but this program's model has ";
  auto both = [](const std::string &scaling, const std::string &parameters) {
    return with(
        with(with(kLlamaConfig, "rope_scaling", scaling), "rope_theta", ""),
        "rope_parameters", parameters);
  };
  const std::string linear = R"({"rope_type": "linear", "factor": 4.0})";
  const std::string plain = R"({"rope_type": "default", "rope_theta": 500.0})";
  EXPECT_EQ(check(both(linear, plain), kLlamaConfig),
            "rope_type linear" + mid + "default");
  EXPECT_EQ(
      check(both(linear, plain), with(kLlamaConfig, "rope_scaling", linear)),
      "");
  for (const char *empty : {"null", "{}"})
    EXPECT_EQ(check(both(empty, plain), kLlamaConfig),
              "rope_theta 500.0" + mid + "10000.0");
  std::string half = both("null", R"({"partial_rotary_factor": 0.5})");
  half.insert(1, "\"partial_rotary_factor\": 1.0, ");
  EXPECT_EQ(check(half, kLlamaConfig),
            "partial_rotary_factor 0.5" + mid + "1.0 (by default)");
}

// Kimi K2 is DeepSeek-V3 by another name, and DeepSeek-V2 is not.
TEST_F(HubConfig, OneClassHasTwoNames) {
  auto latent = [](const std::string &type) {
    return with(with(kLlamaConfig, "model_type", "\"" + type + "\""),
                "q_lora_rank", "null");
  };
  const std::string v3 = latent("deepseek_v3"), kimi = latent("kimi_k2");
  EXPECT_EQ(check(v3, kimi), "");
  EXPECT_EQ(check(kimi, v3), "");
  EXPECT_EQ(check(with(kimi, "n_group", "1"), with(v3, "n_group", "4")),
            "n_group 1, but this program's model has 4");
  EXPECT_EQ(check(latent("deepseek_v2"), v3),
            "model_type deepseek_v2, but this program's model has deepseek_v3");
}

// A window as long as the longest text of the program is as good as none, in
// either configuration; shorter ones are numbers.
TEST_F(HubConfig, WindowsAreCompared) {
  const std::string mid = ", but this program's model has ";
  for (const char *type : {"\"deepseek_v2\"", "\"deepseek_v3\""}) {
    std::string latent = with(kLlamaConfig, "model_type", type);
    latent = with(latent, "q_lora_rank", "null");
    latent = with(latent, "num_experts_per_tok", "2");
    EXPECT_EQ(check(with(latent, "sliding_window", "64"), latent), "");
    EXPECT_EQ(check(with(latent, "sliding_window", "4096"), latent), "");
    EXPECT_EQ(check(with(latent, "sliding_window", "63"), latent),
              "sliding_window 63" + mid + "none (by default)");
  }
  // Here the model has 64 positions.
  for (const char *type : {"\"mixtral\"", "\"mistral\""}) {
    const std::string bare = with(kLlamaConfig, "model_type", type);
    const std::string all = with(bare, "sliding_window", "null");
    const std::string near = with(bare, "sliding_window", "16");
    const std::string far = with(bare, "sliding_window", "4096");
    const std::string whole = with(bare, "sliding_window", "64");
    EXPECT_EQ(check(near, near), "");
    for (const std::string &theirs : {all, far, whole, bare}) {
      for (const std::string &ours : {all, far, whole, bare})
        EXPECT_EQ(check(theirs, ours), "") << theirs << ours;
      EXPECT_NE(check(theirs, near), "") << theirs;
    }
    EXPECT_EQ(check(near, all),
              "sliding_window 16" + mid + "none (by default)");
    EXPECT_EQ(check(all, near),
              "sliding_window none (by default)" + mid + "16");
    EXPECT_EQ(check(near, far), "sliding_window 16" + mid + "4096");
    EXPECT_EQ(check(with(bare, "sliding_window", "63"), whole),
              "sliding_window 63" + mid + "64");
    // A window of 0 tokens is no way to say that there is none.
    EXPECT_EQ(check(with(bare, "sliding_window", "0"), all),
              "sliding_window 0" + mid + "none (by default)");
  }
  // To a program of more positions than the window they are different.
  auto longer = [](const char *type) {
    return with(with(kLlamaConfig, "model_type", type),
                "max_position_embeddings", "8192");
  };
  const std::string mixtral = longer("\"mixtral\"");
  EXPECT_EQ(check(with(mixtral, "sliding_window", "4096"), mixtral),
            "sliding_window 4096" + mid + "none (by default)");
  const std::string mistral = longer("\"mistral\"");
  EXPECT_EQ(check(mistral, with(mistral, "sliding_window", "4096")), "");
  EXPECT_EQ(check(mistral, with(mistral, "sliding_window", "null")),
            "sliding_window 4096 (by default)" + mid + "none (by default)");
}
