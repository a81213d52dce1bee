//===- ChainSolver.cpp - Every budget of a chain of layers ---------------===//
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
//===----------------------------------------------------------------------===//

#include "Curve.h"

#include <algorithm>

using namespace reprise::solver;

BudgetCurve::ChainSolver::ChainSolver(Chain found, const BudgetOptions &options)
    : chain(std::move(found)), options(options), plans(chain) {
  findRest();
  int64_t numBlocks = chain.blocks.size();
  states.resize(numBlocks + 1);
  states[numBlocks].push_back({0, 0});
  // No need is larger than that of keeping everything, and its workspace.
  int64_t most = updateNeed;
  for (int64_t block = 0; block < numBlocks; ++block) {
    int64_t need = 0;
    for (const LayerPlan &plan : plans.get(block, 1))
      need = std::max(need, getNeed(block, 1, plan) + plan.saved);
    most += need;
  }
  unit = std::max<int64_t>(1, most / options.resolution);
  for (int64_t first = numBlocks - 1; first >= 0; --first)
    states[first] = solve(first);
  // Where the update needs more, all that fit into that are one.
  std::vector<State> &all = states[0];
  while (all.size() > 1 && all[1].need <= updateNeed)
    all.erase(all.begin());
}

/// Compares blocks by themselves with the whole step, nothing dropped.
void BudgetCurve::ChainSolver::findRest() {
  int64_t numBlocks = chain.blocks.size(), prefix = 0;
  restForward.assign(numBlocks, 0);
  restBackward.assign(numBlocks, 0);
  StepSimulator whole(chain.graph);
  StepRun run = whole.run(keepAll(chain.graph));
  std::vector<int64_t> positionOf(chain.graph.ops.size());
  for (size_t p = 0; p < run.schedule.size(); ++p)
    if (!run.schedule[p].isReplay) {
      positionOf[run.schedule[p].op] = p;
      if (chain.graph.ops[run.schedule[p].op].phase == StepPhase::Update)
        updateNeed = std::max(updateNeed, run.live[p]);
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
  auto most = [&](const std::vector<int64_t> &rest) {
    return *std::max_element(rest.begin() + first,
                             rest.begin() + first + count);
  };
  return std::max(plan.forwardNeed + most(restForward),
                  plan.backwardNeed + most(restBackward));
}

std::vector<BudgetCurve::ChainSolver::State>
BudgetCurve::ChainSolver::solve(int64_t first) {
  constexpr double kSame = 1e-12;
  // One state for each unit of need: the fastest, and of those the smallest.
  std::vector<State> best;
  auto offer = [&](const State &state) {
    size_t index = state.need / unit;
    if (index >= best.size())
      best.resize(index + 1, {-1, 0});
    State &there = best[index];
    if (there.need < 0 || state.seconds < there.seconds * (1 - kSame) ||
        (state.seconds <= there.seconds * (1 + kSame) &&
         state.need < there.need))
      there = state;
  };
  int64_t numBlocks = chain.blocks.size();
  for (int64_t count = 1;
       count <= LayerPlans::kMostBlocks && first + count <= numBlocks;
       ++count) {
    const std::vector<LayerPlan> &choices = plans.get(first, count);
    const std::vector<State> &behind = states[first + count];
    for (size_t p = 0; p < choices.size(); ++p) {
      const LayerPlan &plan = choices[p];
      int64_t need = getNeed(first, count, plan);
      // Of all that the block itself hides, the last is the fastest.
      size_t next = 0;
      while (next + 1 < behind.size() &&
             plan.saved + behind[next + 1].need <= need)
        ++next;
      for (; next < behind.size(); ++next)
        offer({std::max(need, plan.saved + behind[next].need),
               plan.seconds + behind[next].seconds, int32_t(count), int32_t(p),
               int32_t(next)});
    }
  }
  std::vector<State> curve;
  for (const State &state : best) {
    if (state.need < 0)
      continue;
    if (curve.empty() || state.seconds < curve.back().seconds * (1 - kSame))
      curve.push_back(state);
  }
  return curve;
}

std::vector<BudgetPoint> BudgetCurve::ChainSolver::getPoints() const {
  std::vector<BudgetPoint> result;
  for (const State &state : states[0])
    result.push_back({std::max(state.need, updateNeed), state.seconds});
  return result;
}

/// Calls `visit` with first block, number of blocks and plan, in order.
template <typename Visit>
void BudgetCurve::ChainSolver::walk(size_t point, Visit visit) const {
  int64_t index = point;
  for (size_t block = 0; block < chain.blocks.size();) {
    const State &state = states[block][index];
    visit(int64_t(block), state.count,
          plans.get(block, state.count)[state.plan]);
    block += state.count;
    index = state.next;
  }
}

KeptValues BudgetCurve::ChainSolver::getPlan(size_t point) const {
  KeptValues kept = keepAll(chain.graph);
  walk(point, [&](int64_t first, int64_t count, const LayerPlan &plan) {
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
  walk(point, [&](int64_t first, int64_t count, const LayerPlan &) {
    if (count > 1)
      segments.push_back(
          {chain.blocks[first].layer, chain.blocks[first + count - 1].layer});
  });
  return segments;
}
