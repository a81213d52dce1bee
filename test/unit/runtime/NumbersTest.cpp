//===- NumbersTest.cpp - Randomness, schedule, first values ---------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/Init.h"
#include "runtime/trainer/Schedule.h"

#include "reprise/ABI/Philox.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <vector>

using namespace reprise::runtime;

// The known answers that come with Random123 (kat_vectors, philox4x32-10).
TEST(Philox, KnownAnswers) {
  const uint32_t zeros[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  const uint32_t ones[] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
  const uint64_t last = uint64_t(0xFFFFFFFF) * 4;
  for (uint64_t word = 0; word < 4; ++word) {
    EXPECT_EQ(reprisePhilox(0, 0, 0, 0, word), zeros[word]);
    EXPECT_EQ(reprisePhilox(~uint64_t(0), ~0u, ~0u, ~0u, last + word),
              ones[word]);
  }
}

static RepriseModel schedule(int32_t style) {
  RepriseModel model = {};
  model.learningRate = 1.0;
  model.minLearningRate = 0.2;
  model.warmupIters = 4;
  model.trainIters = model.decayIters = 12;
  model.lrDecayStyle = style;
  return model;
}

TEST(LearningRate, WarmsUpAlongALine) {
  for (int32_t style :
       {REPRISE_LR_CONSTANT, REPRISE_LR_LINEAR, REPRISE_LR_COSINE}) {
    RepriseModel model = schedule(style);
    EXPECT_DOUBLE_EQ(learningRate(model, 0), 0.25);
    EXPECT_DOUBLE_EQ(learningRate(model, 2), 0.75);
    EXPECT_DOUBLE_EQ(learningRate(model, 3), 1.0);
    EXPECT_DOUBLE_EQ(learningRate(model, 4), 1.0);
  }
}

TEST(LearningRate, FallsAsItsStyleSays) {
  EXPECT_DOUBLE_EQ(learningRate(schedule(REPRISE_LR_CONSTANT), 11), 1.0);
  EXPECT_DOUBLE_EQ(learningRate(schedule(REPRISE_LR_CONSTANT), 99), 1.0);
  // A quarter, a half and all of the way from step 4 to step 12.
  RepriseModel linear = schedule(REPRISE_LR_LINEAR);
  EXPECT_DOUBLE_EQ(learningRate(linear, 6), 0.8);
  EXPECT_DOUBLE_EQ(learningRate(linear, 8), 0.6);
  EXPECT_DOUBLE_EQ(learningRate(linear, 12), 0.2);
  EXPECT_DOUBLE_EQ(learningRate(linear, 99), 0.2);
  RepriseModel cosine = schedule(REPRISE_LR_COSINE);
  EXPECT_DOUBLE_EQ(learningRate(cosine, 6), 0.2 + 0.4 * (1 + std::sqrt(0.5)));
  EXPECT_DOUBLE_EQ(learningRate(cosine, 8), 0.6);
  EXPECT_DOUBLE_EQ(learningRate(cosine, 12), 0.2);
}

TEST(LearningRate, DecaysOverItsOwnStepsWhateverTheRunHas) {
  RepriseModel linear = schedule(REPRISE_LR_LINEAR);
  linear.trainIters = 6;
  EXPECT_DOUBLE_EQ(learningRate(linear, 8), 0.6);
  linear.decayIters = 8;
  EXPECT_DOUBLE_EQ(learningRate(linear, 6), 0.6);
  EXPECT_DOUBLE_EQ(learningRate(linear, 8), 0.2);
}

TEST(LearningRate, WarmupMayFillTheWholeDecay) {
  RepriseModel model = schedule(REPRISE_LR_COSINE);
  model.warmupIters = model.decayIters;
  EXPECT_DOUBLE_EQ(learningRate(model, 11), 1.0);
  EXPECT_DOUBLE_EQ(learningRate(model, 12), 0.2);
}

TEST(BiasCorrection, CountsStepsFromOne) {
  EXPECT_DOUBLE_EQ(biasCorrection(0.9, 0), 1.0 - 0.9);
  EXPECT_DOUBLE_EQ(biasCorrection(0.999, 9), 1.0 - std::pow(0.999, 10));
}

namespace {
/// Three states in one arena, initialized with some number of threads.
struct Initialized {
  static constexpr int64_t kCount = 100'001;
  RepriseState states[3] = {{"w",
                             "w",
                             REPRISE_STATE_PARAMETER,
                             REPRISE_INIT_NORMAL,
                             0.02f,
                             0,
                             1,
                             1,
                             REPRISE_F32,
                             0,
                             {kCount},
                             {0, kCount * 4}},
                            {"gain",
                             "gain",
                             REPRISE_STATE_PARAMETER,
                             REPRISE_INIT_ONES,
                             0,
                             0,
                             1,
                             1,
                             REPRISE_F32,
                             0,
                             {5},
                             {kCount * 4, 20}},
                            {"w",
                             "w",
                             REPRISE_STATE_GRADIENT,
                             REPRISE_INIT_ZEROS,
                             0,
                             0,
                             1,
                             1,
                             REPRISE_F32,
                             0,
                             {5},
                             {kCount * 4 + 20, 20}}};
  Arena arena;

  Initialized(int threads, uint64_t seed) {
    RepriseModel model = {};
    model.numStates = 3;
    model.states = states;
    ThreadPool pool;
    Error error;
    EXPECT_TRUE(arena.map(kCount * 4 + 40, error)) << error.text;
    EXPECT_TRUE(pool.start(threads, error)) << error.text;
    initializeStates(model, seed, arena, pool, error);
  }
  const float *values() const { return arena.at<float>(0); }
};
} // namespace

TEST(Init, NormalValuesHaveMeanAndDeviation) {
  Initialized run(1, 42);
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < Initialized::kCount; ++i) {
    ASSERT_LT(std::fabs(run.values()[i]), 0.02 * 7);
    sum += double(run.values()[i]);
    squares += double(run.values()[i]) * double(run.values()[i]);
  }
  // Four deviations of either estimate.
  double count = double(Initialized::kCount);
  EXPECT_NEAR(sum / count, 0, 4 * 0.02 / std::sqrt(count));
  EXPECT_NEAR(std::sqrt(squares / count), 0.02,
              4 * 0.02 / std::sqrt(2 * count));
}

