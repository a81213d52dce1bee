//===- Packing.h - Byte offsets for buffers with known lives ----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Dynamic storage allocation, offline: every buffer of a step has a size and a
// half-open lifetime [lower, upper); two buffers whose lifetimes share a point
// must not share a byte; the arena shall be as small as possible. The problem
// is NP-complete (Garey and Johnson, SR2), but a training step is a kind one:
// it nearly always packs to the trivial bound, the largest sum of sizes alive
// at one time.
//
// Here are the problem, its bound, an independent check of a solution, a text
// form, and `pack`, which tries several algorithms, each in its own file under
// lib/Solver. Nothing in this room depends on LLVM or on the clock: the same
// problem gives the same offsets on every machine.
//
// docs/solver.md tells how it works and how well.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_SOLVER_PACKING_H
#define REPRISE_SOLVER_PACKING_H

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace reprise::solver {

/// A buffer. Times are any integers that grow along the schedule; sizes are
/// bytes. An item of no bytes or of an empty lifetime takes no room.
struct PackingItem {
  std::string name; ///< For messages and the text form only.
  int64_t lower = 0;
  int64_t upper = 0; ///< The first time at which the bytes are free again.
  int64_t size = 0;
};

/// What is to be packed. Offsets are multiples of `alignment`, and each size
/// counts as rounded up to it.
struct PackingProblem {
  std::vector<PackingItem> items;
  int64_t alignment = 1;
};

/// An offset for each item, and the size of the arena that holds them all: the
/// largest sum of an offset and its item's rounded size.
struct PackingSolution {
  std::vector<int64_t> offsets;
  int64_t peak = 0;
};

/// Says with numbers what is wrong with `problem`: a lifetime that ends before
/// it starts, a time beyond 2^61, a negative size, an alignment below 1, a sum
/// of sizes beyond 2^62. Every other function here needs a problem without such
/// faults.
std::optional<std::string> check(const PackingProblem &problem);

/// Most bytes alive at one time, sizes rounded up to the alignment. No solution
/// has a smaller peak. O(n log n).
int64_t lowerBound(const PackingProblem &problem);

/// The arena that `offsets`, one an item, need.
int64_t peakOf(const PackingProblem &problem,
               const std::vector<int64_t> &offsets);

/// Says with numbers what is wrong with `solution`: a missing, negative or
/// unaligned offset, a peak that is not the true one, two items that share a
/// byte at a time. Shares no code with the algorithms. O(n log n).
std::optional<std::string> verify(const PackingProblem &problem,
                                  const PackingSolution &solution);

/// The effort of `pack`.
struct PackingOptions {
  /// Any peak up to this is as good as another; the search stops there. A
  /// capacity below the lower bound counts as the bound.
  std::optional<int64_t> capacity;
  /// Whether a peak above that is of no use: what settles the question soonest
  /// comes first, and a search that shows that there is no such packing is the
  /// last. It gets there exactly if it does without this.
  bool isAllOrNothing = false;
  /// Limit on elementary steps (an item looked at in a search), 200 to 500
  /// million a second on a 2020 core. The result depends on this number, but on
  /// no clock. Inputs that reach the bound early use little of it. With
  /// `isAllOrNothing` 32 million more may be done, of work that is large.
  int64_t workLimit = 1'000'000'000;
};

/// A solution together with what is known about it. `solution.peak == bound`
/// proves it optimal.
struct PackingResult {
  PackingSolution solution;
  int64_t bound = 0;
  /// No packing has a smaller peak: the bound, or more if a search has shown
  /// that.
  int64_t least = 0;
  const char *method = ""; ///< The algorithm that found the solution.
  int64_t work = 0;        ///< Elementary steps done.
};

/// Packs `problem` (which passes `check`) into an arena as small as it can.
/// The peak is between `lowerBound` and the sum of the rounded sizes; it equals
/// the bound on the training steps tried (docs/solver.md has the figures).
PackingResult pack(const PackingProblem &problem,
                   const PackingOptions &options = {});

/// Finds offsets for the items of `problem` (which passes `check`) behind those
/// that lie at `placed`, where these leave bytes free for all of a life and
/// beyond them, so that the peak is small. The bound is the largest of the peak
/// of those placed and `lowerBound` of all. With n items to place and m in all,
/// O(n m) for each of a few dozen tries, one if the bound is met at once.
PackingResult packBeside(const PackingProblem &problem,
                         const std::vector<int64_t> &placed);

/// Where and how a text is wrong. Lines and columns start at 1.
struct TextError {
  int64_t line = 0;
  int64_t column = 0;
  std::string message;
};

/// Reads comma separated values: a header with the columns `id`, `lower`,
/// `upper`, `size` and maybe `offset` in any order, then an item a line. Blank
/// lines are passed over. A field may be in quotes, and then have commas, line
/// ends, blanks at its ends and, written twice, quotes in it. Replaces
/// `problem.items`; with an `offset` column it also fills `solution`, whose
/// peak is then for `problem.alignment`. What `check` finds in a row is refused
/// here, with its place; the sum of the sizes is left to `check`.
std::optional<TextError> readPacking(std::istream &in, PackingProblem &problem,
                                     std::optional<PackingSolution> &solution);

/// Writes the same form; with a solution, including the `offset` column.
void writePacking(std::ostream &out, const PackingProblem &problem,
                  const PackingSolution *solution = nullptr);

} // namespace reprise::solver

#endif // REPRISE_SOLVER_PACKING_H
