//===- FetchTest.cpp - What a micro-kernel fetches while it computes ------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/compute/Fetch.h"

#include <gtest/gtest.h>
#include <map>

using namespace reprise::runtime;

/// Rows of bytes that begin nowhere: they are only asked for.
static FetchRegion makeRegion(int64_t rows, int64_t bytes) {
  return {nullptr, /*stride=*/10000, rows, bytes};
}

TEST(Fetch, CallsAskForEachPieceOnce) {
  for (int64_t rows : {1, 31, 32, 100, 256})
    for (int64_t bytes : {4, 128, 132, 1024})
      for (int64_t steps : {16, 100, 256})
        for (int64_t pace : {4, 8, 16}) {
          FetchRegion region = makeRegion(rows, bytes);
          std::map<int64_t, int> asked;
          FetchCalls all(region, steps, pace, /*first=*/0);
          for (int64_t i = 0, e = region.countCalls(steps, pace); i < e; ++i) {
            EXPECT_FALSE(all.isDone());
            Fetch call = all.getNext();
            Fetch alone = FetchCalls(region, steps, pace, i).getNext();
            EXPECT_EQ(call.data, alone.data);
            EXPECT_EQ(call.rows, alone.rows);
            EXPECT_EQ(call.firstRow, alone.firstRow);
            EXPECT_EQ(call.pace, pace);
            EXPECT_LE(call.rows * pace, steps);
            for (int64_t row = 0; row < call.rows; ++row)
              ++asked[reinterpret_cast<int64_t>(call.data) + row * call.stride];
          }
          EXPECT_TRUE(all.isDone());
          int64_t pieces = (bytes + Fetch::kBytes - 1) / Fetch::kBytes;
          EXPECT_EQ(int64_t(asked.size()), rows * pieces);
          for (auto [at, times] : asked) {
            EXPECT_EQ(times, 1);
            EXPECT_LT(at / region.stride, rows);
            EXPECT_LT(at % region.stride, bytes);
          }
        }
  // A call too short for one row asks for none.
  EXPECT_EQ(makeRegion(5, 128).countCalls(3, 4), 0);
}

TEST(Fetch, CallsAfterTheLastPieceAskForNothing) {
  // Two columns of 100 rows: four calls of up to 25 rows each.
  const char memory[1] = {};
  FetchCalls calls({memory, /*stride=*/1000, /*rows=*/100, /*bytes=*/200},
                   /*steps=*/100, /*most=*/8);
  for (int i = 0; i < 8; ++i) {
    Fetch call = calls.getNext();
    EXPECT_EQ(call.data, memory + i % 4 * 25000 + i / 4 * Fetch::kBytes);
    EXPECT_EQ(call.rows, 25);
    EXPECT_EQ(call.pace, 4);
  }
  EXPECT_EQ(calls.getNext().data, nullptr);
  EXPECT_EQ(FetchCalls({}, 100, 8).getNext().data, nullptr);
}

TEST(Fetch, PaceIsTheSlowestThatIsEnough) {
  // 256 rows: 16 of them in a call of 256 steps at a pace of 16, 64 at 4.
  FetchRegion region = makeRegion(256, 128);
  EXPECT_EQ(region.choosePace(256, 16), 16);
  EXPECT_EQ(region.choosePace(256, 15), 8);
  EXPECT_EQ(region.choosePace(256, 7), 4);
  // A call must have time for a row.
  EXPECT_EQ(region.choosePace(8, 1000), 8);
  EXPECT_EQ(region.choosePace(3, 1000), 4);
  // Not enough at any: as many as there are.
  EXPECT_EQ(region.choosePace(256, 1), 4);
  EXPECT_EQ(makeRegion(0, 0).choosePace(256, 0), 16);
}
