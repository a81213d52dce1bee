//===- NumpyHeader.cpp - Where the numbers of a .npy file lie -------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NumpyHeader.h"

#include "runtime/base/List.h"

#include <algorithm>
#include <cstring>

using namespace reprise::runtime;

static constexpr std::string_view kMagic = "\x93NUMPY";
/// Of one dimension it has 118; numpy itself reads no more than this.
static constexpr int64_t kLongest = 10000;

bool reprise::runtime::isNumpy(std::string_view begin) {
  return begin.size() >= kMagic.size() &&
         !memcmp(begin.data(), kMagic.data(), kMagic.size());
}

namespace {
/// Goes through the text of a dictionary.
class Reader {
public:
  explicit Reader(std::string_view text) : text(text) {}

  bool take(char c) {
    skipSpace();
    if (text.empty() || text.front() != c)
      return false;
    text.remove_prefix(1);
    return true;
  }

  /// A string without its quotes, which has no escapes.
  bool takeString(std::string_view &value) {
    skipSpace();
    if (text.empty() || (text.front() != '\'' && text.front() != '"'))
      return false;
    size_t end = text.find(text.front(), 1);
    if (end == text.npos)
      return false;
    value = {text.data() + 1, end - 1};
    text.remove_prefix(end + 1);
    return true;
  }

  /// A value up to the comma or bracket behind it, with all that is in its own
  /// brackets. Empty if there is none.
  std::string_view takeValue() {
    skipSpace();
    size_t end = 0;
    int depth = 0;
    for (; end < text.size(); ++end) {
      char c = text[end];
      if (depth == 0 && (c == ',' || c == '}'))
        break;
      depth += (c == '(' || c == '[' || c == '{') -
               (c == ')' || c == ']' || c == '}');
    }
    std::string_view value = {text.data(), end};
    text.remove_prefix(end);
    return value;
  }

private:
  void skipSpace() {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\n'))
      text.remove_prefix(1);
  }

  std::string_view text;
};

/// What the dictionary says, as it is written.
struct Dictionary {
  std::string_view descr, shape;

  bool read(std::string_view text) {
    Reader reader(text);
    if (!reader.take('{'))
      return false;
    while (!reader.take('}')) {
      std::string_view key, word;
      if (!reader.takeString(key) || !reader.take(':'))
        return false;
      std::string_view value =
          reader.takeString(word) ? word : reader.takeValue();
      if (value.empty())
        return false;
      if (key == "descr")
        descr = value;
      if (key == "shape")
        shape = value;
      reader.take(',');
    }
    return !descr.empty() && !shape.empty();
  }
};

struct NumpyType {
  std::string_view descr;
  TokenType type;
};
} // namespace

/// The upper half of u64 is below zero here, so in no vocabulary either.
static constexpr NumpyType kTypes[] = {
    {"|u1", TokenType::U8},  {"|i1", TokenType::I8},  {"<u2", TokenType::U16},
    {"<i2", TokenType::I16}, {"<u4", TokenType::U32}, {"<i4", TokenType::I32},
    {"<i8", TokenType::I64}, {"<u8", TokenType::I64}};

/// The one number of "(40,)"; false for any other shape.
static bool readLength(std::string_view shape, int64_t &length) {
  Reader reader(shape);
  if (!reader.take('('))
    return false;
  std::string_view digits = reader.takeValue();
  length = 0;
  for (char c : digits)
    if (c < '0' || c > '9' || __builtin_mul_overflow(length, 10, &length) ||
        __builtin_add_overflow(length, c - '0', &length))
      return false;
  return !digits.empty() && reader.take(',') && reader.take(')');
}

/// The type and number of what follows the header, which ends at byte `end`.
static bool readDictionary(const PlainFile &file, std::string_view text,
                           int64_t end, TokenRange &range, Error &error) {
  Dictionary dictionary;
  if (!dictionary.read(text))
    return error.set("'%s' has a header of NumPy without descr and shape",
                     file.path);
  auto shown = [](std::string_view text) {
    return int(std::min<size_t>(text.size(), 80));
  };
  std::string_view descr = dictionary.descr, shape = dictionary.shape;
  const NumpyType *type =
      std::find_if(std::begin(kTypes), std::end(kTypes),
                   [&](const NumpyType &t) { return t.descr == descr; });
  if (type == std::end(kTypes))
    return error.set("'%s' is a NumPy array of type '%.*s', but tokens need "
                     "integers, little-endian, as numpy.save writes an array "
                     "of type uint16",
                     file.path, shown(descr), descr.data());
  int64_t length = 0, bytes = 0;
  if (!readLength(shape, length))
    return error.set("'%s' is a NumPy array of shape %.*s, but tokens need one "
                     "dimension, as array.reshape(-1) has",
                     file.path, shown(shape), shape.data());
  if (__builtin_mul_overflow(length, bytesOf(type->type), &bytes) ||
      bytes != file.size - end)
    return error.set("'%s' needs %" PRId64 " tokens of type %s behind a header "
                     "of %" PRId64 " bytes, but has %" PRId64 " bytes there",
                     file.path, length, nameOf(type->type), end,
                     file.size - end);
  range = {type->type, end, length};
  return true;
}

bool reprise::runtime::readNumpyHeader(const PlainFile &file, TokenRange &range,
                                       Error &error) {
  // Magic, version, and at most four bytes of size.
  unsigned char start[12] = {};
  int64_t here = std::min<int64_t>(file.size, sizeof(start));
  if (!file.read(0, here, start, error))
    return false;
  // In the middle of the magic it is none, and no file gets here.
  int major = start[6];
  int64_t shortest = here > 6 && major > 1 ? 12 : 10;
  if (here < shortest)
    return error.set("'%s' is cut off: a NumPy array has a header of %" PRId64
                     " bytes and more, but the file has %" PRId64,
                     file.path, shortest, file.size);
  int64_t begin = major == 1 ? 10 : 12, size = start[8] | start[9] << 8;
  if (major > 1)
    size |= int64_t(start[10]) << 16 | int64_t(start[11]) << 24;
  if (major < 1 || major > 3)
    return error.set("'%s' needs to be of NumPy's version 1, 2 or 3, but got "
                     "version %d",
                     file.path, major);
  if (size > kLongest || begin + size > file.size)
    return error.set("'%s' is truncated, or no NumPy array: its header needs "
                     "%" PRId64 " bytes in a file of %" PRId64,
                     file.path, size, file.size);
  List<char> text;
  if (!text.resize(size_t(size)))
    return error.set("no memory left for the header of '%s'", file.path);
  return file.read(begin, size, text.begin(), error) &&
         readDictionary(file, {text.begin(), text.size()}, begin + size, range,
                        error);
}
