//===- NcclTest.cpp - Bytes between GPUs that are none ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The engine against the stand-ins for NCCL and the driver, as ranks that are
// processes of this machine.
//
//===----------------------------------------------------------------------===//

#include "RanksRun.h"

#include "runtime/device/Nccl.h"
#include "runtime/device/NcclSums.h"

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <unistd.h>
#include <vector>

using namespace reprise::runtime;
using namespace reprise::runtime::test;

namespace {

class NcclRun : public OnStandIns {};

/// A rank with its GPU, of which it has some memory, and the others.
struct Rank {
  explicit Rank(Transport &transport)
      : number(transport.rank()), size(transport.size()), nccl(device) {}

  static constexpr int64_t kBytes = 4 << 20;

  bool open(Transport &transport, Error &error) {
    return device.open(0, number, error) && nccl.connect(transport, error) &&
           device.allocate(kBytes, error);
  }
  char *at(size_t offset) const {
    return reinterpret_cast<char *>(device.base() + offset);
  }
  bool send(int peer, size_t offset, size_t bytes, Error &error) {
    Parcel parcel = {peer, at(offset), bytes};
    return nccl.exchange("a send", &parcel, 1, nullptr, 0, error);
  }
  bool receive(int peer, size_t offset, size_t bytes, Error &error) {
    Parcel parcel = {peer, at(offset), bytes};
    return nccl.exchange("a receive", nullptr, 0, &parcel, 1, error);
  }
  bool wait(Error &error) { return device.synchronize("a test", error); }

