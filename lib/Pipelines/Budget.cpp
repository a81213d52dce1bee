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
  BudgetSearch(Trial &trial, const PlanCurve &curve, const Budget &budget,
               bool isFree)
      : trial(trial), curve(curve), budget(budget), isFree(isFree) {}

  /// The last point of the curve whose plan, planned, is within the budget; -1
  /// if there is none.
  int64_t run();

  /// Of the point that `run` found.
  PlannedBytes planned = {};
  OwningOpRef<ModuleOp> program;

  int64_t getBytes(const PlannedBytes &bytes) const {
    return budget.kind == Budget::Kind::Memory ? bytes.arena
                                               : bytes.activations;
  }

private:
  bool tryPoint(int64_t point);

  Trial &trial;
  const PlanCurve &curve;
  const Budget &budget;
  bool isFree;
};
} // namespace

/// Plans the memory of a point; whether that is within the budget. The launches
/// of the graph are planned, for it is their buffers that a certificate has;
/// and those that run, one of which may be several of the graph's: that it
/// needs what they need is nowhere proven. The curve's first guess is nearly
/// always the plan, so a budget pays for each once: 0.06 s with 12 layers of
/// GPT-2, 0.4 s with 96, on a busy core.
bool BudgetSearch::tryPoint(int64_t point) {
  const HeadOption &option = curve.getOption(point);
  setHeadRows(trial.getModule(), option.rows);
  auto decide = [&](func::FuncOp step) {
    writeDecisions(step, *option.traced, curve.getPlan(point),
                   option.curve->getSegments(curve.points[point].point));
  };
  PlannedBytes most = {};
  OwningOpRef<ModuleOp> apart;
  for (bool rowsApart : {true, false}) {
    auto found = trial.plan(decide, isFree, rowsApart);
    if (failed(found))
      return false;
    FailureOr<PlannedBytes> bytes = getPlannedBytes(**found);
    if (failed(bytes))
      return false;
    if (getBytes(*bytes) > getBytes(most))
      most = *bytes;
    planned = most;
    if (getBytes(planned) > budget.bytes)
      return false;
    if (rowsApart)
      apart = std::move(*found);
  }
  program = std::move(apart);
  return true;
}

