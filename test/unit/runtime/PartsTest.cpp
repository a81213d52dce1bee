//===- PartsTest.cpp - States that ranks have parts of ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/transport/Parts.h"
#include "RanksRun.h"
#include "TestFiles.h"
#include "TrainingRun.h"

#include "runtime/checkpoint/CheckpointWriter.h"
#include "runtime/device/Init.h"
#include "runtime/transport/Collectives.h"
#include "runtime/transport/Mesh.h"

#include <filesystem>
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

/// All tensors of a model one behind the other, as files have them.
struct Wholes {
  /// Of rank 0, or of as many ranks, of which each has one part of them all,
  /// cut wherever that is, and of which one has nothing.
  explicit Wholes(const ModelTensors &tensors, int numRanks = 1) {
    int64_t sum = 0, before = 0;
    for (int i = 0; i < tensors.size(); ++i)
      sum += tensors[i].elements();
    const int writers = std::max(numRanks - 1, 1);
    for (int writer = 0; writer < writers; ++writer) {
      const int64_t begin = sum * writer / writers,
                    end = sum * (writer + 1) / writers;
      before = 0;
      for (int i = 0; i < tensors.size(); ++i) {
        const int64_t size = tensors[i].elements();
        const int64_t first = std::clamp<int64_t>(begin - before, 0, size),
                      last = std::clamp<int64_t>(end - before, 0, size);
        before += size;
        if (first < last) // Rank 1 has nothing.
          EXPECT_TRUE(
              slices.push({i, first, last, writer == 0 ? 0 : writer + 1}));
      }
    }
    values.assign(size_t(sum), -1);
  }
  /// The elements of a rank.
  std::pair<int64_t, int64_t> partOf(int rank) const {
    int64_t begin = 0, end = 0;
    for (const TensorSlice &slice : slices) {
      begin += slice.rank < rank ? slice.end - slice.begin : 0;
      end += slice.rank <= rank ? slice.end - slice.begin : 0;
    }
    return {begin, end};
  }
  List<TensorSlice> slices;
  std::vector<float> values;
};

/// Brings elements of one state to rank 0, from arenas with `own`.
bool gatherState(const RepriseModel &model, RepriseState state,
                 Transport &ranks, const std::vector<float> &own,
                 const WholePlace &place, Share elements, Error &error) {
  ThreadPool pool;
  Arena arena;
  Deliveries deliveries;
  state.buffer = {0, int64_t(own.size()) * 4};
  if (!pool.start(1, error) || !arena.map(state.buffer.bytes, error) ||
      !deliveries.add(state, elements, 0, place))
    return false;
  std::copy(own.begin(), own.end(), arena.at<float>(0));
  return deliveries.run(model, arena, ranks, pool, error);
}

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
  Transport alone;
  ASSERT_TRUE(tensors.gather(expected.slices, expected.values.data(), whole,
                             alone, pool, error))
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
    for (int writers : {1, ranks.size()}) {
      Wholes got(parts, writers);
      if (!parts.gather(got.slices, got.values.data(), arena, ranks, own,
                        error))
        return false;
      const auto [begin, end] = got.partOf(ranks.rank());
      for (int64_t i = 0; i < end - begin; ++i)
        if (got.values[size_t(i)] != expected.values[size_t(begin + i)])
          return error.set("element %d at rank %d", int(begin + i),
                           ranks.rank());
      if (got.values[size_t(end - begin)] != -1 && writers > 1)
        return error.set("more than its own at rank %d", ranks.rank());
    }
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
    if (!gatherState(cut.model, state, ranks, own, place, {0, 35}, error))
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
      if (!gatherState(cut.model, state, ranks, own, place, {0, 40}, error))
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
      if (!gatherState(two.cut.model, two.state, ranks, own, place, {0, 70},
                       error))
        return false;
      for (size_t e = 0; e < whole.size() && ranks.rank() == 0; ++e)
        if (whole[e] != float(e))
          return error.set("element %d", int(e));
      return true;
    };
    EXPECT_EQ(run(8, gathers).error, "");
  }
}

