//===- Resume.cpp - Going on from a checkpoint ----------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Resume.h"

#include "HubConfig.h"
#include "TensorReader.h"
#include "TrainerFile.h"
#include "runtime/base/Crc32c.h"
#include "runtime/text/Json.h"

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstring>
#include <sys/stat.h>

using namespace reprise::runtime;

namespace {

/// One checkpoint while it is being read.
class Checkpoint {
public:
  Checkpoint(const RepriseModel &model, const CheckpointOptions &options,
             const ModelTensors &tensors, const char *path)
      : model(model), tensors(tensors), path(path),
        trainer(model, options, path) {}

  /// Checks everything. After false, `isDamaged` tells whether the files are
  /// not what was written, or only not what this run needs.
  bool open(ThreadPool &pool, Resumed &resumed, Error &error);

  /// Reads the states of an open checkpoint.
  bool load(Arena &arena, ThreadPool &pool, Error &error) const;

  bool isDamaged() const { return areDamaged || trainer.isDamaged; }

private:
  bool checkFiles(Error &error);
  bool checkFile(const JsonItem &item, Error &error);
  bool checkConfig(Error &error) const;
  bool findTensors(Error &error);
  bool checkSums(ThreadPool &pool, Error &error);
  const JsonDocument &document() const { return trainer.document(); }
  const TensorSet &setOf(int tensor) const {
    return tensor < tensors.numParameters() ? parameters : moments;
  }

  const RepriseModel &model;
  const ModelTensors &tensors;
  const char *path;
  TrainerFile trainer;
  bool areDamaged = false; ///< The other files.
  TensorSet parameters, moments;
  List<const TensorEntry *> sources; ///< Of each tensor.
};

} // namespace

//===----------------------------------------------------------------------===//
// The other files
//===----------------------------------------------------------------------===//

bool Checkpoint::checkFile(const JsonItem &item, Error &error) {
  std::string_view name = item.key.text();
  int64_t bytes = 0, summed = 0;
  if (!item.value.find("bytes").asInteger(bytes) ||
      !item.value.find("summed").asInteger(summed) || summed > bytes ||
      summed < 0 || name.find('/') != name.npos)
    return document().fail(item.value, error, "a file needs bytes and summed");
  MappedFile file;
  if (!file.map(Path("%s/%.*s", path, int(name.size()), name.data()), error))
    return false;
  char crc[16] = "";
  bool whole = file.size == bytes;
  if (!whole)
    error.set("'%s' is damaged: it needs %" PRId64 " bytes, but has %" PRId64,
              file.path, bytes, file.size);
  else
    snprintf(crc, sizeof(crc), "%08" PRIx32, crc32c(file.data, size_t(summed)));
  std::string_view wanted = item.value.find("crc32c").text();
  if (whole && wanted != crc)
    whole =
        error.set("'%s' is damaged: the checksum of its first %" PRId64
                  " bytes needs to be %.*s, but is %s",
                  file.path, summed, int(std::min<size_t>(wanted.size(), 40)),
                  wanted.data(), crc);
  file.unmap();
  return whole;
}

bool Checkpoint::checkFiles(Error &error) {
  JsonValue files = document().root().find("files");
  if (!files.find(kOptimizerFile))
    return document().fail(files, error, "\"files\" needs %s", kOptimizerFile);
  for (JsonItem item : files)
    if (!checkFile(item, error))
      return false;
  bool isIndexed = bool(files.find(kIndexFile));
  return parameters.open(
             Path("%s/%s", path, isIndexed ? kIndexFile : kModelFile), error) &&
         moments.open(Path("%s/%s", path, kOptimizerFile), error);
}

/// Takes the first line off a text.
static std::string_view takeLine(std::string_view &text) {
  size_t end = text.find('\n');
  std::string_view line = {text.data(), end == text.npos ? text.size() : end};
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return line;
}

/// Whether the model is the same in all that its name does not tell.
bool Checkpoint::checkConfig(Error &error) const {
  if (!document().root().find("files").find(kConfigFile) || !model.configJson)
    return true;
  MappedFile file;
  if (!file.map(Path("%s/%s", path, kConfigFile), error))
    return false;
  std::string_view theirs = {reinterpret_cast<const char *>(file.data),
                             size_t(file.size)};
  std::string_view ours = model.configJson;
  bool same = true;
  while (same && !(theirs.empty() && ours.empty())) {
    std::string_view line = takeLine(theirs), other = takeLine(ours);
    if (Error ignored; line != other)
      same = checkHubConfig(path, model.configJson, ignored, error) &&
             error.set("'%s' has the line '%.*s', but this program's model "
                       "'%.*s'%s",
                       file.path, int(std::min<size_t>(line.size(), 200)),
                       line.data(), int(std::min<size_t>(other.size(), 200)),
                       other.data(), OtherRun(path, /*fits=*/true).chars);
  }
  file.unmap();
  return same;
}