  int number, size;
  Gpu device;
  Nccl nccl;
};

/// A byte of parcel `i` from a rank to another.
char byteOf(int from, int to, int i) {
  return char(from * 50 + to * 7 + i + 1);
}

/// All ranks at once; what ended them.
Ended runGpus(int numRanks, std::function<bool(Rank &, Error &)> body,
              int64_t seconds = 600) {
  RankSettings settings;
  settings.numRanks = numRanks;
  settings.operationSeconds = seconds;
  return run(settings, [&](Transport &transport, Error &error) {
    Rank rank(transport);
    return rank.open(transport, error) && body(rank, error) &&
           rank.nccl.disconnect(error);
  });
}

/// Sizes of three parcels between each two ranks: one is empty, one larger than
/// a ring.
constexpr size_t kSizes[] = {1, 0, 100'003};
constexpr size_t kRoom = 100'004;

/// Begins one exchange of all with all. Sends lie first, then what comes.
bool beginCrossing(Rank &rank, Error &error) {
  const CudaDriver &driver = rank.device.driver();
  std::vector<Parcel> sends, receives;
  for (int peer = 0; peer < rank.size; ++peer)
    for (int i = 0; i < 3 && peer != rank.number; ++i) {
      size_t place = size_t(peer * 3 + i) * kRoom;
      sends.push_back({peer, rank.at(place), kSizes[i]});
      receives.push_back(
          {peer, rank.at(place + size_t(rank.size * 3) * kRoom), kSizes[i]});
      if (driver.fillBytes(
              rank.device.base() + place,
              static_cast<unsigned char>(byteOf(rank.number, peer, i)),
              kSizes[i], rank.device.stream()) != 0)
        return error.set("a fill failed");
    }
  if (!rank.nccl.exchange("a test", sends.data(), int(sends.size()),
                          receives.data(), int(receives.size()), error))
    return false;
  // What is sent may be written over, by work behind it.
  return driver.fillBytes(rank.device.base(), 0xEE,
                          size_t(rank.size * 3) * kRoom,
                          rank.device.stream()) == 0 ||
         error.set("a fill failed");
}

bool checkCrossing(Rank &rank, Error &error) {
  std::vector<char> all(size_t(rank.size * 6) * kRoom);
  if (!rank.wait(error) ||
      !rank.device.download(0, all.data(), int64_t(all.size()), error))
    return false;
  for (int peer = 0; peer < rank.size; ++peer)
    for (int i = 0; i < 3 && peer != rank.number; ++i)
      for (size_t at = 0; at < kSizes[i]; ++at)
        if (all[size_t((rank.size + peer) * 3 + i) * kRoom + at] !=
            byteOf(peer, rank.number, i))
          return error.set("byte %zu of parcel %d from %d differs", at, i,
                           peer);
  return true;
}

} // namespace

TEST_F(NcclRun, ParcelsCross) {
  for (const char *landing : {"late", "once"})
    for (int numRanks : {2, 3, 5}) {
      setenv("REPRISE_SIMULATOR_LANDING", landing, 1);
      Ended ended = runGpus(numRanks, [](Rank &rank, Error &error) {
        return beginCrossing(rank, error) && checkCrossing(rank, error) &&
               beginCrossing(rank, error) && checkCrossing(rank, error);
      });
      EXPECT_EQ(ended.status, 0) << ended.error;
    }
}

/// What `begin` begins, as a graph.
static bool capture(Rank &rank, std::function<bool()> begin,
                    CudaGraphExec &ready, Error &error) {
  const CudaDriver &driver = rank.device.driver();
  CudaGraph graph = nullptr;
  if (driver.captureBegin(rank.device.stream(), kCudaCaptureRelaxed) != 0 ||
      !begin() || driver.captureEnd(rank.device.stream(), &graph) != 0 ||
      driver.graphInstantiate(&ready, graph, 0) != 0 ||
      driver.graphDestroy(graph) != 0)
    return error.set("no graph: %s", Error(error).text);
  return true;
}

TEST_F(NcclRun, AreCaptured) {
  Ended ended = runGpus(3, [](Rank &rank, Error &error) {
    const CudaDriver &driver = rank.device.driver();
    CudaGraphExec ready = nullptr;
    if (!capture(
            rank, [&] { return beginCrossing(rank, error); }, ready, error))
      return false;
    for (int i = 0; i < 3; ++i) {
      std::vector<char> zeros(Rank::kBytes);
      if (!rank.device.upload(0, zeros.data(), Rank::kBytes, error) ||
          driver.graphLaunch(ready, rank.device.stream()) != 0 ||
          !checkCrossing(rank, error))
        return false;
    }
    driver.graphExecDestroy(ready);
    return true;
  });
  EXPECT_EQ(ended.status, 0) << ended.error;
}

// As long as a graph has a part of a connection, that does not end.
TEST_F(NcclRun, AGraphHoldsItsConnection) {
  Ended ended = runGpus(
      2,
      [](Rank &rank, Error &error) {
        CudaGraphExec ready = nullptr;
        if (!capture(
                rank, [&] { return beginCrossing(rank, error); }, ready, error))
          return false;
        Error why;
        const bool hasEnded = rank.nccl.disconnect(why);
        rank.device.driver().graphExecDestroy(ready);
        rank.nccl.giveUp();
        return (!hasEnded && strstr(why.text, "has not ended")) ||
               error.set("disconnecting has ended with '%s'", why.text);
      },
      /*seconds=*/1);
  EXPECT_EQ(ended.status, 0) << ended.error;
}

// What runs is of two connections, of which neither comes to its end before the
// other one is given up.
TEST_F(NcclRun, ConnectionsAreGivenUpAtATime) {
  RankSettings settings;
  settings.numRanks = 2;
  for (bool isGraph : {true, false}) {
    Ended ended = run(settings, [&](Transport &transport, Error &error) {
      Rank rank(transport);
      if (!rank.open(transport, error) ||
          !rank.nccl.connectBeside(transport, error))
        return false;
      if (rank.number == 1)
        return true;
      auto begin = [&] {
        const CudaDriver &driver = rank.device.driver();
        CudaEvent end = nullptr;
        bool good = rank.nccl.goBeside("a test", error) &&
                    rank.send(1, 0, 8, error) &&
                    driver.eventCreate(&end, kCudaNoTiming) == 0 &&
                    driver.eventRecord(end, rank.nccl.stream()) == 0;
        rank.nccl.comeBack();
        return good && rank.send(1, 0, 8, error) &&
               driver.streamWait(rank.device.stream(), end, 0) == 0;
      };
      const CudaDriver &driver = rank.device.driver();
      CudaGraphExec ready = nullptr;
      if (isGraph ? !capture(rank, begin, ready, error) ||
                        driver.graphLaunch(ready, rank.device.stream()) != 0 ||
                        driver.graphExecDestroy(ready) != 0
                  : !begin() || !begin())
        return false;
      rank.nccl.giveUp();
      return driver.streamSynchronize(rank.device.stream()) == 0;
    });
    EXPECT_EQ(ended.status, 0) << ended.error;
    EXPECT_LT(ended.seconds, 10);
  }
}

/// Element `i` of what a rank adds.
static float termOf(int rank, int64_t i) {
  return 1.0f / float(1 + rank * 37 + i % 101);
}

/// Whether elements of the GPU are the sums over all ranks, from `place` on
/// with those from `first` on of the terms.
static bool haveSums(Rank &rank, size_t place, int64_t first, int64_t count,
                     Error &error) {
  std::vector<float> values(static_cast<size_t>(count));
  if (!rank.wait(error) ||
      !rank.device.download(int64_t(place), values.data(), count * 4, error))
    return false;
  for (int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (int other = 0; other < rank.size; ++other)
      sum += double(termOf(other, first + i));
    if (!(std::fabs(double(values[size_t(i)]) - sum) <= 1e-6 * sum))
      return error.set("element %d is %g in place of %g", int(i),
                       double(values[size_t(i)]), sum);
  }
  return true;
}

/// All three sums of 3 ranks, of 40,000 elements each.
static bool sumsAreOfAll(Rank &rank, NcclSums &sums, Error &error) {
  constexpr int64_t kCount = 40'000;
  const Group all = {0, 1, 3};
  std::vector<float> terms(static_cast<size_t>(kCount));
  for (int64_t i = 0; i < kCount; ++i)
    terms[size_t(i)] = termOf(rank.number, i);
  auto give = [&] {
    return rank.device.upload(0, terms.data(), kCount * 4, error);
  };
  const Span spans[] = {{rank.at(0), 17}, {rank.at(17 * 4), kCount - 17}};
  if (!give() || !sums.allReduce(all, "all", spans, 2, error) ||
      !haveSums(rank, 0, 0, kCount, error))
    return false;
  // Of 3 x 5 elements in each of two blocks a rank has 2 x 5.
  constexpr size_t kPart = kCount * 4;
  const int64_t own = rank.number;
  if (!give() ||
      !sums.reduceScatter(all, "parts", {2, 5}, rank.at(0), rank.at(kPart),
                          error) ||
      !haveSums(rank, kPart, own * 5, 5, error) ||
      !haveSums(rank, kPart + 20, 15 + own * 5, 5, error))
    return false;
  const Span whole = {rank.at(0), kCount};
  const Share share = shareOf(kCount, rank.number, 3);
  return give() && sums.reduceShares(all, "shares", &whole, 1, error) &&
         haveSums(rank, size_t(share.begin) * 4, share.begin,
                  share.end - share.begin, error);
}

// What some of them sum, others may sum, too, and need the same bits.
TEST_F(NcclRun, LibrarySumsOverAllRanks) {
  for (const char *landing : {"late", "once"}) {
    setenv("REPRISE_SIMULATOR_LANDING", landing, 1);
    RankSettings settings;
    settings.numRanks = 3;
    Ended ended = run(settings, [&](Transport &transport, Error &error) {
      Rank rank(transport);
      NcclSums sums(rank.nccl);
      if (!rank.open(transport, error) ||
          !rank.nccl.greetSums(Nccl::kAll, error))
        return false;
      if (!sums.makes({0, 1, 3}, Number::F32) ||
          sums.makes({0, 1, 3}, Number::BF16) ||
          sums.makes({0, 2, 2}, Number::F32))
        return error.set("it makes other sums");
      return sumsAreOfAll(rank, sums, error) &&
             sumsAreOfAll(rank, sums, error) && rank.nccl.disconnect(error);
    });
    EXPECT_EQ(ended.status, 0) << ended.error;
  }
}

TEST_F(NcclRun, SumsThatDifferAreAnError) {
  auto said = [](NcclSum::Kind kind, size_t count) {
    return runGpus(
               2,
               [&](Rank &rank, Error &error) {
                 NcclSum sum = {NcclSum::Whole, rank.at(0), rank.at(0), 64, 0};
                 if (rank.number == 1)
                   sum.kind = kind, sum.count = count;
                 return rank.nccl.sum("a test", Nccl::kAll, &sum, 1, error) &&
                        rank.wait(error);
               })
        .error;
  };
  EXPECT_NE(said(NcclSum::Whole, 65).find("65 of type 7"), std::string::npos);
  EXPECT_NE(said(NcclSum::ToRoot, 64).find("for a reduce"), std::string::npos);
}

// What is given up ends sums, too.
TEST_F(NcclRun, ASumThatNobodyJoinsIsGivenUp) {
  RankSettings settings;
  settings.numRanks = 3;
  Ended ended = run(settings, [&](Transport &transport, Error &error) {
    Rank rank(transport);
    NcclSums sums(rank.nccl);
    if (!rank.open(transport, error) || !rank.nccl.greetSums(Nccl::kAll, error))
      return false;
    const Span span = {rank.at(0), 64};
    if (rank.number == 1 &&
        !sums.allReduce({0, 1, 3}, "a test", &span, 1, error))
      return false;
    rank.nccl.giveUp();
    return rank.device.driver().streamSynchronize(rank.device.stream()) == 0;
  });
  EXPECT_EQ(ended.status, 0) << ended.error;
  EXPECT_LT(ended.seconds, 10);
}

// A rank that goes through its list in another order than its peer.
TEST_F(NcclRun, CrossingSendsApartAreADeadlock) {
  Ended ended = runGpus(2, [](Rank &rank, Error &error) {
    int peer = 1 - rank.number;
    return rank.send(peer, 0, 8, error) && rank.receive(peer, 256, 8, error) &&
           rank.wait(error);
  });
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.error.find("wait for each other"), std::string::npos)
      << ended.error;
  EXPECT_LT(ended.seconds, 10);
}

