//===- MappedFile.cpp - A file's bytes in memory --------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MappedFile.h"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace reprise::runtime;

bool MappedFile::map(const char *name, Error &error) {
  // A pipe is opened without waiting for its writer, and then refused.
  int file = ::open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat info;
  if (file < 0 || fstat(file, &info) != 0) {
    int code = errno;
    if (file >= 0)
      close(file);
    return error.set("cannot read '%s': %s", name, strerror(code));
  }
  if (!S_ISREG(info.st_mode)) {
    close(file);
    return error.set("cannot read '%s': it is not a plain file", name);
  }
  void *memory = nullptr; // What no byte needs; nothing cannot be mapped.
  if (info.st_size > 0)
    memory =
        mmap(nullptr, size_t(info.st_size), PROT_READ, MAP_PRIVATE, file, 0);
  int code = errno;
  close(file);
  if (memory == MAP_FAILED)
    return error.set("cannot map '%s': %s", name, strerror(code));
  data = static_cast<const unsigned char *>(memory);
  size = info.st_size;
  path = strdup(name);
  if (!path) {
    unmap();
    return error.set("no memory left for the name '%s'", name);
  }
  return true;
}

Place MappedFile::placeOf(int64_t offset) const {
  int64_t line = 1, begin = 0;
  while (begin < offset) {
    const void *end = memchr(data + begin, '\n', size_t(offset - begin));
    if (!end)
      break;
    begin = static_cast<const unsigned char *>(end) - data + 1;
    ++line;
  }
  return {path, line, offset - begin + 1};
}

void MappedFile::unmap() {
  if (data)
    munmap(const_cast<unsigned char *>(data), size_t(size));
  free(path);
  *this = {};
}
