//===- Values.cpp - From what is written to what is meant -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Keys.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/Unicode.h"

#include <cmath>
#include <limits>

using namespace llvm;
using namespace reprise::frontend;

//===----------------------------------------------------------------------===//
// Diagnostics
//===----------------------------------------------------------------------===//

/// With `?` for each byte that is no printable text, so that all others stay in
/// their columns.
static std::string makePrintable(StringRef text) {
  std::string result;
  const UTF8 *at = text.bytes_begin(), *end = text.bytes_end();
  while (at != end) {
    const UTF8 *begin = at;
    UTF32 character = 0;
    bool isText = convertUTF8Sequence(&at, end, &character, strictConversion) ==
                  conversionOK;
    if (!isText)
      at = begin + 1;
    if (isText && (character == '\t' || sys::unicode::isPrintable(character)))
      result.append(begin, at);
    else
      result.append(at - begin, '?');
  }
  return result;
}

SMDiagnostic reprise::frontend::restate(const SMDiagnostic &given,
                                        StringRef message) {
  return SMDiagnostic(
      *given.getSourceMgr(), given.getLoc(), makePrintable(given.getFilename()),
      given.getLineNo(), given.getColumnNo(), given.getKind(),
      makePrintable(message), makePrintable(given.getLineContents()),
      given.getRanges());
}

void Diagnostics::print(Origin origin, SourceMgr::DiagKind kind,
                        const Twine &message) {
  std::string text = message.str();
  if (origin.location.isValid())
    return sources.PrintMessage(
        errs(), restate(sources.GetMessage(origin.location, kind, ""), text));
  sources.PrintMessage(errs(), SMDiagnostic("", kind, makePrintable(text)));
}

static std::string qualify(const Key &key, Origin origin,
                           const Twine &message) {
  if (!origin.isOption())
    return ("'" + key.name + "' " + message).str();
  return ("option --" + origin.option + ": " + message).str();
}

void Diagnostics::error(const Key &key, Origin origin, const Twine &message) {
  error(origin, qualify(key, origin, message));
}

