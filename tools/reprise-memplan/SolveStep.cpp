//===- SolveStep.cpp - All solvers on one step ----------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SolveStep.h"
#include "reprise/Solver/Budget.h"

#include <algorithm>
#include <ostream>

using namespace reprise;
using namespace reprise::solver;

/// Two to the power of this many plans are tried in a second or two.
static constexpr size_t kMostTried = 16;

namespace {
/// What a solver finds: plans with their peaks growing and seconds falling.
struct Found {
  const char *solver;
  std::vector<FoundPlan> plans;
  std::string whyNot = {}; ///< it has none

  /// The last plan that fits; null if none does.
  const FoundPlan *find(int64_t bytes) const {
    const FoundPlan *last = nullptr;
    for (const FoundPlan &plan : plans)
      if (plan.point.peak <= bytes)
        last = &plan;
    return last;
  }
};
} // namespace

static Found takeCurve(const char *solver, const BudgetCurve &curve) {
  Found found = {solver, {}};
  for (size_t p = 0; p < curve.getPoints().size(); ++p)
    found.plans.push_back({curve.getPlan(p), curve.getPoints()[p]});
  if (found.plans.empty())
    found.whyNot = "what rules drop cannot be computed again";
  return found;
}

static std::vector<Found> solveAll(const StepGraph &graph) {
  std::vector<Found> all;
  BudgetCurve curve(graph);
  if (curve.isChain())
    all.push_back(takeCurve("chain", curve));
  else
    all.push_back({"chain", {}, "no chain: " + curve.getReason()});
  BudgetOptions options;
  options.isSearched = true;
  all.push_back(takeCurve("graph", BudgetCurve(graph, options)));
  Found smaller = {"shrink", {}, "nothing is smaller"};
  const Found &start = all[curve.isChain() ? 0 : 1];
  if (!start.plans.empty())
    smaller.plans = shrink(graph, start.plans.front().kept);
  std::reverse(smaller.plans.begin(), smaller.plans.end());
  all.push_back(std::move(smaller));
  size_t numChoices = getChoices(graph).size();
  all.push_back({"all plans",
                 {},
                 numChoices <= kMostTried
                     ? "none is possible"
                     : "2^" + std::to_string(numChoices) + " are too many"});
  if (numChoices <= kMostTried)
    all.back().plans = tryAllPlans(graph);
  return all;
}

/// What the replays of a micro-batch take at least in `bytes`, by prices near
/// that of `plan`.
static double getBound(const StepGraph &graph, const Found &found,
                       const FoundPlan &plan, int64_t bytes) {
  double price = 0;
  if (size_t next = &plan - found.plans.data() + 1; next < found.plans.size()) {
    const BudgetPoint &other = found.plans[next].point;
    price = (plan.point.seconds - other.seconds) /
            double(other.peak - plan.point.peak);
  }
  Certificate certificate;
  certificate.kind = Certificate::Budget::Activations;
  certificate.budgetBytes = bytes;
  certify(graph, plan.kept, price, certificate);
  return certificate.lowerBoundSeconds / double(graph.microBatches);
}

static void printBudget(const StepGraph &graph, const std::vector<Found> &all,
                        int64_t bytes, std::ostream &out) {
  out << "memory " << bytes << ":";
  const Found *best = nullptr;
  for (const Found &found : all) {
    const FoundPlan *plan = found.find(bytes);
    if (!plan)
      continue;
    out << ' ' << found.solver << ' ' << plan->point.seconds << " s,";
    best = best ? best : &found;
  }
  if (best)
    out << " bound " << getBound(graph, *best, *best->find(bytes), bytes)
        << " s\n";
  else
    out << " no plan found\n";
}

void tools::solveStep(const StepGraph &graph,
                      const std::vector<int64_t> &budgets, std::ostream &out) {
  constexpr int kDigits = 9;
  out.precision(kDigits);
  StepSimulator simulator(graph);
  out << "step: " << graph.ops.size() << " launches, " << graph.values.size()
      << " values, " << getChoices(graph).size() << " to decide on\n"
      << "all kept: " << simulator.run(keepAll(graph)).peak << " bytes\n"
      << "least peak: no plan takes less than " << getLeastPeak(graph)
      << " bytes\n";
  std::vector<Found> all = solveAll(graph);
  for (const Found &found : all) {
    if (found.plans.empty())
      out << found.solver << ": " << found.whyNot << '\n';
    for (const FoundPlan &plan : found.plans)
      out << found.solver << ": " << plan.point.peak << " bytes, "
          << plan.point.seconds << " s\n";
  }
  for (int64_t bytes : budgets)
    printBudget(graph, all, bytes, out);
}
