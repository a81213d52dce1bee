//===- DataMark.cpp - What a run was trained on ---------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DataMark.h"

#include "runtime/base/Crc32c.h"

#include <algorithm>
#include <climits>

using namespace reprise::runtime;

static constexpr int64_t kBlocks = 16, kBlockTokens = 4096;

int64_t reprise::runtime::checksumOf(const char *path) {
  MappedFile file;
  Error ignored;
  if (!file.map(path, ignored))
    return DataMark::kUnknown;
  int64_t crc = crc32c(file.data, size_t(file.size));
  file.unmap();
  return crc;
}

DataMark reprise::runtime::markOf(const TokenStream &stream,
                                  const Tokenizer *tokenizer) {
  DataMark mark;
  mark.tokens = stream.size();
  mark.isText = stream.isText();
  mark.tokenizer = tokenizer ? checksumOf(tokenizer->path()) : DataMark::kNone;
  int64_t count = std::min(kBlockTokens, stream.size());
  if (count == 0)
    return mark;
  uint32_t crc = 0;
  int32_t tokens[kBlockTokens] = {};
  for (int64_t block = 0; block < kBlocks; ++block) {
    // Tokens that no model has are refused when a step needs them.
    Error ignored;
    stream.read((stream.size() - count) * block / (kBlocks - 1), count, INT_MAX,
                tokens, ignored);
    crc = crc32c(tokens, size_t(count) * sizeof(int32_t), crc);
  }
  mark.crc = crc;
  return mark;
}
