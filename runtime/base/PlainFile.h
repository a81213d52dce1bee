//===- PlainFile.h - A file that is read here and there ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_BASE_PLAINFILE_H
#define REPRISE_RUNTIME_BASE_PLAINFILE_H

#include "Error.h"

#include <cstdint>

namespace reprise::runtime {

/// An open file with bytes of its own: no pipe, no device. A plain value: who
/// has it opened also closes it.
struct PlainFile {
  char *path = nullptr; ///< A copy.
  int descriptor = -1;
  int64_t size = 0; ///< When it was opened.

  /// If the program has as many files open as it may, lets it have as many as
  /// the system permits.
  bool open(const char *path, Error &error);
  void close();

  /// Reads bytes that were there when the file was opened; that they are not
  /// any more is an error. May be called by several threads.
  bool read(int64_t offset, int64_t bytes, void *buffer, Error &error) const;

  /// Where this byte of a text is; takes the time to count lines.
  Place placeOf(int64_t offset) const;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_BASE_PLAINFILE_H
