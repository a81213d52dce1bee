//===- RotaryTest.cpp - Frequencies of rotary positions ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Worked out by hand from the published formulas. With theta = 10^4 and a head
// width of 8 the frequencies are 1, 1/10, 1/100, 1/1000; with 16, every other
// one is between them, at 1/sqrt(10).
//
//===----------------------------------------------------------------------===//

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/MLIRContext.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace mlir;
using namespace reprise;

namespace {
/// Checks the frequencies of heads of `2 * expected.size()` columns, and the
/// scale.
void check(const std::string &parameters, std::vector<double> expected,
           double scale = 1) {
  MLIRContext context;
  context.loadDialect<nn::NNDialect>();
  auto rotary = dyn_cast_or_null<nn::RotaryAttr>(parseAttribute(
      "#nn.rotary<theta = 1.0e+04 : f64" + parameters + ">", &context));
  ASSERT_TRUE(rotary) << parameters;
  nn::RotaryFrequencies have =
      nn::getRotaryFrequencies(rotary, 2 * expected.size());
  ASSERT_EQ(have.frequencies.size(), expected.size());
  for (size_t pair = 0; pair < expected.size(); ++pair)
    EXPECT_FLOAT_EQ(have.frequencies[pair], float(expected[pair])) << pair;
  EXPECT_FLOAT_EQ(have.scale, float(scale));
}

const double kRoot = std::sqrt(10.0);
} // namespace

TEST(Rotary, Default) { check("", {1, 0.1, 0.01, 0.001}); }

TEST(Rotary, OnePair) { check("", {1}); }

TEST(Rotary, Linear) {
  check(", type = linear, factor = 4.0 : f64", {0.25, 0.025, 0.0025, 0.00025});
}

/// The pairs turn 159.2, 15.92, 1.592 and 0.1592 times over 1000 positions.
/// Above 4 times nothing is stretched, below 1 all by 8; between, of 1.592 the
/// share (1.592 - 1) / (4 - 1) = 0.19718 stays.
TEST(Rotary, Llama3) {
  double share = (1000 * 0.01 / (2 * M_PI) - 1) / 3;
  check(", type = llama3, factor = 8.0 : f64, low_freq_factor = 1.0 : f64, "
        "high_freq_factor = 4.0 : f64, original_max_position_embeddings = 1000",
        {1, 0.1, (1 - share) * 0.00125 + share * 0.01, 0.000125});
  EXPECT_NEAR(share, 0.19718, 1e-5);
}

/// Over 4096 positions, pair 2.618 turns 32 times and pair 5.628 once: below 2
/// nothing is stretched, from 6 on all by 4, between in steps of a quarter. The
/// scale is 0.1 ln 4 + 1.
TEST(Rotary, Yarn) {
  check(", type = yarn, factor = 4.0 : f64, original_max_position_embeddings "
        "= 4096",
        {1, 0.1 * kRoot, 0.1, 0.01 * kRoot * (0.75 + 0.25 / 4),
         0.01 * (0.5 + 0.5 / 4), 0.001 * kRoot * (0.25 + 0.75 / 4), 0.001 / 4,
         0.0001 * kRoot / 4},
        1.1386294);
}

/// Not rounded, the ramp is from 2.618 to 5.628.
TEST(Rotary, YarnNotTruncated) {
  auto stretch = [](double pair) {
    double ramp = (pair - 2.6180602026) / (5.6283601592 - 2.6180602026);
    return ramp / 4 + 1 - ramp;
  };
  check(", type = yarn, factor = 4.0 : f64, truncate = false, "
        "original_max_position_embeddings = 4096",
        {1, 0.1 * kRoot, 0.1, 0.01 * kRoot * stretch(3), 0.01 * stretch(4),
         0.001 * kRoot * stretch(5), 0.001 / 4, 0.0001 * kRoot / 4},
        1.1386294);
}

/// 8 turns are at pair 3.822, 2 at 5.026: the ramp is from 3 to 6.
TEST(Rotary, YarnBetas) {
  check(", type = yarn, factor = 4.0 : f64, beta_fast = 8.0 : f64, beta_slow = "
        "2.0 : f64, attention_factor = 0.5 : f64, "
        "original_max_position_embeddings = 4096",
        {1, 0.1 * kRoot, 0.1, 0.01 * kRoot, 0.01 * (2. / 3 + 1. / 12),
         0.001 * kRoot * (1. / 3 + 2. / 12), 0.001 / 4, 0.0001 * kRoot / 4},
        0.5);
}

/// A ramp without length is a step, at 3.822.
TEST(Rotary, YarnStep) {
  check(", type = yarn, factor = 4.0 : f64, beta_fast = 8.0 : f64, beta_slow = "
        "8.0 : f64, truncate = false, original_max_position_embeddings = 4096",
        {1, 0.1 * kRoot, 0.1, 0.01 * kRoot, 0.01 / 4, 0.001 * kRoot / 4,
         0.001 / 4, 0.0001 * kRoot / 4},
        1.1386294);
}

/// (0.1 * 2 ln 4 + 1) / (0.1 * 0.5 ln 4 + 1). One of both alone says nothing.
TEST(Rotary, YarnMagnitudes) {
  std::string text = ", type = yarn, factor = 4.0 : f64, beta_fast = 8.0 : "
                     "f64, beta_slow = 8.0 : f64, "
                     "original_max_position_embeddings = 4096, mscale = 2.0 : "
                     "f64";
  check(text + ", mscale_all_dim = 0.5 : f64", {1}, 1.1944649);
  check(text, {1}, 1.1386294);
}

/// A factor of at most 1 does not change magnitudes.
TEST(Rotary, YarnShorter) {
  check(", type = yarn, factor = 0.5 : f64, original_max_position_embeddings = "
        "4096",
        {1});
}
