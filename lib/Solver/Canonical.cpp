//===- Canonical.cpp - Depth-first search of canonical packings -----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// After Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-
// Accelerated Machine Learning", ASPLOS 2023. If there is a packing below the
// target, there is one where no block can sink, found by placing the blocks in
// order of their offsets, each on top of what is below it. The search
// follows that order. It keeps
//
//   * a least offset per waiting block: the top of the placed blocks it meets;
//   * per section a floor, the least offset of the blocks that still wait
//     there, and the sum of their sizes: floor + sum above the target is a
//     dead end ("section inference");
//   * of two neighbours in the search only the one in canonical order: a block
//     goes no lower than the one placed before it, and on the same height the
//     order is the preorder's;
//   * no candidate that starts where another one could end: the gap below it
//     would be waste ("dominance").
//
// When no waiting block crosses the border of two sections, both sides are
// problems of their own. The search restarts with a larger limit for each of
// three preorders in turn.
//
//===----------------------------------------------------------------------===//

#include "Space.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string_view>

using namespace reprise::solver;

namespace {
/// A node's outcome. `Limit` unwinds the whole search.
enum class Outcome { Found, DeadEnd, Limit };

class Search {
public:
  Search(const Space &space, int64_t target, WorkMeter &meter);
  SearchEnd run(Offsets &result);

private:
  /// Waiting blocks that meet none outside, in preorder.
  struct Part {
    int32_t first, last; ///< Their sections.
    std::vector<int32_t> blocks;
  };

  std::vector<Part> split(const std::vector<int32_t> &blocks) const;
  void sortByPreorder(Part &part) const;
  Outcome solveParts(std::vector<Part> parts);
  Outcome solve(const Part &part, const std::vector<int32_t> &waiting,
                int64_t lastOffset, int32_t lastRank);
  bool place(const Part &part, int32_t index, int64_t offset);
  void raiseFloors(int32_t index);
  bool fits(const Part &part, int64_t offset) const;
  void takeOut(int32_t index);
  void rewind(size_t leastMark, size_t floorMark);

  const Space &space;
  const int64_t target;
  WorkMeter &meter;
  int64_t nodesLeft = 0;
  std::string_view preorder;

  std::vector<std::vector<int32_t>> meeting; ///< Of each block.
  std::vector<std::vector<int32_t>> alive;   ///< In each section.
  Offsets offsets;
  std::vector<int64_t> least;      ///< Least offset of each waiting block.
  std::vector<int64_t> floor;      ///< Of each section.
  std::vector<int64_t> waitingSum; ///< Of each section.
  std::vector<int32_t> crossing;   ///< Waiting blocks alive at s and s + 1.
  std::vector<int32_t> rank;       ///< Place of each block in its part.
  std::vector<std::pair<int32_t, int64_t>> leastTrail, floorTrail;
  std::vector<int32_t> stamp; ///< Last `place` that saw to a section's floor.
  int32_t stamps = 0;
};
} // namespace

Search::Search(const Space &space, int64_t target, WorkMeter &meter)
    : space(space), target(target), meter(meter), meeting(space.size()),
      alive(space.load.size()), offsets(space.size(), unplaced),
      least(space.size(), 0), floor(space.load.size(), 0),
      waitingSum(space.load), crossing(space.load.size(), 0),
      rank(space.size(), 0), stamp(space.load.size(), 0) {
  for (int32_t i = 0; i != space.size(); ++i) {
    const Block &block = space.blocks[i];
    for (int32_t j = i + 1;
         j != space.size() && space.blocks[j].first < block.last; ++j) {
      meeting[i].push_back(j);
      meeting[j].push_back(i);
    }
    for (int32_t s = block.first; s != block.last; ++s) {
      alive[s].push_back(i);
      crossing[s] += s + 1 != block.last;
    }
  }
}

