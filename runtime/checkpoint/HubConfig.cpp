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
// key that is missing has Hugging Face's default, which HubFamilies.cpp has.
//
//===----------------------------------------------------------------------===//

#include "HubConfig.h"

#include "Checkpoint.h"
#include "HubFamilies.h"
#include "HubRefusals.h"
#include "HubValues.h"
#include "runtime/base/MappedFile.h"

#include <algorithm>
#include <cinttypes>
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

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

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
                                               "num_nextn_predict_layers",
                                               "output_router_logits",
                                               "reorder_and_upcast_attn",
                                               "resid_pdrop",
                                               "rope_scaling",
                                               "rope_theta",
                                               "router_aux_loss_coef",
                                               "torch_dtype"};

/// Keys that no program here has: they must say nothing.
static constexpr std::string_view kForeign[] = {"layer_types", "pruned_heads"};
/// A key that says how weights are stored, where they are not numbers alone.
static constexpr std::string_view kStorage = "quantization_config";

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
    if (const HubFamily *family = findHubFamilyOfClass(item.value.text()))
      return family->type;
  return {};
}

/// Whether two types of model have one class.
static bool haveOneClass(std::string_view type, std::string_view other) {
  const HubFamily *family = findHubFamily(type), *second = findHubFamily(other);
  return type == other ||
         (family && second && family->className == second->className);
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
                      const JsonValue &ourConfig, const HubFamily &family,
                      Error &error) {
  Rope theirs(theirConfig, family.ropeTheta), ours(ourConfig, family.ropeTheta);
  if (!(theirs.theta == ours.theta))
    return differs(path, "rope_theta", theirs.theta, ours.theta, error);
  if (theirs.type != ours.type)
    return differs(path, "rope_type", Meaning(theirs.type), Meaning(ours.type),
                   error);
  const RopeKey *key = ours.findDifference(theirs, family.has("kv_lora_rank"));
  return !key ||
         differs(path, key->name, theirs.find(*key), ours.find(*key), error);
}

/// The value of a key; in newer files that of a rotary position is in the map
/// of these, which wins.
static JsonValue findKey(const JsonValue &config, std::string_view name) {
  if (name == "partial_rotary_factor")
    if (JsonValue value = findStretch(config).find(name))
      return value;
  return config.find(name);
}

/// What the absence of a key means, or null in its place.
static Meaning fallbackOf(const HubKey &key, const JsonValue &config) {
  if (key.null && config.find(key.name).is(JsonKind::Null))
    return Meaning(key.null);
  if (key.fallback)
    return Meaning(key.fallback);
  if (!key.derived)
    return {};
  double value = key.derived(config, bool(config.find(key.name)));
  return std::isnan(value) ? Meaning() : Meaning(value);
}

/// Whether two values of a key mean the same to the program.
static bool isSame(const HubKey &key, const Meaning &theirs,
                   const Meaning &mine, const JsonValue &ours) {
  double least = NAN;
  if (!key.enough.empty())
    ours.find(key.enough).asDouble(least);
  auto read = [&](const Meaning &value) {
    return value.isAtLeast(least) ? Meaning("none") : value;
  };
  return read(theirs) == read(mine);
}

/// Whether a key means the same in both, under each name that it has there.
static bool checkKey(const char *path, const HubKey &key,
                     const JsonValue &theirs, const JsonValue &ours,
                     Error &error) {
  Meaning mine = fallbackOf(key, ours);
  bool isThere = false;
  for (std::string_view name : {key.alias, key.name})
    if (JsonValue value = findKey(ours, name); isGiven(value))
      mine = Meaning(value);
  for (std::string_view name : {key.name, key.alias}) {
    JsonValue value = findKey(theirs, name);
    isThere = isThere || isGiven(value);
    if (mine && isGiven(value) && !isSame(key, Meaning(value), mine, ours))
      return differs(path, name, Meaning(value), mine, error);
  }
  Meaning absent = fallbackOf(key, theirs);
  return !mine || isThere || !absent || isSame(key, absent, mine, ours) ||
         differs(path, key.name, absent, mine, error);
}

/// What `quantization_config` says of scales; an error if weights are stored in
/// a way that is not read.
static bool readStorage(const char *path, const JsonValue &config,
                        ScaleBlocks &blocks, Error &error) {
  JsonValue storage = config.find(kStorage);
  if (!storage || saysNothing(storage))
    return true;
  std::string_view method = storage.find("quant_method").text();
  if (method != "fp8")
    return error.set("'%s' has %s with the quant_method '%.*s': weights are "
                     "read as %s (fp8); convert them to one of these, and take "
                     "the key out",
                     path, kStorage.data(),
                     int(std::min<size_t>(method.size(), 40)), method.data(),
                     kWeightTypes);
  JsonValue size = storage.find("weight_block_size");
  blocks.isMatrix = size.is(JsonKind::Null);
  if (!size || blocks.isMatrix)
    return true;
  int64_t values[2] = {}, count = 0;
  bool good = size.is(JsonKind::Array) && size.size() == 2;
  for (JsonItem item : size)
    good = good && item.value.asInteger(values[count++]);
  blocks.rows = values[0];
  blocks.columns = values[1];
  return (good && blocks.rows > 0 && blocks.columns > 0) ||
         error.set("'%s' has %s with a weight_block_size that needs to be two "
                   "whole numbers above 0, or null, but got %s of %" PRId64,
                   path, kStorage.data(), size.kindName(), size.size());
}

