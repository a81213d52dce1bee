//===- StepTextTest.cpp - Tests of steps as text --------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Solver/StepText.h"
#include "RandomSteps.h"
#include "reprise/Solver/Budget.h"

#include <gtest/gtest.h>
#include <sstream>

using namespace reprise::solver;

static std::string write(const StepGraph &graph) {
  std::ostringstream text;
  writeStep(text, graph);
  return text.str();
}

static StepGraph read(const std::string &text) {
  std::istringstream in(text);
  StepGraph graph;
  std::optional<TextError> error = readStep(in, graph);
  EXPECT_FALSE(error) << error->line << ":" << error->column << ": "
                      << error->message;
  return graph;
}

/// "LINE:COLUMN: MESSAGE", or "fine".
static std::string getError(const std::string &text) {
  std::istringstream in(text);
  StepGraph graph;
  std::optional<TextError> error = readStep(in, graph);
  if (!error)
    return "fine";
  return std::to_string(error->line) + ":" + std::to_string(error->column) +
         ": " + error->message;
}

// What is read is what was written, and has the same plans.
TEST(StepTextTest, GoesRound) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    StepGraph graph = makeRandomChain(seed, 3, 3, 1 + seed % 2);
    std::string text = write(graph);
    StepGraph again = read(text);
    EXPECT_EQ(text, write(again));
    BudgetCurve curve(graph), other(again);
    ASSERT_EQ(curve.getPoints().size(), other.getPoints().size());
    for (size_t p = 0; p < curve.getPoints().size(); ++p) {
      EXPECT_EQ(curve.getPoints()[p].peak, other.getPoints()[p].peak);
      EXPECT_EQ(curve.getPoints()[p].seconds, other.getPoints()[p].seconds);
      EXPECT_EQ(curve.getPlan(p), other.getPlan(p));
    }
  }
}

// Everything that a graph may say is in its text.
TEST(StepTextTest, SaysEverything) {
  std::string text = "step alignment=64 micro_batches=3\n"
                     "value p bytes=5 outlives\n"
                     "value a bytes=6 part_of=w\n"
                     "value w bytes=9\n"
                     "value v bytes=9 view_of=w\n"
                     "value u bytes=7 rule=drop\n"
                     "value t bytes=7 rule=free\n"
                     "value d bytes=7 returned\n"
                     "forward f layer=0 seconds=0.1 once workspace=8 reads=p "
                     "writes=a,u in_place=p:a may_share=p:u\n"
                     "forward g layer=1 seconds=1e-09 reads=v writes=t\n"
                     "backward b layer=1 reads=t,p,t writes=d\n"
                     "update s reads=d\n";
  EXPECT_EQ(write(read(text)), text);
  StepGraph graph = read(text);
  EXPECT_EQ(graph.ops[0].seconds, 0.1);
  EXPECT_FALSE(graph.ops[0].isReplayable);
  EXPECT_EQ(graph.values[1].whole, 2);
  EXPECT_TRUE(graph.values[3].isView);
  EXPECT_TRUE(graph.ops[0].sharing[0].isForced);
  EXPECT_EQ(graph.ops[0].sharing[1].write, 1);
}

// Names that are taken, empty or of several words stay apart.
TEST(StepTextTest, MakesNames) {
  StepBuilder builder;
  int64_t a = builder.addValue("a b", 1), b = builder.addValue("a_b", 2),
          c = builder.addValue("", 3), d = builder.addValue("#", 4);
  builder.addOp("x=y", StepPhase::Forward, -1, 0, {a}, {b, c, d});
  EXPECT_EQ(write(builder.graph), "step alignment=1 micro_batches=1\n"
                                  "value a_b bytes=1\n"
                                  "value a_b~2 bytes=2\n"
                                  "value _ bytes=3\n"
                                  "value _# bytes=4\n"
                                  "forward x_y reads=a_b writes=a_b~2,_,_#\n");
}

TEST(StepTextTest, RefusesWithItsPlace) {
  const std::string a = "value a bytes=1\n", f = "forward f writes=a\n";
  EXPECT_EQ(getError("# nothing\n\n"),
            "2:1: needs a step with at least one op");
  EXPECT_EQ(getError("valve a\n"), "1:1: needs step, value, forward, backward "
                                   "or update, but got 'valve'");
  EXPECT_EQ(getError("value\n"),
            "1:1: 'value' needs a name without ',', '=' and ':' behind it");
  EXPECT_EQ(getError(a + "  value a bytes=2\n"),
            "2:9: needs a name of its own, but 'a' is that of line 1");
  EXPECT_EQ(
      getError("value a bytes=-1\n"),
      "1:15: 'bytes' needs a whole number from 0 to 1125899906842624, but "
      "got '-1'");
  EXPECT_EQ(getError("value a byte=1\n"),
            "1:9: has no use for 'byte'; words are bytes, rule, outlives, "
            "returned, part_of, view_of");
  EXPECT_EQ(getError("value a bytes=1 bytes=1\n"),
            "1:17: 'bytes' is there twice");
  EXPECT_EQ(getError("value a bytes\n"), "1:9: 'bytes' needs '=' and a value");
  EXPECT_EQ(getError("value a outlives=1\n"), "1:9: 'outlives' takes no value");
  EXPECT_EQ(getError("value a rule=maybe\n"),
            "1:14: 'rule' needs free, keep or drop, but got 'maybe'");
  EXPECT_EQ(getError("value a part_of=b view_of=b\n"),
            "1:19: needs one of 'part_of' and 'view_of'");
  EXPECT_EQ(getError("value a part_of=b\n" + f),
            "1:17: needs another value, but got 'b'");
  EXPECT_EQ(getError("value a part_of=b\nvalue b part_of=a\n" + f),
            "1:1: value 'a' is part of itself");
  EXPECT_EQ(getError(a + "forward f writes=a reads=a,b\n"),
            "2:28: needs a value that is declared above, but got 'b'");
  EXPECT_EQ(getError(a + f + "backward b writes=a\n"),
            "3:1: value 'a' is written twice");
  EXPECT_EQ(getError(a + "backward b\n" + f),
            "3:1: op 'f' comes behind ops of a later phase");
  EXPECT_EQ(
      getError("value a bytes=1 rule=free\nbackward b writes=a\n"),
      "1:1: value 'a' needs to be a whole one that the forward pass makes "
      "for backward, to be dropped");
  EXPECT_EQ(getError(a + "forward f seconds=nan writes=a\n"),
            "2:19: 'seconds' needs a number from 0 to 1e12, but got 'nan'");
  EXPECT_EQ(getError(a + "forward f writes=a in_place=a\n"),
            "2:29: 'in_place' needs READ:WRITTEN, but got 'a'");
  EXPECT_EQ(getError(a + "forward f writes=a in_place=a:a\n"),
            "2:29: 'a' is not what the op reads");
  EXPECT_EQ(getError(a + f + "step\n"),
            "3:1: 'step' needs to come before values and ops");
}
