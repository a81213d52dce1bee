//===- Checkpoint.cpp - A run's states in a folder ------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checkpoint.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <dirent.h>

using namespace reprise::runtime;

Path reprise::runtime::checkpointPath(const char *folder, int64_t step) {
  Path place = withoutSlashes(folder);
  return strcmp(place, ".") == 0
             ? Path("step-%08" PRId64, step)
             : Path("%s/step-%08" PRId64, place.chars, step);
}

Path reprise::runtime::unfinishedPath(const char *folder, int64_t step) {
  return Path("%s.tmp", checkpointPath(folder, step).chars);
}

const char *reprise::runtime::parseCheckpointName(const char *name,
                                                  int64_t &step) {
  char exactly[32];
  if (sscanf(name, "step-%12" SCNd64, &step) != 1)
    return nullptr;
  int length = snprintf(exactly, sizeof(exactly), "step-%08" PRId64, step);
  return strncmp(name, exactly, size_t(length)) ? nullptr : name + length;
}

bool reprise::runtime::findCheckpoints(const char *folder, List<int64_t> &steps,
                                       Error &error) {
  DIR *entries = opendir(folder);
  if (!entries && errno != ENOENT)
    return error.set("cannot read the folder '%s': %s", folder,
                     strerror(errno));
  bool good = true;
  while (const dirent *entry = entries ? readdir(entries) : nullptr) {
    int64_t step = 0;
    const char *rest = parseCheckpointName(entry->d_name, step);
    if (rest && !*rest)
      good = good && steps.push(step);
  }
  if (entries)
    closedir(entries);
  std::sort(steps.begin(), steps.end());
  return good || error.set("no memory left for the names in '%s'", folder);
}
