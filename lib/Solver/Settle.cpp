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
// offset of a block is the skyline's maximum over its life. Each block waits at
// one section of its life, whose height is then a lower bound for its offset.
// The section with the lowest height and, on equal heights, the first block in
// the order says who is looked at next: if that height is its least offset, it
// is placed there, otherwise it goes to wait at the section that holds it up.
// All of this is O(log n) in a segment tree over the sections, so no pair of
// blocks is ever looked at.
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
#include <string_view>
#include <tuple>

using namespace reprise::solver;

namespace {
/// The heights of the sections, and who waits where.
class Skyline {
public:
  explicit Skyline(const Space &space, const std::vector<int32_t> &order);

  static constexpr int32_t nobody = std::numeric_limits<int32_t>::max();
  static constexpr int64_t nowhere = std::numeric_limits<int64_t>::max();

  /// Who is next: the rank of the first block that waits at the lowest section
  /// where any does, or `nobody`; the height there.
  int32_t nextRank() const { return nodes[1].nextRank; }
  int64_t nextHeight() const { return nodes[1].nextHeight; }

  struct Summit {
    int64_t height;
    int32_t section;
  };
  /// The highest section of [first, last).
  Summit highest(int32_t first, int32_t last) {
    Summit summit{-1, first};
    highest(1, 0, width, first, last, summit);
    return summit;
  }

  void wait(int32_t section, int32_t rank);
  /// Takes away the first of those who wait at `section`.
  void leave(int32_t section);
  /// The same, and raises [first, last), which has that section.
  void settle(int32_t section, int32_t first, int32_t last, int64_t height);

private:
  /// Of a range of sections. Where nobody waits, `nextHeight` is the largest
  /// number.
  struct Node {
    int64_t height = 0; ///< Of the summit, as `section`.
    int64_t nextHeight = nowhere;
    int32_t section = 0;
    int32_t nextRank = nobody;
    int32_t firstRank = nobody; ///< Of all who wait in the range.
    bool isLevel = false;       ///< Children are still to be raised.
  };

  void level(int32_t node, int32_t first, int64_t height) {
    Node &n = nodes[node];
    n.height = height;
    n.section = first;
    n.nextRank = n.firstRank;
    n.nextHeight = n.firstRank != nobody ? height : nowhere;
    n.isLevel = true;
  }

  void pushDown(int32_t node, int32_t first, int32_t middle) {
    if (!nodes[node].isLevel)
      return;
    level(2 * node, first, nodes[node].height);
    level(2 * node + 1, middle, nodes[node].height);
    nodes[node].isLevel = false;
  }

  /// Who is next in the range, from its halves; whether that has changed.
  bool pullNext(int32_t node) {
    const Node &left = nodes[2 * node], &right = nodes[2 * node + 1];
    const Node &next = std::tie(right.nextHeight, right.nextRank) <
                               std::tie(left.nextHeight, left.nextRank)
                           ? right
                           : left;
    const int32_t firstRank = std::min(left.firstRank, right.firstRank);
    Node &n = nodes[node];
    const bool isSame = std::tie(n.nextHeight, n.nextRank, n.firstRank) ==
                        std::tie(next.nextHeight, next.nextRank, firstRank);
    n.nextHeight = next.nextHeight;
    n.nextRank = next.nextRank;
    n.firstRank = firstRank;
    return !isSame;
  }

  void pullUp(int32_t node) {
    const Node &left = nodes[2 * node], &right = nodes[2 * node + 1];
    const Node &higher = right.height > left.height ? right : left;
    nodes[node].height = higher.height;
    nodes[node].section = higher.section;
    pullNext(node);
  }

  void highest(int32_t node, int32_t lower, int32_t upper, int32_t first,
               int32_t last, Summit &summit);
  void raise(int32_t node, int32_t lower, int32_t upper, int32_t first,
             int32_t last, int64_t height);
  void update(int32_t section);
  void pop(int32_t section);

  int32_t width = 1;
  std::vector<Node> nodes;
  std::vector<std::vector<int32_t>> waiting; ///< Heaps of ranks, first on top.
};
} // namespace

/// Everybody waits where most bytes are alive: that is likely to hold them up.
Skyline::Skyline(const Space &space, const std::vector<int32_t> &order)
    : waiting(space.load.size()) {
  while (width < static_cast<int32_t>(space.load.size()))
    width *= 2;
  nodes.resize(2 * static_cast<size_t>(width));
  // By rising rank, so each list is a heap.
  for (size_t rank = 0; rank != order.size(); ++rank)
    waiting[space.blocks[order[rank]].crest].push_back(
        static_cast<int32_t>(rank));
  for (int32_t section = 0; section != width; ++section)
    nodes[width + section].section = section;
  for (size_t section = 0; section != waiting.size(); ++section)
    if (!waiting[section].empty()) {
      Node &leaf = nodes[width + section];
      leaf.nextHeight = 0;
      leaf.nextRank = leaf.firstRank = waiting[section].front();
    }
  for (int32_t node = width; --node > 0;)
    pullUp(node);
}

