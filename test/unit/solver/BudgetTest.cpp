//===- BudgetTest.cpp - Tests of plans for every budget -------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Solver/Budget.h"
#include "RandomSteps.h"

#include <gtest/gtest.h>

using namespace reprise::solver;

/// The best of all plans there are, by peak.
static std::vector<BudgetPoint> solveByTrying(const StepGraph &graph,
                                              int64_t inFlight = 1) {
  StepSimulator simulator(graph);
  int64_t turn = 0;
  while (graph.ops[turn].phase == StepPhase::Forward)
    ++turn;
  std::vector<int64_t> choices = getChoices(graph);
  std::vector<BudgetPoint> all;
  for (uint64_t bits = 0; bits < uint64_t(1) << choices.size(); ++bits) {
    KeptValues kept = keepAll(graph);
    for (size_t k = 0; k < choices.size(); ++k)
      kept[choices[k]] = bits >> k & 1;
    const StepRun &run = simulator.run(kept);
    int64_t beside = (inFlight - 1) * simulator.getBytesAcross(turn);
    all.push_back({run.peak + beside, run.replaySeconds});
  }
  std::sort(all.begin(), all.end(),
            [](const BudgetPoint &a, const BudgetPoint &b) {
              return a.peak != b.peak ? a.peak < b.peak : a.seconds < b.seconds;
            });
  std::vector<BudgetPoint> best;
  for (const BudgetPoint &point : all)
    if (best.empty() || point.seconds < best.back().seconds)
      best.push_back(point);
  return best;
}

static void checkCurve(const StepGraph &graph, const BudgetCurve &curve) {
  StepSimulator simulator(graph);
  const std::vector<BudgetPoint> &points = curve.getPoints();
  for (size_t p = 0; p < points.size(); ++p) {
    const StepRun &run = simulator.run(curve.getPlan(p));
    EXPECT_LE(run.peak, points[p].peak) << p;
    EXPECT_DOUBLE_EQ(run.replaySeconds, points[p].seconds) << p;
    if (p) {
      EXPECT_GT(points[p].peak, points[p - 1].peak);
      EXPECT_LT(points[p].seconds, points[p - 1].seconds);
    }
  }
}

/// The curve of a chain has the least time of all plans for each budget.
static void checkAgainstAllPlans(const StepGraph &graph, unsigned seed) {
  BudgetCurve curve(graph);
  ASSERT_TRUE(curve.isChain()) << curve.getReason();
  checkCurve(graph, curve);
  for (const BudgetPoint &best : solveByTrying(graph)) {
    int64_t point = curve.find(best.peak);
    ASSERT_GE(point, 0) << "seed " << seed << " bytes " << best.peak;
    EXPECT_EQ(curve.getPoints()[point].seconds, best.seconds)
        << "seed " << seed << " bytes " << best.peak;
  }
}

// Where what joins layers is kept, there is no better plan for any budget.
TEST(BudgetTest, ChainsAreAsGoodAsTryingAll) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    StepGraph graph = makeRandomChain(seed, 3, 3, 1 + seed % 2, true);
    checkAgainstAllPlans(graph, seed);
  }
}

/// A chain of three whose middle is of no layer, as the head is that layers
/// behind it predict further tokens beside.
static StepGraph makeHeadBetween(unsigned seed) {
  StepGraph graph = makeRandomChain(seed, 3, 3, 1 + seed % 2, true);
  for (StepOp &op : graph.ops)
    if (op.layer == 1)
      op.layer = -1;
  return graph;
}

// Such a head is by itself: its values may be dropped as those of layers may.
TEST(BudgetTest, HeadsBetweenLayersAreAsGoodAsTryingAll) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    StepGraph graph = makeHeadBetween(seed);
    checkAgainstAllPlans(graph, seed);
  }
}

// It is of the stage of the layer behind it, which predicts further tokens.
TEST(BudgetTest, HeadsBetweenLayersHaveAStage) {
  StepGraph graph = makeHeadBetween(1);
  auto count = [](const StepGraph &graph) {
    return std::count_if(graph.ops.begin(), graph.ops.end(),
                         [](const StepOp &op) { return op.layer >= 0; });
  };
  EXPECT_TRUE(takeStages(graph, {1, 2}).empty());
  std::vector<StepStage> stages = takeStages(graph, {1, 1});
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_EQ(count(stages[0].graph), count(stages[1].graph));
  EXPECT_GT(stages[1].graph.ops.size(), stages[0].graph.ops.size() + 4);
}