/// Whether keys that the family has not say nothing of what is computed. What
/// may be misspelt is passed over, as in a description's file.
static bool checkUnknown(const char *path, const HubModel &model,
                         Error &warning, Error &error) {
  for (JsonItem item : model.theirs) {
    std::string_view name = item.key.text();
    if (model.family.has(name) || isOther(name) || name == kStorage)
      continue;
    Meaning value(item.value);
    int shown = int(std::min<size_t>(name.size(), 80));
    bool isShort = value && item.value.size() == 0;
    if (changesModel(name, item.value, model))
      return error.set("'%s' has %.*s%s%s, which this program's model has "
                       "not: its weights would compute something else",
                       path, shown, name.data(), isShort ? " " : "",
                       isShort ? value.text() : "");
    const HubKey *key = findMeantKey(name, model);
    Meaning ours = key ? Meaning(findKey(model.ours, key->name)) : Meaning();
    if (!key || saysNothing(item.value) || value == ours)
      continue;
    if (!warning.text[0])
      warning.set("'%s' has keys that are passed over", path);
    warning.add(
        "; %.*s%s%s: did you mean %s, of which this program's model has "
        "%s?",
        shown, name.data(), isShort ? " " : "", isShort ? value.text() : "",
        key->name.data(), ours && *ours.text() ? ours.text() : "none");
  }
  return true;
}

static bool checkConfig(const char *path, const JsonValue &theirs,
                        const JsonValue &ours, Error &warning, Error &error) {
  std::string_view type = typeOf(theirs), ourType = typeOf(ours);
  if (!type.empty() && !ourType.empty() && !haveOneClass(type, ourType))
    return differs(path, "model_type", Meaning(type), Meaning(ourType), error);
  const HubFamily *family = findHubFamily(ourType);
  if (family)
    for (const HubKey &key : *family)
      if ((!key.applies || key.applies(ours)) &&
          !checkKey(path, key, theirs, ours, error))
        return false;
  for (JsonItem item : ours) {
    std::string_view name = item.key.text();
    JsonValue other = theirs.find(name);
    bool isKnown = family && family->has(name);
    if (!isKnown && !isOther(name) && isGiven(item.value) && isGiven(other) &&
        !(Meaning(other) == Meaning(item.value)))
      return differs(path, name, Meaning(other), Meaning(item.value), error);
  }
  ScaleBlocks blocks;
  if (!readStorage(path, theirs, blocks, error))
    return false;
  for (std::string_view name : kForeign)
    if (JsonValue value = theirs.find(name); value && !saysNothing(value))
      return error.set("'%s' has %s, which this program's model has not: its "
                       "weights would compute something else",
                       path, name.data());
  if (family && !checkUnknown(path, {*family, ours, theirs}, warning, error))
    return false;
  return !family || !family->ropeTheta ||
         checkRope(path, theirs, ours, *family, error);
}

namespace {
/// The config.json in a folder of weights.
struct HubFile {
  ~HubFile() { file.unmap(); }
  /// Reads it, if there is one.
  bool open(const char *weights, Error &error);

  Path path = Path("%s", "");
  bool isThere = false;
  MappedFile file;
  JsonDocument config;
};
} // namespace

bool HubFile::open(const char *weights, Error &error) {
  path = Path("%s/%s", folderOfWeights(weights).chars, kConfigFile);
  struct stat info;
  isThere = stat(path, &info) == 0;
  if (!isThere)
    return true;
  if (!file.map(path, error))
    return false;
  std::string_view text = {reinterpret_cast<const char *>(file.data),
                           size_t(file.size)};
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.size() >= kByteOrderMark.size() &&
      !memcmp(text.data(), kByteOrderMark.data(), kByteOrderMark.size()))
    text.remove_prefix(kByteOrderMark.size());
  return config.parse(text, path, error);
}

bool reprise::runtime::checkHubConfig(const char *weights,
                                      std::string_view ourText, Error &warning,
                                      Error &error) {
  HubFile theirs;
  JsonDocument ours;
  if (ourText.empty() || !theirs.open(weights, error))
    return ourText.empty();
  return !theirs.isThere ||
         (ours.parse(ourText, "the model's configuration", error) &&
          checkConfig(theirs.path, theirs.config.root(), ours.root(), warning,
                      error));
}

bool reprise::runtime::readScaleBlocks(const char *weights, ScaleBlocks &blocks,
                                       Error &error) {
  HubFile file;
  return file.open(weights, error) &&
         (!file.isThere ||
          readStorage(file.path, file.config.root(), blocks, error));
}
