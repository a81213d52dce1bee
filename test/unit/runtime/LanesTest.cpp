//===- LanesTest.cpp - Parcels from stage to stage ------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LanesRun.h"
#include "RanksRun.h"

#include "runtime/transport/Lanes.h"

#include <csignal>
#include <gtest/gtest.h>
#include <unistd.h>
#include <vector>

using namespace reprise::runtime;
using namespace reprise::runtime::test;

/// Runs as many ranks as the lanes name.
static Ended runWith(const std::vector<Lane> &lanes, Body body,
                     int64_t seconds = 600) {
  RankSettings settings;
  settings.lanes = lanes.data(), settings.numLanes = int(lanes.size());
  settings.operationSeconds = seconds;
  for (const Lane &lane : lanes)
    settings.numRanks =
        std::max({settings.numRanks, lane.from + 1, lane.to + 1});
  return run(settings, std::move(body));
}

TEST(Lanes, ParcelsComeInOrder) {
  const std::vector<Lane> lanes = lanesOfRing(100'000);
  Ended ended = runWith(lanes, [&](Transport &ranks, Error &error) {
    return runRing(lanes, 500, ranks, error);
  });
  EXPECT_EQ(ended.status, 0) << ended.error;
}

// One is full, with an exchange behind it, while another one is read.
TEST(Lanes, WaitForNoOther) {
  const Lane first = {0, 1, 0, 5000, 4}, second = {0, 1, 1, 9, 1};
  Ended ended = runWith({first, second}, [&](Transport &ranks, Error &error) {
    const End end = {ranks, error};
    char byte = 0;
    Parcel parcel = {1 - ranks.rank(), &byte, 1};
    if (ranks.rank() == 0) {
      for (int number = 0; number < 4; ++number)
        if (!end.send(first, number))
          return false;
      return ranks.exchange("a test", Patience::Limited, &parcel, 1, nullptr, 0,
                            error) &&
             end.send(second, 0) && end.send(second, 1) && end.send(first, 4);
    }
    if (!end.receive(second, 0) || !end.receive(second, 1) ||
        !ranks.exchange("a test", Patience::Limited, nullptr, 0, &parcel, 1,
                        error))
      return false;
    for (int number = 0; number < 5; ++number)
      if (!end.receive(first, number))
        return false;
    return true;
  });
  EXPECT_EQ(ended.status, 0) << ended.error;
}

TEST(Lanes, HaveTheirPlacesAndNoMore) {
  const Lane lane = {0, 1, 1, 4096, 3};
  for (int parcels : {3, 4}) {
    auto body = [&](Transport &ranks, Error &error) {
      for (int number = 0; ranks.rank() == 0 && number < parcels; ++number)
        if (!End{ranks, error}.send(lane, number))
          return false;
      if (ranks.rank() == 1)
        sleep(3); // And receives none.
      return true;
    };
    Ended ended = runWith({lane}, body, /*seconds=*/1);
    EXPECT_EQ(ended.error, parcels == 3 ? ""
                                        : "rank 0: rank 0 has waited for rank "
                                          "1 for 1 s in a send");
  }
}

TEST(Lanes, AReceiptThatNeverEndsIsGivenUp) {
  const Lane lane = {0, 1, 0, 8, 1};
  auto body = [&](Transport &ranks, Error &error) {
    if (ranks.rank() == 1)
      return End{ranks, error}.receive(lane, 0);
    sleep(4);
    return true;
  };
  Ended ended = runWith({lane}, body, /*seconds=*/1);
  EXPECT_EQ(ended.error,
            "rank 1: rank 1 has waited for rank 0 for 1 s in a receipt");
}

TEST(Lanes, ADeathOfOneEndsWhoWaits) {
  const Lane out = {0, 1, 0, 8, 1}, back = {1, 0, 0, 8, 1};
  for (bool sends : {false, true}) {
    auto body = [&](Transport &ranks, Error &error) {
      const End end = {ranks, error};
      ranks.reportStep(3);
      if (ranks.rank() == 1)
        raise(SIGKILL);
      return sends ? end.send(out, 0) && end.send(out, 1)
                   : end.receive(back, 0);
    };
    Ended ended = runWith({out, back}, body);
    EXPECT_EQ(ended.error, "rank 1 in step 3: ended by signal 9 (Killed)");
    EXPECT_LT(ended.seconds, 10);
  }
}

TEST(Lanes, AreThoseOfTheProgram) {
  auto refusal = [](Lane known, Lane used) {
    auto body = [&](Transport &ranks, Error &error) {
      return ranks.rank() == 1 || End{ranks, error}.send(used, 0);
    };
    return runWith({known}, body).error;
  };
  const Lane lane = {0, 1, 1, 40, 2};
  EXPECT_EQ(refusal(lane, lane), "");
  EXPECT_EQ(refusal(lane, {0, 1, 0, 40, 2}),
            "rank 0: no lane 0 from rank 0 to 1 has 2 places of 40 bytes");
  EXPECT_EQ(refusal(lane, {0, 1, 1, 44, 2}),
            "rank 0: no lane 1 from rank 0 to 1 has 2 places of 44 bytes");
  EXPECT_EQ(refusal(lane, {0, 1, 1, 40, 3}),
            "rank 0: no lane 1 from rank 0 to 1 has 3 places of 40 bytes");
}

// Of many ranks only those have room that send, and nobody has touched it.
TEST(Lanes, RoomIsThatOfThoseThatSend) {
  constexpr RepriseAxis kAxes[] = {{"pp", 3, 0}, {"dp", 2, 0}};
  // Stage 0 sends to 1, and 1 to 2; back come half as many bytes.
  constexpr int32_t kSend = REPRISE_COLLECTIVE_SEND,
                    kReceive = REPRISE_COLLECTIVE_RECEIVE;
  std::vector<RepriseCollective> rows[3] = {
      {{kSend, 0, REPRISE_F32, 1, 0, 0, 0, 0, 3, 1000},
       {kReceive, 0, REPRISE_BF16, 1, 1, 0, 0, 0, 2, 1000}},
      {{kReceive, 0, REPRISE_F32, 0, 0, 0, 0, 0, 3, 1000},
       {kSend, 0, REPRISE_BF16, 0, 1, 0, 0, 0, 2, 1000},
       {kSend, 0, REPRISE_F32, 2, 0, 0, 0, 0, 1, 1000}},
      {{kReceive, 0, REPRISE_F32, 1, 0, 0, 0, 0, 1, 1000}}};
  RepriseModel models[3] = {};
  const RepriseModel *all[3];
  for (int stage = 0; stage < 3; ++stage) {
    RepriseModel &model = models[stage];
    model.stage = stage, model.axes = kAxes, model.numAxes = 2;
    model.collectives = rows[stage].data();
    model.numCollectives = int32_t(rows[stage].size());
    all[stage] = &model;
  }
  auto find = [&] {
    List<Lane> lanes;
    Error error;
    if (!findLanes(all, 3, REPRISE_TARGET_CPU, lanes, error))
      return std::string(error.text);
    std::string text;
    for (const Lane &lane : lanes)
      text += std::to_string(lane.from) + ">" + std::to_string(lane.to) + "." +
              std::to_string(lane.number) + ":" + std::to_string(lane.places) +
              "x" + std::to_string(lane.size) + " ";
    return text;
  };
  EXPECT_EQ(find(), "0>2.0:3x4000 1>3.0:3x4000 2>0.1:2x2000 3>1.1:2x2000 "
                    "2>4.0:1x4000 3>5.0:1x4000 ");
  auto refusal = [&](auto damage) {
    RepriseCollective before = rows[2][0];
    damage(rows[2][0]);
    std::string text = find();
    rows[2][0] = before;
    return text;
  };
  EXPECT_EQ(refusal([](RepriseCollective &row) { row.blockElements = 999; }),
            "damaged model: lane 0 from rank 2 to 4 has 1 places of 4000 bytes "
            "here, and 1 of 3996 there");
  EXPECT_EQ(refusal([](RepriseCollective &row) { row.peer = 3; }),
            "damaged model: a transfer has a lane 0 with 3 of 3 ranks, of 1 "
            "places with 1000 elements");
  EXPECT_EQ(refusal([](RepriseCollective &row) { row.lane = 35; }),
            "damaged model: a transfer has a lane 35 with 1 of 3 ranks, of 1 "
            "places with 1000 elements");
  EXPECT_EQ(refusal([](RepriseCollective &row) { row.blocks = 0; }),
            "damaged model: a transfer has a lane 0 with 1 of 3 ranks, of 0 "
            "places with 1000 elements");
}
