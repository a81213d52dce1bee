//===- ExchangeTimesTest.cpp - What ranks exchange, by itself -------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/ExchangeTimes.h"
#include "runtime/base/Hash.h"
#include "runtime/device/CollectiveLaunch.h"
#include "runtime/device/CpuDevice.h"

#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <vector>

using namespace reprise::runtime;

namespace {
/// A model of four ranks with one launch, whose buffers have places of 4096
/// bytes each.
struct OneLaunch {
  RepriseAxis axis = {"dp", 4, 0};
  RepriseCollective row = {};
  std::vector<RepriseBuffer> buffers;
  RepriseLaunch launch = {};
  RepriseModel model = {};

  OneLaunch(int32_t operation, std::vector<int64_t> bytes) {
    for (int64_t each : bytes)
      buffers.push_back({int64_t(4096 * buffers.size()), each});
    row.operation = operation;
    row.elementType = REPRISE_F32;
    launch.kind = REPRISE_LAUNCH_BEGIN;
    launch.numBuffers = int32_t(bytes.size());
    launch.name = "it";
    model.arenaBytes = int64_t(4096 * bytes.size());
    model.axes = &axis;
    model.numAxes = 1;
  }
};

struct Said {
  std::string name;
  int64_t messages, bytes;
  bool operator==(const Said &other) const {
    return name == other.name && messages == other.messages &&
           bytes == other.bytes;
  }
};

/// Where a test fails.
std::ostream &operator<<(std::ostream &os, const Said &said) {
  return os << said.name << " in " << said.messages << " messages, "
            << said.bytes;
}
} // namespace

/// What a launch exchanges, and what is left of it in a sixteenth; both can be
/// run.
static std::vector<Said> shrinkOnce(OneLaunch &of) {
  of.model.collectives = &of.row;
  of.model.buffers = of.buffers.data();
  std::vector<Said> all;
  LoneLaunch lone;
  EXPECT_TRUE(lone.take(of.model, of.launch));
  for (int i = 0; i < 2; ++i) {
    RepriseModel alone = lone.modelOf(of.model);
    Exchange exchange;
    Error error;
    EXPECT_TRUE(checkCollective(alone, lone.launch, 1, error)) << error.text;
    EXPECT_TRUE(findExchange(alone, lone.launch, 1, exchange));
    EXPECT_EQ(exchange.group.size, 4);
    all.push_back({exchange.name, exchange.messages, exchange.sentBytes});
    if (i == 0 && !lone.shrink(4, 16))
      break;
  }
  return all;
}

// The bytes that a rank sends: 3 of 4 parts, and of whole sums twice as many.
TEST(ExchangeTimes, APartOfEachExchange) {
  OneLaunch sums(REPRISE_COLLECTIVE_ALL_REDUCE, {64, 2048, 64});
  EXPECT_EQ(shrinkOnce(sums), (std::vector<Said>{{"all_reduce", 6, 2 * 1584},
                                                 {"all_reduce", 6, 2 * 96}}));
  OneLaunch few(REPRISE_COLLECTIVE_ALL_REDUCE, {32, 64});
  EXPECT_EQ(shrinkOnce(few), (std::vector<Said>{{"all_reduce", 6, 2 * 24},
                                                {"all_reduce", 6, 2 * 12}}));
  // Of groups in two runs there are two terms of each sum.
  OneLaunch runs(REPRISE_COLLECTIVE_ALL_REDUCE, {64, 2048, 64, 2048, 128});
  runs.row.blocks = 5;
  EXPECT_EQ(shrinkOnce(runs), (std::vector<Said>{{"all_reduce", 6, 2 * 2376},
                                                 {"all_reduce", 6, 2 * 144}}));
  runs.row.operation = REPRISE_COLLECTIVE_REDUCE_SHARES;
  EXPECT_EQ(shrinkOnce(runs), (std::vector<Said>{{"reduce_shares", 3, 3168},
                                                 {"reduce_shares", 3, 192}}));
  OneLaunch gather(REPRISE_COLLECTIVE_ALL_GATHER, {512, 2048});
  gather.row.blocks = 8, gather.row.blockElements = 16;
  EXPECT_EQ(shrinkOnce(gather), (std::vector<Said>{{"all_gather", 3, 1536},
                                                   {"all_gather", 3, 96}}));
  OneLaunch scatter(REPRISE_COLLECTIVE_REDUCE_SCATTER, {2048, 512, 64});
  scatter.row.blocks = 8, scatter.row.blockElements = 16;
  EXPECT_EQ(shrinkOnce(scatter),
            (std::vector<Said>{{"reduce_scatter", 3, 1536},
                               {"reduce_scatter", 3, 96}}));
  OneLaunch shares(REPRISE_COLLECTIVE_REDUCE_SHARES, {2048, 1024, 64});
  EXPECT_EQ(shrinkOnce(shares), (std::vector<Said>{{"reduce_shares", 3, 2304},
                                                   {"reduce_shares", 3, 96}}));
  OneLaunch parts(REPRISE_COLLECTIVE_GATHER_SHARES, {2048, 2048, 2048});
  EXPECT_EQ(shrinkOnce(parts), (std::vector<Said>{{"gather_shares", 3, 1536},
                                                  {"gather_shares", 3, 96}}));
}

