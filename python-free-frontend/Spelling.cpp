//===- Spelling.cpp - What to write instead of a value ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Numbers and switches as Python, other versions of YAML, and people write
// them. They are not read: 1,000 is one number here and another one there. But
// an error says how what is probably meant is written. Of a batch that ranks do
// not share it says which size they would.
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Keys.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Regex.h"

#include <cmath>

using namespace llvm;
using namespace reprise::frontend;

/// Without the marks between digits that Python and YAML 1.1 take.
static std::string dropUnderscores(StringRef text) {
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] != '_' || i == 0 || !isDigit(text[i - 1]))
      digits += text[i];
  return digits;
}

/// A whole number with marks between digits, with a point or an exponent.
static std::optional<std::string> respellWhole(const Key &key, StringRef text) {
  static const Regex groups("^[0-9]{1,3}(,[0-9]{3})+$");
  std::string digits = dropUnderscores(text);
  if (groups.match(digits))
    erase(digits, ',');
  double number, least = key.bound == Bound::Positive ? 1 : 0;
  if (StringRef(digits).getAsDouble(number) || number != std::floor(number) ||
      !(number >= least && number <= double(key.most)))
    return std::nullopt;
  return std::to_string(int64_t(number));
}

/// Another number with marks between digits, a comma for the point, or, of a
/// rate, as per cent.
static std::optional<std::string> respellReal(const Key &key, StringRef text) {
  bool isShare = key.bound == Bound::Rate && text.consume_back("%");
  std::string digits = dropUnderscores(text.trim());
  if (text.count(',') == 1 && !text.contains('.'))
    digits[digits.find(',')] = '.';
  double number;
  if (StringRef(digits).getAsDouble(number) || !std::isfinite(number) ||
      (number < 0 && key.bound != Bound::None))
    return std::nullopt;
  if (!isShare)
    return digits;
  digits.clear();
  raw_string_ostream(digits) << format("%g", number / 100);
  return digits;
}

static std::optional<std::string> respellTruth(StringRef text) {
  for (StringRef word : {"true", "t", "yes", "y", "on", "1"})
    if (text.equals_insensitive(word))
      return "true";
  for (StringRef word : {"false", "f", "no", "n", "off", "0"})
    if (text.equals_insensitive(word))
      return "false";
  return std::nullopt;
}

std::string reprise::frontend::suggestSpelling(const Key &key,
                                               const GivenValue &value) {
  // A list of one is often meant for what is in it.
  const GivenValue &one =
      value.kind == GivenValue::List && value.items.size() == 1
          ? value.items.front()
          : value;
  if (one.kind != GivenValue::Plain && one.kind != GivenValue::Quoted)
    return "";
  Description none;
  Field field = key.field(none);
  StringRef text = StringRef(one.text).trim();
  std::optional<std::string> other;
  if (std::holds_alternative<bool *>(field) ||
      std::holds_alternative<OnlyValue>(field))
    other = respellTruth(text);
  else if (std::holds_alternative<double *>(field) ||
           std::holds_alternative<std::vector<double> *>(field) ||
           std::holds_alternative<std::optional<double> *>(field))
    other = respellReal(key, text);
  else
    other = respellWhole(key, text);
  if (!other ||
      (&one == &value && one.kind == GivenValue::Plain && *other == text))
    return "";
  bool isQuoted = one.kind == GivenValue::Quoted && *other == text;
  return "; write " + *other + (isQuoted ? " without quotes" : "");
}

/// The largest divisor of `number` that is at most `most`.
static int64_t findDivisor(int64_t number, int64_t most) {
  int64_t found = 1;
  for (int64_t k = 1; k <= number / k; ++k)
    for (int64_t divisor : {k, number / k})
      if (number % k == 0 && divisor <= most)
        found = std::max(found, divisor);
  return found;
}

std::string reprise::frontend::suggestBatch(int64_t global, int64_t size,
                                            int64_t ranks) {
  int64_t next = llvm::alignTo(global, size * ranks);
  std::string words;
  if (next <= INT32_MAX) // What the key takes at most.
    words = "; --global-batch-size=" + std::to_string(next) + " would do";
  if (global % ranks != 0)
    return words;
  return words + (words.empty() ? "; " : ", or ") + "--micro-batch-size=" +
         std::to_string(findDivisor(global / ranks, size)) +
         (words.empty() ? " would do" : "");
}