void Diagnostics::warning(const Key &key, Origin origin, const Twine &message) {
  warning(origin, qualify(key, origin, message));
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

std::string reprise::frontend::describe(const Value &value) {
  switch (value.kind) {
  case Value::Null:
    return "nothing";
  case Value::Plain:
    return "'" + value.text + "'";
  case Value::Quoted:
    return "the text \"" + value.text + "\"";
  case Value::List:
    return "a list";
  case Value::Map:
    return "a section";
  }
  llvm_unreachable("all kinds are handled");
}

/// Which bound the number is out of, in the words of `describeType`; empty if
/// none. `isZero` says that it was written as 0, and did not underflow. The
/// graph is f32: what rounds to a bound is on it.
static std::string findBrokenBound(const Key &key, double number, bool isZero) {
  float rounded = static_cast<float>(number);
  bool isPositive = key.bound == Bound::Positive;
  bool isRate = key.bound == Bound::Rate;
  if ((number < 0 && key.bound != Bound::None) || (isZero && isPositive) ||
      (number >= 1 && isRate))
    return describeType(key);
  if (isRate && rounded >= 1)
    return "a number that is below 1 in f32 too";
  if (isPositive && rounded < std::numeric_limits<float>::min())
    return "a number of at least 1.17549435e-38, the smallest normal f32";
  if (!std::isfinite(rounded))
    return "a number of at most 3.40282347e+38, the largest f32";
  return "";
}

/// Decimal digits, a point, an exponent; not `inf`, `nan` or `0x1p3`.
static std::optional<double> parseNumber(StringRef text) {
  double number;
  if (text.find_first_not_of("0123456789+-.eE") != StringRef::npos ||
      text.getAsDouble(number))
    return std::nullopt;
  return number;
}

/// Whether all digits before the exponent are zeros.
static bool isWrittenAsZero(StringRef text) {
  return text.find_first_of("123456789") >= text.find_first_of("eE");
}

static bool isWholeNumber(StringRef text) {
  text.consume_front("-");
  return !text.empty() && all_of(text, isDigit);
}

static std::optional<int64_t>
parseWholeNumber(const Key &key, const Value &value, Diagnostics &diagnostics) {
  int64_t least = key.bound == Bound::Positive ? 1 : 0, number;
  if (value.kind == Value::Plain && isWholeNumber(value.text)) {
    bool overflows = StringRef(value.text).getAsInteger(10, number);
    if (!overflows && number >= least && number <= key.most)
      return number;
    if (value.text.front() != '-' && (overflows || number > key.most)) {
      diagnostics.error(key, value.origin,
                        "needs a whole number of at most " + Twine(key.most) +
                            ", but got '" + value.text + "'");
      return std::nullopt;
    }
  }
  diagnostics.error(key, value.origin,
                    "needs " + describeType(key) + ", but got " +
                        describe(value));
  return std::nullopt;
}

static std::optional<double> parseNumber(const Key &key, const Value &value,
                                         Diagnostics &diagnostics) {
  std::optional<double> number;
  if (value.kind == Value::Plain)
    number = parseNumber(value.text);
  std::string needs =
      number ? findBrokenBound(key, *number, isWrittenAsZero(value.text))
             : describeType(key);
  if (needs.empty())
    return number;
  diagnostics.error(key, value.origin,
                    "needs " + needs + ", but got " + describe(value));
  return std::nullopt;
}

static void assignList(const Key &key, const Value &value,
                       std::optional<std::vector<std::string>> &list,
                       Diagnostics &diagnostics) {
  std::vector<std::string> words;
  for (const Value &item : value.items) {
    bool isWord = item.kind == Value::Plain || item.kind == Value::Quoted;
    if (!isWord || item.text.empty())
      return diagnostics.error(key, item.origin,
                               "needs a list of words, but got " +
                                   (isWord ? "nothing" : describe(item)) +
                                   " in it");
    words.push_back(item.text);
  }
  list = std::move(words);
}

/// Why a word is refused that other programs know.
static StringRef explainRefusal(const Key &key, StringRef word) {
  if (key.name != "rope_type")
    return "";
  return StringSwitch<StringRef>(word)
      .Case("dynamic", "; its angles grow with the length of the text at hand, "
                       "but a training has one table of angles")
      .Case("longrope", "; it has angles for short and for long texts, but a "
                        "training has one table of angles")
      .Default("");
}

void reprise::frontend::assign(const Key &key, const Value &value,
                               Description &description,
                               Diagnostics &diagnostics) {
  if (value.kind == Value::Null)
    return;
  auto refuse = [&](StringRef hint = "") {
    diagnostics.error(key, value.origin,
                      "needs " + describeType(key) + ", but got " +
                          describe(value) + hint);
  };

  Field field = key.field(description);
  if (auto **whole = std::get_if<int64_t *>(&field)) {
    if (auto number = parseWholeNumber(key, value, diagnostics))
      **whole = *number;
    return;
  }
  if (auto **whole = std::get_if<std::optional<int64_t> *>(&field)) {
    if (auto number = parseWholeNumber(key, value, diagnostics))
      **whole = number;
    return;
  }
  if (auto **real = std::get_if<double *>(&field)) {
    if (auto number = parseNumber(key, value, diagnostics))
      **real = *number;
    return;
  }
  if (auto **real = std::get_if<std::optional<double> *>(&field)) {
    if (auto number = parseNumber(key, value, diagnostics))
      **real = number;
    return;
  }
  if (auto **list =
          std::get_if<std::optional<std::vector<std::string>> *>(&field)) {
    if (value.kind != Value::List)
      return refuse("; write it as [word, word]");
    return assignList(key, value, **list, diagnostics);
  }
  if (auto **word = std::get_if<std::string *>(&field)) {
    SmallVector<StringRef> words = splitWords(key.words);
    if (value.kind != Value::Plain && value.kind != Value::Quoted)
      return refuse();
    if (!words.empty() && !is_contained(words, value.text)) {
      StringRef reason = explainRefusal(key, value.text);
      return refuse(reason.empty() ? suggest(value.text, words) : reason.str());
    }
    if (value.text.empty())
      return diagnostics.error(key, value.origin,
                               "needs a path, but got an empty one");
    **word = value.text;
    return;
  }

  if (std::holds_alternative<Nested>(field))
    return refuse();
  if (value.kind != Value::Plain ||
      (value.text != "true" && value.text != "false"))
    return refuse();
  bool truth = value.text == "true";
  if (auto **flag = std::get_if<bool *>(&field))
    **flag = truth;
  else if (std::get<OnlyValue>(field).value != truth)
    refuse(", which is not supported");
}
