//===- PackTest.cpp - Tests of the packing algorithms ---------------------===//
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

/// Packs and checks what holds for every result.
static PackingResult packAndVerify(const PackingProblem &problem,
                                   const PackingOptions &options = {}) {
  EXPECT_EQ(check(problem).value_or(""), "");
  PackingResult result = pack(problem, options);
  EXPECT_EQ(verify(problem, result.solution).value_or(""), "");
  EXPECT_EQ(result.bound, lowerBound(problem));
  EXPECT_GE(result.solution.peak, result.bound);
  return result;
}

/// The smallest peak there is. In some optimal packing no item can sink; such a
/// packing comes out when the items are placed by rising offset, each at the
/// lowest offset above all that it meets among those placed before it.
static int64_t optimum(const PackingProblem &problem) {
  const std::vector<PackingItem> &items = problem.items;
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  int64_t best = std::numeric_limits<int64_t>::max();
  do {
    std::vector<int64_t> top(items.size(), 0);
    int64_t peak = 0;
    for (size_t k = 0; k != order.size(); ++k) {
      const PackingItem &item = items[order[k]];
      int64_t offset = 0;
      for (size_t j = 0; j != k; ++j) {
        const PackingItem &other = items[order[j]];
        if (item.lower < other.upper && other.lower < item.upper)
          offset = std::max(offset, top[order[j]]);
      }
      int64_t size = (item.size + problem.alignment - 1) / problem.alignment *
                     problem.alignment;
      top[order[k]] = offset + size;
      peak = std::max(peak, top[order[k]]);
    }
    best = std::min(best, peak);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

static PackingProblem randomProblem(std::mt19937 &random, int numItems,
                                    int numTimes, int maxSize) {
  PackingProblem problem;
  for (int i = 0; i != numItems; ++i) {
    int64_t a = random() % numTimes, b = random() % numTimes;
    problem.items.push_back({std::to_string(i), std::min(a, b),
                             std::max(a, b) + 1,
                             static_cast<int64_t>(1 + random() % maxSize)});
  }
  return problem;
}

TEST(Pack, EmptyOneAndMany) {
  EXPECT_EQ(packAndVerify({}).solution.peak, 0);
  EXPECT_EQ(packAndVerify({{{"a", 2, 7, 100}}, 1}).solution.peak, 100);
  EXPECT_EQ(
      packAndVerify({{{"a", 2, 2, 100}, {"b", 0, 1, 0}}, 1}).solution.peak, 0);
  PackingProblem all;
  for (int i = 0; i != 1000; ++i)
    all.items.push_back({std::to_string(i), 0, 1, i});
  EXPECT_EQ(packAndVerify(all).solution.peak, 499500);
}

TEST(Pack, SharesBytesBetweenAdjacentLives) {
  PackingProblem chain;
  for (int i = 0; i != 100; ++i)
    chain.items.push_back({std::to_string(i), i, i + 1, 64});
  PackingResult result = packAndVerify(chain);
  EXPECT_EQ(result.solution.peak, 64);
}

TEST(Pack, Aligns) {
  PackingProblem problem{{{"a", 0, 2, 1}, {"b", 0, 2, 257}, {"c", 1, 3, 256}},
                         256};
  PackingResult result = packAndVerify(problem);
  EXPECT_EQ(result.solution.peak, 256 + 512 + 256);
}

TEST(Pack, IsOptimalOnSmallProblems) {
  std::mt19937 random(7);
  for (int k = 0; k != 400; ++k) {
    PackingProblem problem =
        randomProblem(random, 1 + random() % 7, 6, 1 + random() % 20);
    problem.alignment = 1 + random() % 4;
    PackingResult result = packAndVerify(problem);
    ASSERT_EQ(result.solution.peak, optimum(problem)) << "problem " << k;
    ASSERT_EQ(result.least, result.solution.peak) << "problem " << k;
  }
}

/// The smallest problem known here whose optimum is above the bound: the search
/// has to refute the bound before it may stop.
TEST(Pack, FindsAnOptimumAboveTheBound) {
  PackingProblem problem{{{"a", 1, 3, 3},
                          {"b", 3, 6, 1},
                          {"c", 3, 5, 1},
                          {"d", 0, 4, 2},
                          {"e", 6, 7, 2},
                          {"f", 5, 7, 2},
                          {"g", 4, 6, 1},
                          {"h", 3, 7, 1}},
                         1};
  PackingResult result = packAndVerify(problem);
  EXPECT_EQ(result.bound, 5);
  EXPECT_EQ(result.solution.peak, 6);
  EXPECT_EQ(optimum(problem), 6);
  EXPECT_EQ(result.least, 6);
  EXPECT_LT(result.work, 1'000'000) << "refuted, not given up";
  // That there is none of the bound is all that this asks for.
  PackingOptions bound;
  bound.isAllOrNothing = true;
  PackingResult refuted = packAndVerify(problem, bound);
  EXPECT_EQ(refuted.least, 6);
  EXPECT_LE(refuted.work, result.work);
}

/// A rectangle of 200 times and 200 bytes, cut into pieces and cut again.
static PackingProblem cutRectangle(std::mt19937 &random, size_t numPieces) {
  PackingProblem problem{{{"0", 0, 200, 200}}, 1};
  std::vector<PackingItem> &tiles = problem.items;
  while (tiles.size() != numPieces) {
    size_t at = random() % tiles.size();
    PackingItem tile = tiles[at];
    bool inTime = random() % 2;
    int64_t whole = inTime ? tile.upper - tile.lower : tile.size;
    if (whole < 2)
      continue;
    int64_t part = 1 + random() % (whole - 1);
    if (inTime) {
      tiles[at].upper = tile.lower + part;
      tile.lower += part;
    } else {
      tiles[at].size = part;
      tile.size -= part;
    }
    tile.name = std::to_string(tiles.size());
    tiles.push_back(tile);
  }
  return problem;
}

/// It gets to the bound alone if it does so on the way to a small peak; where a
/// search finds more than changes to orders, sooner.
TEST(Pack, GetsToTheBoundOrNot) {
  std::mt19937 random(4);
  int numLoose = 0, numSooner = 0;
  for (int k = 0; k != 4; ++k) {
    PackingProblem problem = cutRectangle(random, 110 + random() % 50);
    PackingOptions options;
    PackingResult smallest = packAndVerify(problem, options);
    options.isAllOrNothing = true;
    PackingResult tight = packAndVerify(problem, options);
    bool isTight = smallest.solution.peak == smallest.bound;
    EXPECT_EQ(tight.solution.peak == tight.bound, isTight) << "problem " << k;
    numLoose += !isTight;
    numSooner += isTight && tight.work < smallest.work;
  }
  EXPECT_GT(numLoose, 0);
  EXPECT_GT(numSooner, 0);
}

/// The pieces of a rectangle pack to the bound without any gap; the greedy
/// algorithm alone does not always find how.
TEST(Pack, SearchesWhereGreedFails) {
  std::mt19937 random(2);
  int numSearched = 0;
  for (int k = 0; k != 20; ++k) {
    PackingProblem problem = cutRectangle(random, 60);
    PackingResult result = packAndVerify(problem);
    EXPECT_EQ(result.bound, 200);
    EXPECT_EQ(result.solution.peak, 200) << "problem " << k;
    numSearched += result.method == std::string("canonical search");
  }
  EXPECT_GT(numSearched, 0);
}

TEST(Pack, VerifyRefusesEveryMovedItem) {
  // A tight packing: each item moved by one byte meets another or the edge.
  PackingProblem problem;
  for (int i = 0; i != 40; ++i)
    problem.items.push_back({std::to_string(i), 0, 2, 1 + i % 5});
  PackingSolution tight = packAndVerify(problem).solution;
  for (size_t i = 0; i != problem.items.size(); ++i)
    for (int step : {-1, 1}) {
      PackingSolution moved = tight;
      moved.offsets[i] += step;
      EXPECT_TRUE(verify(problem, moved)) << "item " << i << " by " << step;
    }
}

TEST(Pack, IsDeterministic) {
  std::mt19937 random(3);
  PackingProblem problem = randomProblem(random, 300, 200, 1000);
  PackingOptions options;
  options.workLimit = 20'000'000;
  PackingResult first = packAndVerify(problem, options);
  PackingResult second = packAndVerify(problem, options);
  EXPECT_EQ(first.solution.offsets, second.solution.offsets);
  EXPECT_EQ(first.work, second.work);
}

TEST(Pack, StopsAtTheCapacityAndAtTheLimit) {
  std::mt19937 random(5);
  PackingProblem problem = randomProblem(random, 300, 200, 1000);
  PackingOptions options;
  options.workLimit = 20'000'000;
  PackingResult best = packAndVerify(problem, options);
  options.capacity = 2 * best.solution.peak;
  PackingResult any = packAndVerify(problem, options);
  EXPECT_LE(any.solution.peak, *options.capacity);
  EXPECT_LT(any.work, best.work);
  // Without any work allowed there is still a plan.
  options.capacity.reset();
  options.workLimit = 0;
  EXPECT_LT(packAndVerify(problem, options).work, any.work * 2);
}

namespace {
/// A schedule of one step of a decoder, written as the passes would: values in
/// bytes, of `rows` tokens and `width` channels, four bytes each.
class Step {
public:
  Step(int64_t rows, int64_t width) : unit(4 * rows * width) {}

  struct Value {
    size_t item;
  };
  Value make(int64_t size) {
    problem.items.push_back(
        {std::to_string(problem.items.size()), now, now + 1, size});
    return {problem.items.size() - 1};
  }
  void use(Value value) { problem.items[value.item].upper = now + 1; }
  void next() { ++now; }

  /// One forward layer: returns what backward reads of it.
  std::vector<Value> forward(Value &x, bool keepsMlp) {
    std::vector<Value> saved{x};
    auto op = [&](std::initializer_list<Value> operands, int64_t size) {
      next();
      for (Value operand : operands)
        use(operand);
      return make(size);
    };
    Value n1 = op({x}, unit), stats1 = make(unit / 100);
    Value q = op({n1}, unit), k = op({n1}, unit), v = op({n1}, unit);
    Value context = op({q, k, v}, unit), lse = make(unit / 64);
    Value out = op({context}, unit);
    Value x1 = op({x, out}, unit);
    Value n2 = op({x1}, unit), stats2 = make(unit / 100);
    Value up = op({n2}, 4 * unit);
    Value gelu = op({up}, 4 * unit);
    Value down = op({gelu}, unit);
    Value x2 = op({x1, down}, unit);
    saved.insert(saved.end(),
                 {n1, stats1, q, k, v, context, lse, x1, n2, stats2});
    if (keepsMlp)
      saved.insert(saved.end(), {up, gelu});
    x = x2;
    return saved;
  }

  void backward(std::vector<Value> saved, Value &dx, bool keepsMlp) {
    if (!keepsMlp) {
      next();
      use(saved[9]);
      Value up = make(4 * unit);
      next();
      use(up);
      Value gelu = make(4 * unit);
      saved.insert(saved.end(), {up, gelu});
    }
    // Two gradients alive at a time, next to the one on the residual path.
    Value last = dx;
    for (size_t k = saved.size(); k-- != 0;) {
      next();
      use(saved[k]);
      use(last);
      use(dx);
      last = make(problem.items[saved[k].item].size);
    }
    next();
    use(last);
    use(dx);
    dx = make(unit);
  }

  PackingProblem problem;

private:
  int64_t unit;
  int64_t now = 0;
};
} // namespace

/// A step of `layers` layers; the MLP values of `replayed` are computed again.
static PackingProblem trainingStep(int layers, int replayed) {
  Step step(1024, 769); // An odd width, so that sizes do not divide each other.
  std::vector<std::vector<Step::Value>> saved;
  Step::Value x = step.make(4 * 1024 * 769);
  for (int layer = 0; layer != layers; ++layer)
    saved.push_back(step.forward(x, layer >= replayed));
  step.next();
  step.use(x);
  Step::Value logits = step.make(4 * 1024 * 5003);
  step.next();
  step.use(logits);
  Step::Value gradient = step.make(4 * 1024 * 5003);
  step.next();
  step.use(gradient);
  Step::Value dx = step.make(4 * 1024 * 769);
  for (int layer = layers; layer-- != 0;)
    step.backward(saved[layer], dx, layer >= replayed);
  step.problem.alignment = 256;
  return std::move(step.problem);
}

TEST(Pack, PacksATrainingStepToTheBound) {
  for (int layers : {1, 2, 12, 96})
    for (int replayed : {0, layers / 2, layers}) {
      PackingResult result = packAndVerify(trainingStep(layers, replayed));
      EXPECT_EQ(result.solution.peak, result.bound)
          << layers << " layers, " << replayed << " replayed";
      EXPECT_STREQ(result.method, "settle");
    }
}

TEST(Pack, PacksAHundredThousandItems) {
  PackingProblem problem = trainingStep(3000, 1000);
  ASSERT_GT(problem.items.size(), 70'000u);
  PackingResult result = packAndVerify(problem);
  EXPECT_EQ(result.solution.peak, result.bound);
}
