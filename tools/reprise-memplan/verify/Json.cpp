//===- Json.cpp - A strict reader of JSON ---------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Json.h"

#include <algorithm>
#include <unordered_set>

using namespace reprise::verify;

static constexpr int kMostLevels = 32;

Place reprise::verify::getPlace(std::string_view text, size_t at) {
  Place place;
  for (char letter : text.substr(0, at)) {
    ++place.column;
    if (letter == '\n')
      place = {place.line + 1, 1};
  }
  return place;
}

const char *reprise::verify::getName(Json::Kind kind) {
  switch (kind) {
  case Json::Kind::Null:
    return "null";
  case Json::Kind::Bool:
    return "a truth value";
  case Json::Kind::Number:
    return "a number";
  case Json::Kind::String:
    return "a text";
  case Json::Kind::Array:
    return "a list";
  case Json::Kind::Object:
    return "an object";
  }
  return "";
}

const Json *Json::find(std::string_view key) const {
  auto found = std::find(keys.begin(), keys.end(), key);
  return found == keys.end() ? nullptr : &elements[found - keys.begin()];
}

namespace {
/// Every function reads one thing and says whether it was there; the first
/// fault stays.
class Parser {
public:
  explicit Parser(std::string_view text) : text(text) {}

  bool parseText(Json &value);
  std::optional<Fault> fault;

private:
  bool parseValue(Json &value, int level);
  bool parseMembers(Json &value, char close, int level);
  bool parseString(std::string &letters);
  bool parseEscape(std::string &letters);
  bool parseHex(unsigned &unit);
  bool parseNumber(std::string &digits);
  bool skipDigits();

  bool fail(std::string message) {
    if (!fault)
      fault = Fault{at, std::move(message)};
    return false;
  }
  void skipSpace() {
    while (at < text.size() &&
           std::string_view(" \t\r\n").find(text[at]) != std::string_view::npos)
      ++at;
  }
  bool consume(char letter) {
    if (at == text.size() || text[at] != letter)
      return false;
    ++at;
    return true;
  }

  std::string_view text;
  size_t at = 0;
};
} // namespace

/// Appends `code` in UTF-8.
static void append(std::string &letters, unsigned code) {
  if (code < 0x80) {
    letters += char(code);
    return;
  }
  int tail = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr unsigned leads[] = {0, 0xC0, 0xE0, 0xF0};
  letters += char(leads[tail] | code >> 6 * tail);
  while (tail--)
    letters += char(0x80 | (code >> 6 * tail & 0x3F));
}

bool Parser::parseHex(unsigned &unit) {
  unit = 0;
  for (int k = 0; k < 4; ++k) {
    size_t digit = std::string_view::npos;
    if (at < text.size())
      digit = std::string_view("0123456789abcdefABCDEF").find(text[at]);
    if (digit == std::string_view::npos)
      return fail("needs four hexadecimal digits behind '\\u'");
    digit = digit < 16 ? digit : digit - 6;
    unit = unit * 16 + digit;
    ++at;
  }
  return true;
}

bool Parser::parseEscape(std::string &letters) {
  constexpr std::string_view names = "\"\\/bfnrt", values = "\"\\/\b\f\n\r\t";
  if (consume('u')) {
    unsigned unit, low;
    if (!parseHex(unit))
      return false;
    if (unit >= 0xD800 && unit < 0xE000) {
      if (unit >= 0xDC00 || !consume('\\') || !consume('u') || !parseHex(low) ||
          low < 0xDC00 || low >= 0xE000)
        return fail("needs a high and a low surrogate");
      unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
    }
    append(letters, unit);
    return true;
  }
  size_t name = at < text.size() ? names.find(text[at]) : names.npos;
  if (name == names.npos)
    return fail("needs one of \" \\ / b f n r t u behind '\\'");
  letters += values[name];
  ++at;
  return true;
}

bool Parser::parseString(std::string &letters) {
  if (!consume('"'))
    return fail("needs a text in quotes");
  while (!consume('"')) {
    if (at == text.size())
      return fail("needs a closing quote");
    if (static_cast<unsigned char>(text[at]) < 0x20)
      return fail("needs control characters in texts as '\\u'");
    if (consume('\\')) {
      if (!parseEscape(letters))
        return false;
    } else {
      letters += text[at++];
    }
  }
  return true;
}

bool Parser::skipDigits() {
  size_t begin = at;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9')
    ++at;
  return at > begin || fail("needs a digit");
}

bool Parser::parseNumber(std::string &digits) {
  size_t begin = at;
  consume('-');
  if (!consume('0') && !skipDigits())
    return false;
  if (consume('.') && !skipDigits())
    return false;
  if (consume('e') || consume('E')) {
    if (!consume('-'))
      consume('+');
    if (!skipDigits())
      return false;
  }
  digits = text.substr(begin, at - begin);
  return true;
}

/// What is between the brackets of a list or an object.
bool Parser::parseMembers(Json &value, char close, int level) {
  if (level == kMostLevels)
    return fail("needs at most " + std::to_string(kMostLevels) + " levels");
  std::unordered_set<std::string> known;
  skipSpace();
  if (consume(close))
    return true;
  do {
    if (value.kind == Json::Kind::Object) {
      skipSpace();
      size_t begin = at;
      std::string key;
      if (!parseString(key))
        return false;
      if (!known.insert(key).second) {
        at = begin;
        return fail("key '" + key + "' is there twice");
      }
      skipSpace();
      if (!consume(':'))
        return fail("needs ':' behind a key");
      value.keys.push_back(std::move(key));
    }
    if (!parseValue(value.elements.emplace_back(), level + 1))
      return false;
    skipSpace();
  } while (consume(','));
  if (!consume(close))
    return fail(std::string("needs ',' or '") + close + "'");
  return true;
}

bool Parser::parseValue(Json &value, int level) {
  skipSpace();
  value.at = at;
  if (consume('{')) {
    value.kind = Json::Kind::Object;
    return parseMembers(value, '}', level);
  }
  if (consume('[')) {
    value.kind = Json::Kind::Array;
    return parseMembers(value, ']', level);
  }
  if (at < text.size() && text[at] == '"') {
    value.kind = Json::Kind::String;
    return parseString(value.text);
  }
  for (std::string_view word : {"null", "true", "false"})
    if (text.substr(at, word.size()) == word) {
      value.kind = word == "null" ? Json::Kind::Null : Json::Kind::Bool;
      value.isTrue = word == "true";
      at += word.size();
      return true;
    }
  if (at == text.size() ||
      (text[at] != '-' && (text[at] < '0' || text[at] > '9')))
    return fail("needs a value");
  value.kind = Json::Kind::Number;
  return parseNumber(value.text);
}

bool Parser::parseText(Json &value) {
  if (!parseValue(value, 0))
    return false;
  skipSpace();
  return at == text.size() || fail("needs nothing behind the value");
}

std::optional<Fault> reprise::verify::readJson(std::string_view text,
                                               Json &value) {
  Parser parser(text);
  parser.parseText(value);
  return parser.fault;
}
