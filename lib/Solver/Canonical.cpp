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
  /// What a node may place: `waiting[place]`.
  struct Candidate {
    int64_t offset;
    int32_t rank, place;
  };
  /// The last block that was placed, and the largest offset that is known to
  /// leave room in all sections of the part.
  struct Last {
    int64_t offset = 0, roomy = 0;
    int32_t rank = 0;
  };

  std::vector<Part> split(const std::vector<int32_t> &blocks) const;
  void sortByPreorder(Part &part) const;
  Outcome solveParts(std::vector<Part> parts, int64_t roomy);
  Outcome solve(const Part &part, std::vector<int32_t> &waiting, Last last);
  Outcome descend(const Part &part, std::vector<int32_t> &waiting,
                  Candidate candidate, int64_t roomy);
  void findCandidates(const std::vector<int32_t> &waiting, Last last);
  bool place(const Part &part, int32_t index, int64_t offset, int64_t roomy);
  bool raiseFloors(const Block &placed, size_t mark);
  int64_t countBeside(const Block &placed, size_t mark);
  /// Blocks of the sections [first, last), added up.
  int64_t countAlive(int32_t first, int32_t last) const {
    return aliveBegin[last] - aliveBegin[first];
  }
  bool raiseFloorsOf(int32_t first, int32_t last);
  int32_t findLowest(int32_t section);
  bool isBelow(int32_t a, int32_t b) const {
    return least[a] != least[b] ? least[a] < least[b]
                                : space.blocks[a].last > space.blocks[b].last;
  }
  void takeOut(int32_t index);
  void rewind(size_t leastMark, size_t floorMark);

  const Space &space;
  const int64_t target;
  WorkMeter &meter;
  int64_t nodesLeft = 0;
  std::string_view preorder;

  std::vector<std::vector<int32_t>> meeting; ///< Of each block.
  /// Blocks of each section, waiting or not, in any order: one section behind
  /// the other, and where each begins.
  std::vector<int32_t> alive;
  std::vector<int64_t> aliveBegin;
  std::vector<int32_t> bornBefore; ///< Blocks born before each section.
  Offsets offsets;
  std::vector<int64_t> size;         ///< Of each block.
  std::vector<int64_t> least;        ///< Of a waiting block; else the largest.
  std::vector<int64_t> floor;        ///< Of each section.
  std::vector<int64_t> waitingSum;   ///< Of each section.
  std::vector<int32_t> crossing;     ///< Waiting blocks alive at s and s + 1.
  std::vector<int32_t> rank;         ///< Place of each block in its part.
  std::vector<Candidate> candidates; ///< Of all nodes on the way, a stack.
  std::vector<std::pair<int32_t, int64_t>> leastTrail, floorTrail;
  std::vector<int32_t> stamp; ///< Last `countBeside` that counted a section.
  int32_t stamps = 0;
};
} // namespace

/// The least offset of a block that does not wait.
static constexpr int64_t nowhere = std::numeric_limits<int64_t>::max();
static constexpr int32_t nobody = -1;

