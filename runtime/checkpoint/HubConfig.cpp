//===- HubConfig.cpp - The config.json beside weights ---------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two configurations mean the same if every key of the family has the same
// value, whatever name it stands under, and whether it stands there at all: a
// key that is missing has Hugging Face's default, which the table below has.
//
//===----------------------------------------------------------------------===//

#include "HubConfig.h"

#include "Checkpoint.h"
#include "HubValues.h"
#include "runtime/base/MappedFile.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <sys/stat.h>

using namespace reprise::runtime;

Path reprise::runtime::folderOfWeights(const char *path) {
  struct stat info;
  if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
    return Path("%s", path);
  const char *slash = strrchr(path, '/');
  return slash ? Path("%.*s", int(std::max<long>(slash - path, 1)), path)
               : Path(".");
}

namespace {
enum Family : unsigned {
  kGPT2 = 1,
  kLlama = 2,
  kQwen2 = 4,
  kQwen3 = 8,
  kOlmo2 = 16,
  kMixtral = 32,
  kQwen3Moe = 64,
  kQwen2Moe = 128,
  kGlm4Moe = 256,
  kDeepSeekV2 = 512,
  kDeepSeekV3 = 1024, ///< Kimi-K2, too.
  kQwenMoe = kQwen2Moe | kQwen3Moe,
  kLatent = kDeepSeekV2 | kDeepSeekV3,
  kSigmoid = kGlm4Moe | kDeepSeekV3,
  kPlusShared = kGlm4Moe | kLatent,
  kHeads = kMixtral | kQwenMoe | kGlm4Moe,
  kRotary = kLlama | kQwen2 | kQwen3 | kOlmo2 | kHeads | kLatent,
  kAll = kGPT2 | kRotary
};

/// A configuration of a family.
struct Config {
  JsonValue root;
  unsigned family;

  /// The number of a key; NaN if it has none.
  double number(std::string_view key, std::string_view alias = {}) const {
    double value = NAN;
    if (!root.find(key).asDouble(value) && !alias.empty())
      root.find(alias).asDouble(value);
    return value;
  }
};

struct ConfigKey {
  std::string_view name, alias;
  unsigned families;
  /// What a file without the key means. Null, and no `derived`: the tensors
  /// tell, and only a key that is given is compared.
  const char *fallback = nullptr;
  /// The same, if other keys make it; NaN if they do not say.
  double (*derived)(const Config &config, bool isNull) = nullptr;
};
} // namespace

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

static double widthOfMLP(const Config &config, bool) {
  return 4 * config.number("n_embd", "hidden_size");
}

static double widthOfHeads(const Config &config, bool) {
  return std::floor(config.number("hidden_size") /
                    config.number("num_attention_heads"));
}

/// Null means that queries have no latent.
static double rankOfQueries(const Config &, bool isNull) {
  return isNull ? 0 : 1536;
}

/// In some classes only null means as many as heads.
static double keyValueHeads(const Config &config, bool isNull) {
  constexpr struct {
    unsigned families;
    double number;
  } kAbsent[] = {{kQwen2 | kQwen3, 32},
                 {kMixtral, 8},
                 {kQwen3Moe, 4},
                 {kQwen2Moe, 16},
                 {kGlm4Moe, 8}};
  for (const auto &absent : kAbsent)
    if (config.family & absent.families && !isNull)
      return absent.number;
  return config.number("num_attention_heads");
}

