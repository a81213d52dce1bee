//===- Shares.h - Values that ranks have shares of --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_SUPPORT_SHARES_H
#define REPRISE_SUPPORT_SHARES_H

#include "reprise/ABI/Model.h"

#include <algorithm>
#include <cstdint>

namespace reprise {

/// The elements of a share of `elements` in a row for each of `ranks`, of which
/// the last ranks may have fewer or none; all but these are whole blocks of
/// REPRISE_SHARE_BLOCK.
inline int64_t getShareSize(int64_t elements, int64_t ranks) {
  constexpr int64_t kBlock = REPRISE_SHARE_BLOCK;
  const int64_t blocks = (elements + kBlock - 1) / kBlock;
  return std::min(elements, (blocks + ranks - 1) / ranks * kBlock);
}

} // namespace reprise

#endif // REPRISE_SUPPORT_SHARES_H
