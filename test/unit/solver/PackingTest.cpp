//===- PackingTest.cpp - Tests of the problem, its bound and its check ----===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Solver/Packing.h"

#include <gtest/gtest.h>

#include <cstdint>

using namespace reprise::solver;

/// The text of an error, or "" when there is none.
static std::string text(const std::optional<std::string> &error) {
  return error.value_or("");
}

TEST(PackingCheck, AcceptsWhatTakesNoRoom) {
  EXPECT_EQ(text(check({})), "");
  EXPECT_EQ(text(check({{{"a", 3, 3, 8}, {"b", 0, 1, 0}}, 256})), "");
}

TEST(PackingCheck, RefusesWithNumbers) {
  EXPECT_EQ(text(check({{{"a", 5, 3, 8}}, 1})),
            "item 'a' needs a lifetime that does not end before it starts, but "
            "got [5, 3)");
  EXPECT_EQ(text(check({{{"a", 0, 3, -8}}, 1})),
            "item 'a' needs a size of at least 0 bytes, but got -8");
  EXPECT_EQ(text(check({{{"a", 0, 3, 8}}, 0})),
            "needs an alignment between 1 and 2^62 bytes, but got 0");
  EXPECT_EQ(text(check({{{"a", INT64_MIN, 3, 8}}, 1})),
            "item 'a' needs a lifetime between -2^61 and 2^61, but got "
            "[-9223372036854775808, 3)");
}

TEST(PackingCheck, RefusesSumsThatCouldOverflow) {
  int64_t half = int64_t(1) << 61;
  EXPECT_EQ(text(check({{{"a", 0, 1, half}, {"b", 0, 1, half}}, 1})), "");
  EXPECT_EQ(text(check({{{"a", 0, 1, half}, {"b", 0, 1, half + 1}}, 1})),
            "item 'b' of 2305843009213693953 bytes brings the sum of all sizes "
            "beyond 2^62");
  // The rounding alone can do it.
  EXPECT_NE(
      text(check(
          {{{"a", 0, 1, half}, {"b", 0, 1, half - 1}, {"c", 0, 1, 1}}, 4})),
      "");
}

TEST(PackingBound, IsTheMostBytesAlive) {
  EXPECT_EQ(lowerBound({}), 0);
  // Alive: a 10 | a b 14 | b c 9 | c 5.
  PackingProblem problem{{{"a", 0, 4, 10}, {"b", 2, 6, 4}, {"c", 4, 9, 5}}, 1};
  EXPECT_EQ(lowerBound(problem), 14);
  problem.alignment = 8; // a 16 + b 8
  EXPECT_EQ(lowerBound(problem), 24);
}

TEST(PackingVerify, KnowsThatLifetimesAreHalfOpen) {
  PackingProblem problem{{{"a", 0, 4, 8}, {"b", 4, 6, 8}}, 1};
  EXPECT_EQ(lowerBound(problem), 8);
  EXPECT_EQ(text(verify(problem, {{0, 0}, 8})), "");
  problem.items[1].lower = 3;
  EXPECT_EQ(text(verify(problem, {{0, 0}, 8})),
            "item 'b' at bytes [0, 8) and times [3, 6) overlaps item 'a' at "
            "bytes [0, 8) and times [0, 4)");
  EXPECT_EQ(text(verify(problem, {{0, 8}, 16})), "");
}

TEST(PackingVerify, SeesTheNeighbourBelowAndAbove) {
  PackingProblem problem{
      {{"low", 0, 9, 8}, {"high", 0, 9, 8}, {"new", 5, 6, 4}}, 1};
  EXPECT_EQ(text(verify(problem, {{0, 20, 8}, 28})), "");
  EXPECT_NE(text(verify(problem, {{0, 20, 7}, 28})), "");
  EXPECT_EQ(text(verify(problem, {{0, 20, 16}, 28})), "");
  EXPECT_NE(text(verify(problem, {{0, 20, 17}, 28})), "");
}

TEST(PackingVerify, IgnoresWhatTakesNoRoom) {
  PackingProblem problem{{{"a", 0, 9, 8}, {"b", 5, 5, 8}, {"c", 5, 6, 0}}, 1};
  EXPECT_EQ(text(verify(problem, {{0, 3, 4}, 8})), "");
}

TEST(PackingVerify, RefusesWrongFigures) {
  PackingProblem problem{{{"a", 0, 4, 8}, {"b", 0, 6, 8}}, 8};
  EXPECT_EQ(text(verify(problem, {{0}, 8})),
            "needs an offset for each of 2 items, but got 1");
  EXPECT_EQ(text(verify(problem, {{0, -8}, 8})),
            "item 'b' needs an offset of at least 0 that is a multiple of 8, "
            "but got -8");
  EXPECT_EQ(text(verify(problem, {{0, 12}, 20})),
            "item 'b' needs an offset of at least 0 that is a multiple of 8, "
            "but got 12");
  EXPECT_EQ(text(verify(problem, {{0, 8}, 24})),
            "needs the peak 16 that its offsets reach, but got 24");
}
