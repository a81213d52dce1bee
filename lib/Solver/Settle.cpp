//===- Settle.cpp - Blocks sink one by one, lowest first ------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The greedy algorithm. The packing grows from the bottom: of all blocks that
// wait, the one that can lie lowest is placed next, directly on the blocks
// below it; an order decides between blocks that can lie equally low. What is
// alive all the time ends up at the bottom, the saved values of a layer chain,
// whose lives are nested, make a stack on it, and short lives go on top of the
// stack as it stands at their time.
//
// The heights of the placed blocks over the sections are a skyline; the least
// offset of a block is the skyline's maximum over its life. Both that question
// and raising a range are O(log n), so no pair of blocks is ever looked at.
//
// The order is then improved as in "squeaky wheel" optimization (Joslin and
// Clements, JAIR 10, 1999): the blocks that end up highest go to the front of
// the order, and all is placed anew.
//
//===----------------------------------------------------------------------===//

#include "Space.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <queue>
#include <string_view>
#include <tuple>
#include <unordered_map>

using namespace reprise::solver;

namespace {
/// Heights over the sections that only ever grow: a segment tree without
/// propagation. A node's `raised` holds for its whole range, `highest` is the
/// maximum over it, the node's own `raised` included.
class Skyline {
public:
  explicit Skyline(size_t sections) {
    while (width < sections)
      width *= 2;
    nodes.assign(2 * width, Node{0, 0});
  }

  /// The maximum over [first, last), which is not empty.
  int64_t highest(size_t first, size_t last) const {
    size_t left = first + width, right = last - 1 + width;
    int64_t result = std::max(nodes[left].highest, nodes[right].highest);
    // Between the two paths up, whole subtrees; on them, what was raised whole.
    for (; left / 2 != right / 2; left /= 2, right /= 2) {
      if (!(left & 1))
        result = std::max(result, nodes[left + 1].highest);
      if (right & 1)
        result = std::max(result, nodes[right - 1].highest);
      result =
          std::max({result, nodes[left / 2].raised, nodes[right / 2].raised});
    }
    for (left /= 2; left > 0; left /= 2)
      result = std::max(result, nodes[left].raised);
    return result;
  }

  /// Raises [first, last) to `height`, which none of it exceeds.
  void raise(size_t first, size_t last, int64_t height) {
    size_t left = first + width, right = last + width;
    for (; left < right; left /= 2, right /= 2) {
      if (left & 1)
        nodes[left++] = {height, height};
      if (right & 1)
        nodes[--right] = {height, height};
    }
    for (size_t end : {first + width, last - 1 + width})
      for (size_t node = end / 2; node > 0; node /= 2)
        nodes[node].highest = std::max(nodes[node].highest, height);
  }

private:
  struct Node {
    int64_t highest, raised;
  };
  size_t width = 1;
  std::vector<Node> nodes;
};
} // namespace

namespace {
/// The ranks of waiting blocks by the offset at which each is to be looked at.
class Agenda {
public:
  void add(int64_t offset, int32_t rank) {
    auto [entry, isNew] = levels.try_emplace(offset);
    if (isNew)
      offsets.push(offset);
    entry->second.push_back(rank);
  }
  bool empty() const { return offsets.empty(); }

  /// Takes out the lowest level.
  std::pair<int64_t, std::vector<int32_t>> next() {
    int64_t offset = offsets.top();
    offsets.pop();
    auto entry = levels.find(offset);
    std::vector<int32_t> ranks = std::move(entry->second);
    levels.erase(entry);
    return {offset, std::move(ranks)};
  }

private:
  std::unordered_map<int64_t, std::vector<int32_t>> levels;
  std::priority_queue<int64_t, std::vector<int64_t>, std::greater<int64_t>>
      offsets;
};
} // namespace

/// Elementary steps that one question to the skyline counts for, in time.
constexpr int64_t lookWork = 32;

