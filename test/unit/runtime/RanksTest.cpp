//===- RanksTest.cpp - Ranks that are processes of this machine -----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RanksRun.h"

#include "runtime/show/RankReport.h"
#include "runtime/transport/Agreement.h"
#include "runtime/transport/Collectives.h"

#include <cmath>
#include <csignal>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace reprise::runtime;
using namespace reprise::runtime::test;

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

/// The nearest number of eight bits, of two as near the even one.
static float rounded(Number number, float value) {
  if (number == Number::F32)
    return value;
  int exponent;
  double mantissa = std::frexp(double(value), &exponent);
  return float(
      std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8));
}

/// An array of numbers of either type.
struct Array {
  Array(Number number, int64_t size, float value)
      : number(number), bytes(size_t(size * sizeOf(number))) {
    for (int64_t i = 0; i < size; ++i)
      set(i, value);
  }
  void *at(int64_t i) { return bytes.data() + i * sizeOf(number); }
  void set(int64_t i, float value) {
    uint32_t bits;
    value = rounded(number, value);
    memcpy(&bits, &value, 4);
    bits >>= number == Number::F32 ? 0 : 16;
    memcpy(at(i), &bits, size_t(sizeOf(number)));
  }
  float get(int64_t i) {
    uint32_t bits = 0;
    memcpy(&bits, at(i), size_t(sizeOf(number)));
    bits <<= number == Number::F32 ? 0 : 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
  }

  Number number;
  std::vector<char> bytes;
};

/// The sum over `group` of element `i`, as bits of `number`.
static float sumOf(Number number, const Group &group, int64_t i) {
  std::vector<float> parts;
  for (int member = 0; member < group.size; ++member)
    parts.push_back(rounded(number, valueOf(group.rankOf(member), i)));
  return rounded(number, treeOf(parts, 0, parts.size()));
}

/// Sums over `group`, whose values are in spans of these sizes, one element
/// apart from each other.
static bool sumsAreThoseOfTheTree(Transport &transport, const Group &group,
                                  Number number,
                                  const std::vector<int64_t> &sizes,
                                  int64_t room, Error &error) {
  HostMemory memory(transport);
  int64_t total = 0;
  for (int64_t size : sizes)
    total += size + 1;
  Array values(number, total, 42), workspace(number, room + 1, 43);
  std::vector<Span> spans;
  int64_t at = 0, i = 0;
  for (int64_t size : sizes) {
    spans.push_back({values.at(at), size});
    for (int64_t j = 0; j < size; ++j)
      values.set(at + j, valueOf(transport.rank(), i++));
    at += size + 1;
  }
  if (!allReduce(memory, group, "a sum", number, spans.data(),
                 int(spans.size()), {workspace.at(0), room}, error))
    return false;
  at = i = 0;
  for (int64_t size : sizes) {
    for (int64_t j = 0; j < size; ++j, ++i)
      if (values.get(at + j) != sumOf(number, group, i))
        return error.set("element %d differs", int(i));
    if (values.get(at + size) != 42)
      return error.set("something is written behind a span");
    at += size + 1;
  }
  return workspace.get(room) == 43 ||
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
          for (Number number : {Number::F32, Number::BF16})
            if (!sumsAreThoseOfTheTree(transport, {0, 1, numRanks}, number,
                                       sizes, room, error))
              return false;
          return true;
        });
        EXPECT_EQ(ended.status, 0) << ended.error << " " << numRanks << " "
                                   << sizes.size() << " " << room;
      }
}

/// What a rank has of its groups of micro-batches: a term for each run of them,
/// `Array`s of the same sizes one after another, whose element `i` is that of
/// the sum of the run's groups.
static std::vector<Array> termsOf(int rank, int ranks, int groups,
                                  const std::vector<int64_t> &sizes) {
  std::vector<Array> terms;
  int first = 0;
  for (int run = 64; run > 0; run /= 2) {
    if (!(groups & run))
      continue;
    int64_t at = 0;
    for (int64_t size : sizes) {
      Array &term = terms.emplace_back(Number::F32, size + 1, 42);
      for (int64_t i = 0; i < size; ++i) {
        std::vector<float> parts;
        for (int group = 0; group < run; ++group)
          parts.push_back(valueOf(first + rank * run + group, at + i));
        term.set(i, treeOf(parts, 0, parts.size()));
      }
      at += size;
    }
    first += ranks * run;
  }
  return terms;
}

