//===- FileKind.h - What a file is by its first bytes -----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_BASE_FILEKIND_H
#define REPRISE_RUNTIME_BASE_FILEKIND_H

#include "Error.h"

#include <string_view>

namespace reprise::runtime {

/// A format that is known so that it can be refused by its name.
struct FileKind {
  std::string_view magic;
  int offset;       ///< Of the magic bytes.
  const char *what; ///< "a zip file"
  /// What to do instead; empty if that depends on what is wanted.
  const char *advice;
  /// Whether so few bytes tell it that tokens may well begin with them.
  bool isWeak;
  /// Whether what else there is makes it sure; null: nothing does.
  bool (*confirms)(std::string_view begin, char last) = nullptr;

  bool isSafetensors() const { return magic.empty(); }
  /// Sets an error and returns false: what the file is, and what to do instead
  /// or `why` it is not taken.
  bool refuse(const char *path, const char *why, Error &error) const;
};

/// The bytes at the beginning that tell what a file is.
inline constexpr size_t kBytesOfKind = 512;

/// What a file that begins with these bytes is; null if it may be anything. The
/// file has `fileSize` bytes.
const FileKind *findKind(std::string_view begin, int64_t fileSize);

/// The same of one that may have numbers alone: weak signs are none, unless all
/// else there is, `last` among it, the file's last byte, confirms them.
const FileKind *findKindOfNumbers(std::string_view begin, int64_t fileSize,
                                  char last);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_BASE_FILEKIND_H
