//===- RoutingTest.cpp - Which expert has which token -----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelRunner.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cmath>

using namespace reprise::codegen;

using Ids = std::vector<int32_t>;

TEST(Routing, ChoosesTheLargestAndOfEqualOnesTheFirst) {
  KernelRunner runner(R"(
func.func private @k(%r: tensor<1x6x5xf32>) -> tensor<1x6x2xi32> attributes {rt.kernel} {
  %y = rt.choose_experts %r : (tensor<1x6x5xf32>) -> tensor<1x6x2xi32>
  return %y : tensor<1x6x2xi32>
})");
  const float inf = INFINITY;
  Floats logits = {
      1,   2,   3,    4,   5,    // The last two,
      5,   4,   3,    2,   1,    // the first two,
      0,   -0., 0,    0,   0,    // of zeros the first, whatever their sign,
      2,   7,   7,    7,   9,    // the largest and the first of three;
      NAN, 1,   -inf, NAN, 0,    // numbers before what is none;
      NAN, NAN, NAN,  NAN, -inf, // of none the first.
  };
  Ids ids(12, -1);
  runner.run("k", {logits.data(), ids.data()});
  EXPECT_EQ(ids, (Ids{3, 4, 0, 1, 0, 1, 1, 4, 1, 4, 0, 1}));
}

// More tokens than a task has.
TEST(Routing, ChoosesForEachToken) {
  KernelRunner runner(R"(
func.func private @k(%r: tensor<150x7xf32>) -> tensor<150x3xi32> attributes {rt.kernel} {
  %y = rt.choose_experts %r : (tensor<150x7xf32>) -> tensor<150x3xi32>
  return %y : tensor<150x3xi32>
})");
  EXPECT_EQ(runner.tasks("k"), 3);
  Floats logits = randomFloats(150 * 7, 1);
  Ids ids(150 * 3, -1), expected;
  for (int t = 0; t < 150; ++t) {
    Ids all = {0, 1, 2, 3, 4, 5, 6};
    std::sort(all.begin(), all.end(), [&](int a, int b) {
      return logits[t * 7 + a] > logits[t * 7 + b];
    });
    std::sort(all.begin(), all.begin() + 3);
    expected.insert(expected.end(), all.begin(), all.begin() + 3);
  }
  runner.run("k", {logits.data(), ids.data()}, {}, 1, true);
  EXPECT_EQ(ids, expected);
}

// Groups by their largest score or by their two largest, a bias, sigmoids; of
// 12 experts in 4 groups.
TEST(Routing, ChoosesInTheBestGroups) {
  const std::string head = "func.func private @k(%r: tensor<150x12xf32>, %b: "
                           "tensor<12xf32>) -> tensor<150x3xi32> attributes "
                           "{rt.kernel} {\n  %y = rt.choose_experts %r ";
  Floats logits = randomFloats(150 * 12, 1), bias = randomFloats(12, 2);
  struct {
    const char *how;
    bool isBiased, isSum;
    int keep;
  } cases[] = {
      {"groups 4 keep 2 : (tensor<150x12xf32>)", false, false, 2},
      {"groups 4 keep 1 by_two : (tensor<150x12xf32>)", false, true, 1},
      {"bias %b sigmoid groups 4 keep 2 by_two : (tensor<150x12xf32>, "
       "tensor<12xf32>)",
       true, true, 2},
      {"bias %b sigmoid groups 4 keep 4 : (tensor<150x12xf32>, "
       "tensor<12xf32>)",
       true, false, 4},
  };
  for (const auto &test : cases) {
    SCOPED_TRACE(test.how);
    KernelRunner runner(head + test.how +
                        " -> tensor<150x3xi32>\n  return %y : "
                        "tensor<150x3xi32>\n}");
    Ids expected, ids(150 * 3, -1);
    for (int t = 0; t < 150; ++t) {
      std::vector<double> scores, groups;
      for (int e = 0; e < 12; ++e) {
        double x = logits[t * 12 + e];
        scores.push_back(test.isBiased ? 1 / (1 + std::exp(-x)) + bias[e] : x);
      }
      for (int g = 0; g < 4; ++g) {
        std::vector<double> own(scores.begin() + 3 * g,
                                scores.begin() + 3 * g + 3);
        std::sort(own.rbegin(), own.rend());
        groups.push_back(test.isSum ? own[0] + own[1] : own[0]);
      }
      Ids order = {0, 1, 2, 3}, all;
      std::sort(order.begin(), order.end(),
                [&](int a, int b) { return groups[a] > groups[b]; });
      order.resize(test.keep);
      for (int g : order)
        for (int e = 0; e < 3; ++e)
          all.push_back(3 * g + e);
      std::sort(all.begin(), all.end(),
                [&](int a, int b) { return scores[a] > scores[b]; });
      std::sort(all.begin(), all.begin() + 3);
      expected.insert(expected.end(), all.begin(), all.begin() + 3);
    }
    runner.run("k", {logits.data(), bias.data(), ids.data()}, {}, 1, true);
    EXPECT_EQ(ids, expected);
  }
}

