//===- Error.h - What went wrong, in one sentence ---------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_ERROR_H
#define REPRISE_RUNTIME_ERROR_H

#include <cstdarg>
#include <cstdio>

namespace reprise::runtime {

/// A message for the user. Functions that can fail take one by reference and
/// return false after `set`.
struct Error {
  char text[1024] = "";

  /// Stores the message and returns false, so that a function can end with
  /// `return error.set(...)`.
  [[gnu::format(printf, 2, 3)]] bool set(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return false;
  }
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_ERROR_H
