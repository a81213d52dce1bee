//===- RawJSON.cpp - Where the members of an object are ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Support/RawJSON.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace reprise;

/// The quote that ends the string at `begin`; behind `text` if none does.
static size_t findStringEnd(StringRef text, size_t begin) {
  size_t i = begin + 1;
  for (; i < text.size() && text[i] != '"'; ++i)
    i += text[i] == '\\';
  return i;
}

/// The end of the string, number, word or bracketed value at `begin`.
static size_t findValueEnd(StringRef text, size_t begin) {
  int depth = 0;
  for (size_t i = begin; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"')
      i = findStringEnd(text, i);
    else if (c == '{' || c == '[')
      ++depth;
    else if (c == '}' || c == ']') {
      if (depth == 0)
        return i;
      --depth;
    } else if (depth == 0 && (c == ',' || c == ':'))
      return i;
  }
  return text.size();
}

SmallVector<RawMember> reprise::findMembers(StringRef text) {
  SmallVector<RawMember> members;
  size_t at = text.find('{') + 1;
  while (at < text.size()) {
    size_t colon = findValueEnd(text, at);
    StringRef key = text.slice(at, colon).trim();
    if (colon >= text.size() || text[colon] != ':' || key.size() < 2)
      break;
    size_t end = findValueEnd(text, colon + 1);
    members.push_back(
        {key.drop_front().drop_back(), text.slice(colon + 1, end).trim()});
    at = end + 1;
  }
  return members;
}

const char *reprise::findLevelTooMany(StringRef text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"')
      i = findStringEnd(text, i);
    else if (c == '}' || c == ']')
      --depth;
    else if ((c == '{' || c == '[') && ++depth > kMostLevels)
      return text.data() + i;
  }
  return nullptr;
}

/// What JSON has in place of a number that strtod reads; empty if it is one.
static StringRef explainNumber(StringRef number) {
  if (number.starts_with("+"))
    return "JSON has no sign before a positive number";
  number.consume_front("-");
  if (number.starts_with("."))
    return "JSON has a digit before the point";
  if (number.size() > 1 && number[0] == '0' && isDigit(number[1]))
    return "JSON has no 0 before other digits";
  size_t behind = number.find('.') + 1;
  if (behind > 0 && (behind == number.size() || !isDigit(number[behind])))
    return "JSON has a digit behind the point";
  return "";
}

OddNumber reprise::findOddNumber(StringRef text) {
  auto isPart = [](char c) {
    return isAlnum(c) || StringRef("+-.").contains(c);
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"')
      i = findStringEnd(text, i);
    else if (isPart(text[i])) {
      StringRef word = text.drop_front(i).take_while(isPart);
      if (StringRef why = explainNumber(word); !why.empty())
        return {word, why};
      i += word.size() - 1;
    }
  }
  return {};
}
