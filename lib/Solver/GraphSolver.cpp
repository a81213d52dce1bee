//===- GraphSolver.cpp - Plans for steps that are no chain ----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With a price on each byte that is kept from forward to backward the budget is
// gone from the problem (Lagrangian relaxation; Everett, Operations Research
// 11, 1963), and a plan is as good as its sum of seconds and priced bytes.
// Changing one choice after the other, as long as one helps, gives a plan for
// each of a series of prices. These are then changed at random, and what turns
// out to need less memory, or time, than all plans so far stays. Peaks are
// those of the whole step, run in the mind.
//
//===----------------------------------------------------------------------===//

#include "Curve.h"

#include <algorithm>

using namespace reprise::solver;

BudgetCurve::GraphSolver::GraphSolver(const StepGraph &graph,
                                      const BudgetOptions &options)
    : simulator(graph) {
  std::vector<bool> isRead(graph.values.size());
  KeptValues none(graph.values.size());
  double most = 0;
  for (int64_t op : simulator.getReplays(none, most))
    for (int64_t value : graph.ops[op].reads)
      isRead[value] = true;
  for (const StepOp &op : graph.ops)
    if (op.phase != StepPhase::Forward)
      for (int64_t value : op.reads)
        isRead[value] = true;
  for (size_t v = 0; v < graph.values.size(); ++v)
    if (graph.values[v].rule == StepValue::Rule::Free && isRead[v])
      choices.push_back(v);

  // From dear to cheap: each price begins with the plan of the one before.
  KeptValues kept = keepAll(graph);
  add(kept);
  int64_t bytes = 1;
  for (int64_t value : choices)
    bytes += graph.values[value].bytes;
  constexpr int kPrices = 32;
  for (int step = 0; step < kPrices; ++step) {
    double price = most / bytes / 64;
    for (int k = 0; k < step; ++k)
      price *= 1.6;
    double seconds;
    simulator.getReplays(kept, seconds);
    for (bool isBetter = true; isBetter;) {
      isBetter = false;
      for (int64_t value : choices) {
        kept[value] = !kept[value];
        double changed;
        simulator.getReplays(kept, changed);
        double difference =
            changed - seconds +
            (kept[value] ? price : -price) * double(graph.values[value].bytes);
        if (difference < -1e-12 * (seconds + changed)) {
          seconds = changed;
          isBetter = true;
        } else {
          kept[value] = !kept[value];
        }
      }
    }
    add(kept);
  }
  improve(options);
}

void BudgetCurve::GraphSolver::add(const KeptValues &kept) {
  const StepRun &run = simulator.run(kept);
  if (!run.isPossible)
    return;
  BudgetPoint point = {run.peak, run.replaySeconds};
  auto at = std::lower_bound(
      found.begin(), found.end(), point.peak,
      [](const Found &other, int64_t peak) { return other.point.peak < peak; });
  bool isWorse =
      (at != found.begin() && std::prev(at)->point.seconds <= point.seconds) ||
      (at != found.end() && at->point.peak == point.peak &&
       at->point.seconds <= point.seconds);
  if (isWorse)
    return;
  auto end = at;
  while (end != found.end() && end->point.seconds >= point.seconds)
    ++end;
  at = found.erase(at, end);
  found.insert(at, {point, kept});
}

void BudgetCurve::GraphSolver::improve(const BudgetOptions &options) {
  if (choices.empty() || found.empty())
    return;
  uint64_t random = 1;
  auto pick = [&](size_t count) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return size_t((random >> 33) % count);
  };
  for (int64_t step = 0; step < options.searchSteps; ++step) {
    KeptValues kept = found[pick(found.size())].kept;
    for (size_t changes = 1 + pick(3); changes > 0; --changes) {
      int64_t value = choices[pick(choices.size())];
      kept[value] = !kept[value];
    }
    add(kept);
  }
}

std::vector<BudgetPoint> BudgetCurve::GraphSolver::getPoints() const {
  std::vector<BudgetPoint> result;
  for (const Found &each : found)
    result.push_back(each.point);
  return result;
}