/// Every key that changes what a model computes from its weights, but for
/// rotary positions. Defaults are those of transformers' classes.
static constexpr ConfigKey kKeys[] = {
    {"vocab_size", "", kAll},
    {"n_positions", "max_position_embeddings", kGPT2},
    {"n_embd", "hidden_size", kGPT2},
    {"n_layer", "num_hidden_layers", kGPT2},
    {"n_head", "num_attention_heads", kGPT2, "12"},
    {"n_inner", "", kGPT2, nullptr, widthOfMLP},
    {"activation_function", "", kGPT2, "gelu_new"},
    {"layer_norm_epsilon", "", kGPT2, "1e-05"},
    {"scale_attn_weights", "", kGPT2, "true"},
    {"scale_attn_by_inverse_layer_idx", "", kGPT2, "false"},
    {"add_cross_attention", "", kGPT2, "false"},
    {"tie_word_embeddings", "", kGPT2, "true"},
    {"hidden_size", "", kRotary},
    {"intermediate_size", "", kRotary},
    {"num_hidden_layers", "", kRotary},
    {"num_attention_heads", "", kRotary & ~(kQwen2Moe | kGlm4Moe | kDeepSeekV3),
     "32"},
    {"num_attention_heads", "", kDeepSeekV3, "128"},
    {"num_attention_heads", "", kQwen2Moe, "16"},
    {"num_attention_heads", "", kGlm4Moe, "96"},
    {"num_key_value_heads", "", kRotary, nullptr, keyValueHeads},
    {"head_dim", "", kLlama | kQwen2 | kOlmo2 | kHeads, nullptr, widthOfHeads},
    {"head_dim", "", kQwen3, "128"},
    {"hidden_act", "", kRotary, "silu"},
    {"rms_norm_eps", "", kLlama | kQwen2 | kQwen3 | kQwenMoe | kLatent,
     "1e-06"},
    {"rms_norm_eps", "", kOlmo2 | kMixtral | kGlm4Moe, "1e-05"},
    {"attention_bias", "", kLlama | kQwen3 | kOlmo2 | kQwen3Moe | kPlusShared,
     "false"},
    {"q_lora_rank", "", kLatent, nullptr, rankOfQueries},
    {"kv_lora_rank", "", kLatent, "512"},
    {"qk_nope_head_dim", "", kLatent, "128"},
    {"qk_rope_head_dim", "", kLatent, "64"},
    {"v_head_dim", "", kLatent, "128"},
    {"rope_interleave", "", kDeepSeekV3, "true"},
    {"use_qk_norm", "", kGlm4Moe, "false"},
    {"mlp_bias", "", kLlama, "false"},
    {"num_local_experts", "num_experts", kMixtral},
    {"num_experts", "num_local_experts", kQwenMoe},
    {"num_experts_per_tok", "", kMixtral, "2"},
    {"n_routed_experts", "num_local_experts", kPlusShared},
    {"num_experts_per_tok", "", kQwen3Moe | kSigmoid, "8"},
    {"num_experts_per_tok", "", kDeepSeekV2},
    {"num_experts_per_tok", "", kQwen2Moe, "4"},
    {"moe_intermediate_size", "", kQwenMoe | kPlusShared},
    {"n_shared_experts", "", kSigmoid, "1"},
    {"n_shared_experts", "", kDeepSeekV2, "2"},
    {"first_k_dense_replace", "", kGlm4Moe, "1"},
    {"first_k_dense_replace", "", kDeepSeekV2, "0"},
    {"first_k_dense_replace", "", kDeepSeekV3, "3"},
    {"routed_scaling_factor", "", kGlm4Moe | kDeepSeekV2, "1.0"},
    {"routed_scaling_factor", "", kDeepSeekV3, "2.5"},
    {"n_group", "", kGlm4Moe, "1"},
    {"n_group", "", kDeepSeekV3, "8"},
    {"topk_group", "", kGlm4Moe, "1"},
    {"topk_group", "", kDeepSeekV3, "4"},
    {"topk_method", "", kDeepSeekV2, "greedy"},
    {"norm_topk_prob", "", kSigmoid, "true"},
    {"norm_topk_prob", "", kDeepSeekV2, "false"},
    {"shared_expert_intermediate_size", "", kQwen2Moe},
    {"qkv_bias", "", kQwen2Moe, "true"},
    {"norm_topk_prob", "", kQwenMoe, "false"},
    {"decoder_sparse_step", "", kQwenMoe, "1"},
    {"mlp_only_layers", "", kQwenMoe, "[]"},
    {"router_jitter_noise", "", kMixtral, "0.0"},
    {"use_sliding_window", "", kQwen2 | kQwen3 | kQwenMoe, "false"},
    {"partial_rotary_factor", "", kRotary & ~kGlm4Moe, "1.0"},
    {"partial_rotary_factor", "", kGlm4Moe, "0.5"},
    {"use_mrope", "", kRotary, "false"},
    {"tie_word_embeddings", "", kRotary, "false"}};

