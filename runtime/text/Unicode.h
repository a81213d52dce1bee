//===- Unicode.h - Characters, and their normal form ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TEXT_UNICODE_H
#define REPRISE_RUNTIME_TEXT_UNICODE_H

#include "runtime/base/Error.h"
#include "runtime/base/List.h"

#include <cstdint>

namespace reprise::runtime {

/// The first byte of `text` that is not UTF-8 (RFC 3629: no overlong forms, no
/// surrogates, nothing above U+10FFFF), or `size` if all is.
int64_t findInvalidUtf8(const unsigned char *text, int64_t size);

/// The character at `text`, which is UTF-8, and how many bytes it has.
inline uint32_t decodeUtf8(const unsigned char *text, int &length) {
  unsigned char lead = text[0];
  if (lead < 0x80) {
    length = 1;
    return lead;
  }
  uint32_t second = text[1] & 0x3F;
  if (lead < 0xE0) {
    length = 2;
    return uint32_t(lead & 0x1F) << 6 | second;
  }
  uint32_t third = text[2] & 0x3F;
  if (lead < 0xF0) {
    length = 3;
    return uint32_t(lead & 0x0F) << 12 | second << 6 | third;
  }
  length = 4;
  return uint32_t(lead & 0x07) << 18 | second << 12 | third << 6 |
         uint32_t(text[3] & 0x3F);
}

/// Writes the character as UTF-8 and returns how many bytes it has, at most 4.
int encodeUtf8(uint32_t character, unsigned char *text);

/// What a character is; several bits may be set.
enum CharClass : uint8_t {
  kLetter = 1,  ///< General category L.
  kNumber = 2,  ///< General category N.
  kSpace = 4,   ///< White_Space.
  kNewline = 8, ///< \r or \n.
  /// Not in NFC whatever stands around it, or it may combine with, or trade
  /// places with, what is before it.
  kUnstable = 16,
};

/// The classes of all characters, a byte each, made once from tables of the
/// Unicode Character Database.
class CharTable {
public:
  CharTable() = default;
  CharTable(const CharTable &) = delete;
  CharTable &operator=(const CharTable &) = delete;
  ~CharTable() { free(classes); }

  /// Needs 1.1 MB, and some milliseconds.
  bool build(Error &error);

  uint8_t classOf(uint32_t character) const { return classes[character]; }

  /// Whether no character of this UTF-8 is unstable; then it is in NFC.
  bool isStable(const unsigned char *text, int64_t size) const;

  /// Appends the text in Normalization Form C (Unicode Standard Annex 15) to
  /// `result`. Takes O(n log n); what is stable is copied. False if there is no
  /// memory left.
  bool normalize(const unsigned char *text, int64_t size,
                 List<unsigned char> &result) const;

private:
  uint8_t *classes = nullptr;
  List<uint16_t> byParts; ///< The compositions in the order of their parts.
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TEXT_UNICODE_H
