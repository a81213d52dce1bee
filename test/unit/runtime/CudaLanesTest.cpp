//===- CudaLanesTest.cpp - Parcels between GPUs that are none -------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks in a ring, between the stand-ins for NCCL and the driver: each sends
// activations to the next one and gradients to the one before.
//
//===----------------------------------------------------------------------===//

#include "RanksRun.h"

#include "runtime/device/CudaLanes.h"

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <vector>

using namespace reprise::runtime;
using namespace reprise::runtime::test;

namespace {

constexpr int kParcels = 3;
constexpr int64_t kElements = 30'011; // More than a ring of the stand-in has.
constexpr size_t kSize = size_t(kElements) * 4, kRoom = kSize + 4;

class CudaLanesRun : public OnStandIns {};

/// The tables of a rank: rows of what it sends and receives, with a further
/// type to the next one or without, and launches of what it receives.
struct Tables {
  Tables(int rank, int size, int places, bool hasFurther)
      : axis{"pp", size, 0} {
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    auto add = [&](int operation, int peer, int lane) {
      RepriseCollective row = {};
      row.operation = operation;
      row.elementType = REPRISE_F32;
      row.peer = peer;
      row.lane = lane;
      row.blocks = places;
      row.blockElements = kElements;
      rows.push_back(row);
    };
    add(REPRISE_COLLECTIVE_SEND, next, REPRISE_LANE_ACTIVATIONS);
    add(REPRISE_COLLECTIVE_SEND, before, REPRISE_LANE_GRADIENTS);
    add(REPRISE_COLLECTIVE_RECEIVE, before, REPRISE_LANE_ACTIVATIONS);
    add(REPRISE_COLLECTIVE_RECEIVE, next, REPRISE_LANE_GRADIENTS);
    if (hasFurther) {
      add(REPRISE_COLLECTIVE_SEND, next, REPRISE_LANE_FURTHER);
      add(REPRISE_COLLECTIVE_RECEIVE, before, REPRISE_LANE_FURTHER);
      sends.push_back(4);
      receives.push_back(5);
    }
    for (int callee : receives)
      for (int i = 0; i < kParcels; ++i) {
        launches.emplace_back();
        launches.back().kind = REPRISE_LAUNCH_COLLECTIVE;
        launches.back().callee = callee;
      }
    model.axes = &axis;
    model.numAxes = 1;
    model.collectives = rows.data();
    model.numCollectives = int(rows.size());
  }

  size_t countBuffers() const { return 1 + receives.size() * kParcels; }
  /// The row of the other rank that sends what `row` receives.
  int sentAs(int row) const { return row == 5 ? 4 : row - 2; }
  /// Where parcel `i` of the lane that is received in place `at` is put.
  int placeOf(size_t at, int i) const { return 1 + int(at) * kParcels + i; }

  LaneParcel parcel(int row, char *bytes) const {
    return {rows[size_t(row)].peer, rows[size_t(row)].lane, bytes, kSize,
            int(rows[size_t(row)].blocks)};
  }

  std::vector<int> sends = {0, 1}, receives = {2, 3}; ///< rows
  RepriseAxis axis;
  std::vector<RepriseCollective> rows;
  std::vector<RepriseLaunch> launches;
  RepriseModel model = {};
};

/// A rank with its GPU and its lanes.
struct Rank {
  Rank(Transport &transport, int places, bool hasFurther)
      : number(transport.rank()), size(transport.size()),
        tables(number, size, places, hasFurther), nccl(device),
        lanes(tables.model, device, nccl) {}

  bool open(Transport &transport, Error &error) {
    ConnectionBlocks blocks;
    if (!device.open(0, number, error) || !lanes.findLanes(number, error) ||
        !shareBlocks(1, lanes.countPairs(), device.info().multiprocessors,
                     blocks, error))
      return false;
    nccl.setBlocks(blocks);
    return nccl.connect(transport, error) && lanes.connect(transport, error) &&
           device.allocate(int64_t(tables.countBuffers()) * int64_t(kRoom),
                           error);
  }
  char *at(int place) const {
    return reinterpret_cast<char *>(device.base() + size_t(place) * kRoom);
  }
  bool fill(int place, int byte, Error &error) {
    return device.check(
        device.driver().fillBytes(device.base() + CudaAddress(place) * kRoom,
                                  static_cast<unsigned char>(byte), kSize,
                                  device.stream()),
        "a fill", error);
  }

