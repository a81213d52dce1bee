//===- ChainSolver.cpp - Every budget of a chain of layers ----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Seen from the start of a block, what runs between its forward and its
// backward pass is one number: the bytes that all later blocks need. A plan of
// the block that saves S bytes and needs W makes of a later need n the need
// max(W, S + n). So the best plans of the blocks from one on, a curve of needs
// and seconds, follow from those of the blocks behind, and the curve of the
// first block is the answer for all budgets.
//
// With m micro-batches in flight each kept byte counts m times, but the work of
// a block once, less what the blocks behind it have freed already: T kept bytes
// need m T + D, where D is the most by which any W exceeds what the block and
// those behind it keep. For a limit on D the curve of T and seconds follows in
// the same way.
//
//===----------------------------------------------------------------------===//

#include "Curve.h"

#include <algorithm>
#include <limits>

using namespace reprise::solver;

/// Sums of seconds that differ by this part of them are equal.
static constexpr double kSame = 1e-12;

BudgetCurve::ChainSolver::ChainSolver(Chain found, const BudgetOptions &options)
    : chain(std::move(found)), options(options), plans(chain) {
  findRest();
  // No need is larger than that of keeping everything, and its workspace.
  int64_t most = updateNeed, widest = 0;
  for (size_t block = 0; block < chain.blocks.size(); ++block) {
    int64_t need = 0;
    for (const LayerPlan &plan : plans.get(block, 1)) {
      need = std::max(need, getNeed(block, 1, plan) + plan.saved);
      widest = std::max(widest, getNeed(block, 1, plan) - plan.saved);
    }
    most += need;
  }
  unit = std::max<int64_t>(1, most / options.resolution);
  if (options.inFlight == 1) {
    tables.push_back(solveAll(std::nullopt));
    addPoints(0);
  } else {
    // What the micro-batch that runs has beside what it keeps is the work of
    // the last layers: a few limits will do.
    constexpr int64_t kLimits = 24;
    for (int64_t k = 0; k <= kLimits; ++k) {
      tables.push_back(
          solveAll(widest / kLimits * k + widest % kLimits * k / kLimits));
      addPoints(k);
    }
  }
  std::sort(this->found.begin(), this->found.end(),
            [](const Found &a, const Found &b) {
              return std::make_pair(a.point.peak, a.point.seconds) <
                     std::make_pair(b.point.peak, b.point.seconds);
            });
  std::vector<Found> best;
  for (const Found &each : this->found)
    if (best.empty() ||
        each.point.seconds < best.back().point.seconds * (1 - kSame))
      best.push_back(each);
  this->found = std::move(best);
}

/// One state for each unit of need: the fastest, and of those the smallest.
class BudgetCurve::ChainSolver::UnitStates {
public:
  explicit UnitStates(int64_t unit) : unit(unit), units(1 / double(unit)) {}

  /// Offers a plan, which keeps `saved` bytes and needs at least `least`, with
  /// each of the states `behind` it from `next` on.
  void offer(const State &plan, int64_t saved, int64_t least,
             const std::vector<State> &behind, size_t next) {
    for (; next < behind.size(); ++next) {
      int64_t need = std::max(least, saved + behind[next].need);
      double seconds = plan.seconds + behind[next].seconds;
      size_t index = getUnit(need);
      if (index >= best.size()) {
        best.resize(index + 1, {-1, 0});
        slowest.resize(index + 1, std::numeric_limits<double>::infinity());
      }
      // Most are slower than one that is known.
      if (seconds > slowest[index])
        continue;
      State &there = best[index];
      if (there.need >= 0 && seconds >= there.seconds * (1 - kSame) &&
          need >= there.need)
        continue;
      there = {need, seconds, plan.count, plan.plan, int32_t(next)};
      slowest[index] = seconds * (1 + kSame);
    }
  }
  const std::vector<State> &get() const { return best; }

private:
  /// `need / unit`. There are some ten thousand units at most, so the product
  /// is less than one away from it.
  size_t getUnit(int64_t need) const {
    int64_t number = int64_t(double(need) * units), rest = need - number * unit;
    return size_t(number + (rest >= unit) - (rest < 0));
  }

