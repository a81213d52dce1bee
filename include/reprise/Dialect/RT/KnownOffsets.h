//===- KnownOffsets.h - Offsets of a like schedule --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_RT_KNOWNOFFSETS_H
#define REPRISE_DIALECT_RT_KNOWNOFFSETS_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace reprise::rt {

/// On a launch or GEMM that is not planned yet: the offsets that a like
/// schedule has for the buffers of its results and, behind them, of its
/// workspace. They are bytes from the beginning of activations; `kNoOffset` if
/// it has none.
inline constexpr llvm::StringLiteral kKnownOffsetsAttr = "rt.known_offsets";
inline constexpr int64_t kNoOffset = -1;
/// None is so far away that a sum of offsets overflows.
inline constexpr int64_t kMostOffset = int64_t(1) << 60;

} // namespace reprise::rt

#endif // REPRISE_DIALECT_RT_KNOWNOFFSETS_H
