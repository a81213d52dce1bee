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

namespace {
/// A step with its head in chunks of some rows, and all that may be kept of it.
struct Option {
  int64_t rows = 0; ///< 0: the head is as it was
  std::unique_ptr<TracedGraph> traced;
  std::unique_ptr<solver::BudgetCurve> curve;
  int64_t point = -1; ///< within the budget, as far as is known before planning
  double seconds = 0; ///< of a micro-batch, replays included

  /// Whether this one is to be preferred.
  bool isBefore(const Option &other) const {
    if ((point < 0) != (other.point < 0))
      return other.point < 0;
    if (point >= 0 && seconds != other.seconds)
      return seconds < other.seconds;
    if (curve->getPoints().empty() || other.curve->getPoints().empty())
      return other.curve->getPoints().empty();
    return getPeak() < other.getPeak();
  }
  int64_t getPeak() const {
    return curve->getPoints()[std::max<int64_t>(point, 0)].peak;
  }
};
} // namespace

/// Of all schedules: validation has the memory of the step.
static void setHeadRows(ModuleOp module, int64_t rows) {
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

/// All options are tried, so that a smaller budget finds no faster step.
static FailureOr<Option> chooseOption(Trial &trial, const Budget &budget,
                                      const CostTable &costs, bool isFree) {
  std::optional<Option> best;
  for (int64_t rows : getHeadRows(trial.getStep())) {
    setHeadRows(trial.getModule(), rows);
    FailureOr<TracedGraph> traced = trial.trace(costs, isFree);
    if (failed(traced))
      return failure();
    Option option;
    option.rows = rows;
    option.traced = std::make_unique<TracedGraph>(std::move(*traced));
    const solver::StepGraph &graph = option.traced->graph;
    option.curve = std::make_unique<solver::BudgetCurve>(graph);
    int64_t beside =
        budget.kind == Budget::Kind::Memory ? option.traced->baseBytes : 0;
    option.point = option.curve->find(budget.bytes - beside);
    for (const solver::StepOp &op : graph.ops)
      if (op.phase != solver::StepPhase::Update)
        option.seconds += op.seconds;
    if (option.point >= 0)
      option.seconds += option.curve->getPoints()[option.point].seconds;
    if (!best || option.isBefore(*best))
      best = std::move(option);
  }
  setHeadRows(trial.getModule(), best->rows);
  return std::move(*best);
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
  FailureOr<Option> option = failure();
  if (succeeded(trial))
    option = chooseOption(**trial, budget, costs, isFree);
  if (failed(option))
    return step.emitError("needs to be a step that becomes a schedule, to be "
                          "planned for a budget");
  const TracedGraph *traced = option->traced.get();
  const solver::BudgetCurve &curve = *option->curve;
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
  // An option has the head as it was.
  for (auto head : step.getBody().getOps<nn::LinearCrossEntropyOp>())
    setHeadRows((*trial)->getModule(), head.getRows());
  FailureOr<std::vector<BudgetChoice>> rivals =
      tryRivals(**trial, costs, settings, budget.bytes - beside);
  if (failed(rivals))
    return step.emitError("needs to become a schedule without what is decided "
                          "of it, to be compared with Megatron's options");
  report.rivals = std::move(*rivals);
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
  if (settings.hasRegret) {
    std::vector<int64_t> groups;
    for (Work work : traced->works)
      groups.push_back(int64_t(work));
    report.scenarios = solver::computeRegret(
        traced->graph, kept, budget.bytes - beside, groups,
        {"products", "attention", "everything else"});
  }
  setHeadRows(module, option->rows);
  writeDecisions(step, *traced, kept, curve.getSegments(point));
  report.headRows = option->rows;
  return report;
}