TEST(Init, OnesAndZerosFillTheirStates) {
  Initialized run(1, 42);
  for (int64_t i = 0; i < 10; ++i)
    EXPECT_EQ(run.values()[Initialized::kCount + i], i < 5 ? 1.0f : 0.0f);
  EXPECT_EQ(run.arena.highWaterBytes(), run.arena.size());
}

// What a step makes from nothing is no business of the start.
TEST(Init, LeavesAloneWhatAStepMakes) {
  Initialized run(1, 42);
  RepriseModel model = {};
  model.numStates = 3;
  model.states = run.states;
  run.states[2].init = REPRISE_INIT_NONE;
  float *gradient = run.arena.at<float>(run.states[2].buffer);
  gradient[0] = 7.0f;
  ThreadPool pool;
  Error error;
  ASSERT_TRUE(pool.start(1, error)) << error.text;
  EXPECT_TRUE(initializeStates(model, 42, run.arena, pool, error));
  EXPECT_EQ(gradient[0], 7.0f);
}

TEST(Init, DependsOnTheSeedAndNotOnTheThreads) {
  Initialized one(1, 42), three(3, 42), other(1, 43);
  size_t bytes = size_t(Initialized::kCount) * 4;
  EXPECT_EQ(0, memcmp(one.values(), three.values(), bytes));
  EXPECT_NE(0, memcmp(one.values(), other.values(), bytes));
}

namespace {
/// A parameter, and the working copy behind it.
struct WorkingCopies : testing::Test {
  bool start(int64_t count, std::vector<int64_t> shape,
             std::vector<int64_t> shapeOfCopy) {
    auto setShape = [](RepriseState &state, const std::vector<int64_t> &shape) {
      state.name = "w";
      state.rank = int32_t(shape.size());
      std::copy(shape.begin(), shape.end(), state.shape);
    };
    setShape(states[0], shape);
    setShape(states[1], shapeOfCopy);
    states[0].kind = REPRISE_STATE_PARAMETER;
    states[0].buffer = {0, count * 4};
    states[1].kind = REPRISE_STATE_WORKING;
    states[1].elementType = REPRISE_BF16;
    states[1].buffer = {count * 4, count * 2};
    model.states = states;
    model.numStates = 2;
    return arena.map(count * 6, error) && pool.start(2, error);
  }

