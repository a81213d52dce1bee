//===- JSONErrors.cpp - What is wrong with JSON -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The parser's message is `[line:column, byte=offset]: reason`. Where it is the
// spelling of another language, the error says so.
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/JSONErrors.h"

#include "reprise/Support/RawJSON.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace reprise;
using namespace reprise::frontend;

namespace {
struct OtherSpelling {
  StringLiteral sign; ///< What stands where JSON ends.
  StringLiteral note;
};
} // namespace

static constexpr OtherSpelling kOtherSpellings[] = {
    {"//", "JSON has no comments"},
    {"/*", "JSON has no comments"},
    {"#", "JSON has no comments"},
    {"'", "JSON has double quotes alone"},
    {"True", "JSON has true, in small letters"},
    {"False", "JSON has false, in small letters"},
    {"None", "JSON has null for it"},
    {"NaN", "JSON has no such number"},
    {"Infinity", "JSON has no such number"},
    {"-Infinity", "JSON has no such number"},
};

/// What is wrong at the character where the parser stopped, or before it.
static StringRef explain(StringRef before, StringRef rest) {
  bool isEnd = rest.starts_with("}") || rest.starts_with("]");
  if (isEnd && before.rtrim().ends_with(","))
    return "JSON has no comma behind the last of several";
  for (const OtherSpelling &other : kOtherSpellings)
    if (rest.starts_with(other.sign))
      return other.note;
  return "";
}

void reprise::frontend::reportJSONError(Error error, StringRef text,
                                        Diagnostics &diagnostics) {
  std::string message = toString(std::move(error));
  auto [place, reason] = StringRef(message).split("]: ");
  size_t offset = 0;
  if (place.split("byte=").second.getAsInteger(10, offset) || reason.empty())
    reason = message;
  offset = std::min(offset, text.size());
  // It has already passed the first character of what it did not expect, and
  // of a number all of it.
  size_t begin = offset - (offset > 0);
  StringRef why = explain(text.take_front(begin), text.drop_front(begin));
  auto isWord = [](char c) {
    return isAlnum(c) || StringRef("+-.").contains(c);
  };
  if (why.empty()) {
    while (begin > 0 && isWord(text[begin - 1]))
      --begin;
    why = explain(text.take_front(begin), text.drop_front(begin));
  }
  if (!why.empty())
    offset = begin;
  diagnostics.error({SMLoc::getFromPointer(text.data() + offset)},
                    "not JSON: " + reason + (why.empty() ? "" : "; ") + why);
}

bool reprise::frontend::reportOddNumber(StringRef text,
                                        Diagnostics &diagnostics) {
  OddNumber number = findOddNumber(text);
  if (number.text.empty())
    return false;
  diagnostics.error({SMLoc::getFromPointer(number.text.data())},
                    "not JSON: '" + number.text + "' is no number; " +
                        number.why);
  return true;
}
