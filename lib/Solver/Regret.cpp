//===- Regret.cpp - What wrong costs would have cost ----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Solver/Regret.h"

#include <algorithm>
#include <cmath>

using namespace reprise::solver;

std::vector<Scenario> reprise::solver::computeRegret(
    const StepGraph &graph, const KeptValues &kept, int64_t bytes,
    const std::vector<int64_t> &groupOf, const std::vector<std::string> &groups,
    double change, const BudgetOptions &options) {
  std::vector<Scenario> scenarios;
  for (size_t group = 0; group < groups.size(); ++group)
    for (double sign : {1.0, -1.0}) {
      StepGraph other = graph;
      bool isThere = false;
      for (size_t op = 0; op < other.ops.size(); ++op)
        if (groupOf[op] == int64_t(group)) {
          isThere |= other.ops[op].phase == StepPhase::Forward;
          other.ops[op].seconds *= 1 + sign * change;
        }
      if (!isThere)
        continue;
      Scenario scenario;
      scenario.name = groups[group] + " " +
                      std::to_string(std::lround(100 * change)) + " % " +
                      (sign > 0 ? "slower" : "faster");
      scenario.seconds = StepSimulator(other).run(kept).replaySeconds;
      // The plan itself fits, whatever the solver finds.
      scenario.bestSeconds = scenario.seconds;
      BudgetCurve curve(other, options);
      if (int64_t best = curve.find(bytes); best >= 0)
        scenario.bestSeconds =
            std::min(scenario.bestSeconds, curve.getPoints()[best].seconds);
      scenarios.push_back(std::move(scenario));
    }
  return scenarios;
}