  RepriseState states[2] = {};
  RepriseModel model = {};
  Arena arena;
  ThreadPool pool;
  Error error;
};
} // namespace

/// To the nearest, of two as near to the even one; what is no number, or too
/// large, stays what it is, whatever bits it has.
TEST_F(WorkingCopies, AreTheirParametersRounded) {
  constexpr int64_t kCount = 40'000;
  ASSERT_TRUE(start(kCount, {kCount}, {kCount})) << error.text;
  const std::pair<uint32_t, uint16_t> cases[] = {
      {0x3F800000, 0x3F80}, // 1
      {0x3F808000, 0x3F80}, // in the middle, even below
      {0x3F818000, 0x3F82}, // in the middle, even above
      {0x3F808001, 0x3F81}, {0xBF808001, 0xBF81}, {0x80000000, 0x8000},
      {0x00008001, 0x0001}, // far below the least normal number
      {0x7F7FFFFF, 0x7F80}, // rounds to infinity
      {0xFF800000, 0xFF80}, {0x7F800001, 0x7FC0}, {0xFFFFFFFF, 0xFFFF}};
  constexpr int64_t kCases = std::size(cases);
  uint32_t *bits = arena.at<uint32_t>(states[0].buffer);
  for (int64_t i = 0; i < kCount; ++i)
    bits[i] = cases[i % kCases].first;
  ASSERT_TRUE(roundParameters(model, arena, pool, error)) << error.text;
  const uint16_t *copy = arena.at<uint16_t>(states[1].buffer);
  for (int64_t i = 0; i < kCount; ++i)
    ASSERT_EQ(copy[i], cases[i % kCases].second) << i;

  // The copy is not initialized for itself.
  copy = arena.at<uint16_t>(states[1].buffer);
  initializeStates(model, 1, arena, pool, error);
  EXPECT_EQ(copy[0], 0x3F80);
  states[1].name = "v";
  EXPECT_FALSE(roundParameters(model, arena, pool, error));
  EXPECT_STREQ(error.text, "damaged model: the working copy of 'v' needs a "
                           "parameter with its 40000 elements");
}

/// A matrix that GEMMs read packed: panels of 32 columns of pairs of rows.
TEST_F(WorkingCopies, MayBePacked) {
  constexpr int64_t kRows = 192, kCols = 96, kCount = kRows * kCols;
  ASSERT_TRUE(start(kCount, {kRows, kCols}, {kCols / 32, kRows / 2, 32, 2}))
      << error.text;
  uint32_t *bits = arena.at<uint32_t>(states[0].buffer);
  for (int64_t i = 0; i < kCount; ++i)
    bits[i] = uint32_t(i) << 16;
  ASSERT_TRUE(roundParameters(model, arena, pool, error)) << error.text;
  const uint16_t *copy = arena.at<uint16_t>(states[1].buffer);
  int64_t place = 0;
  for (int64_t panel = 0; panel < kCols; panel += 32)
    for (int64_t pair = 0; pair < kRows; pair += 2)
      for (int64_t c = panel; c < panel + 32; ++c)
        for (int64_t r = pair; r < pair + 2; ++r)
          ASSERT_EQ(copy[place++], r * kCols + c) << r << ' ' << c;

  // It is not any four sizes that a matrix may be packed as.
  std::swap(states[1].shape[0], states[1].shape[1]);
  EXPECT_FALSE(roundParameters(model, arena, pool, error));
  EXPECT_STREQ(error.text, "damaged model: the working copy of 'w' needs the "
                           "shape of its parameter or that shape packed");
}