TEST(Routing, WeighsExpertsBySigmoids) {
  Floats logits = randomFloats(350, 1), dweights = randomFloats(140, 2);
  for (float &x : logits)
    x *= 4;
  Ids ids;
  for (int t = 0; t < 70; ++t)
    ids.insert(ids.end(), {t % 4, t % 4 + 1});
  for (bool isNormalized : {false, true}) {
    std::string how =
        isNormalized ? "sigmoid normalized scale 2.5" : "sigmoid scale 2.5";
    KernelRunner runner(
        "func.func private @k(%r: tensor<70x5xf32>, %i: tensor<70x2xi32>) -> "
        "tensor<70x2xf32> attributes {rt.kernel} {\n  %y = "
        "rt.expert_weights %r, %i " +
        how +
        " : (tensor<70x5xf32>, tensor<70x2xi32>) -> tensor<70x2xf32>\n  "
        "return %y : tensor<70x2xf32>\n}\n"
        "func.func private @b(%r: tensor<70x5xf32>, %i: tensor<70x2xi32>, %d: "
        "tensor<70x2xf32>) -> tensor<70x5xf32> attributes {rt.kernel} {\n  "
        "%y = rt.expert_weights_backward %r, %i, %d " +
        how +
        " : (tensor<70x5xf32>, tensor<70x2xi32>, tensor<70x2xf32>) -> "
        "tensor<70x5xf32>\n  return %y : tensor<70x5xf32>\n}\n");
    Floats weights(140, NAN), dlogits(350, NAN);
    runner.run("k", {logits.data(), ids.data(), weights.data()}, {}, 1, true);
    runner.run("b",
               {logits.data(), ids.data(), dweights.data(), dlogits.data()}, {},
               1, true);
    for (int t = 0; t < 70; ++t) {
      double s[2], sum = 0;
      for (int j = 0; j < 2; ++j)
        sum += s[j] =
            1 / (1 + std::exp(-double(logits[5 * t + ids[2 * t + j]])));
      double n = isNormalized ? sum : 1;
      for (int j = 0; j < 2; ++j)
        EXPECT_NEAR(weights[2 * t + j], 2.5 * s[j] / n, 1e-5);
      for (int e = 0; e < 5; ++e) {
        int j = e - ids[2 * t];
        double ds = 0;
        if (j == 0 || j == 1) {
          double own = 2.5 * dweights[2 * t + j];
          double other = 2.5 * dweights[2 * t + 1 - j];
          // Of s / (s + o) the derivative is o / (s + o)^2.
          ds = isNormalized ? (own - other) * s[1 - j] / (sum * sum) : own;
          ds *= s[j] * (1 - s[j]);
        }
        EXPECT_NEAR(dlogits[5 * t + e], ds, 1e-5);
      }
    }
  }
}

TEST(Routing, SortsRowsStably) {
  KernelRunner runner(R"(
func.func private @k(%i: tensor<2x4x2xi32>) -> (tensor<16xi32>, tensor<2x4x2xi32>, tensor<6xi32>) attributes {rt.kernel} {
  %a, %b, %c = rt.sort_rows %i : (tensor<2x4x2xi32>) -> (tensor<16xi32>, tensor<2x4x2xi32>, tensor<6xi32>)
  return %a, %b, %c : tensor<16xi32>, tensor<2x4x2xi32>, tensor<6xi32>
})");
  EXPECT_EQ(runner.tasks("k"), 1);
  // Nothing for 0 and 3, most for 4.
  Ids ids = {1, 4, 2, 4, 1, 4, 4, 4, 2, 4, 1, 2, 4, 4, 1, 4};
  Ids order(16, -1), inverse(16, -1), offsets(6, -1);
  runner.run("k", {ids.data(), order.data(), inverse.data(), offsets.data()});
  EXPECT_EQ(offsets, (Ids{0, 0, 4, 7, 7, 16}));
  EXPECT_EQ(order, (Ids{0, 4, 10, 14, 2, 8, 11, 1, 3, 5, 6, 7, 9, 12, 13, 15}));
  for (int row = 0; row < 16; ++row)
    EXPECT_EQ(inverse[order[row]], row);
}