// Nor does it pass on its term of the gradient of a table that the embedding
// shares: either stage has a sum of its own.
TEST(BudgetTest, HeadsBehindABorderPassNoTermOfATable) {
  StepGraph graph = makeHeadBetween(1);
  int64_t term = graph.values.size();
  graph.values.push_back(graph.values.back());
  graph.values.back().bytes = 1000;
  std::vector<StepOp> &ops = graph.ops;
  ASSERT_EQ(ops.back().phase, StepPhase::Update);
  ops.insert(ops.end() - 1, ops[ops.size() - 2]);
  StepOp &embedding = ops[ops.size() - 2];
  embedding.layer = -1;
  embedding.reads = {embedding.writes.front(), term};
  embedding.writes.clear();
  embedding.sharing.clear();
  auto isHead = [](const StepOp &op) {
    return op.phase == StepPhase::Backward && op.name == "d1";
  };
  std::find_if(ops.begin(), ops.end(), isHead)->writes.push_back(term);
  std::vector<StepStage> stages = takeStages(graph, {1, 1});
  ASSERT_EQ(stages.size(), 2u);
  for (const StepStage &stage : stages) {
    EXPECT_EQ(check(stage.graph).value_or(""), "");
    size_t own = std::find(stage.values.begin(), stage.values.end(), term) -
                 stage.values.begin();
    ASSERT_LT(own, stage.values.size());
    EXPECT_TRUE(stage.graph.values[own].outlives);
    EXPECT_LT(BudgetCurve(stage.graph).getPoints().back().peak, 1000);
  }
}

// Segments of several layers have the same values kept in each of them, so that
// there may be better plans; but with segments less memory will do.
TEST(BudgetTest, SegmentsNeedLess) {
  int64_t numSegments = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    StepGraph graph = makeRandomChain(seed, 4, 2);
    BudgetCurve curve(graph);
    ASSERT_TRUE(curve.isChain()) << curve.getReason();
    checkCurve(graph, curve);
    std::vector<BudgetPoint> best = solveByTrying(graph);
    for (size_t p = 0; p < curve.getPoints().size(); ++p) {
      const BudgetPoint &point = curve.getPoints()[p];
      auto behind = std::upper_bound(
          best.begin(), best.end(), point.peak,
          [](int64_t peak, const BudgetPoint &b) { return peak < b.peak; });
      ASSERT_NE(behind, best.begin());
      EXPECT_GE(point.seconds, std::prev(behind)->seconds);
      for (auto [first, last] : curve.getSegments(p)) {
        EXPECT_LT(first, last);
        ++numSegments;
      }
    }
  }
  EXPECT_GT(numSegments, 0);
}

// A layer's backward pass that reads what a later layer makes is none of a
// chain: plans are searched for.
TEST(BudgetTest, SearchesWhereThereIsNoChain) {
  double found = 0, best = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    StepGraph graph = makeRandomChain(seed, 3, 3);
    std::swap(graph.ops[2].layer, graph.ops[8].layer);
    BudgetCurve curve(graph);
    EXPECT_FALSE(curve.isChain());
    EXPECT_NE(curve.getReason(), "");
    checkCurve(graph, curve);
    for (const BudgetPoint &point : solveByTrying(graph)) {
      int64_t number = curve.find(point.peak);
      if (number < 0)
        continue;
      EXPECT_GE(curve.getPoints()[number].seconds, point.seconds);
      found += curve.getPoints()[number].seconds;
      best += point.seconds;
    }
  }
  EXPECT_LE(found, best * 1.02);
}

TEST(BudgetTest, RulesHold) {
  using Rule = StepValue::Rule;
  int64_t numChains = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    StepGraph graph = makeRandomChain(seed, 3, 3);
    std::mt19937 random(seed);
    for (int64_t value : getChoices(graph))
      if (random() % 3 == 0)
        graph.values[value].rule = random() % 2 ? Rule::Keep : Rule::Drop;
    BudgetCurve curve(graph);
    numChains += curve.isChain();
    ASSERT_FALSE(curve.getPoints().empty());
    checkCurve(graph, curve);
    for (size_t p = 0; p < curve.getPoints().size(); ++p) {
      KeptValues kept = curve.getPlan(p);
      for (size_t v = 0; v < kept.size(); ++v)
        if (graph.values[v].rule != Rule::Free)
          EXPECT_EQ(kept[v], graph.values[v].rule == Rule::Keep);
    }
  }
  EXPECT_GT(numChains, 10);
}