  int64_t unit;
  double units; ///< of a byte
  std::vector<State> best;
  std::vector<double> slowest; ///< seconds that are as good as those known
};

BudgetCurve::ChainSolver::States
BudgetCurve::ChainSolver::solveAll(std::optional<int64_t> overhang) {
  int64_t numBlocks = chain.blocks.size();
  States states(numBlocks + 1);
  states[numBlocks].push_back({0, 0});
  for (int64_t first = numBlocks - 1; first >= 0; --first)
    states[first] = solve(states, first, overhang);
  return states;
}

/// The most that is alive, in a backward or forward pass, beside what all
/// blocks keep of a micro-batch.
int64_t BudgetCurve::ChainSolver::getOverhang(size_t table,
                                              size_t state) const {
  int64_t most = 0, left = tables[table][0][state].need;
  walk(table, state, [&](int64_t first, int64_t count, const LayerPlan &plan) {
    most = std::max(most, getNeed(first, count, plan) - left);
    left -= plan.saved;
  });
  return most;
}

void BudgetCurve::ChainSolver::addPoints(size_t table) {
  const std::vector<State> &first = tables[table][0];
  for (size_t state = 0; state < first.size(); ++state) {
    int64_t peak = first[state].need;
    if (options.inFlight > 1)
      peak = options.inFlight * peak + getOverhang(table, state);
    found.push_back(
        {{std::max(peak, updateNeed), first[state].seconds}, table, state});
  }
}

/// Compares blocks by themselves with the whole step, nothing dropped.
void BudgetCurve::ChainSolver::findRest() {
  int64_t numBlocks = chain.blocks.size(), prefix = 0;
  restForward.assign(numBlocks, 0);
  restBackward.assign(numBlocks, 0);
  made.assign(numBlocks, 0);
  StepSimulator whole(chain.graph);
  StepRun run = whole.run(keepAll(chain.graph));
  std::vector<int64_t> positionOf(chain.graph.ops.size());
  for (size_t p = 0; p < run.schedule.size(); ++p)
    if (!run.schedule[p].isReplay) {
      positionOf[run.schedule[p].op] = p;
      if (chain.graph.ops[run.schedule[p].op].phase == StepPhase::Update)
        updateNeed = std::max(updateNeed, run.live[p]);
    }
  for (const StepBuffer &buffer : whole.getBuffers()) {
    auto [op, isReplay] = run.schedule[buffer.first];
    int64_t alignment = chain.graph.alignment;
    // Gradients, and what the update reads beside them.
    int64_t reader = run.schedule[buffer.last].op;
    bool isLeft = buffer.last + 1 == int64_t(run.schedule.size()) ||
                  chain.graph.ops[reader].phase == StepPhase::Update;
    if (!isReplay && chain.graph.ops[op].phase == StepPhase::Backward && isLeft)
      made[chain.blockOfOp[op]] +=
          (buffer.bytes + alignment - 1) / alignment * alignment;
  }
  for (int64_t block = 0; block < numBlocks; ++block) {
    std::optional<Excerpt> excerpt = extract(chain, block, 1);
    if (!excerpt)
      continue;
    StepSimulator part(excerpt->graph);
    const StepRun &own = part.run(keepAll(excerpt->graph));
    const Block &ops = chain.blocks[block];
    int64_t saved = 0;
    for (size_t p = 0; p < own.schedule.size(); ++p) {
      if (own.schedule[p].isReplay)
        continue;
      int64_t op = own.schedule[p].op;
      if (op == excerpt->gap)
        saved = part.getBytesAcross(p);
      bool isForward = op < excerpt->gap;
      int64_t behind = op - excerpt->gap - 1;
      if (op == excerpt->gap ||
          (!isForward && behind >= int64_t(ops.backward.size())))
        continue;
      int64_t original = isForward ? ops.forward[op] : ops.backward[behind];
      int64_t &rest = (isForward ? restForward : restBackward)[block];
      rest =
          std::max(rest, run.live[positionOf[original]] - own.live[p] - prefix);
    }
    prefix += saved;
  }
}

