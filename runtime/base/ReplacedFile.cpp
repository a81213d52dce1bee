//===- ReplacedFile.cpp - A file that is written whole --------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReplacedFile.h"

#include "Files.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

using namespace reprise::runtime;

static const char *kindOf(mode_t mode) {
  return S_ISDIR(mode)    ? "a folder"
         : S_ISCHR(mode)  ? "a character device"
         : S_ISBLK(mode)  ? "a block device"
         : S_ISFIFO(mode) ? "a pipe"
         : S_ISSOCK(mode) ? "a socket"
                          : "something else";
}

/// The file that `path` leads to, over all symbolic links, for `free`; `path`
/// itself if nothing is there yet. Null if it is no plain file: what replaces
/// it would not be what was there.
static char *findTarget(const char *path, Error &error) {
  struct stat info;
  if (char *target = realpath(path, nullptr)) {
    if (stat(target, &info) != 0 || S_ISREG(info.st_mode))
      return target;
    free(target);
    error.set("cannot write '%s': it is %s, not a plain file", path,
              kindOf(info.st_mode));
  } else if (errno != ENOENT) {
    error.set("cannot write '%s': %s", path, strerror(errno));
  } else if (lstat(path, &info) == 0) {
    error.set("cannot write '%s': it is a symbolic link that leads nowhere",
              path);
  } else if (char *copy = strdup(path)) {
    return copy;
  } else {
    error.set("no memory left for the name '%s'", path);
  }
  return nullptr;
}

/// Whether files can be made beside `path`; false with `errno`.
static bool canWriteBeside(const char *path) {
  const char *slash = strrchr(path, '/');
  Path folder = slash ? Path("%.*s/", int(slash - path), path) : Path(".");
  return access(folder, W_OK | X_OK) == 0;
}

ReplacedFile::~ReplacedFile() {
  free(target);
  free(partial);
}

bool ReplacedFile::start(const char *path, Error &error) {
  target = findTarget(path, error);
  if (!target)
    return false;
  if (!canWriteBeside(target))
    return error.set("cannot write '%s': %s", path, strerror(errno));
  size_t bytes = strlen(target) + sizeof(".partial");
  partial = static_cast<char *>(malloc(bytes));
  if (!partial)
    return error.set("no memory left for the name '%s.partial'", path);
  snprintf(partial, bytes, "%s.partial", target);
  return true;
}

FILE *ReplacedFile::open(Error &error) {
  // What a killed run left; nothing that others have there is written through.
  unlink(partial);
  file = fopen(partial, "wbxe");
  if (!file)
    error.set("cannot write '%s': %s", target, strerror(errno));
  return file;
}

bool ReplacedFile::finish(bool isWhole, Error &error) {
  isWhole = isWhole && !ferror(file);
  bool isClosed = fclose(file) == 0;
  file = nullptr;
  if (isWhole && isClosed && rename(partial, target) == 0)
    return true;
  error.set("cannot write '%s': %s", target, strerror(errno));
  unlink(partial);
  return false;
}