// Two rows for each of five experts at most: the first, or those with the
// largest weights, of equal ones the first. All rows but the last are taken by
// somebody, or have place 0; what is dropped has the last.
TEST(Routing, DropsWhatIsAboveTheCapacity) {
  KernelRunner runner(R"(
func.func private @first(%i: tensor<2x4x2xi32>) -> (tensor<11xi32>, tensor<2x4x2xi32>, tensor<6xi32>) attributes {rt.kernel} {
  %a, %b, %c = rt.sort_rows %i capacity 2 : (tensor<2x4x2xi32>) -> (tensor<11xi32>, tensor<2x4x2xi32>, tensor<6xi32>)
  return %a, %b, %c : tensor<11xi32>, tensor<2x4x2xi32>, tensor<6xi32>
}
func.func private @best(%i: tensor<2x4x2xi32>, %w: tensor<2x4x2xf32>) -> (tensor<11xi32>, tensor<2x4x2xi32>, tensor<6xi32>) attributes {rt.kernel} {
  %a, %b, %c = rt.sort_rows %i by %w capacity 2 : (tensor<2x4x2xi32>, tensor<2x4x2xf32>) -> (tensor<11xi32>, tensor<2x4x2xi32>, tensor<6xi32>)
  return %a, %b, %c : tensor<11xi32>, tensor<2x4x2xi32>, tensor<6xi32>
})");
  Ids ids = {1, 4, 2, 4, 1, 4, 4, 4, 2, 4, 1, 2, 4, 4, 1, 4};
  Ids order(11, -1), inverse(16, -1), offsets(6, -1);
  runner.run("first",
             {ids.data(), order.data(), inverse.data(), offsets.data()});
  EXPECT_EQ(offsets, (Ids{0, 0, 2, 4, 4, 6}));
  EXPECT_EQ(order, (Ids{0, 4, 2, 8, 1, 3, 0, 0, 0, 0, 0}));
  EXPECT_EQ(inverse,
            (Ids{0, 4, 2, 5, 1, 10, 10, 10, 3, 10, 10, 10, 10, 10, 10, 10}));
  // Of expert 1 place 10, and of 0, 4 and 14 the first; of 2 all but the least;
  // of 4 the last two of many that are small.
  Floats weights = {.5,  .1f, .3f, .1f, .5,  .1f, .1f, 0,
                    .2f, .1f, .6f, .1f, .1f, .7f, .5,  .8f};
  runner.run("best", {ids.data(), weights.data(), order.data(), inverse.data(),
                      offsets.data()});
  EXPECT_EQ(offsets, (Ids{0, 0, 2, 4, 4, 6}));
  EXPECT_EQ(order, (Ids{0, 10, 2, 8, 13, 15, 0, 0, 0, 0, 0}));
  EXPECT_EQ(inverse,
            (Ids{0, 10, 2, 10, 10, 10, 10, 10, 3, 10, 1, 10, 10, 4, 10, 5}));
}

