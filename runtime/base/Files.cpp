//===- Files.cpp - Files and folders that are written ---------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Files.h"

#include "Crc32c.h"

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

using namespace reprise::runtime;

/// Bytes that are summed up and written while they are in a cache.
static constexpr size_t kBlock = 1 << 20;

Path::Path(const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(chars, sizeof(chars), format, args);
  va_end(args);
}

Path reprise::runtime::withoutSlashes(const char *path) {
  Path result("%s", path);
  size_t length = strlen(result);
  while (length > 1 && result.chars[length - 1] == '/')
    result.chars[--length] = '\0';
  return result;
}

OutputFile::~OutputFile() {
  int code = errno; // Of what went wrong, if something did.
  if (file >= 0)
    close(file);
  errno = code;
}

bool OutputFile::create(const char *path) {
  file = ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  return file >= 0;
}

bool OutputFile::open(const char *path, int64_t offset) {
  file = ::open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  return file >= 0 && lseek(file, offset, SEEK_SET) == offset;
}

bool OutputFile::write(const void *bytes, size_t count, uint32_t *crc) {
  auto *next = static_cast<const char *>(bytes);
  while (count > 0) {
    ssize_t done = ::write(file, next, std::min(count, kBlock));
    if (done < 0 && errno == EINTR)
      continue;
    if (done <= 0)
      return false;
    if (crc)
      *crc = crc32c(next, size_t(done), *crc);
    next += done;
    count -= size_t(done);
  }
  return true;
}

bool OutputFile::finish() {
  if (fsync(file) != 0)
    return false;
  int closed = close(file);
  file = -1;
  return closed == 0;
}

bool reprise::runtime::makeFolders(Path &path) {
  auto make = [&] { return mkdir(path, 0777) == 0 || errno == EEXIST; };
  for (char *c = path.chars + 1; *c; ++c)
    if (*c == '/') {
      *c = '\0';
      if (!make())
        return false;
      *c = '/';
    }
  return make();
}

int64_t reprise::runtime::freeSpace(const char *folder) {
  struct statvfs info;
  // Some of those that are elsewhere have no numbers.
  if (statvfs(folder, &info) != 0 || info.f_blocks == 0)
    return -1;
  return int64_t(info.f_bavail) * int64_t(info.f_frsize);
}

bool reprise::runtime::syncFolder(const char *path) {
  int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return false;
  // Some file systems cannot do it, and need not.
  bool good = fsync(folder) == 0 || errno == EINVAL;
  int code = errno;
  close(folder);
  errno = code;
  return good;
}

bool reprise::runtime::removeFolder(const char *path,
                                    bool (*isOurs)(const char *name)) {
  // What a link leads to is not ours.
  int file = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0)
    return errno == ENOENT;
  DIR *folder = fdopendir(file);
  if (!folder) {
    int code = errno;
    close(file);
    errno = code;
    return false;
  }
  bool good = true;
  while (const dirent *entry = readdir(folder)) {
    if (!isOurs(entry->d_name))
      continue;
    good = unlinkat(dirfd(folder), entry->d_name, 0) == 0 && good;
  }
  int code = errno;
  closedir(folder);
  errno = code;
  return good && rmdir(path) == 0;
}
