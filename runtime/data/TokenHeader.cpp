//===- TokenHeader.cpp - Files that say how their tokens lie --------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenHeader.h"

#include "NumpyHeader.h"

#include <algorithm>
#include <cstring>

using namespace reprise::runtime;

namespace {
/// A header of 256 words that begins with a magic number, a version and the
/// number of tokens (llm.c: llmc/dataloader.h, train_gpt2.cu; NeMo Automodel:
/// nanogpt_dataset.py).
struct WordsKind {
  int32_t magic, version;
  const char *program;
  const char *what;
  std::optional<TokenType> type; ///< None if it has no tokens to train on.
  bool saysBytes = false;        ///< The fourth word is the bytes of a token.
};
} // namespace

static constexpr WordsKind kKinds[] = {
    {20240520, 1, "llm.c", "tokens", TokenType::U16},
    {20240801, 7, "llm.c", "tokens", TokenType::U32},
    {278895051, 1, "NeMo Automodel", "tokens", TokenType::U16, true},
    {20240522, 0, "llm.c", "multiple-choice questions", std::nullopt},
    {20240326, 0, "llm.c", "the parameters of a model", std::nullopt}};
static constexpr int64_t kHeaderBytes = 256 * 4;

/// The header's first words are `header`.
static bool readWords(const PlainFile &file, const WordsKind &kind,
                      const int32_t *header, TokenRange &range, Error &error) {
  if (!kind.type)
    return error.set("'%s' is a file of %s with %s, not with tokens", file.path,
                     kind.program, kind.what);
  if (file.size < kHeaderBytes)
    return error.set("'%s' is truncated: %s's header needs %" PRId64
                     " bytes, but got %" PRId64,
                     file.path, kind.program, kHeaderBytes, file.size);
  if (header[1] != kind.version)
    return error.set("'%s' has %s's magic number %d, which needs version "
                     "%d, but got version %d",
                     file.path, kind.program, kind.magic, kind.version,
                     header[1]);
  range = {*kind.type, kHeaderBytes, header[2]};
  if (kind.saysBytes && header[3] != 2 && header[3] != 4)
    return error.set("'%s' needs 2 or 4 bytes for a token in %s's header, but "
                     "got %d",
                     file.path, kind.program, header[3]);
  if (kind.saysBytes && header[3] == 4)
    range.type = TokenType::U32;
  if (range.count < 0)
    return error.set("'%s' needs a number of tokens in %s's header, but got "
                     "%" PRId64,
                     file.path, kind.program, range.count);
  int64_t expected = kHeaderBytes + range.count * bytesOf(range.type);
  if (file.size != expected)
    return error.set("'%s' needs %" PRId64 " bytes for a header of %" PRId64
                     " and the %" PRId64
                     " tokens of type %s that it names, but got %" PRId64,
                     file.path, expected, kHeaderBytes, range.count,
                     nameOf(range.type), file.size);
  return true;
}

bool reprise::runtime::readTokenHeader(const PlainFile &file,
                                       std::optional<TokenRange> &range,
                                       Error &error) {
  range.reset();
  int32_t header[4] = {};
  int64_t here = std::min<int64_t>(file.size, sizeof(header));
  if (!file.read(0, here, header, error))
    return false;
  TokenRange found = {};
  if (isNumpy({reinterpret_cast<const char *>(header), size_t(here)})) {
    if (!readNumpyHeader(file, found, error))
      return false;
    range = found;
  }
  for (const WordsKind &kind : kKinds)
    if (file.size >= 4 && header[0] == kind.magic) {
      if (!readWords(file, kind, header, found, error))
        return false;
      range = found;
    }
  return true;
}
