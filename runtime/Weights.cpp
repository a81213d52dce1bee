//===- Weights.cpp - Parameters from published files ----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Weights.h"

#include "Checkpoint.h"
#include "HubConfig.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <sys/stat.h>

using namespace reprise::runtime;

/// What the models of the hub call the part below their head.
static constexpr std::string_view kBases[] = {"transformer.", "model."};

/// Constants that old versions of models saved with their weights.
static constexpr std::string_view kTables[] = {"attn.bias", "attn.masked_bias",
                                               "rotary_emb.inv_freq"};

static constexpr char kHead[] = "lm_head.weight";
static constexpr std::string_view kEmbeddings[] = {"wte.weight",
                                                   "embed_tokens.weight"};

/// Whether `name` is `suffix` or ends with it, behind a point.
static bool endsWith(std::string_view name, std::string_view suffix) {
  size_t more = name.size() - suffix.size();
  return name.size() >= suffix.size() &&
         !memcmp(name.data() + more, suffix.data(), suffix.size()) &&
         (more == 0 || name[more - 1] == '.');
}

/// The tensor of the file for this one of the model; null if there is none.
static const TensorEntry *findSource(const TensorSet &set,
                                     std::string_view name) {
  if (const TensorEntry *same = set.find(name))
    return same;
  for (std::string_view base : kBases) {
    if (!strncmp(name.data(), base.data(), base.size())) {
      name.remove_prefix(base.size());
      return set.find(name);
    }
  }
  for (std::string_view base : kBases) {
    char longer[512];
    snprintf(longer, sizeof(longer), "%s%.*s", base.data(), int(name.size()),
             name.data());
    if (const TensorEntry *found = set.find(longer))
      return found;
  }
  return nullptr;
}

namespace {
/// A list of names that is cut when it gets long.
class Names {
public:
  void add(const char *name) {
    constexpr int kShown = 4;
    if (count++ < kShown) {
      length += snprintf(chars + length, sizeof(chars) - size_t(length),
                         "%s'%.80s'", count > 1 ? ", " : "", name);
    } else {
      snprintf(chars + length, sizeof(chars) - size_t(length), " and %d more",
               count - kShown);
    }
  }

  int count = 0;
  char chars[512] = "";

private:
  int length = 0;
};
} // namespace

/// Whether a model's only embedding equals the head that a file has besides.
static bool checkTiedHead(const TensorSet &set, const TensorEntry &head,
                          const TensorEntry &embedding, Error &error) {
  if (head.rank != embedding.rank ||
      !std::equal(head.shape, head.shape + head.rank, embedding.shape))
    return error.set("'%s' needs the shape of '%s', %s, since the model has "
                     "them tied, but got %s",
                     head.name, embedding.name,
                     ShapeText(embedding.shape, embedding.rank).chars,
                     ShapeText(head.shape, head.rank).chars);
  if (!isFloat(*head.type))
    return error.set("tensor '%s' of '%s' needs to be F32, BF16 or F16, but "
                     "got %s",
                     head.name, set.pathOf(head), head.type->name);
  int64_t size = head.type->bits / 8, otherSize = embedding.type->bits / 8;
  int64_t count = head.bytes / size;
  constexpr int64_t kBlock = 1024;
  float values[kBlock], others[kBlock];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    int64_t block = std::min(kBlock, count - begin);
    convertToFloat(*head.type, set.bytesOf(head) + begin * size, block, values);
    convertToFloat(*embedding.type, set.bytesOf(embedding) + begin * otherSize,
                   block, others);
    if (!memcmp(values, others, size_t(block) * sizeof(float)))
      continue;
    int64_t i = 0;
    while (!memcmp(values + i, others + i, sizeof(float)))
      ++i;
    return error.set("'%s' of '%s' differs from '%s', first at element %" PRId64
                     ": %.9g and %.9g; but the model has them tied "
                     "(tie_word_embeddings)",
                     head.name, set.pathOf(head), embedding.name, begin + i,
                     double(values[i]), double(others[i]));
  }
  return true;
}

