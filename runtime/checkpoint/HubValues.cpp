//===- HubValues.cpp - What a configuration says --------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HubValues.h"

#include <cmath>
#include <cstdlib>

using namespace reprise::runtime;

/// One of several names of the same.
static std::string_view canonical(std::string_view word) {
  constexpr std::string_view kSame[][2] = {{"gelu_pytorch_tanh", "gelu_new"},
                                           {"gelu_fast", "gelu_new"},
                                           {"gelu_accurate", "gelu_new"},
                                           {"gelu_python", "gelu"},
                                           {"swish", "silu"}};
  for (auto &[name, other] : kSame)
    if (word == name)
      return other;
  return word;
}

Meaning::Meaning(const JsonValue &value) {
  kind = value.asDouble(number) ? Kind::Number : Kind::Word;
  if (value.is(JsonKind::Array)) {
    showItems(value);
    return;
  }
  show(value.is(JsonKind::True)     ? "true"
       : value.is(JsonKind::False)  ? "false"
       : value.is(JsonKind::Object) ? value.kindName()
                                    : value.text());
}

/// What is not a number in a list is shown as what it is.
void Meaning::showItems(const JsonValue &list) {
  size_t length = size_t(snprintf(chars, sizeof(chars), "["));
  for (JsonItem item : list) {
    double entry = 0;
    const char *comma = length > 1 ? ", " : "";
    if (length < sizeof(chars))
      length += size_t(item.value.asDouble(entry)
                           ? snprintf(chars + length, sizeof(chars) - length,
                                      "%s%.9g", comma, entry)
                           : snprintf(chars + length, sizeof(chars) - length,
                                      "%s%s", comma, item.value.kindName()));
  }
  if (length < sizeof(chars))
    snprintf(chars + length, sizeof(chars) - length, "]");
}

Meaning::Meaning(const char *fallback) : isDefault(true) {
  char *end = nullptr;
  number = strtod(fallback, &end);
  kind = *end ? Kind::Word : Kind::Number;
  show(fallback);
}

Meaning::Meaning(double derived)
    : kind(Kind::Number), number(derived), isDefault(true) {
  snprintf(chars, sizeof(chars), "%.9g", derived);
}

void Meaning::show(std::string_view text) {
  snprintf(chars, sizeof(chars), "%.*s", int(text.size()), text.data());
}

bool Meaning::operator==(const Meaning &other) const {
  if (kind != other.kind)
    return false;
  if (kind == Kind::Word)
    return canonical(chars) == canonical(other.chars);
  bool isWhole = number == std::floor(number);
  return number == other.number ||
         (!isWhole && float(number) == float(other.number));
}

//===----------------------------------------------------------------------===//
// Rotary positions
//===----------------------------------------------------------------------===//

namespace {
enum Stretch : unsigned { kLinear = 1, kLlama3 = 2, kYarn = 4 };
} // namespace

static constexpr RopeKey kFactor = {"factor", kLinear | kLlama3 | kYarn};
static constexpr RopeKey kOriginal = {"original_max_position_embeddings",
                                      kLlama3 | kYarn};
static constexpr RopeKey kAttention = {"attention_factor", kYarn};
/// Scores of latent attention are times the square of 0.1 * it * ln(factor) +
/// 1; 0 is as good as none.
static constexpr RopeKey kScores = {"mscale_all_dim", kLinear | kLlama3 | kYarn,
                                    "0", nullptr, true};
static constexpr RopeKey kRopeKeys[] = {
    kFactor,
    kOriginal,
    {"low_freq_factor", kLlama3},
    {"high_freq_factor", kLlama3},
    {"beta_fast", kYarn, "32", nullptr, false, true},
    {"beta_slow", kYarn, "1", nullptr, false, true},
    {"truncate", kYarn, "true", "false"},
    kAttention,
    kScores};

static unsigned stretchOf(std::string_view type) {
  return type == "linear"   ? kLinear
         : type == "llama3" ? kLlama3
         : type == "yarn"   ? kYarn
                            : 0;
}

JsonValue reprise::runtime::findStretch(const JsonValue &config) {
  JsonValue old = config.find("rope_scaling");
  bool isOld = old.is(JsonKind::Object) && old.size() > 0;
  return isOld ? old : config.find("rope_parameters");
}

Rope::Rope(const JsonValue &config, const char *fallback) : config(config) {
  stretch = findStretch(config);
  JsonValue given = stretch.find("rope_theta");
  if (!isGiven(given))
    given = config.find("rope_theta");
  theta = isGiven(given) ? Meaning(given) : Meaning(fallback);
  for (const char *key : {"type", "rope_type"})
    if (JsonValue named = stretch.find(key); named.is(JsonKind::String))
      type = named.text();
  // By a factor of 1 nothing is stretched.
  if (stretchOf(type) && find(kFactor) == Meaning(1.0) &&
      (type != "yarn" || find(kAttention) == Meaning(1.0)))
    type = "default";
}

/// What multiplies rotated queries and keys of YaRN unless it is given.
double Rope::attentionFactor() const {
  double factor = 1, scale = 0, scaleOfAll = 0;
  stretch.find("factor").asDouble(factor);
  auto scaled = [&](double by) {
    return factor <= 1 ? 1 : 0.1 * by * std::log(factor) + 1;
  };
  if (stretch.find("mscale").asDouble(scale) &&
      stretch.find("mscale_all_dim").asDouble(scaleOfAll) && scale != 0 &&
      scaleOfAll != 0)
    return scaled(scale) / scaled(scaleOfAll);
  return scaled(1);
}

Meaning Rope::find(const RopeKey &key) const {
  JsonValue given = stretch.find(key.name);
  if (key.name == kOriginal.name) {
    // Beside the map it wins; where it is nowhere, nothing was stretched.
    JsonValue beside = config.find(key.name);
    given = isGiven(beside) ? beside : given;
    double longest = 0;
    if (!isGiven(given) &&
        config.find("max_position_embeddings").asDouble(longest))
      return Meaning(longest);
  }
  double number = 1;
  bool isUnset = key.isUnsetByZero && given.asDouble(number) && number == 0;
  if (isGiven(given) && !isUnset)
    return Meaning(given);
  if (key.name == kAttention.name)
    return Meaning(attentionFactor());
  if (key.null && given.is(JsonKind::Null))
    return Meaning(key.null);
  return key.fallback ? Meaning(key.fallback) : Meaning();
}

const RopeKey *Rope::findDifference(const Rope &other, bool isLatent) const {
  for (const RopeKey &key : kRopeKeys)
    if (key.stretches & stretchOf(type) && (isLatent || !key.isOfLatent) &&
        !(find(key) == other.find(key)))
      return &key;
  return nullptr;
}
