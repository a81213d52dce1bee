//===- Json.cpp - Reading and writing JSON --------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Json.h"

#include "Unicode.h"
#include "runtime/base/Hash.h"

#include <cerrno>
#include <cmath>
#include <cstring>

using namespace reprise::runtime;

static constexpr int kDeepest = 64;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

JsonKind JsonValue::kind() const { return document->nodes[node].kind; }

int64_t JsonValue::offset() const { return document->nodes[node].offset; }

const char *JsonValue::kindName() const {
  if (!document)
    return "nothing";
  switch (kind()) {
  case JsonKind::Null:
    return "null";
  case JsonKind::False:
    return "false";
  case JsonKind::True:
    return "true";
  case JsonKind::Number:
    return "a number";
  case JsonKind::String:
    return "a string";
  case JsonKind::Array:
    return "an array";
  case JsonKind::Object:
    return "an object";
  }
  return "";
}

std::string_view JsonValue::text() const {
  if (!is(JsonKind::String) && !is(JsonKind::Number))
    return {};
  const JsonDocument::Node &value = document->nodes[node];
  return {value.chars, size_t(value.size)};
}

int64_t JsonValue::size() const {
  return is(JsonKind::Array) || is(JsonKind::Object)
             ? document->nodes[node].size
             : 0;
}

bool JsonValue::asInteger(int64_t &value) const {
  if (!is(JsonKind::Number))
    return false;
  std::string_view digits = text();
  bool negative = digits.front() == '-';
  if (negative)
    digits.remove_prefix(1);
  // Downwards, since there is one more negative number.
  int64_t result = 0;
  for (char c : digits)
    if (c < '0' || c > '9' || __builtin_mul_overflow(result, 10, &result) ||
        __builtin_sub_overflow(result, int64_t(c - '0'), &result))
      return false;
  if (!negative && __builtin_sub_overflow(int64_t(0), result, &result))
    return false;
  value = result;
  return true;
}

bool JsonValue::asDouble(double &value) const {
  std::string_view digits = text();
  if (!is(JsonKind::Number))
    return false;
  // strtod wants an end; a number with more digits than this is none of ours.
  char copy[512];
  if (digits.size() >= sizeof(copy))
    return false;
  memcpy(copy, digits.data(), digits.size());
  copy[digits.size()] = '\0';
  double result = strtod(copy, nullptr);
  if (!std::isfinite(result))
    return false;
  value = result;
  return true;
}

JsonValue JsonValue::find(std::string_view key) const {
  if (is(JsonKind::Object))
    for (JsonItem member : *this)
      if (member.key.text() == key)
        return member.value;
  return {};
}

JsonValue::Iterator JsonValue::begin() const {
  if (size() == 0)
    return end();
  return {document, node + 1, kind() == JsonKind::Object};
}

JsonValue::Iterator JsonValue::end() const {
  return {document, document ? document->nodes[node].next : 0, false};
}

JsonItem JsonValue::Iterator::operator*() const {
  if (members)
    return {{document, node}, {document, node + 1}};
  return {{}, {document, node}};
}

JsonValue::Iterator &JsonValue::Iterator::operator++() {
  node = document->nodes[members ? node + 1 : node].next;
  return *this;
}

//===----------------------------------------------------------------------===//
// Parser
//===----------------------------------------------------------------------===//

namespace {
/// What stands somewhere in a text, for messages.
struct Sight {
  char chars[48];
};
} // namespace

static Sight describe(std::string_view text, size_t at) {
  Sight sight;
  if (at >= text.size())
    snprintf(sight.chars, sizeof(sight.chars), "the end");
  else if (text[at] > ' ' && text[at] < 0x7F)
    snprintf(sight.chars, sizeof(sight.chars), "'%c'", text[at]);
  else
    snprintf(sight.chars, sizeof(sight.chars), "the byte 0x%02x",
             unsigned(static_cast<unsigned char>(text[at])));
  return sight;
}

