//===- LinkClock.cpp - When ranks meet beside launches --------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LinkClock.h"
#include <map>

using namespace reprise;
using namespace reprise::report;

namespace {
/// When launches run, one after another, and what ranks have begun, which does
/// so too, beside them.
class LinkClock {
public:
  LinkClock(const CostTable &costs, bool runsBeside)
      : costs(costs), runsBeside(runsBeside) {}

  PositionTime pass(const Position &position);

private:
  const CostTable &costs;
  const bool runsBeside;
  double launches = 0, link = 0;
  std::map<int64_t, PositionTime> ends;
};
} // namespace

PositionTime LinkClock::pass(const Position &position) {
  double seconds = costs.getSeconds(position.load);
  if (position.begins >= 0) {
    link = std::max(link, launches) + seconds;
    ends[position.begins] = {runsBeside ? link : seconds, position.load};
    return {0, position.load};
  }
  Workload load = position.load;
  if (position.waits >= 0) {
    auto [end, begun] = ends[position.waits];
    seconds = runsBeside ? std::max(end - launches, 0.0) : end;
    load = begun;
  }
  launches += seconds;
  return {seconds, load};
}

std::vector<PositionTime> report::timeMicroBatch(const MemoryProfile &profile,
                                                 const CostTable &costs,
                                                 bool isLast) {
  LinkClock clock(costs, profile.runsBeside());
  std::vector<PositionTime> times;
  for (const Position &position : profile.getPositions())
    times.push_back(isLast || !position.runsOnce()
                        ? clock.pass(position)
                        : PositionTime{0, position.load});
  return times;
}
