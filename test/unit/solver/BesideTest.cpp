//===- BesideTest.cpp - Tests of packing among what lies already ----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Solver/Packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

using namespace reprise::solver;

/// Checks what holds for every result.
static PackingResult packAndVerify(const PackingProblem &problem,
                                   const std::vector<int64_t> &placed) {
  PackingResult result = packBeside(problem, placed);
  EXPECT_EQ(verify(problem, result.solution).value_or(""), "");
  for (size_t i = 0; i != placed.size(); ++i)
    EXPECT_EQ(result.solution.offsets[i], placed[i]);
  EXPECT_GE(result.solution.peak, result.bound);
  EXPECT_GE(result.bound, lowerBound(problem));
  return result;
}

TEST(Beside, NothingToPlace) {
  EXPECT_EQ(packAndVerify({}, {}).solution.peak, 0);
  PackingResult result =
      packAndVerify({{{"a", 0, 2, 10}, {"b", 1, 3, 10}}, 1}, {0, 20});
  EXPECT_EQ(result.solution.peak, 30);
  EXPECT_EQ(result.bound, 30) << "what lies there stays";
  // Items that take no room need none.
  EXPECT_EQ(
      packAndVerify({{{"a", 0, 2, 10}, {"b", 1, 1, 5}, {"c", 0, 1, 0}}}, {0})
          .solution.peak,
      10);
}

TEST(Beside, NothingThere) {
  PackingResult result = packAndVerify(
      {{{"a", 0, 2, 10}, {"b", 1, 3, 20}, {"c", 2, 4, 10}}, 1}, {});
  EXPECT_EQ(result.solution.peak, 30);
}

/// Two items in what is dead by then, one of them half beyond the end.
TEST(Beside, StraddlesTheEnd) {
  PackingProblem problem{{{"below", 0, 9, 100},
                          {"dead", 0, 4, 100},
                          {"early", 3, 9, 10},
                          {"first", 5, 9, 60},
                          {"second", 6, 9, 80}},
                         1};
  PackingResult result = packAndVerify(problem, {0, 100});
  EXPECT_EQ(result.bound, 250);
  EXPECT_EQ(result.solution.peak, 250);
  EXPECT_GE(result.solution.offsets[2], 200) << "what it met is not dead";
}

TEST(Beside, Aligns) {
  PackingProblem problem{
      {{"a", 0, 1, 300}, {"b", 0, 3, 1}, {"c", 1, 3, 257}, {"d", 2, 3, 1}},
      256};
  PackingResult result = packAndVerify(problem, {0, 512});
  EXPECT_EQ(result.solution.peak, 1024);
}

/// What a step keeps of its layers is a stack, from which backward takes one
/// after the other; what it makes instead, of any sizes, fills the place
/// without a hole.
TEST(Beside, FillsAStack) {
  std::mt19937 random(11);
  for (int k = 0; k != 50; ++k) {
    PackingProblem problem;
    std::vector<int64_t> placed;
    int64_t numLayers = 2 + random() % 30, top = 0;
    for (int64_t layer = 0; layer != numLayers; ++layer) {
      int64_t size = 1 + random() % 1000;
      problem.items.push_back({"", layer, 2 * numLayers - layer, size});
      placed.push_back(top);
      top += size;
    }
    for (int64_t layer = 0; layer != numLayers; ++layer)
      for (int64_t part = 1 + random() % 3; part-- > 0;)
        problem.items.push_back({"", 2 * numLayers - layer, 2 * numLayers + 1,
                                 int64_t(1 + random() % 1000)});
    std::shuffle(problem.items.begin() + numLayers, problem.items.end(),
                 random);
    PackingResult result = packAndVerify(problem, placed);
    EXPECT_EQ(result.solution.peak, result.bound) << "problem " << k;
  }
}

/// The smallest peak there is. In some best packing no item can sink; it comes
/// out when items are placed by rising offset, each in the lowest gap.
static int64_t optimum(const PackingProblem &problem,
                       const std::vector<int64_t> &placed) {
  const std::vector<PackingItem> &items = problem.items;
  std::vector<size_t> order(items.size() - placed.size());
  std::iota(order.begin(), order.end(), placed.size());
  int64_t best = std::numeric_limits<int64_t>::max();
  do {
    std::vector<int64_t> offsets = placed;
    offsets.resize(items.size(), -1);
    for (size_t i : order) {
      int64_t offset = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (size_t j = 0; j != items.size(); ++j)
          if (offsets[j] >= 0 && items[i].lower < items[j].upper &&
              items[j].lower < items[i].upper &&
              offsets[j] < offset + items[i].size &&
              offset < offsets[j] + items[j].size) {
            offset = offsets[j] + items[j].size;
            moved = true;
          }
      }
      offsets[i] = offset;
    }
    best = std::min(best, peakOf(problem, offsets));
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

/// The best packing nearly always, and never far from it: half of the problems
/// have items that stay to the end, which is what it is for, half have others.
TEST(Beside, IsNearTheOptimumOnSmallProblems) {
  std::mt19937 random(7);
  int numOptimal = 0;
  constexpr int kProblems = 300;
  for (int k = 0; k != kProblems; ++k) {
    PackingProblem below, problem;
    auto makeItem = [&](bool staysToTheEnd) {
      int64_t a = random() % 8, b = staysToTheEnd ? 8 : random() % 8;
      return PackingItem{"", std::min(a, b), std::max(a, b) + 1,
                         int64_t(1 + random() % 20)};
    };
    for (int i = 0; i != 8; ++i)
      below.items.push_back(makeItem(false));
    std::vector<int64_t> placed = pack(below).solution.offsets;
    problem = below;
    for (int i = 0; i != 5; ++i)
      problem.items.push_back(makeItem(k % 2));
    int64_t peak = packAndVerify(problem, placed).solution.peak;
    int64_t best = optimum(problem, placed);
    EXPECT_GE(peak, best);
    int64_t largest = 20;
    EXPECT_LE(peak, best + (k % 2 ? largest : 2 * largest)) << "problem " << k;
    numOptimal += peak == best;
  }
  EXPECT_GE(numOptimal, kProblems * 8 / 10);
}

TEST(Beside, IsDeterministic) {
  std::mt19937 random(3);
  PackingProblem problem;
  std::vector<int64_t> placed;
  for (int64_t i = 0; i != 300; ++i) {
    problem.items.push_back(
        {"", int64_t(random() % 100), 100 + int64_t(random() % 100), 100});
    placed.push_back(100 * i);
  }
  for (int i = 0; i != 200; ++i)
    problem.items.push_back(
        {"", 100 + int64_t(random() % 100), 200, 1 + int64_t(random() % 300)});
  PackingResult first = packAndVerify(problem, placed);
  PackingResult second = packAndVerify(problem, placed);
  EXPECT_EQ(first.solution.offsets, second.solution.offsets);
  EXPECT_EQ(first.work, second.work);
}
