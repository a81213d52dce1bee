//===- FileKind.cpp - What a file is by its first bytes -------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FileKind.h"

#include <algorithm>
#include <cstring>

using namespace reprise::runtime;

static constexpr char kUnpack[] = "; unpack it first";
static constexpr char kUTF8[] = "; convert it to UTF-8, as iconv does";

/// Bytes as they are, zeros included.
template <size_t size>
static constexpr std::string_view bytes(const char (&text)[size]) {
  return {text, size - 1};
}

//===----------------------------------------------------------------------===//
// What confirms weak signs
//===----------------------------------------------------------------------===//

static uint8_t byteAt(std::string_view text, size_t i) {
  return i < text.size() ? uint8_t(text[i]) : 0;
}

/// Of gzip's flags three are reserved; then there are a time, how hard it tried
/// (0, 2 or 4), and the system, of which there are 14 and "unknown".
static bool isGzip(std::string_view begin, char) {
  constexpr uint8_t kReserved = 0xE0, kLastSystem = 13, kUnknown = 255;
  uint8_t effort = byteAt(begin, 8), system = byteAt(begin, 9);
  return begin.size() >= 10 && !(byteAt(begin, 3) & kReserved) &&
         (effort == 0 || effort == 2 || effort == 4) &&
         (system <= kLastSystem || system == kUnknown);
}

/// Behind the protocol an object begins, or from the fourth on a frame, and the
/// last opcode stops.
static bool isPickle(std::string_view begin, char last) {
  // Of lists, maps, tuples and sets; numbers; words; globals; a mark.
  constexpr std::string_view kFirst = "]})NJKMGTUBCXc("
                                      "\x88\x89\x8A\x8B\x8C\x8D\x8E\x8F\x95"
                                      "\x96";
  return begin.size() > 2 && last == '.' &&
         memchr(kFirst.data(), begin[2], kFirst.size());
}

/// Text in units of `width` bytes behind a mark of order: characters that
/// Unicode has, ASCII among them, and none for control but those of lines.
template <int width, bool isBig>
static bool isWideText(std::string_view begin, char) {
  constexpr uint32_t kMost = 0x10FFFF, kHigh = 0xD800, kLow = 0xDC00,
                     kEnd = 0xE000;
  bool hasASCII = false;
  uint32_t before = 0;
  for (size_t i = width; i + width <= begin.size(); i += width) {
    uint32_t unit = 0;
    for (size_t k = 0; k < width; ++k)
      unit |= uint32_t(byteAt(begin, i + k)) << 8 * (isBig ? width - 1 - k : k);
    bool isLow = unit >= kLow && unit < kEnd;
    bool isBehindHigh = before >= kHigh && before < kLow;
    bool isControl = unit < ' ' && !(unit >= '\t' && unit <= '\r');
    if (unit > kMost || isControl || isLow != isBehindHigh)
      return false;
    hasASCII |= unit < 0x7F;
    before = unit;
  }
  return hasASCII;
}

//===----------------------------------------------------------------------===//
// Kinds
//===----------------------------------------------------------------------===//

