//===- Error.h - What went wrong, in one sentence ---------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_BASE_ERROR_H
#define REPRISE_RUNTIME_BASE_ERROR_H

#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace reprise::runtime {

/// Where something is in a text: line and column (of bytes) from 1.
struct Place {
  const char *path;
  int64_t line, column;
};

/// A message for the user. Functions that can fail take one by reference and
/// return false after `set`.
struct Error {
  char text[1024] = "";
  bool hasPlace =
      false; ///< Whether the text begins "FILE:LINE:COLUMN: error:".

  /// Stores the message and returns false, so that a function can end with
  /// `return error.set(...)`.
  [[gnu::format(printf, 2, 3)]] bool set(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    hasPlace = false;
    return false;
  }

  /// Adds to the message, and returns false, too.
  [[gnu::format(printf, 2, 3)]] bool add(const char *format, ...) {
    size_t length = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + length, sizeof(text) - length, format, args);
    va_end(args);
    return false;
  }

  /// The same as `set`, about a place in a text.
  [[gnu::format(printf, 3, 4)]] bool setAt(const Place &place,
                                           const char *format, ...) {
    char message[sizeof(text)];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    set("%s:%" PRId64 ":%" PRId64 ": error: %s", place.path, place.line,
        place.column, message);
    hasPlace = true;
    return false;
  }
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_BASE_ERROR_H
