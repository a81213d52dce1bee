//===- Fetch.h - What a micro-kernel fetches while it computes --*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A micro-kernel leaves memory idle, and packing waits for it: so each call
// fetches, a little at a time, a part of what is packed or read next.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_COMPUTE_FETCH_H
#define REPRISE_RUNTIME_COMPUTE_FETCH_H

#include "reprise/ABI/Gemm.h"

#include <cstdint>

namespace reprise::runtime {

/// What one call fetches: two cache lines of each row, one row for every `pace`
/// steps.
struct Fetch {
  static constexpr int64_t kBytes = 128, kMostPace = 16,
                           kLeastPace = REPRISE_TILE_FETCH_STEPS;

  const char *data;
  int64_t stride, rows; ///< In bytes from row to row.
  int64_t pace;
  int64_t firstRow; ///< Of the region that it is a part of.

  /// What is at `data` once: of a call that has nothing to fetch.
  static Fetch ofNothing(const void *data, int64_t pace) {
    return {static_cast<const char *>(data), 0, 1, pace, 0};
  }
  /// Has a call do it.
  void ask(RepriseTile &tile) const {
    tile.next = data;
    tile.nextStride = stride;
    tile.nextRows = rows;
    tile.nextSteps = int32_t(pace);
  }
};

/// Rows of bytes that are fetched by several calls.
struct FetchRegion {
  const char *data;
  int64_t stride, rows, bytes; ///< `bytes` of each row.

  /// The slowest pace at which `calls` calls of `steps` steps are enough, if
  /// one is: what waits for memory takes buffers of L1 that a
  /// micro-kernel's operands pass through as well.
  int64_t choosePace(int64_t steps, int64_t calls) const {
    int64_t pace = Fetch::kMostPace;
    while (pace > Fetch::kLeastPace &&
           (pace > steps || countCalls(steps, pace) > calls))
      pace /= 2;
    return pace;
  }
  /// Calls of `steps` steps that it takes.
  int64_t countCalls(int64_t steps, int64_t pace) const {
    return columns() * rowGroups(steps, pace);
  }
  int64_t columns() const {
    return (bytes + Fetch::kBytes - 1) / Fetch::kBytes;
  }
  /// Calls for a column.
  int64_t rowGroups(int64_t steps, int64_t pace) const {
    int64_t perCall = steps / pace;
    return perCall == 0 ? 0 : (rows + perCall - 1) / perCall;
  }
};

/// A region dealt out to one call of `steps` steps after the other.
class FetchCalls {
public:
  /// At the slowest pace at which `most` calls are enough, if one is.
  FetchCalls(const FetchRegion &region, int64_t steps, int64_t most)
      : FetchCalls(region, steps, region.choosePace(steps, most), 0) {}
  /// From call `first` on.
  FetchCalls(const FetchRegion &region, int64_t steps, int64_t pace,
             int64_t first)
      : region(region), pace(pace), perCall(steps / pace),
        left(region.countCalls(steps, pace) - first) {
    if (isDone())
      return;
    const int64_t groups = region.rowGroups(steps, pace);
    row = first % groups * perCall;
    this->region.data += first / groups * Fetch::kBytes;
  }

  bool isDone() const { return left <= 0; }
  /// What the next call fetches, of null if all is.
  Fetch getNext() {
    if (isDone())
      return {};
    const int64_t rowsLeft = region.rows - row;
    const Fetch fetch = {region.data + row * region.stride, region.stride,
                         rowsLeft < perCall ? rowsLeft : perCall, pace, row};
    --left;
    row += perCall;
    if (row >= region.rows && left > 0) {
      row = 0;
      region.data += Fetch::kBytes;
    }
    return fetch;
  }

private:
  FetchRegion region; ///< From the column at hand on.
  int64_t pace, perCall, left, row = 0;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_COMPUTE_FETCH_H
