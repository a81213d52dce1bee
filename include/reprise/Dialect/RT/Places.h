//===- Places.h - Where buffers were elsewhere ------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_RT_PLACES_H
#define REPRISE_DIALECT_RT_PLACES_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace reprise::rt {

/// On a launch or product that is not planned yet: a number for each result,
/// and one for its workspace behind them. So many bytes from where activations
/// begin, a like schedule has the buffer of it; `kNoPlace` if it has none.
inline constexpr llvm::StringLiteral kPlacesAttr = "rt.places";
inline constexpr int64_t kNoPlace = -1;
/// None is so far away that a sum of places overflows.
inline constexpr int64_t kMostPlace = int64_t(1) << 60;

} // namespace reprise::rt

#endif // REPRISE_DIALECT_RT_PLACES_H
