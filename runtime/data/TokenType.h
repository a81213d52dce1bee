//===- TokenType.h - How a token is stored ----------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DATA_TOKENTYPE_H
#define REPRISE_RUNTIME_DATA_TOKENTYPE_H

#include <cstdint>

namespace reprise::runtime {

/// Integers, little-endian. The numbers are Megatron-LM's, which has no u32.
enum class TokenType : uint8_t {
  U8 = 1,
  I8 = 2,
  I16 = 3,
  I32 = 4,
  I64 = 5,
  U16 = 8,
  U32 = 9
};

inline int64_t bytesOf(TokenType type) {
  switch (type) {
  case TokenType::U8:
  case TokenType::I8:
    return 1;
  case TokenType::U16:
  case TokenType::I16:
    return 2;
  case TokenType::U32:
  case TokenType::I32:
    return 4;
  case TokenType::I64:
    return 8;
  }
  return 0;
}

inline const char *nameOf(TokenType type) {
  static const char *const names[] = {"",    "u8",  "i8",  "i16", "i32",
                                      "i64", "f64", "f32", "u16", "u32"};
  return names[int(type)];
}

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DATA_TOKENTYPE_H
