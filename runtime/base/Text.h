//===- Text.h - Texts, and numbers as people read them ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_BASE_TEXT_H
#define REPRISE_RUNTIME_BASE_TEXT_H

#include <cstdint>

namespace reprise::runtime {

/// A short text that a function can return.
struct Text {
  char chars[48];
};

/// 1234567 as "1,234,567".
Text grouped(int64_t number);

/// Bytes in the largest binary unit that leaves at least 1: "1.50 MiB".
Text human(int64_t bytes);

/// As %g has it, but "nan" whatever its sign bit says.
Text shown(double number);

/// Whether there is something before `ending` at the end of `text`.
bool endsIn(const char *text, const char *ending);

/// Seconds as "1:05" or "2:00:59".
Text duration(double seconds);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_BASE_TEXT_H
