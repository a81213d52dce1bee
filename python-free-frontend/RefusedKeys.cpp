//===- RefusedKeys.cpp - Keys of config.json that change models -*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What classes of transformers read, and no family here has, although their
// files may look like one of them otherwise. A value that changes nothing
// passes: many files say what they do not have.
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/ConfigKeys.h"
#include "python-free-frontend/Keys.h"

#include "llvm/Support/Format.h"

#include <cmath>

using namespace llvm;
using namespace reprise::frontend;

//===----------------------------------------------------------------------===//
// What a file's model has
//===----------------------------------------------------------------------===//

double HubModel::getNumber(Field (*member)(Description &)) const {
  const Key *key = findKeyOf(&family, member);
  double number = NAN;
  if (!key)
    return number;
  for (const Entry &entry : llvm::reverse(given))
    if (findCounterpart(*entry.key, &family) == key &&
        !StringRef(entry.value.text).getAsDouble(number))
      return number;
  for (const auto &[name, value] : file)
    if (findHubKey(name, family) == key && value.getAsNumber())
      return *value.getAsNumber();
  const KeyUse *use = family.findUse(key->name);
  if (!use)
    return NAN;
  StringRef text = use->absent.empty() ? use->defaultValue : use->absent;
  auto [factor, name] = text.split(" * "); // `4 * n_embd`
  if (factor.getAsDouble(number))
    return NAN;
  const Key *other = findKey(name, "model", &family);
  return name.empty() ? number : other ? number * getNumber(other->field) : NAN;
}

/// A number as it is in f32; what nothing is equal to if it is not known.
static std::string formatNumber(double number) {
  char text[32];
  snprintf(text, sizeof(text), "%.9g", double(float(number)));
  return text;
}

static double getHeads(const HubModel &model) {
  return model.getNumber(modelField<&Model::numHeads>);
}
static double getWidth(const HubModel &model) {
  return model.getNumber(modelField<&Model::width>);
}
/// Columns of a head of queries.
static double getHeadWidth(const HubModel &model) {
  if (model.family.blocks.attention == AttentionKind::Latent)
    return model.getNumber(modelField<&Model::plainWidth>) +
           model.getNumber(modelField<&Model::turnedWidth>);
  double width = model.getNumber(modelField<&Model::headWidth>);
  return std::isnan(width) ? getWidth(model) / getHeads(model) : width;
}
static double getKeyValueHeads(const HubModel &model) {
  double heads = model.getNumber(modelField<&Model::numKeyValueHeads>);
  return std::isnan(heads) ? getHeads(model) : heads;
}

static std::string headWidth(const HubModel &model) {
  return formatNumber(getHeadWidth(model));
}
static std::string scoreFactor(const HubModel &model) {
  return formatNumber(1 / std::sqrt(getHeadWidth(model)));
}
static std::string width(const HubModel &model) {
  return formatNumber(getWidth(model));
}
/// MiniCPM's: blocks add their result times it / sqrt(layers).
static std::string rootOfLayers(const HubModel &model) {
  return formatNumber(
      std::sqrt(model.getNumber(modelField<&Model::numLayers>)));
}
static std::string keyValueHeads(const HubModel &model) {
  return formatNumber(getKeyValueHeads(model));
}
static std::string isMultiQuery(const HubModel &model) {
  return getKeyValueHeads(model) == 1 ? "true" : "off";
}

/// A window that is as long as the longest text is none.
static std::string window(const HubModel &model) {
  const json::Value *use = model.file.get("use_sliding_window");
  if (findHubKey("use_sliding_window", model.family) ||
      (use && use->getAsBoolean() == false))
    return "*";
  return "off|-1|none|>=" +
         formatNumber(model.getNumber(modelField<&Model::numPositions>));
}

//===----------------------------------------------------------------------===//
// What a family has
//===----------------------------------------------------------------------===//

static std::string isTrue(bool truth) { return truth ? "true" : "off"; }

static bool isRotary(const HubModel &model) {
  return model.family.hasRotaryPositions();
}
static std::string rotary(const HubModel &model) {
  return isTrue(isRotary(model));
}
static std::string learned(const HubModel &model) {
  return isTrue(!isRotary(model));
}
static std::string positions(const HubModel &model) {
  return isRotary(model) ? "rope|rotary" : "absolute|learned|learned_absolute";
}
/// Neighbouring columns turn together, but for a key that says it.
static std::string interleaved(const HubModel &model) {
  return isTrue(model.family.blocks.attention == AttentionKind::Latent);
}

static bool isRMS(const HubModel &model) {
  return model.family.blocks.norm == NormKind::RMSNorm;
}
static std::string rms(const HubModel &model) { return isTrue(isRMS(model)); }
static std::string normBias(const HubModel &model) {
  return isTrue(!isRMS(model));
}
static std::string normWords(const HubModel &model) {
  return isRMS(model) ? "rmsnorm|rms_norm|rms" : "layernorm|layer_norm|default";
}
static bool isNormedBefore(const HubModel &model) {
  return !model.family.tensors.attentionNorm.empty();
}
static std::string normBefore(const HubModel &model) {
  return isTrue(isNormedBefore(model));
}
static std::string normAfter(const HubModel &model) {
  return isTrue(!isNormedBefore(model));
}
/// Where a key of the family says it, that key is the one that counts.
static std::string queryKeyNorm(const HubModel &model) {
  QueryKeyNorm norm = model.family.blocks.queryKeyNorm;
  return norm == QueryKeyNorm::HeadByKey ? "*"
                                         : isTrue(norm != QueryKeyNorm::None);
}

