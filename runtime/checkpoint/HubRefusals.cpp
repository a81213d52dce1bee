//===- HubRefusals.cpp - Keys that no model here has ----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rows are the compiler's (RefusedKeys.def). What they ask of a model is
// here what the program's configuration says, which has every key of its
// family.
//
//===----------------------------------------------------------------------===//

#include "HubRefusals.h"

#include "runtime/base/Text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <strings.h>

using namespace reprise::runtime;

namespace {
/// The values that change nothing: `a|b`; empty: the row is for others.
struct Neutral {
  char text[96];

  Neutral(const char *words) { snprintf(text, sizeof(text), "%s", words); }
  explicit Neutral(double number, const char *more = "") {
    // What is not known equals nothing, not even itself.
    snprintf(text, sizeof(text), "%.9g%s", double(float(number)), more);
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// What a model has
//===----------------------------------------------------------------------===//

/// The number of the first of the keys that has one; NaN if none has.
static double numberOf(const HubModel &model,
                       std::initializer_list<std::string_view> keys) {
  double number = NAN;
  for (std::string_view key : keys)
    if (model.ours.find(key).asDouble(number))
      return number;
  return NAN;
}

static double widthOf(const HubModel &model) {
  return numberOf(model, {"hidden_size", "n_embd"});
}
static double headsOf(const HubModel &model) {
  return numberOf(model, {"num_attention_heads", "n_head"});
}
static double keyValueHeadsOf(const HubModel &model) {
  double heads = numberOf(model, {"num_key_value_heads"});
  return std::isnan(heads) ? headsOf(model) : heads;
}
static bool isLatent(const HubModel &model) {
  return model.family.has("kv_lora_rank");
}
/// Columns of a head of queries.
static double headWidthOf(const HubModel &model) {
  if (isLatent(model))
    return numberOf(model, {"qk_nope_head_dim"}) +
           numberOf(model, {"qk_rope_head_dim"});
  double width = numberOf(model, {"head_dim"});
  return std::isnan(width) ? widthOf(model) / headsOf(model) : width;
}
static bool isRotary(const HubModel &model) { return model.family.ropeTheta; }
static bool isRMS(const HubModel &model) {
  return model.family.has("rms_norm_eps");
}
static bool hasExperts(const HubModel &model) {
  return model.family.has("num_experts_per_tok");
}
static bool has(const HubModel &model, HubFact fact) {
  return model.family.facts & fact;
}

//===----------------------------------------------------------------------===//
// What rows ask for
//===----------------------------------------------------------------------===//

static Neutral isTrue(bool truth) { return truth ? "true" : "off"; }

static Neutral headWidth(const HubModel &model) {
  return Neutral(headWidthOf(model));
}
static Neutral scoreFactor(const HubModel &model) {
  return Neutral(1 / std::sqrt(headWidthOf(model)));
}
static Neutral width(const HubModel &model) { return Neutral(widthOf(model)); }
static Neutral rootOfLayers(const HubModel &model) {
  return Neutral(std::sqrt(numberOf(model, {"num_hidden_layers", "n_layer"})));
}
static Neutral keyValueHeads(const HubModel &model) {
  return Neutral(keyValueHeadsOf(model));
}
static Neutral isMultiQuery(const HubModel &model) {
  return isTrue(keyValueHeadsOf(model) == 1);
}

/// A window that is as long as the longest text is none.
static Neutral window(const HubModel &model) {
  if (model.family.has("use_sliding_window") ||
      model.theirs.find("use_sliding_window").is(JsonKind::False))
    return "*";
  Neutral neutral("off|-1|none|>=");
  size_t length = strlen(neutral.text);
  double most = numberOf(model, {"max_position_embeddings", "n_positions"});
  snprintf(neutral.text + length, sizeof(neutral.text) - length, "%.9g", most);
  return neutral;
}

static Neutral rotary(const HubModel &model) { return isTrue(isRotary(model)); }
static Neutral learned(const HubModel &model) {
  return isTrue(!isRotary(model));
}
static Neutral positions(const HubModel &model) {
  return isRotary(model) ? "rope|rotary" : "absolute|learned|learned_absolute";
}
static Neutral interleaved(const HubModel &model) {
  return isTrue(isLatent(model));
}

static Neutral rms(const HubModel &model) { return isTrue(isRMS(model)); }
static Neutral normBias(const HubModel &model) { return isTrue(!isRMS(model)); }
static Neutral normWords(const HubModel &model) {
  return isRMS(model) ? "rmsnorm|rms_norm|rms" : "layernorm|layer_norm|default";
}
static Neutral normBefore(const HubModel &model) {
  return isTrue(!has(model, kNormsAfter));
}
static Neutral normAfter(const HubModel &model) {
  return isTrue(has(model, kNormsAfter));
}
static Neutral queryKeyNorm(const HubModel &model) {
  return model.family.has("use_qk_norm") ? "*"
                                         : isTrue(has(model, kNormsQueries));
}
static Neutral gate(const HubModel &model) {
  return isTrue(!model.family.has("activation_function"));
}

/// Biases that a key of the family says are those that it says in the file.
static Neutral bias(const HubModel &model, bool isAlways, const char *key) {
  return isTrue(isAlways || (model.family.has(key) &&
                             model.theirs.find(key).is(JsonKind::True)));
}
static Neutral queryKeyValueBias(const HubModel &model) {
  return bias(model, has(model, kBiasOfQueries) || has(model, kAllBiases),
              "attention_bias");
}
static Neutral outputBias(const HubModel &model) {
  return has(model, kNoBiasOfOutput)
             ? "off"
             : bias(model, has(model, kAllBiases), "attention_bias");
}
static Neutral mlpBias(const HubModel &model) {
  return bias(model, has(model, kAllBiases), "mlp_bias");
}
static Neutral allBiases(const HubModel &model) {
  return isTrue(has(model, kAllBiases));
}
static Neutral noBiases(const HubModel &model) {
  return isTrue(!has(model, kAllBiases));
}

static Neutral experts(const HubModel &model) {
  return hasExperts(model)
             ? Neutral(numberOf(model, {"num_experts", "num_local_experts",
                                        "n_routed_experts"}),
                       "|off|1")
             : "off|1";
}
static Neutral normedWeights(const HubModel &model) {
  return hasExperts(model) ? "true" : "*";
}
static Neutral scores(const HubModel &model) {
  return !hasExperts(model)             ? "*"
         : has(model, kScoresBySigmoid) ? "sigmoid"
                                        : "softmax";
}
/// A training's own, which no weights are beside.
static Neutral dropouts(const HubModel &) { return ""; }

namespace {
struct RefusedKey {
  std::string_view names;
  const char *neutral;
  Neutral (*own)(const HubModel &model);
};
} // namespace

/// For rows whose values do not depend on the model.
static constexpr Neutral (*byValue)(const HubModel &) = nullptr;

static constexpr RefusedKey kRefused[] = {
#define REFUSED(NAMES, NEUTRAL, OWN) {NAMES, NEUTRAL, OWN},
#include "reprise/ABI/RefusedKeys.def"
};

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Takes the first of `a|b` off.
static std::string_view takeWord(std::string_view &words) {
  size_t end = std::min(words.find('|'), words.size());
  std::string_view word = {words.data(), end};
  words.remove_prefix(std::min(end + 1, words.size()));
  return word;
}

static bool startsWith(std::string_view text, std::string_view begin) {
  return text.size() >= begin.size() &&
         !memcmp(text.data(), begin.data(), begin.size());
}

static bool isNamed(std::string_view names, std::string_view key) {
  while (!names.empty()) {
    std::string_view name = takeWord(names);
    bool isStart = !name.empty() && name.back() == '*';
    name.remove_suffix(isStart);
    if (isStart ? startsWith(key, name) : key == name)
      return true;
  }
  return false;
}

/// Whether a value switches nothing on.
static bool isOff(const JsonValue &value) {
  double number;
  return value.is(JsonKind::Null) || value.is(JsonKind::False) ||
         (value.is(JsonKind::String) && value.text().empty()) ||
         (value.asDouble(number) && number == 0) ||
         ((value.is(JsonKind::Array) || value.is(JsonKind::Object)) &&
          value.size() == 0);
}

static bool isWord(const JsonValue &value, std::string_view word) {
  if (word == "off" || word == "*")
    return word == "*" || isOff(value);
  if (value.is(JsonKind::String)) {
    std::string_view text = value.text();
    return text.size() == word.size() &&
           !strncasecmp(text.data(), word.data(), word.size());
  }
  if (value.is(JsonKind::True))
    return word == "true";
  bool isLeast = startsWith(word, ">=");
  word.remove_prefix(isLeast ? 2 : 0);
  double number, own;
  char digits[32], *end = nullptr;
  snprintf(digits, sizeof(digits), "%.*s", int(word.size()), word.data());
  own = strtod(digits, &end);
  return end != digits && !*end && value.asDouble(number) &&
         (float(number) == float(own) || (isLeast && number > own));
}

static bool isNeutral(const JsonValue &value, std::string_view neutral) {
  if (value.is(JsonKind::Array)) {
    for (JsonItem item : value)
      if (!isNeutral(item.value, neutral))
        return false;
    return true;
  }
  bool isOne = value.is(JsonKind::Null);
  while (!isOne && !neutral.empty())
    isOne = isWord(value, takeWord(neutral));
  return isOne;
}

bool reprise::runtime::changesModel(std::string_view key,
                                    const JsonValue &value,
                                    const HubModel &model) {
  if (model.family.ignored == key)
    return false;
  for (const RefusedKey &row : kRefused) {
    if (!isNamed(row.names, key))
      continue;
    Neutral neutral = row.own ? row.own(model) : Neutral(row.neutral);
    if (*neutral.text)
      return !isNeutral(value, neutral.text);
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Spelling
//===----------------------------------------------------------------------===//

/// Whether one name is the other with a letter more, less or changed, or with
/// some more at its end.
static bool isNear(std::string_view a, std::string_view b) {
  constexpr size_t kFewest = 6, kMostMore = 4;
  if (a.size() > b.size())
    std::swap(a, b);
  if (a.size() < kFewest || b.size() - a.size() > kMostMore)
    return false;
  size_t same = 0, end = 0;
  while (same < a.size() && a[same] == b[same])
    ++same;
  while (end < a.size() - same &&
         a[a.size() - 1 - end] == b[b.size() - 1 - end])
    ++end;
  return same == a.size() || (b.size() - same - end <= 1);
}

const HubKey *reprise::runtime::findMeantKey(std::string_view key,
                                             const HubModel &model) {
  for (const RefusedKey &row : kRefused)
    if (isNamed(row.names, key))
      return nullptr;
  for (const HubKey &known : model.family)
    for (std::string_view name : {known.name, known.alias})
      if (isNear(key, name) && !model.theirs.find(known.name) &&
          (known.alias.empty() || !model.theirs.find(known.alias)))
        return &known;
  return nullptr;
}
