//===- AllPlans.cpp - The best of all plans there are ---------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Solver/Budget.h"

#include <algorithm>
#include <tuple>

using namespace reprise::solver;

std::vector<FoundPlan> reprise::solver::tryAllPlans(const StepGraph &graph) {
  std::vector<int64_t> choices = getChoices(graph);
  StepSimulator simulator(graph);
  std::vector<FoundPlan> plans, best;
  for (uint64_t bits = 0; bits < uint64_t(1) << choices.size(); ++bits) {
    KeptValues kept = keepAll(graph);
    for (size_t k = 0; k < choices.size(); ++k)
      kept[choices[k]] = bits >> k & 1;
    const StepRun &run = simulator.run(kept);
    if (run.isPossible)
      plans.push_back({std::move(kept), {run.peak, run.replaySeconds}});
  }
  std::stable_sort(plans.begin(), plans.end(),
                   [](const FoundPlan &a, const FoundPlan &b) {
                     return std::tie(a.point.peak, a.point.seconds) <
                            std::tie(b.point.peak, b.point.seconds);
                   });
  for (FoundPlan &plan : plans)
    if (best.empty() || plan.point.seconds < best.back().point.seconds)
      best.push_back(std::move(plan));
  return best;
}
