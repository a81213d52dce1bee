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

#include <cmath>

using namespace llvm;
using namespace reprise::frontend;

//===----------------------------------------------------------------------===//
// Diagnostics
//===----------------------------------------------------------------------===//

void Diagnostics::print(Origin origin, SourceMgr::DiagKind kind,
                        const Twine &message) {
  if (origin.location.isValid())
    return sources.PrintMessage(origin.location, kind, message);
  sources.PrintMessage(errs(), SMDiagnostic("", kind, message.str()));
}

static std::string qualify(const Key &key, Origin origin,
                           const Twine &message) {
  if (!origin.isOption)
    return ("'" + key.name + "' " + message).str();
  std::string name = key.name.str();
  std::replace(name.begin(), name.end(), '_', '-');
  return ("option --" + name + ": " + message).str();
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

static bool inBound(double number, Bound bound) {
  // The graph is f32: what rounds to a bound is on it.
  float rounded = static_cast<float>(number);
  if (!std::isfinite(rounded))
    return false;
  switch (bound) {
  case Bound::None:
    return true;
  case Bound::Positive:
    return rounded > 0;
  case Bound::NotNegative:
    return number >= 0;
  case Bound::Rate:
    return number >= 0 && rounded < 1;
  }
  llvm_unreachable("all bounds are handled");
}

/// Decimal digits, a point, an exponent; not `inf`, `nan` or `0x1p3`.
static std::optional<double> parseNumber(StringRef text) {
  double number;
  if (text.find_first_not_of("0123456789+-.eE") != StringRef::npos ||
      text.getAsDouble(number))
    return std::nullopt;
  return number;
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

static void assignList(const Key &key, const Value &value,
                       std::optional<std::vector<std::string>> &list,
                       Diagnostics &diagnostics) {
  std::vector<std::string> words;
  for (const Value &item : value.items) {
    if (item.kind == Value::Plain || item.kind == Value::Quoted)
      words.push_back(item.text);
    else
      return diagnostics.error(key, item.origin,
                               "needs a list of words, but got " +
                                   describe(item) + " in it");
  }
  list = std::move(words);
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
    std::optional<double> number;
    if (value.kind == Value::Plain)
      number = parseNumber(value.text);
    if (!number || !inBound(*number, key.bound))
      return refuse();
    **real = *number;
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
    if (!words.empty() && !is_contained(words, value.text))
      return refuse(suggest(value.text, words));
    **word = value.text;
    return;
  }

  if (value.kind != Value::Plain ||
      (value.text != "true" && value.text != "false"))
    return refuse();
  bool truth = value.text == "true";
  if (auto **flag = std::get_if<bool *>(&field))
    **flag = truth;
  else if (std::get<OnlyValue>(field).value != truth)
    refuse(", which is not supported");
}
