//===- BudgetStagePlans.cpp - Plans of a pipeline for every budget --------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which plans the stages have is one function of the budget. A stage of one
// chunk takes one of the last of its points that fit: no replay less makes the
// schedule longer. With several chunks that may be, for which of them is spared
// a replay is not all the same to the schedule; so there is one list of fits,
// of all stages together, each faster than the one before, and a budget takes
// one of the last that fit, whole.
//
// Neither offsets nor programs take more with each point. To find the last one
// that fits, all behind it would have to be compiled; so a tree says which are
// asked about.
//
//===----------------------------------------------------------------------===//

#include "BudgetStages.h"
#include "llvm/ADT/Sequence.h"
#include <limits>

using namespace mlir;
using namespace reprise;
using namespace reprise::planning;

/// More than any budget: what has no program fits none.
static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

StagePlans::StagePlans(const Pipeline &pipeline, ArrayRef<int64_t> baseBytes,
                       MeasurePoints measure)
    : pipeline(pipeline), baseBytes(baseBytes.vec()),
      measure(std::move(measure)) {
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

int64_t StagePlans::foresee(size_t stage, int64_t point) const {
  return pipeline.stages[stage].curve[point].peak + baseBytes[stage];
}

int64_t StagePlans::count(size_t number, int64_t point) {
  const Stage &stage = pipeline.stages[number];
  SmallVector<solver::ChunkBytes> bytes;
  for (auto [v, chunk] : llvm::enumerate(stage.chunks)) {
    size_t own = stage.curve[point].points[v];
    auto [known, isMissing] = packed.try_emplace({number, v, own});
    if (isMissing) {
      solver::KeptValues plan = chunk.curve->getPlan(own);
      known->second = {solver::getKeptBytes(chunk.step.graph, plan),
                       solver::getPackedBytes(chunk.step.graph, plan)};
    }
    bytes.push_back(known->second);
  }
  // What layers add up to may be more than what is alive at one time, and which
  // plans are tried goes by that.
  return std::max(baseBytes[number] + stage.getNeed(bytes),
                  foresee(number, point));
}

//===----------------------------------------------------------------------===//
// Lists
//===----------------------------------------------------------------------===//

/// That a plan does not fit is known for nothing as a rule, and that it does
/// takes a compile; so most of the others come before the one that is asked
/// about. What tasks of weights wait for is in programs alone: each takes a
/// compile there, and halves take the fewest.
std::vector<PlanTree> StagePlans::plant() const {
  bool isCounted =
      !measure || llvm::none_of(pipeline.schedule, solver::splitsWeights);
  int64_t eighths = isCounted ? 7 : 4;
  std::vector<PlanTree> trees;
  if (isTogether())
    trees.emplace_back(fits.size(), eighths);
  else
    for (const Stage &stage : pipeline.stages)
      trees.emplace_back(stage.curve.size(), eighths);
  return trees;
}

SmallVector<int64_t> StagePlans::getPoints(ArrayRef<int64_t> plans) const {
  if (isTogether())
    return fits[plans.front()].points;
  return SmallVector<int64_t>(plans);
}

/// In one go, for what is not of a single stage is done once; where there is
/// no program, each by itself, to know of which.
void StagePlans::compile(ArrayRef<int64_t> points, ArrayRef<int64_t> stages) {
  SmallVector<int64_t> missing;
  for (int64_t stage : stages)
    if (!programs.count({stage, points[stage]}))
      missing.push_back(stage);
  if (missing.empty() || !measure)
    return;
  std::vector<int64_t> bytes = measure(points, missing);
  if (bytes.empty() && missing.size() > 1) {
    for (int64_t stage : missing)
      compile(points, stage);
    return;
  }
  bytes.resize(missing.size(), kNone);
  for (auto [stage, own] : llvm::zip(missing, bytes))
    programs[{stage, points[stage]}] = own;
}

std::vector<int64_t> StagePlans::getProgramBytes(ArrayRef<int64_t> points) {
  std::vector<int64_t> bytes;
  compile(points, llvm::to_vector(llvm::seq<int64_t>(0, points.size())));
  for (auto [stage, point] : llvm::enumerate(points))
    if (auto known = programs.find({stage, point});
        known != programs.end() && known->second != kNone)
      bytes.push_back(known->second);
  if (bytes.size() < points.size())
    return {};
  return bytes;
}

std::optional<int64_t> StagePlans::getBytes(size_t list, int64_t plan,
                                            int64_t bytes) {
  int64_t foreseen = 0, counted = 0, compiled = 0;
  bool isKnown = true;
  auto add = [&](size_t stage, int64_t point) {
    foreseen = std::max(foreseen, foresee(stage, point));
    if (foreseen <= bytes)
      counted = std::max(counted, count(stage, point));
    auto known = programs.find({stage, point});
    isKnown &= known != programs.end();
    if (known != programs.end())
      compiled = std::max(compiled, known->second);
  };
  if (isTogether())
    for (auto [stage, point] : llvm::enumerate(fits[plan].points))
      add(stage, point);
  else
    add(list, plan);
  counted = std::max(foreseen, counted);
  if (counted > bytes || !measure)
    return counted;
  // One of several stages is enough to be more.
  if (!isKnown && compiled <= bytes)
    return std::nullopt;
  return std::max(counted, compiled);
}

int64_t StagePlans::measureOne(size_t list, int64_t plan) {
  if (isTogether()) {
    getProgramBytes(fits[plan].points);
  } else {
    SmallVector<int64_t> points(pipeline.stages.size(), 0);
    points[list] = plan;
    compile(points, list);
  }
  return *getBytes(list, plan, kNone);
}

//===----------------------------------------------------------------------===//
// Budgets
//===----------------------------------------------------------------------===//

StagePlans::Found StagePlans::search(int64_t bytes) {
  std::vector<PlanTree> trees = plant();
  SmallVector<int64_t> plans(trees.size()), open;
  do {
    open.clear();
    for (auto [list, tree] : llvm::enumerate(trees)) {
      while (!tree.isDone()) {
        std::optional<int64_t> own = getBytes(list, tree.getNext(), bytes);
        if (!own)
          break;
        tree.answer(*own, *own <= bytes);
      }
      if (!tree.isDone())
        open.push_back(list);
      plans[list] =
          tree.isDone() ? std::max<int64_t>(tree.found, 0) : tree.getNext();
    }
    if (isTogether() && !open.empty())
      getProgramBytes(getPoints(plans));
    else
      compile(plans, open);
  } while (!open.empty());
  Found found;
  for (const PlanTree &tree : trees) {
    if (tree.found < 0)
      return {};
    found.bytes = std::max(found.bytes, tree.most);
  }
  found.points = getPoints(plans);
  return found;
}

SmallVector<int64_t> StagePlans::find(int64_t bytes) {
  return search(bytes).points;
}

/// What too small a budget is told of each list: the least of the plans that it
/// asks about.
StagePlans::Least StagePlans::findLeast() {
  Least least;
  for (auto [list, tree] : llvm::enumerate(plant())) {
    int64_t own = measureOne(list, 0), smallest = 0;
    for (PlanTree asked = tree; !asked.isDone(); asked.answer(0, false)) {
      int64_t plan = asked.getNext();
      std::optional<int64_t> counted = getBytes(list, plan, own - 1);
      if (counted.value_or(0) >= own)
        continue;
      if (int64_t bytes = measureOne(list, plan); bytes < own) {
        own = bytes;
        smallest = plan;
      }
    }
    if (own <= least.bytes)
      continue;
    least = {own, list};
    if (!isTogether())
      continue;
    // Of the stages of a fit the one that takes most.
    const SmallVector<int64_t> &points = fits[smallest].points;
    std::vector<int64_t> bytesOf = getProgramBytes(points);
    int64_t most = -1;
    for (auto [stage, point] : llvm::enumerate(points)) {
      int64_t bytes =
          std::max(count(stage, point), bytesOf.empty() ? 0 : bytesOf[stage]);
      if (bytes > most)
        least.stage = stage;
      most = std::max(most, bytes);
    }
  }
  return least;
}

std::vector<std::pair<int64_t, double>> StagePlans::getCurve() {
  std::vector<std::pair<int64_t, double>> curve;
  if (fits.empty())
    return curve;
  std::vector<int64_t> budgets = {findLeast().bytes};
  // Each has plans to be packed, or compiled: of many, every few are.
  const size_t most = measure ? 32 : 1024;
  for (size_t fit = 0; fit < fits.size(); fit += fits.size() / most + 1)
    budgets.push_back(fits[fit].bytes);
  llvm::sort(budgets);
  budgets.push_back(kNone - 1);
  for (int64_t budget : budgets) {
    Found found = search(budget);
    if (found.points.empty())
      continue;
    double span = pipeline.getSpan(found.points);
    if (curve.empty() || span < curve.back().second)
      curve.push_back({found.bytes, span});
  }
  return curve;
}