/// Saves step 7 of a model of `ranks` into `folder`, as one of them.
static bool saveTogether(const Model &made, Transport &ranks,
                         const std::string &folder, int &writers,
                         int64_t &written, Error &error) {
  ThreadPool pool;
  Arena arena;
  RunState state;
  state.step = 7;
  RepriseModel model = made.model;
  model.name = "parts", model.plan = "none", model.compiler = "a test";
  ModelTensors tensors(model, ranks.rank());
  if (!pool.start(1, error) || !arena.map(made.end, error) ||
      !tensors.find(error) ||
      !initializeStates(model, 3, arena, pool, error, Loaded::Nothing,
                        ranks.rank()))
    return false;
  TensorWriter writer(model, tensors, arena, pool, ranks);
  CheckpointWriter first(model, tensors, writer);
  SaveSettings settings = {folder.c_str(), 0, 1, true, {}};
  const bool isFirst = ranks.rank() == 0;
  if ((isFirst && !first.start(settings, nullptr, 0, error)) ||
      !writer.start(folder.c_str(), 1'000'000, {}, error))
    return false;
  writers = writer.numWriters();
  Error refused;
  if (!isFirst) {
    if (!writer.follow(state.step, error))
      return false;
  } else if (!first.save(state, refused, error) || !first.wait(error) ||
             !writer.release(error) || refused.text[0] ||
             first.takeFailure(refused)) {
    return refused.text[0] ? error.set("%s", refused.text) : false;
  }
  written = writer.writtenBytes();
  return true;
}

// Whatever they have of it, ranks write the files of one rank, each an equal
// part; of those that have another folder, or none, the others write it.
TEST(Parts, AreWrittenByAllThatSeeTheFolder) {
  Folder folder;
  Transport alone;
  Error error;
  int writers = 0;
  int64_t all = 0;
  ASSERT_TRUE(
      saveTogether(Model(0), alone, folder.path + "one", writers, all, error))
      << error.text;
  const std::string step = "/step-00000007/";
  std::filesystem::create_directories(folder.path + "elsewhere");
  for (int numWriters : {6, 4, 1}) {
    const std::string to = folder.path + std::to_string(numWriters);
    auto saves = [&](Transport &ranks, Error &error) {
      const int rank = ranks.rank(); // Ranks 1 and 2, or all but rank 0.
      const bool sees =
          numWriters == 6 || rank == 0 || (numWriters == 4 && rank > 2);
      int known = 0;
      int64_t own = 0;
      if (!saveTogether(Model(2), ranks,
                        sees       ? to
                        : rank < 2 ? folder.path + "elsewhere"
                                   : folder.path + "nowhere",
                        known, own, error))
        return false;
      if (known != numWriters)
        return error.set("%d writers", known);
      const int64_t share = sees ? all / numWriters : 0;
      return std::abs(own - share) <= 4096 ||
             error.set("rank %d wrote %d bytes of %d", rank, int(own),
                       int(all));
    };
    EXPECT_EQ(run(6, saves).error, "");
    EXPECT_FALSE(std::filesystem::exists(folder.path + "nowhere"));
    EXPECT_TRUE(std::filesystem::is_empty(folder.path + "elsewhere"));
    EXPECT_FALSE(std::filesystem::exists(to + "/ranks.tmp"));
    for (const char *name :
         {"model.safetensors", "optimizer.safetensors", "trainer.json"})
      EXPECT_EQ(readFile(to + step + name),
                readFile(folder.path + "one" + step + name))
          << name << " of " << numWriters;
  }
}

TEST(Parts, ComeFromTheStageWhereTheyAreAtHome) {
  expectGathered(12, [](int rank) { return Model(2, rank / 6); });
}