/// One pass: an offset for every block of `order`.
static Offsets settleInOrder(const Space &space,
                             const std::vector<int32_t> &order,
                             WorkMeter &meter) {
  Offsets offsets(space.blocks.size(), unplaced);
  Skyline skyline(space.load.size());
  // The skyline only grows, so a block is never on the agenda too late, but
  // maybe too early: then it is put off to what is its least offset now.
  Agenda agenda;
  auto isDue = [&](int32_t rank, int64_t offset) {
    meter.done += lookWork;
    const Block &block = space.blocks[order[rank]];
    int64_t least = skyline.highest(block.first, block.last);
    if (least == offset)
      return true;
    agenda.add(least, rank);
    return false;
  };
  for (size_t rank = 0; rank != order.size(); ++rank)
    agenda.add(0, static_cast<int32_t>(rank));
  while (!agenda.empty()) {
    int64_t offset;
    std::vector<int32_t> ranks;
    std::tie(offset, ranks) = agenda.next();
    size_t numDue = 0;
    for (int32_t rank : ranks)
      if (isDue(rank, offset))
        ranks[numDue++] = rank;
    ranks.resize(numDue);
    std::sort(ranks.begin(), ranks.end());
    for (size_t k = 0; k != numDue; ++k) {
      if (k != 0 && !isDue(ranks[k], offset))
        continue; // One placed just now is in the way.
      const Block &block = space.blocks[order[ranks[k]]];
      offsets[order[ranks[k]]] = offset;
      skyline.raise(block.first, block.last, offset + block.size);
    }
  }
  return offsets;
}

/// Sorts the blocks by the letters of `word`: the largest value of the first
/// letter goes to the front, ties go to the next letter. A area, W lifetime, Z
/// size, T largest load met, E last section, s first section (earliest first).
static std::vector<int32_t> orderBy(const Space &space, std::string_view word) {
  auto key = [&](char letter, const Block &block) -> int64_t {
    switch (letter) {
    case 'A':
      return area(block.size, block.last - block.first);
    case 'W':
      return block.lifetime;
    case 'Z':
      return block.size;
    case 'E':
      return block.last;
    case 'T':
      return *std::max_element(space.load.begin() + block.first,
                               space.load.begin() + block.last);
    default:
      assert(letter == 's' && "no such key");
      return -block.first;
    }
  };
  std::vector<std::vector<int64_t>> keys;
  for (char letter : word) {
    keys.emplace_back();
    for (const Block &block : space.blocks)
      keys.back().push_back(key(letter, block));
  }
  std::vector<int32_t> order(space.blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    for (const std::vector<int64_t> &values : keys)
      if (values[a] != values[b])
        return values[a] > values[b];
    return a < b;
  });
  return order;
}

namespace {
/// One of the orders that the rounds start from, and what was learned on it.
struct Start {
  explicit Start(std::vector<int32_t> givenOrder)
      : order(std::move(givenOrder)), rank(order.size()),
        blame(order.size(), 0) {
    for (size_t k = 0; k != order.size(); ++k)
      rank[order[k]] = static_cast<int32_t>(k);
  }

  std::vector<int32_t> order;
  std::vector<int32_t> rank;  ///< The place of each block in `order`.
  std::vector<int32_t> blame; ///< Rounds in which a block was too high.
  int64_t best = std::numeric_limits<int64_t>::max();
};
} // namespace

Offsets reprise::solver::settle(const Space &space, int64_t target,
                                WorkMeter &meter) {
  // Chosen on the inputs of docs/solver.md: the first one packs layer chains,
  // the others large graphs with irregular parts.
  static constexpr std::string_view words[] = {"TWZ", "TAW", "TE", "TZ"};
  constexpr int maxRounds = 16; // Later rounds mostly repeat earlier ones.

  Offsets best;
  int64_t bestPeak = std::numeric_limits<int64_t>::max();
  std::vector<Start> starts;
  for (int round = 0; round != maxRounds; ++round) {
    for (size_t k = 0; k != std::size(words); ++k) {
      if (!best.empty() && meter.spent())
        return best;
      if (round == 0)
        starts.push_back(Start(orderBy(space, words[k])));
      Start &start = starts[k];
      std::vector<int32_t> order = start.order;
      std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
        return start.blame[a] != start.blame[b]
                   ? start.blame[a] > start.blame[b]
                   : start.rank[a] < start.rank[b];
      });
      Offsets offsets = settleInOrder(space, order, meter);
      int64_t peak = space.peak(offsets);
      // To blame are the blocks in the highest thousandth.
      start.best = std::min(start.best, peak);
      int64_t allowed = std::max(target, start.best - start.best / 1000 - 1);
      for (int32_t i = 0; i != space.size(); ++i)
        start.blame[i] += offsets[i] + space.blocks[i].size > allowed;
      if (peak < bestPeak) {
        bestPeak = peak;
        best = std::move(offsets);
      }
      if (bestPeak <= target)
        return best;
    }
  }
  return best;
}