int64_t BudgetCurve::ChainSolver::getNeed(int64_t first, int64_t count,
                                          const LayerPlan &plan) const {
  int64_t forward = 0, backward = 0, madeWithin = 0;
  for (int64_t block = first + count - 1; block >= first; --block) {
    forward = std::max(forward, restForward[block]);
    backward = std::max(backward, restBackward[block] - madeWithin);
    madeWithin += made[block];
  }
  return std::max(plan.forwardNeed + forward, plan.backwardNeed + backward);
}

std::vector<BudgetCurve::ChainSolver::State>
BudgetCurve::ChainSolver::solve(const States &states, int64_t first,
                                std::optional<int64_t> overhang) {
  UnitStates best(unit);
  int64_t numBlocks = chain.blocks.size();
  for (int64_t count = 1;
       count <= kMostSegmentLayers && first + count <= numBlocks; ++count) {
    const std::vector<LayerPlan> &choices = plans.get(first, count);
    const std::vector<State> &behind = states[first + count];
    for (size_t p = 0; p < choices.size(); ++p) {
      const LayerPlan &plan = choices[p];
      int64_t need = getNeed(first, count, plan);
      size_t next = 0;
      if (overhang)
        // The block's work has to be hidden by what is kept behind it.
        while (next < behind.size() &&
               need - plan.saved - behind[next].need > *overhang)
          ++next;
      else
        // Of all that the block itself hides, the last is the fastest.
        while (next + 1 < behind.size() &&
               plan.saved + behind[next + 1].need <= need)
          ++next;
      best.offer({0, plan.seconds, int32_t(count), int32_t(p)}, plan.saved,
                 overhang ? 0 : need, behind, next);
    }
  }
  std::vector<State> curve;
  for (const State &state : best.get()) {
    if (state.need < 0)
      continue;
    // With less kept behind it, a block may have to keep more: those stay.
    if (overhang || curve.empty() ||
        state.seconds < curve.back().seconds * (1 - kSame))
      curve.push_back(state);
  }
  return curve;
}

std::vector<BudgetPoint> BudgetCurve::ChainSolver::getPoints() const {
  std::vector<BudgetPoint> result;
  for (const Found &each : found)
    result.push_back(each.point);
  return result;
}

/// Calls `visit` with first block, number of blocks and plan, in order.
template <typename Visit>
void BudgetCurve::ChainSolver::walk(size_t table, size_t state,
                                    Visit visit) const {
  int64_t index = state;
  for (size_t block = 0; block < chain.blocks.size();) {
    const State &at = tables[table][block][index];
    visit(int64_t(block), int64_t(at.count),
          plans.get(block, at.count)[at.plan]);
    block += at.count;
    index = at.next;
  }
}

KeptValues BudgetCurve::ChainSolver::getPlan(size_t point) const {
  KeptValues kept = keepAll(chain.graph);
  auto [_, table, state] = found[point];
  walk(table, state, [&](int64_t first, int64_t count, const LayerPlan &plan) {
    size_t next = 0;
    for (int64_t block = first; block < first + count; ++block)
      for (Slot slot : chain.getSlots(block)) {
        int64_t value = chain.getValue(block, slot);
        bool isKept = plan.kept[next++];
        if (chain.graph.values[value].rule == StepValue::Rule::Free)
          kept[value] = isKept;
      }
  });
  return kept;
}

std::vector<std::pair<int64_t, int64_t>>
BudgetCurve::ChainSolver::getSegments(size_t point) const {
  std::vector<std::pair<int64_t, int64_t>> segments;
  auto [_, table, state] = found[point];
  walk(table, state, [&](int64_t first, int64_t count, const LayerPlan &) {
    if (count > 1)
      segments.push_back(
          {chain.blocks[first].layer, chain.blocks[first + count - 1].layer});
  });
  return segments;
}
