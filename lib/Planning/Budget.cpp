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
#include "reprise/Interfaces/Facts.h"
#include <map>

using namespace mlir;
using namespace reprise;
using namespace reprise::planning;

/// The label of what is recomputed for a budget.
static constexpr StringLiteral kBudgetLabel = "budget";

/// Values that something behind the forward pass reads.
static std::vector<bool> findReadLater(const solver::StepGraph &graph,
                                       const solver::KeptValues &kept) {
  std::vector<bool> isRead(graph.values.size());
  solver::StepSimulator simulator(graph);
  for (auto [op, isReplay] : simulator.run(kept).schedule)
    if (isReplay || graph.ops[op].phase != solver::StepPhase::Forward)
      for (int64_t value : graph.ops[op].reads)
        isRead[value] = true;
  return isRead;
}

void planning::writeDecisions(func::FuncOp step, const TracedGraph &traced,
                              const solver::KeptValues &kept,
                              ArrayRef<std::pair<int64_t, int64_t>> segments) {
  MLIRContext *context = step.getContext();
  std::vector<Operation *> ops;
  int64_t numLayers = 0;
  for (Operation &op : step.getBody().front()) {
    ops.push_back(&op);
    if (nn::ScopeAttr scope = nn::getScope(&op))
      numLayers = std::max(numLayers, scope.getLayer() + 1);
  }
  // By op: the results that are kept. Others of a launch are dropped with it.
  std::map<int64_t, SmallVector<int64_t>> saved;
  // With a result that is dropped and made again.
  std::vector<bool> isRead = findReadLater(traced.graph, kept);
  DenseSet<int64_t> named;
  for (int64_t number : traced.fused)
    saved[number];
  for (size_t v = 0; v < traced.origins.size(); ++v)
    if (StepResult origin = traced.origins[v]; origin.op >= 0) {
      SmallVector<int64_t> &results = saved[origin.op];
      if (kept[v] ||
          traced.graph.values[v].rule == solver::StepValue::Rule::Keep)
        results.push_back(origin.number);
      else if (isRead[v])
        named.insert(origin.op);
    }
  for (auto &[number, results] : saved) {
    Operation *op = ops[number];
    if (op->hasAttr(remat::kDecisionAttr) || traced.free.contains(number) ||
        op->getNumResults() == 0)
      continue;
    nn::ScopeAttr scope = nn::getScope(op);
    if (!scope)
      continue;
    SmallVector<int64_t> dropped;
    for (int64_t result = 0; result < op->getNumResults(); ++result)
      if (!llvm::is_contained(results, result))
        dropped.push_back(result);
    // In no layer nothing goes with what the plan names.
    if (scope.getLayer() < 0 && !named.contains(number))
      continue;
    if (dropped.empty() || !nn::mayBeReplayed(op)) {
      op->setAttr(remat::kDecisionAttr,
                  remat::SaveAttr::get(context, "within the budget", -1));
      continue;
    }
    // What is in no layer comes behind the layers.
    int64_t segment = scope.getLayer() < 0 ? numLayers : scope.getLayer();
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

/// Of the curve the plans that budgets of its bytes get. With bounds, for a
/// file of all of them, those that another one's program is no larger than are
/// left out.
static void addPoints(const PlanCurve &curve, BudgetSearch &search,
                      bool hasBounds, BudgetReport &report) {
  std::vector<int64_t> budgets;
  std::vector<size_t> numbers;
  for (size_t number = curve.points.size(); number-- > 0;) {
    if (!budgets.empty() && curve.points[number].bytes >= budgets.back())
      continue;
    int64_t bytes =
        hasBounds ? search.foresee(number) : curve.points[number].bytes;
    if (bytes < 0 || (!budgets.empty() && bytes >= budgets.back()))
      continue;
    budgets.push_back(bytes);
    numbers.push_back(number);
  }
  std::reverse(budgets.begin(), budgets.end());
  std::reverse(numbers.begin(), numbers.end());
  for (auto [number, bytes] : llvm::zip(numbers, budgets)) {
    const HeadOption &option = curve.getOption(number);
    report.curve.push_back(
        {bytes, option.rows, option.getStepSeconds(),
         curve.getOwn(number).seconds * double(report.microBatches), 0});
  }
  if (!hasBounds)
    return;
  std::vector<double> bounds =
      curve.computeBounds(report.certificate, numbers, budgets);
  for (auto [point, bound] : llvm::zip(report.curve, bounds))
    point.boundSeconds = bound;
}

/// What the options would take that are tried beside a budget, with nothing
/// else decided.
static FailureOr<std::vector<BudgetChoice>>
addBaselines(WhatIf &whatIf, const CostTable &costs,
             const BudgetSettings &settings, const Budget &budget) {
  bool isMemory = budget.kind == Budget::Kind::Memory;
  FailureOr<TracedGraph> undecided =
      traceUndecided(whatIf, costs, settings.isFree);
  if (failed(undecided))
    return failure();
  // What is alive may be packed worse, beside gradients more than elsewhere.
  auto planBaseline = [&](func::FuncOp decided) -> int64_t {
    auto decide = [&](func::FuncOp own) {
      for (auto [to, from] :
           llvm::zip(own.getBody().front(), decided.getBody().front()))
        if (Attribute decision = from.getAttr(remat::kDecisionAttr))
          to.setAttr(remat::kDecisionAttr, decision);
    };
    auto program = whatIf.plan(decide, settings.isFree, /*rowsApart=*/false);
    if (failed(program))
      return -1;
    FailureOr<PlannedBytes> bytes = getPlannedBytes(**program);
    if (failed(bytes))
      return -1;
    return isMemory ? bytes->arena : bytes->activations;
  };
  TracedGraph whole = *undecided;
  countWrittenGradients(whole);
  solver::StepSimulator all(whole.graph), activations(undecided->graph);
  auto measure = [&](const solver::KeptValues &kept) -> BaselineRun {
    const solver::StepRun &run = all.run(kept);
    int64_t bytes = isMemory
                        ? run.peak + getBaseBytes(whatIf.getStep(), whole, run)
                        : activations.run(kept).peak;
    return {bytes, run.peak,
            run.replaySeconds * double(undecided->graph.microBatches)};
  };
  return tryBaselines(whatIf, *undecided, settings, budget.bytes, measure,
                      planBaseline);
}

/// The price of memory, in seconds of a step for a byte, around a point.
static double getPrice(const PlanCurve &curve, int64_t point, double slope,
                       const BudgetReport &report) {
  if (report.certificate.points.empty())
    return point + 1 < int64_t(curve.points.size())
               ? slope * double(report.microBatches)
               : 0;
  double price = 0;
  for (const solver::PricedPoint &point : report.certificate.points)
    price += point.secondsPerByte * double(report.microBatches);
  return price;
}

/// Fills in the proof of a point's plan; fails without a diagnostic if its
/// schedule is another one.
static LogicalResult certifyPoint(const PlanCurve &curve, int64_t point,
                                  BudgetSearch &search, double slope,
                                  BudgetReport &report) {
  solver::Certificate &certificate = report.certificate;
  certificate.kind = report.budget.kind == Budget::Kind::Memory
                         ? solver::Certificate::Budget::Memory
                         : solver::Certificate::Budget::Activations;
  certificate.budgetBytes = report.budget.bytes;
  certificate.baseBytes = report.baseBytes;
  certificate.machine = report.machine;
  certificate.under = report.under;
  auto program = search.planApart(point);
  if (failed(program))
    return failure();
  solver::certify(curve.getOption(point).traced->graph, curve.getPlan(point),
                  slope, certificate);
  return addBuffers(**program, certificate);
}

static InFlightDiagnostic refuseStep(func::FuncOp step) {
  return step.emitError("needs to be a step that becomes a schedule, to be "
                        "planned for a budget");
}

/// What a point's plan comes to, before its proof.
static BudgetReport beginReport(const PlanCurve &curve, int64_t point,
                                BudgetSearch &search, const Budget &budget,
                                const CostTable &costs,
                                const BudgetSettings &settings) {
  bool isMemory = budget.kind == Budget::Kind::Memory;
  const HeadOption &option = curve.getOption(point);
  const PlannedBytes &planned = search.getPlanned(point);
  BudgetReport report;
  report.budget = budget;
  report.machine = costs.machine;
  report.under = settings.under;
  report.headRows = option.rows;
  report.baseBytes = planned.begin;
  report.plannedBytes = isMemory ? planned.arena : planned.activations;
  report.foreseenBytes = curve.points[point].bytes;
  report.mostBytes =
      option.curve->getPoints().back().peak + (isMemory ? report.baseBytes : 0);
  report.isChain = option.curve->isChain();
  report.microBatches = option.traced->graph.microBatches;
  return report;
}

/// Adds the proof of a point's plan, and the times and the price in it; fails
/// without a diagnostic as `certifyPoint` does.
static LogicalResult addProof(const PlanCurve &curve, int64_t point,
                              BudgetSearch &search, BudgetReport &report) {
  double slope =
      getSlope(*curve.getOption(point).curve, curve.points[point].point);
  if (failed(certifyPoint(curve, point, search, slope, report)))
    return failure();
  report.replaySeconds = report.certificate.replaySeconds;
  report.stepSeconds = report.certificate.stepSeconds;
  report.boundSeconds = report.certificate.lowerBoundSeconds;
  report.secondsPerByte = getPrice(curve, point, slope, report);
  return success();
}

/// Solves again for costs that are off, by kind of work.
static void addRegret(const PlanCurve &curve, int64_t point,
                      BudgetReport &report) {
  const TracedGraph &traced = *curve.getOption(point).traced;
  bool isMemory = report.budget.kind == Budget::Kind::Memory;
  std::vector<int64_t> groups;
  for (Work work : traced.works)
    groups.push_back(int64_t(work));
  report.scenarios = solver::computeRegret(
      traced.graph, curve.getPlan(point),
      report.budget.bytes - (isMemory ? report.baseBytes : 0), groups,
      {"GEMMs", "attention", "everything else"});
}

/// The point whose plan a budget gets; -1 after a message that says why it gets
/// none.
static int64_t findPoint(func::FuncOp step, const PlanCurve &curve,
                         BudgetSearch &search, const Budget &budget,
                         const BudgetSettings &settings) {
  int64_t point = search.find(budget.bytes);
  if (point >= 0)
    return point;
  if (!curve.points.empty() && search.findSmallest() < 0)
    refuseStep(step);
  else
    refuseBudget(step, budget, settings, curve, search);
  return -1;
}

FailureOr<std::unique_ptr<SolvedStep>>
SolvedStep::create(const Phases &phases, ModuleOp module, Budget::Kind kind,
                   const CostTable &costs, bool isFree) {
  // Not as a plan file beside it says.
  module->removeAttr(rt::kActivationsFirstAttr);
  if (kind == Budget::Kind::Activations)
    module->setAttr(rt::kActivationsFirstAttr,
                    UnitAttr::get(module.getContext()));
  FailureOr<std::unique_ptr<WhatIf>> whatIf = WhatIf::create(module, phases);
  FailureOr<PlanCurve> curve = failure();
  if (succeeded(whatIf))
    curve = PlanCurve::find(**whatIf, kind, costs, isFree);
  if (failed(curve))
    return failure();
  return std::unique_ptr<SolvedStep>(
      new SolvedStep(std::move(*whatIf), std::move(*curve), kind, isFree));
}

FailureOr<BudgetReport> planning::solveBudget(const Phases &phases,
                                              ModuleOp module,
                                              const Budget &budget,
                                              const CostTable &costs,
                                              const BudgetSettings &settings) {
  auto step = module.lookupSymbol<func::FuncOp>(nn::kStepFunction);
  if (!step)
    return module.emitError("needs a function @step to plan for a budget");
  FailureOr<std::unique_ptr<SolvedStep>> solved =
      SolvedStep::create(phases, module, budget.kind, costs, settings.isFree);
  if (failed(solved))
    return refuseStep(step);
  return meetBudget(**solved, module, budget, costs, settings);
}

FailureOr<BudgetReport>
planning::meetBudget(SolvedStep &solved, ModuleOp module, const Budget &budget,
                     const CostTable &costs, const BudgetSettings &settings) {
  auto step = module.lookupSymbol<func::FuncOp>(nn::kStepFunction);
  const PlanCurve &curve = solved.curve;
  BudgetSearch &search = solved.search;
  int64_t point = findPoint(step, curve, search, budget, settings);
  if (point < 0)
    return failure();

  BudgetReport report =
      beginReport(curve, point, search, budget, costs, settings);
  if (auto name = module->getAttrOfType<StringAttr>("nn.model"))
    report.certificate.model = name.str();
  if (failed(addProof(curve, point, search, report)))
    return step.emitError("has a schedule that differs from the one its plan "
                          "was found for");
  if (settings.hasRegret)
    addRegret(curve, point, report);
  addPoints(curve, search, settings.hasBounds, report);
  if (settings.hasBaselines) {
    // An option has the head as it was.
    for (auto head : step.getBody().getOps<RowChunks>())
      setHeadRows(solved.whatIf->getModule(), head.getChunkRows());
    FailureOr<std::vector<BudgetChoice>> baselines =
        addBaselines(*solved.whatIf, costs, settings, budget);
    if (failed(baselines))
      return step.emitError("needs to become a schedule without what is "
                            "decided of it, to be compared with Megatron's "
                            "options");
    report.baselines = std::move(*baselines);
  }
  const HeadOption &option = curve.getOption(point);
  setHeadRows(module, option.rows);
  writeDecisions(step, *option.traced, curve.getPlan(point),
                 curve.getSegments(point));
  return report;
}
