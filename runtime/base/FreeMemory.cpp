//===- FreeMemory.cpp - What a process may still take ---------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FreeMemory.h"

#include "Files.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

using namespace reprise::runtime;

namespace {
/// A version of control groups, as its files are called.
struct GroupKind {
  const char *controller; ///< In /proc/self/cgroup; "": all of them.
  const char *folder;     ///< Below the mount, if it has one of its own.
  const char *limit, *usage;
  const char *files[2]; ///< Pages of files, in memory.stat.
};
} // namespace

static constexpr GroupKind kKinds[] = {
    {"", "", "memory.max", "memory.current", {"inactive_file", "active_file"}},
    {"memory",
     "/memory",
     "memory.limit_in_bytes",
     "memory.usage_in_bytes",
     {"total_inactive_file", "total_active_file"}}};

/// The number in a file that has nothing else; false without one.
static bool readNumber(const char *path, int64_t &number) {
  FILE *file = fopen(path, "re");
  bool good = file && fscanf(file, "%" SCNd64, &number) == 1;
  if (file)
    fclose(file);
  return good;
}

/// The number behind `key` in a file of such lines; 0 without one.
static int64_t readLine(const char *path, const char *key) {
  FILE *file = fopen(path, "re");
  char line[256];
  int64_t number = 0;
  size_t length = strlen(key);
  while (file && fgets(line, sizeof(line), file))
    if (!strncmp(line, key, length) && strchr(" :", line[length]) &&
        sscanf(line + length + 1, "%" SCNd64, &number) == 1)
      break;
  if (file)
    fclose(file);
  return number;
}

/// What one group leaves.
static int64_t freeInGroup(const GroupKind &kind, const char *folder) {
  int64_t limit = 0, usage = 0;
  if (!readNumber(Path("%s/%s", folder, kind.limit), limit) ||
      !readNumber(Path("%s/%s", folder, kind.usage), usage))
    return kUnlimited;
  for (const char *files : kind.files)
    usage -= readLine(Path("%s/memory.stat", folder), files);
  return std::max<int64_t>(limit - usage, 0);
}

/// Whether `kind` is among the words of a list with commas.
static bool hasController(const char *list, const GroupKind &kind) {
  size_t length = strlen(kind.controller);
  if (length == 0)
    return !*list;
  for (; *list; list += strspn(list, ",")) {
    size_t word = strcspn(list, ",");
    if (word == length && !strncmp(list, kind.controller, length))
      return true;
    list += word;
  }
  return false;
}

int64_t reprise::runtime::freeInGroups(const char *groups, const char *mount) {
  int64_t least = kUnlimited;
  FILE *file = fopen(groups, "re");
  char line[sizeof(Path::chars) + 64];
  // Each line is NUMBER:CONTROLLERS:PATH.
  while (file && fgets(line, sizeof(line), file)) {
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':');
    char *path = controllers ? strchr(controllers + 1, ':') : nullptr;
    if (!path)
      continue;
    ++controllers;
    *path++ = '\0';
    for (const GroupKind &kind : kKinds) {
      if (!hasController(controllers, kind))
        continue;
      Path root("%s%s", mount, kind.folder), folder("%s%s", root.chars, path);
      // Up to the topmost, and where a container's own is that.
      for (size_t end = strlen(root); strlen(folder) >= end;) {
        least = std::min(least, freeInGroup(kind, folder));
        char *slash = strrchr(folder.chars, '/');
        if (!slash)
          break;
        *slash = '\0';
      }
    }
  }
  if (file)
    fclose(file);
  return least;
}

int64_t reprise::runtime::freeMemory() {
  int64_t available = readLine("/proc/meminfo", "MemAvailable") * 1024;
  return std::min(available > 0 ? available : kUnlimited,
                  freeInGroups("/proc/self/cgroup", "/sys/fs/cgroup"));
}