  int number, size;
  Tables tables;
  Gpu device;
  Nccl nccl;
  CudaLanes lanes;
};

/// A byte of parcel `i` of a lane.
int byteOf(int from, int lane, int i) { return from * 50 + lane * 20 + i + 1; }

/// Begins a sequence: sends all parcels from one buffer, one after another, and
/// then receives all, lane by lane, from the last one on.
bool beginSequence(Rank &rank, Error &error) {
  CudaLanes &lanes = rank.lanes;
  const Tables &tables = rank.tables;
  lanes.clear();
  if (!lanes.expect(tables.launches.data(), int(tables.launches.size()), 1,
                    error) ||
      !lanes.begin(error))
    return false;
  for (int i = 0; i < kParcels; ++i)
    for (int row : tables.sends)
      if (!rank.fill(0, byteOf(rank.number, row, i), error) ||
          !lanes.send("a send", tables.parcel(row, rank.at(0)), error) ||
          !rank.fill(0, 0xEE, error))
        return false;
  for (size_t at = tables.receives.size(); at-- > 0;)
    for (int i = 0; i < kParcels; ++i)
      if (!lanes.receive("a receive",
                         tables.parcel(tables.receives[at],
                                       rank.at(tables.placeOf(at, i))),
                         error))
        return false;
  return lanes.end(error);
}

bool checkSequence(Rank &rank, Error &error) {
  const Tables &tables = rank.tables;
  std::vector<char> all(tables.countBuffers() * kRoom);
  if (!rank.device.synchronize("a sequence", error) ||
      !rank.device.download(0, all.data(), int64_t(all.size()), error))
    return false;
  for (size_t at = 0; at < tables.receives.size(); ++at)
    for (int i = 0; i < kParcels; ++i) {
      int row = tables.receives[at], from = tables.rows[size_t(row)].peer;
      const char *begin = all.data() + size_t(tables.placeOf(at, i)) * kRoom;
      char expected = char(byteOf(from, tables.sentAs(row), i));
      if (!std::all_of(begin, begin + kSize,
                       [&](char byte) { return byte == expected; }))
        return error.set("parcel %d of lane %d from rank %d differs", i,
                         tables.rows[size_t(row)].lane, from);
    }
  return true;
}

Ended runLanes(int numRanks, int places,
               std::function<bool(Rank &, Error &)> body, int64_t seconds = 600,
               bool hasFurther = false) {
  RankSettings settings;
  settings.numRanks = numRanks;
  settings.operationSeconds = seconds;
  return run(settings, [&](Transport &transport, Error &error) {
    Rank rank(transport, places, hasFurther);
    return rank.open(transport, error) && body(rank, error) &&
           rank.nccl.disconnect(error);
  });
}

bool runTwice(Rank &rank, Error &error) {
  return beginSequence(rank, error) && checkSequence(rank, error) &&
         beginSequence(rank, error) && checkSequence(rank, error);
}

} // namespace

// Whoever sends goes on, in whatever order the other receives.
TEST_F(CudaLanesRun, SendsDoNotWait) {
  for (auto [variable, word] : {std::pair("REPRISE_SIMULATOR_LANDING", "late"),
                                {"REPRISE_STANDIN_STREAMS", "ahead"},
                                {"REPRISE_SIMULATOR_LANDING", "once"}})
    for (int numRanks : {2, 3}) {
      setenv(variable, word, 1);
      for (bool hasFurther : {false, true}) {
        Ended ended =
            runLanes(numRanks, kParcels, runTwice, /*seconds=*/600, hasFurther);
        EXPECT_EQ(ended.status, 0) << word << " " << ended.error;
      }
    }
}

// Two are on their way from the places, and one has come.
TEST_F(CudaLanesRun, FullPlacesWait) {
  Ended ended = runLanes(2, kParcels - 1, runTwice);
  EXPECT_EQ(ended.status, 0) << ended.error;
  ended = runLanes(2, kParcels - 2, runTwice, /*seconds=*/1);
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.error.find("has not ended what was begun for 1 s"),
            std::string::npos)
      << ended.error;
}

TEST_F(CudaLanesRun, AreCaptured) {
  for (const char *streams : {"late", "ahead"}) {
    setenv("REPRISE_STANDIN_STREAMS", streams, 1);
    Ended ended = runLanes(3, kParcels, [](Rank &rank, Error &error) {
      const CudaDriver &driver = rank.device.driver();
      CudaGraph graph = nullptr;
      CudaGraphExec ready = nullptr;
      if (driver.captureBegin(rank.device.stream(), kCudaCaptureRelaxed) != 0 ||
          !beginSequence(rank, error) ||
          !rank.device.check(driver.captureEnd(rank.device.stream(), &graph),
                             "end", error) ||
          driver.graphInstantiate(&ready, graph, 0) != 0)
        return error.set("no graph: %s", Error(error).text);
      for (int i = 0; i < 3; ++i)
        if (driver.graphLaunch(ready, rank.device.stream()) != 0 ||
            !checkSequence(rank, error))
          return false;
      driver.graphExecDestroy(ready);
      driver.graphDestroy(graph);
      return true;
    });
    EXPECT_EQ(ended.status, 0) << ended.error;
  }
}

// A stream that is left waiting within a graph is no graph.
TEST_F(CudaLanesRun, AGraphHasAnEnd) {
  Ended ended = runLanes(2, kParcels, [](Rank &rank, Error &error) {
    const CudaDriver &driver = rank.device.driver();
    const Tables &tables = rank.tables;
    CudaGraph graph = nullptr;
    rank.lanes.clear();
    return rank.device.check(
               driver.captureBegin(rank.device.stream(), kCudaCaptureRelaxed),
               "begin", error) &&
           rank.lanes.send("a send", tables.parcel(0, rank.at(0)), error) &&
           rank.device.check(driver.captureEnd(rank.device.stream(), &graph),
                             "end", error);
  });
  EXPECT_NE(ended.error.find("end: CUDA_ERROR_STREAM_CAPTURE_UNJOINED (904)"),
            std::string::npos)
      << ended.error;
}

// One receive more than there are launches of.
TEST_F(CudaLanesRun, ASequenceHasAsManyParcelsAsLaunches) {
  Ended ended = runLanes(2, kParcels, [](Rank &rank, Error &error) {
    return beginSequence(rank, error) &&
           rank.lanes.receive("hidden", rank.tables.parcel(2, rank.at(1)),
                              error);
  });
  EXPECT_NE(ended.error.find("damaged model: hidden is one parcel more than "
                             "the 3 that its sequence has"),
            std::string::npos)
      << ended.error;
}

// Of the four pairs of each rank, two greet as the first.
TEST_F(CudaLanesRun, AnErrorOfAPairEndsAllRanks) {
  setenv("REPRISE_STANDIN_NETWORK", "error:1:9", 1);
  Ended ended = runLanes(3, kParcels, runTwice);
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.error.find("NCCL: unhandled system error: rank 1: the "
                             "network fails, as it is told"),
            std::string::npos)
      << ended.error;
  EXPECT_LT(ended.seconds, 10);
}