/// Whether `source` can be read as `tensor`.
static bool checkTensor(const TensorSet &set, const TensorEntry &source,
                        const ModelTensor &tensor, Error &error) {
  if (source.rank != tensor.rank ||
      !std::equal(source.shape, source.shape + source.rank, tensor.shape))
    return error.set("tensor '%s' of '%s' needs the shape %s, but got %s",
                     source.name, set.pathOf(source),
                     ShapeText(tensor.shape, tensor.rank).chars,
                     ShapeText(source.shape, source.rank).chars);
  return isFloat(*source.type) ||
         error.set("tensor '%s' of '%s' needs to be F32, BF16 or F16, but got "
                   "%s",
                   source.name, set.pathOf(source), source.type->name);
}

/// Adds to an error about a folder of checkpoints which one could be meant.
static bool offerCheckpoint(const char *path, Error &error) {
  List<int64_t> steps;
  Error ignored;
  if (findCheckpoints(path, steps, ignored) && !steps.empty()) {
    size_t length = strlen(error.text);
    snprintf(error.text + length, sizeof(error.text) - length,
             "; its newest checkpoint is '%s'",
             checkpointPath(path, steps.back()).chars);
  }
  return false;
}

/// Sets an error about tensors that are missing and returns false.
static bool failMissing(const char *path, const TensorSet &set,
                        const Names &missing, bool headAlone, Error &error) {
  if (headAlone)
    return error.set("'%s' has no tensor %s; weights that are tied need a "
                     "model with tie_word_embeddings: true",
                     path, missing.chars);
  // One of several files, perhaps.
  Path index("%s/%s", folderOfWeights(path).chars, kIndexFile);
  struct stat info;
  bool isShard = set.numFiles() == 1 && stat(index, &info) == 0 &&
                 !strcmp(set.file(0).path, path);
  return error.set("'%s' has no tensor %s%s%s%s", path, missing.chars,
                   isShard ? "; all files together are '" : "",
                   isShard ? index.chars : "", isShard ? "'" : "");
}

bool reprise::runtime::loadWeights(const char *path,
                                   const ModelTensors &tensors, Arena &arena,
                                   ThreadPool &pool, WeightsReport &report,
                                   Error &error) {
  TensorSet set;
  if (!set.open(path, error))
    return offerCheckpoint(path, error);
  List<const TensorEntry *> sources;
  Names missing, unknown;
  bool headIsMissing = false;
  const TensorEntry *embedding = nullptr;
  report = {tensors.numParameters(), set.numFiles(), 0};
  for (int i = 0; i < tensors.numParameters(); ++i) {
    const char *name = tensors[i].name;
    const TensorEntry *source = findSource(set, name);
    if (!sources.push(source))
      return error.set("no memory left for %d names", tensors.numParameters());
    if (!source) {
      missing.add(name);
      headIsMissing = headIsMissing || !strcmp(name, kHead);
      continue;
    }
    report.bytes += source->bytes;
    for (std::string_view known : kEmbeddings)
      if (endsWith(name, known))
        embedding = source;
  }
  if (missing.count)
    return failMissing(path, set, missing, headIsMissing && missing.count == 1,
                       error);
  const TensorEntry *head = nullptr;
  for (const TensorEntry &entry : set) {
    if (std::find(sources.begin(), sources.end(), &entry) != sources.end() ||
        std::any_of(std::begin(kTables), std::end(kTables),
                    [&](auto table) { return endsWith(entry.name, table); }))
      continue;
    if (embedding && endsWith(entry.name, kHead))
      head = &entry;
    else
      unknown.add(entry.name);
  }
  if (unknown.count)
    return error.set("'%s' has the tensor%s %s, which the model has not", path,
                     unknown.count > 1 ? "s" : "", unknown.chars);
  for (int i = 0; i < tensors.numParameters(); ++i)
    if (!checkTensor(set, *sources[size_t(i)], tensors[i], error))
      return false;
  if (!tensors.read(set, sources.begin(), 0, tensors.numParameters(),
                    /*onlyFinite=*/true, arena, pool, error))
    return false;
  return !head || checkTiedHead(set, *head, *embedding, error);
}
