//===- TokenHeader.h - Files that say how their tokens lie ------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DATA_TOKENHEADER_H
#define REPRISE_RUNTIME_DATA_TOKENHEADER_H

#include "TokenType.h"
#include "runtime/base/PlainFile.h"

#include <optional>

namespace reprise::runtime {

/// Tokens side by side in a file.
struct TokenRange {
  TokenType type;
  int64_t offset; ///< The first byte.
  int64_t count;
};

/// Reads the header of a file of tokens, if it has one of those that are known,
/// whatever the file is called:
///
///   llm.c          256 words of i32: 20240520, 1, the number of tokens of u16;
///                  or 20240801, 7, and that of tokens of u32
///   NeMo Automodel the same: 278895051, 1, the number of tokens, 2 or 4 bytes
///                  for each, of u16 or u32
///   NumPy          \x93NUMPY, version, and a dictionary with type and shape:
///                  one dimension of integers, little-endian
///
/// `range` has no value if there is none of these. False if there is one, but
/// the file is not as it says, or has no tokens.
bool readTokenHeader(const PlainFile &file, std::optional<TokenRange> &range,
                     Error &error);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DATA_TOKENHEADER_H
