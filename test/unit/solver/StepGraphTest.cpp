//===- StepGraphTest.cpp - Tests of steps run in the mind -----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RandomSteps.h"

#include <gtest/gtest.h>
#include <map>
#include <set>

using namespace reprise::solver;

/// "a b | c a@replay", with the bytes alive in front of each.
static std::string draw(const StepGraph &graph, const KeptValues &kept) {
  StepSimulator simulator(graph);
  const StepRun &run = simulator.run(kept);
  std::string text;
  for (size_t p = 0; p < run.schedule.size(); ++p)
    text += (p ? " " : "") + std::to_string(run.live[p]) + ":" +
            graph.ops[run.schedule[p].op].name +
            (run.schedule[p].isReplay ? "@" : "");
  return text;
}

/// x -> u -> g -> loss; backward reads g, then u, then x.
static StepGraph makeStep() {
  StepBuilder b;
  int64_t x = b.addValue("x", 1, true), u = b.addValue("u", 10, true),
          g = b.addValue("g", 100, true), l = b.addValue("l", 1000),
          dg = b.addValue("dg", 100), du = b.addValue("du", 10),
          dx = b.addValue("dx", 1);
  b.addOp("x", StepPhase::Forward, -1, 1, {}, {x});
  b.addOp("u", StepPhase::Forward, 0, 2, {x}, {u});
  b.addOp("g", StepPhase::Forward, 0, 4, {u}, {g});
  b.addOp("l", StepPhase::Forward, -1, 8, {g}, {l});
  b.addOp("dg", StepPhase::Backward, 0, 1, {l, g}, {dg});
  b.addOp("du", StepPhase::Backward, 0, 1, {dg, u}, {du});
  b.addOp("dx", StepPhase::Backward, 0, 1, {du, x}, {dx});
  return b.graph;
}

TEST(StepGraphTest, KeepsAll) {
  StepGraph graph = makeStep();
  EXPECT_EQ(check(graph).value_or(""), "");
  EXPECT_EQ(draw(graph, keepAll(graph)),
            "1:x 11:u 111:g 1111:l 1211:dg 121:du 12:dx");
}

