//===- Budget.cpp - Plans for a budget of bytes ---------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BudgetPlans.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include <chrono>
#include <map>

using namespace mlir;
using namespace reprise;
using namespace reprise::pipelines;

/// The label of what is recomputed for a budget.
static constexpr StringLiteral kBudgetLabel = "budget";

void pipelines::writeDecisions(func::FuncOp step, const TracedGraph &traced,
                               const solver::KeptValues &kept,
                               ArrayRef<std::pair<int64_t, int64_t>> segments) {
  MLIRContext *context = step.getContext();
  std::vector<Operation *> ops;
  for (Operation &op : step.getBody().front())
    ops.push_back(&op);
  // By op: the results that are kept. Others of a launch are dropped with it.
  std::map<int64_t, SmallVector<int64_t>> saved;
  for (int64_t number : traced.fused)
    saved[number];
  for (size_t v = 0; v < traced.origins.size(); ++v)
    if (StepResult origin = traced.origins[v]; origin.op >= 0) {
      SmallVector<int64_t> &results = saved[origin.op];
      if (kept[v] ||
          traced.graph.values[v].rule == solver::StepValue::Rule::Keep)
        results.push_back(origin.number);
    }
  for (auto &[number, results] : saved) {
    Operation *op = ops[number];
    if (op->hasAttr(remat::kDecisionAttr) || traced.free.contains(number) ||
        op->getNumResults() == 0)
      continue;
    nn::ScopeAttr scope = nn::getScope(op);
    if (!scope || scope.getLayer() < 0)
      continue;
    SmallVector<int64_t> dropped;
    for (int64_t result = 0; result < op->getNumResults(); ++result)
      if (!llvm::is_contained(results, result))
        dropped.push_back(result);
    if (dropped.empty() || !isMemoryEffectFree(op)) {
      op->setAttr(remat::kDecisionAttr,
                  remat::SaveAttr::get(context, "within the budget", -1));
      continue;
    }
    int64_t segment = scope.getLayer();
    for (auto [first, last] : segments)
      if (first <= segment && segment <= last)
        segment = first;
    DenseI64ArrayAttr some;
    if (!results.empty())
      some = DenseI64ArrayAttr::get(context, dropped);
    op->setAttr(
        remat::kDecisionAttr,
        remat::RecomputeAttr::get(context, segment, kBudgetLabel, some));
  }
}

namespace {
/// Looks for the plan of a budget among those of a curve.
class BudgetSearch {
public:
  BudgetSearch(Trial &trial, const TracedGraph &traced,
               const solver::BudgetCurve &curve, const Budget &budget,
               bool isFree)
      : trial(trial), traced(traced), curve(curve), budget(budget),
        isFree(isFree) {}

  /// The last point of the curve whose plan, planned, is within the budget; -1
  /// if there is none.
  int64_t run();

  /// Of the point that `run` found.
  PlannedBytes planned = {0, 0};
  OwningOpRef<ModuleOp> program;

private:
  bool tryPoint(int64_t point);
  int64_t getBytes(const PlannedBytes &bytes) const {
    return budget.kind == Budget::Kind::Memory ? bytes.arena
                                               : bytes.activations;
  }

  Trial &trial;
  const TracedGraph &traced;
  const solver::BudgetCurve &curve;
  const Budget &budget;
  bool isFree;
};
} // namespace

/// Plans the memory of a point; whether that is within the budget.
bool BudgetSearch::tryPoint(int64_t point) {
  auto decide = [&](func::FuncOp step) {
    writeDecisions(step, traced, curve.getPlan(point),
                   curve.getSegments(point));
  };
  auto found = trial.plan(decide, isFree);
  if (failed(found))
    return false;
  FailureOr<PlannedBytes> bytes = getPlannedBytes(**found);
  if (failed(bytes))
    return false;
  planned = *bytes;
  if (getBytes(planned) > budget.bytes)
    return false;
  program = std::move(*found);
  return true;
}

int64_t BudgetSearch::run() {
  int64_t limit = budget.bytes;
  if (budget.kind == Budget::Kind::Memory)
    limit -= traced.baseBytes;
  int64_t numPoints = curve.getPoints().size();
  // The curve's bytes are those of the memory plan, but for a kernel that is
  // formed otherwise with a replay in it. So the guess is nearly always right;
  // if it is not, what it misses by is kept free.
  int64_t point = std::max<int64_t>(curve.find(limit), 0);
  while (!tryPoint(point)) {
    if (point == 0)
      return -1;
    int64_t missing = std::max<int64_t>(getBytes(planned) - budget.bytes, 1);
    point = std::min(
        point - 1, std::max<int64_t>(
                       curve.find(curve.getPoints()[point].peak - missing), 0));
  }
  // What it needs less may be enough for the next.
  while (point + 1 < numPoints &&
         curve.getPoints()[point + 1].peak - curve.getPoints()[point].peak <=
             budget.bytes - getBytes(planned)) {
    PlannedBytes before = planned;
    if (!tryPoint(point + 1)) {
      planned = before;
      break;
    }
    ++point;
  }
  return point;
}