TEST(BudgetTest, FindsTheLastPointThatFits) {
  StepGraph graph = makeRandomChain(1, 4, 4);
  BudgetCurve curve(graph);
  const std::vector<BudgetPoint> &points = curve.getPoints();
  ASSERT_GT(points.size(), 2u);
  EXPECT_EQ(curve.find(points[0].peak - 1), -1);
  EXPECT_EQ(curve.find(points[0].peak), 0);
  EXPECT_EQ(curve.find(points[1].peak - 1), 0);
  EXPECT_EQ(curve.find(int64_t(1) << 60), int64_t(points.size()) - 1);
}

// The same graph has the same curve, plans included.
TEST(BudgetTest, IsDeterministic) {
  for (bool isChain : {true, false}) {
    StepGraph graph = makeRandomChain(3, 6, 5);
    if (!isChain)
      std::swap(graph.ops[2].layer, graph.ops[8].layer);
    BudgetCurve one(graph), two(graph);
    ASSERT_EQ(one.getPoints().size(), two.getPoints().size());
    for (size_t p = 0; p < one.getPoints().size(); ++p)
      EXPECT_EQ(one.getPlan(p), two.getPlan(p));
  }
}

// Layers of many values are cut in two at the residual stream.
TEST(BudgetTest, ManyValuesAreCutInTwo) {
  StepGraph graph = makeRandomChain(5, 2, 15);
  BudgetCurve curve(graph);
  ASSERT_TRUE(curve.isChain());
  checkCurve(graph, curve);
}

// No plan that there is takes less than the bound, and the bound is worth
// something.
TEST(BudgetTest, BoundsHold) {
  double bounds = 0, all = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    StepGraph graph = makeRandomChain(seed, 3, 3, 1 + seed % 2, seed % 4 < 2);
    BudgetOptions options;
    options.inFlight = 1 + seed % 3;
    BudgetCurve curve(graph, options);
    for (const BudgetPoint &best : solveByTrying(graph, options.inFlight)) {
      int64_t point = curve.find(best.peak);
      if (point < 0)
        continue;
      Certificate certificate;
      certificate.kind = Certificate::Budget::Activations;
      certificate.budgetBytes = best.peak;
      certify(graph, curve.getPlan(point), 1, certificate, options.inFlight);
      EXPECT_LE(certificate.lowerBoundSeconds, best.seconds + 1e-9)
          << "seed " << seed << " bytes " << best.peak;
      EXPECT_DOUBLE_EQ(certificate.replaySeconds,
                       curve.getPoints()[point].seconds);
      bounds += certificate.lowerBoundSeconds;
      all += best.seconds;
    }
  }
  EXPECT_GE(bounds, all * 0.85);
}

// A smaller budget proves no less; no price of the point that was chosen, nor
// of any other that may be, proves more; and a curve of bounds lies below, and
// is as monotone.
TEST(BudgetTest, BoundsRiseAsBudgetsFall) {
  int64_t numPriced = 0;
  double ofCurves = 0, ofRuns = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    StepGraph graph = makeRandomChain(seed, 4, 4, 1 + seed % 2, seed % 4 < 2);
    BudgetCurve curve(graph);
    std::vector<int64_t> budgets;
    for (const BudgetPoint &point : curve.getPoints())
      budgets.push_back(point.peak);
    double larger = 0;
    std::vector<double> exact(budgets.size()), bounds;
    for (size_t p = budgets.size(); p-- > 0;) {
      Certificate certificate;
      certificate.kind = Certificate::Budget::Activations;
      certificate.budgetBytes = budgets[p];
      certify(graph, curve.getPlan(p), 1e-3, certificate);
      double found = exact[p] = certificate.lowerBoundSeconds;
      EXPECT_GE(found, larger * (1 - 1e-12)) << "seed " << seed;
      larger = found;
      if (p + 1 == budgets.size())
        bounds = computeBounds(certificate, budgets);
      if (certificate.points.empty())
        continue;
      ++numPriced;
      PricedPoint chosen = certificate.points[0];
      for (bool isTurn : {false, true})
        for (double factor = 1e-3; factor < 1e3; factor *= 1.25) {
          PricedPoint point = chosen;
          if (isTurn)
            point.layer = certificate.layers.size(), point.gradient = 0;
          point.secondsPerByte *= factor;
          certificate.points = {point};
          computeBound(certificate);
          EXPECT_LE(certificate.lowerBoundSeconds, found * (1 + 1e-12));
        }
    }
    for (size_t p = 0; p < budgets.size(); ++p) {
      EXPECT_LE(bounds[p], exact[p] * (1 + 1e-12));
      EXPECT_GE(bounds[p], p + 1 < bounds.size() ? bounds[p + 1] : 0);
    }
    ofCurves += bounds[0];
    ofRuns += exact[0];
  }
  EXPECT_GT(numPriced, 100);
  EXPECT_GT(ofCurves, 0.98 * ofRuns);
}

