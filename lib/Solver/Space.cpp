//===- Space.cpp - A packing problem made ready for search ----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Space.h"

#include <algorithm>

using namespace reprise::solver;

/// Asks a table of the highest section of every range whose length is a power
/// of two; two such ranges cover a life.
static void findCrests(std::vector<Block> &blocks,
                       const std::vector<int64_t> &load) {
  auto higher = [&](int32_t a, int32_t b) { return load[b] > load[a] ? b : a; };
  std::vector<std::vector<int32_t>> table(1);
  for (size_t s = 0; s != load.size(); ++s)
    table[0].push_back(static_cast<int32_t>(s));
  for (size_t length = 2; length <= load.size(); length *= 2) {
    const std::vector<int32_t> &half = table.back();
    std::vector<int32_t> whole;
    for (size_t s = 0; s + length <= load.size(); ++s)
      whole.push_back(higher(half[s], half[s + length / 2]));
    table.push_back(std::move(whole));
  }
  for (Block &block : blocks) {
    int32_t level = 0;
    while (2 << level <= block.last - block.first)
      ++level;
    block.crest = higher(table[level][block.first],
                         table[level][block.last - (1 << level)]);
  }
}

Space::Space(const PackingProblem &problem) : unit(problem.alignment) {
  struct Event {
    int64_t time;
    bool birth; ///< Deaths come first: lifetimes are half-open.
    int32_t block;
  };
  std::vector<Event> events;
  for (size_t i = 0; i != problem.items.size(); ++i) {
    const PackingItem &item = problem.items[i];
    if (item.size == 0 || item.lower == item.upper)
      continue;
    int32_t block = size();
    blocks.push_back({0, 0, (item.size - 1) / unit + 1, static_cast<int32_t>(i),
                      0, item.upper - item.lower});
    events.push_back({item.lower, true, block});
    events.push_back({item.upper, false, block});
  }
  std::sort(events.begin(), events.end(), [](const Event &a, const Event &b) {
    if (a.time != b.time)
      return a.time < b.time;
    return a.birth != b.birth ? !a.birth : a.block < b.block;
  });

  // A section ends where the first death follows a birth.
  int32_t section = 0;
  int64_t live = 0;
  bool born = false;
  for (const Event &event : events) {
    Block &block = blocks[event.block];
    if (event.birth) {
      block.first = section;
      live += block.size;
      born = true;
      continue;
    }
    if (born) {
      load.push_back(live);
      bound = std::max(bound, live);
      ++section;
      born = false;
    }
    block.last = section;
    live -= block.size;
  }
  std::sort(blocks.begin(), blocks.end(), [](const Block &a, const Block &b) {
    return a.first != b.first ? a.first < b.first : a.item < b.item;
  });
  findCrests(blocks, load);
}

int64_t Space::peak(const Offsets &offsets) const {
  int64_t peak = 0;
  for (int32_t i = 0; i != size(); ++i)
    if (offsets[i] != unplaced)
      peak = std::max(peak, offsets[i] + blocks[i].size);
  return peak;
}
