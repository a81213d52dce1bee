//===- PlainFile.cpp - A file that is read here and there -----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlainFile.h"

#include "MappedFile.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace reprise::runtime;

/// Data sets have thousands of shards; often 1024 open files are permitted, and
/// many more if one asks.
static bool permitMoreFiles() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
    return false;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

bool PlainFile::open(const char *name, Error &error) {
  // A pipe is opened without waiting for its writer, and then refused.
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  int file = ::open(name, kFlags);
  if (file < 0 && errno == EMFILE && permitMoreFiles())
    file = ::open(name, kFlags);
  struct stat info;
  if (file < 0 || fstat(file, &info) != 0) {
    int code = errno;
    if (file >= 0)
      ::close(file);
    return error.set("cannot read '%s': %s", name, strerror(code));
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(file);
    return error.set("cannot read '%s': it is %s", name,
                     S_ISDIR(info.st_mode)
                         ? "a folder; name files in it, or a pattern in quotes"
                         : "not a plain file");
  }
  descriptor = file;
  size = info.st_size;
  path = strdup(name);
  if (!path) {
    close();
    return error.set("no memory left for the name '%s'", name);
  }
  return true;
}

void PlainFile::close() {
  if (descriptor >= 0)
    ::close(descriptor);
  free(path);
  *this = {};
}

bool PlainFile::read(int64_t offset, int64_t bytes, void *buffer,
                     Error &error) const {
  auto *next = static_cast<char *>(buffer);
  while (bytes > 0) {
    ssize_t count = pread(descriptor, next, size_t(bytes), offset);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return error.set("cannot read '%s' at byte %" PRId64 ": %s", path, offset,
                       strerror(errno));
    if (count == 0)
      return error.set("'%s' had %" PRId64 " bytes at the start of the run, "
                       "but now ends before byte %" PRId64
                       "; files must not be changed while they are read",
                       path, size, offset);
    next += count;
    offset += count;
    bytes -= count;
  }
  return true;
}

Place PlainFile::placeOf(int64_t offset) const {
  MappedFile text;
  Error ignored;
  if (!text.map(path, ignored) || text.size < offset) {
    text.unmap();
    return {path, 1, offset + 1};
  }
  Place place = text.placeOf(offset);
  place.path = path;
  text.unmap();
  return place;
}