TEST_F(NcclRun, RanksInACircleAreADeadlock) {
  Ended ended = runGpus(3, [](Rank &rank, Error &error) {
    int next = (rank.number + 1) % 3, before = (rank.number + 2) % 3;
    return rank.send(next, 0, 8, error) &&
           rank.receive(before, 256, 8, error) && rank.wait(error);
  });
  EXPECT_NE(ended.error.find("wait for each other"), std::string::npos)
      << ended.error;
}

// Neither is late: one computes while the other waits.
TEST_F(NcclRun, ARankMayBeLate) {
  Ended ended = runGpus(2, [](Rank &rank, Error &error) {
    if (rank.number == 0)
      return rank.send(1, 0, 8, error) && rank.wait(error);
    sleep(1);
    return rank.receive(0, 0, 8, error) && rank.wait(error);
  });
  EXPECT_EQ(ended.status, 0) << ended.error;
}

TEST_F(NcclRun, SizesThatDifferAreAnError) {
  Ended ended = runGpus(2, [](Rank &rank, Error &error) {
    return (rank.number == 0 ? rank.send(1, 0, 8, error)
                             : rank.receive(0, 0, 12, error)) &&
           rank.wait(error);
  });
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.error.find("rank 1 receives 12 of type 0 from rank 0, which "
                             "sends 8 of type 0"),
            std::string::npos)
      << ended.error;
}

