//===- BF16.h - Numbers of 16 bits ------------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_BASE_BF16_H
#define REPRISE_RUNTIME_BASE_BF16_H

#include <cstdint>
#include <cstring>

namespace reprise::runtime {

/// The bits of the nearest bf16, of two as near the even one.
inline uint16_t roundToBF16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7FFFFFFF) > 0x7F800000) // What is no number stays none.
    return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

inline float fromBF16(uint16_t value) {
  const uint32_t bits = uint32_t(value) << 16;
  float number;
  memcpy(&number, &bits, sizeof(number));
  return number;
}

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_BASE_BF16_H
