//===- BudgetCurve.cpp - The fastest step for every budget ----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How many rows of logits there are at a time is a choice, unless somebody made
// it. Each choice has a curve of its own; the curve of the step goes along
// whichever is fastest.
//
//===----------------------------------------------------------------------===//

#include "BudgetPlans.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Interfaces/Facts.h"
#include <limits>

using namespace mlir;
using namespace reprise;
using namespace reprise::planning;

void planning::setHeadRows(ModuleOp module, int64_t rows) {
  if (rows == 0)
    return;
  for (auto function : module.getOps<func::FuncOp>())
    for (auto head : function.getOps<RowChunks>())
      head.setChunkRows(rows);
}

/// The rows that a chunk of the head may have: as many as it has, half and a
/// quarter; as it is, if somebody said so or it is not in chunks.
static SmallVector<int64_t> getHeadRows(func::FuncOp step) {
  auto train =
      step->getParentOp()->getAttrOfType<DictionaryAttr>(nn::kTrainAttr);
  auto heads = step.getBody().getOps<RowChunks>();
  if (heads.empty() || (train && train.get(nn::kHeadChunkRows)))
    return {0};
  RowChunks head = *heads.begin();
  int64_t block = head.getRowMultiple();
  int64_t all = llvm::alignTo(head.getAllRows(), block);
  SmallVector<int64_t> rows = {std::min<int64_t>(head.getChunkRows(), all)};
  while (rows.size() < 3 && rows.back() % (2 * block) == 0)
    rows.push_back(rows.back() / 2);
  return rows;
}

FailureOr<PlanCurve> PlanCurve::find(WhatIf &whatIf, Budget::Kind kind,
                                     const CostTable &costs, bool isFree) {
  PlanCurve curve;
  SmallVector<int64_t> allRows = getHeadRows(whatIf.getStep());
  for (int64_t rows : allRows) {
    setHeadRows(whatIf.getModule(), rows);
    FailureOr<TracedGraph> traced = whatIf.trace(costs, isFree);
    if (failed(traced))
      return failure();
    HeadOption &option = curve.options.emplace_back();
    option.rows = rows;
    option.traced = std::make_unique<TracedGraph>(std::move(*traced));
    if (kind == Budget::Kind::Memory)
      countWrittenGradients(*option.traced);
    const solver::StepGraph &graph = option.traced->graph;
    option.curve = std::make_unique<solver::BudgetCurve>(graph);
    for (const solver::StepOp &op : graph.ops)
      (op.phase == solver::StepPhase::Update ? option.updateSeconds
                                             : option.seconds) += op.seconds;
    for (size_t number = 0; number < option.curve->getPoints().size(); ++number)
      curve.addPoint(
          whatIf, kind,
          {int64_t(curve.options.size()) - 1, int64_t(number), 0, 0});
  }
  setHeadRows(whatIf.getModule(), allRows.front());
  // The curve's plans are of layers that do alike. Others may be better where
  // little is kept: some options, and what comes of the smallest plan.
  bool isDecided =
      llvm::any_of(whatIf.getStep().getBody().front(), [](Operation &op) {
        return op.hasAttr(remat::kDecisionAttr);
      });
  if (!isDecided)
    for (const solver::KeptValues &kept :
         listOptions(whatIf, *curve.options.front().traced))
      curve.addBeside(whatIf, kind, {0, 0, 0, 0, -1, /*isOption=*/true}, kept);
  curve.keepBest();
  if (curve.points.empty())
    return curve;
  int64_t smallest = curve.getSmallest();
  int64_t option = curve.points[smallest].option;
  for (const solver::FoundPlan &found : solver::shrink(
           curve.options[option].traced->graph, curve.getPlan(smallest)))
    curve.addBeside(whatIf, kind, {option, 0, 0, 0}, found.kept);
  curve.keepBest();
  return curve;
}

solver::KeptValues PlanCurve::getPlan(const Point &point) const {
  return point.beside >= 0 ? beside[point.beside].kept
                           : options[point.option].curve->getPlan(point.point);
}

std::vector<std::pair<int64_t, int64_t>>
PlanCurve::getSegments(const Point &point) const {
  if (point.beside >= 0)
    return {};
  return options[point.option].curve->getSegments(point.point);
}

/// Bytes and seconds are those of the whole step: what layers add up to may be
/// more than what is alive at one time.
void PlanCurve::addPoint(WhatIf &whatIf, Budget::Kind kind, Point point) {
  points.push_back(point);
  size_t number = points.size() - 1;
  const HeadOption &option = getOption(number);
  solver::StepSimulator simulator(option.traced->graph);
  const solver::StepRun &run = simulator.run(getPlan(number));
  points.back().bytes = run.peak;
  if (kind == Budget::Kind::Memory)
    points.back().bytes += getBaseBytes(whatIf.getStep(), *option.traced, run);
  points.back().seconds = option.seconds + run.replaySeconds;
}

void PlanCurve::addBeside(WhatIf &whatIf, Budget::Kind kind, Point point,
                          const solver::KeptValues &kept) {
  solver::StepSimulator simulator(options[point.option].traced->graph);
  const solver::StepRun &run = simulator.run(kept);
  if (!run.isPossible)
    return;
  beside.push_back({kept, {run.peak, run.replaySeconds}});
  point.beside = int64_t(beside.size()) - 1;
  addPoint(whatIf, kind, point);
}

bool PlanCurve::isSame(const Point &point, const Point &other) const {
  return std::tie(point.option, point.bytes, point.seconds) ==
             std::tie(other.option, other.bytes, other.seconds) &&
         getPlan(point) == getPlan(other) &&
         getSegments(point) == getSegments(other);
}

void PlanCurve::keepBest() {
  llvm::stable_sort(points, [](const Point &a, const Point &b) {
    return std::tie(a.bytes, a.seconds) < std::tie(b.bytes, b.seconds);
  });
  double fastest = std::numeric_limits<double>::infinity();
  std::vector<Point> best;
  for (const Point &point : points) {
    bool isNew = point.isOption && llvm::none_of(best, [&](const Point &other) {
                   return isSame(point, other);
                 });
    if (point.seconds < fastest || isNew)
      best.push_back(point);
    fastest = std::min(fastest, point.seconds);
  }
  points = std::move(best);
  // Of those that are as fast, the smallest is tried first.
  llvm::stable_sort(points, [](const Point &a, const Point &b) {
    return std::tie(a.seconds, a.bytes) > std::tie(b.seconds, b.bytes);
  });
}

std::vector<double>
PlanCurve::computeBounds(const solver::Certificate &like,
                         const std::vector<size_t> &numbers,
                         const std::vector<int64_t> &budgets) const {
  // What no step is faster than, whatever its rows.
  std::vector<double> least;
  for (const HeadOption &option : options) {
    if (option.curve->getPoints().empty())
      continue;
    solver::Certificate problem;
    problem.kind = like.kind;
    problem.budgetBytes = like.budgetBytes;
    problem.baseBytes = like.baseBytes;
    size_t last = option.curve->getPoints().size() - 1;
    solver::certify(option.traced->graph, option.curve->getPlan(last),
                    like.points.empty() ? 0 : like.points[0].secondsPerByte,
                    problem);
    std::vector<double> bounds = solver::computeBounds(problem, budgets);
    for (double &bound : bounds)
      bound += option.getStepSeconds();
    if (least.empty())
      least = bounds;
    for (auto [all, own] : llvm::zip(least, bounds))
      all = std::min(all, own);
  }
  for (auto [bound, number] : llvm::zip(least, numbers))
    bound = std::max(bound - getOption(number).getStepSeconds(), 0.0);
  return least;
}
