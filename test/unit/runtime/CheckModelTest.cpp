//===- CheckModelTest.cpp - Tables of ranks that fit together ---*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Other refusals are tested where programs meet them: TrainingTest,
// PipelineTest.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/CheckModel.h"
#include "ToyModel.h"

#include "runtime/device/CollectiveLaunch.h"

#include <gtest/gtest.h>
#include <string>

using namespace reprise::runtime;
using namespace reprise::runtime::test;

namespace {
/// The toy for the ranks of these axes, and its states.
struct Tables {
  explicit Tables(std::vector<RepriseAxis> ranks) : axes(std::move(ranks)) {
    states.assign(toy.model.states, toy.model.states + toy.model.numStates);
    toy.model.states = states.data();
    toy.model.axes = axes.data();
    toy.model.numAxes = int32_t(axes.size());
  }
  /// What is said of them, or nothing.
  std::string refusal(int rank = 0) {
    Error error;
    return checkModel(toy.model, rank, error) ? "" : error.text;
  }

  ToyModel toy;
  std::vector<RepriseAxis> axes;
  std::vector<RepriseState> states;
};

/// A state of 200 x 200 elements, with all bytes that two ranks need for shares
/// of it apart: 32768 elements.
RepriseState sharedState(int32_t form) {
  RepriseState state = {};
  state.name = state.hubName = "w";
  state.parts = 1, state.rank = 2;
  state.shape[0] = state.shape[1] = 200;
  state.shareForm = form, state.shareAxis = 1;
  state.buffer = {0, form == REPRISE_SHARE_APART ? 131072 : 160000};
  return state;
}

/// What is said of the states of ranks {2, 2} with one more.
std::string refusalOf(const RepriseState &state) {
  Tables tables({{"dp", 2, 0}, {"tp", 2, 0}});
  tables.toy.model.arenaBytes += 160000;
  tables.states.push_back(state);
  tables.toy.model.states = tables.states.data();
  ++tables.toy.model.numStates;
  return tables.refusal();
}
} // namespace

TEST(CheckModel, StatesHaveTheirType) {
  RepriseState state = sharedState(REPRISE_SHARE_WITHIN);
  EXPECT_EQ(refusalOf(state), "");
  state.elementType = REPRISE_BF16;
  EXPECT_EQ(refusalOf(state),
            "damaged model: w needs to be f32, but has type 1");
  state.kind = REPRISE_STATE_WORKING;
  EXPECT_EQ(refusalOf(state), "");
  state.elementType = REPRISE_F32;
  EXPECT_EQ(refusalOf(state),
            "damaged model: w needs to be bf16, but has type 0");
}

TEST(CheckModel, SharesAreAlongAnAxis) {
  for (auto [form, axis] : {std::pair(3, 0), {-1, 0}, {1, 2}, {2, -1}}) {
    RepriseState state = sharedState(REPRISE_SHARE_APART);
    state.shareForm = form, state.shareAxis = axis;
    EXPECT_EQ(refusalOf(state), "damaged model: w has shares of form " +
                                    std::to_string(form) + " along axis " +
                                    std::to_string(axis));
  }
  // Without shares nobody looks for an axis.
  RepriseState state = sharedState(REPRISE_SHARE_WITHIN);
  state.shareForm = REPRISE_SHARE_NONE, state.shareAxis = 9;
  EXPECT_EQ(refusalOf(state), "");
}

TEST(CheckModel, SharesHaveRoom) {
  const std::string needs = "damaged model: w needs at least ";
  for (auto [form, bytes] : {std::pair(REPRISE_SHARE_APART, 131072),
                             {REPRISE_SHARE_WITHIN, 160000},
                             {REPRISE_SHARE_NONE, 160000}}) {
    RepriseState state = sharedState(form);
    EXPECT_EQ(refusalOf(state), "");
    state.buffer.bytes -= 4;
    const std::string said = refusalOf(state);
    EXPECT_EQ(said.find(needs + std::to_string(bytes) + " bytes in the arena"),
              0u)
        << said;
    state.buffer = {-64, bytes};
    EXPECT_EQ(refusalOf(state).find(needs), 0u);
    state.buffer = {INT64_C(1) << 40, bytes};
    EXPECT_EQ(refusalOf(state).find(needs), 0u);
  }
}