/// Cuts `blocks` where no one of them lives on both sides. Needs `crossing`.
std::vector<Search::Part>
Search::split(const std::vector<int32_t> &blocks) const {
  std::vector<int32_t> sorted = blocks;
  std::sort(sorted.begin(), sorted.end()); // By first section.
  std::vector<Part> parts;
  for (int32_t i : sorted) {
    const Block &block = space.blocks[i];
    if (parts.empty() || parts.back().last <= block.first)
      parts.push_back({block.first, block.last, {}});
    parts.back().last = std::max(parts.back().last, block.last);
    parts.back().blocks.push_back(i);
  }
  return parts;
}

/// By the letters of `preorder`, largest first: T largest waiting sum met, A
/// area, W length.
void Search::sortByPreorder(Part &part) const {
  struct Entry {
    int64_t key[3];
    int32_t block;
  };
  std::vector<Entry> entries;
  for (int32_t i : part.blocks) {
    const Block &block = space.blocks[i];
    Entry entry{{0, 0, 0}, i};
    for (size_t k = 0; k != preorder.size(); ++k)
      switch (preorder[k]) {
      case 'T':
        entry.key[k] = *std::max_element(waitingSum.begin() + block.first,
                                         waitingSum.begin() + block.last);
        break;
      case 'A':
        entry.key[k] = area(block.size, block.lifetime);
        break;
      default:
        entry.key[k] = block.lifetime;
      }
    entries.push_back(entry);
  }
  std::sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) {
    for (int k = 0; k != 3; ++k)
      if (a.key[k] != b.key[k])
        return a.key[k] > b.key[k];
    return a.block < b.block;
  });
  for (size_t k = 0; k != entries.size(); ++k)
    part.blocks[k] = entries[k].block;
}

Outcome Search::solveParts(std::vector<Part> parts) {
  for (Part &part : parts) {
    sortByPreorder(part);
    for (size_t k = 0; k != part.blocks.size(); ++k)
      rank[part.blocks[k]] = static_cast<int32_t>(k);
    Outcome outcome = solve(part, part.blocks, 0, 0);
    if (outcome != Outcome::Found)
      return outcome;
  }
  return Outcome::Found;
}

/// Finds places for `waiting`, at least as high as `lastOffset`. On success
/// their offsets stay set; otherwise all is as before.
Outcome Search::solve(const Part &part, const std::vector<int32_t> &waiting,
                      int64_t lastOffset, int32_t lastRank) {
  if (waiting.empty())
    return Outcome::Found;
  if (--nodesLeft < 0 || meter.spent())
    return Outcome::Limit;
  meter.done += static_cast<int64_t>(waiting.size());

  int64_t lowestTop = std::numeric_limits<int64_t>::max();
  for (int32_t i : waiting)
    lowestTop = std::min(lowestTop, least[i] + space.blocks[i].size);
  struct Candidate {
    int64_t offset;
    int32_t rank, block;
  };
  std::vector<Candidate> candidates;
  for (int32_t i : waiting) {
    int64_t offset = least[i];
    if (offset >= lowestTop || offset < lastOffset ||
        (offset == lastOffset && rank[i] < lastRank))
      continue;
    candidates.push_back({offset, rank[i], i});
  }
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate &a, const Candidate &b) {
              return a.offset != b.offset ? a.offset < b.offset
                                          : a.rank < b.rank;
            });

  for (const Candidate &candidate : candidates) {
    int32_t index = candidate.block;
    const Block &block = space.blocks[index];
    size_t leastMark = leastTrail.size(), floorMark = floorTrail.size();
    Outcome outcome = Outcome::DeadEnd;
    if (place(part, index, candidate.offset)) {
      bool cut = false;
      for (int32_t s = block.first; s + 1 < block.last; ++s)
        cut |= --crossing[s] == 0;
      std::vector<int32_t> rest;
      rest.reserve(waiting.size());
      for (int32_t i : waiting)
        if (i != index)
          rest.push_back(i);
      if (cut) {
        outcome = solveParts(split(rest));
        if (outcome == Outcome::DeadEnd)
          for (size_t k = 0; k != part.blocks.size(); ++k)
            rank[part.blocks[k]] = static_cast<int32_t>(k);
      } else {
        outcome = solve(part, rest, candidate.offset, candidate.rank);
      }
      for (int32_t s = block.first; s + 1 < block.last; ++s)
        ++crossing[s];
      if (outcome != Outcome::DeadEnd)
        return outcome;
      for (int32_t i : rest) // Solved parts beside the one that failed.
        takeOut(i);
    }
    takeOut(index);
    rewind(leastMark, floorMark);
  }
  return Outcome::DeadEnd;
}