// Against a sort of each expert's places, with weights that are often equal.
TEST(Routing, DropsTheSmallestOfMany) {
  KernelRunner runner(R"(
func.func private @k(%i: tensor<200x3xi32>, %w: tensor<200x3xf32>) -> (tensor<281xi32>, tensor<200x3xi32>, tensor<8xi32>) attributes {rt.kernel} {
  %a, %b, %c = rt.sort_rows %i by %w capacity 40 : (tensor<200x3xi32>, tensor<200x3xf32>) -> (tensor<281xi32>, tensor<200x3xi32>, tensor<8xi32>)
  return %a, %b, %c : tensor<281xi32>, tensor<200x3xi32>, tensor<8xi32>
})");
  Floats drawn = randomFloats(1200, 5), weights;
  Ids ids, expectedOrder, expectedOffsets = {0};
  for (int place = 0; place < 600; ++place) {
    ids.push_back(int(std::pow(std::abs(drawn[place]), 3) * 6.999f));
    weights.push_back(std::floor(std::abs(drawn[600 + place]) * 8) / 8);
  }
  for (int e = 0; e < 7; ++e) {
    Ids places;
    for (int place = 0; place < 600; ++place)
      if (ids[place] == e)
        places.push_back(place);
    std::stable_sort(places.begin(), places.end(),
                     [&](int a, int b) { return weights[a] > weights[b]; });
    places.resize(std::min<size_t>(places.size(), 40));
    std::sort(places.begin(), places.end());
    expectedOrder.insert(expectedOrder.end(), places.begin(), places.end());
    expectedOffsets.push_back(int(expectedOrder.size()));
  }
  ASSERT_LT(expectedOffsets.back(), 280) << "an expert has room left";
  Ids expectedInverse(600, 280);
  for (size_t row = 0; row < expectedOrder.size(); ++row)
    expectedInverse[expectedOrder[row]] = int(row);
  expectedOrder.resize(281, 0);
  Ids order(281, -1), inverse(600, -1), offsets(8, -1);
  runner.run("k", {ids.data(), weights.data(), order.data(), inverse.data(),
                   offsets.data()});
  EXPECT_EQ(offsets, expectedOffsets);
  EXPECT_EQ(order, expectedOrder);
  EXPECT_EQ(inverse, expectedInverse);
}

/// The softmax of a token over all experts, or over those that it has.
static std::vector<double> getProbabilities(const Floats &logits,
                                            const Ids &ids, int t,
                                            bool isNormalized) {
  std::vector<double> p(5, 0);
  double sum = 0;
  for (int e = 0; e < 5; ++e)
    if (!isNormalized || ids[2 * t] == e || ids[2 * t + 1] == e)
      sum += p[e] = std::exp(double(logits[5 * t + e]));
  for (double &x : p)
    x /= sum;
  return p;
}

TEST(Routing, WeighsExpertsBothWays) {
  KernelRunner runner(R"(
func.func private @all(%r: tensor<70x5xf32>, %i: tensor<70x2xi32>) -> tensor<70x2xf32> attributes {rt.kernel} {
  %y = rt.expert_weights %r, %i : (tensor<70x5xf32>, tensor<70x2xi32>) -> tensor<70x2xf32>
  return %y : tensor<70x2xf32>
}
func.func private @chosen(%r: tensor<70x5xf32>, %i: tensor<70x2xi32>) -> tensor<70x2xf32> attributes {rt.kernel} {
  %y = rt.expert_weights %r, %i normalized : (tensor<70x5xf32>, tensor<70x2xi32>) -> tensor<70x2xf32>
  return %y : tensor<70x2xf32>
}
func.func private @all_backward(%r: tensor<70x5xf32>, %i: tensor<70x2xi32>, %d: tensor<70x2xf32>) -> tensor<70x5xf32> attributes {rt.kernel} {
  %y = rt.expert_weights_backward %r, %i, %d : (tensor<70x5xf32>, tensor<70x2xi32>, tensor<70x2xf32>) -> tensor<70x5xf32>
  return %y : tensor<70x5xf32>
}
func.func private @chosen_backward(%r: tensor<70x5xf32>, %i: tensor<70x2xi32>, %d: tensor<70x2xf32>) -> tensor<70x5xf32> attributes {rt.kernel} {
  %y = rt.expert_weights_backward %r, %i, %d normalized : (tensor<70x5xf32>, tensor<70x2xi32>, tensor<70x2xf32>) -> tensor<70x5xf32>
  return %y : tensor<70x5xf32>
})");
  Floats logits = randomFloats(350, 1), dweights = randomFloats(140, 2);
  for (float &x : logits)
    x *= 4;
  Ids ids;
  for (int t = 0; t < 70; ++t)
    ids.insert(ids.end(), {t % 4, t % 4 + 1});
  for (bool isNormalized : {false, true}) {
    std::string name = isNormalized ? "chosen" : "all";
    Floats weights(140, NAN), dlogits(350, NAN);
    runner.run(name, {logits.data(), ids.data(), weights.data()}, {}, 1, true);
    runner.run(name + "_backward",
               {logits.data(), ids.data(), dweights.data(), dlogits.data()}, {},
               1, true);
    for (int t = 0; t < 70; ++t) {
      auto p = getProbabilities(logits, ids, t, isNormalized);
      double dot = 0, d[5] = {};
      for (int j = 2 * t; j < 2 * t + 2; ++j) {
        EXPECT_NEAR(weights[j], p[ids[j]], 1e-6);
        dot += p[ids[j]] * dweights[j];
        d[ids[j]] = dweights[j];
      }
      for (int e = 0; e < 5; ++e)
        EXPECT_NEAR(dlogits[5 * t + e], p[e] * (d[e] - dot), 1e-6);
    }
  }
}

