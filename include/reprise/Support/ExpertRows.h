//===- ExpertRows.h - The rows that experts can have ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_SUPPORT_EXPERTROWS_H
#define REPRISE_SUPPORT_EXPERTROWS_H

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace reprise {

/// The most rounds of some rows of an expert: the program has the ops of all
/// rounds of all layers.
inline constexpr int64_t kMostExpertRounds = 1024;

/// The rows that `ids` choices make for `experts`, who have at most `capacity`
/// each, if that is given; one of them is nobody's then.
inline int64_t getMostRows(int64_t ids, int64_t experts,
                           std::optional<int64_t> capacity) {
  if (!capacity)
    return ids;
  uint64_t most = llvm::SaturatingMultiply<uint64_t>(experts, *capacity);
  return int64_t(std::min<uint64_t>(ids, most)) + 1;
}

} // namespace reprise

#endif // REPRISE_SUPPORT_EXPERTROWS_H
