//===- Philox.h - Counter-based random numbers --------------------*- C -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Philox4x32-10 of Salmon et al., "Parallel Random Numbers: As Easy as 1, 2,
// 3", SC 2011, section 3.3. All of Reprise's randomness is a pure function of
//
//   key     = (seed low, seed high)
//   counter = (element / 4, stream, step, micro-batch)
//
// and of word `element % 4` of the result, so that a replay draws what its
// original drew. `stream` is the id of a dropout op; parameters are drawn in
// step REPRISE_INIT_STEP with their index as stream.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_ABI_PHILOX_H
#define REPRISE_ABI_PHILOX_H

#include <stdint.h>

#define REPRISE_INIT_STEP 0xFFFFFFFFu

/// Word `element % 4` of the block that belongs to `element`.
static inline uint32_t reprisePhilox(uint64_t seed, uint32_t step,
                                     uint32_t microBatch, uint32_t stream,
                                     uint64_t element) {
  uint32_t c0 = (uint32_t)(element >> 2), c1 = stream, c2 = step,
           c3 = microBatch;
  uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
    uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n1 = (uint32_t)p1;
    uint32_t n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1, n3 = (uint32_t)p0;
    c0 = n0, c1 = n1, c2 = n2, c3 = n3;
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  switch (element & 3) {
  case 0:
    return c0;
  case 1:
    return c1;
  case 2:
    return c2;
  default:
    return c3;
  }
}

#endif /* REPRISE_ABI_PHILOX_H */
