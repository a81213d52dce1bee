//===- Format.h - Numbers as people read them -------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_SUPPORT_FORMAT_H
#define REPRISE_SUPPORT_FORMAT_H

#include <string>
#include <vector>

namespace reprise {
/// A time for a person: "115.3 us", "271.26 ms", "18.338 s", "2.50 min",
/// "1.1 days"; "0 s". The unit is the largest of which there is one once it is
/// rounded; a negative time has its sign, and what is no number is "nan s".
std::string formatSeconds(double seconds);

/// What memory costs in time, from seconds for a byte: "18.338 s per GiB".
std::string formatSecondsPerGiB(double secondsPerByte);

/// Columns of what is printed for a person.
inline constexpr unsigned kTextWidth = 100;

/// `text` in lines of at most `width` columns, broken at spaces, but not behind
/// a number, which has its unit there. A word that is longer has a line of its
/// own. No line for no text.
std::vector<std::string> breakText(const std::string &text, size_t width);
} // namespace reprise

#endif // REPRISE_SUPPORT_FORMAT_H
