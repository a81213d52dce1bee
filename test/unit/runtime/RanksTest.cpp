//===- RanksTest.cpp - Ranks that are processes of this machine -----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/transport/Collectives.h"
#include "runtime/transport/Embedded.h"

#include <chrono>
#include <csignal>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace reprise::runtime;

namespace {
using Body = std::function<bool(Transport &, Error &)>;

/// What a run of ranks has ended with.
struct Ended {
  int status;
  std::string error;
  double seconds;
};
} // namespace

static int runBody(Transport &transport, void *context) {
  Error error;
  if ((*static_cast<Body *>(context))(transport, error))
    return 0;
  transport.abort(error.text);
  return 1;
}

static Ended run(RankSettings settings, Body body) {
  auto begin = std::chrono::steady_clock::now();
  Error error;
  int status = runRanks(settings, runBody, &body, error);
  std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - begin;
  return {status, error.text, seconds.count()};
}

static Ended run(int numRanks, Body body) {
  RankSettings settings;
  settings.numRanks = numRanks;
  return run(settings, std::move(body));
}

/// A parcel of `size` bytes from `from` to `to`, the `number`th one.
static std::vector<char> contents(int from, int to, int number, size_t size) {
  std::vector<char> bytes(size);
  std::minstd_rand random(unsigned(1 + from * 101 + to * 11 + number));
  for (char &each : bytes)
    each = char(random());
  return bytes;
}

