//===- PreTokenizer.cpp - Where text is cut before it is merged -----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PreTokenizer.h"

using namespace reprise::runtime;

namespace {
struct Expression {
  std::string_view text;
  SplitKind kind;
};
} // namespace

static constexpr Expression kExpressions[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+)"
     R"(|\s+(?!\S)|\s+)",
     SplitKind::Gpt2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
     R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     SplitKind::Llama3},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
     R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     SplitKind::Qwen2}};

bool reprise::runtime::findSplitKind(std::string_view expression,
                                     SplitKind &kind) {
  for (const Expression &known : kExpressions)
    if (known.text == expression) {
      kind = known.kind;
      return true;
    }
  return false;
}

/// As many characters as there are.
static constexpr int64_t kAny = INT64_MAX;

/// The bytes of the contraction that begins at the apostrophe `at`, or 0. If
/// cases are alike, so are "s" and the long s, U+017F, which folds to it.
static int contractionLength(const unsigned char *at, const unsigned char *end,
                             bool ignoreCase) {
  unsigned char fold = ignoreCase ? 0x20 : 0;
  auto letter = [&](int i) -> char {
    return end - at > i ? char(at[i] | fold) : '\0';
  };
  auto isAsciiLetter = [&](int i) {
    return end - at > i && ((at[i] | 0x20) >= 'a' && (at[i] | 0x20) <= 'z');
  };
  if (ignoreCase && end - at >= 3 && at[1] == 0xC5 && at[2] == 0xBF)
    return 3;
  if (!isAsciiLetter(1))
    return 0;
  char first = letter(1);
  if (first == 's' || first == 't' || first == 'm' || first == 'd')
    return 2;
  if (!isAsciiLetter(2))
    return 0;
  char second = letter(2);
  bool isPair = (first == 'r' && second == 'e') ||
                (first == 'v' && second == 'e') ||
                (first == 'l' && second == 'l');
  return isPair ? 3 : 0;
}

/// The class of the character at `at`, and its bytes; of the end, 0 and 0.
uint8_t PieceScanner::classAt(const unsigned char *at, const unsigned char *end,
                              int &length) const {
  if (at == end) {
    length = 0;
    return 0;
  }
  return table.classOf(decodeUtf8(at, length));
}

/// Behind at most `most` characters that have a bit of `all` (if that is not 0)
/// and none of `none`.
const unsigned char *PieceScanner::skip(const unsigned char *at,
                                        const unsigned char *end, uint8_t all,
                                        uint8_t none, int64_t most) const {
  for (; most > 0 && at != end; --most) {
    int length;
    uint8_t bits = classAt(at, end, length);
    if ((all && !(bits & all)) || bits & none)
      break;
    at += length;
  }
  return at;
}

/// \s+(?!\S)|\s+ : white space up to the end of the text; otherwise without its
/// last character, which belongs to what follows, unless it is the only one.
const unsigned char *PieceScanner::spaceEnd(const unsigned char *begin,
                                            const unsigned char *end) const {
  const unsigned char *spaces = skip(begin, end, kSpace, 0, kAny);
  if (spaces == end)
    return end;
  const unsigned char *last = spaces - 1;
  while ((*last & 0xC0) == 0x80)
    --last;
  return last == begin ? spaces : last;
}

static constexpr uint8_t kWord = kLetter | kNumber | kSpace;

const unsigned char *PieceScanner::gpt2End(const unsigned char *begin,
                                           const unsigned char *end) const {
  if (*begin == '\'')
    if (int length = contractionLength(begin, end, /*ignoreCase=*/false))
      return begin + length;
  int length;
  const unsigned char *body = begin + (*begin == ' ');
  uint8_t bits = classAt(body, end, length);
  if (body == end || bits & kSpace)
    return spaceEnd(begin, end);
  if (bits & kLetter)
    return skip(body, end, kLetter, 0, kAny);
  if (bits & kNumber)
    return skip(body, end, kNumber, 0, kAny);
  return skip(body, end, 0, kWord, kAny);
}

const unsigned char *PieceScanner::cl100kEnd(const unsigned char *begin,
                                             const unsigned char *end) const {
  if (*begin == '\'')
    if (int length = contractionLength(begin, end, /*ignoreCase=*/true))
      return begin + length;
  int length, nextLength;
  uint8_t bits = classAt(begin, end, length);
  const unsigned char *next = begin + length;
  uint8_t nextBits = classAt(next, end, nextLength);
  if (bits & kLetter || (!(bits & (kNewline | kNumber)) && nextBits & kLetter))
    return skip(next, end, kLetter, 0, kAny);
  if (bits & kNumber)
    return skip(begin, end, kNumber, 0, kind == SplitKind::Llama3 ? 3 : 1);
  bool isOther = !(bits & kWord);
  if (*begin == ' ')
    isOther = next != end && !(nextBits & kWord);
  if (isOther)
    return skip(skip(next, end, 0, kWord, kAny), end, kNewline, 0, kAny);
  // \s*[\r\n]+ goes up to the last newline of the white space.
  const unsigned char *spaces = skip(begin, end, kSpace, 0, kAny);
  for (const unsigned char *last = spaces; last != begin; --last)
    if (last[-1] == '\n' || last[-1] == '\r')
      return last;
  return spaceEnd(begin, end);
}

const unsigned char *PieceScanner::pieceEnd(const unsigned char *begin,
                                            const unsigned char *end) const {
  switch (kind) {
  case SplitKind::Gpt2:
    return gpt2End(begin, end);
  case SplitKind::Llama3:
  case SplitKind::Qwen2:
    return cl100kEnd(begin, end);
  case SplitKind::Whole:
    break;
  }
  return end;
}

const unsigned char *PieceScanner::safeCut(const unsigned char *begin,
                                           const unsigned char *end) const {
  if (kind == SplitKind::Whole)
    return end;
  for (const unsigned char *at = begin; at != end; ++at) {
    at = static_cast<const unsigned char *>(memchr(at, '\n', size_t(end - at)));
    if (!at || at + 1 == end)
      return end;
    if (at[1] > ' ' && at[1] < 0x7F)
      return at + 1;
  }
  return end;
}