int64_t BudgetSearch::run() {
  int64_t numPoints = curve.points.size();
  // The curve's bytes are those of the memory plan, but for a kernel that is
  // formed otherwise with a replay in it. So the guess is nearly always right;
  // if it is not, what it misses by is kept free.
  int64_t point = std::max<int64_t>(curve.find(budget.bytes), 0);
  while (!tryPoint(point)) {
    if (point == 0)
      return -1;
    int64_t missing = std::max<int64_t>(getBytes(planned) - budget.bytes, 1);
    point = std::min(
        point - 1,
        std::max<int64_t>(curve.find(curve.points[point].bytes - missing), 0));
  }
  // What it needs less may be enough for the next.
  while (point + 1 < numPoints &&
         curve.points[point + 1].bytes - curve.points[point].bytes <=
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

static void addPoints(const PlanCurve &curve, bool hasBounds,
                      BudgetReport &report) {
  std::vector<int64_t> budgets;
  for (size_t number = 0; number < curve.points.size(); ++number) {
    const HeadOption &option = curve.getOption(number);
    const solver::BudgetPoint &own = curve.getOwn(number);
    budgets.push_back(curve.points[number].bytes);
    report.curve.push_back({budgets.back(), option.rows,
                            option.getStepSeconds(),
                            own.seconds * double(report.microBatches), 0});
  }
  if (!hasBounds)
    return;
  std::vector<double> bounds = curve.computeBounds(report.certificate, budgets);
  for (auto [point, bound] : llvm::zip(report.curve, bounds))
    point.boundSeconds = bound;
}

FailureOr<BudgetReport> pipelines::solveBudget(ModuleOp module,
                                               const Budget &budget,
                                               const CostTable &costs,
                                               const BudgetSettings &settings) {
  bool isFree = settings.isFree;
  auto step = module.lookupSymbol<func::FuncOp>(nn::kStepFunction);
  if (!step)
    return module.emitError("needs a function @step to plan for a budget");
  FailureOr<std::unique_ptr<Trial>> trial = Trial::create(module);
  FailureOr<PlanCurve> curve = failure();
  if (succeeded(trial))
    curve = PlanCurve::find(**trial, budget.kind, costs, isFree);
  auto refuseStep = [&] {
    return step.emitError("needs to be a step that becomes a schedule, to be "
                          "planned for a budget");
  };
  if (failed(curve))
    return refuseStep();
  BudgetSearch search(**trial, *curve, budget, isFree);
  int64_t point = curve->points.empty() ? -1 : search.run();
  bool isMemory = budget.kind == Budget::Kind::Memory;
  if (point < 0) {
    // Where no plan was too large, there was none.
    if (!curve->points.empty() &&
        search.getBytes(search.planned) <= budget.bytes)
      return refuseStep();
    refuseBudget(step, budget, *curve, search.planned);
    return failure();
  }

  const HeadOption &option = curve->getOption(point);
  const TracedGraph &traced = *option.traced;
  int64_t ownPoint = curve->points[point].point;
  solver::KeptValues kept = curve->getPlan(point);
  BudgetReport report;
  report.budget = budget;
  report.machine = costs.machine;
  report.headRows = option.rows;
  report.baseBytes = search.planned.begin;
  int64_t beside = isMemory ? report.baseBytes : 0;
  report.plannedBytes = search.getBytes(search.planned);
  report.foreseenBytes = curve->getOwn(point).peak + beside;
  report.mostBytes = option.curve->getPoints().back().peak + beside;
  report.isChain = option.curve->isChain();
  int64_t times = report.microBatches = traced.graph.microBatches;
  // An option has the head as it was.
  for (auto head : step.getBody().getOps<nn::LinearCrossEntropyOp>())
    setHeadRows((*trial)->getModule(), head.getRows());
  FailureOr<TracedGraph> undecided = traceUndecided(**trial, costs, isFree);
  if (failed(undecided))
    return step.emitError("needs to become a schedule without what is decided "
                          "of it, to be compared with Megatron's options");
  // Gradients among activations may take more than is alive at one time.
  auto planRival = [&](func::FuncOp decided) -> int64_t {
    auto decide = [&](func::FuncOp own) {
      for (auto [to, from] :
           llvm::zip(own.getBody().front(), decided.getBody().front()))
        if (Attribute decision = from.getAttr(remat::kDecisionAttr))
          to.setAttr(remat::kDecisionAttr, decision);
    };
    auto program = (*trial)->plan(decide, isFree, /*rowsApart=*/false);
    if (failed(program))
      return -1;
    FailureOr<PlannedBytes> bytes = getPlannedBytes(**program);
    return succeeded(bytes) ? bytes->arena : -1;
  };
  TracedGraph whole = *undecided;
  countWrittenGradients(whole);
  solver::StepSimulator all(whole.graph), activations(undecided->graph);
  report.rivals = tryRivals(
      **trial, *undecided, settings, budget.bytes,
      [&](const solver::KeptValues &kept) -> RivalRun {
        const solver::StepRun &run = all.run(kept);
        int64_t bytes = isMemory ? run.peak : activations.run(kept).peak;
        return {bytes + beside, run.peak, run.replaySeconds * double(times)};
      },
      isMemory && !undecided->writtenGradients.empty() ? PlanRival(planRival)
                                                       : PlanRival());

  solver::Certificate &certificate = report.certificate;
  certificate.kind = isMemory ? solver::Certificate::Budget::Memory
                              : solver::Certificate::Budget::Activations;
  certificate.budgetBytes = budget.bytes;
  // A step of other launches may be given other numbers of micro-batches at a
  // time, and have more places for what waits.
  FailureOr<PlannedBytes> own = getPlannedBytes(*search.program);
  certificate.baseBytes = succeeded(own) ? own->begin : report.baseBytes;
  certificate.machine = costs.machine;
  if (auto name = module->getAttrOfType<StringAttr>("nn.model"))
    certificate.model = name.str();
  double slope = getSlope(*option.curve, ownPoint);
  solver::certify(traced.graph, kept, slope, certificate);
  if (failed(addBuffers(*search.program, certificate)))
    return step.emitError("has a schedule that differs from the one its plan "
                          "was found for");
  report.replaySeconds = certificate.replaySeconds;
  report.stepSeconds = certificate.stepSeconds;
  report.boundSeconds = certificate.lowerBoundSeconds;
  report.secondsPerByte =
      point + 1 < int64_t(curve->points.size()) ? slope * times : 0;
  if (!certificate.moments.empty()) {
    report.secondsPerByte = 0;
    for (const solver::CertifiedMoment &moment : certificate.moments)
      report.secondsPerByte += moment.secondsPerByte * times;
  }
  if (settings.hasRegret) {
    std::vector<int64_t> groups;
    for (Work work : traced.works)
      groups.push_back(int64_t(work));
    report.scenarios =
        solver::computeRegret(traced.graph, kept, budget.bytes - beside, groups,
                              {"products", "attention", "everything else"});
  }
  addPoints(*curve, settings.hasBounds, report);
  setHeadRows(module, option.rows);
  writeDecisions(step, traced, kept, option.curve->getSegments(ownPoint));
  return report;
}
