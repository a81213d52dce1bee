//===- Unicode.cpp - Characters, and their normal form --------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Unicode.h"

#include "Json.h"

#include <algorithm>
#include <iterator>

using namespace reprise::runtime;

namespace {
struct CharRange {
  uint32_t first, last;
  uint8_t value = 0;
};
/// `code` decomposes to `first` and `second`; that is 0 if there is only one.
struct Composition {
  uint32_t code, first, second;
};
} // namespace

#include "UnicodeTables.inc"

static constexpr uint32_t kNumCharacters = 0x110000;

//===----------------------------------------------------------------------===//
// UTF-8
//===----------------------------------------------------------------------===//

int64_t reprise::runtime::findInvalidUtf8(const unsigned char *text,
                                          int64_t size) {
  int64_t at = 0;
  while (at < size) {
    uint64_t eight;
    while (at + 8 <= size &&
           (memcpy(&eight, text + at, 8), (eight & 0x8080808080808080u) == 0))
      at += 8;
    if (at == size)
      break;
    int length = utf8Length(reinterpret_cast<const char *>(text + at),
                            size_t(size - at));
    if (!length)
      return at;
    at += length;
  }
  return size;
}

int reprise::runtime::encodeUtf8(uint32_t c, unsigned char *text) {
  if (c < 0x80) {
    text[0] = uint8_t(c);
    return 1;
  }
  int length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  for (int i = length - 1; i > 0; --i, c >>= 6)
    text[i] = uint8_t(0x80 | (c & 0x3F));
  text[0] = uint8_t((0xF00 >> length) | c);
  return length;
}

//===----------------------------------------------------------------------===//
// Classes
//===----------------------------------------------------------------------===//

// Hangul syllables compose by arithmetic (The Unicode Standard, section 3.12):
// of a leading consonant, a vowel and perhaps a trailing consonant.
static constexpr uint32_t kHangul = 0xAC00, kLeading = 0x1100, kVowel = 0x1161,
                          kTrailing = 0x11A7; ///< Trailing 0 is none.
static constexpr uint32_t kNumLeading = 19, kNumVowels = 21, kNumTrailing = 28;
static constexpr uint32_t kNumHangul = kNumLeading * kNumVowels * kNumTrailing;

/// Whether the pair's parts come before these in the order of `byParts`.
static bool isBefore(const Composition &pair, uint32_t first, uint32_t second) {
  return pair.second != second ? pair.second < second : pair.first < first;
}

bool CharTable::build(Error &error) {
  if (!classes)
    classes = static_cast<uint8_t *>(calloc(kNumCharacters, 1));
  if (!classes)
    return error.set("no memory left for a table of %u characters",
                     kNumCharacters);
  auto add = [&](uint32_t first, uint32_t last, CharClass bit) {
    for (uint32_t c = first; c <= last; ++c)
      classes[c] |= bit;
  };
  for (const CharRange &range : kLetters)
    add(range.first, range.last, kLetter);
  for (const CharRange &range : kNumbers)
    add(range.first, range.last, kNumber);
  for (const CharRange &range : kSpaces)
    add(range.first, range.last, kSpace);
  add('\n', '\n', kNewline);
  add('\r', '\r', kNewline);
  for (const CharRange &range : kCombining)
    add(range.first, range.last, kUnstable);
  for (const Composition &pair : kCompositions)
    add(pair.second, pair.second, kUnstable);
  for (const Composition &pair : kDecompositions)
    add(pair.code, pair.code, kUnstable);
  add(kVowel, kVowel + kNumVowels - 1, kUnstable);
  add(kTrailing + 1, kTrailing + kNumTrailing - 1, kUnstable);

  byParts.clear();
  for (size_t i = 0; i < std::size(kCompositions); ++i)
    if (!byParts.push(uint16_t(i)))
      return error.set("no memory left for a table of %zu characters",
                       std::size(kCompositions));
  std::sort(byParts.begin(), byParts.end(), [](uint16_t a, uint16_t b) {
    return isBefore(kCompositions[a], kCompositions[b].first,
                    kCompositions[b].second);
  });
  return true;
}

//===----------------------------------------------------------------------===//
// Normalization
//===----------------------------------------------------------------------===//

namespace {

/// A character on its way through normalization.
struct Part {
  uint32_t code;
  uint32_t place; ///< Where it stood; keeps the sort stable.
  uint8_t combiningClass;
};

/// The text between two stable characters.
class Composer {
public:
  explicit Composer(const List<uint16_t> &byParts) : byParts(byParts) {}

  /// Appends the normal form of `text` to `result`.
  bool run(const unsigned char *text, int64_t size,
           List<unsigned char> &result) {
    parts.clear();
    for (int64_t at = 0; at < size;) {
      int length;
      if (!decompose(decodeUtf8(text + at, length)))
        return false;
      at += length;
    }
    reorder();
    compose();
    for (const Part &part : parts) {
      unsigned char bytes[4];
      if (!result.append(bytes, size_t(encodeUtf8(part.code, bytes))))
        return false;
    }
    return true;
  }

private:
  bool decompose(uint32_t code);
  void reorder();
  void compose();
  uint32_t composed(uint32_t first, uint32_t second) const;

