//===- Packing.cpp - The packing problem, its bound and its check ---------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Solver/Packing.h"

#include <algorithm>
#include <iterator>
#include <map>

using namespace reprise::solver;

/// No sum or rounding of sizes up to this overflows.
static constexpr int64_t maxBytes = int64_t(1) << 62;

/// No difference of times up to this overflows.
static constexpr int64_t maxTime = int64_t(1) << 61;

static int64_t roundUp(int64_t size, int64_t alignment) {
  int64_t over = size % alignment;
  return over == 0 ? size : size + (alignment - over);
}

static bool takesRoom(const PackingItem &item) {
  return item.size > 0 && item.lower < item.upper;
}

static std::string describe(const PackingItem &item) {
  return "item '" + item.name + "'";
}

static std::string life(const PackingItem &item) {
  return "[" + std::to_string(item.lower) + ", " + std::to_string(item.upper) +
         ")";
}

std::optional<std::string>
reprise::solver::check(const PackingProblem &problem) {
  if (problem.alignment < 1 || problem.alignment > maxBytes)
    return "needs an alignment between 1 and 2^62 bytes, but got " +
           std::to_string(problem.alignment);
  if (problem.items.size() >= size_t(1) << 30)
    return "needs fewer than 2^30 items, but got " +
           std::to_string(problem.items.size());
  int64_t left = maxBytes;
  for (const PackingItem &item : problem.items) {
    if (item.lower > item.upper)
      return describe(item) + " needs a lifetime that does not end before it " +
             "starts, but got " + life(item);
    if (item.lower < -maxTime || item.upper > maxTime)
      return describe(item) + " needs a lifetime between -2^61 and 2^61, " +
             "but got " + life(item);
    if (item.size < 0)
      return describe(item) + " needs a size of at least 0 bytes, but got " +
             std::to_string(item.size);
    // Rounding may bring a size that is itself small enough beyond the limit.
    if (item.size > left || roundUp(item.size, problem.alignment) > left)
      return describe(item) + " of " + std::to_string(item.size) +
             " bytes brings the sum of all sizes beyond 2^62";
    left -= roundUp(item.size, problem.alignment);
  }
  return std::nullopt;
}

namespace {
/// A birth or a death. Lifetimes are half-open: deaths sort first.
struct Event {
  int64_t time;
  bool isBirth;
  size_t item;
  bool operator<(const Event &other) const {
    if (time != other.time)
      return time < other.time;
    return isBirth != other.isBirth ? !isBirth : item < other.item;
  }
};
} // namespace

static std::vector<Event> eventsOf(const PackingProblem &problem) {
  std::vector<Event> events;
  events.reserve(2 * problem.items.size());
  for (size_t i = 0; i != problem.items.size(); ++i) {
    const PackingItem &item = problem.items[i];
    if (!takesRoom(item))
      continue;
    events.push_back({item.lower, true, i});
    events.push_back({item.upper, false, i});
  }
  std::sort(events.begin(), events.end());
  return events;
}

int64_t reprise::solver::lowerBound(const PackingProblem &problem) {
  int64_t live = 0, most = 0;
  for (const Event &event : eventsOf(problem)) {
    int64_t size = roundUp(problem.items[event.item].size, problem.alignment);
    live += event.isBirth ? size : -size;
    most = std::max(most, live);
  }
  return most;
}

int64_t reprise::solver::peakOf(const PackingProblem &problem,
                                const std::vector<int64_t> &offsets) {
  int64_t peak = 0;
  for (size_t i = 0; i != problem.items.size(); ++i) {
    const PackingItem &item = problem.items[i];
    if (takesRoom(item))
      peak = std::max(peak, offsets[i] + roundUp(item.size, problem.alignment));
  }
  return peak;
}

std::optional<std::string>
reprise::solver::verify(const PackingProblem &problem,
                        const PackingSolution &solution) {
  const std::vector<PackingItem> &items = problem.items;
  const std::vector<int64_t> &offsets = solution.offsets;
  if (offsets.size() != items.size())
    return "needs an offset for each of " + std::to_string(items.size()) +
           " items, but got " + std::to_string(offsets.size());
  for (size_t i = 0; i != items.size(); ++i)
    if (offsets[i] < 0 || offsets[i] > maxBytes ||
        offsets[i] % problem.alignment != 0)
      return describe(items[i]) + " needs an offset of at least 0 that is a " +
             "multiple of " + std::to_string(problem.alignment) + ", but got " +
             std::to_string(offsets[i]);
  int64_t peak = peakOf(problem, offsets);
  if (peak != solution.peak)
    return "needs the peak " + std::to_string(peak) +
           " that its offsets reach, but got " + std::to_string(solution.peak);

  // What is alive, by offset. A newcomer can only overlap its two neighbours
  // there, since those alive do not overlap each other.
  std::map<int64_t, size_t> live;
  auto overlap = [&](size_t a, size_t b) -> std::optional<std::string> {
    if (offsets[b] < offsets[a])
      std::swap(a, b);
    int64_t end = offsets[a] + items[a].size;
    if (end <= offsets[b])
      return std::nullopt;
    return describe(items[a]) + " at bytes [" + std::to_string(offsets[a]) +
           ", " + std::to_string(end) + ") and times " + life(items[a]) +
           " overlaps " + describe(items[b]) + " at bytes [" +
           std::to_string(offsets[b]) + ", " +
           std::to_string(offsets[b] + items[b].size) + ") and times " +
           life(items[b]);
  };
  for (const Event &event : eventsOf(problem)) {
    if (!event.isBirth) {
      live.erase(offsets[event.item]);
      continue;
    }
    auto next = live.lower_bound(offsets[event.item]);
    if (next != live.end())
      if (auto error = overlap(event.item, next->second))
        return error;
    if (next != live.begin())
      if (auto error = overlap(event.item, std::prev(next)->second))
        return error;
    live.insert({offsets[event.item], event.item});
  }
  return std::nullopt;
}
