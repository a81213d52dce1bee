//===- BudgetStageCurve.cpp - Plans of a stage for all budgets ------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The plans of a stage are those of its chunks, one of each. Which of them are
// worth it depends on what the stage needs at its moments: chunks are added one
// by one, and each plan of those that are there has its bytes at each moment.
//
//===----------------------------------------------------------------------===//

#include "BudgetStages.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::planning;

ChunkCurve::ChunkCurve(const solver::StepGraph &graph,
                       ArrayRef<int64_t> inFlight) {
  for (int64_t count : inFlight) {
    solver::BudgetOptions options;
    options.inFlight = count;
    constexpr int64_t kResolution = 8192;
    options.resolution = kResolution;
    curves.push_back(std::make_unique<solver::BudgetCurve>(graph, options));
    for (auto [own, point] : llvm::enumerate(curves.back()->getPoints())) {
      points.push_back(point);
      origins.push_back({curves.size() - 1, own});
    }
  }
}

solver::ChunkBytes planning::getBytes(const Chunk &chunk,
                                      solver::StepSimulator &simulator,
                                      size_t point) {
  solver::KeptValues plan = chunk.curve->getPlan(point);
  return {solver::getKeptBytes(chunk.step.graph, plan),
          simulator.run(plan).peak};
}

int64_t Stage::getNeed(ArrayRef<solver::ChunkBytes> bytes) const {
  return solver::getNeed(moments, bytes.vec());
}

const solver::StageMoment &
Stage::findMost(ArrayRef<solver::ChunkBytes> bytes) const {
  std::vector<solver::ChunkBytes> own = bytes.vec();
  return *llvm::max_element(
      moments, [&](const solver::StageMoment &a, const solver::StageMoment &b) {
        return solver::getNeed({a}, own) < solver::getNeed({b}, own);
      });
}

namespace {
/// Some plans of a chunk, or of the first chunks of a stage: the points of each
/// chunk, and bytes at each moment.
struct Plans {
  struct Plan {
    double seconds = 0;
    std::vector<size_t> points;
    std::vector<int64_t> bytes;
  };
  std::vector<Plan> all;
};
} // namespace

/// Combinations are as many as the product of both.
static constexpr size_t kMostPlans = 512;

/// Adds the numbers from `begin` to `end`, out of `count`, to `some`: of many
/// every few, with the first and the last.
static void thin(std::vector<size_t> &some, size_t begin, size_t end,
                 size_t count) {
  size_t stride = count / kMostPlans + 1;
  for (size_t k = begin; k < end; k += stride)
    some.push_back(k);
  if (begin < end && some.back() + 1 != end)
    some.push_back(end - 1);
}

static Plans getPlans(const Stage &stage, int64_t number) {
  const Chunk &chunk = stage.chunks[number];
  const std::vector<solver::BudgetPoint> &curve = chunk.curve->getPoints();
  solver::StepSimulator simulator(chunk.step.graph);
  // Each curve has a smallest and a fastest plan of its own.
  std::vector<size_t> some;
  for (size_t begin = 0; begin < curve.size();) {
    size_t end = chunk.curve->getEnd(begin);
    thin(some, begin, end, curve.size());
    begin = end;
  }
  Plans plans;
  for (size_t point : some) {
    solver::ChunkBytes own = getBytes(chunk, simulator, point);
    std::vector<int64_t> bytes;
    for (const solver::StageMoment &moment : stage.moments)
      bytes.push_back(
          moment.inFlight[number] * own.kept +
          (moment.running == number ? own.work - own.kept : int64_t(0)));
    plans.all.push_back({curve[point].seconds, {point}, std::move(bytes)});
  }
  return plans;
}

/// Adds a chunk to plans: of all combinations those that no other one is better
/// than at the moments that have most.
static Plans combine(const Plans &before, const Plans &added) {
  struct Both {
    int64_t peak;
    double seconds;
    size_t first, second;
  };
  std::vector<Both> all;
  std::vector<size_t> some;
  thin(some, 0, before.all.size(), before.all.size());
  for (size_t first : some)
    for (auto [second, plan] : llvm::enumerate(added.all)) {
      const Plans::Plan &own = before.all[first];
      int64_t peak = 0;
      for (auto [left, right] : llvm::zip(own.bytes, plan.bytes))
        peak = std::max(peak, left + right);
      all.push_back({peak, own.seconds + plan.seconds, first, second});
    }
  llvm::sort(all, [](const Both &a, const Both &b) {
    return std::tie(a.peak, a.seconds, a.first, a.second) <
           std::tie(b.peak, b.seconds, b.first, b.second);
  });
  Plans best;
  for (const Both &both : all) {
    if (!best.all.empty() && both.seconds >= best.all.back().seconds)
      continue;
    Plans::Plan plan = before.all[both.first];
    const Plans::Plan &own = added.all[both.second];
    plan.seconds = both.seconds;
    llvm::append_range(plan.points, own.points);
    for (auto [left, right] : llvm::zip(plan.bytes, own.bytes))
      left += right;
    best.all.push_back(std::move(plan));
  }
  return best;
}

static void addCurve(Stage &stage) {
  // One chunk has its own curve.
  if (stage.chunks.size() == 1) {
    for (auto [number, point] :
         llvm::enumerate(stage.chunks.front().curve->getPoints()))
      stage.curve.push_back({point.peak, point.seconds, {number}});
    return;
  }
  Plans plans = getPlans(stage, 0);
  for (size_t number = 1; number < stage.chunks.size(); ++number)
    plans = combine(plans, getPlans(stage, number));
  for (Plans::Plan &plan : plans.all)
    stage.curve.push_back(
        {*llvm::max_element(plan.bytes), plan.seconds, std::move(plan.points)});
}

void planning::solveChunks(Pipeline &pipeline) {
  for (Stage &stage : pipeline.stages) {
    for (Chunk &chunk : stage.chunks) {
      SmallVector<int64_t> inFlight = {chunk.inFlight};
      // While another chunk runs, what is kept is all that counts; and of one
      // that runs with few in flight it counts less.
      constexpr int64_t kMany = 16;
      if (stage.chunks.size() > 1)
        inFlight.append({kMany * chunk.inFlight, 1});
      chunk.curve = std::make_unique<ChunkCurve>(chunk.step.graph, inFlight);
    }
    addCurve(stage);
  }
}
