//===- Crc32c.h - Checksums -------------------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_BASE_CRC32C_H
#define REPRISE_RUNTIME_BASE_CRC32C_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <nmmintrin.h>

namespace reprise::runtime {

/// The CRC-32C (Castagnoli) of `bytes` bytes; `crc` is that of what comes
/// before them, 0 at the start. Some 8 bytes in 3 cycles. Source: RFC 3720,
/// section 12.1 and appendix B.4.
inline uint32_t crc32c(const void *data, size_t bytes, uint32_t crc = 0) {
  auto *next = static_cast<const unsigned char *>(data);
  uint64_t sum = ~crc;
  for (; bytes >= 8; bytes -= 8, next += 8) {
    uint64_t word;
    memcpy(&word, next, 8);
    sum = _mm_crc32_u64(sum, word);
  }
  for (; bytes > 0; --bytes)
    sum = _mm_crc32_u8(uint32_t(sum), *next++);
  return ~uint32_t(sum);
}

/// The CRC-32C of bytes of which the first ones have `first`, and the `bytes`
/// behind them `second`. As a polynomial over GF(2), whose highest coefficient
/// is the lowest bit, `first` is multiplied by x^(8 bytes).
uint32_t crc32cOfBoth(uint32_t first, uint32_t second, int64_t bytes);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_BASE_CRC32C_H
