//===- Format.cpp - Numbers as people read them ---------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Support/Format.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdio>

using namespace reprise;

namespace {
struct Unit {
  double seconds;
  int digits; ///< behind the point
  const char *name;
};
} // namespace

/// Digits that tell two plans apart; nobody reads days to the hour.
static constexpr Unit kUnits[] = {
    {86400, 1, "days"}, {3600, 2, "h"},  {60, 2, "min"}, {1, 3, "s"},
    {1e-3, 2, "ms"},    {1e-6, 1, "us"}, {1e-9, 1, "ns"}};

std::string reprise::formatSeconds(double seconds) {
  if (seconds == 0)
    return "0 s";
  const Unit *unit = std::begin(kUnits), *last = std::end(kUnits) - 1;
  // Half of the last digit of the unit below rounds up to this one.
  auto isTooLarge = [&] {
    const Unit &below = unit[1];
    double half = below.seconds * std::pow(10.0, -below.digits) / 2;
    return std::abs(seconds) < unit->seconds - half;
  };
  while (unit != last && isTooLarge())
    ++unit;
  if (!std::isfinite(seconds))
    unit = std::begin(kUnits) + 3;
  char text[64];
  double number = seconds / unit->seconds;
  // More than any step takes: all digits would be a page.
  const char *format = std::abs(number) < 1e15 ? "%.*f %s" : "%.*e %s";
  std::snprintf(text, sizeof(text), format, unit->digits, number, unit->name);
  return text;
}

std::string reprise::formatSecondsPerGiB(double secondsPerByte) {
  return formatSeconds(secondsPerByte * double(int64_t(1) << 30)) + " per GiB";
}

/// Where the next piece of `text` behind `begin` ends that is not broken: at a
/// space behind anything but a digit, or at the end.
static size_t findBreak(const std::string &text, size_t begin) {
  size_t end = text.find(' ', begin);
  while (end != std::string::npos && end > 0 &&
         std::isdigit(static_cast<unsigned char>(text[end - 1])))
    end = text.find(' ', end + 1);
  return std::min(end, text.size());
}

std::vector<std::string> reprise::breakText(const std::string &text,
                                            size_t width) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = findBreak(text, begin);
    std::string piece = text.substr(begin, end - begin);
    bool fits =
        !lines.empty() && lines.back().size() + 1 + piece.size() <= width;
    if (fits)
      lines.back() += " " + piece;
    else
      lines.push_back(std::move(piece));
    begin = end + 1;
  }
  return lines;
}