/// Puts a block on `offset` and draws the conclusions. False if the part
/// cannot be completed then. The caller undoes it in either case.
bool Search::place(const Part &part, int32_t index, int64_t offset) {
  const Block &block = space.blocks[index];
  int64_t top = offset + block.size;
  offsets[index] = offset;
  for (int32_t s = block.first; s != block.last; ++s) {
    floorTrail.push_back({s, floor[s]});
    floor[s] = top;
    waitingSum[s] -= block.size;
  }
  size_t mark = leastTrail.size();
  for (int32_t other : meeting[index])
    if (offsets[other] == unplaced && least[other] < top) {
      leastTrail.push_back({other, least[other]});
      least[other] = top;
    }
  meter.done += static_cast<int64_t>(meeting[index].size()) +
                (part.last - part.first) / 4; // `fits` is quick.
  if (!fits(part, offset))
    return false;
  ++stamps;
  for (size_t k = mark; k != leastTrail.size(); ++k)
    raiseFloors(leastTrail[k].first);
  return fits(part, offset);
}

/// Lifts the floors of the sections of a block to the lowest least offset.
void Search::raiseFloors(int32_t index) {
  for (int32_t s = space.blocks[index].first; s != space.blocks[index].last;
       ++s) {
    if (stamp[s] == stamps)
      continue;
    stamp[s] = stamps;
    int64_t lowest = std::numeric_limits<int64_t>::max();
    for (int32_t other : alive[s])
      if (offsets[other] == unplaced)
        lowest = std::min(lowest, least[other]);
    meter.done += static_cast<int64_t>(alive[s].size());
    if (lowest != std::numeric_limits<int64_t>::max() && floor[s] < lowest) {
      floorTrail.push_back({s, floor[s]});
      floor[s] = lowest;
    }
  }
}

/// Whether the waiting blocks of each section find room above its floor.
bool Search::fits(const Part &part, int64_t offset) const {
  for (int32_t s = part.first; s != part.last; ++s)
    if (std::max(offset, floor[s]) + waitingSum[s] > target)
      return false;
  return true;
}

void Search::takeOut(int32_t index) {
  if (offsets[index] == unplaced)
    return;
  offsets[index] = unplaced;
  const Block &block = space.blocks[index];
  for (int32_t s = block.first; s != block.last; ++s)
    waitingSum[s] += block.size;
}

void Search::rewind(size_t leastMark, size_t floorMark) {
  for (; leastTrail.size() != leastMark; leastTrail.pop_back())
    least[leastTrail.back().first] = leastTrail.back().second;
  for (; floorTrail.size() != floorMark; floorTrail.pop_back())
    floor[floorTrail.back().first] = floorTrail.back().second;
}

SearchEnd Search::run(Offsets &result) {
  std::vector<int32_t> all(space.size());
  std::iota(all.begin(), all.end(), 0);
  for (int64_t limit = 2 * space.size();; limit *= 2)
    for (std::string_view word : {"WAT", "TAW", "TWA"}) {
      preorder = word;
      nodesLeft = limit;
      Outcome outcome = solveParts(split(all));
      if (outcome == Outcome::Found) {
        result = offsets;
        return SearchEnd::Found;
      }
      if (outcome == Outcome::DeadEnd)
        return SearchEnd::Refuted;
      if (meter.spent())
        return SearchEnd::OutOfWork;
      for (int32_t i : all)
        takeOut(i);
      rewind(0, 0);
    }
}

SearchEnd reprise::solver::searchCanonical(const Space &space, int64_t target,
                                           WorkMeter &meter, Offsets &offsets) {
  if (target < space.bound)
    return SearchEnd::Refuted;
  return Search(space, target, meter).run(offsets);
}