/// Seconds that a byte more saves a micro-batch, around a point.
static double getSlope(const solver::BudgetCurve &curve, int64_t point) {
  const std::vector<solver::BudgetPoint> &points = curve.getPoints();
  int64_t last = points.size() - 1, low = point, high = point;
  int64_t window = points[last].peak / 32;
  while (low > 0 && points[point].peak - points[low].peak < window)
    --low;
  while (high < last && points[high].peak - points[point].peak < window)
    ++high;
  if (low == high)
    return 0;
  return (points[low].seconds - points[high].seconds) /
         double(points[high].peak - points[low].peak);
}

FailureOr<BudgetReport> pipelines::solveBudget(ModuleOp module,
                                               const Budget &budget,
                                               const CostTable &costs,
                                               bool isFree, bool regret) {
  auto begin = std::chrono::steady_clock::now();
  auto step = module.lookupSymbol<func::FuncOp>(nn::kStepFunction);
  if (!step)
    return module.emitError("needs a function @step to plan for a budget");
  FailureOr<std::unique_ptr<Trial>> trial = Trial::create(module);
  FailureOr<TracedGraph> traced = failure();
  if (succeeded(trial))
    traced = (*trial)->trace(costs, isFree);
  if (failed(traced))
    return step.emitError("needs to be a step that becomes a schedule, to be "
                          "planned for a budget");
  solver::BudgetCurve curve(traced->graph);
  BudgetSearch search(**trial, *traced, curve, budget, isFree);
  int64_t point = curve.getPoints().empty() ? -1 : search.run();
  if (point < 0) {
    bool isMemory = budget.kind == Budget::Kind::Memory;
    refuseBudget(step, budget, *traced, curve,
                 isMemory ? search.planned.arena : search.planned.activations);
    return failure();
  }

  solver::KeptValues kept = curve.getPlan(point);
  BudgetReport report;
  report.budget = budget;
  report.machine = costs.machine;
  bool isMemory = budget.kind == Budget::Kind::Memory;
  report.baseBytes = search.planned.arena - search.planned.activations;
  int64_t beside = isMemory ? report.baseBytes : 0;
  report.plannedBytes = search.planned.activations + beside;
  report.foreseenBytes = curve.getPoints()[point].peak + beside;
  report.mostBytes = curve.getPoints().back().peak + beside;
  report.isChain = curve.isChain();
  int64_t times = report.microBatches = traced->graph.microBatches;
  for (const solver::BudgetPoint &each : curve.getPoints())
    report.curve.push_back({"", each.peak + beside, each.seconds * times});
  report.rivals = tryRivals(**trial, *traced, budget.bytes - beside);
  for (BudgetChoice &rival : report.rivals)
    rival.bytes += beside;

  solver::Certificate &certificate = report.certificate;
  certificate.kind = isMemory ? solver::Certificate::Budget::Memory
                              : solver::Certificate::Budget::Activations;
  certificate.budgetBytes = budget.bytes;
  certificate.baseBytes = report.baseBytes;
  certificate.machine = costs.machine;
  if (auto name = module->getAttrOfType<StringAttr>("nn.model"))
    certificate.model = name.str();
  double slope = getSlope(curve, point);
  solver::certify(traced->graph, kept, slope, certificate);
  if (failed(addBuffers(*search.program, certificate)))
    return step.emitError("has a schedule that differs from the one its plan "
                          "was found for");
  report.replaySeconds = certificate.replaySeconds;
  report.stepSeconds = certificate.stepSeconds;
  report.boundSeconds = certificate.lowerBoundSeconds;
  report.secondsPerByte =
      point + 1 < int64_t(report.curve.size()) ? slope * times : 0;
  if (!certificate.moments.empty()) {
    report.secondsPerByte = 0;
    for (const solver::CertifiedMoment &moment : certificate.moments)
      report.secondsPerByte += moment.secondsPerByte * times;
  }
  if (regret) {
    std::vector<int64_t> groups;
    for (Work work : traced->works)
      groups.push_back(int64_t(work));
    report.scenarios = solver::computeRegret(
        traced->graph, kept, budget.bytes - beside, groups,
        {"products", "attention", "everything else"});
  }
  writeDecisions(step, *traced, kept, curve.getSegments(point));
  report.solveSeconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  return report;
}