/// The offsets of rows that four ranks are dealt; none if they are not.
static std::vector<int32_t> dealRows(OneLaunch &rows) {
  Arena arena;
  Error error;
  LoneLaunch lone;
  if (!arena.map(rows.model.arenaBytes, error) ||
      !lone.take(rows.model, rows.launch) || !lone.fillOffsets(4, arena, error))
    return {};
  const int32_t *table = arena.at<int32_t>(rows.buffers[1]);
  return {table, table + 4 * (rows.row.blocks + 1)};
}

// Rows for 8 experts, of 4 elements; offsets are always as many.
TEST(ExchangeTimes, RowsAreDealtEvenly) {
  OneLaunch offsets(REPRISE_COLLECTIVE_GATHER_OFFSETS, {36, 144, 12});
  offsets.row.blocks = 8, offsets.row.blockElements = 1;
  EXPECT_EQ(shrinkOnce(offsets),
            (std::vector<Said>{{"gather_offsets", 3, 108}}));
  OneLaunch rows(REPRISE_COLLECTIVE_SEND_ROWS, {1024, 144, 2048});
  rows.row.blocks = 8, rows.row.blockElements = 4;
  EXPECT_EQ(shrinkOnce(rows),
            (std::vector<Said>{{"send_rows", 3, 768}, {"send_rows", 3, 96}}));
  const std::vector<int32_t> table = dealRows(rows);
  ASSERT_EQ(table.size(), size_t(4 * 9));
  for (int32_t rank = 0; rank < 4; ++rank)
    for (int32_t expert = 0; expert <= 8; ++expert)
      EXPECT_EQ(table[rank * 9 + expert], expert * 8); // 64 rows of a rank.
}

// Fewer rows than experts, of an odd number: those of four ranks are sent, and
// no rank gets more than it has room for.
TEST(ExchangeTimes, FewRowsForManyExperts) {
  OneLaunch rows(REPRISE_COLLECTIVE_SEND_ROWS, {10 * 16, 4 * 17 * 4, 10 * 16});
  rows.row.blocks = 16, rows.row.blockElements = 4;
  shrinkOnce(rows);
  const std::vector<int32_t> table = dealRows(rows);
  ASSERT_EQ(table.size(), size_t(4 * 17));
  for (int32_t rank = 0; rank < 4; ++rank)
    for (int32_t owner = 0; owner <= 4; ++owner)
      EXPECT_EQ(table[rank * 17 + owner * 4], owner * 2);
}

// Sums of nothing are of a damaged program; a part of them has two buffers.
TEST(ExchangeTimes, SumsHaveABuffer) {
  for (int32_t operation :
       {REPRISE_COLLECTIVE_ALL_REDUCE, REPRISE_COLLECTIVE_REDUCE_SHARES}) {
    OneLaunch sum(operation, {64});
    sum.model.collectives = &sum.row;
    sum.model.buffers = sum.buffers.data();
    Error error;
    EXPECT_FALSE(checkCollective(sum.model, sum.launch, 1, error));
    EXPECT_EQ(std::string(error.text).find("damaged model: it has a workspace"),
              0u)
        << error.text;
  }
}

// So are terms of other sizes, or of another number than groups have runs.
TEST(ExchangeTimes, SumsHaveTheirTerms) {
  for (const std::vector<int64_t> &bytes :
       {std::vector<int64_t>{64, 96, 128}, {64, 64, 64, 128}}) {
    OneLaunch sum(REPRISE_COLLECTIVE_ALL_REDUCE, bytes);
    sum.row.blocks = 3;
    sum.model.collectives = &sum.row;
    sum.model.buffers = sum.buffers.data();
    Error error;
    EXPECT_FALSE(checkCollective(sum.model, sum.launch, 1, error));
    EXPECT_EQ(std::string(error.text),
              "damaged model: it needs 2 terms of equal bytes for each sum, "
              "with 3 groups of a rank, but has " +
                  std::to_string(bytes.size() - 1));
  }
}

// Of a parcel for another stage nothing is said: it needs both of them.
TEST(ExchangeTimes, ParcelsAreNone) {
  OneLaunch send(REPRISE_COLLECTIVE_SEND, {64});
  send.model.collectives = &send.row;
  send.model.buffers = send.buffers.data();
  Exchange exchange;
  EXPECT_FALSE(findExchange(send.model, send.launch, 1, exchange));
}

static ExchangeTime timeOf(int64_t bytes, double seconds) {
  return {"all_gather", {0, 1, 4}, 4, false, true, 3, bytes, seconds};
}

TEST(ExchangeTimes, ALineThroughTwoTimes) {
  LinkRates rates = ratesOf(timeOf(100, 3.5), timeOf(1100, 8.5));
  EXPECT_DOUBLE_EQ(rates.secondsPerMessage, 1);
  EXPECT_DOUBLE_EQ(rates.bytesPerSecond, 200);
}

