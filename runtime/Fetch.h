//===- Fetch.h - What a micro-kernel fetches while it computes --*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A micro-kernel leaves memory idle, and packing waits for it: so each call
// fetches, a little at a time, a part of what is packed next.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_FETCH_H
#define REPRISE_RUNTIME_FETCH_H

#include <cstdint>

namespace reprise::runtime {

/// What one call fetches: two cache lines of each row (of AMX the first of
/// them, which brings the second), one row for every four steps.
struct Fetch {
  static constexpr int64_t kBytes = 128, kSteps = 4;

  const char *data;
  int64_t stride, rows; ///< In bytes from row to row.
};

/// Rows of bytes that are fetched by several calls.
struct FetchRegion {
  const char *data;
  int64_t stride, rows, bytes; ///< `bytes` of each row.

  /// Calls of `steps` steps that it takes.
  int64_t countCalls(int64_t steps) const {
    return columns() * rowGroups(steps);
  }
  Fetch getCall(int64_t call, int64_t steps) const {
    int64_t perCall = steps / Fetch::kSteps, groups = rowGroups(steps);
    int64_t first = call % groups * perCall, left = rows - first;
    return {data + first * stride + call / groups * Fetch::kBytes, stride,
            left < perCall ? left : perCall};
  }

private:
  int64_t columns() const {
    return (bytes + Fetch::kBytes - 1) / Fetch::kBytes;
  }
  int64_t rowGroups(int64_t steps) const {
    int64_t perCall = steps / Fetch::kSteps;
    return perCall == 0 ? 0 : (rows + perCall - 1) / perCall;
  }
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_FETCH_H