namespace {
/// What to do if moments are those of other parameters; else nothing.
struct FrozenHint {
  FrozenHint(const char *path, bool isNeeded) {
    if (isNeeded)
      snprintf(chars, sizeof(chars),
               "; are others frozen (train.frozen)? --init-from %s begins a "
               "new run with its parameters",
               path);
  }
  char chars[600] = "";
};
} // namespace

/// Finds a source for each tensor. What does not fit is another model's.
bool Checkpoint::findTensors(Error &error) {
  int numParameters = tensors.numParameters();
  for (int i = 0; i < tensors.size(); ++i) {
    const ModelTensor &tensor = tensors[i];
    char name[512];
    snprintf(name, sizeof(name), "%s%s", tensor.prefix, tensor.name);
    const TensorEntry *source = setOf(i).find(name);
    if (!source)
      return error.set("'%s' has no tensor '%s', which the model has%s", path,
                       name, FrozenHint(path, i >= numParameters).chars);
    if (source->rank != tensor.rank ||
        !std::equal(source->shape, source->shape + source->rank,
                    tensor.shape) ||
        strcmp(source->type->name, "F32") != 0)
      return error.set("tensor '%s' of '%s' needs to be F32 of the shape %s, "
                       "but got %s of %s",
                       name, setOf(i).pathOf(*source),
                       ShapeText(tensor.shape, tensor.rank).chars,
                       source->type->name,
                       ShapeText(source->shape, source->rank).chars);
    if (!sources.push(source))
      return error.set("no memory left for %d names", tensors.size());
  }
  auto count = [](const TensorSet &set) {
    return int(set.end() - set.begin());
  };
  int numMoments = tensors.size() - numParameters;
  if (count(parameters) != numParameters || count(moments) != numMoments)
    return error.set("'%s' has %d parameters and %d moments, but the model has "
                     "%d and %d%s",
                     path, count(parameters), count(moments), numParameters,
                     numMoments,
                     FrozenHint(path, count(moments) != numMoments).chars);
  return true;
}

bool Checkpoint::checkSums(ThreadPool &pool, Error &error) {
  JsonValue sums = document().root().find("tensors");
  List<std::string_view> wanted;
  for (int i = 0; i < tensors.size(); ++i)
    if (!wanted.push(sums.find(sources[size_t(i)]->name).text()))
      return error.set("no memory left for %d checksums", tensors.size());
  std::atomic<int> bad{INT_MAX};
  pool.parallelFor(tensors.size(), 1, [&](int, int64_t begin, int64_t end) {
    for (int i = int(begin); i < int(end); ++i) {
      const TensorEntry &source = *sources[size_t(i)];
      char crc[16];
      snprintf(crc, sizeof(crc), "%08" PRIx32,
               crc32c(setOf(i).bytesOf(source), size_t(source.bytes)));
      int known = bad;
      while (wanted[size_t(i)] != crc && i < known &&
             !bad.compare_exchange_weak(known, i))
        ;
    }
  });
  if (bad == INT_MAX)
    return true;
  const TensorEntry &source = *sources[size_t(bad.load())];
  std::string_view sum = wanted[size_t(bad.load())];
  return error.set("'%s' is damaged: the checksum of tensor '%s' needs to be "
                   "%.*s, but is %08" PRIx32,
                   setOf(bad).pathOf(source), source.name,
                   int(std::min<size_t>(sum.size(), 40)), sum.data(),
                   crc32c(setOf(bad).bytesOf(source), size_t(source.bytes)));
}

bool Checkpoint::open(ThreadPool &pool, Resumed &resumed, Error &error) {
  if (!trainer.open(resumed, error))
    return false;
  areDamaged = !checkFiles(error);
  if (areDamaged || !checkConfig(error) || !findTensors(error))
    return false;
  areDamaged = !checkSums(pool, error);
  return !areDamaged;
}

bool Checkpoint::load(Arena &arena, ThreadPool &pool, Error &error) const {
  int count = tensors.numParameters();
  // Moments may be infinite and training still go on; the sums are right.
  return TensorReader(tensors, parameters, arena, pool)
             .read(sources.begin(), 0, count, /*onlyFinite=*/false, error) &&
         TensorReader(tensors, moments, arena, pool)
             .read(sources.begin() + count, count, tensors.size() - count,
                   /*onlyFinite=*/false, error);
}