/// Keys about training, names and storage; and those of rotary positions,
/// which are compared by themselves.
static constexpr std::string_view kOthers[] = {"architectures",
                                               "attention_dropout",
                                               "attn_pdrop",
                                               "dtype",
                                               "embd_pdrop",
                                               "initializer_range",
                                               "max_position_embeddings",
                                               "model_type",
                                               "output_router_logits",
                                               "reorder_and_upcast_attn",
                                               "resid_pdrop",
                                               "rope_scaling",
                                               "rope_theta",
                                               "router_aux_loss_coef",
                                               "torch_dtype"};

/// Keys that no program here has: they must say nothing.
static constexpr std::string_view kForeign[] = {"layer_types", "pruned_heads",
                                                "quantization_config"};

static constexpr struct {
  std::string_view type, className;
  Family family;
} kFamilies[] = {{"gpt2", "GPT2", kGPT2},
                 {"llama", "Llama", kLlama},
                 {"qwen2", "Qwen2", kQwen2},
                 {"qwen3", "Qwen3", kQwen3},
                 {"olmo2", "Olmo2", kOlmo2},
                 {"mixtral", "Mixtral", kMixtral},
                 {"qwen3_moe", "Qwen3Moe", kQwen3Moe},
                 {"qwen2_moe", "Qwen2Moe", kQwen2Moe},
                 {"glm4_moe", "Glm4Moe", kGlm4Moe},
                 {"deepseek_v2", "DeepseekV2", kDeepSeekV2},
                 {"deepseek_v3", "DeepseekV3", kDeepSeekV3},
                 {"kimi_k2", "DeepseekV3", kDeepSeekV3}};

/// What a class is called behind its family.
static constexpr std::string_view kClassEnds[] = {"LMHeadModel", "ForCausalLM",
                                                  "Model"};

static bool isOther(std::string_view key) {
  constexpr std::string_view kTokenId = "_token_id";
  bool isToken = key.size() > kTokenId.size() &&
                 !memcmp(key.data() + key.size() - kTokenId.size(),
                         kTokenId.data(), kTokenId.size());
  return isToken || std::find(std::begin(kOthers), std::end(kOthers), key) !=
                        std::end(kOthers);
}

/// Null, false, empty, or nothing but attention to all that came before.
static bool saysNothing(const JsonValue &value) {
  for (JsonItem item : value)
    if (value.is(JsonKind::Object) || item.value.text() != "full_attention")
      return false;
  return value.is(JsonKind::Null) || value.is(JsonKind::False) ||
         value.is(JsonKind::Array) || value.is(JsonKind::Object);
}

/// The type of model that a configuration is of: what it says, or, in files
/// from before that, what its class is called after. Empty if neither is known.
static std::string_view typeOf(const JsonValue &config) {
  JsonValue type = config.find("model_type");
  if (type.is(JsonKind::String))
    return type.text();
  for (JsonItem item : config.find("architectures"))
    for (const auto &known : kFamilies)
      for (std::string_view end : kClassEnds) {
        char name[64];
        snprintf(name, sizeof(name), "%s%s", known.className.data(),
                 end.data());
        if (item.value.text() == name)
          return known.type;
      }
  return {};
}

