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
                      item.upper - item.lower});
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
}

int64_t Space::peak(const Offsets &offsets) const {
  int64_t peak = 0;
  for (int32_t i = 0; i != size(); ++i)
    if (offsets[i] != unplaced)
      peak = std::max(peak, offsets[i] + blocks[i].size);
  return peak;
}