/// Of two that begin alike the longer one stands first.
static constexpr FileKind kKinds[] = {
    {bytes("version https://git-lfs"), 0,
     "a Git LFS pointer, not the file itself", "; git lfs pull fetches that",
     false},
    {bytes("\x93NUMPY"), 0, "a NumPy array", "", false},
    {bytes("PK\x03\x04"), 0, "a zip file, as PyTorch and NumPy (.npz) write",
     "", false},
    {bytes("PK\x05\x06"), 0, "an empty zip file", "", false},
    {bytes("GGUF"), 0, "a GGUF file", "", false},
    {bytes("\x89HDF\r\n\x1a\n"), 0, "an HDF5 file", "", false},
    {bytes("PAR1"), 0, "a Parquet file", "", false},
    {bytes("ARROW1\0\0"), 0, "an Arrow file", "", false},
    {bytes("\xFF\xFF\xFF\xFF"), 0, "an Arrow stream", "", true},
    {bytes("Obj\x01"), 0, "an Avro file", "", false},
    {bytes("MMIDIDX\0\0"), 0, "the index of a Megatron data set",
     "; its name needs to end in .idx", false},
    {bytes("TNTIDX\0\0"), 0, "the index of a fairseq data set", "", false},
    {bytes("LITPKDS"), 0, "a packed data set of LitGPT", "", false},
    {bytes("SQLite format 3\0"), 0, "an SQLite database", "", false},
    {bytes("\x1F\x8B\x08"), 0, "compressed with gzip", kUnpack, true, isGzip},
    {bytes("\x28\xB5\x2F\xFD"), 0, "compressed with zstd", kUnpack, false},
    {bytes("\xFD"
           "7zXZ\0"),
     0, "compressed with xz", kUnpack, false},
    {bytes("1AY&SY"), 4, "compressed with bzip2", kUnpack, false},
    {bytes("\x04\x22\x4D\x18"), 0, "compressed with lz4", kUnpack, false},
    {bytes("7z\xBC\xAF\x27\x1C"), 0, "a 7z archive", kUnpack, false},
    {bytes("Rar!\x1A\x07"), 0, "a RAR archive", kUnpack, false},
    {bytes("ustar"), 257, "a tar archive", kUnpack, false},
    {bytes("%PDF-"), 0, "a PDF document", "", false},
    {bytes("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"), 0, "a Microsoft document", "",
     false},
    {bytes("\x89PNG\r\n\x1A\n"), 0, "a PNG picture", "", false},
    {bytes("\xFF\xD8\xFF"), 0, "a JPEG picture", "", true},
    {bytes("\x7F"
           "ELF"),
     0, "a program or library (ELF)", "", false},
    // Of a library for several processors the next byte is a number, too.
    {bytes("\xCA\xFE\xBA\xBE\0\0\0"), 0, "a class of Java, or a program", "",
     false},
    {bytes("\xFF\xFE\0\0"), 0, "text in UTF-32", kUTF8, true,
     isWideText<4, false>},
    {bytes("\0\0\xFE\xFF"), 0, "text in UTF-32", kUTF8, true,
     isWideText<4, true>},
    {bytes("\xFF\xFE"), 0, "text in UTF-16", kUTF8, true, isWideText<2, false>},
    {bytes("\xFE\xFF"), 0, "text in UTF-16", kUTF8, true, isWideText<2, true>},
    {bytes("\x80\x02\x8A\x0A\x6C\xFC\x9C\x46\xF9\x20"), 0,
     "a file of PyTorch before version 1.6", "", false},
    // Protocols 2 to 5.
    {bytes("\x80\x02"), 0, "pickled Python objects", "", true, isPickle},
    {bytes("\x80\x03"), 0, "pickled Python objects", "", true, isPickle},
    {bytes("\x80\x04"), 0, "pickled Python objects", "", true, isPickle},
    {bytes("\x80\x05"), 0, "pickled Python objects", "", true, isPickle}};

/// It has no magic bytes, but a length and a header in JSON.
static constexpr FileKind kSafetensors = {
    {}, 0, "a safetensors file", "", false};

static bool isSafetensors(std::string_view begin, int64_t fileSize) {
  uint64_t length = 0;
  if (begin.size() < sizeof(length) + 2)
    return false;
  memcpy(&length, begin.data(), sizeof(length));
  char first = begin[sizeof(length)], second = begin[sizeof(length) + 1];
  return int64_t(sizeof(length)) + 2 <= fileSize &&
         length <= uint64_t(fileSize) - sizeof(length) && first == '{' &&
         (second == '"' || second == '}' || second == ' ');
}

/// The first kind whose magic bytes are there and which `isSure`.
template <typename Sure>
static const FileKind *findKind(std::string_view begin, int64_t fileSize,
                                Sure isSure) {
  if (isSafetensors(begin, fileSize))
    return &kSafetensors;
  for (const FileKind &kind : kKinds) {
    size_t end = size_t(kind.offset) + kind.magic.size();
    if (begin.size() >= end &&
        !memcmp(begin.data() + kind.offset, kind.magic.data(),
                kind.magic.size()) &&
        isSure(kind))
      return &kind;
  }
  return nullptr;
}

const FileKind *reprise::runtime::findKind(std::string_view begin,
                                           int64_t fileSize) {
  return ::findKind(begin, fileSize, [](const FileKind &) { return true; });
}

const FileKind *reprise::runtime::findKindOfNumbers(std::string_view begin,
                                                    int64_t fileSize,
                                                    char last) {
  begin = {begin.data(), std::min(begin.size(), kBytesOfKind)};
  return ::findKind(begin, fileSize, [&](const FileKind &kind) {
    return !kind.isWeak || (kind.confirms && kind.confirms(begin, last));
  });
}

bool FileKind::refuse(const char *path, const char *why, Error &error) const {
  return error.set("'%s' is %s%s", path, what, *advice ? advice : why);
}
