//===- MappedFile.cpp - A file's bytes in memory --------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MappedFile.h"

#include "PlainFile.h"

#include <cerrno>
#include <cstdlib>
#include <sys/mman.h>

using namespace reprise::runtime;

bool MappedFile::map(const char *name, Error &error) {
  PlainFile file;
  if (!file.open(name, error))
    return false;
  void *memory = nullptr; // What no byte needs; nothing cannot be mapped.
  if (file.size > 0)
    memory = mmap(nullptr, size_t(file.size), PROT_READ, MAP_PRIVATE,
                  file.descriptor, 0);
  int code = errno;
  if (memory == MAP_FAILED) {
    file.close();
    return error.set("cannot map '%s': %s", name, strerror(code));
  }
  data = static_cast<const unsigned char *>(memory);
  size = file.size;
  path = file.path;
  file.path = nullptr; // Handed over.
  file.close();
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
