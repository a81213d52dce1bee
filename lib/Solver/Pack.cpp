//===- Pack.cpp - Which algorithm when ------------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Settling blocks packs a training step at once. Where it does not reach the
// target, and the problem is small enough, an exhaustive search goes on: first
// at the target, then, should that be too hard, at peaks between the target
// and the best one found.
//
//===----------------------------------------------------------------------===//

#include "Space.h"

#include <algorithm>

using namespace reprise::solver;

/// A descent of the search costs n^2 steps and n^2 / 2 words of memory.
static constexpr int32_t maxSearchedBlocks = 3000;

/// A peak that is easier than the target halves the distance to the best.
static constexpr int maxHalvings = 5;

PackingResult reprise::solver::pack(const PackingProblem &problem,
                                    const PackingOptions &options) {
  Space space(problem);
  PackingResult result;
  result.bound = space.bound * space.unit;
  int64_t target = space.bound;
  if (options.capacity)
    target = std::max(target, *options.capacity / space.unit);

  WorkMeter meter{0, options.workLimit};
  Offsets best = settle(space, target, meter);
  result.method = "settle";

  int64_t low = target; // No search reached less than this.
  bool isHard = false;
  for (int k = 0; k <= maxHalvings && space.peak(best) > low &&
                  space.size() <= maxSearchedBlocks && !meter.spent();
       ++k) {
    int64_t peak = space.peak(best);
    int64_t wanted = isHard ? low + (peak - low) / 2 : low;
    // Half of what is left for the target, then half of the rest, ...
    WorkMeter share{0, (meter.limit - meter.done) / 2};
    Offsets found;
    SearchEnd end = searchCanonical(space, wanted, share, found);
    meter.done += share.done;
    if (end == SearchEnd::Found) {
      best = std::move(found);
      result.method = "canonical search";
    } else {
      low = wanted + 1;
      isHard = true;
    }
  }

  result.solution.offsets.assign(problem.items.size(), 0);
  for (int32_t i = 0; i != space.size(); ++i)
    result.solution.offsets[space.blocks[i].item] = best[i] * space.unit;
  result.solution.peak = space.peak(best) * space.unit;
  result.work = meter.done;
  return result;
}