static unsigned familyOf(std::string_view type) {
  for (const auto &known : kFamilies)
    if (known.type == type)
      return known.family;
  return 0;
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

static bool differs(const char *path, std::string_view key,
                    const Meaning &theirs, const Meaning &ours, Error &error) {
  return error.set("'%s' has %s%.*s%s%s%s, but this program's model has "
                   "%s%s: its weights would compute something else",
                   path, theirs ? "" : "no ",
                   int(std::min<size_t>(key.size(), 80)), key.data(),
                   theirs ? " " : "", theirs.text(), theirs.note(),
                   ours ? ours.text() : "none", ours.note());
}

/// Whether the rotary positions of both are the same.
static bool checkRope(const char *path, const JsonValue &theirConfig,
                      const JsonValue &ourConfig, unsigned family,
                      Error &error) {
  const char *theta = family & kMixtral ? "1000000.0" : "10000.0";
  Rope theirs(theirConfig, theta), ours(ourConfig, theta);
  if (!(theirs.theta == ours.theta))
    return differs(path, "rope_theta", theirs.theta, ours.theta, error);
  if (theirs.type != ours.type)
    return differs(path, "rope_type", Meaning(theirs.type), Meaning(ours.type),
                   error);
  const RopeKey *key = ours.findDifference(theirs);
  return !key ||
         differs(path, key->name, theirs.find(*key), ours.find(*key), error);
}

/// The value of a key, which may be inside `rope_parameters` in newer files.
static JsonValue findKey(const JsonValue &config, std::string_view name) {
  JsonValue value = config.find(name);
  if (value || name != "partial_rotary_factor")
    return value;
  return config.find("rope_parameters").find(name);
}

/// What the absence of a key means, or null in its place.
static Meaning fallbackOf(const ConfigKey &key, const Config &config) {
  if (key.fallback)
    return Meaning(key.fallback);
  if (!key.derived)
    return {};
  double value = key.derived(config, bool(config.root.find(key.name)));
  return std::isnan(value) ? Meaning() : Meaning(value);
}

/// Whether a key means the same in both, under each name that it has there.
static bool checkKey(const char *path, const ConfigKey &key,
                     const Config &theirs, const Config &ours, Error &error) {
  Meaning mine = fallbackOf(key, ours);
  bool isThere = false;
  for (std::string_view name : {key.alias, key.name})
    if (JsonValue value = findKey(ours.root, name); isGiven(value))
      mine = Meaning(value);
  for (std::string_view name : {key.name, key.alias}) {
    JsonValue value = findKey(theirs.root, name);
    isThere = isThere || isGiven(value);
    if (mine && isGiven(value) && !(Meaning(value) == mine))
      return differs(path, name, Meaning(value), mine, error);
  }
  Meaning absent = fallbackOf(key, theirs);
  return !mine || isThere || !absent || absent == mine ||
         differs(path, key.name, absent, mine, error);
}

static bool checkConfig(const char *path, const JsonValue &theirs,
                        const JsonValue &ours, Error &error) {
  std::string_view type = typeOf(theirs), ourType = typeOf(ours);
  if (!type.empty() && !ourType.empty() && type != ourType)
    return differs(path, "model_type", Meaning(type), Meaning(ourType), error);
  unsigned family = familyOf(ourType);
  auto isInTable = [&](std::string_view name) {
    return std::any_of(std::begin(kKeys), std::end(kKeys), [&](auto &key) {
      return key.families & family && (key.name == name || key.alias == name);
    });
  };
  for (const ConfigKey &key : kKeys)
    if (key.families & family &&
        !checkKey(path, key, {theirs, family}, {ours, family}, error))
      return false;
  for (JsonItem item : ours) {
    std::string_view name = item.key.text();
    JsonValue other = theirs.find(name);
    if (!isInTable(name) && !isOther(name) && isGiven(item.value) &&
        isGiven(other) && !(Meaning(other) == Meaning(item.value)))
      return differs(path, name, Meaning(other), Meaning(item.value), error);
  }
  for (std::string_view name : kForeign)
    if (JsonValue value = theirs.find(name); value && !saysNothing(value))
      return error.set("'%s' has %s, which this program's model has not: its "
                       "weights would compute something else",
                       path, name.data());
  return !(family & kRotary) || checkRope(path, theirs, ours, family, error);
}

bool reprise::runtime::checkHubConfig(const char *weights,
                                      std::string_view ourText, Error &error) {
  Path path("%s/%s", folderOfWeights(weights).chars, kConfigFile);
  struct stat info;
  if (ourText.empty() || stat(path, &info) != 0)
    return true;
  MappedFile file;
  JsonDocument theirs, ours;
  if (!file.map(path, error))
    return false;
  std::string_view text = {reinterpret_cast<const char *>(file.data),
                           size_t(file.size)};
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.size() >= kByteOrderMark.size() &&
      !memcmp(text.data(), kByteOrderMark.data(), kByteOrderMark.size()))
    text.remove_prefix(kByteOrderMark.size());
  bool good = theirs.parse(text, path, error) &&
              ours.parse(ourText, "the model's configuration", error) &&
              checkConfig(path, theirs.root(), ours.root(), error);
  file.unmap();
  return good;
}