// What rules ask for is proven at each point, whichever budgets were searched.
TEST(BudgetTest, BoundsCountWhatRulesAsk) {
  int64_t numForced = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    StepGraph graph = makeRandomChain(seed, 4, 4);
    for (size_t v = 0; v < graph.values.size(); v += 3)
      if (graph.values[v].rule == StepValue::Rule::Free)
        graph.values[v].rule = StepValue::Rule::Drop;
    BudgetCurve curve(graph);
    if (curve.getPoints().empty())
      continue;
    Certificate certificate;
    certificate.kind = Certificate::Budget::Activations;
    certificate.budgetBytes = curve.getPoints().back().peak * 2;
    certify(graph, curve.getPlan(curve.getPoints().size() - 1), 0, certificate);
    double forced = certificate.lowerBoundSeconds;
    numForced += forced > 0;
    // Of every four budgets one is searched, of which the last is none.
    std::vector<int64_t> budgets(101, curve.getPoints()[0].peak);
    budgets.push_back(certificate.budgetBytes);
    for (double bound : computeBounds(certificate, budgets))
      EXPECT_GE(bound, forced * (1 - 1e-12)) << "seed " << seed;
  }
  EXPECT_GT(numForced, 5);
}

// Several micro-batches in flight: what is kept is there for each of them, what
// works is there once.
TEST(BudgetTest, InFlightAsGoodAsTryingAll) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    StepGraph graph = makeRandomChain(seed, 3, 3, 1 + seed % 2, true);
    BudgetOptions options;
    options.inFlight = 2 + seed % 3;
    BudgetCurve curve(graph, options);
    ASSERT_TRUE(curve.isChain());
    StepSimulator simulator(graph);
    std::vector<int64_t> choices = getChoices(graph);
    int64_t turn = 0;
    while (graph.ops[turn].phase == StepPhase::Forward)
      ++turn;
    auto getPeak = [&](const KeptValues &kept, double &seconds) {
      const StepRun &run = simulator.run(kept);
      seconds = run.replaySeconds;
      return run.peak + (options.inFlight - 1) * simulator.getBytesAcross(turn);
    };
    double seconds = 0;
    for (size_t p = 0; p < curve.getPoints().size(); ++p) {
      EXPECT_LE(getPeak(curve.getPlan(p), seconds), curve.getPoints()[p].peak);
      EXPECT_DOUBLE_EQ(seconds, curve.getPoints()[p].seconds);
    }
    for (uint64_t bits = 0; bits < uint64_t(1) << choices.size(); ++bits) {
      KeptValues kept = keepAll(graph);
      for (size_t k = 0; k < choices.size(); ++k)
        kept[choices[k]] = bits >> k & 1;
      int64_t peak = getPeak(kept, seconds), point = curve.find(peak);
      ASSERT_GE(point, 0) << "seed " << seed;
      ASSERT_LE(curve.getPoints()[point].seconds, seconds)
          << "seed " << seed << " bytes " << peak;
    }
  }
}

// A stage has what enters it, and not what it hands on.
TEST(BudgetTest, StagesAreSteps) {
  StepGraph graph = makeRandomChain(2, 4, 3);
  EXPECT_TRUE(takeStages(graph, {3, 2}).empty());
  EXPECT_TRUE(takeStages(graph, {2, 1}).empty());
  std::vector<StepStage> stages = takeStages(graph, {2, 2});
  ASSERT_EQ(stages.size(), 2u);
  int64_t numOps = 0;
  for (const StepStage &stage : stages) {
    EXPECT_EQ(check(stage.graph).value_or(""), "");
    BudgetCurve curve(stage.graph);
    ASSERT_TRUE(curve.isChain()) << curve.getReason();
    checkCurve(stage.graph, curve);
    EXPECT_GT(curve.getPoints().size(), 3u);
    for (const StepOp &op : stage.graph.ops)
      numOps += op.layer >= 0;
  }
  for (const StepOp &op : graph.ops)
    numOps -= op.layer >= 0;
  EXPECT_EQ(numOps, 0);
}