static int64_t hexDigit(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

struct JsonDocument::Parser {
  JsonDocument &document;
  std::string_view text;
  Error &error;
  size_t at = 0;
  size_t numDecoded = 0; ///< Bytes of `document.decoded`.
  int depth = 0;

  bool parseDocument() {
    if (!parseValue())
      return false;
    skipSpace();
    return at == text.size() || wanted("nothing behind the value");
  }

private:
  bool wanted(const char *what) {
    return failAt(at, "needs %s, but got %s", what, describe(text, at).chars);
  }

  [[gnu::format(printf, 3, 4)]] bool failAt(size_t offset, const char *format,
                                            ...) {
    char message[256];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    return document.failAt(int64_t(offset), error, message);
  }

  void skipSpace() {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\n' ||
                                text[at] == '\r' || text[at] == '\t'))
      ++at;
  }

  bool push(JsonKind kind, size_t offset, const char *chars, size_t size) {
    size_t next = document.nodes.size() + 1;
    return (next <= UINT32_MAX &&
            document.nodes.push({chars, int64_t(offset), int64_t(size),
                                 uint32_t(next), kind})) ||
           failAt(offset, "no memory left for %zu values", next);
  }

  bool parseValue() {
    skipSpace();
    switch (at < text.size() ? text[at] : '\0') {
    case '{':
      return parseContainer(JsonKind::Object);
    case '[':
      return parseContainer(JsonKind::Array);
    case '"':
      return parseString();
    case 't':
      return parseWord("true", JsonKind::True);
    case 'f':
      return parseWord("false", JsonKind::False);
    case 'n':
      return parseWord("null", JsonKind::Null);
    default:
      return parseNumber();
    }
  }

  bool parseWord(const char *word, JsonKind kind) {
    size_t start = at, length = strlen(word);
    if (text.size() - at < length || memcmp(text.data() + at, word, length))
      return wanted("a value");
    at += length;
    return push(kind, start, nullptr, 0);
  }

  /// Whether there was a digit.
  bool skipDigits() {
    size_t start = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9')
      ++at;
    return at > start;
  }

  bool skip(char c) {
    if (at == text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }

  bool parseNumber() {
    size_t start = at;
    bool negative = skip('-');
    if (!skip('0') && !skipDigits())
      return wanted(negative ? "a digit" : "a value");
    if (skip('.') && !skipDigits())
      return wanted("a digit");
    if (skip('e') || skip('E')) {
      if (!skip('+'))
        skip('-');
      if (!skipDigits())
        return wanted("a digit");
    }
    return push(JsonKind::Number, start, text.data() + start, at - start);
  }

  bool parseString() {
    size_t start = at++;
    const char *base = text.data();
    // Most strings are as they are written.
    while (at < text.size()) {
      char c = base[at];
      if (c == '"') {
        ++at;
        return push(JsonKind::String, start, base + start + 1, at - start - 2);
      }
      if (c == '\\')
        return parseEscapedString(start);
      if (!skipCharacter())
        return false;
    }
    return wanted("'\"' at the end of a string");
  }

  /// Goes over one character of a string.
  bool skipCharacter() {
    unsigned char c = static_cast<unsigned char>(text[at]);
    if (c < 0x20)
      return failAt(at,
                    "needs control characters in strings to be escaped, "
                    "but got the byte 0x%02x",
                    c);
    int length = utf8Length(text.data() + at, text.size() - at);
    if (length == 0)
      return wanted("UTF-8");
    at += size_t(length);
    return true;
  }

  /// The string that began at `start` and is plain up to here.
  bool parseEscapedString(size_t start) {
    // No string gets longer when its escapes are replaced.
    if (!document.decoded)
      document.decoded = static_cast<char *>(malloc(text.size()));
    if (!document.decoded)
      return failAt(start, "no memory left for %zu bytes of strings",
                    text.size());
    char *chars = document.decoded + numDecoded, *out = chars;
    auto copyFrom = [&](size_t begin) {
      memcpy(out, text.data() + begin, at - begin);
      out += at - begin;
    };
    copyFrom(start + 1);
    while (at < text.size() && text[at] != '"') {
      size_t begin = at;
      if (text[at] == '\\') {
        if (!parseEscape(out))
          return false;
      } else {
        if (!skipCharacter())
          return false;
        copyFrom(begin);
      }
    }
    if (!skip('"'))
      return wanted("'\"' at the end of a string");
    size_t size = size_t(out - chars);
    numDecoded += size;
    return push(JsonKind::String, start, chars, size);
  }

  bool parseEscape(char *&out) {
    static constexpr char kLetters[] = "\"\\/bfnrt",
                          kMeanings[] = "\"\\/\b\f\n\r\t";
    ++at;
    const char *letter =
        at < text.size() && text[at] ? strchr(kLetters, text[at]) : nullptr;
    if (letter) {
      ++at;
      *out++ = kMeanings[letter - kLetters];
      return true;
    }
    if (!skip('u'))
      return wanted("one of \"\\/bfnrtu behind '\\'");
    size_t start = at - 2;
    uint32_t code = 0, low = 0;
    if (!parseFourDigits(code))
      return false;
    bool high = code >= 0xD800 && code < 0xDC00;
    if (high && (!skip('\\') || !skip('u')))
      return failAt(start,
                    "needs the second half of a surrogate pair behind "
                    "\\u%04x",
                    code);
    if (high && !parseFourDigits(low))
      return false;
    if (high ? low < 0xDC00 || low > 0xDFFF : code >= 0xDC00 && code < 0xE000)
      return failAt(start, "needs surrogates in pairs, but got \\u%04x%s", code,
                    high ? " and no second half" : " alone");
    if (high)
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    out += encodeUtf8(code, reinterpret_cast<unsigned char *>(out));
    return true;
  }

  bool parseFourDigits(uint32_t &code) {
    code = 0;
    for (int i = 0; i < 4; ++i, ++at) {
      int64_t digit = at < text.size() ? hexDigit(text[at]) : -1;
      if (digit < 0)
        return wanted("four hexadecimal digits behind \\u");
      code = code << 4 | uint32_t(digit);
    }
    return true;
  }

  bool parseContainer(JsonKind kind) {
    bool members = kind == JsonKind::Object;
    char close = members ? '}' : ']';
    if (++depth > kDeepest)
      return failAt(at, "needs at most %d containers within each other",
                    kDeepest);
    uint32_t index = uint32_t(document.nodes.size());
    if (!push(kind, at++, nullptr, 0))
      return false;
    int64_t count = 0;
    skipSpace();
    if (!skip(close)) {
      do {
        if (members && !parseKey())
          return false;
        if (!parseValue())
          return false;
        ++count;
        skipSpace();
      } while (skip(','));
      if (!skip(close))
        return wanted(members ? "',' or '}'" : "',' or ']'");
    }
    --depth;
    Node &node = document.nodes.begin()[index];
    node.size = count;
    node.next = uint32_t(document.nodes.size());
    return !members || checkKeys({&document, index});
  }

  bool parseKey() {
    skipSpace();
    if (at == text.size() || text[at] != '"')
      return wanted("a key in quotes");
    if (!parseString())
      return false;
    skipSpace();
    return skip(':') || wanted("':' behind a key");
  }

  /// Whether no key stands there twice.
  bool checkKeys(JsonValue object) {
    size_t slots = 4;
    while (slots < 2 * size_t(object.size()))
      slots *= 2;
    uint32_t few[32];
    uint32_t *table =
        slots <= 32 ? few
                    : static_cast<uint32_t *>(malloc(slots * sizeof(uint32_t)));
    if (!table)
      return failAt(size_t(object.offset()), "no memory left for %zu keys",
                    size_t(object.size()));
    memset(table, 0, slots * sizeof(uint32_t)); // Node 0 is no key.
    bool good = true;
    for (JsonItem member : object) {
      std::string_view key = member.key.text();
      size_t slot = hashOf(key) & (slots - 1);
      while (table[slot] && JsonValue(&document, table[slot]).text() != key)
        slot = (slot + 1) & (slots - 1);
      if (table[slot]) {
        good = failAt(size_t(member.key.offset()),
                      "needs keys that differ, but got '%.*s' twice",
                      int(key.size() < 64 ? key.size() : 64), key.data());
        break;
      }
      table[slot] = member.key.node;
    }
    if (table != few)
      free(table);
    return good;
  }
};