  const List<uint16_t> &byParts;
  List<Part> parts;
};

} // namespace

template <size_t n>
static const Composition *findCode(const Composition (&table)[n],
                                   uint32_t code) {
  const Composition *found = std::lower_bound(
      table, table + n, code,
      [](const Composition &pair, uint32_t code) { return pair.code < code; });
  return found != table + n && found->code == code ? found : nullptr;
}

static uint8_t combiningClassOf(uint32_t code) {
  const CharRange *end = std::end(kCombining);
  const CharRange *found = std::lower_bound(
      std::begin(kCombining), end, code,
      [](const CharRange &range, uint32_t code) { return range.last < code; });
  return found != end && found->first <= code ? found->value : 0;
}

bool Composer::decompose(uint32_t code) {
  if (code - kHangul < kNumHangul) {
    uint32_t index = code - kHangul, trailing = index % kNumTrailing;
    index /= kNumTrailing;
    return decompose(kLeading + index / kNumVowels) &&
           decompose(kVowel + index % kNumVowels) &&
           (trailing == 0 || decompose(kTrailing + trailing));
  }
  const Composition *pair = findCode(kCompositions, code);
  if (!pair)
    pair = findCode(kDecompositions, code);
  if (pair)
    return decompose(pair->first) && (!pair->second || decompose(pair->second));
  return parts.push({code, uint32_t(parts.size()), combiningClassOf(code)});
}

/// Sorts what stands between two characters of class 0 by class.
void Composer::reorder() {
  for (Part *begin = parts.begin(); begin != parts.end();) {
    auto isStarter = [](const Part &part) { return !part.combiningClass; };
    Part *end = std::find_if(begin, parts.end(), isStarter);
    std::sort(begin, end, [](const Part &a, const Part &b) {
      return a.combiningClass != b.combiningClass
                 ? a.combiningClass < b.combiningClass
                 : a.place < b.place;
    });
    begin = end == parts.end() ? end : end + 1;
  }
}

/// What the two compose to, or 0.
uint32_t Composer::composed(uint32_t first, uint32_t second) const {
  uint32_t leading = first - kLeading, vowel = second - kVowel;
  if (leading < kNumLeading && vowel < kNumVowels)
    return kHangul + (leading * kNumVowels + vowel) * kNumTrailing;
  uint32_t syllable = first - kHangul, trailing = second - kTrailing;
  if (syllable < kNumHangul && syllable % kNumTrailing == 0 && trailing != 0 &&
      trailing < kNumTrailing)
    return first + trailing;
  const uint16_t *found = std::lower_bound(
      byParts.begin(), byParts.end(), first, [&](uint16_t pair, uint32_t) {
        return isBefore(kCompositions[pair], first, second);
      });
  if (found == byParts.end())
    return 0;
  const Composition &pair = kCompositions[*found];
  return pair.first == first && pair.second == second ? pair.code : 0;
}

/// Each character joins the last one of class 0 that it composes with, unless
/// one between them has its class or a higher one.
void Composer::compose() {
  size_t kept = 0;
  Part *starter = nullptr;
  for (const Part &part : parts) {
    if (starter) {
      const Part &last = parts[kept - 1];
      bool isBlocked =
          &last != starter && last.combiningClass >= part.combiningClass;
      uint32_t code = isBlocked ? 0 : composed(starter->code, part.code);
      if (code) {
        starter->code = code;
        continue;
      }
    }
    parts[kept] = part;
    if (!parts[kept].combiningClass)
      starter = &parts[kept];
    ++kept;
  }
  parts.resize(kept);
}

bool CharTable::isStable(const unsigned char *text, int64_t size) const {
  for (int64_t at = 0; at < size;) {
    int length;
    if (classes[decodeUtf8(text + at, length)] & kUnstable)
      return false;
    at += length;
  }
  return true;
}

bool CharTable::normalize(const unsigned char *text, int64_t size,
                          List<unsigned char> &result) const {
  Composer composer(byParts);
  int64_t copied = 0, lastStable = 0;
  for (int64_t at = 0; at < size;) {
    int length;
    if (!(classes[decodeUtf8(text + at, length)] & kUnstable)) {
      lastStable = at;
      at += length;
      continue;
    }
    do
      at += length;
    while (at < size && classes[decodeUtf8(text + at, length)] & kUnstable);
    if (!result.append(text + copied, size_t(lastStable - copied)) ||
        !composer.run(text + lastStable, at - lastStable, result))
      return false;
    copied = lastStable = at;
  }
  return result.append(text + copied, size_t(size - copied));
}