TEST_F(NcclRun, BuffersThatOverlapAreAnError) {
  Ended ended = runGpus(2, [](Rank &rank, Error &error) {
    Parcel send = {1 - rank.number, rank.at(0), 8};
    Parcel receive = {1 - rank.number, rank.at(4), 8};
    return rank.nccl.exchange("a test", &send, 1, &receive, 1, error) &&
           rank.wait(error);
  });
  EXPECT_NE(ended.error.find("buffers of a group overlap"), std::string::npos)
      << ended.error;
}

TEST_F(NcclRun, EachRankNeedsAGpuOfItsOwn) {
  RankSettings settings;
  settings.numRanks = 2;
  Ended ended = run(settings, [&](Transport &transport, Error &error) {
    Gpu device;
    Nccl nccl(device);
    return device.open(0, 0, error) && nccl.connect(transport, error);
  });
  EXPECT_NE(ended.error.find("connecting GPUs: NCCL: invalid usage: Duplicate "
                             "GPU detected: rank 1 and rank 0"),
            std::string::npos)
      << ended.error;
  setenv("REPRISE_STANDIN_DEVICES", "2", 1);
  ended = runGpus(3, [](Rank &, Error &) { return true; });
  EXPECT_NE(ended.error.find("rank 2 of this machine, from 0 on, takes GPU 2, "
                             "but the driver has 2: each rank needs its own"),
            std::string::npos)
      << ended.error;
}

