//===- Crc32c.cpp - Checksums ---------------------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Crc32c.h"

using namespace reprise::runtime;

/// The product of two polynomials modulo that of the checksum. The coefficient
/// of x^k is bit 31 - k.
static uint32_t multiply(uint32_t a, uint32_t b) {
  constexpr uint32_t kPolynomial = 0x82F63B78;
  uint32_t product = 0;
  for (int bit = 31; bit >= 0; --bit) {
    if (a >> bit & 1)
      product ^= b;
    b = b >> 1 ^ (b & 1 ? kPolynomial : 0);
  }
  return product;
}

uint32_t reprise::runtime::crc32cOfBoth(uint32_t first, uint32_t second,
                                        int64_t bytes) {
  uint32_t power = 1u << (31 - 8); // x^8, then its squares.
  for (; bytes > 0; bytes >>= 1, power = multiply(power, power))
    if (bytes & 1)
      first = multiply(power, first);
  return first ^ second;
}
