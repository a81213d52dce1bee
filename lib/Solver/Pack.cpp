//===- Pack.cpp - Which algorithm when ------------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Settling blocks packs a training step at once. Where it does not reach the
// target, and the problem is small enough, a short search settles what is easy;
// then orders of settling are changed at random; then an exhaustive search goes
// on: first at the target, then, should that be too hard, at peaks between the
// target and the best one found.
//
//===----------------------------------------------------------------------===//

#include "Space.h"

#include <algorithm>

using namespace reprise::solver;

/// A descent of the search costs n^2 steps and n^2 / 2 words of memory.
static constexpr int32_t maxSearchedBlocks = 3000;

/// A peak that is easier than the target halves the distance to the best.
static constexpr int maxHalvings = 5;

/// Elementary steps of a first search, which easy problems end in.
static constexpr int64_t quickWork = 4'000'000;

/// Where nothing but the target counts: most that a search finds it finds
/// within so many, sooner than changes to orders would.
static constexpr int64_t patientWork = 32'000'000;

/// Of changes to orders.
static constexpr int64_t reorderWork = 100'000'000;

namespace {
class Packer {
public:
  Packer(const Space &space, int64_t target, const PackingOptions &options)
      : space(space), low(target), least(space.bound),
        isAllOrNothing(options.isAllOrNothing), meter{0, options.workLimit} {}

  void run();
  Offsets offsets;
  const char *method = "settle";
  int64_t getWork() const { return meter.done + patience; }
  int64_t getLeast() const { return least; }

private:
  bool isDone() const { return space.peak(offsets) <= low || meter.spent(); }
  int64_t getRest() const { return meter.limit - meter.done; }
  /// Looks for a packing of peak `wanted`, which is at least `low`. From then
  /// on peaks above it count unless it is found, or is to be looked for again.
  void search(int64_t wanted, int64_t work, bool isLast);
  void searchPatiently();
  void improveOrders();

  const Space &space;
  int64_t low;   ///< no search reached less
  int64_t least; ///< no packing has less
  bool isAllOrNothing;
  bool isHard = false;
  WorkMeter meter;
  int64_t patience = 0; ///< steps that the meter knows nothing of
};
} // namespace

void Packer::search(int64_t wanted, int64_t work, bool isLast) {
  WorkMeter share{0, work};
  Offsets found;
  SearchEnd end = searchCanonical(space, wanted, share, found);
  meter.done += share.done;
  if (end == SearchEnd::Found) {
    offsets = std::move(found);
    method = "canonical search";
  } else if (end == SearchEnd::Refuted || isLast) {
    low = wanted + 1;
    isHard = true;
  }
  if (end == SearchEnd::Refuted)
    least = std::max(least, wanted + 1);
}

/// A search at the target which what comes behind it knows nothing of. That has
/// as much work as without it, so much that what is found here is found there.
void Packer::searchPatiently() {
  int64_t done = meter.done;
  search(low, patientWork, /*isLast=*/false);
  patience = meter.done - done;
  meter.done = done;
}

void Packer::improveOrders() {
  WorkMeter share{0, std::min(reorderWork, getRest() / 2)};
  Offsets found = reorder(space, low, offsets, share);
  meter.done += share.done;
  if (space.peak(found) < space.peak(offsets)) {
    offsets = std::move(found);
    method = "reorder";
  }
}

void Packer::run() {
  offsets = settle(space, low, meter);
  if (isDone() || space.size() > maxSearchedBlocks)
    return;
  search(low, std::min(quickWork, getRest() / 4), /*isLast=*/false);
  if (isAllOrNothing && !isHard && !isDone() && getRest() > 16 * patientWork)
    searchPatiently();
  if (isAllOrNothing && isHard) // It is refuted.
    return;
  if (!isDone())
    improveOrders();
  for (int k = 0; k <= maxHalvings && !isDone(); ++k) {
    int64_t wanted = isHard ? low + (space.peak(offsets) - low) / 2 : low;
    // Half of what is left for the target, then half of the rest, ...
    search(wanted, getRest() / 2, /*isLast=*/true);
  }
}

PackingResult reprise::solver::pack(const PackingProblem &problem,
                                    const PackingOptions &options) {
  Space space(problem);
  PackingResult result;
  result.bound = space.bound * space.unit;
  int64_t target = space.bound;
  if (options.capacity)
    target = std::max(target, *options.capacity / space.unit);
  Packer packer(space, target, options);
  packer.run();
  result.method = packer.method;
  result.solution.offsets.assign(problem.items.size(), 0);
  for (int32_t i = 0; i != space.size(); ++i)
    result.solution.offsets[space.blocks[i].item] =
        packer.offsets[i] * space.unit;
  result.solution.peak = space.peak(packer.offsets) * space.unit;
  result.work = packer.getWork();
  result.least = packer.getLeast() * space.unit;
  return result;
}
