//===- PartsTest.cpp - States that ranks have parts of ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/transport/Parts.h"
#include "RanksRun.h"

#include "runtime/checkpoint/ModelTensors.h"
#include "runtime/device/Init.h"
#include "runtime/transport/Collectives.h"
#include "runtime/transport/Mesh.h"

#include <functional>
#include <gtest/gtest.h>
#include <vector>

using namespace reprise::runtime;
using namespace reprise::runtime::test;

namespace {
/// A state of two dimensions, [rows, columns] of the whole.
struct Shape {
  const char *name;
  int64_t rows, columns;
  int cutDim; ///< -1: every rank has all.
  int part = 0, parts = 1;
  int shareForm = REPRISE_SHARE_NONE;
  int stage = 0; ///< Where it is at home, of two.
  bool isOnBoth = false;
};

/// Two ranks with samples of their own by three that share a model. Of seven
/// rows ranks have 3, 3 and 1, of four 2, 2 and none. Of parts of 39,000
/// elements, or 39,600, those along "dp" have shares of 32,768 and the rest.
constexpr RepriseAxis kAxes[] = {{"dp", 2, 0}, {"tp", 3, 0}};
constexpr RepriseAxis kStagedAxes[] = {
    {"pp", 2, 0}, {"dp", 2, 0}, {"tp", 3, 0}};
constexpr Shape kShapes[] = {
    {"rows", 7, 5, 0},
    {"few", 4, 3, 0, 0, 1, REPRISE_SHARE_NONE, 0, true},
    {"columns", 4, 9, 1, 0, 1, REPRISE_SHARE_NONE, 1},
    {"all", 3, 3, -1, 0, 1, REPRISE_SHARE_NONE, 1},
    {"side", 2, 6, 1, 0, 2, REPRISE_SHARE_NONE, 1},
    {"side", 2, 6, 1, 1, 2, REPRISE_SHARE_NONE, 1},
    {"apart", 900, 130, 0, 0, 1, REPRISE_SHARE_APART},
    {"across", 900, 130, 1, 0, 1, REPRISE_SHARE_APART, 1},
    {"within", 900, 130, 1, 0, 1, REPRISE_SHARE_WITHIN, 1, true},
    {"uncut", 300, 70, -1, 0, 1, REPRISE_SHARE_APART, 1},
    {"stack.*.w", 4, 6, -1, 0, 1, REPRISE_SHARE_NONE, 1}};

/// A model with these parameters for `numAxes` of the axes, or for a stage.
struct Model {
  explicit Model(int numAxes, int stage = -1) {
    const int before = stage < 0 ? 0 : 1; // Axes before "dp".
    model.axes = stage < 0 ? kAxes : kStagedAxes;
    model.numAxes = numAxes + before, model.stage = std::max(stage, 0);
    for (const Shape &shape : kShapes) {
      RepriseState state = {};
      state.name = state.hubName = shape.name;
      state.kind = REPRISE_STATE_PARAMETER;
      state.init = REPRISE_INIT_NORMAL, state.initStd = 1;
      state.part = shape.part, state.parts = shape.parts;
      state.rank = 2;
      state.shape[0] = shape.rows, state.shape[1] = shape.columns;
      if (numAxes == 2 && shape.cutDim >= 0) {
        int64_t &extent = state.shape[shape.cutDim];
        state.cutAxes[shape.cutDim] = before + 1;
        state.wholeExtents[shape.cutDim] = extent;
        extent = (extent + 2) / 3;
      }
      int64_t elements = state.shape[0] * state.shape[1];
      if (numAxes == 2)
        state.shareForm = shape.shareForm, state.shareAxis = before;
      if (stage >= 0)
        state.stage = shape.stage;
      state.isElsewhere = stage >= 0 && stage != shape.stage && !shape.isOnBoth;
      if (state.shareForm == REPRISE_SHARE_APART)
        elements = shareOf(elements, 0, 2).end;
      if (!state.isElsewhere)
        state.buffer = {end, elements * 4};
      end += state.buffer.bytes;
      states.push_back(state);
    }
    model.states = states.data(), model.numStates = int32_t(states.size());
  }
  Model(Model &&) = default; // The states stay where they are.

