//===- Text.cpp - Numbers as people read them -----------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Text.h"

#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>

using namespace reprise::runtime;

Text reprise::runtime::grouped(int64_t number) {
  char digits[24];
  int count = snprintf(digits, sizeof(digits), "%" PRId64, number);
  Text text;
  int length = 0;
  for (int i = 0; i < count; ++i) {
    if (i > 0 && (count - i) % 3 == 0 && digits[i - 1] != '-')
      text.chars[length++] = ',';
    text.chars[length++] = digits[i];
  }
  text.chars[length] = '\0';
  return text;
}

Text reprise::runtime::human(int64_t bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = double(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit)
    value /= 1024;
  Text text;
  snprintf(text.chars, sizeof(text.chars), unit ? "%.2f %s" : "%.0f %s", value,
           units[unit]);
  return text;
}

Text reprise::runtime::shown(double number) {
  Text text;
  snprintf(text.chars, sizeof(text.chars), "%g",
           std::isnan(number) ? std::fabs(number) : number);
  return text;
}

bool reprise::runtime::endsIn(const char *text, const char *ending) {
  size_t length = strlen(text), end = strlen(ending);
  return length > end && !strcmp(text + length - end, ending);
}

Text reprise::runtime::duration(double seconds) {
  int64_t whole = int64_t(seconds + 0.5);
  Text text;
  if (whole >= 3600)
    snprintf(text.chars, sizeof(text.chars), "%" PRId64 ":%02d:%02d",
             whole / 3600, int(whole / 60 % 60), int(whole % 60));
  else
    snprintf(text.chars, sizeof(text.chars), "%d:%02d", int(whole / 60),
             int(whole % 60));
  return text;
}
