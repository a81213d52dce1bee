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

using namespace mlir;
using namespace reprise;
using namespace reprise::pipelines;

void pipelines::setHeadRows(ModuleOp module, int64_t rows) {
  if (rows == 0)
    return;
  for (auto function : module.getOps<func::FuncOp>())
    for (auto head : function.getOps<nn::LinearCrossEntropyOp>())
      head.setRows(rows);
}

/// The rows that a chunk of the head may have: as many as it has, half and a
/// quarter; as it is, if somebody said so or it is not in chunks.
static SmallVector<int64_t> getHeadRows(func::FuncOp step) {
  auto train =
      step->getParentOp()->getAttrOfType<DictionaryAttr>(nn::kTrainAttr);
  auto heads = step.getBody().getOps<nn::LinearCrossEntropyOp>();
  if (heads.empty() || (train && train.get(nn::kHeadChunkRows)))
    return {0};
  nn::LinearCrossEntropyOp head = *heads.begin();
  int64_t block = nn::LinearCrossEntropyOp::getRowBlock(
      cast<ShapedType>(head.getInput().getType()).getElementType());
  int64_t tokens =
      cast<ShapedType>(head.getLosses().getType()).getNumElements();
  int64_t all = llvm::alignTo(tokens, block);
  SmallVector<int64_t> rows = {std::min<int64_t>(int64_t(head.getRows()), all)};
  while (rows.size() < 3 && rows.back() % (2 * block) == 0)
    rows.push_back(rows.back() / 2);
  return rows;
}

FailureOr<PlanCurve> PlanCurve::find(Trial &trial, Budget::Kind kind,
                                     const CostTable &costs, bool isFree) {
  PlanCurve curve;
  SmallVector<int64_t> allRows = getHeadRows(trial.getStep());
  for (int64_t rows : allRows) {
    setHeadRows(trial.getModule(), rows);
    FailureOr<TracedGraph> traced = trial.trace(costs, isFree);
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
    int64_t beside =
        kind == Budget::Kind::Memory ? option.traced->baseBytes : 0;
    for (auto [number, point] : llvm::enumerate(option.curve->getPoints()))
      curve.points.push_back({int64_t(curve.options.size()) - 1,
                              int64_t(number), point.peak + beside,
                              option.seconds + point.seconds});
  }
  setHeadRows(trial.getModule(), allRows.front());
  llvm::stable_sort(curve.points, [](const Point &a, const Point &b) {
    return std::tie(a.bytes, a.seconds) < std::tie(b.bytes, b.seconds);
  });
  size_t kept = 0;
  for (const Point &point : curve.points)
    if (kept == 0 || point.seconds < curve.points[kept - 1].seconds)
      curve.points[kept++] = point;
  curve.points.resize(kept);
  return curve;
}

int64_t PlanCurve::find(int64_t bytes) const {
  auto behind =
      llvm::upper_bound(points, bytes, [](int64_t bytes, const Point &point) {
        return bytes < point.bytes;
      });
  return behind - points.begin() - 1;
}

std::vector<double>
PlanCurve::computeBounds(const solver::Certificate &like,
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
                    like.moments.empty() ? 0 : like.moments[0].secondsPerByte,
                    problem);
    std::vector<double> bounds = solver::computeBounds(problem, budgets);
    for (double &bound : bounds)
      bound += option.getStepSeconds();
    if (least.empty())
      least = bounds;
    for (auto [all, own] : llvm::zip(least, bounds))
      all = std::min(all, own);
  }
  for (size_t point = 0; point < points.size(); ++point)
    least[point] =
        std::max(least[point] - getOption(point).getStepSeconds(), 0.0);
  return least;
}