// All blocks that may wait are on the GPU at a time, on any GPU.
TEST_F(NcclRun, ConnectionsShareMultiprocessors) {
  const struct {
    int numAll, numPairs, multiprocessors, ofAll, ofPair;
  } cases[] = {{1, 0, 14, kNcclUnset, kNcclUnset},
               {2, 0, 108, 32, 8},
               {2, 4, 108, 32, 8},
               {2, 4, 95, 16, 8},
               {2, 4, 56, 8, 8},
               {1, 4, 14, 4, 2},
               {2, 4, 6, 1, 1},
               {2, 0, 3, 1, 8}};
  for (const auto &each : cases) {
    ConnectionBlocks blocks;
    Error error;
    ASSERT_TRUE(shareBlocks(each.numAll, each.numPairs, each.multiprocessors,
                            blocks, error));
    EXPECT_EQ(blocks.ofAll, each.ofAll) << each.multiprocessors;
    EXPECT_EQ(blocks.ofPair, each.ofPair) << each.multiprocessors;
  }
  ConnectionBlocks blocks;
  Error error;
  EXPECT_FALSE(shareBlocks(2, 4, 5, blocks, error));
  EXPECT_STREQ(error.text,
               "6 connections of GPUs need a multiprocessor each, but the "
               "smallest GPU has 5: fewer stages need fewer connections");
}

TEST_F(NcclRun, BlocksThatDoNotFitAreAnError) {
  setenv("REPRISE_STANDIN_MULTIPROCESSORS", "56", 1);
  RankSettings settings;
  settings.numRanks = 2;
  for (int most : {kNcclUnset, 16}) {
    Ended ended = run(settings, [&](Transport &transport, Error &error) {
      Rank rank(transport);
      rank.nccl.setBlocks({most, most});
      return rank.open(transport, error) &&
             rank.nccl.connectBeside(transport, error) &&
             rank.nccl.disconnect(error);
    });
    EXPECT_EQ(ended.status, most == kNcclUnset) << ended.error;
    if (most == kNcclUnset) {
      EXPECT_NE(ended.error.find("64 blocks of 2 communicators may wait for "
                                 "each other on 56 multiprocessors"),
                std::string::npos)
          << ended.error;
    }
  }
}

TEST_F(NcclRun, LibrariesHaveToFit) {
  setenv("REPRISE_STANDIN_NCCL", "21705", 1);
  Ended ended = runGpus(2, [](Rank &, Error &) { return true; });
  EXPECT_NE(ended.error.find("needs NCCL 2.18.0 or later, but got 2.17.5"),
            std::string::npos)
      << ended.error;
  RankSettings settings;
  settings.numRanks = 2;
  ended = run(settings, [&](Transport &transport, Error &error) {
    setenv("REPRISE_STANDIN_NCCL", transport.rank() ? "22105" : "22304", 1);
    Rank rank(transport);
    return rank.open(transport, error);
  });
  EXPECT_NE(ended.error.find("all ranks need the same NCCL, but rank 0 has "
                             "2.23.4 and rank 1 has 2.21.5"),
            std::string::npos)
      << ended.error;
}

