//===- HubConfig.cpp - The config.json beside weights ---------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HubConfig.h"

#include "Checkpoint.h"
#include "Json.h"
#include "MappedFile.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <sys/stat.h>

using namespace reprise::runtime;

/// Keys that do not change what a model computes from its weights, or whose
/// difference shows in the tensors.
static constexpr std::string_view kOthers[] = {"architectures",
                                               "attention_dropout",
                                               "attn_pdrop",
                                               "dtype",
                                               "embd_pdrop",
                                               "initializer_range",
                                               "max_position_embeddings",
                                               "reorder_and_upcast_attn",
                                               "resid_pdrop",
                                               "rope_scaling",
                                               "rope_theta",
                                               "tie_word_embeddings",
                                               "torch_dtype"};

/// What the hub's Llama and Qwen take for rope_theta if nothing names it.
static constexpr double kDefaultTheta = 10000;

Path reprise::runtime::folderOfWeights(const char *path) {
  struct stat info;
  if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
    return Path("%s", path);
  const char *slash = strrchr(path, '/');
  return slash ? Path("%.*s", int(std::max<long>(slash - path, 1)), path)
               : Path(".");
}

static bool isOther(std::string_view key) {
  constexpr std::string_view kTokenId = "_token_id";
  bool isToken = key.size() > kTokenId.size() &&
                 !memcmp(key.data() + key.size() - kTokenId.size(),
                         kTokenId.data(), kTokenId.size());
  return isToken || std::find(std::begin(kOthers), std::end(kOthers), key) !=
                        std::end(kOthers);
}

/// Other names of the same activation.
static std::string_view canonical(std::string_view word) {
  return word == "gelu_pytorch_tanh" ? "gelu_new"
         : word == "swish"           ? "silu"
                                     : word;
}

/// Whether there is a number, a word, true or false.
static bool isPlain(const JsonValue &value) {
  return value && !value.is(JsonKind::Null) && !value.is(JsonKind::Array) &&
         !value.is(JsonKind::Object);
}

static bool isEqual(const JsonValue &a, const JsonValue &b) {
  double first, second;
  if (a.asDouble(first) && b.asDouble(second))
    return first == second;
  return a.kind() == b.kind() && canonical(a.text()) == canonical(b.text());
}

static std::string_view shown(const JsonValue &value) {
  std::string_view text = value.is(JsonKind::True)    ? "true"
                          : value.is(JsonKind::False) ? "false"
                                                      : value.text();
  return text.substr(0, 80);
}

static bool differs(const char *path, std::string_view key,
                    std::string_view theirs, std::string_view ours,
                    Error &error) {
  return error.set("'%s' has %.*s %.*s, but this program's model has %.*s: its "
                   "weights would compute something else",
                   path, int(std::min<size_t>(key.size(), 80)), key.data(),
                   int(theirs.size()), theirs.data(), int(ours.size()),
                   ours.data());
}

namespace {
/// Rotary positions in one of two spellings.
struct Rope {
  explicit Rope(const JsonValue &config) {
    bool isNew = config.find("rope_parameters").is(JsonKind::Object);
    stretch = config.find(isNew ? "rope_parameters" : "rope_scaling");
    theta = stretch.find("rope_theta");
    if (!isPlain(theta))
      theta = config.find("rope_theta");
    JsonValue named = stretch.find("rope_type");
    if (!named)
      named = stretch.find("type");
    if (named.is(JsonKind::String))
      type = named.text();
  }

  JsonValue stretch, theta;
  std::string_view type = "default";
};
} // namespace

/// Whether the rotary positions of both are the same.
static bool checkRope(const char *path, const JsonValue &theirConfig,
                      const JsonValue &ourConfig, Error &error) {
  Rope theirs(theirConfig), ours(ourConfig);
  double theirTheta = kDefaultTheta, ourTheta = kDefaultTheta;
  if (!ours.theta.asDouble(ourTheta))
    return true; // A model without rotary positions.
  theirs.theta.asDouble(theirTheta);
  if (theirTheta != ourTheta)
    return differs(path, "rope_theta",
                   isPlain(theirs.theta) ? shown(theirs.theta)
                                         : "10000 (by default)",
                   shown(ours.theta), error);
  if (theirs.type != ours.type)
    return differs(path, "rope_type", theirs.type.substr(0, 80), ours.type,
                   error);
  for (JsonItem item : ours.stretch) {
    std::string_view key = item.key.text();
    JsonValue other = theirs.stretch.find(key);
    if (key != "rope_type" && key != "type" && isPlain(item.value) &&
        isPlain(other) && !isEqual(item.value, other))
      return differs(path, key, shown(other), shown(item.value), error);
  }
  return true;
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
  bool good = theirs.parse(text, path, error) &&
              ours.parse(ourText, "the model's configuration", error);
  if (good) {
    for (JsonItem item : ours.root()) {
      JsonValue other = theirs.root().find(item.key.text());
      if (good && !isOther(item.key.text()) && isPlain(item.value) &&
          isPlain(other) && !isEqual(item.value, other))
        good = differs(path, item.key.text(), shown(other), shown(item.value),
                       error);
    }
    good = good && checkRope(path, theirs.root(), ours.root(), error);
  }
  file.unmap();
  return good;
}