TEST(Routing, CountsRows) {
  KernelRunner runner(R"(
func.func private @k(%o: tensor<4xi32>, %p: tensor<4xi32>) -> tensor<3xf32> attributes {rt.kernel} {
  %n = rt.count_rows %o, %p : (tensor<4xi32>, tensor<4xi32>) -> tensor<3xf32>
  return %n : tensor<3xf32>
})");
  Ids first = {0, 2, 2, 5}, second = {0, 1, 5, 5};
  Floats rows(3, NAN);
  runner.run("k", {first.data(), second.data(), rows.data()});
  EXPECT_EQ(rows, (Floats{3, 4, 3}));
}

TEST(Routing, CountsChoices) {
  KernelRunner runner(R"(
func.func private @all(%i: tensor<2x3x2xi32>) -> tensor<4xf32> attributes {rt.kernel} {
  %n = rt.count_choices %i : (tensor<2x3x2xi32>) -> tensor<4xf32>
  return %n : tensor<4xf32>
}
func.func private @each(%i: tensor<2x3x2xi32>) -> tensor<2x4xf32> attributes {rt.kernel} {
  %n = rt.count_choices %i : (tensor<2x3x2xi32>) -> tensor<2x4xf32>
  return %n : tensor<2x4xf32>
})");
  Ids ids = {0, 1, 0, 3, 1, 3, 0, 1, 1, 3, 1, 3};
  Floats all(4, NAN), each(8, NAN);
  runner.run("all", {ids.data(), all.data()});
  EXPECT_EQ(all, (Floats{3, 5, 0, 4}));
  EXPECT_EQ(runner.tasks("each"), 2);
  runner.run("each", {ids.data(), each.data()});
  EXPECT_EQ(each, (Floats{2, 2, 0, 2, 1, 3, 0, 2}));
}

