//===- MegatronIndex.h - Where a data set's sequences lie -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DATA_MEGATRONINDEX_H
#define REPRISE_RUNTIME_DATA_MEGATRONINDEX_H

#include "TokenType.h"
#include "runtime/base/MappedFile.h"
#include "runtime/base/PlainFile.h"

namespace reprise::runtime {

/// The .idx file of a Megatron-LM data set, which says where in its .bin file
/// each sequence lies. A view: the file must stay mapped.
///
/// Layout (megatron/core/datasets/indexed_dataset.py), without any padding:
///
///   MMIDIDX\0\0   u64 version = 1   u8 token type
///   u64 S, sequences   u64 D, document boundaries
///   i32[S] tokens of each sequence   i64[S] its first byte in the .bin file
///   i64[D] the sequence at which each document begins, and S
///   i8[S]  modes; only of multimodal data sets
class MegatronIndex {
public:
  /// Checks all that the file says: that it is whole, that sequences lie in
  /// `tokens`, and that the documents follow each other. (But not whether
  /// sequences share bytes.)
  bool read(const MappedFile &index, const PlainFile &tokens, Error &error);

  TokenType type() const { return tokenType; }
  int64_t numSequences() const { return sequences; }
  /// How many tokens the sequence has, and its first byte in the .bin file.
  int64_t length(int64_t sequence) const {
    return index.at<int32_t>(lengthsAt + 4 * sequence);
  }
  int64_t offset(int64_t sequence) const {
    return index.at<int64_t>(offsetsAt + 8 * sequence);
  }

private:
  bool readHeader(Error &error);
  bool checkSequences(const PlainFile &tokens, Error &error) const;
  bool checkDocuments(Error &error) const;
  bool checkModes(Error &error) const;

  MappedFile index;
  TokenType tokenType = TokenType::U16;
  int64_t sequences = 0, boundaries = 0;
  int64_t lengthsAt = 0, offsetsAt = 0, boundariesAt = 0, modesAt = 0;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DATA_MEGATRONINDEX_H