  std::vector<RepriseState> states;
  RepriseModel model = {};
  int64_t end = 0;
};

/// All tensors of a model, as files have them.
struct Wholes {
  explicit Wholes(const ModelTensors &tensors) {
    for (int i = 0; i < tensors.size(); ++i)
      values.emplace_back(size_t(tensors[i].elements()), -1.0f);
    for (std::vector<float> &tensor : values)
      places.push_back(tensor.data());
  }
  std::vector<std::vector<float>> values;
  std::vector<float *> places;
};

/// "15:0+15 ", of each run in [first, last): where it is in the whole, where in
/// the part, and its elements.
std::string runsIn(const Part &part, int64_t first, int64_t last) {
  std::string text;
  part.forEachRun(first, last, [&](int64_t whole, int64_t own, int64_t count) {
    text += std::to_string(whole) + ":" + std::to_string(own) + "+" +
            std::to_string(count) + " ";
    return true;
  });
  return text;
}
} // namespace

TEST(Parts, RunsAreThoseOfTheRank) {
  Model cut(2);
  auto runsOf = [&](int state, int rank, int64_t first, int64_t last) {
    return runsIn(partOf(cut.model, cut.states[size_t(state)], rank), first,
                  last);
  };
  EXPECT_EQ(runsOf(0, 0, 0, 35), "0:0+15 ");
  EXPECT_EQ(runsOf(0, 1, 0, 35), "15:0+15 ");
  EXPECT_EQ(runsOf(0, 2, 0, 35), "30:0+5 ");
  EXPECT_EQ(runsOf(0, 5, 0, 35), "30:0+5 "); // dp 1, tp 2
  EXPECT_EQ(runsOf(0, 1, 17, 20), "17:2+3 ");
  EXPECT_EQ(runsOf(1, 2, 0, 12), "");
  EXPECT_EQ(runsOf(2, 1, 0, 36), "3:0+3 12:3+3 21:6+3 30:9+3 ");
  EXPECT_EQ(runsOf(2, 1, 13, 22), "13:4+2 21:6+1 ");
  EXPECT_EQ(runsOf(3, 4, 2, 9), "2:2+7 ");
  // Ranks 1 and 4 have rows 300 to 599, of which the second has 6,232 elements.
  EXPECT_EQ(runsOf(6, 1, 0, 117'000), "39000:0+32768 ");
  EXPECT_EQ(runsOf(6, 4, 0, 117'000), "71768:0+6232 ");
  EXPECT_EQ(runsOf(6, 4, 75'000, 117'000), "75000:3232+3000 ");
  // Of columns 44 to 87 the second share begins in row 744 with column 32.
  EXPECT_EQ(runsOf(7, 4, 96'720, 96'980), "96796:0+12 96894:12+44 ");
  EXPECT_EQ(runsOf(8, 4, 96'720, 96'980), "96796:32768+12 96894:32780+44 ");
  EXPECT_EQ(runsOf(9, 5, 0, 21'000), "16384:0+4616 ");
}

/// Each rank draws the elements of the whole, and rank 0 gathers what one rank
/// alone has.
static void expectGathered(int numRanks, std::function<Model(int)> modelOf) {
  Model one(0);
  ThreadPool pool;
  Arena whole;
  Error error;
  ModelTensors tensors(one.model);
  ASSERT_TRUE(pool.start(1, error) && whole.map(one.end, error) &&
              tensors.find(error) &&
              initializeStates(one.model, 3, whole, pool, error))
      << error.text;
  Wholes expected(tensors);
  ASSERT_TRUE(tensors.copyOut(whole, expected.places.data(), pool, error))
      << error.text;
  auto gathers = [&](Transport &ranks, Error &error) {
    const Model cut = modelOf(ranks.rank());
    ThreadPool own;
    Arena arena;
    ModelTensors parts(cut.model, ranks.rank());
    if (!own.start(1, error) || !arena.map(cut.end, error) ||
        !parts.find(error) ||
        !initializeStates(cut.model, 3, arena, own, error, Loaded::Nothing,
                          ranks.rank()))
      return false;
    if (!parts.haveParts() || parts.size() != tensors.size())
      return error.set("%d tensors", parts.size());
    Wholes got(parts);
    if (!parts.gather(arena, got.places.data(), ranks, error))
      return false;
    for (int i = 0; i < parts.size(); ++i)
      if ((ranks.rank() == 0) !=
          (got.values[size_t(i)] == expected.values[size_t(i)]))
        return error.set("tensor %s at rank %d", parts[i].name, ranks.rank());
    // Behind its rows a part is zero.
    const RepriseState &few = cut.states[1];
    const float *values = arena.at<float>(few.buffer);
    for (int64_t j = 0; j < 6 && ranks.rank() % 3 == 2; ++j)
      if (values[j] != 0)
        return error.set("element %d", int(j));
    return true;
  };
  EXPECT_EQ(run(numRanks, gathers).error, "");
}

TEST(Parts, AreDrawnAndGatheredAsOneRankHasThem) {
  expectGathered(6, [](int) { return Model(2); });
}

// Of 2 x 4 ranks each pair of neighbours has the same half: pairs are along the
// axis 2, and who is in one along the axis 3.
TEST(Parts, OfPairsOfRanksAreGatheredOnce) {
  static constexpr RepriseAxis kPairs[] = {
      {"dp", 2, 0}, {"tp", 4, 0}, {"kv", 2, 2}, {"kv_copies", 2, 1}};
  Model cut(0);
  cut.model.axes = kPairs, cut.model.numAxes = 4;
  RepriseState &state = cut.states[0];
  state.cutAxes[0] = 2;
  state.wholeExtents[0] = state.shape[0];
  state.shape[0] = (state.shape[0] + 1) / 2;
  EXPECT_EQ(countRanks(cut.model), 8);
  auto gathers = [&](Transport &ranks, Error &error) {
    std::vector<float> own(20, -1), whole(35, 0);
    const Part part = partOf(cut.model, state, ranks.rank());
    const int64_t first = ranks.rank() % 4 < 2 ? 0 : 20;
    if (part.levels[0].begin != first)
      return error.set("a part from %d on", int(part.levels[0].begin));
    const bool isFirst = ranks.rank() == 0 || ranks.rank() == 2;
    for (size_t e = 0; e < own.size() && isFirst; ++e)
      own[e] = float(first) + float(e);
    WholePlace place = {whole.data(), 5, 5};
    if (!gatherState(cut.model, state, ranks, own.data(), place, {0, 35},
                     error))
      return false;
    for (size_t e = 0; e < whole.size() && ranks.rank() == 0; ++e)
      if (whole[e] != float(e))
        return error.set("element %d", int(e));
    return true;
  };
  EXPECT_EQ(run(8, gathers).error, "");
}

/// The first ranks with the parts that `rank` needs, and how many of them.
std::pair<int, int> needed(const std::vector<RepriseAxis> &axes, int rank) {
  RepriseModel model = {};
  model.axes = axes.data(), model.numAxes = int(axes.size());
  const Group group = modelGroupOf(model, rank);
  EXPECT_EQ(group.stride, 1);
  int withFirst = 0;
  for (int other = 0; other < countRanks(model); ++other)
    withFirst += isWithFirst(model, other);
  EXPECT_EQ(withFirst, group.size * countStages(model));
  return {group.first, group.size};
}

// Ranks with other experts are those along "dp", or those along "tp" and behind
// them, of every stage.
TEST(Parts, OfOneModelAreOnNeighbours) {
  using Pair = std::pair<int, int>;
  EXPECT_EQ(needed({{"dp", 4, 0}}, 3), Pair(3, 1));
  EXPECT_EQ(needed({{"dp", 4, 0}, {"tp", 2, 0}}, 5), Pair(4, 2));
  EXPECT_EQ(needed({{"dp", 4, 0}, {"ep", 2, 1}, {"ep_copies", 2, 2}}, 3),
            Pair(2, 2));
  EXPECT_EQ(needed({{"dp", 4, 0}, {"tp", 2, 0}, {"ep", 1, 1}}, 5), Pair(4, 2));
  EXPECT_EQ(
      needed({{"dp", 4, 0}, {"tp", 2, 0}, {"ep", 2, 2}, {"ep_copies", 2, 4}},
             6),
      Pair(4, 4));
  EXPECT_EQ(needed({{"dp", 4, 0}, {"tp", 2, 0}, {"ep", 4, 1}}, 6), Pair(4, 4));
  EXPECT_EQ(needed({{"dp", 2, 0}, {"tp", 4, 0}, {"ep", 2, 1}}, 6), Pair(4, 4));
  EXPECT_EQ(
      needed({{"pp", 2, 0}, {"dp", 4, 0}, {"tp", 2, 0}, {"ep", 4, 1}}, 14),
      Pair(12, 4));
}

// Of 2 x 2 ranks each has other experts, or two pairs have the same ones, which
// the first pair writes.
TEST(Parts, OfExpertsAreThoseOfBothAxes) {
  for (int experts : {2, 4}) {
    const RepriseAxis axes[] = {{"dp", 2, 0},
                                {"tp", 2, 0},
                                {"ep", experts, 1},
                                {"ep_copies", 4 / experts, experts}};
    Model cut(0);
    cut.model.axes = axes, cut.model.numAxes = 4;
    RepriseState &state = cut.states[0];
    state.cutAxes[0] = 2;
    state.wholeExtents[0] = 8, state.shape[0] = 8 / experts;
    auto gathers = [&](Transport &ranks, Error &error) {
      const int rows = 8 / experts, first = ranks.rank() % experts * rows;
      std::vector<float> own(size_t(rows) * 5, -1), whole(40, 0);
      for (size_t e = 0; e < own.size() && ranks.rank() < experts; ++e)
        own[e] = float(first * 5) + float(e);
      WholePlace place = {whole.data(), 5, 5};
      if (!gatherState(cut.model, state, ranks, own.data(), place, {0, 40},
                       error))
        return false;
      for (size_t e = 0; e < whole.size() && ranks.rank() == 0; ++e)
        if (whole[e] != float(e))
          return error.set("element %d", int(e));
      return true;
    };
    EXPECT_EQ(run(4, gathers).error, "");
  }
}

/// Runs of elements of the whole [5, 2, 7] that `rank` has: experts along the
/// axis 2, columns along the axis 1, of which the last rank has fewer.
struct TwoCuts {
  explicit TwoCuts(int shares = REPRISE_SHARE_NONE) : cut(0) {
    cut.model.axes = kAxes, cut.model.numAxes = 4;
    state.name = "experts", state.rank = 3;
    state.shape[0] = 3, state.shape[1] = 2, state.shape[2] = 4;
    state.wholeExtents[0] = 5, state.wholeExtents[2] = 7;
    state.cutAxes[0] = 2, state.cutAxes[2] = 1;
    state.shareForm = shares, state.shareAxis = 3;
  }
  static constexpr RepriseAxis kAxes[] = {
      {"dp", 4, 0}, {"tp", 2, 0}, {"ep", 2, 2}, {"ep_copies", 2, 4}};
  Model cut;
  RepriseState state = {};
};

TEST(Parts, CanBeOfTwoDimensions) {
  TwoCuts two;
  auto runsOf = [&](int rank, int64_t first, int64_t last) {
    return runsIn(partOf(two.cut.model, two.state, rank), first, last);
  };
  EXPECT_EQ(runsOf(0, 0, 70), "0:0+4 7:4+4 14:8+4 21:12+4 28:16+4 35:20+4 ");
  EXPECT_EQ(runsOf(1, 0, 70), "4:0+3 11:4+3 18:8+3 25:12+3 32:16+3 39:20+3 ");
  // Of six rows there are four.
  EXPECT_EQ(runsOf(2, 0, 70), "42:0+4 49:4+4 56:8+4 63:12+4 ");
  EXPECT_EQ(runsOf(6, 0, 70), "42:0+4 49:4+4 56:8+4 63:12+4 ");
  EXPECT_EQ(runsOf(3, 44, 61), "46:0+3 53:4+3 60:8+1 ");
  EXPECT_EQ(runsOf(0, 42, 70), "");
  EXPECT_TRUE(partOf(two.cut.model, two.state, 2).hasMore());
  EXPECT_FALSE(partOf(two.cut.model, two.state, 0).hasMore());
  EXPECT_EQ(partOf(two.cut.model, two.state, 3).wholeElements(), 70);
}

// Of 8 ranks four have other parts, and of these each is there twice.
TEST(Parts, OfTwoDimensionsAreGatheredOnce) {
  for (int shares : {REPRISE_SHARE_NONE, REPRISE_SHARE_APART}) {
    auto gathers = [&](Transport &ranks, Error &error) {
      TwoCuts two(shares);
      const Part part = partOf(two.cut.model, two.state, ranks.rank());
      std::vector<float> own(24, -1), whole(70, 0);
      const bool writes = ranks.rank() < 4;
      part.forEachRun(0, 70, [&](int64_t element, int64_t at, int64_t count) {
        for (int64_t i = 0; i < count && writes; ++i)
          own[size_t(at + i)] = float(element + i);
        return true;
      });
      WholePlace place = {whole.data(), 70, 70};
      if (!gatherState(two.cut.model, two.state, ranks, own.data(), place,
                       {0, 70}, error))
        return false;
      for (size_t e = 0; e < whole.size() && ranks.rank() == 0; ++e)
        if (whole[e] != float(e))
          return error.set("element %d", int(e));
      return true;
    };
    EXPECT_EQ(run(8, gathers).error, "");
  }
}

TEST(Parts, ComeFromTheStageWhereTheyAreAtHome) {
  expectGathered(12, [](int rank) { return Model(2, rank / 6); });
}