//===----------------------------------------------------------------------===//
// Which one
//===----------------------------------------------------------------------===//

static bool exists(const char *path) {
  struct stat info;
  return stat(path, &info) == 0;
}

/// Adds to an error about a damaged checkpoint which one before it is good.
static void offerEarlier(const RepriseModel &model,
                         const CheckpointOptions &options,
                         const ModelTensors &tensors, const char *damaged,
                         ThreadPool &pool, Error &error) {
  Path folder = withoutSlashes(damaged);
  const char *name = folder;
  if (char *slash = strrchr(folder.chars, '/')) {
    *slash = '\0';
    name = slash + 1;
  } else {
    name = damaged;
    folder = Path(".");
  }
  int64_t damagedStep = 0;
  if (!parseCheckpointName(name, damagedStep))
    damagedStep = INT64_MAX;
  List<int64_t> steps;
  Error ignored;
  if (!findCheckpoints(folder, steps, ignored))
    return;
  for (size_t i = steps.size(); i-- > 0;) {
    Path earlier = checkpointPath(folder, steps[i]);
    Checkpoint checkpoint(model, options, tensors, earlier);
    Resumed unused;
    if (steps[i] >= damagedStep || !checkpoint.open(pool, unused, ignored))
      continue;
    error.add("; the checkpoint of step %" PRId64 " is good: --resume %s",
              steps[i], earlier.chars);
    return;
  }
  error.add("; no earlier one is good");
}

/// Whether a folder has a checkpoint's name, whatever is in it.
static bool isCheckpoint(const char *folder) {
  const char *slash = strrchr(folder, '/');
  int64_t step;
  const char *rest = parseCheckpointName(slash ? slash + 1 : folder, step);
  return rest && !*rest && exists(folder);
}

/// Where the checkpoint is; empty if a fresh run is as welcome.
static bool findFolder(const CheckpointOptions &options, Path &folder,
                       Error &error) {
  bool isAuto = !strcmp(options.resume, "auto");
  folder = withoutSlashes(isAuto ? options.autoFolder : options.resume);
  if (!isAuto && (exists(Path("%s/%s", folder.chars, kTrainerFile)) ||
                  isCheckpoint(folder)))
    return true;
  List<int64_t> steps;
  if (!findCheckpoints(folder, steps, error))
    return false;
  if (!steps.empty()) {
    folder = checkpointPath(Path(folder), steps.back());
    return true;
  }
  if (!isAuto)
    return error.set("'%s' is no checkpoint, with a file %s, nor a folder of "
                     "checkpoints, step-00000001 or the like",
                     folder.chars, kTrainerFile);
  folder = Path("%s", "");
  return true;
}

bool reprise::runtime::isOfRun(const RepriseModel &model,
                               const CheckpointOptions &options,
                               const DataMark &data, const char *path) {
  TrainerFile trainer(model, options, path);
  Resumed then;
  Error ignored;
  return trainer.open(then, ignored) && !then.changes.text[0] &&
         then.data.tokens == data.tokens && then.data.crc == data.crc &&
         then.data.tokenizer == data.tokenizer;
}

bool reprise::runtime::wasTrainedOnBytes(const CheckpointOptions &options) {
  Path folder("%s", "");
  Error ignored;
  if (options.initFrom)
    folder = folderOfWeights(options.initFrom);
  else if (!options.resume || !findFolder(options, folder, ignored))
    return false;
  MappedFile file;
  JsonDocument trainer;
  bool good = file.map(Path("%s/%s", folder.chars, kTrainerFile), ignored) &&
              trainer.parse({reinterpret_cast<const char *>(file.data),
                             size_t(file.size)},
                            file.path, ignored);
  bool isBytes = good &&
                 trainer.root().find("data_is_text").is(JsonKind::True) &&
                 trainer.root().find("tokenizer_crc32c").is(JsonKind::Null);
  file.unmap();
  return isBytes;
}

bool reprise::runtime::resumeTraining(const RepriseModel &model,
                                      const CheckpointOptions &options,
                                      const ModelTensors &tensors, Arena &arena,
                                      ThreadPool &pool, Resumed &resumed,
                                      Error &error) {
  if (!findFolder(options, resumed.folder, error))
    return false;
  if (!resumed.folder.chars[0])
    return true;
  Checkpoint checkpoint(model, options, tensors, resumed.folder);
  if (checkpoint.open(pool, resumed, error))
    return checkpoint.load(arena, pool, error);
  if (checkpoint.isDamaged())
    offerEarlier(model, options, tensors, resumed.folder, pool, error);
  return false;
}