// Each of seven sequences has rows of its own.
TEST(Routing, WeighsRowsBySigmoidsOfSequences) {
  KernelRunner runner(asLoops(R"(
func.func private @expected(%r: tensor<7x10x5xf32>, %n: tensor<7x5xf32>) -> tensor<7x10xf32> attributes {rt.kernel} {
  %y = nn.expected_rows %r, %n sigmoid : (tensor<7x10x5xf32>, tensor<7x5xf32>) -> tensor<7x10xf32>
  return %y : tensor<7x10xf32>
}
func.func private @backward(%r: tensor<7x10x5xf32>, %n: tensor<7x5xf32>, %d: tensor<7x10xf32>) -> tensor<7x10x5xf32> attributes {rt.kernel} {
  %y = nn.expected_rows_backward %r, %n, %d sigmoid : (tensor<7x10x5xf32>, tensor<7x5xf32>, tensor<7x10xf32>) -> tensor<7x10x5xf32>
  return %y : tensor<7x10x5xf32>
})"));
  Floats logits = randomFloats(350, 1), dout = randomFloats(70, 2);
  Floats rows = randomFloats(35, 3), expected(70, NAN), dlogits(350, NAN);
  runner.run("expected", {logits.data(), rows.data(), expected.data()}, {}, 1,
             true);
  runner.run("backward",
             {logits.data(), rows.data(), dout.data(), dlogits.data()}, {}, 1,
             true);
  for (int t = 0; t < 70; ++t) {
    const float *own = &rows[t / 10 * 5];
    double s[5], sum = 0, out = 0;
    for (int e = 0; e < 5; ++e)
      sum += s[e] = 1 / (1 + std::exp(-double(logits[5 * t + e])));
    for (int e = 0; e < 5; ++e)
      out += s[e] * own[e] / sum;
    EXPECT_NEAR(expected[t], out, 1e-6);
    for (int e = 0; e < 5; ++e)
      EXPECT_NEAR(dlogits[5 * t + e],
                  dout[t] * (own[e] - out) / sum * s[e] * (1 - s[e]), 1e-6);
  }
}

TEST(Routing, SquaresLogarithmsOfSums) {
  KernelRunner runner(asLoops(R"(
func.func private @squares(%r: tensor<70x5xf32>) -> tensor<70xf32> attributes {rt.kernel} {
  %y = nn.squared_logsumexp %r : (tensor<70x5xf32>) -> tensor<70xf32>
  return %y : tensor<70xf32>
}
func.func private @backward(%r: tensor<70x5xf32>, %d: tensor<70xf32>) -> tensor<70x5xf32> attributes {rt.kernel} {
  %y = nn.squared_logsumexp_backward %r, %d : (tensor<70x5xf32>, tensor<70xf32>) -> tensor<70x5xf32>
  return %y : tensor<70x5xf32>
})"));
  Floats logits = randomFloats(350, 1), dout = randomFloats(70, 2);
  Floats squares(70, NAN), dlogits(350, NAN);
  runner.run("squares", {logits.data(), squares.data()}, {}, 1, true);
  runner.run("backward", {logits.data(), dout.data(), dlogits.data()}, {}, 1,
             true);
  for (int t = 0; t < 70; ++t) {
    double sum = 0;
    for (int e = 0; e < 5; ++e)
      sum += std::exp(double(logits[5 * t + e]));
    double lse = std::log(sum);
    EXPECT_NEAR(squares[t], lse * lse, 1e-5);
    for (int e = 0; e < 5; ++e)
      EXPECT_NEAR(dlogits[5 * t + e],
                  2 * dout[t] * lse * std::exp(logits[5 * t + e] - lse), 1e-5);
  }
}

// Up for fewer rows than the mean, down for more, and not at all where they are
// as many, or the step is none.
TEST(Routing, BalancesABias) {
  KernelRunner runner(asLoops(R"(
func.func private @k(%b: tensor<5xf32> {rt.in_place = 0}, %n: tensor<5xf32>, %s: tensor<f32>) -> tensor<5xf32> attributes {rt.kernel} {
  %y = nn.balance_bias %b, %n, %s rate 2.5e-01 : tensor<5xf32>, tensor<f32>
  return %y : tensor<5xf32>
})"));
  Floats bias = {1, 2, 3, 4, 5}, rows = {3, 0, 4, 3, 5};
  float scale = 0.5f, none = NAN;
  runner.run("k", {bias.data(), rows.data(), &scale, bias.data()});
  EXPECT_EQ(bias, (Floats{1, 2.25, 2.75, 4, 4.75}));
  runner.run("k", {bias.data(), rows.data(), &none, bias.data()});
  EXPECT_EQ(bias, (Floats{1, 2.25, 2.75, 4, 4.75}));
}

TEST(Routing, WeighsRowsByProbability) {
  KernelRunner runner(asLoops(R"(
func.func private @expected(%r: tensor<70x5xf32>, %n: tensor<5xf32>) -> tensor<70xf32> attributes {rt.kernel} {
  %y = nn.expected_rows %r, %n : (tensor<70x5xf32>, tensor<5xf32>) -> tensor<70xf32>
  return %y : tensor<70xf32>
}
func.func private @backward(%r: tensor<70x5xf32>, %n: tensor<5xf32>, %d: tensor<70xf32>) -> tensor<70x5xf32> attributes {rt.kernel} {
  %y = nn.expected_rows_backward %r, %n, %d : (tensor<70x5xf32>, tensor<5xf32>, tensor<70xf32>) -> tensor<70x5xf32>
  return %y : tensor<70x5xf32>
})"));
  Floats logits = randomFloats(350, 1), dout = randomFloats(70, 2);
  Floats rows = {30, 0, 12, 100, 7}, expected(70, NAN), dlogits(350, NAN);
  for (float &x : logits)
    x *= 4;
  runner.run("expected", {logits.data(), rows.data(), expected.data()}, {}, 1,
             true);
  runner.run("backward",
             {logits.data(), rows.data(), dout.data(), dlogits.data()}, {}, 1,
             true);
  for (int t = 0; t < 70; ++t) {
    auto p = getProbabilities(logits, Ids(140), t, false);
    double sum = 0;
    for (int e = 0; e < 5; ++e)
      sum += p[e] * rows[e];
    EXPECT_NEAR(expected[t], sum, 1e-4);
    for (int e = 0; e < 5; ++e)
      EXPECT_NEAR(dlogits[5 * t + e], dout[t] * p[e] * (rows[e] - sum), 1e-4);
  }
}

TEST(Routing, WeighsTheSharedExpert) {
  KernelRunner runner(asLoops(R"(
func.func private @gate(%x: tensor<3x7x1xf32>) -> tensor<3x7xf32> attributes {rt.kernel} {
  %y = nn.gate_weight %x : (tensor<3x7x1xf32>) -> tensor<3x7xf32>
  return %y : tensor<3x7xf32>
}
func.func private @backward(%w: tensor<3x7xf32>, %d: tensor<3x7xf32>) -> tensor<3x7x1xf32> attributes {rt.kernel} {
  %y = nn.gate_weight_backward %w, %d : (tensor<3x7xf32>, tensor<3x7xf32>) -> tensor<3x7x1xf32>
  return %y : tensor<3x7x1xf32>
})"));
  Floats x = randomFloats(21, 1), d = randomFloats(21, 2);
  Floats weight(21, NAN), dx(21, NAN);
  runner.run("gate", {x.data(), weight.data()});
  runner.run("backward", {weight.data(), d.data(), dx.data()});
  for (int t = 0; t < 21; ++t) {
    double w = 1 / (1 + std::exp(-double(x[t])));
    EXPECT_NEAR(weight[t], w, 1e-6);
    EXPECT_NEAR(dx[t], d[t] * w * (1 - w), 1e-6);
  }
}

// Rows of one column, and with columns that are no multiple of a vector.
TEST(Routing, MovesRows) {
  KernelRunner runner(asLoops(R"(
func.func private @permute(%x: tensor<3x2xf32>, %o: tensor<6xi32>, %i: tensor<3x2xi32>) -> tensor<6xf32> attributes {rt.kernel} {
  %y = nn.permute %x, %o, %i : (tensor<3x2xf32>, tensor<6xi32>, tensor<3x2xi32>) -> tensor<6xf32>
  return %y : tensor<6xf32>
}
func.func private @dispatch(%x: tensor<3x19xf32>, %o: tensor<6xi32>, %i: tensor<3x2xi32>) -> tensor<6x19xf32> attributes {rt.kernel} {
  %y = nn.dispatch %x, %o, %i : (tensor<3x19xf32>, tensor<6xi32>, tensor<3x2xi32>) -> tensor<6x19xf32>
  return %y : tensor<6x19xf32>
}
func.func private @combine(%x: tensor<6x19xf32>, %o: tensor<6xi32>, %i: tensor<3x2xi32>) -> tensor<3x19xf32> attributes {rt.kernel} {
  %y = nn.combine %x, %o, %i : (tensor<6x19xf32>, tensor<6xi32>, tensor<3x2xi32>) -> tensor<3x19xf32>
  return %y : tensor<3x19xf32>
})"));
  Ids order = {1, 2, 5, 0, 4, 3}, inverse = {3, 0, 1, 5, 4, 2};
  Floats w = randomFloats(6, 1), x = randomFloats(3 * 19, 2),
         rows = randomFloats(6 * 19, 3);
  Floats permuted(6), dispatched(6 * 19), combined(3 * 19);
  runner.run("permute",
             {w.data(), order.data(), inverse.data(), permuted.data()});
  runner.run("dispatch",
             {x.data(), order.data(), inverse.data(), dispatched.data()});
  runner.run("combine",
             {rows.data(), order.data(), inverse.data(), combined.data()});
  for (int row = 0; row < 6; ++row) {
    EXPECT_EQ(permuted[row], w[order[row]]);
    for (int c = 0; c < 19; ++c)
      EXPECT_EQ(dispatched[row * 19 + c], x[order[row] / 2 * 19 + c]);
  }
  for (int t = 0; t < 3; ++t)
    for (int c = 0; c < 19; ++c)
      EXPECT_EQ(combined[t * 19 + c], rows[inverse[2 * t] * 19 + c] +
                                          rows[inverse[2 * t + 1] * 19 + c]);
}