void Skyline::highest(int32_t node, int32_t lower, int32_t upper, int32_t first,
                      int32_t last, Summit &summit) {
  const Node &n = nodes[node];
  if (n.height <= summit.height)
    return;
  if (first <= lower && upper <= last) {
    summit = {n.height, n.section};
    return;
  }
  if (n.isLevel) {
    summit = {n.height, std::max(first, lower)};
    return;
  }
  int32_t middle = lower + (upper - lower) / 2;
  if (first < middle)
    highest(2 * node, lower, middle, first, last, summit);
  if (middle < last)
    highest(2 * node + 1, middle, upper, first, last, summit);
}

void Skyline::raise(int32_t node, int32_t lower, int32_t upper, int32_t first,
                    int32_t last, int64_t height) {
  if (first <= lower && upper <= last)
    return level(node, lower, height);
  int32_t middle = lower + (upper - lower) / 2;
  pushDown(node, lower, middle);
  if (first < middle)
    raise(2 * node, lower, middle, first, last, height);
  if (middle < last)
    raise(2 * node + 1, middle, upper, first, last, height);
  pullUp(node);
}

/// Tells the tree who is first at `section` now. Heights stay as they are, and
/// from a range on whose next one stays, those around it have no other either.
void Skyline::update(int32_t section) {
  int32_t lower = 0, upper = width;
  for (int32_t node = 1; node < width;) {
    const int32_t middle = lower + (upper - lower) / 2;
    pushDown(node, lower, middle);
    const bool isRight = section >= middle;
    (isRight ? lower : upper) = middle;
    node = 2 * node + isRight;
  }
  Node &leaf = nodes[width + section];
  bool isEmpty = waiting[section].empty();
  leaf.nextRank = leaf.firstRank = isEmpty ? nobody : waiting[section].front();
  leaf.nextHeight = isEmpty ? nowhere : leaf.height;
  for (int32_t node = (width + section) / 2; node > 0 && pullNext(node);)
    node /= 2;
}

void Skyline::wait(int32_t section, int32_t rank) {
  std::vector<int32_t> &heap = waiting[section];
  heap.push_back(rank);
  std::push_heap(heap.begin(), heap.end(), std::greater<int32_t>());
  if (heap.front() == rank)
    update(section);
}

void Skyline::pop(int32_t section) {
  std::vector<int32_t> &heap = waiting[section];
  std::pop_heap(heap.begin(), heap.end(), std::greater<int32_t>());
  heap.pop_back();
}

void Skyline::leave(int32_t section) {
  pop(section);
  update(section);
}

/// The range that is raised is told anew who is next there; it has to know who
/// is first. That does not depend on heights, so no child has to be raised.
void Skyline::settle(int32_t section, int32_t first, int32_t last,
                     int64_t height) {
  pop(section);
  int32_t node = width + section;
  nodes[node].firstRank =
      waiting[section].empty() ? nobody : waiting[section].front();
  while ((node /= 2) > 0) {
    int32_t rank =
        std::min(nodes[2 * node].firstRank, nodes[2 * node + 1].firstRank);
    if (nodes[node].firstRank == rank)
      break;
    nodes[node].firstRank = rank;
  }
  raise(1, 0, width, first, last, height);
}

/// Elementary steps that looking at a block counts for, in time.
constexpr int64_t lookWork = 200;

Offsets reprise::solver::settleInOrder(const Space &space,
                                       const std::vector<int32_t> &order,
                                       WorkMeter &meter) {
  Offsets offsets(space.blocks.size(), unplaced);
  Skyline skyline(space, order);
  std::vector<int32_t> waitsAt; ///< By rank.
  waitsAt.reserve(order.size());
  for (int32_t index : order)
    waitsAt.push_back(space.blocks[index].crest);
  while (skyline.nextRank() != Skyline::nobody) {
    meter.done += lookWork;
    int32_t rank = skyline.nextRank();
    int64_t height = skyline.nextHeight();
    const Block &block = space.blocks[order[rank]];
    Skyline::Summit summit = skyline.highest(block.first, block.last);
    if (summit.height == height) {
      offsets[order[rank]] = height;
      skyline.settle(waitsAt[rank], block.first, block.last,
                     height + block.size);
    } else {
      skyline.leave(waitsAt[rank]);
      waitsAt[rank] = summit.section;
      skyline.wait(summit.section, rank);
    }
  }
  return offsets;
}

std::vector<int32_t> reprise::solver::orderBy(const Space &space,
                                              std::string_view word) {
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
      return space.load[block.crest];
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