TEST(CheckModel, StatesAreAtHomeOnAStage) {
  auto said = [](int32_t home, bool isElsewhere, RepriseBuffer buffer) {
    Tables tables({{"pp", 2, 0}, {"dp", 2, 0}});
    RepriseState &state = tables.states[0];
    state.stage = home, state.isElsewhere = isElsewhere;
    if (isElsewhere)
      state.buffer = buffer;
    return tables.refusal();
  };
  const std::string all = std::to_string(kVocab * kWidth * 4);
  EXPECT_EQ(said(0, false, {}), "");
  EXPECT_EQ(said(1, false, {}), "");
  EXPECT_EQ(said(1, true, {}), "");
  EXPECT_EQ(said(2, false, {}),
            "damaged model: embedding is at home on stage 2 "
            "of 2, but stage 0 has it with " +
                all + " bytes");
  EXPECT_EQ(said(-1, true, {}), "damaged model: embedding is at home on stage "
                                "-1 of 2, but stage 0 has none with 0 bytes");
  EXPECT_EQ(said(0, true, {}), "damaged model: embedding is at home on stage 0 "
                               "of 2, but stage 0 has none with 0 bytes");
  EXPECT_EQ(said(1, true, {0, 64}),
            "damaged model: embedding is at home on stage 1 of 2, but stage 0 "
            "has none with 64 bytes");
  EXPECT_EQ(said(1, true, {64, 0}),
            "damaged model: embedding is at home on stage 1 of 2, but stage 0 "
            "has none with 0 bytes");
}

TEST(CheckModel, AxesHaveRanks) {
  for (auto [size, step] :
       {std::pair(0, 0), {2, -1}, {1 << 21, 0}, {2, 1 << 21}})
    EXPECT_EQ(Tables({{"dp", size, step}}).refusal(),
              "damaged model: axis 0 has " + std::to_string(size) +
                  " ranks at a step of " + std::to_string(step));
}

TEST(CheckModel, ModelsRunOnTheirStage) {
  Tables tables({{"pp", 2, 0}, {"dp", 2, 0}});
  EXPECT_EQ(tables.refusal(1), "");
  EXPECT_EQ(tables.refusal(2),
            "damaged model: stage 0 needs to run where the axis 'pp' has this "
            "number, but runs on rank 2");
}

// A share of 40,000 elements, for each of two ranks or of three, is gathered
// into the whole.
TEST(CheckModel, SharesAreGathered) {
  const RepriseAxis axes[] = {{"dp", 2, 0}, {"tp", 3, 0}};
  RepriseCollective row = {};
  row.operation = REPRISE_COLLECTIVE_GATHER_SHARES;
  RepriseBuffer buffers[] = {{0, 131072}, {131072, 160000}, {131072, 160000}};
  RepriseModel model = {};
  model.axes = axes, model.numAxes = 2;
  model.collectives = &row, model.numCollectives = 1;
  model.buffers = buffers, model.arenaBytes = 131072 + 160000;
  RepriseLaunch launch = {REPRISE_LAUNCH_COLLECTIVE, 0, 0, 3, 0, 0, 0, 0, "w"};
  auto said = [&] {
    Error error;
    return checkCollective(model, launch, /*rank=*/4, error)
               ? std::string()
               : std::string(error.text);
  };
  EXPECT_EQ(said(), "");
  launch.numBuffers = 2;
  EXPECT_EQ(said(), "damaged model: w has operation 4 along axis 0 of 2 on 2 "
                    "buffers of type 0");
  launch.numBuffers = 3, row.axis = 2;
  EXPECT_EQ(said(), "damaged model: w has operation 4 along axis 2 of 2 on 3 "
                    "buffers of type 0");
  row.axis = 0, row.elementType = 7;
  EXPECT_EQ(said(), "damaged model: w has operation 4 along axis 0 of 2 on 3 "
                    "buffers of type 7");
  row.elementType = REPRISE_F32, row.numMembers = 2, row.memberStride = 1;
  EXPECT_EQ(said(), "damaged model: rank 4 cannot take part in w, operation 4 "
                    "of 2 ranks from 0 on in steps of 1 along an axis of 2");
  row.numMembers = 0, buffers[0].bytes -= 4;
  EXPECT_EQ(said(), "damaged model: w needs at least 131072 bytes in the arena "
                    "of 291072, but got 131068 at 0");
  buffers[0].bytes = 65536;
  row.axis = 1; // Three ranks have a block each, the last one the rest.
  EXPECT_EQ(said(), "");
  // Of twice as many elements of bf16 three ranks have two blocks each.
  row.elementType = REPRISE_BF16;
  EXPECT_EQ(said(), "");
  buffers[0].bytes -= 2;
  EXPECT_EQ(said(), "damaged model: w needs at least 65536 bytes in the arena "
                    "of 291072, but got 65534 at 0");
  buffers[2].bytes = 1;
  EXPECT_EQ(said(), "damaged model: w needs at least 2 bytes in the arena of "
                    "291072, but got 1 at 131072");
}
