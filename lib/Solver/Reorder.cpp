//===- Reorder.cpp - Orders of settling, changed at random ----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Local search over the orders in which blocks settle: a few blocks move to
// other places of the order, one of those that end above the target more often
// than others, and all blocks settle anew. The change stays unless the packing
// is worse by it. Several starts have equal parts of the work. The numbers at
// random have a fixed seed.
//
//===----------------------------------------------------------------------===//

#include "Space.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <string_view>
#include <utility>

using namespace reprise::solver;

namespace {
class Reorderer {
public:
  Reorderer(const Space &space, int64_t target, const Offsets &start)
      : space(space), target(target), best(start), bestScore(getScore(start)) {}

  /// Changes `order` until it packs to the target or the meter is spent.
  void improve(std::vector<int32_t> order, WorkMeter &meter);
  Offsets &getBest() { return best; }
  bool isDone() const { return bestScore.first <= target; }

private:
  /// The peak, and the sum of what the blocks stand out above the target.
  using Score = std::pair<int64_t, int64_t>;

  Score getScore(const Offsets &offsets) const;
  /// Of an order that packs to `offsets`, another one nearby.
  std::vector<int32_t> change(const std::vector<int32_t> &order,
                              const Offsets &offsets);
  size_t pick(size_t count) { return engine() % count; }
  int64_t getTop(const Offsets &offsets, int32_t block) const {
    return offsets[block] + space.blocks[block].size;
  }

  const Space &space;
  const int64_t target;
  Offsets best;
  Score bestScore;
  std::mt19937_64 engine{1};
};
} // namespace

Reorderer::Score Reorderer::getScore(const Offsets &offsets) const {
  Score score{0, 0};
  for (int32_t i = 0; i != space.size(); ++i) {
    score.first = std::max(score.first, getTop(offsets, i));
    score.second += std::max<int64_t>(getTop(offsets, i) - target, 0);
  }
  return score;
}

std::vector<int32_t> Reorderer::change(const std::vector<int32_t> &order,
                                       const Offsets &offsets) {
  std::vector<size_t> high; // Places of the blocks above the target.
  for (size_t place = 0; place != order.size(); ++place)
    if (getTop(offsets, order[place]) > target)
      high.push_back(place);
  std::vector<int32_t> changed = order;
  bool isFirst = true;
  for (size_t moves = 1 + pick(3); moves > 0; --moves, isFirst = false) {
    bool isHigh = isFirst && !high.empty() && pick(2) == 0;
    size_t from = isHigh ? high[pick(high.size())] : pick(changed.size());
    size_t to = pick(2) == 0 ? pick(from + 1) : pick(changed.size());
    int32_t block = changed[from];
    changed.erase(changed.begin() + from);
    changed.insert(changed.begin() + to, block);
  }
  return changed;
}

void Reorderer::improve(std::vector<int32_t> order, WorkMeter &meter) {
  Offsets offsets = settleInOrder(space, order, meter);
  Score score = getScore(offsets);
  while (true) {
    if (score < bestScore) {
      bestScore = score;
      best = offsets;
    }
    if (isDone() || meter.spent())
      return;
    std::vector<int32_t> changed = change(order, offsets);
    Offsets found = settleInOrder(space, changed, meter);
    if (Score other = getScore(found); other <= score) {
      score = other;
      order = std::move(changed);
      offsets = std::move(found);
    }
  }
}

Offsets reprise::solver::reorder(const Space &space, int64_t target,
                                 const Offsets &start, WorkMeter &meter) {
  // The orders that `settle` starts from, others, and the packing's own.
  static constexpr std::string_view words[] = {"TWZ", "TAW", "TE", "TZ",
                                               "Z",   "W",   "AZ"};
  std::vector<std::vector<int32_t>> orders;
  for (std::string_view word : words)
    orders.push_back(orderBy(space, word));
  orders.emplace_back(space.size());
  std::iota(orders.back().begin(), orders.back().end(), 0);
  std::stable_sort(orders.back().begin(), orders.back().end(),
                   [&](int32_t a, int32_t b) { return start[a] < start[b]; });
  Reorderer reorderer(space, target, start);
  int64_t part = (meter.limit - meter.done) / int64_t(orders.size());
  for (std::vector<int32_t> &order : orders) {
    if (reorderer.isDone() || meter.spent())
      break;
    WorkMeter share{0, part};
    reorderer.improve(std::move(order), share);
    meter.done += share.done;
  }
  return std::move(reorderer.getBest());
}
