//===- BudgetStagePlans.cpp - Plans of a pipeline for every budget --------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which plans the stages have is one function of the budget, for a run as for
// the curve of all budgets. A stage of one chunk takes the last of its points
// that fits: no replay less makes the schedule longer. With several chunks that
// may be, for which of them is spared a replay is not all the same to the
// schedule; so there is one list of fits, of all stages together, each faster
// than the one before, and a budget takes the last one that fits, whole.
//
//===----------------------------------------------------------------------===//

#include "BudgetStages.h"
#include <limits>

using namespace mlir;
using namespace reprise;
using namespace reprise::planning;

StagePlans::StagePlans(const Pipeline &pipeline, ArrayRef<int64_t> baseBytes)
    : pipeline(pipeline), baseBytes(baseBytes) {
  bool isSolved = llvm::none_of(
      pipeline.stages, [](const Stage &stage) { return stage.curve.empty(); });
  if (isSolved)
    addFits();
}

/// For every budget of a stage; of many some are looked at.
void StagePlans::addFits() {
  std::vector<int64_t> budgets;
  int64_t least = 0;
  for (auto [stage, base] : llvm::zip(pipeline.stages, baseBytes)) {
    least = std::max(least, stage.curve.front().peak + base);
    for (const Stage::Point &point : stage.curve)
      budgets.push_back(point.peak + base);
  }
  llvm::sort(budgets);
  budgets.erase(std::unique(budgets.begin(), budgets.end()), budgets.end());
  const solver::PipelineShape &shape = pipeline.shape;
  // With several chunks smaller points may be faster.
  int64_t neighbours = shape.virtualStages > 1 ? 2 : 0;
  constexpr int64_t kMostTasks = 1 << 24;
  int64_t tasks = 2 * shape.stages * shape.virtualStages * shape.microBatches *
                  (1 + neighbours * shape.stages);
  int64_t stride =
      1 + int64_t(budgets.size()) / std::max<int64_t>(kMostTasks / tasks, 2);
  // If this does not fit, nothing does.
  SmallVector<int64_t> smallest(shape.stages, 0);
  fits.push_back({least, smallest, pipeline.getSpan(smallest)});
  for (size_t b = 0; b < budgets.size(); ++b) {
    bool isEnd = budgets[b] == least || b + 1 == budgets.size();
    if (budgets[b] < least || (int64_t(b) % stride != 0 && !isEnd))
      continue;
    Fit fit = {budgets[b], {}, 0};
    for (auto [stage, base] : llvm::zip(pipeline.stages, baseBytes))
      fit.points.push_back(stage.find(budgets[b] - base));
    fit.span = pipeline.getSpan(fit.points);
    for (int64_t stage = 0; stage < shape.stages; ++stage)
      for (int64_t k = 0; k < neighbours; ++k) {
        Fit other = fit;
        if (--other.points[stage] < 0)
          break;
        other.span = pipeline.getSpan(other.points);
        if (other.span >= fit.span)
          break;
        fit = std::move(other);
      }
    // A neighbour needs less, and where only some budgets are looked at, no fit
    // before this one may be that of its bytes.
    fit.bytes = 0;
    for (auto [stage, base, point] :
         llvm::zip(pipeline.stages, baseBytes, fit.points))
      fit.bytes = std::max(fit.bytes, stage.curve[point].peak + base);
    if (fit.span < fits.back().span)
      fits.push_back(std::move(fit));
  }
}

int64_t StagePlans::getBytes(size_t number, int64_t point) {
  const Stage &stage = pipeline.stages[number];
  int64_t bytes = baseBytes[number];
  for (auto [v, chunk] : llvm::enumerate(stage.chunks)) {
    size_t own = stage.curve[point].points[v];
    auto [known, isMissing] = packed.try_emplace({number, v, own}, 0);
    // What layers add up to may be more than what is alive at one time, and
    // which plans are tried goes by that.
    if (isMissing)
      known->second = std::max(solver::getPackedBytes(chunk.step.graph,
                                                      chunk.curve->getPlan(own),
                                                      chunk.inFlight),
                               chunk.curve->getPoints()[own].peak);
    bytes += known->second;
  }
  return bytes;
}

int64_t StagePlans::getBytes(ArrayRef<int64_t> points) {
  int64_t most = 0;
  for (auto [number, point] : llvm::enumerate(points))
    most = std::max(most, getBytes(number, point));
  return most;
}

SmallVector<int64_t> StagePlans::find(int64_t bytes) {
  if (pipeline.shape.virtualStages > 1) {
    for (const Fit &fit : llvm::reverse(fits))
      if (fit.bytes <= bytes && getBytes(fit.points) <= bytes)
        return fit.points;
    return {};
  }
  SmallVector<int64_t> points;
  for (auto [number, stage] : llvm::enumerate(pipeline.stages)) {
    int64_t point = stage.find(bytes - baseBytes[number]);
    while (point >= 0 && getBytes(number, point) > bytes)
      --point;
    if (point < 0)
      return {};
    points.push_back(point);
  }
  return points;
}

std::vector<std::pair<int64_t, double>> StagePlans::getCurve() {
  std::vector<std::pair<int64_t, double>> curve;
  if (fits.empty())
    return curve;
  std::vector<int64_t> budgets = {getBytes(fits.front().points)};
  // Each has plans to be packed: of many, every few are.
  constexpr size_t kMost = 1024;
  for (size_t fit = 0; fit < fits.size(); fit += fits.size() / kMost + 1)
    budgets.push_back(fits[fit].bytes);
  llvm::sort(budgets);
  budgets.push_back(std::numeric_limits<int64_t>::max());
  SmallVector<int64_t> last;
  for (int64_t budget : budgets) {
    SmallVector<int64_t> points = find(budget);
    if (points.empty() || points == last)
      continue;
    last = points;
    double span = pipeline.getSpan(points);
    if (curve.empty() || span < curve.back().second)
      curve.push_back({getBytes(points), span});
  }
  return curve;
}
