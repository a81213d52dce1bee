//===- ElementFormat.h - Numbers in memory ------------------------*- C -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is known of a format is a row here: whoever needs the bytes of one, or
// its name, looks it up. Numbers are rounded to the nearest one that a format
// has, of two as near to the one with an even last bit.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_ABI_ELEMENTFORMAT_H
#define REPRISE_ABI_ELEMENTFORMAT_H

#include "reprise/ABI/Gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

struct RepriseElementFormat {
  int32_t code;        ///< REPRISE_F32, ...: its index in the table
  int32_t bytes;       ///< of an element
  int32_t digits;      ///< bits of the significand, the first one included
  int32_t accumulator; ///< code of the format in which it is added up
  const char *name;    ///< in the IR, and for people
};

static const struct RepriseElementFormat kRepriseElementFormats[] = {
    {REPRISE_F32, 4, 24, REPRISE_F32, "f32"},
    {REPRISE_BF16, 2, 8, REPRISE_F32, "bf16"},
};

/// The row of a code; the first one if there is none, as in damaged tables:
/// whether a code is right is checked by who reads them.
static inline const struct RepriseElementFormat *
repriseElementFormat(int32_t code) {
  const int32_t count = (int32_t)(sizeof(kRepriseElementFormats) /
                                  sizeof(kRepriseElementFormats[0]));
  return &kRepriseElementFormats[code >= 0 && code < count ? code : 0];
}

static inline int64_t repriseElementBytes(int32_t code) {
  return repriseElementFormat(code)->bytes;
}
static inline const char *repriseElementName(int32_t code) {
  return repriseElementFormat(code)->name;
}

#ifdef __cplusplus
}
#endif
#endif /* REPRISE_ABI_ELEMENTFORMAT_H */