// Noise: more bytes in less time, or so much more that nothing is left.
TEST(ExchangeTimes, RatesAreAboveZero) {
  for (double seconds : {0.5, 1.0, 1e6}) {
    LinkRates rates = ratesOf(timeOf(100, 1), timeOf(1100, seconds));
    EXPECT_GT(rates.secondsPerMessage, 0) << seconds;
    EXPECT_GT(rates.bytesPerSecond, 0) << seconds;
    EXPECT_LT(rates.bytesPerSecond, 1e6) << seconds;
  }
}

//===----------------------------------------------------------------------===//
// Ranks and machines
//===----------------------------------------------------------------------===//

namespace {
/// Rank 0, whose others answer at once. What they receive is what it sends, but
/// for the first number of a parcel that asks for machines.
class Answers final : public Transport {
public:
  explicit Answers(std::vector<int> machines)
      : Transport(0, int(machines.size())), machines(std::move(machines)) {}
  bool haveOverlapped = false;

private:
  bool move(const char *what, Patience, const Parcel *sends, int,
            const Parcel *receives, int numReceives, Error &) override {
    for (int i = 0; i < numReceives; ++i) {
      const Parcel &to = receives[i];
      for (int j = 0; j < i; ++j)
        haveOverlapped |= to.bytes < receives[j].bytes + receives[j].size &&
                          receives[j].bytes < to.bytes + to.size;
      memcpy(to.bytes, sends[0].bytes, to.size);
      if (!strcmp(what, "the machines of ranks")) {
        uint64_t machine;
        memcpy(&machine, to.bytes, sizeof(machine));
        machine += uint64_t(machines[size_t(to.rank)]);
        memcpy(to.bytes, &machine, sizeof(machine));
      }
    }
    return true;
  }

  const std::vector<int> machines; ///< Rank 0 is on machine 0.
};

struct Layout {
  int64_t ranksPerMachine;
  bool areScattered;
  bool areStagesAcross;
};
} // namespace

/// What is said of ranks on these machines, of which some with neighbouring
/// numbers are stages of one pipeline. What all of them send has places.
static Layout measure(const std::vector<int> &machines, int64_t stages = 2) {
  const RepriseAxis axes[] = {{"dp", int64_t(machines.size()) / stages, 0},
                              {"pp", stages, 0}};
  RepriseModel model = {};
  model.axes = axes;
  model.numAxes = 2;
  model.arenaBytes = 1 << 14;
  Arena arena;
  ThreadPool pool;
  Answers ranks(machines);
  CpuDevice device(model, arena, pool, ranks, {3, true});
  ExchangeTimes times;
  Error error;
  EXPECT_TRUE(arena.map(model.arenaBytes, error)) << error.text;
  EXPECT_TRUE(times.measure(model, device, arena, ranks, error)) << error.text;
  EXPECT_EQ(times.times.size(), 2u);
  EXPECT_FALSE(ranks.haveOverlapped);
  return {times.ranksPerMachine, times.areScattered,
          times.times.size() > 0 && times.times[0].isAcross};
}

// Eight or less on one machine are as many as a table takes for granted.
TEST(ExchangeTimes, RanksOfAMachine) {
  EXPECT_EQ(measure(std::vector<int>(4, 0)).ranksPerMachine, 0);
  EXPECT_EQ(measure(std::vector<int>(8, 0)).ranksPerMachine, 0);
  EXPECT_EQ(measure(std::vector<int>(12, 0)).ranksPerMachine, 12);
  EXPECT_EQ(measure({0, 0, 1, 1}).ranksPerMachine, 2);
  EXPECT_EQ(measure({0, 0, 1, 1}, /*stages=*/4).ranksPerMachine, 2);
}

// Ranks 0 and 1 are on one machine, but 2 and 3 are not.
TEST(ExchangeTimes, AnAxisIsAcrossForAll) {
  EXPECT_FALSE(measure({0, 0, 1, 1, 2, 2}).areStagesAcross);
  EXPECT_TRUE(measure({0, 0, 0, 1, 1, 1}).areStagesAcross);
}

TEST(ExchangeTimes, ScatteredRanks) {
  EXPECT_FALSE(measure({0, 0, 0, 0}).areScattered);
  EXPECT_FALSE(measure({0, 0, 1, 1, 2, 2}).areScattered);
  EXPECT_TRUE(measure({0, 1, 0, 1}).areScattered);
  EXPECT_TRUE(measure({0, 0, 1, 1, 0, 0}).areScattered);
  EXPECT_TRUE(measure({0, 0, 1, 1, 1, 1}).areScattered);
}

// They go by the name of the host.
TEST(ExchangeTimes, MachinesWithoutABootId) {
  const uint64_t named = findMachine("/dev/null");
  EXPECT_EQ(named, findMachine("/none"));
  EXPECT_NE(named, findMachine(kBootId));
  EXPECT_NE(named, hashOf(""));
}