TEST(StepGraphTest, ReplaysAsLateAsPossible) {
  StepGraph graph = makeStep();
  KeptValues kept = keepAll(graph);
  kept[1] = kept[2] = false; // u, g
  EXPECT_EQ(draw(graph, kept),
            "1:x 11:u 111:g 1101:l 1011:u@ 1111:g@ 1211:dg 121:du 12:dx");
  StepSimulator simulator(graph);
  double seconds;
  EXPECT_EQ(simulator.getReplays(kept, seconds), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(seconds, 6);
  EXPECT_EQ(simulator.run(kept).replaySeconds, 6);
}

TEST(StepGraphTest, SharesBytes) {
  StepGraph graph = makeStep();
  // dg in the bytes of g, which it is the last to read.
  graph.ops[4].sharing.push_back({1, 0, false});
  EXPECT_EQ(draw(graph, keepAll(graph)),
            "1:x 11:u 111:g 1111:l 1111:dg 121:du 12:dx");
  // Not if g is read again, nor in the bytes of what outlives the step.
  graph.ops[5].reads.push_back(2);
  EXPECT_EQ(draw(graph, keepAll(graph)),
            "1:x 11:u 111:g 1111:l 1211:dg 221:du 12:dx");
  graph.ops[5].reads.pop_back();
  graph.values[2].rule = StepValue::Rule::Keep;
  graph.values[2].outlives = true;
  EXPECT_EQ(draw(graph, keepAll(graph)),
            "1:x 11:u 11:g 1011:l 1111:dg 121:du 12:dx");
  // Unless it has to be: a state is replaced where it is.
  graph.ops[4].sharing[0].isForced = true;
  EXPECT_EQ(draw(graph, keepAll(graph)),
            "1:x 11:u 11:g 1011:l 1011:dg 21:du 12:dx");
}

TEST(StepGraphTest, PartsAndViews) {
  StepBuilder b;
  int64_t whole = b.addValue("whole", 8), left = b.addValue("left", 4),
          right = b.addValue("right", 4), view = b.addValue("view", 2),
          out = b.addValue("out", 1);
  b.graph.values[left].whole = b.graph.values[right].whole = whole;
  b.graph.values[view].whole = whole;
  b.graph.values[view].isView = true;
  b.addOp("left", StepPhase::Forward, -1, 0, {}, {left});
  b.addOp("right", StepPhase::Forward, -1, 0, {}, {right});
  b.addOp("out", StepPhase::Forward, -1, 0, {view}, {out}).workspace = 16;
  b.addOp("end", StepPhase::Forward, -1, 0, {out}, {});
  EXPECT_EQ(check(b.graph).value_or(""), "");
  EXPECT_EQ(draw(b.graph, keepAll(b.graph)), "8:left 8:right 25:out 1:end");
  b.graph.values[left].rule = StepValue::Rule::Free;
  EXPECT_EQ(check(b.graph).value_or(""),
            "value 'left' needs to be a whole one that the forward pass makes "
            "for backward, to be dropped");
}

TEST(StepGraphTest, RefusesWhatIsNoStep) {
  StepGraph graph = makeStep();
  graph.ops[4].phase = StepPhase::Update;
  EXPECT_EQ(check(graph).value_or(""),
            "op 'du' comes behind ops of a later phase");
  graph = makeStep();
  graph.ops[1].writes[0] = 0;
  EXPECT_EQ(check(graph).value_or(""), "value 'x' is written twice");
  graph = makeStep();
  std::swap(graph.ops[1], graph.ops[2]);
  EXPECT_EQ(check(graph).value_or(""),
            "value 'u' is read before it is written");
  graph = makeStep();
  graph.values[4].rule = StepValue::Rule::Free;
  EXPECT_EQ(check(graph).value_or(""),
            "value 'dg' needs to be a whole one that the forward pass makes "
            "for backward, to be dropped");
}

// The same, without any of the simulator's tables: values by name, alive from
// where they are written to where they are read last.
static int64_t getPeakSlowly(const StepGraph &graph, const KeptValues &kept,
                             double &seconds) {
  std::map<int64_t, size_t> writer;
  for (size_t op = 0; op < graph.ops.size(); ++op)
    for (int64_t value : graph.ops[op].writes)
      writer[value] = op;
  using Named = std::pair<int64_t, bool>;
  struct Run {
    std::vector<Named> reads, writes;
    int64_t workspace;
    size_t op;
  };
  std::vector<Run> runs;
  std::set<int64_t> again;
  seconds = 0;
  auto isDropped = [&](int64_t value) {
    return writer.count(value) && !kept[value] &&
           graph.values[value].rule != StepValue::Rule::Keep &&
           graph.ops[writer[value]].phase == StepPhase::Forward;
  };
  auto run = [&](size_t op, bool isReplay) {
    Run next = {{}, {}, graph.ops[op].workspace, op};
    for (int64_t value : graph.ops[op].reads)
      next.reads.push_back({value, again.count(value) > 0});
    for (int64_t value : graph.ops[op].writes) {
      next.writes.push_back({value, isReplay});
      if (isReplay && isDropped(value))
        again.insert(value);
    }
    runs.push_back(next);
  };
  for (size_t op = 0; op < graph.ops.size(); ++op) {
    if (graph.ops[op].phase != StepPhase::Forward) {
      // All ops behind this one's reads, in the order of the forward pass.
      std::set<size_t> ops, open = {op};
      while (!open.empty()) {
        size_t reader = *open.begin();
        open.erase(open.begin());
        for (int64_t value : graph.ops[reader].reads)
          if (isDropped(value) && !again.count(value) &&
              ops.insert(writer[value]).second)
            open.insert(writer[value]);
      }
      for (size_t replayed : ops) {
        run(replayed, true);
        seconds += graph.ops[replayed].seconds;
      }
    }
    run(op, false);
  }
  // In-place results: a map from value to whose bytes it has.
  std::map<Named, size_t> lastRead;
  for (size_t p = 0; p < runs.size(); ++p)
    for (Named value : runs[p].reads)
      lastRead[value] = p;
  std::map<Named, Named> bytesOf;
  std::map<Named, std::pair<size_t, size_t>> lives;
  for (size_t p = 0; p < runs.size(); ++p) {
    for (Named value : runs[p].writes)
      bytesOf[value] = value;
    for (const StepOp::Sharing &pair : graph.ops[runs[p].op].sharing) {
      Named from = runs[p].reads[pair.read];
      int64_t same = 0;
      for (Named other : runs[p].reads)
        same += bytesOf[other] == bytesOf[from];
      if (lastRead[from] == p && same == 1)
        bytesOf[runs[p].writes[pair.write]] = bytesOf[from];
    }
    for (Named value : runs[p].writes)
      lives.try_emplace(bytesOf[value], p, p).first->second.second = p;
    for (Named value : runs[p].reads)
      lives[bytesOf[value]].second = p;
  }
  int64_t peak = 0;
  for (size_t p = 0; p < runs.size(); ++p) {
    int64_t bytes = runs[p].workspace;
    for (auto &[value, life] : lives)
      if (life.first <= p && p <= life.second)
        bytes += graph.values[value.first].bytes;
    peak = std::max(peak, bytes);
  }
  return peak;
}

TEST(StepGraphTest, EqualsItsSlowTwin) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    StepGraph graph = makeRandomChain(seed, 3, 4, 2);
    ASSERT_EQ(check(graph).value_or(""), "");
    StepSimulator simulator(graph);
    std::mt19937 random(seed);
    for (int plan = 0; plan < 20; ++plan) {
      KeptValues kept = keepAll(graph);
      for (int64_t value : getChoices(graph))
        kept[value] = random() % 2;
      double seconds;
      int64_t peak = getPeakSlowly(graph, kept, seconds);
      const StepRun &run = simulator.run(kept);
      EXPECT_EQ(run.peak, peak) << "seed " << seed << " plan " << plan;
      EXPECT_EQ(run.replaySeconds, seconds);
    }
  }
}

