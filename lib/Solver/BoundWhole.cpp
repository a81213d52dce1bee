//===- BoundWhole.cpp - The least sum of whole choices --------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With the symbols of Bound.h and one price p, a choice has a surplus above the
// cheapest of its layer,
//
//   e(x) = s(x) + p b(x) - min over y of (s(y) + p b(y)),
//
// and a sum of whole choices within the budget takes
//
//   sum of s = L(p) + sum of e + p (A - sum of b) >= L(p) + sum of e.
//
// So a sum that is better than a known one has a surplus of at most the known
// seconds less L(p): few choices of a layer come into question, and few sums of
// them. Sums are added up layer by layer, a knapsack (Nemhauser and Ullmann,
// Management Science 15, 1969).
//
//===----------------------------------------------------------------------===//

#include "Bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace reprise::solver;

static constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// More sums are not gone through.
static constexpr size_t kMostSums = 1 << 16;

namespace {
class Knapsack {
public:
  Knapsack(const std::vector<LayerGroup> &groups, double available)
      : groups(groups), available(available),
        // Sums of bytes are whole numbers, or rounded.
        most(available + 1e-12 * std::abs(available)) {}

  std::optional<double> run(double price, std::vector<LeastCost> *others);

private:
  /// The cheapest choices at a price, of equal ones those with fewer bytes.
  LeastCost chooseAt(double price, std::vector<LeastCost> &chosen) const;
  /// The seconds of choices that are within `available`: between those at the
  /// least price for which they are, and those just below it.
  std::optional<double> findKnown(double price) const;
  /// Adds layers of `front`, as long as the sums may be better than `known`.
  bool add(const std::vector<LeastCost> &front, int64_t count, double price);

  const std::vector<LayerGroup> &groups;
  double available, most;
  std::vector<const std::vector<LeastCost> *> fronts;
  std::vector<LeastCost> sums;
  double surplus = 0, least = 0;
};
} // namespace

LeastCost Knapsack::chooseAt(double price,
                             std::vector<LeastCost> &chosen) const {
  LeastCost sum;
  chosen.clear();
  for (size_t g = 0; g < groups.size(); ++g) {
    const LeastCost *best = nullptr;
    for (const LeastCost &choice : *fronts[g])
      if (!best || choice.seconds - best->seconds +
                           price * (choice.bytes - best->bytes) <
                       0)
        best = &choice;
    sum.seconds += double(groups[g].count) * best->seconds;
    sum.bytes += double(groups[g].count) * best->bytes;
    chosen.push_back(*best);
  }
  return sum;
}

std::optional<double> Knapsack::findKnown(double price) const {
  LeastCost sum;
  std::vector<LeastCost> chosen, small, large;
  for (size_t g = 0; g < groups.size(); ++g) {
    small.push_back(fronts[g]->front());
    sum.seconds += double(groups[g].count) * small[g].seconds;
    sum.bytes += double(groups[g].count) * small[g].bytes;
  }
  if (sum.bytes > most)
    return std::nullopt;
  double low = 0, high = kInfinite;
  constexpr int kMostSteps = 60;
  for (int step = 0; step < kMostSteps; ++step) {
    LeastCost next = chooseAt(price, chosen);
    if (next.bytes <= most) {
      high = price;
      sum = next;
      small = chosen;
    } else {
      low = price;
      large = chosen;
    }
    price = high == kInfinite ? 4 * low : (low + high) / 2;
  }
  // As many layers as there is room for take the dearer choice.
  for (size_t g = 0; g < groups.size() && !large.empty(); ++g) {
    double more = large[g].bytes - small[g].bytes;
    if (more <= 0)
      continue;
    double count = std::min(double(groups[g].count),
                            std::floor((most - sum.bytes) / more));
    sum.bytes += count * more;
    sum.seconds += count * (large[g].seconds - small[g].seconds);
  }
  return sum.seconds;
}

/// `sum` behind those of `sums` with fewer bytes, unless they are better.
static void append(std::vector<LeastCost> &sums, const LeastCost &sum) {
  if (!sums.empty() && sums.back().seconds <= sum.seconds)
    return;
  if (!sums.empty() && sums.back().bytes == sum.bytes)
    sums.pop_back();
  sums.push_back(sum);
}

bool Knapsack::add(const std::vector<LeastCost> &front, int64_t count,
                   double price) {
  double cheapest = kInfinite;
  for (const LeastCost &choice : front)
    cheapest = std::min(cheapest, choice.seconds + price * choice.bytes);
  std::vector<LeastCost> near, next, merged;
  for (const LeastCost &choice : front)
    if (choice.seconds + price * choice.bytes - cheapest <= surplus)
      near.push_back(choice);
  for (; count > 0; --count) {
    least += cheapest;
    next.clear();
    for (const LeastCost &choice : near) {
      // Both lists are by bytes, and so is what becomes of them.
      merged.clear();
      size_t other = 0;
      for (const LeastCost &sum : sums) {
        LeastCost both = {sum.seconds + choice.seconds,
                          sum.bytes + choice.bytes};
        if (both.seconds + price * both.bytes - least > surplus)
          continue;
        for (; other < next.size() && next[other].bytes <= both.bytes; ++other)
          append(merged, next[other]);
        append(merged, both);
      }
      for (; other < next.size(); ++other)
        append(merged, next[other]);
      std::swap(next, merged);
    }
    if (next.size() > kMostSums)
      return false;
    std::swap(sums, next);
  }
  return true;
}

std::optional<double> Knapsack::run(double price,
                                    std::vector<LeastCost> *others) {
  for (const LayerGroup &group : groups) {
    fronts.push_back(group.choices->getFront());
    if (!fronts.back() || fronts.back()->empty())
      return std::nullopt;
  }
  std::optional<double> known = findKnown(price);
  if (!known)
    return std::nullopt;
  std::vector<LeastCost> chosen;
  LeastCost cheapest = chooseAt(price, chosen);
  double scale = *known + price * std::abs(available);
  surplus = *known - cheapest.seconds + price * (available - cheapest.bytes) +
            1e-11 * scale;
  sums = {{0, 0}};
  for (size_t g = 0; g + 1 < groups.size(); ++g)
    if (!add(*fronts[g], groups[g].count, price))
      return std::nullopt;
  // The last group is one layer, or a few: the least is among the sums.
  for (int64_t k = 1; k < groups.back().count; ++k)
    if (!add(*fronts.back(), 1, price))
      return std::nullopt;
  double best = findLeastSum(sums, *fronts.back(), most).value_or(kInfinite);
  if (others)
    *others = std::move(sums);
  return std::min(best, *known);
}

std::optional<double>
reprise::solver::findLeastSum(const std::vector<LeastCost> &sums,
                              const std::vector<LeastCost> &choices,
                              double available) {
  std::optional<double> least;
  for (const LeastCost &choice : choices) {
    auto behind = std::partition_point(
        sums.begin(), sums.end(), [&](const LeastCost &sum) {
          return sum.bytes + choice.bytes <= available;
        });
    if (behind != sums.begin())
      least = std::min(least.value_or(kInfinite),
                       std::prev(behind)->seconds + choice.seconds);
  }
  return least;
}

std::optional<double>
reprise::solver::findLeastSum(const std::vector<LayerGroup> &groups,
                              double available, double price,
                              std::vector<LeastCost> *others) {
  return Knapsack(groups, available).run(price, others);
}