//===----------------------------------------------------------------------===//
// Document
//===----------------------------------------------------------------------===//

JsonDocument::~JsonDocument() { free(decoded); }

bool JsonDocument::parse(std::string_view text, const char *file, Error &error,
                         int64_t offset) {
  source = text;
  path = file;
  offsetInFile = offset;
  return Parser{*this, text, error}.parseDocument();
}

bool JsonDocument::failAt(int64_t offset, Error &error,
                          const char *message) const {
  if (offsetInFile >= 0)
    return error.set("'%s': byte %" PRId64 ": %s", path, offsetInFile + offset,
                     message);
  Place place = {path, 1, 1};
  for (char c : source.substr(0, size_t(offset))) {
    ++place.column;
    if (c == '\n') {
      ++place.line;
      place.column = 1;
    }
  }
  return error.setAt(place, "%s", message);
}

bool JsonDocument::fail(const JsonValue &value, Error &error,
                        const char *format, ...) const {
  char message[sizeof(error.text)];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof(message), format, args);
  va_end(args);
  return failAt(value ? value.offset() : 0, error, message);
}

//===----------------------------------------------------------------------===//
// Strings
//===----------------------------------------------------------------------===//

// Source: The Unicode Standard, table 3-7.
int reprise::runtime::utf8Length(const char *chars, size_t size) {
  auto *text = reinterpret_cast<const unsigned char *>(chars);
  if (size == 0)
    return 0;
  unsigned char c = text[0], lowest = 0x80, highest = 0xBF;
  if (c < 0x80)
    return 1;
  if (c < 0xC2 || c > 0xF4)
    return 0;
  size_t length = c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
  if (c == 0xE0)
    lowest = 0xA0; // Below, two bytes would do.
  else if (c == 0xED)
    highest = 0x9F; // Above are the surrogates.
  else if (c == 0xF0)
    lowest = 0x90; // Below, three bytes would do.
  else if (c == 0xF4)
    highest = 0x8F; // Above is nothing.
  if (size < length || text[1] < lowest || text[1] > highest)
    return 0;
  for (size_t i = 2; i < length; ++i)
    if ((text[i] & 0xC0) != 0x80)
      return 0;
  return int(length);
}