// What a buffer has behind its tensor are zeros, whatever was there.
TEST(Init, RowsBehindATensorAreZeros) {
  RepriseState states[2] = {};
  for (RepriseState &state : states) {
    state.name = state.hubName = "w";
    state.rank = 2, state.shape[0] = 3, state.shape[1] = 5;
  }
  states[0].kind = REPRISE_STATE_PARAMETER;
  states[0].init = REPRISE_INIT_ONES;
  states[0].buffer = {0, 8 * 5 * 4};
  states[1].kind = REPRISE_STATE_WORKING;
  states[1].elementType = REPRISE_BF16;
  states[1].buffer = {256, 8 * 5 * 2};
  RepriseModel model = {};
  model.states = states, model.numStates = 2;
  Arena arena;
  ThreadPool pool;
  Error error;
  ASSERT_TRUE(arena.map(512, error) && pool.start(2, error)) << error.text;
  memset(arena.at<char>(0), 0x7F, 512);
  ASSERT_TRUE(initializeStates(model, 1, arena, pool, error) &&
              roundParameters(model, arena, pool, error))
      << error.text;
  const float *values = arena.at<float>(states[0].buffer);
  const uint16_t *copy = arena.at<uint16_t>(states[1].buffer);
  for (int i = 0; i < 8 * 5; ++i) {
    EXPECT_EQ(values[i], i < 15 ? 1.0f : 0.0f) << i;
    EXPECT_EQ(copy[i], i < 15 ? 0x3F80 : 0) << i;
  }
}

TEST(Rotary, HasTheCosinesAndThenTheSinesOfEachPosition) {
  const float frequencies[3] = {1.0f, 0.1f, 1e-3f};
  constexpr int64_t kLength = 131;
  RepriseRotary rotary = {{64, kLength * 6 * 4}, kLength, 6,
                          frequencies,           1.25f,   0};
  RepriseModel model = {};
  model.numRotaries = 1;
  model.rotaries = &rotary;
  for (int threads : {1, 3}) {
    Arena arena;
    ThreadPool pool;
    Error error;
    ASSERT_TRUE(arena.map(64 + kLength * 6 * 4, error)) << error.text;
    ASSERT_TRUE(pool.start(threads, error)) << error.text;
    fillRotaries(model, arena, pool, error);
    EXPECT_EQ(arena.highWaterBytes(), arena.size());
    const float *table = arena.at<float>(64);
    for (int64_t t = 0; t < kLength; ++t)
      for (int j = 0; j < 3; ++j) {
        double angle = double(float(t) * frequencies[j]);
        EXPECT_EQ(table[t * 6 + j], float(1.25 * std::cos(angle))) << t;
        EXPECT_EQ(table[t * 6 + 3 + j], float(1.25 * std::sin(angle))) << t;
      }
  }
}

TEST(MemoryCheck, LeavesStatesAndRotaryTablesAsTheyAre) {
  const float frequency = 1.0f;
  RepriseRotary rotary = {{32, 8}, 1, 2, &frequency, 1.0f, 0};
  RepriseState state = {
      "w", "w", 0, REPRISE_INIT_ONES, 0, 0, 1, 1, REPRISE_F32, 0, {2}, {8, 8}};
  RepriseModel model = {};
  model.numStates = model.numRotaries = 1;
  model.states = &state;
  model.rotaries = &rotary;
  Arena arena;
  ThreadPool pool;
  Error error;
  MemoryCheck check;
  ASSERT_TRUE(arena.map(64, error)) << error.text;
  ASSERT_TRUE(pool.start(1, error)) << error.text;
  ASSERT_TRUE(check.start(model, arena, error)) << error.text;
  initializeStates(model, 1, arena, pool, error);
  fillRotaries(model, arena, pool, error);
  check.fillGaps();
  const float *values = arena.at<float>(0);
  for (int i = 0; i < 16; ++i) {
    if (i == 2 || i == 3 || i == 8)
      EXPECT_EQ(values[i], 1.0f); // the state; cos(0)
    else if (i == 9)
      EXPECT_EQ(values[i], 0.0f); // sin(0)
    else
      EXPECT_TRUE(std::isnan(values[i])) << i;
  }
  EXPECT_EQ(check.writtenBytes(), 40);
}