static std::string gate(const HubModel &model) {
  return isTrue(model.family.blocks.mlp == MLPKind::SwiGLU);
}

/// Biases that a key of the family says are those that it says in the file.
static std::string bias(const HubModel &model, BiasKind kind, StringRef key) {
  if (kind != BiasKind::ByKey)
    return isTrue(kind == BiasKind::Always);
  return isTrue(findHubKey(key, model.family) &&
                model.file.getBoolean(key).value_or(false));
}
static std::string queryKeyValueBias(const HubModel &model) {
  return bias(model, model.family.blocks.queryKeyValueBias, "attention_bias");
}
static std::string outputBias(const HubModel &model) {
  return bias(model, model.family.blocks.outputBias, "attention_bias");
}
static std::string mlpBias(const HubModel &model) {
  return bias(model, model.family.blocks.mlpBias, "mlp_bias");
}
static std::string allBiases(const HubModel &model) {
  return isTrue(model.family.blocks.mlpBias == BiasKind::Always);
}
static std::string noBiases(const HubModel &model) {
  return isTrue(model.family.blocks.mlpBias != BiasKind::Always);
}

static bool hasExperts(const HubModel &model) {
  return model.family.blocks.experts != ExpertKind::None;
}
/// Another family's name may say once more how many there are.
static std::string experts(const HubModel &model) {
  std::string none = "off|1";
  return hasExperts(model)
             ? formatNumber(model.getNumber(modelField<&Model::numExperts>)) +
                   "|" + none
             : none;
}
/// Without experts, what is said of a choice among them says nothing.
static std::string normedWeights(const HubModel &model) {
  return hasExperts(model) ? "true" : "*";
}
static std::string scores(const HubModel &model) {
  if (!hasExperts(model))
    return "*";
  return model.family.blocks.router == RouterKind::Sigmoid ? "sigmoid"
                                                           : "softmax";
}

/// Where some of them have keys, names near these are said.
static std::string dropouts(const HubModel &model) {
  return model.family.findUse("resid_pdrop") ? "" : "off";
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

/// For rows whose values do not depend on the model.
static constexpr std::string (*byValue)(const HubModel &) = nullptr;

static constexpr RefusedKey kRefused[] = {
#define REFUSED(NAMES, NEUTRAL, OWN) {NAMES, NEUTRAL, OWN},
#include "reprise/ABI/RefusedKeys.def"
};

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Whether the value is what a word of RefusedKey::neutral says.
static bool isWord(const json::Value &value, StringRef word) {
  if (word == "off" || word == "*")
    return word == "*" || isOff(value);
  if (std::optional<StringRef> text = value.getAsString())
    return text->equals_insensitive(word);
  if (std::optional<bool> truth = value.getAsBoolean())
    return word == (*truth ? "true" : "false");
  bool isLeast = word.consume_front(">=");
  std::optional<double> number = value.getAsNumber();
  double own;
  return number && !word.getAsDouble(own) &&
         (float(*number) == float(own) || (isLeast && *number > own));
}

static bool isNeutral(const json::Value &value, StringRef neutral) {
  if (const json::Array *array = value.getAsArray())
    return llvm::all_of(*array, [&](const json::Value &item) {
      return isNeutral(item, neutral);
    });
  return value.getAsNull() || any_of(splitWords(neutral), [&](StringRef word) {
           return isWord(value, word);
         });
}

/// What a family has by `neutral`, at the end of a sentence; empty if that is
/// not known.
static std::string describeNeutral(StringRef neutral) {
  StringRef first = neutral.split('|').first;
  if (first == "off")
    return ", which has none";
  if (first == "true")
    return ", which has it";
  return first == "nan" ? "" : (", which has " + first).str();
}

/// ` of 0.0625`, if the value is a word or a number.
static std::string describeValue(const json::Value &value) {
  std::string text;
  if (std::optional<StringRef> word = value.getAsString())
    text = (" of '" + *word + "'").str();
  else if (std::optional<double> number = value.getAsNumber())
    raw_string_ostream(text) << llvm::format(" of %.15g", *number);
  else if (value.getAsBoolean() == false)
    text = " of false";
  return text;
}

static std::string refuse(StringRef key, const json::Value &value,
                          StringRef neutral, const Family &family) {
  return ("'" + key + "'" + describeValue(value) +
          " changes what the model computes and is not supported for " +
          family.name + describeNeutral(neutral))
      .str();
}

std::optional<std::string>
reprise::frontend::findRefusal(StringRef key, const json::Value &value,
                               const HubModel &model) {
  for (ArrayRef<RefusedKey> rows : {model.family.refused, ArrayRef(kRefused)}) {
    for (const RefusedKey &row : rows) {
      if (!isNamed(row.names, key))
        continue;
      std::string neutral = row.own ? row.own(model) : row.neutral.str();
      if (neutral.empty())
        continue;
      if (isNeutral(value, neutral))
        return "";
      return refuse(key, value, neutral, model.family);
    }
    // What the class does not read changes nothing, whatever others mean by it.
    if (is_contained(model.family.ignored, key))
      break;
  }
  return std::nullopt;
}
