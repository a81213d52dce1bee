//===- Runs.h - Groups of micro-batches that ranks sum ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_SUPPORT_RUNS_H
#define REPRISE_SUPPORT_RUNS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/bit.h"
#include <cstdint>

namespace reprise {

/// Each rank has `groups` groups of micro-batches, in runs: one for each power
/// of two that adds up to their number, the largest first. Of the tree over the
/// groups of all ranks each has a branch in a run, whose sum is a term of the
/// sum over ranks.
inline int64_t getNumRuns(int64_t groups) {
  return llvm::popcount(uint64_t(groups));
}

/// The groups of each term of a sum over `ranks`, in order of the tree: those
/// of all ranks for the first run, then those for the next.
inline llvm::SmallVector<int64_t> getTermSizes(int64_t ranks, int64_t groups) {
  llvm::SmallVector<int64_t> sizes;
  for (uint64_t left = groups; left != 0; left -= llvm::bit_floor(left))
    sizes.append(ranks, llvm::bit_floor(left));
  return sizes;
}

/// The terms, of so many groups each, of the first of the two branches that the
/// tree adds up in the end: it has the largest power of two of groups that is
/// below all of them.
inline size_t getFirstBranch(llvm::ArrayRef<int64_t> sizes) {
  int64_t groups = 0, first = 0;
  for (int64_t size : sizes)
    groups += size;
  size_t count = 0;
  for (int64_t half = llvm::bit_ceil(uint64_t(groups)) / 2; first < half;)
    first += sizes[count++];
  return count;
}

} // namespace reprise

#endif // REPRISE_SUPPORT_RUNS_H