// Sizes around that of a channel, several parcels for each pair of ranks, all
// crossing.
TEST(Ranks, EveryParcelArrivesInItsOrder) {
  for (int numRanks : {1, 2, 3, 5}) {
    Ended ended = run(numRanks, [](Transport &transport, Error &error) {
      const size_t sizes[] = {1, 700'001, 0, 256 << 10, 3};
      for (int round = 0; round < 8; ++round) {
        std::vector<std::vector<char>> out, in, expected;
        std::vector<Parcel> sends, receives;
        for (int peer = 0; peer < transport.size(); ++peer)
          for (int i = 0; i < 5 && peer != transport.rank(); ++i) {
            size_t size = sizes[(i + round) % 5];
            int number = round * 5 + i;
            out.push_back(contents(transport.rank(), peer, number, size));
            expected.push_back(contents(peer, transport.rank(), number, size));
            in.emplace_back(size);
            sends.push_back({peer, out.back().data(), size});
            receives.push_back({peer, in.back().data(), size});
          }
        if (!transport.exchange("a test", Patience::Limited, sends.data(),
                                int(sends.size()), receives.data(),
                                int(receives.size()), error))
          return false;
        if (in != expected)
          return error.set("round %d differs", round);
      }
      return true;
    });
    EXPECT_EQ(ended.status, 0) << ended.error;
  }
}

/// The tree as a formula: the sum of [begin, end) splits at the largest power
/// of two below its size.
static float treeOf(const std::vector<float> &values, size_t begin,
                    size_t end) {
  if (end - begin == 1)
    return values[begin];
  size_t half = 1;
  while (half * 2 < end - begin)
    half *= 2;
  return treeOf(values, begin, begin + half) +
         treeOf(values, begin + half, end);
}

static float valueOf(int rank, int64_t i) {
  std::minstd_rand random(unsigned(7 + rank * 7919 + i));
  random();
  return (float(random() % 2000) - 1000) * (i % 3 ? 1e-3f : 1e4f);
}

/// Sums over `group`, whose values are in spans of these sizes, one element
/// apart from each other.
static bool sumsAreThoseOfTheTree(Transport &transport, const Group &group,
                                  const std::vector<int64_t> &sizes,
                                  int64_t room, Error &error) {
  std::vector<float> values, workspace(size_t(room) + 1, 43);
  for (int64_t size : sizes)
    values.resize(values.size() + size_t(size) + 1, 42);
  std::vector<Span> spans;
  int64_t at = 0, i = 0;
  for (int64_t size : sizes) {
    spans.push_back({values.data() + at, size});
    for (int64_t j = 0; j < size; ++j)
      values[size_t(at + j)] = valueOf(transport.rank(), i++);
    at += size + 1;
  }
  if (!allReduce(transport, group, "a sum", spans.data(), int(spans.size()),
                 {workspace.data(), room}, error))
    return false;
  i = 0;
  for (const Span &span : spans) {
    for (int64_t j = 0; j < span.count; ++j, ++i) {
      std::vector<float> parts;
      for (int member = 0; member < group.size; ++member)
        parts.push_back(valueOf(group.rankOf(member), i));
      if (span.values[j] != treeOf(parts, 0, parts.size()))
        return error.set("element %d differs", int(i));
    }
    if (span.values[span.count] != 42)
      return error.set("something is written behind a span");
  }
  return workspace.back() == 43 ||
         error.set("something is written behind the workspace");
}

TEST(Ranks, SumsAreThoseOfTheTree) {
  const std::vector<std::vector<int64_t>> all = {
      {}, {0}, {1}, {4}, {3, 0, 1, 1, 600}, {70'003}, {1, 1000, 7, 2000, 5}};
  for (int numRanks : {1, 2, 3, 4, 5})
    for (const std::vector<int64_t> &sizes : all)
      for (int64_t room :
           {int64_t(numRanks), int64_t(1111), int64_t(200'000)}) {
        if (sizes == all[5] && room < 1000)
          continue; // One element at a time takes too long.
        Ended ended = run(numRanks, [&](Transport &transport, Error &error) {
          return sumsAreThoseOfTheTree(transport, {0, 1, numRanks}, sizes, room,
                                       error);
        });
        EXPECT_EQ(ended.status, 0) << ended.error << " " << numRanks << " "
                                   << sizes.size() << " " << room;
      }
}

// Ranks 0 1 2 | 3 4 5: sums along both axes, at the same time.
TEST(Ranks, SumsAreOfAGroup) {
  Ended ended = run(6, [](Transport &transport, Error &error) {
    int rank = transport.rank();
    return sumsAreThoseOfTheTree(transport, {rank / 3 * 3, 1, 3}, {500, 3}, 99,
                                 error) &&
           sumsAreThoseOfTheTree(transport, {rank % 3, 3, 2}, {7, 999}, 99,
                                 error);
  });
  EXPECT_EQ(ended.status, 0) << ended.error;
}

TEST(Ranks, AllGetTheBytesOfTheFirst) {
  Ended ended = run(3, [](Transport &transport, Error &error) {
    int64_t value = transport.rank() + 5;
    if (!broadcast(transport, "a value", &value, sizeof(value), error))
      return false;
    return value == 5 ? true : error.set("got %d", int(value));
  });
  EXPECT_EQ(ended.status, 0) << ended.error;
}

/// Waits for bytes that never come.
static bool waitForever(Transport &transport, Error &error) {
  char byte;
  Parcel parcel = {(transport.rank() + 1) % transport.size(), &byte, 1};
  return transport.exchange("a wait", Patience::Limited, nullptr, 0, &parcel, 1,
                            error);
}

TEST(Ranks, AnErrorOfOneEndsAll) {
  Ended ended = run(3, [](Transport &transport, Error &error) {
    transport.reportStep(12);
    if (transport.rank() == 1)
      return error.set("no space left on device");
    return waitForever(transport, error);
  });
  EXPECT_EQ(ended.status, 1);
  EXPECT_EQ(ended.error, "rank 1 in step 12: no space left on device");
  EXPECT_LT(ended.seconds, 10);
}

TEST(Ranks, ADeathOfOneEndsAll) {
  Ended ended = run(3, [](Transport &transport, Error &error) {
    transport.reportStep(3);
    if (transport.rank() == 2)
      raise(SIGKILL);
    return waitForever(transport, error);
  });
  EXPECT_EQ(ended.status, 1);
  EXPECT_EQ(ended.error, "rank 2 in step 3: ended by signal 9 (Killed)");
  EXPECT_LT(ended.seconds, 10);
}

// Neither a rank that sleeps in an exchange nor one that computes and never
// looks keeps the others alive.
TEST(Ranks, ASilentRankEndsAll) {
  RankSettings settings;
  settings.numRanks = 3;
  settings.silenceSeconds = 2;
  settings.name = +[](int rank, char *text, size_t size, const void *) {
    snprintf(text, size, "rank %d (dp %d)", rank, rank);
  };
  Ended ended = run(settings, [](Transport &transport, Error &error) {
    if (transport.rank() == 1)
      raise(SIGSTOP);
    for (volatile bool never = false; transport.rank() == 2 && !never;)
      usleep(1000);
    return waitForever(transport, error);
  });
  EXPECT_EQ(ended.status, 1);
  EXPECT_EQ(ended.error, "rank 1 (dp 1): has given no sign of life for 2 s");
  EXPECT_LT(ended.seconds, 10);
}

TEST(Ranks, AnExchangeThatNeverEndsIsGivenUp) {
  RankSettings settings;
  settings.numRanks = 2;
  settings.operationSeconds = 2;
  Ended ended = run(settings, [](Transport &transport, Error &error) {
    for (volatile bool never = false; transport.rank() == 1 && !never;)
      usleep(1000);
    return waitForever(transport, error);
  });
  EXPECT_EQ(ended.status, 1);
  EXPECT_EQ(ended.error,
            "rank 0: rank 0 has waited for rank 1 for 2 s in a wait");
  EXPECT_LT(ended.seconds, 10);
}

// What rank 0 does alone between two steps takes as long as it takes.
TEST(Ranks, ABroadcastIsWaitedFor) {
  RankSettings settings;
  settings.numRanks = 2;
  settings.operationSeconds = 1;
  Ended ended = run(settings, [](Transport &transport, Error &error) {
    if (transport.rank() == 0)
      sleep(3);
    int value = 3 + transport.rank();
    return broadcast(transport, "a value", &value, sizeof(value), error) &&
           value == 3;
  });
  EXPECT_EQ(ended.status, 0) << ended.error;
}

// A run that is stopped as a whole, for longer than silence may last, goes on.
TEST(Ranks, StoppedAndContinuedTogetherTheyGoOn) {
  RankSettings settings;
  settings.numRanks = 2;
  settings.silenceSeconds = 2;
  pid_t runner = fork();
  ASSERT_GE(runner, 0);
  if (runner == 0) {
    setpgid(0, 0);
    Ended ended = run(settings, [](Transport &transport, Error &error) {
      for (int i = 0; i < 20; ++i) {
        char bytes[2];
        Parcel out = {1 - transport.rank(), bytes, 1};
        Parcel in = {1 - transport.rank(), bytes + 1, 1};
        if (!transport.exchange("a beat", Patience::Limited, &out, 1, &in, 1,
                                error))
          return false;
        usleep(50'000);
      }
      return true;
    });
    _exit(ended.status);
  }
  setpgid(runner, runner);
  usleep(300'000);
  kill(-runner, SIGSTOP);
  sleep(4);
  kill(-runner, SIGCONT);
  int status = -1;
  waitpid(runner, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// Ranks do not outlive the process that watches them.
TEST(Ranks, DieWithTheirWatcher) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  pid_t runner = fork();
  ASSERT_GE(runner, 0);
  if (runner == 0) {
    close(ends[0]);
    run(2, [](Transport &transport, Error &error) {
      return waitForever(transport, error);
    });
    _exit(0);
  }
  close(ends[1]);
  usleep(300'000);
  kill(runner, SIGKILL);
  waitpid(runner, nullptr, 0);
  char byte;
  EXPECT_EQ(read(ends[0], &byte, 1), 0) << "a rank holds the pipe open";
  close(ends[0]);
}
