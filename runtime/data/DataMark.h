//===- DataMark.h - What a run was trained on -------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DATA_DATAMARK_H
#define REPRISE_RUNTIME_DATA_DATAMARK_H

#include "TokenStream.h"

namespace reprise::runtime {

/// By what a run that goes on from a checkpoint knows its data again.
struct DataMark {
  /// In a checksum's place.
  static constexpr int64_t kUnknown = -1, kNone = -2;

  int64_t tokens = 0;
  /// Of 16 blocks of tokens spread evenly, the first and the last among them.
  int64_t crc = kUnknown;
  int64_t tokenizer = kUnknown; ///< The checksum of its file.
  bool isText = false;
};

/// `tokenizer` may be null; `stream` may be empty.
DataMark markOf(const TokenStream &stream, const Tokenizer *tokenizer);

/// The CRC-32C of a file; `kUnknown` if it cannot be read.
int64_t checksumOf(const char *path);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DATA_DATAMARK_H
