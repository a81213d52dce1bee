//===- Space.h - A packing problem made ready for search --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The form of a packing problem that the algorithms share, and their
// declarations. Private to lib/Solver.
//
// Time is cut into sections. Of all the points of a schedule only those count
// at which the set of live items is maximal: an item born between two deaths
// meets nobody whom it would not meet at the section after. Two items meet in
// time exactly if they share a section. Sizes and offsets are in units of the
// alignment.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_SOLVER_SPACE_H
#define REPRISE_LIB_SOLVER_SPACE_H

#include "reprise/Solver/Packing.h"

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

namespace reprise::solver {

/// An item that takes room: alive in the sections [first, last).
struct Block {
  int32_t first;
  int32_t last;
  int64_t size;
  int32_t item;     ///< Its index in the problem.
  int32_t crest;    ///< The section of the largest load in its life.
  int64_t lifetime; ///< In the problem's time, for orders.
};

/// The area of a block, or the largest number when that is too large.
inline int64_t area(int64_t size, int64_t length) {
  int64_t most = std::numeric_limits<int64_t>::max();
  return size > most / length ? most : size * length;
}

/// Offsets of blocks by index, in units; `unplaced` while they have none.
using Offsets = std::vector<int64_t>;
constexpr int64_t unplaced = -1;

struct Space {
  explicit Space(const PackingProblem &problem);

  std::vector<Block> blocks; ///< By first section, then index in the problem.
  std::vector<int64_t> load; ///< Units alive in each section.
  int64_t bound = 0;         ///< The largest load.
  int64_t unit = 1;          ///< Bytes in a unit.

  int32_t size() const { return static_cast<int32_t>(blocks.size()); }

  /// The end of the highest block that has an offset.
  int64_t peak(const Offsets &offsets) const;
};

/// Elementary steps left to spend. Algorithms ask `spent()` at safe points, so
/// a limit may be passed by the work between two of them.
struct WorkMeter {
  int64_t done = 0;
  int64_t limit = 0;
  bool spent() const { return done >= limit; }
};

//===----------------------------------------------------------------------===//
// The algorithms
//===----------------------------------------------------------------------===//

/// Lets the blocks settle one by one, lowest first, and improves the order in
/// rounds. Stops at a peak of at most `target`, at the end of its rounds or
/// when the meter is spent, but has always placed every block. (Settle.cpp)
Offsets settle(const Space &space, int64_t target, WorkMeter &meter);

/// One pass of settling: an offset for every block of `order`. (Settle.cpp)
Offsets settleInOrder(const Space &space, const std::vector<int32_t> &order,
                      WorkMeter &meter);

/// Sorts the blocks by the letters of `word`: the largest value of the first
/// letter goes to the front, ties go to the next letter. A area, W lifetime, Z
/// size, T largest load met, E last section, s first section (earliest first).
std::vector<int32_t> orderBy(const Space &space, std::string_view word);

/// Changes orders of settling at random for a packing whose peak is below that
/// of `start`. Stops at a peak of at most `target` or when the meter is spent.
/// (Reorder.cpp)
Offsets reorder(const Space &space, int64_t target, const Offsets &start,
                WorkMeter &meter);

/// Searches all canonical packings, depth first, for one of peak at most
/// `target`, and writes it to `offsets`. Memory and the time of a descent grow
/// with the square of the number of blocks. (Canonical.cpp)
enum class SearchEnd { Found, Refuted, OutOfWork };
SearchEnd searchCanonical(const Space &space, int64_t target, WorkMeter &meter,
                          Offsets &offsets);

} // namespace reprise::solver

#endif // REPRISE_LIB_SOLVER_SPACE_H
