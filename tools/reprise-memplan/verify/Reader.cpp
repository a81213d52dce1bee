//===- Reader.cpp - Fields of objects of JSON -----------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reader.h"

#include <charconv>

using namespace reprise::verify;

int64_t Reader::readInteger(const Json &value, int64_t least, int64_t most,
                            const char *what) {
  int64_t number = 0;
  if (fault || !expect(value, Json::Kind::Number))
    return 0;
  const char *end = value.text.data() + value.text.size();
  auto [rest, code] = std::from_chars(value.text.data(), end, number);
  if (code != std::errc() || rest != end || number < least || number > most) {
    std::string range = most > least ? "between " + std::to_string(least) +
                                           " and " + std::to_string(most)
                                     : "that is " + std::to_string(least);
    fail(value.at, std::string("needs ") + what + " " + range + ", but got " +
                       value.text);
    return 0;
  }
  return number;
}

double Reader::readSeconds(const Json &value) {
  double number = 0;
  if (fault || !expect(value, Json::Kind::Number))
    return 0;
  const char *end = value.text.data() + value.text.size();
  auto [rest, code] = std::from_chars(value.text.data(), end, number);
  if (code != std::errc() || rest != end || !(number >= 0) || number > 1e9) {
    fail(value.at, "needs seconds between 0 and 1e9, but got " + value.text);
    return 0;
  }
  return number;
}

std::string Reader::readText(const Json &value) {
  if (fault || !expect(value, Json::Kind::String))
    return "";
  return value.text;
}

size_t Reader::readWord(const Json &value,
                        const std::vector<std::string> &words) {
  std::string text = readText(value);
  auto found = std::find(words.begin(), words.end(), text);
  if (!fault && found == words.end()) {
    std::string names;
    for (const std::string &word : words)
      names += (names.empty() ? "'" : " or '") + word + "'";
    fail(value.at, "needs " + names + ", but got '" + text + "'");
  }
  return found == words.end() ? 0 : found - words.begin();
}

const std::vector<Json> &Reader::readList(const Json &value) {
  static const std::vector<Json> none;
  if (fault || !expect(value, Json::Kind::Array))
    return none;
  constexpr size_t kMost = 1 << 18;
  if (value.elements.size() > kMost) {
    fail(value.at, "needs a list of at most " + std::to_string(kMost) +
                       ", but got " + std::to_string(value.elements.size()));
    return none;
  }
  return value.elements;
}
