//===- MappedFile.h - A file's bytes in memory ------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_BASE_MAPPEDFILE_H
#define REPRISE_RUNTIME_BASE_MAPPEDFILE_H

#include "Error.h"

#include <cstdint>
#include <cstring>

namespace reprise::runtime {

/// The bytes of a plain file, read as they are needed. A plain value: who has
/// it mapped also unmaps it.
struct MappedFile {
  char *path = nullptr; ///< A copy.
  const unsigned char *data = nullptr;
  int64_t size = 0;

  bool map(const char *path, Error &error);
  void unmap();

  /// Where this byte of a text is; takes the time to count lines.
  Place placeOf(int64_t offset) const;

  /// The number at this byte, wherever that lies.
  template <typename T>
  T at(int64_t offset) const {
    T value;
    memcpy(&value, data + offset, sizeof(value));
    return value;
  }
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_BASE_MAPPEDFILE_H
