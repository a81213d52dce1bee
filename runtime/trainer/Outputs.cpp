//===- Outputs.cpp - What a run may write ---------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Outputs.h"

#include "runtime/base/Text.h"
#include "runtime/checkpoint/Checkpoint.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <glob.h>
#include <sys/stat.h>

using namespace reprise::runtime;

namespace {
/// A file that is written, compared with those that are read.
struct Output {
  const char *option, *path;
  struct stat info;

  /// Whether it is another file than `input`; an error names both.
  bool differsFrom(const char *inputOption, const char *input,
                   Error &error) const {
    struct stat other;
    if (stat(input, &other) != 0 || other.st_dev != info.st_dev ||
        other.st_ino != info.st_ino)
      return true;
    return error.set("%s '%s' would write over what %s reads, '%s'", option,
                     path, inputOption, input);
  }
};
} // namespace

/// The same with the other file of a Megatron data set.
static bool differsFromData(const Output &output, const char *option,
                            const char *path, Error &error) {
  bool isTokens = endsIn(path, ".bin");
  if (!output.differsFrom(option, path, error))
    return false;
  return (!isTokens && !endsIn(path, ".idx")) ||
         output.differsFrom(option,
                            Path("%.*s%s", int(strlen(path)) - 4, path,
                                 isTokens ? ".idx" : ".bin"),
                            error);
}

/// The same for all files of these options.
static bool differsFromAll(const Output &output, const char *option,
                           const Paths &patterns, Error &error) {
  for (const char *pattern : patterns) {
    if (!differsFromData(output, option, pattern, error))
      return false;
    glob_t found = {};
    bool good = true;
    if (strpbrk(pattern, "*?[") && glob(pattern, 0, nullptr, &found) == 0)
      for (size_t i = 0; good && i < found.gl_pathc; ++i)
        good = differsFromData(output, option, found.gl_pathv[i], error);
    globfree(&found);
    if (!good)
      return false;
  }
  return true;
}

/// The same for a file, or for the weights and descriptions in a folder.
static bool differsFromModel(const Output &output, const char *option,
                             const char *path, Error &error) {
  if (!path)
    return true;
  bool good = output.differsFrom(option, path, error);
  // An index names files beside it.
  const char *slash = strrchr(path, '/');
  Path folder("%s", path);
  if (endsIn(path, ".json"))
    folder = slash ? Path("%.*s/", int(slash - path), path) : Path(".");
  DIR *entries = good ? opendir(folder) : nullptr;
  while (const dirent *entry = entries && good ? readdir(entries) : nullptr)
    if (endsIn(entry->d_name, ".json") ||
        (!strncmp(entry->d_name, "model", 5) &&
         endsIn(entry->d_name, ".safetensors")))
      good = output.differsFrom(
          option, Path("%s/%s", folder.chars, entry->d_name), error);
  if (entries)
    closedir(entries);
  return good;
}

/// Whether `path`, which need not exist, lies in no checkpoint.
static bool liesInNoCheckpoint(const char *option, const char *path,
                               Error &error) {
  Path place("%s", path);
  char *real = nullptr;
  // The part that exists.
  while (!(real = realpath(place, nullptr))) {
    char *slash = strrchr(place.chars, '/');
    if (slash == place.chars || !strcmp(place, "."))
      return true;
    if (slash)
      *slash = '\0';
    else
      place = Path(".");
  }
  place = Path("%s", real);
  free(real);
  struct stat info;
  bool good = true;
  while (good && place.chars[0]) {
    char *slash = strrchr(place.chars, '/');
    if (slash && !strncmp(slash + 1, "step-", 5) &&
        stat(Path("%s/%s", place.chars, kTrainerFile), &info) == 0)
      good = error.set("%s '%s' lies in the checkpoint '%s', which must stay "
                       "as it was written",
                       option, path, place.chars);
    *(slash ? slash : place.chars) = '\0';
  }
  return good;
}

bool reprise::runtime::checkOutputs(const Options &options, Error &error) {
  const Output given[] = {{"--csv", options.csv, {}},
                          {"--dump", options.dump, {}},
                          {"--costs", options.costs, {}},
                          {"--trace", options.trace, {}},
                          {"--tensorboard", options.tensorboard, {}}};
  for (Output output : given) {
    if (!output.path)
      continue;
    if (!liesInNoCheckpoint(output.option, output.path, error))
      return false;
    for (const Output &other : given)
      if (other.path && other.option != output.option &&
          !strcmp(other.path, output.path))
        return error.set("%s and %s would both write '%s'", output.option,
                         other.option, output.path);
    if (stat(output.path, &output.info) != 0 || !S_ISREG(output.info.st_mode))
      continue;
    for (const Output &other : given)
      if (other.path && other.option != output.option) {
        struct stat info;
        if (stat(other.path, &info) == 0 && info.st_dev == output.info.st_dev &&
            info.st_ino == output.info.st_ino)
          return error.set("%s '%s' and %s '%s' are one file", output.option,
                           output.path, other.option, other.path);
      }
    if (!differsFromAll(output, "--data", options.data, error) ||
        !differsFromAll(output, "--val-data", options.valData, error) ||
        !differsFromModel(output, "--init-from", options.initFrom, error) ||
        !differsFromModel(output, "--tokenizer", options.tokenizer, error))
      return false;
  }
  return true;
}
