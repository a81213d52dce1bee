//===- ExchangeTimes.cpp - How long ranks need to exchange bytes ----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExchangeTimes.h"

#include "CollectiveLaunch.h"
#include "runtime/base/Clock.h"
#include "runtime/base/Hash.h"
#include "runtime/transport/Mesh.h"

#include "reprise/ABI/Machine.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <unistd.h>

using namespace reprise::runtime;

/// What other bytes are: a part in so many.
static constexpr int64_t kDivisor = 16;

namespace {
/// What ranks know of each other.
struct RankFacts {
  uint64_t machine;
  int64_t arenaBytes;
};

/// One who measures.
class Stopwatch {
public:
  Stopwatch(const RepriseModel &model, Device &device, const Arena &arena,
            Transport &ranks, ExchangeTimes &to)
      : model(model), device(device), arena(arena), ranks(ranks), to(to) {}

  bool findFacts(Error &error);
  bool timeLaunches(Error &error);
  bool timeStages(Error &error);

private:
  bool isKnown(const Exchange &exchange) const;
  bool isAcross(int axis) const;
  bool timeLaunch(const LoneLaunch &lone, bool isOfProgram, Error &error);
  bool timeSend(int axis, size_t bytes, Error &error);
  bool meet(const Group &group, Error &error);
  template <typename Run>
  bool time(const Exchange &exchange, int axis, bool isOfProgram, Run run,
            Error &error);

  const RepriseModel &model;
  Device &device;
  const Arena &arena;
  Transport &ranks;
  ExchangeTimes &to;
  List<RankFacts> facts; ///< Of all ranks.
};
} // namespace

//===----------------------------------------------------------------------===//
// Ranks and machines
//===----------------------------------------------------------------------===//

uint64_t reprise::runtime::findMachine(const char *bootId) {
  char text[256] = "";
  size_t length = 0;
  if (FILE *file = fopen(bootId, "re")) {
    length = fread(text, 1, sizeof(text), file);
    fclose(file);
  }
  if (length == 0 && gethostname(text, sizeof(text) - 1) == 0)
    length = strlen(text);
  return hashOf({text, length});
}

