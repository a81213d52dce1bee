//===- Parts.h - States that ranks have parts of ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TRANSPORT_PARTS_H
#define REPRISE_RUNTIME_TRANSPORT_PARTS_H

#include "Collectives.h"

#include "reprise/ABI/Model.h"

#include <algorithm>

namespace reprise::runtime {

/// Which elements of a whole tensor a rank has. Of a state that is not cut
/// every rank has the whole.
///
/// Of the part, seen flat, the rank's buffer has the elements from `offset` on,
/// and those from `first` up to `last` are the rank's: all, or its share.
struct Part {
  /// A dimension that is cut, or one before all of these, and the ones behind
  /// it that are not. The whole has `extent` elements, of which the rank's
  /// `block` has those from `begin` on, `count` of them, and zeros behind
  /// these. In the whole and in the part an element is `wholeStride` and
  /// `ownStride` from the next.
  struct Level {
    int64_t extent, block, begin, count;
    int64_t wholeStride, ownStride;
  };
  Level levels[4];
  int numLevels;
  int64_t first, last, offset;
  bool isShare;

  int64_t wholeElements() const {
    return levels[0].extent * levels[0].wholeStride;
  }
  /// Those of [from, to) of the whole that the rank has.
  int64_t elements(int64_t from, int64_t to) const;
  /// Whether the buffer has more than these.
  bool hasMore() const;

  /// Calls `visit(whole, own, number)` for each run of elements that the rank
  /// has of [from, to) of the whole: numbers of its first element in the
  /// whole and in the rank's buffer, and how many there are. Stops when `visit`
  /// returns false, and returns that.
  template <typename Visit>
  bool forEachRun(int64_t from, int64_t to, Visit visit) const {
    return forEachRun(from, to, visit, 0, 0, 0);
  }

private:
  /// From `level` on, of what begins at `whole` and `own`.
  template <typename Visit>
  bool forEachRun(int64_t from, int64_t to, Visit &visit, int level,
                  int64_t whole, int64_t own) const;
};

template <typename Visit>
bool Part::forEachRun(int64_t from, int64_t to, Visit &visit, int level,
                      int64_t whole, int64_t own) const {
  const Level &at = levels[level];
  const int64_t stride = at.wholeStride, end = at.begin + at.count;
  if (level + 1 == numLevels) {
    // What stands in the whole so far from where it stands in the part.
    const int64_t start = whole + at.begin, shift = start - own;
    const int64_t runBegin = std::max({from, start, first + shift});
    const int64_t runEnd = std::min({to, whole + end, last + shift});
    return runBegin >= runEnd ||
           visit(runBegin, runBegin - shift - offset, runEnd - runBegin);
  }
  int64_t i = std::max(at.begin, (from - whole) / stride);
  for (; i < end && whole + i * stride < to; ++i)
    if (!forEachRun(from, to, visit, level + 1, whole + i * stride,
                    own + (i - at.begin) * at.ownStride))
      return false;
  return true;
}

/// The part of `rank`.
Part partOf(const RepriseModel &model, const RepriseState &state, int rank);

/// Whether ranks have parts of the whole tensor.
inline bool isCut(const RepriseState &state) {
  return std::any_of(state.wholeExtents, state.wholeExtents + 4,
                     [](int64_t extent) { return extent > 0; });
}

/// Makes `shape`, which is that of the rank's tensor, that of the whole.
inline void setWholeShape(const RepriseState &state, int64_t *shape) {
  for (int dim = 0; dim < state.rank; ++dim)
    if (state.wholeExtents[dim] > 0)
      shape[dim] = state.wholeExtents[dim];
}

/// Whether ranks have parts, or shares of what they have.
inline bool isSpread(const RepriseState &state) {
  return isCut(state) || state.shareForm != REPRISE_SHARE_NONE;
}

/// Whether rank 0 has less than all of it, so that others send it what they
/// have: parts, or what is at home on another stage.
inline bool isGathered(const RepriseState &state) {
  return isSpread(state) || state.stage != 0;
}

/// Whether there is any such state.
inline bool hasParts(const RepriseModel &model) {
  return std::any_of(model.states, model.states + model.numStates, isGathered);
}

/// Whether `rank` is the one that gives `receiver` what it has of a state: of
/// ranks with one part it is where the receiver is along the axes that do not
/// tell parts apart, so each has the part of another sender from a sender of
/// its own, and its own part from itself.
bool sendsPart(const RepriseModel &model, const RepriseState &state, int rank,
               int receiver);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRANSPORT_PARTS_H