/// Sums, or a rank's shares of them, that are those of the tree over all
/// groups, of which each rank has so many.
static bool sumsAreOfAllGroups(Transport &transport, int groups, bool areShares,
                               int64_t room, Error &error) {
  HostMemory memory(transport);
  const std::vector<int64_t> sizes = {3, 0, 40'000};
  const int ranks = transport.size(), rank = transport.rank();
  std::vector<Array> terms = termsOf(rank, ranks, groups, sizes);
  std::vector<Span> spans;
  for (size_t i = 0; i < terms.size(); ++i)
    spans.push_back({terms[i].at(0), sizes[i % sizes.size()]});
  Array workspace(Number::F32, room + 1, 43);
  Group group = {0, 1, ranks};
  group.groups = groups;
  if (!(areShares ? reduceShares : allReduce)(
          memory, group, "a sum", Number::F32, spans.data(), int(spans.size()),
          {workspace.at(0), room}, error))
    return false;
  int64_t at = 0;
  for (size_t s = 0; s < sizes.size(); at += sizes[s++]) {
    Array &sum = terms[terms.size() - sizes.size() + s];
    const Share own = shareOf(sizes[s], rank, ranks);
    for (int64_t i = 0; i < sizes[s]; ++i) {
      std::vector<float> parts;
      for (int each = 0; each < ranks * groups; ++each)
        parts.push_back(valueOf(each, at + i));
      const bool isThere = !areShares || (i >= own.begin && i < own.end);
      if (sum.get(i) != (isThere ? treeOf(parts, 0, parts.size()) : 0.0f))
        return error.set("element %d of %d differs", int(i), int(s));
    }
    if (sum.get(sizes[s]) != 42)
      return error.set("something is written behind %d", int(s));
  }
  return workspace.get(room) == 43 ||
         error.set("something is written behind the workspace");
}

TEST(Ranks, SumsAreOfAllGroups) {
  const std::pair<int, int> cases[] = {{1, 5}, {2, 3}, {3, 3}, {3, 5},
                                       {3, 7}, {4, 6}, {5, 3}, {6, 11}};
  for (auto [numRanks, groups] : cases)
    for (bool areShares : {false, true})
      for (int64_t room : {int64_t(999), int64_t(200'000)}) {
        Ended ended = run(numRanks, [&, each = groups](Transport &transport,
                                                       Error &error) {
          return sumsAreOfAllGroups(transport, each, areShares, room, error);
        });
        EXPECT_EQ(ended.status, 0) << ended.error << " " << numRanks << " x "
                                   << groups << " " << areShares << room;
      }
}

// Ranks 0 1 2 | 3 4 5: sums along both axes, at the same time.
TEST(Ranks, SumsAreOfAGroup) {
  Ended ended = run(6, [](Transport &transport, Error &error) {
    int rank = transport.rank();
    return sumsAreThoseOfTheTree(transport, {rank / 3 * 3, 1, 3}, Number::F32,
                                 {500, 3}, 99, error) &&
           sumsAreThoseOfTheTree(transport, {rank % 3, 3, 2}, Number::F32,
                                 {7, 999}, 99, error);
  });
  EXPECT_EQ(ended.status, 0) << ended.error;
}

/// The number in a whole of element `i` of the part of `member`.
static int64_t placeOf(Blocks blocks, int size, int member, int64_t i) {
  return (i / blocks.elements * size + member) * blocks.elements +
         i % blocks.elements;
}

/// Both moves between a whole and its parts.
static bool partsArePlaced(Transport &transport, const Group &group,
                           Number number, Blocks blocks, int64_t room,
                           Error &error) {
  HostMemory memory(transport);
  const int self = group.memberOf(transport.rank());
  const int64_t size = blocks.count * blocks.elements;
  Array part(number, size + 1, 42), whole(number, size * group.size + 1, 43),
      workspace(number, room + 1, 44);
  for (int64_t i = 0; i < size; ++i)
    part.set(i, valueOf(transport.rank(), i));
  if (!allGather(memory, group, "parts", number, blocks, part.at(0),
                 whole.at(0), error))
    return false;
  for (int member = 0; member < group.size; ++member)
    for (int64_t i = 0; i < size; ++i)
      if (whole.get(placeOf(blocks, group.size, member, i)) !=
          rounded(number, valueOf(group.rankOf(member), i)))
        return error.set("element %d of %d differs", int(i), member);
  for (int64_t i = 0; i < size * group.size; ++i)
    whole.set(i, valueOf(transport.rank(), i));
  if (!reduceScatter(memory, group, "own sums", number, blocks, whole.at(0),
                     part.at(0), {workspace.at(0), room}, error))
    return false;
  for (int64_t i = 0; i < size; ++i)
    if (part.get(i) !=
        sumOf(number, group, placeOf(blocks, group.size, self, i)))
      return error.set("sum %d differs", int(i));
  for (int64_t i = 0; i < size * group.size; ++i)
    if (whole.get(i) != rounded(number, valueOf(transport.rank(), i)))
      return error.set("the whole is written over at %d", int(i));
  return (part.get(size) == 42 && whole.get(size * group.size) == 43 &&
          workspace.get(room) == 44) ||
         error.set("something is written behind a buffer");
}

TEST(Ranks, PartsArePlacedInTheWhole) {
  for (int numRanks : {1, 2, 3, 4, 5})
    for (Blocks blocks : {Blocks{1, 1}, Blocks{1, 70'001}, Blocks{3, 5},
                          Blocks{7, 1}, Blocks{2, 1111}})
      for (int64_t room : {int64_t(numRanks), int64_t(1111), int64_t(9999)}) {
        if (blocks.elements > 10'000 && room < 9999)
          continue; // As above.
        Ended ended = run(numRanks, [&](Transport &transport, Error &error) {
          for (Number number : {Number::F32, Number::BF16})
            if (!partsArePlaced(transport, {0, 1, numRanks}, number, blocks,
                                room, error))
              return false;
          return true;
        });
        EXPECT_EQ(ended.status, 0)
            << ended.error << " " << numRanks << " " << blocks.count << " x "
            << blocks.elements << " " << room;
      }
}

// Ranks 0 1 2 | 3 4 5, along both axes.
/// The shares of sums, of values of these sizes, and what is gathered of them.
/// Of 70,001 elements two ranks have 49,152 and 20,849, and five no more than
/// 16,384 each.
static bool sharesAreOfTheSums(Transport &transport, const Group &group,
                               Number number, const std::vector<int64_t> &sizes,
                               int64_t room, Error &error) {
  HostMemory memory(transport);
  const int self = group.memberOf(transport.rank());
  std::vector<Array> values;
  std::vector<Span> spans;
  for (int64_t size : sizes) {
    Array &array = values.emplace_back(number, size + 1, 42);
    for (int64_t i = 0; i < size; ++i)
      array.set(i, valueOf(transport.rank(), i));
  }
  for (size_t s = 0; s < sizes.size(); ++s)
    spans.push_back({values[s].at(0), sizes[s]});
  Array workspace(number, room + 1, 44);
  if (!reduceShares(memory, group, "shares", number, spans.data(),
                    int(spans.size()), {workspace.at(0), room}, error))
    return false;
  for (size_t s = 0; s < sizes.size(); ++s) {
    const int64_t blocks = (sizes[s] + 16383) / 16384;
    const int64_t most = (blocks + group.size - 1) / group.size * 16384;
    for (int64_t i = 0; i < sizes[s]; ++i)
      if (values[s].get(i) !=
          (i / most == self ? sumOf(number, group, i) : 0.0f))
        return error.set("element %d of %d differs", int(i), int(s));
    const Share own = shareOf(sizes[s], self, group.size);
    if (own.begin != std::min(sizes[s], self * most) ||
        own.end != std::min(sizes[s], (self + 1) * most))
      return error.set("a share of %d differs", int(s));
    Array whole(number, sizes[s] + 1, 43);
    if (!gatherShares(memory, group, "shares", number, values[s].at(own.begin),
                      {whole.at(0), sizes[s]}, error))
      return false;
    for (int64_t i = 0; i < sizes[s]; ++i)
      if (whole.get(i) != sumOf(number, group, i))
        return error.set("element %d of the whole %d differs", int(i), int(s));
    if (values[s].get(sizes[s]) != 42 || whole.get(sizes[s]) != 43)
      return error.set("something is written behind %d", int(s));
  }
  return workspace.get(room) == 44 ||
         error.set("something is written behind the workspace");
}

TEST(Ranks, SharesAreOfTheSums) {
  for (int numRanks : {1, 2, 3, 5})
    for (int64_t room : {int64_t(9999), int64_t(100'000)}) {
      Ended ended = run(numRanks, [&](Transport &transport, Error &error) {
        for (Number number : {Number::F32, Number::BF16})
          if (!sharesAreOfTheSums(transport, {0, 1, numRanks}, number,
                                  {70'001, 3, 32'768}, room, error))
            return false;
        return true;
      });
      EXPECT_EQ(ended.status, 0) << ended.error << " " << numRanks;
    }
}

TEST(Ranks, PartsAreOfAGroup) {
  Ended ended = run(6, [](Transport &transport, Error &error) {
    int rank = transport.rank();
    return partsArePlaced(transport, {rank / 3 * 3, 1, 3}, Number::BF16,
                          {3, 50}, 99, error) &&
           partsArePlaced(transport, {rank % 3, 3, 2}, Number::F32, {2, 333},
                          99, error);
  });
  EXPECT_EQ(ended.status, 0) << ended.error;
}

TEST(Ranks, AllGetTheBytesOfTheFirst) {
  Ended ended = run(3, [](Transport &transport, Error &error) {
    int64_t value = transport.rank() + 5;
    if (!broadcast(transport, {0, 1, 3}, "a value", &value, sizeof(value),
                   error))
      return false;
    return value == 5 ? true : error.set("got %d", int(value));
  });
  EXPECT_EQ(ended.status, 0) << ended.error;
}

// Whose process is the other one says so, by any engine.
TEST(Ranks, OfOtherProgramsDoNotStart) {
  for (bool isProgram : {true, false}) {
    Ended ended = run(3, [=](Transport &transport, Error &error) {
      RunMark own = {0xABC, 5};
      if (transport.rank() == 2)
        (isProgram ? own.program : own.options) += 1;
      return agree(transport, own, error);
    });
    EXPECT_EQ(ended.status, 1);
    EXPECT_EQ(ended.error,
              isProgram ? "rank 2: its program has the hash 0000000000000abd, "
                          "but that of rank 0 has 0000000000000abc: all ranks "
                          "need the same file"
                        : "rank 2: its options are not those of rank 0: all "
                          "ranks need the same");
  }
}

TEST(Ranks, MarksAreOfTheFileAndTheOptions) {
  const char *one[] = {"a", "--seed", "12"}, *renamed[] = {"b", "--seed", "12"},
             *other[] = {"a", "--seed", "21"};
  RunMark marks[3];
  Error error;
  ASSERT_TRUE(marks[0].find(3, one, error) &&
              marks[1].find(3, renamed, error) &&
              marks[2].find(3, other, error))
      << error.text;
  EXPECT_NE(marks[0].program, 0u);
  EXPECT_EQ(marks[0].program, marks[2].program);
  EXPECT_EQ(marks[0].options, marks[1].options);
  EXPECT_NE(marks[0].options, marks[2].options);
}

TEST(Ranks, ASpreadNamesItsRanks) {
  auto spread = [](std::vector<double> values) {
    List<RankReport> reports;
    List<int> order;
    for (double each : values) {
      RankReport report;
      report.waitSeconds = each;
      EXPECT_TRUE(reports.push(report));
    }
    EXPECT_TRUE(order.resize(values.size()));
    return spreadOf(reports, &RankReport::waitSeconds, order);
  };
  auto is = [](const Spread &spread, std::vector<int> ranks,
               std::vector<double> values) {
    return std::equal(ranks.begin(), ranks.end(), spread.ranks) &&
           std::equal(values.begin(), values.end(), spread.values);
  };
  EXPECT_TRUE(is(spread({7}), {0, 0, 0}, {7, 7, 7}));
  EXPECT_TRUE(is(spread({3, 1, 2}), {1, 2, 0}, {1, 2, 3}));
  EXPECT_TRUE(is(spread({4, 3, 1, 2}), {2, 3, 0}, {1, 2, 4}));
  EXPECT_TRUE(is(spread({5, 5, 5}), {0, 1, 2}, {5, 5, 5}));
}

// Each rank sends as many bytes as its number, and sleeps in its step only.
TEST(Ranks, ReportsComeToTheFirst) {
  Ended ended = run(3, [](Transport &transport, Error &error) {
    char bytes[3] = {}, got[3];
    const int rank = transport.rank(), size = transport.size();
    Parcel send = {(rank + 1) % size, bytes, size_t(rank)};
    int before = (rank + size - 1) % size;
    Parcel receive = {before, got, size_t(before)};
    RankReport own;
    own.stepSeconds = 10 + rank;
    List<RankReport> all;
    if (!transport.exchange("a test", Patience::Limited, &send, 1, &receive, 1,
                            error) ||
        !gather(transport, own, all, error))
      return false;
    if (rank != 0)
      return all.empty() || error.set("rank %d has reports", rank);
    for (int each = 0; each < size; ++each)
      if (all[size_t(each)].stepSeconds != 10 + each ||
          all[size_t(each)].sentBytes != each ||
          all[size_t(each)].processBytes < 1 << 16)
        return error.set("the report of rank %d differs", each);
    return all.size() == 3;
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

/// Of three ranks one is stopped, one computes and never looks, one waits.
static Ended runWithSilence(double timeout) {
  RankSettings settings;
  settings.numRanks = 3;
  settings.timeoutSeconds = timeout;
  settings.name = +[](int rank, char *text, size_t size, const void *) {
    snprintf(text, size, "rank %d (dp %d)", rank, rank);
  };
  return run(settings, [](Transport &transport, Error &error) {
    if (transport.rank() == 1)
      raise(SIGSTOP);
    for (volatile bool never = false; transport.rank() == 2 && !never;)
      usleep(1000);
    return waitForever(transport, error);
  });
}

// Neither a rank that sleeps in an exchange nor one that computes and never
// looks keeps the others alive, and all have ended in time.
TEST(Ranks, ASilentRankEndsAllInTime) {
  const std::pair<double, std::string> silences[] = {
      {1, "0.5"}, {2, "1"}, {10, "5"}};
  for (const auto &[timeout, silence] : silences) {
    Ended ended = runWithSilence(timeout);
    EXPECT_EQ(ended.status, 1);
    EXPECT_EQ(ended.error,
              "rank 1 (dp 1): has given no sign of life for " + silence + " s");
    EXPECT_LT(ended.seconds, timeout);
  }
  EXPECT_EQ(HeartRate(60).mostSilent, 55);
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
    return broadcast(transport, {0, 1, 2}, "a value", &value, sizeof(value),
                     error) &&
           value == 3;
  });
  EXPECT_EQ(ended.status, 0) << ended.error;
}

// A run that is stopped as a whole, for longer than silence may last, goes on.
TEST(Ranks, StoppedAndContinuedTogetherTheyGoOn) {
  RankSettings settings;
  settings.numRanks = 2;
  settings.timeoutSeconds = 2;
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