bool Stopwatch::findFacts(Error &error) {
  RankFacts own = {findMachine(kBootId), model.arenaBytes};
  List<Parcel> sends, receives;
  bool good = facts.resize(size_t(ranks.size()));
  for (int rank = 0; good && rank < ranks.size(); ++rank) {
    facts[size_t(rank)] = own;
    auto parcel = [&](RankFacts &of) {
      return Parcel{rank, reinterpret_cast<char *>(&of), sizeof(of)};
    };
    good = rank == ranks.rank() || (sends.push(parcel(own)) &&
                                    receives.push(parcel(facts[size_t(rank)])));
  }
  if (!good)
    return error.set("no memory left to ask %d ranks", ranks.size());
  if (!ranks.exchange("the machines of ranks", Patience::Limited, sends.begin(),
                      int(sends.size()), receives.begin(), int(receives.size()),
                      error))
    return false;
  const int64_t beside =
      std::count_if(facts.begin(), facts.end(), [&](const RankFacts &each) {
        return each.machine == facts[0].machine;
      });
  // Of one machine it is not known how many ranks more there is room for.
  const bool isKnown =
      beside < ranks.size() || beside > REPRISE_RANKS_PER_MACHINE;
  to.ranksPerMachine = isKnown ? beside : 0;
  for (size_t i = 0; i < facts.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if ((facts[i].machine == facts[j].machine) !=
          (int64_t(i) / beside == int64_t(j) / beside))
        to.areScattered = true;
  return true;
}

/// Whether any ranks along an axis are on several machines. Then so are all
/// that exchange something along it, by name: `CostTable::addAxis` looks at
/// axes, too, since all ranks run one plan.
bool Stopwatch::isAcross(int axis) const {
  for (int rank = 0; rank < ranks.size(); ++rank)
    if (facts[size_t(rank)].machine !=
        facts[size_t(groupOf(model, rank, axis).first)].machine)
      return true;
  return false;
}

//===----------------------------------------------------------------------===//
// Times
//===----------------------------------------------------------------------===//

/// Waits until all members are here.
bool Stopwatch::meet(const Group &group, Error &error) {
  char byte = 0;
  List<char> others; // Of each its own byte: they may come at the same time.
  List<Parcel> sends, receives;
  if (!others.resize(size_t(group.size)))
    return error.set("no memory left to meet %d ranks", group.size);
  for (int i = 0; i < group.size; ++i) {
    const int rank = group.rankOf(i);
    if (rank != ranks.rank() && (!sends.push({rank, &byte, 1}) ||
                                 !receives.push({rank, &others[size_t(i)], 1})))
      return error.set("no memory left to meet %d ranks", group.size);
  }
  return ranks.exchange("the begin of a measurement", Patience::Limited,
                        sends.begin(), int(sends.size()), receives.begin(),
                        int(receives.size()), error);
}

/// The median of some rounds, of which the first does not count. In a round it
/// runs several times, so that what a GPU begins is waited for once.
template <typename Run>
bool Stopwatch::time(const Exchange &exchange, int axis, bool isOfProgram,
                     Run run, Error &error) {
  constexpr int kRounds = 5;
  constexpr int64_t kFewBytes = 1 << 18;
  const int times = exchange.sentBytes < kFewBytes ? 8 : 1;
  double rounds[kRounds];
  for (double &round : rounds) {
    if (!meet(exchange.group, error))
      return false;
    const double begin = now();
    for (int i = 0; i < times; ++i)
      if (!run())
        return false;
    if (!device.finish(error))
      return false;
    round = (now() - begin) / times;
  }
  std::sort(rounds + 1, rounds + kRounds);
  const double seconds = std::max(rounds[kRounds / 2], 1e-9);
  return to.times.push({exchange.name, exchange.group, exchange.group.size,
                        isAcross(axis), isOfProgram, exchange.messages,
                        exchange.sentBytes, seconds}) ||
         error.set("no memory left for times of exchanges");
}

/// Of this very group: all of its members must say the same.
bool Stopwatch::isKnown(const Exchange &exchange) const {
  const Group &group = exchange.group;
  return std::any_of(to.times.begin(), to.times.end(),
                     [&](const ExchangeTime &each) {
                       return each.group.first == group.first &&
                              each.group.stride == group.stride &&
                              each.group.size == group.size &&
                              each.sentBytes == exchange.sentBytes &&
                              !strcmp(each.exchange, exchange.name);
                     });
}

bool Stopwatch::timeLaunch(const LoneLaunch &lone, bool isOfProgram,
                           Error &error) {
  const RepriseModel alone = lone.modelOf(model);
  Exchange exchange;
  if (!findExchange(alone, lone.launch, ranks.rank(), exchange) ||
      isKnown(exchange))
    return true;
  List<void *> addresses;
  for (const RepriseBuffer &buffer : lone.buffers)
    if (!addresses.push(device.addressOf(buffer)))
      return error.set("no memory left for the buffers of %s",
                       lone.launch.name);
  return checkCollective(alone, lone.launch, ranks.rank(), error) &&
         lone.fillOffsets(exchange.group.size, arena, error) &&
         time(
             exchange, lone.row.axis, isOfProgram,
             [&] {
               return runCollective(alone, lone.launch, addresses.begin(),
                                    device.rankMemory(), error);
             },
             error);
}

/// What the program has comes first, so that other bytes are none of its own.
bool Stopwatch::timeLaunches(Error &error) {
  for (bool isOfProgram : {true, false})
    for (int i = 0; i < model.numSchedules; ++i)
      for (int j = 0; j < model.schedules[i].numLaunches; ++j) {
        const RepriseLaunch &launch = model.schedules[i].launches[j];
        if (countRuns(model, i) == 0 || !isTogether(launch))
          continue;
        LoneLaunch lone;
        if (!lone.take(model, launch))
          return error.set("no memory left for the buffers of %s", launch.name);
        const RepriseCollective &row = model.collectives[launch.callee];
        const int64_t members =
            row.numMembers ? row.numMembers : model.axes[row.axis].size;
        if (!isOfProgram && !lone.shrink(members, kDivisor))
          continue;
        if (!timeLaunch(lone, isOfProgram, error))
          return false;
      }
  return true;
}

/// Each stage sends to the next one, and the last to the first.
bool Stopwatch::timeSend(int axis, size_t bytes, Error &error) {
  const Group stages = groupOf(model, ranks.rank(), axis);
  const int stage = stages.memberOf(ranks.rank());
  auto parcel = [&](int distance, int64_t offset) {
    const int to = (stage + distance + stages.size) % stages.size;
    void *at = device.addressOf({offset, int64_t(bytes)});
    return Parcel{stages.rankOf(to), static_cast<char *>(at), bytes};
  };
  const Parcel send = parcel(1, 0), receive = parcel(-1, int64_t(bytes));
  Exchange exchange = {"send", stages, 1, int64_t(bytes)};
  auto run = [&] {
    return device.rankMemory().exchange("a parcel for the next stage", &send, 1,
                                        &receive, 1, error);
  };
  if (!time(exchange, axis, /*isOfProgram=*/false, run, error))
    return false;
  to.times.back().ranks = 2; // Between two of them.
  return true;
}

/// As many bytes as all have room for, and a part of them.
bool Stopwatch::timeStages(Error &error) {
  constexpr int64_t kMost = 1 << 22;
  int64_t bytes = kMost;
  for (const RankFacts &each : facts)
    bytes = std::min(bytes, each.arenaBytes / 2 / 256 * 256);
  for (int axis = 0; axis < model.numAxes; ++axis) {
    if (strcmp(model.axes[axis].name, kStageAxis) != 0 ||
        model.axes[axis].size < 2 || bytes < kDivisor)
      continue;
    if (!timeSend(axis, size_t(bytes), error) ||
        !timeSend(axis, size_t(bytes / kDivisor), error))
      return false;
  }
  return true;
}

bool ExchangeTimes::measure(const RepriseModel &model, Device &device,
                            const Arena &arena, Transport &ranks,
                            Error &error) {
  Stopwatch stopwatch(model, device, arena, ranks, *this);
  return stopwatch.findFacts(error) && stopwatch.timeLaunches(error) &&
         stopwatch.timeStages(error);
}

LinkRates reprise::runtime::ratesOf(const ExchangeTime &less,
                                    const ExchangeTime &more) {
  // What is left of the lesser time may be nothing but noise.
  constexpr double kLeast = 0.01;
  double perByte =
      (more.seconds - less.seconds) / double(more.sentBytes - less.sentBytes);
  if (perByte <= 0)
    perByte = more.seconds / double(more.sentBytes);
  const double rest = less.seconds - double(less.sentBytes) * perByte;
  return {std::max(rest, kLeast * less.seconds) / double(less.messages),
          1 / perByte};
}
