//===- HubConfig.cpp - Writes config.json, and train as JSON ----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What HuggingFace.cpp reads, the other way round: every key of the family, in
// alphabetical order. Rotary positions are spelt as in version 4 of
// transformers, which version 5 accepts; the type of weights has both names.
// Version 5 takes no whole number for one that is not: 1e-06, 10000.0.
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Families.h"
#include "python-free-frontend/Keys.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

#include <cstdlib>
#include <map>

using namespace llvm;
using namespace reprise::frontend;

/// With the fewest digits that read back as `number`, and a point or an
/// exponent.
static std::string formatReal(double number) {
  char text[64];
  int digits = 0;
  do
    snprintf(text, sizeof text, "%.*e", digits, number);
  while (strtod(text, nullptr) != number && ++digits < 17);
  int exponent = atoi(strchr(text, 'e') + 1);
  if (number == 0 || (exponent >= -4 && exponent < 16))
    snprintf(text, sizeof text, "%.*f", std::max(digits - exponent, 1), number);
  return text;
}

static std::string quote(StringRef text) {
  std::string result;
  raw_string_ostream(result) << json::Value(text);
  return result;
}

/// The value of a key as JSON; nothing if the key is a map.
static std::optional<std::string> formatValue(const Field &field) {
  if (auto *whole = std::get_if<int64_t *>(&field))
    return std::to_string(**whole);
  if (auto *whole = std::get_if<std::optional<int64_t> *>(&field))
    return **whole ? std::to_string(***whole) : "null";
  if (auto *real = std::get_if<double *>(&field))
    return formatReal(**real);
  if (auto *real = std::get_if<std::optional<double> *>(&field))
    return **real ? formatReal(***real) : "null";
  if (auto *truth = std::get_if<bool *>(&field))
    return **truth ? "true" : "false";
  if (auto *word = std::get_if<std::string *>(&field))
    return quote(**word);
  if (auto *only = std::get_if<OnlyValue>(&field))
    return only->value ? "true" : "false";
  using Words = std::optional<std::vector<std::string>>;
  if (auto *words = std::get_if<Words *>(&field))
    return **words && !(**words)->empty()
               ? "[" + join(map_range(***words, quote), ", ") + "]"
               : "null";
  // One of several is written as it may be given alone.
  auto joinAll = [](ArrayRef<std::string> items) {
    std::string list = join(items, ", ");
    return items.size() == 1 ? list : "[" + list + "]";
  };
  if (auto *words = std::get_if<std::vector<std::string> *>(&field))
    return joinAll(map_to_vector(**words, quote));
  if (auto *numbers = std::get_if<std::vector<double> *>(&field))
    return joinAll(map_to_vector(**numbers, formatReal));
  if (auto *numbers = std::get_if<std::vector<int64_t> *>(&field))
    return "[" +
           join(
               map_range(**numbers,
                         [](int64_t number) { return std::to_string(number); }),
               ", ") +
           "]";
  return std::nullopt;
}

/// The keys of a section that `family` has; those that are null if `all`.
static std::map<std::string, std::string>
collect(StringRef section, Description &description, bool all) {
  std::map<std::string, std::string> members;
  for (const Key &key : allKeys()) {
    if (key.section != section || !key.isOf(description.family) ||
        isShorthand(key))
      continue;
    std::optional<std::string> value = formatValue(key.field(description));
    if (value && (all || value != "null"))
      members[key.name.str()] = *value;
  }
  return members;
}

/// The lines of an object with these members.
static void write(json::OStream &json,
                  const std::map<std::string, std::string> &members) {
  for (const auto &[name, value] : members) {
    json.attributeBegin(name);
    json.rawValue(value);
    json.attributeEnd();
  }
}

std::string reprise::frontend::writeTrainJson(const Description &given) {
  Description description = given;
  std::string text;
  raw_string_ostream os(text);
  json::OStream json(os, /*IndentSize=*/2);
  json.object(
      [&] { write(json, collect("train", description, /*all=*/false)); });
  return text;
}

/// Those of the file that describes the model; for keys that it has not, the
/// class has defaults. A model that is of no file has no such tokens.
static void addTokenIds(const Description &given,
                        std::map<std::string, std::string> &members) {
  if (given.model.hfConfig.empty()) {
    members["bos_token_id"] = members["eos_token_id"] = "null";
    if (given.family->padToken >= 0)
      members["pad_token_id"] = "null";
  }
  for (const auto &[name, json] : given.tokenIds)
    members[name] = json;
}

std::string reprise::frontend::writeHubConfig(const Description &given) {
  Description description = given;
  std::map<std::string, std::string> members =
      collect("model", description, /*all=*/true);
  members.erase("hf_config");
  members["architectures"] = "[" + quote(getClassName(*given.family)) + "]";
  members["dtype"] = members["torch_dtype"] = quote("float32");
  addTokenIds(given, members);
  // What other keys make is written as a number.
  auto resolve = [&](Field (*field)(Description &), int64_t value) {
    if (const Key *key = findKeyOf(given.family, field))
      members[key->name.str()] = std::to_string(value);
  };
  resolve(modelField<&Model::headWidth>, given.model.getHeadWidth());
  resolve(modelField<&Model::numKeyValueHeads>,
          given.model.getNumKeyValueHeads());
  resolve(modelField<&Model::numGroups>, given.model.getNumGroups());
  resolve(modelField<&Model::keptGroups>, given.model.getKeptGroups());
  // A file without the key would be one with a layer, by the class's default.
  if (given.family->blocks.mayPredictFurther)
    members["num_nextn_predict_layers"] =
        std::to_string(given.train.furtherLayers);
  if (findKey(kRopeScaling, "model", given.family))
    members[kRopeScaling.str()] = "null";

  std::string text;
  raw_string_ostream os(text);
  json::OStream json(os, /*IndentSize=*/2);
  json.object([&] {
    auto rope = members.find("rope_scaling");
    bool isStretched = rope != members.end() && given.rotary.type != "default";
    if (!isStretched)
      return write(json, members);
    write(json, {members.begin(), rope});
    json.attributeObject("rope_scaling", [&] {
      std::map<std::string, std::string> rotary =
          collect(kRopeScaling, description, /*all=*/false);
      if (given.rotary.type != "yarn")
        rotary.erase("truncate");
      write(json, rotary);
    });
    write(json, {std::next(rope), members.end()});
  });
  os << "\n";
  return text;
}