// No order of replays, and no choice of more of them, takes less time: of all
// sets of ops that make every value there when it is read, the cheapest is the
// one that runs.
TEST(StepGraphTest, ReplaysNoMoreThanAnyOrder) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    StepGraph graph = makeRandomChain(seed, 2, 4);
    StepSimulator simulator(graph);
    std::mt19937 random(seed);
    std::vector<int64_t> writer(graph.values.size(), -1);
    size_t numForward = 0;
    for (size_t op = 0; op < graph.ops.size(); ++op) {
      for (int64_t value : graph.ops[op].writes)
        writer[value] = op;
      numForward += graph.ops[op].phase == StepPhase::Forward;
    }
    for (int plan = 0; plan < 5; ++plan) {
      KeptValues kept = keepAll(graph);
      for (int64_t value : getChoices(graph))
        kept[value] = random() % 2;
      double least = 1e9;
      for (uint64_t set = 0; set < uint64_t(1) << numForward; ++set) {
        bool isEnough = true;
        double seconds = 0;
        for (size_t op = 0; op < graph.ops.size(); ++op) {
          bool isForward = op < numForward;
          if (isForward && !(set >> op & 1))
            continue;
          seconds += isForward ? graph.ops[op].seconds : 0;
          for (int64_t value : graph.ops[op].reads)
            isEnough &= kept[value] || writer[value] >= int64_t(numForward) ||
                        (set >> writer[value] & 1);
        }
        if (isEnough)
          least = std::min(least, seconds);
      }
      EXPECT_EQ(simulator.run(kept).replaySeconds, least);
    }
  }
}
