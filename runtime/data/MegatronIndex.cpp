//===- MegatronIndex.cpp - Where a data set's sequences lie ---------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MegatronIndex.h"

#include <cinttypes>

using namespace reprise::runtime;

static constexpr char kMagic[9] = {'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0};
static constexpr int64_t kHeaderBytes = 34;

bool MegatronIndex::readHeader(Error &error) {
  const char *path = index.path;
  if (index.size < int64_t(sizeof(kMagic)) ||
      memcmp(index.data, kMagic, sizeof(kMagic)) != 0)
    return error.set("'%s' is no index of a Megatron data set: it does not "
                     "begin with MMIDIDX",
                     path);
  if (index.size < kHeaderBytes)
    return error.set("'%s' is truncated: an index needs at least %" PRId64
                     " bytes, but got %" PRId64,
                     path, kHeaderBytes, index.size);
  auto version = index.at<uint64_t>(9);
  if (version != 1)
    return error.set("'%s' needs to be of version 1, but got version %" PRIu64,
                     path, version);
  auto code = index.at<uint8_t>(17);
  if (code < 1 || code > 8)
    return error.set("'%s' needs a token type from 1 to 8, but got %d", path,
                     int(code));
  tokenType = TokenType(code);
  if (bytesOf(tokenType) == 0)
    return error.set("'%s' needs tokens that are integers, but got %s", path,
                     nameOf(tokenType));

  // Below 2^58, the sum of the sizes is below 2^63.
  auto count = index.at<uint64_t>(18), documentCount = index.at<uint64_t>(26);
  if (count >> 58 || documentCount >> 58)
    return error.set(
        "'%s' has %" PRId64 " bytes, which cannot hold the %" PRIu64
        " sequences and %" PRIu64 " document boundaries that it names",
        path, index.size, count, documentCount);
  sequences = int64_t(count);
  boundaries = int64_t(documentCount);
  lengthsAt = kHeaderBytes;
  offsetsAt = lengthsAt + 4 * sequences;
  boundariesAt = offsetsAt + 8 * sequences;
  modesAt = boundariesAt + 8 * boundaries;
  if (index.size == modesAt || index.size == modesAt + sequences)
    return true;
  return error.set("'%s' needs %" PRId64 " bytes for %" PRId64
                   " sequences and %" PRId64
                   " document boundaries, but got %" PRId64,
                   path, modesAt, sequences, boundaries, index.size);
}

bool MegatronIndex::checkSequences(const PlainFile &tokens,
                                   Error &error) const {
  for (int64_t i = 0; i < sequences; ++i) {
    int64_t count = length(i), begin = offset(i);
    if (count < 0)
      return error.set("'%s' has sequence %" PRId64 " with %" PRId64 " tokens",
                       index.path, i, count);
    int64_t bytes = count * bytesOf(tokenType);
    if (begin < 0 || begin > tokens.size || bytes > tokens.size - begin)
      return error.set("'%s' has sequence %" PRId64 " in the %" PRId64
                       " bytes from byte %" PRId64 " on, but '%s' has %" PRId64
                       " bytes",
                       index.path, i, bytes, begin, tokens.path, tokens.size);
  }
  return true;
}

bool MegatronIndex::checkDocuments(Error &error) const {
  if (boundaries == 0)
    return error.set("'%s' needs at least one document boundary, but got none",
                     index.path);
  int64_t last = 0;
  for (int64_t i = 0; i < boundaries; ++i) {
    auto boundary = index.at<int64_t>(boundariesAt + 8 * i);
    if (boundary < last || boundary > sequences || (i == 0 && boundary != 0))
      return error.set("'%s' needs document boundaries that rise from 0 to "
                       "%" PRId64 ", but number %" PRId64 " is %" PRId64
                       " after %" PRId64,
                       index.path, sequences, i, boundary, last);
    last = boundary;
  }
  return last == sequences ||
         error.set("'%s' has %" PRId64 " sequences, but its last document "
                   "ends before sequence %" PRId64,
                   index.path, sequences, last);
}

bool MegatronIndex::checkModes(Error &error) const {
  for (int64_t i = modesAt; i < index.size; ++i)
    if (auto mode = index.at<int8_t>(i))
      return error.set("'%s' has sequence %" PRId64 " of mode %d, but only "
                       "text, mode 0, can be trained on",
                       index.path, i - modesAt, int(mode));
  return true;
}

bool MegatronIndex::read(const MappedFile &file, const PlainFile &tokens,
                         Error &error) {
  index = file;
  return readHeader(error) && checkSequences(tokens, error) &&
         checkDocuments(error) && checkModes(error);
}
