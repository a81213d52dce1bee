//===- Beside.cpp - Items among others that lie already -------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What lies already leaves gaps: bytes that it does not have at any time of an
// item's life. Items that stay to the end, each from a time of its own on, meet
// each other there, so none shares bytes with another; and a later one finds
// more bytes free than an earlier one, first those high up, if what was placed
// is a stack of nested lives. Taken in the order of their births, each as high
// as it can lie below some top, they fill such an arena without a hole. So a
// top is looked for by halving, above which there is nothing.
//
// Real arenas are no perfect stacks, and items have other sizes than gaps.
// Hence orders that take large items of about one time first, and gaps that fit
// best instead of the highest ones, are tried as well.
//
//===----------------------------------------------------------------------===//

#include "reprise/Solver/Packing.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <tuple>

using namespace reprise::solver;

namespace {
/// Bytes that an item has for its life.
struct Piece {
  int64_t begin, end;
  int64_t lower, upper;
};

enum class Gap { Highest, Tightest };

class Filler {
public:
  Filler(const PackingProblem &problem, const std::vector<int64_t> &placed);

  PackingResult run();

private:
  std::vector<size_t> getOrder(int64_t window) const;
  bool fill(const std::vector<size_t> &order, Gap kind, int64_t top);
  void lower(const std::vector<size_t> &order, Gap kind);
  int64_t getBytes(size_t item) const {
    int64_t over = problem.items[item].size % problem.alignment;
    return problem.items[item].size + (over ? problem.alignment - over : 0);
  }

  const PackingProblem &problem;
  PackingResult result;
  std::vector<size_t> missing;
  std::vector<Piece> pieces; ///< of what was placed, by their begin
};
} // namespace

static bool beginsBefore(const Piece &a, const Piece &b) {
  return a.begin < b.begin;
}

Filler::Filler(const PackingProblem &problem,
               const std::vector<int64_t> &placed)
    : problem(problem) {
  auto takesRoom = [&](size_t i) {
    return problem.items[i].size > 0 &&
           problem.items[i].lower < problem.items[i].upper;
  };
  size_t count = problem.items.size();
  int64_t first = std::numeric_limits<int64_t>::max();
  for (size_t i = placed.size(); i < count; ++i)
    if (takesRoom(i)) {
      missing.push_back(i);
      first = std::min(first, problem.items[i].lower);
    }
  int64_t top = 0;
  for (size_t i = 0; i < placed.size(); ++i) {
    if (!takesRoom(i))
      continue;
    int64_t end = placed[i] + getBytes(i);
    top = std::max(top, end);
    const PackingItem &item = problem.items[i];
    if (item.upper > first) // Others meet none of those missing.
      pieces.push_back({placed[i], end, item.lower, item.upper});
  }
  std::sort(pieces.begin(), pieces.end(), beginsBefore);
  result.least = lowerBound(problem);
  result.bound = std::max(top, result.least);
  // One behind the other, that is always an answer.
  result.method = "beside";
  result.solution.offsets = placed;
  result.solution.offsets.resize(count);
  for (size_t i : missing) {
    result.solution.offsets[i] = top;
    top += getBytes(i);
  }
  result.solution.peak = top;
}

/// By the windows of time that the items are born in, large ones first.
std::vector<size_t> Filler::getOrder(int64_t window) const {
  std::vector<size_t> order = missing;
  auto getKey = [&](size_t i) {
    const PackingItem &item = problem.items[i];
    return std::make_tuple(item.lower / window, -item.size, item.lower);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return getKey(a) < getKey(b); });
  return order;
}

/// Lays each item at the upper end of a gap below `top`; false if one of them
/// finds none.
bool Filler::fill(const std::vector<size_t> &order, Gap kind, int64_t top) {
  std::vector<int64_t> offsets = result.solution.offsets;
  std::vector<Piece> all = pieces;
  for (size_t i : order) {
    const PackingItem &item = problem.items[i];
    int64_t bytes = getBytes(i), end = -1, passed = 0;
    int64_t least = std::numeric_limits<int64_t>::max();
    auto offer = [&](int64_t from, int64_t to) {
      int64_t rest = to - from - bytes;
      if (rest < 0 || (kind == Gap::Tightest && rest > least))
        return;
      least = rest;
      end = to;
    };
    for (const Piece &piece : all) {
      if (piece.begin >= top)
        break;
      if (piece.upper <= item.lower || item.upper <= piece.lower)
        continue;
      offer(passed, piece.begin);
      passed = std::max(passed, piece.end);
    }
    offer(passed, top);
    result.work += int64_t(all.size());
    if (end < 0)
      return false;
    offsets[i] = end - bytes;
    Piece taken = {offsets[i], end, item.lower, item.upper};
    all.insert(std::upper_bound(all.begin(), all.end(), taken, beginsBefore),
               taken);
  }
  result.solution = {std::move(offsets), top};
  return true;
}

/// Looks for the lowest top that an order can do with, if that is below the
/// best one.
void Filler::lower(const std::vector<size_t> &order, Gap kind) {
  const int64_t &best = result.solution.peak;
  auto align = [&](int64_t bytes) {
    return bytes / problem.alignment * problem.alignment;
  };
  // What is nearer to each other counts as equal.
  constexpr int64_t kParts = 4096, kMostWork = 200'000'000;
  int64_t near = std::max(align(result.bound / kParts), problem.alignment);
  int64_t low = result.bound;
  if (best == low || fill(order, kind, low) || best - near <= low ||
      !fill(order, kind, best - near))
    return;
  while (best - low > near && result.work < kMostWork) {
    int64_t middle = align(low + (best - low) / 2);
    if (!fill(order, kind, middle))
      low = middle;
  }
}

PackingResult Filler::run() {
  // Large ones first among those born in the same eighth of the time, too.
  constexpr int64_t kWindows = 8;
  int64_t first = std::numeric_limits<int64_t>::max(), last = 0;
  for (size_t i : missing) {
    first = std::min(first, problem.items[i].lower);
    last = std::max(last, problem.items[i].lower);
  }
  if (!missing.empty())
    for (int64_t window : {int64_t(1), (last - first) / kWindows + 1})
      for (Gap kind : {Gap::Highest, Gap::Tightest})
        lower(getOrder(window), kind);
  return std::move(result);
}

PackingResult reprise::solver::packBeside(const PackingProblem &problem,
                                          const std::vector<int64_t> &placed) {
  return Filler(problem, placed).run();
}
