//===- Weights.cpp - Parameters from published files ----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Weights.h"

#include "Checkpoint.h"
#include "ExpertTensors.h"
#include "HubConfig.h"
#include "ScaledTensors.h"
#include "TensorReader.h"

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

/// Whether `name` is of a layer that predicts a further token: of one in which
/// `set` has the projection that only these have.
static bool isOfFurther(const TensorSet &set, std::string_view name) {
  constexpr std::string_view kLayers = "layers.";
  size_t number = name.find(kLayers);
  if (number == name.npos)
    return false;
  size_t end = name.find('.', number + kLayers.size());
  if (end == name.npos)
    return false;
  char full[512];
  int length = snprintf(full, sizeof(full), "%.*s%s", int(end + 1), name.data(),
                        kOfFurtherLayer.data());
  return length < int(sizeof(full)) && findTensor(set, {full, size_t(length)});
}

/// The name in the base model.
static std::string_view withoutBase(std::string_view name) {
  for (std::string_view base : kBases)
    if (name.size() > base.size() &&
        !memcmp(name.data(), base.data(), base.size()))
      return {name.data() + base.size(), name.size() - base.size()};
  return name;
}

/// What the file has for this tensor of the model, whose name stands behind
/// `prefix`.
static FoundTensor findSource(const TensorSet &set, const char *prefix,
                              std::string_view name) {
  auto find = [&](std::string_view base, std::string_view rest) {
    char full[512];
    int length =
        snprintf(full, sizeof(full), "%s%.*s%.*s", prefix, int(base.size()),
                 base.data(), int(rest.size()), rest.data());
    bool fits = length < int(sizeof(full));
    return fits ? findTensor(set, {full, size_t(length)}) : FoundTensor();
  };
  if (FoundTensor same = find("", name))
    return same;
  if (std::string_view rest = withoutBase(name); rest.size() < name.size())
    return find("", rest);
  for (std::string_view base : kBases)
    if (FoundTensor found = find(base, name))
      return found;
  return {};
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

namespace {
/// Where each parameter of a model stands in a set of files.
class Match {
public:
  Match(const TensorSet &set, const ModelTensors &tensors);

  FoundTensor find(int parameter) const { return find(prefix, parameter); }
  /// Parameters that it has, copies apart.
  int count() const { return found; }
  bool isWhole() const { return found == countWanted(); }
  /// The embedding that is the head, too; -1 if the model has no such.
  int tied() const { return embedding; }

  /// What all names of the files begin with that the model has not, such as
  /// `_orig_mod.` or `module.` of those who wrap a model.
  char prefix[WeightsReport::kLongestPrefix] = "";

private:
  FoundTensor find(const char *prefix, int parameter) const;
  int countWanted() const;
  int countFound(const char *prefix) const;
  bool tryPrefixes(std::string_view name);

  const TensorSet &set;
  const ModelTensors &tensors;
  int embedding = -1;
  int found;
};
} // namespace

Match::Match(const TensorSet &set, const ModelTensors &tensors)
    : set(set), tensors(tensors) {
  bool hasHead = false;
  for (int i = 0; i < tensors.numParameters(); ++i) {
    hasHead = hasHead || endsWithName(tensors[i].name, kHead);
    for (std::string_view known : kEmbeddings)
      if (!tensors[i].isCopy && endsWithName(tensors[i].name, known))
        embedding = i;
  }
  if (hasHead)
    embedding = -1;
  found = countFound("");
  for (int i = 0; i < tensors.numParameters(); ++i)
    if (isWhole() || tryPrefixes(tensors[i].name))
      break;
}

/// A tied pair is stored once, under either name.
FoundTensor Match::find(const char *prefix, int parameter) const {
  FoundTensor source = findSource(set, prefix, tensors[parameter].name);
  return source || parameter != embedding ? source
                                          : findSource(set, prefix, kHead);
}

/// Files may lack copies.
int Match::countWanted() const {
  int count = 0;
  for (int i = 0; i < tensors.numParameters(); ++i)
    count += !tensors[i].isCopy;
  return count;
}

int Match::countFound(const char *prefix) const {
  int count = 0;
  for (int i = 0; i < tensors.numParameters(); ++i)
    count += !tensors[i].isCopy && find(prefix, i);
  return count;
}

/// Takes the prefix behind which most parameters are, of those that stand
/// before this name. False if there is none.
bool Match::tryPrefixes(std::string_view name) {
  bool any = false;
  for (const TensorEntry &entry : set)
    for (std::string_view known : {name, withoutBase(name)}) {
      size_t length = strlen(entry.name) - known.size();
      if (!endsWithName(entry.name, known) || length == 0 ||
          length >= sizeof(prefix))
        continue;
      any = true;
      char candidate[sizeof(prefix)] = "";
      memcpy(candidate, entry.name, length);
      int count = countFound(candidate);
      if (count > found) {
        found = count;
        memcpy(prefix, candidate, sizeof(prefix));
      }
    }
  return any;
}

/// Whether two tensors of a file, of which the model has one, are equal; `why`
/// it has one.
static bool checkEqual(const TensorSet &set, const TensorEntry &head,
                       const TensorEntry &embedding, const char *why,
                       Error &error) {
  if (head.rank != embedding.rank ||
      !std::equal(head.shape, head.shape + head.rank, embedding.shape))
    return error.set("'%s' needs the shape of '%s', %s, since %s, but got %s",
                     head.name, embedding.name,
                     ShapeText(embedding.shape, embedding.rank).chars, why,
                     ShapeText(head.shape, head.rank).chars);
  if (!head.type->isWeight())
    return error.set("tensor '%s' of '%s' needs to be %s, but got %s",
                     head.name, set.pathOf(head), kWeightTypes,
                     head.type->name);
  int64_t count = head.bytes / (head.type->bits / 8);
  constexpr int64_t kBlock = 1024;
  float values[kBlock], others[kBlock];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    int64_t block = std::min(kBlock, count - begin);
    readElements(set, head, begin, block, values);
    readElements(set, embedding, begin, block, others);
    if (!memcmp(values, others, size_t(block) * sizeof(float)))
      continue;
    int64_t i = 0;
    while (!memcmp(values + i, others + i, sizeof(float)))
      ++i;
    return error.set("'%s' of '%s' differs from '%s', first at element %" PRId64
                     ": %.9g and %.9g; but %s",
                     head.name, set.pathOf(head), embedding.name, begin + i,
                     double(values[i]), double(others[i]), why);
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
  return source.type->isWeight() ||
         error.set("tensor '%s' of '%s' needs to be %s, but got %s",
                   source.name, set.pathOf(source), kWeightTypes,
                   source.type->name);
}

/// Adds to an error about a folder of checkpoints which one could be meant.
static bool offerCheckpoint(const char *path, Error &error) {
  List<int64_t> steps;
  Error ignored;
  return findCheckpoints(path, steps, ignored) && !steps.empty()
             ? error.add("; its newest checkpoint is '%s'",
                         checkpointPath(path, steps.back()).chars)
             : false;
}

namespace {
/// What of the model and of the files has no counterpart.
struct Leftovers {
  Names missing, unknown;
  bool headIsMissing = false, furtherIsMissing = false;
};
} // namespace

/// Sets an error about tensors that are missing and returns false.
static bool failMissing(const char *path, const TensorSet &set,
                        const Match &match, const Leftovers &left,
                        Error &error) {
  if (left.headIsMissing && left.missing.count == 1)
    return error.set("'%s' has no tensor %s; weights that are tied need a "
                     "model with tie_word_embeddings: true",
                     path, left.missing.chars);
  // One of several files, perhaps.
  Path index("%s/%s", folderOfWeights(path).chars, kIndexFile);
  struct stat info;
  bool isShard = set.numFiles() == 1 && stat(index, &info) == 0 &&
                 !strcmp(set.file(0).path, path);
  bool isBehind = match.prefix[0], hasOthers = left.unknown.count;
  return error.set(
      "'%s' has no tensor %s%s%s%s%s%s%s%s%s%s%s", path, left.missing.chars,
      isBehind ? " behind the prefix '" : "", match.prefix, isBehind ? "'" : "",
      isShard ? "; all files together are '" : "", isShard ? index.chars : "",
      isShard ? "'" : "", hasOthers ? "; it has " : "",
      hasOthers ? left.unknown.chars : "",
      hasOthers ? ", which the model has not" : "",
      left.furtherIsMissing
          ? "; with mtp_num_layers, weights need the layers that predict "
            "further tokens"
          : "");
}

namespace {
/// The source of each parameter.
struct Sources {
  List<const TensorEntry *> entries; ///< Of `views`, or null.
  List<const TensorEntry *> wholes;  ///< What the files have of it, or null.
  List<TensorEntry> views;           ///< Tensors, slices, and their scales.
  List<char> isUsed;                 ///< Of each tensor of the files.
  const TensorEntry *head = nullptr; ///< Beside a tied embedding.
  TensorEntry headView = {};
  int leftOut = 0;

  /// Notes that a tensor is read, and its scales are.
  void use(const TensorSet &set, const TensorEntry &entry) {
    isUsed[size_t(&entry - set.begin())] = true;
    if (const TensorEntry *scales = findScales(set, entry))
      isUsed[size_t(scales - set.begin())] = true;
  }
  bool push(const TensorSet &set, const FoundTensor &found);
};
} // namespace

bool Sources::push(const TensorSet &set, const FoundTensor &found) {
  if (!found)
    return entries.push(nullptr) && wholes.push(nullptr);
  const TensorEntry *whole = found.stack ? found.stack : found.entry;
  use(set, *whole);
  return views.push(found.stack ? found.slice : *found.entry) &&
         entries.push(&views.back()) && wholes.push(whole);
}

/// What of the files is neither read nor known to be left out.
static void findUnknown(const TensorSet &set, const Match &match,
                        Sources &sources, Leftovers &left) {
  for (const TensorEntry &entry : set)
    if (match.tied() >= 0 && !sources.isUsed[size_t(&entry - set.begin())] &&
        endsWithName(entry.name, kHead)) {
      sources.head = &entry;
      sources.use(set, entry);
    }
  for (const TensorEntry &entry : set) {
    if (sources.isUsed[size_t(&entry - set.begin())] ||
        std::any_of(std::begin(kTables), std::end(kTables), [&](auto table) {
          return endsWithName(entry.name, table);
        }))
      continue;
    if (isOfFurther(set, entry.name))
      ++sources.leftOut;
    else
      left.unknown.add(entry.name);
  }
}

/// Finds a source for each parameter, and if there is a head besides a tied
/// embedding, that. False if anything is left.
static bool findSources(const char *path, const TensorSet &set,
                        const ModelTensors &tensors, const Match &match,
                        Sources &sources, Error &error) {
  Leftovers left;
  const size_t numEntries = size_t(set.end() - set.begin());
  // Views stay where they are.
  bool good = sources.views.reserve(size_t(tensors.numParameters())) &&
              sources.isUsed.resize(numEntries);
  if (good)
    std::fill(sources.isUsed.begin(), sources.isUsed.end(), false);
  for (int i = 0; i < tensors.numParameters(); ++i) {
    FoundTensor source = match.find(i);
    good = good && sources.push(set, source);
    if (!good)
      return error.set("no memory left for %d names", tensors.numParameters());
    if (source || tensors[i].isCopy)
      continue;
    left.missing.add(tensors[i].name);
    left.furtherIsMissing =
        left.furtherIsMissing || endsWithName(tensors[i].name, kOfFurtherLayer);
    left.headIsMissing = left.headIsMissing || !strcmp(tensors[i].name, kHead);
  }
  findUnknown(set, match, sources, left);
  if (left.missing.count)
    return failMissing(path, set, match, left, error);
  return !left.unknown.count ||
         error.set("'%s' has the tensor%s %s, which the model has not", path,
                   left.unknown.count > 1 ? "s" : "", left.unknown.chars);
}

/// Checks shapes and types, and finds scales.
static bool checkSources(const char *path, const TensorSet &set,
                         const ModelTensors &tensors, Sources &sources,
                         WeightsReport &report, Error &error) {
  ScaleBlocks blocks;
  const bool anyScaled = std::any_of(
      sources.views.begin(), sources.views.end(), [](const TensorEntry &view) {
        return view.type->use == ElementUse::Scaled;
      });
  if (anyScaled && !readScaleBlocks(path, blocks, error))
    return false;
  for (int i = 0; i < tensors.numParameters(); ++i) {
    TensorEntry *source =
        const_cast<TensorEntry *>(sources.entries[size_t(i)]); // A view.
    report.tensors -= !source;
    if (!source)
      continue;
    if (!checkTensor(set, *source, tensors[i], error) ||
        !addScales(set, *sources.wholes[size_t(i)], blocks, *source, error))
      return false;
    report.bytes += source->bytes;
    report.scaled += source->scales.entry != nullptr;
  }
  if (!sources.head)
    return true;
  sources.headView = *sources.head;
  return addScales(set, *sources.head, blocks, sources.headView, error);
}

/// Opens the files once more, with names that have no wrappers in them.
static bool openUnwrapped(const char *path, TensorSet &set, int &wrapped,
                          Error &error) {
  if (!set.open(path, error))
    return false;
  wrapped = set.unwrap(error);
  return wrapped >= 0;
}

bool reprise::runtime::loadWeights(const char *path,
                                   const ModelTensors &tensors, Arena &arena,
                                   ThreadPool &pool, WeightsReport &report,
                                   Error &error) {
  TensorSet plain, unwrapped;
  if (!plain.open(path, error))
    return offerCheckpoint(path, error);
  Match outside(plain, tensors);
  int wrapped = 0;
  if (!outside.isWhole() && !openUnwrapped(path, unwrapped, wrapped, error))
    return false;
  Match inside(unwrapped, tensors);
  // Without wrappers only if that finds more.
  bool isInside = inside.count() > outside.count();
  const TensorSet &set = isInside ? unwrapped : plain;
  const Match &match = isInside ? inside : outside;
  Sources sources;
  if (!findSources(path, set, tensors, match, sources, error))
    return false;
  report = {tensors.numParameters(),
            set.numFiles(),
            0,
            sources.leftOut,
            "",
            isInside ? wrapped : 0,
            0};
  memcpy(report.prefix, match.prefix, sizeof(report.prefix));
  if (!checkSources(path, set, tensors, sources, report, error))
    return false;
  if (!TensorReader(tensors, set, arena, pool)
           .read(sources.entries.begin(), 0, tensors.numParameters(),
                 /*onlyFinite=*/true, error))
    return false;
  for (int i = 0; i < tensors.numParameters(); ++i)
    if (const TensorEntry *copy = sources.entries[size_t(i)];
        copy && tensors[i].isCopy &&
        !checkEqual(set, *copy, *sources.entries[size_t(tensors.originalOf(i))],
                    "layers that predict further tokens share it", error))
      return false;
  return !sources.head ||
         checkEqual(set, sources.headView,
                    *sources.entries[size_t(match.tied())],
                    "the model has them tied (tie_word_embeddings)", error);
}