// Without layers the first stage has the embedding, the last the head, and one
// between others nothing. What they have is in no other stage.
TEST(BudgetTest, StagesMayHaveNoLayers) {
  StepGraph graph = makeRandomChain(2, 3, 3);
  for (size_t op = 0; op < graph.ops.size(); ++op)
    graph.ops[op].name = "op" + std::to_string(op);
  std::vector<StepStage> stages = takeStages(graph, {0, 2, 0, 1, 0});
  ASSERT_EQ(stages.size(), 5u);
  std::vector<int64_t> count(graph.ops.size());
  std::vector<int64_t> layered;
  for (const StepStage &stage : stages) {
    EXPECT_EQ(check(stage.graph).value_or(""), "");
    EXPECT_FALSE(BudgetCurve(stage.graph).getPoints().empty());
    layered.push_back(0);
    for (const StepOp &op : stage.graph.ops) {
      layered.back() += op.layer >= 0;
      for (size_t own = 0; own < graph.ops.size(); ++own)
        count[own] += graph.ops[own].name == op.name;
    }
  }
  EXPECT_EQ(layered[0] + layered[2] + layered[4], 0);
  EXPECT_TRUE(layered[1] > 0 && layered[3] > 0);
  for (size_t op = 0; op < graph.ops.size(); ++op)
    EXPECT_EQ(count[op], graph.ops[op].phase != StepPhase::Update)
        << graph.ops[op].name;
}

// A term of the loss that the head makes of a layer's value is of that layer's
// stage, with its gradient: no other stage gets or keeps the value.
TEST(BudgetTest, TermsOfTheLossHaveAStage) {
  StepGraph graph = makeRandomChain(2, 2, 3);
  std::vector<StepOp> &ops = graph.ops;
  auto first = [&](auto holds) {
    return std::find_if(ops.begin(), ops.end(), holds);
  };
  int64_t read =
              first([](const StepOp &op) { return op.layer == 0; })->writes[0],
          term = graph.values.size(), gradient = term + 1;
  graph.values.resize(term + 2);
  graph.values[term].bytes = 6;
  graph.values[gradient].bytes = 7;
  auto isBackward = [](const StepOp &op) {
    return op.phase == StepPhase::Backward;
  };
  StepOp forward, backward;
  forward.name = "term";
  backward.name = "term.backward";
  backward.phase = StepPhase::Backward;
  forward.reads = {read};
  forward.writes = {term};
  backward.reads = {term, read};
  backward.writes = {gradient};
  ops.insert(first(isBackward), {forward, backward});
  first([&](const StepOp &op) {
    return isBackward(op) && op.layer == 0;
  })->reads.push_back(gradient);
  ASSERT_EQ(check(graph).value_or(""), "");
  std::vector<int64_t> homes(ops.size(), -1);
  for (size_t op = 0; op < ops.size(); ++op)
    if (ops[op].name == "term" || ops[op].name == "term.backward")
      homes[op] = 0;
  auto count = [](const StepGraph &stage, const std::string &name) {
    return std::count_if(stage.ops.begin(), stage.ops.end(),
                         [&](const StepOp &op) { return op.name == name; });
  };
  for (bool isMoved : {false, true}) {
    std::vector<StepStage> stages =
        takeStages(graph, {1, 1}, isMoved ? homes : std::vector<int64_t>());
    ASSERT_EQ(stages.size(), 2u);
    for (const StepStage &stage : stages)
      EXPECT_EQ(check(stage.graph).value_or(""), "");
    EXPECT_EQ(count(stages[0].graph, "term"), isMoved);
    EXPECT_EQ(count(stages[0].graph, "term.backward"), isMoved);
    EXPECT_EQ(count(stages[1].graph, "term"), !isMoved);
    const std::vector<int64_t> &own = stages[1].values;
    EXPECT_EQ(std::count(own.begin(), own.end(), read), !isMoved);
    EXPECT_EQ(stages[1].graph.ops.front().writes.size(), isMoved ? 1u : 2u);
    // The gradient of what it passes on comes to it in any case.
    const StepGraph &before = stages[0].graph;
    auto gap = std::find_if(before.ops.begin(), before.ops.end(), isBackward);
    ASSERT_EQ(gap->writes.size(), 1u);
    for (int64_t value : gap->writes)
      EXPECT_FALSE(before.values[value].outlives);
  }
}