// What the library takes shows before anything is sent that counts, and is
// given back.
TEST_F(NcclRun, GreetingTakesTheMemory) {
  Ended ended = runGpus(3, [](Rank &rank, Error &error) {
    size_t before = 0, greeted = 0, after = 0, total = 0;
    std::vector<int> peers;
    for (int peer = 0; peer < 3; ++peer)
      if (peer != rank.number)
        peers.push_back(peer);
    if (!rank.device.memoryInfo(before, total, error) ||
        !rank.nccl.greet(peers.data(), 2, error) ||
        !rank.device.memoryInfo(greeted, total, error) ||
        !beginCrossing(rank, error) || !checkCrossing(rank, error) ||
        !rank.device.memoryInfo(after, total, error))
      return false;
    return (before > greeted && greeted == after) ||
           error.set("%zu, %zu and %zu bytes were free", before, greeted,
                     after);
  });
  EXPECT_EQ(ended.status, 0) << ended.error;
}

TEST_F(NcclRun, AGreetingThatNeverEndsIsGivenUp) {
  setenv("REPRISE_STANDIN_NETWORK", "hang:1:1", 1);
  Ended ended = runGpus(
      2,
      [](Rank &rank, Error &error) {
        const int peer = 1 - rank.number;
        return rank.nccl.greet(&peer, 1, error);
      },
      /*seconds=*/1);
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.error.find("has not ended what was begun for 1 s"),
            std::string::npos)
      << ended.error;
  EXPECT_LT(ended.seconds, 10);
}

/// Exchanges until something is wrong.
static bool exchangeForLong(Rank &rank, Error &error) {
  for (int i = 0; i < 1000; ++i)
    if (!beginCrossing(rank, error) || !checkCrossing(rank, error))
      return false;
  return true;
}

TEST_F(NcclRun, AnErrorOfTheNetworkEndsAllRanks) {
  setenv("REPRISE_STANDIN_NETWORK", "error:1:3", 1);
  Ended ended = runGpus(3, exchangeForLong);
  EXPECT_EQ(ended.status, 1);
  // Whoever sees it first says it: a rank that looks after the work, or one
  // that begins more.
  EXPECT_NE(ended.error.find("NCCL: unhandled system error: rank 1: the "
                             "network fails, as it is told"),
            std::string::npos)
      << ended.error;
  EXPECT_LT(ended.seconds, 10);
}

TEST_F(NcclRun, WhatNeverEndsIsGivenUp) {
  setenv("REPRISE_STANDIN_NETWORK", "hang:1:3", 1);
  Ended ended = runGpus(3, exchangeForLong, /*seconds=*/1);
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.error.find("has not ended what was begun for 1 s"),
            std::string::npos)
      << ended.error;
  EXPECT_LT(ended.seconds, 10);
}

TEST_F(NcclRun, ARankThatIsKilledEndsAll) {
  Ended ended = runGpus(3, [](Rank &rank, Error &error) {
    if (rank.number == 1) {
      if (!beginCrossing(rank, error) || !checkCrossing(rank, error))
        return false;
      kill(getpid(), SIGKILL);
    }
    return exchangeForLong(rank, error);
  });
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.error.find("rank 1"), std::string::npos) << ended.error;
  EXPECT_NE(ended.error.find("signal 9"), std::string::npos) << ended.error;
  EXPECT_LT(ended.seconds, 10);
}

// A rank that has failed elsewhere, behind work that nobody ends with it.
TEST_F(NcclRun, ARankThatFailsEndsAll) {
  Ended ended = runGpus(2, [](Rank &rank, Error &error) {
    if (rank.number == 1)
      return rank.receive(0, 0, 8, error) && error.set("a full disk");
    return rank.wait(error) && exchangeForLong(rank, error);
  });
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.error.find("a full disk"), std::string::npos) << ended.error;
  EXPECT_LT(ended.seconds, 10);
}
