//===- RegretTest.cpp - Tests of plans under other costs ------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Solver/Regret.h"
#include "RandomSteps.h"

#include <gtest/gtest.h>

using namespace reprise::solver;

/// Ops in turn in two groups.
static std::vector<int64_t> alternate(const StepGraph &graph) {
  std::vector<int64_t> groupOf;
  for (size_t op = 0; op < graph.ops.size(); ++op)
    groupOf.push_back(op % 2);
  return groupOf;
}

// With costs that change so much that another plan is better, by how much is
// what trying all plans says; with costs as they are, the plan is the best.
TEST(Regret, IsThatOfTryingAllPlans) {
  int numRegretted = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    StepGraph graph = makeRandomChain(seed, 3, 3, 1, true);
    BudgetCurve curve(graph);
    ASSERT_TRUE(curve.isChain());
    size_t point = curve.getPoints().size() / 2;
    int64_t bytes = curve.getPoints()[point].peak;
    std::vector<int64_t> groupOf = alternate(graph);
    std::vector<Scenario> scenarios = computeRegret(
        graph, curve.getPlan(point), bytes, groupOf, {"even", "odd"}, 0.9);
    ASSERT_EQ(scenarios.size(), 4u);
    EXPECT_EQ(scenarios[0].name, "even 90 % slower");
    EXPECT_EQ(scenarios[3].name, "odd 90 % faster");
    for (size_t k = 0; k < scenarios.size(); ++k) {
      StepGraph other = graph;
      for (size_t op = k / 2; op < other.ops.size(); op += 2)
        other.ops[op].seconds *= k % 2 ? 0.1 : 1.9;
      StepSimulator simulator(other);
      double best = simulator.run(curve.getPlan(point)).replaySeconds;
      EXPECT_DOUBLE_EQ(scenarios[k].seconds, best);
      std::vector<int64_t> choices = getChoices(other);
      for (uint64_t bits = 0; bits < uint64_t(1) << choices.size(); ++bits) {
        KeptValues kept = keepAll(other);
        for (size_t c = 0; c < choices.size(); ++c)
          kept[choices[c]] = bits >> c & 1;
        const StepRun &run = simulator.run(kept);
        if (run.peak <= bytes)
          best = std::min(best, run.replaySeconds);
      }
      EXPECT_NEAR(scenarios[k].bestSeconds, best, 1e-12 + 1e-9 * best);
      numRegretted += scenarios[k].regretSeconds() > 1e-9;
    }
    for (const Scenario &same : computeRegret(
             graph, curve.getPlan(point), bytes, groupOf, {"even", "odd"}, 0))
      EXPECT_NEAR(same.regretSeconds(), 0, 1e-12);
  }
  EXPECT_GT(numRegretted, 5) << "no scenario that matters";
}

TEST(Regret, LeavesOutGroupsThatNothingReplays) {
  StepGraph graph = makeRandomChain(1, 3, 3, 1, true);
  BudgetCurve curve(graph);
  std::vector<int64_t> groupOf(graph.ops.size());
  EXPECT_EQ(computeRegret(graph, curve.getPlan(0), curve.getPoints()[0].peak,
                          groupOf, {"all", "none"})
                .size(),
            2u);
}