Search::Search(const Space &space, int64_t target, WorkMeter &meter)
    : space(space), target(target), meter(meter), meeting(space.size()),
      aliveBegin(space.load.size() + 1, 0),
      bornBefore(space.load.size() + 1, 0), offsets(space.size(), unplaced),
      least(space.size(), 0), floor(space.load.size(), 0),
      waitingSum(space.load), crossing(space.load.size(), 0),
      rank(space.size(), 0), stamp(space.load.size(), 0) {
  for (int32_t i = 0; i != space.size(); ++i) {
    const Block &block = space.blocks[i];
    size.push_back(block.size);
    ++bornBefore[block.first + 1];
    for (int32_t j = i + 1;
         j != space.size() && space.blocks[j].first < block.last; ++j) {
      meeting[i].push_back(j);
      meeting[j].push_back(i);
    }
    for (int32_t s = block.first; s != block.last; ++s) {
      ++aliveBegin[s + 1];
      crossing[s] += s + 1 != block.last;
    }
  }
  std::partial_sum(aliveBegin.begin(), aliveBegin.end(), aliveBegin.begin());
  std::partial_sum(bornBefore.begin(), bornBefore.end(), bornBefore.begin());
  alive.resize(aliveBegin.back());
  std::vector<int64_t> next = aliveBegin;
  for (int32_t i = 0; i != space.size(); ++i)
    for (int32_t s = space.blocks[i].first; s != space.blocks[i].last; ++s)
      alive[next[s]++] = i;
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

Outcome Search::solveParts(std::vector<Part> parts, int64_t roomy) {
  for (Part &part : parts) {
    sortByPreorder(part);
    for (size_t k = 0; k != part.blocks.size(); ++k)
      rank[part.blocks[k]] = static_cast<int32_t>(k);
    std::vector<int32_t> waiting = part.blocks;
    Outcome outcome = solve(part, waiting, {0, roomy, 0});
    if (outcome != Outcome::Found)
      return outcome;
  }
  return Outcome::Found;
}

/// Puts those on the stack that may be placed next, in canonical order.
void Search::findCandidates(const std::vector<int32_t> &waiting, Last last) {
  size_t begin = candidates.size();
  int64_t lowestTop = std::numeric_limits<int64_t>::max();
  for (int32_t i : waiting)
    lowestTop = std::min(lowestTop, least[i] + size[i]);
  for (size_t k = 0; k != waiting.size(); ++k) {
    int32_t i = waiting[k];
    int64_t offset = least[i];
    if (offset >= lowestTop || offset < last.offset ||
        (offset == last.offset && rank[i] < last.rank))
      continue;
    candidates.push_back({offset, rank[i], static_cast<int32_t>(k)});
  }
  std::sort(candidates.begin() + begin, candidates.end(),
            [](const Candidate &a, const Candidate &b) {
              return a.offset != b.offset ? a.offset < b.offset
                                          : a.rank < b.rank;
            });
}

/// Finds places for `waiting`, in any order, at least as high as the last one.
/// On success their offsets stay set; at a dead end all is as before.
Outcome Search::solve(const Part &part, std::vector<int32_t> &waiting,
                      Last last) {
  if (waiting.empty())
    return Outcome::Found;
  if (--nodesLeft < 0 || meter.spent())
    return Outcome::Limit;
  meter.done += static_cast<int64_t>(waiting.size());
  size_t begin = candidates.size();
  findCandidates(waiting, last);
  size_t end = candidates.size();
  for (size_t k = begin; k != end; ++k) {
    Outcome outcome = descend(part, waiting, candidates[k], last.roomy);
    if (outcome != Outcome::DeadEnd)
      return outcome;
  }
  candidates.resize(begin);
  return Outcome::DeadEnd;
}

/// Places a candidate, and then the others.
Outcome Search::descend(const Part &part, std::vector<int32_t> &waiting,
                        Candidate candidate, int64_t roomy) {
  int32_t index = waiting[candidate.place];
  const Block &block = space.blocks[index];
  size_t leastMark = leastTrail.size(), floorMark = floorTrail.size();
  Outcome outcome = Outcome::DeadEnd;
  if (place(part, index, candidate.offset, roomy)) {
    roomy = std::max(roomy, candidate.offset);
    bool cut = false;
    for (int32_t s = block.first; s + 1 < block.last; ++s)
      cut |= --crossing[s] == 0;
    waiting[candidate.place] = waiting.back();
    waiting.pop_back();
    if (cut) {
      outcome = solveParts(split(waiting), roomy);
      if (outcome == Outcome::DeadEnd) {
        for (size_t k = 0; k != part.blocks.size(); ++k)
          rank[part.blocks[k]] = static_cast<int32_t>(k);
        for (int32_t i : waiting) // Solved parts beside the one that failed.
          takeOut(i);
      }
    } else {
      outcome = solve(part, waiting, {candidate.offset, roomy, candidate.rank});
    }
    for (int32_t s = block.first; s + 1 < block.last; ++s)
      ++crossing[s];
    if (outcome != Outcome::DeadEnd)
      return outcome;
    waiting.push_back(index);
    std::swap(waiting[candidate.place], waiting.back());
  }
  takeOut(index);
  rewind(leastMark, floorMark);
  return outcome;
}

/// Puts a block on `offset` and draws the conclusions. False if the part
/// cannot be completed then: the waiting blocks of each section need room above
/// its floor, and above `offset`. The caller undoes it in either case.
bool Search::place(const Part &part, int32_t index, int64_t offset,
                   int64_t roomy) {
  const Block &block = space.blocks[index];
  int64_t top = offset + block.size;
  bool fits = true;
  offsets[index] = offset;
  for (int32_t s = block.first; s != block.last; ++s) {
    floorTrail.emplace_back(s, floor[s]);
    floor[s] = top;
    waitingSum[s] -= block.size;
    fits &= top + waitingSum[s] <= target;
  }
  leastTrail.emplace_back(index, least[index]);
  least[index] = nowhere;
  size_t mark = leastTrail.size();
  for (int32_t other : meeting[index])
    if (least[other] < top) {
      leastTrail.emplace_back(other, least[other]);
      least[other] = top;
    }
  meter.done += static_cast<int64_t>(meeting[index].size()) +
                (part.last - part.first) / 4; // Sections are quick.
  // Elsewhere there is as much room as before, unless `offset` is higher.
  if (offset > roomy)
    for (int32_t s = part.first; s != part.last && fits; ++s)
      fits = offset + waitingSum[s] <= target;
  return fits && raiseFloors(block, mark);
}

/// Lifts the floors that blocks on the trail from `mark` on held down, all of
/// which meet `placed`. False if one of them is too high then.
bool Search::raiseFloors(const Block &placed, size_t mark) {
  // Where `placed` is, they may lie on it, and that is the floor there. On
  // either side each lives up to the border, so together without a gap.
  int32_t first = placed.first, last = placed.last;
  for (size_t k = mark; k != leastTrail.size(); ++k) {
    first = std::min(first, space.blocks[leastTrail[k].first].first);
    last = std::max(last, space.blocks[leastTrail[k].first].last);
  }
  meter.done += countBeside(placed, mark) + countAlive(first, placed.first) +
                countAlive(placed.last, last);
  bool fitsBefore = raiseFloorsOf(first, placed.first);
  return raiseFloorsOf(placed.last, last) && fitsBefore;
}

/// Blocks, waiting or not, in those sections of `placed` in which one on the
/// trail from `mark` on is.
int64_t Search::countBeside(const Block &placed, size_t mark) {
  int64_t count = 0;
  ++stamps;
  for (size_t k = mark; k != leastTrail.size(); ++k) {
    const Block &block = space.blocks[leastTrail[k].first];
    int32_t first = std::max(block.first, placed.first);
    int32_t last = std::min(block.last, placed.last);
    if (first == placed.first && last == placed.last)
      return countAlive(first, last);
    for (int32_t s = first; s != last; ++s) {
      if (stamp[s] == stamps)
        continue;
      stamp[s] = stamps;
      count += countAlive(s, s + 1);
    }
  }
  return count;
}

/// Lifts the floors of the sections [first, last) to the lowest least offsets
/// there. False if one of them is too high then.
bool Search::raiseFloorsOf(int32_t first, int32_t last) {
  bool fits = true;
  int32_t lowest = nobody;
  for (int32_t s = first; s != last; ++s) {
    if (lowest == nobody || space.blocks[lowest].last <= s)
      lowest = findLowest(s);
    else // Of those before, it is still the lowest.
      for (int32_t i = bornBefore[s]; i != bornBefore[s + 1]; ++i)
        if (isBelow(i, lowest))
          lowest = i;
    if (lowest == nobody || least[lowest] <= floor[s])
      continue;
    floorTrail.emplace_back(s, floor[s]);
    floor[s] = least[lowest];
    fits &= floor[s] + waitingSum[s] <= target;
  }
  return fits;
}

/// The block of a section that may lie lowest, of equal ones one that is there
/// long; `nobody` if none waits. The one that was found last is looked at
/// first: if it may lie on the floor, that is as low as any.
int32_t Search::findLowest(int32_t section) {
  auto begin = alive.begin() + aliveBegin[section];
  auto end = alive.begin() + aliveBegin[section + 1], found = begin;
  if (least[*begin] <= floor[section])
    return *begin;
  for (auto it = begin; it != end; ++it)
    if (isBelow(*it, *found))
      found = it;
  std::swap(*begin, *found);
  return least[*begin] == nowhere ? nobody : *begin;
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
      candidates.clear();
      Outcome outcome = solveParts(split(all), 0);
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
