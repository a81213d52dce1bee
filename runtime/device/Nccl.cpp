//===- Nccl.cpp - Bytes between GPUs --------------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Nccl.h"

#include "runtime/base/Clock.h"
#include "runtime/base/List.h"
#include "runtime/transport/Collectives.h"

#include <algorithm>
#include <cinttypes>
#include <ctime>
#include <pthread.h>

using namespace reprise::runtime;

/// Bytes of a greeting: an allocation's alignment.
static constexpr size_t kGreeting = 256;

namespace {
/// A connection that a thread gives up.
struct GivenUp {
  const Gpu *device;
  NcclRanks ranks;
  pthread_t thread;
  bool hasThread;
};
} // namespace

static void *giveUpOne(void *context) {
  const GivenUp &own = *static_cast<const GivenUp *>(context);
  own.device->enter();
  own.device->nccl().abort(own.ranks);
  return nullptr;
}

/// The library returns from an abort when all that it has begun of those ranks
/// is over. In a stream or a graph that may be behind something of others that
/// never ends unless it is aborted, too. So all are aborted at a time, and the
/// one that was told something last by the thread that has told it, for which
/// NCCL 2.18 keeps a note of what it has not done yet.
void Nccl::giveUp() {
  if (!all)
    return;
  device.setWatch({});
  List<GivenUp> others;
  const NcclRanks own = asked ? asked : all;
  auto take = [&](NcclRanks ranks) {
    if (ranks && ranks != own)
      others.push({&device, ranks, {}, false});
  };
  take(all);
  take(beside);
  for (Pair &pair : pairs) {
    take(pair.ranks);
    pair.ranks = nullptr;
  }
  for (List<Some> *groups : {&ownGroups, &besideGroups})
    for (Some &group : *groups) {
      take(group.ranks);
      group.ranks = nullptr;
    }
  for (GivenUp &other : others)
    other.hasThread =
        pthread_create(&other.thread, nullptr, giveUpOne, &other) == 0;
  library().abort(own);
  for (GivenUp &other : others)
    if (other.hasThread)
      pthread_join(other.thread, nullptr);
    else
      library().abort(other.ranks);
  all = beside = asked = nullptr;
}

Nccl::~Nccl() {
  giveUp();
  for (Pair &pair : pairs)
    device.driver().streamDestroy(pair.stream);
  if (besideStream)
    device.driver().streamDestroy(besideStream);
  if (border)
    device.driver().eventDestroy(border);
}

/// "2.18.3" in parts.
static void nameVersion(int version, char (&text)[32]) {
  snprintf(text, sizeof(text), "%d.%d.%d", version / 10000, version / 100 % 100,
           version % 100);
}

/// Whether `code` is good, or says that more is to come.
static bool isTaken(NcclResult code) {
  return code == 0 || code == kNcclInProgress;
}

bool Nccl::check(NcclRanks ranks, NcclResult code, const char *what,
                 Error &error) {
  if (isTaken(code))
    return true;
  const char *last = library().lastError(ranks);
  return error.set("%s: NCCL: %s%s%s", what, library().errorText(code),
                   last && last[0] ? ": " : "", last ? last : "");
}

/// What the library says of these ranks.
bool Nccl::look(NcclRanks ranks, const char *what, NcclResult &state,
                Error &error) {
  return check(ranks, library().state(ranks, &state), what, error) &&
         check(ranks, state, what, error);
}

/// Whether what this waits for, since so many seconds, may still come.
bool Nccl::mayCome(const char *what, double waitedSeconds, Error &error) {
  if (hosts->hasEnded())
    return error.set("another rank has ended the run");
  const int64_t limit = hosts->limitSeconds();
  return limit == 0 || waitedSeconds <= double(limit) ||
         error.set("%s: GPU %d has not ended what was begun for %" PRId64
                   " s: another rank may have left out an operation",
                   what, device.info().ordinal, limit);
}

/// While the host waits for the GPU.
bool Nccl::lookAtAll(double waitedSeconds, Error &error) {
  const char *what = "what ranks do together on GPUs";
  NcclResult state = 0;
  if (!look(all, what, state, error) ||
      (beside && !look(beside, what, state, error)))
    return false;
  for (Pair &pair : pairs)
    if (!look(pair.ranks, what, state, error))
      return false;
  for (List<Some> *groups : {&ownGroups, &besideGroups})
    for (Some &group : *groups)
      if (!look(group.ranks, what, state, error))
        return false;
  return mayCome(what, waitedSeconds, error);
}

/// Waits until the library has taken what it was told of these ranks.
bool Nccl::settle(NcclRanks ranks, const char *what, Error &error) {
  const double begin = now();
  asked = ranks;
  for (;;) {
    NcclResult state = 0;
    const double waited = now() - begin;
    if (!look(ranks, what, state, error) || !mayCome(what, waited, error))
      return false;
    if (state != kNcclInProgress) {
      asked = nullptr;
      return true;
    }
    const timespec pause = {0, std::min(long(waited * 1e9 / 16), 1'000'000L)};
    nanosleep(&pause, nullptr);
  }
}

bool Nccl::connect(Transport &ranks, Error &error) {
  own = ranks.rank();
  hosts = &ranks;
  if (!device.openNccl(error) ||
      !check(all, library().version(&libraryVersion), "ncclGetVersion", error))
    return false;
  char name[32], oldest[32];
  nameVersion(libraryVersion, name);
  nameVersion(kNcclOldest, oldest);
  if (libraryVersion < kNcclOldest)
    return error.set("a run of several GPUs needs NCCL %s or later, but got %s",
                     oldest, name);
  // What goes from rank to rank by the transport.
  struct {
    NcclId id;
    int version;
  } first = {{}, libraryVersion};
  if (own == 0 && !makeId(first.id, error))
    return false;
  if (!broadcast(ranks, {0, 1, ranks.size()}, "the number of NCCL's run",
                 &first, sizeof(first), error))
    return false;
  if (first.version != libraryVersion) {
    char other[32];
    nameVersion(first.version, other);
    return error.set("all ranks need the same NCCL, but rank 0 has %s and rank "
                     "%d has %s",
                     other, own, name);
  }
  if (!connectAll(all, ranks.size(), first.id, error))
    return false;
  device.setWatch({[](void *nccl, double waited, Error &error) {
                     return static_cast<Nccl *>(nccl)->lookAtAll(waited, error);
                   },
                   this});
  return true;
}

NcclResult Nccl::connectOne(NcclRanks &connection, int size, const NcclId &id,
                            int rank, int mostBlocks) const {
  NcclConfig config;
  config.isBlocking = 0;
  config.mostBlocks = mostBlocks;
  return library().connect(&connection, size, id, rank, &config);
}

bool Nccl::connectAll(NcclRanks &connection, int size, const NcclId &id,
                      Error &error) {
  const char *what = "connecting GPUs";
  NcclResult code = connectOne(connection, size, id, own, blocks.ofAll);
  return check(connection, code, what, error) &&
         settle(connection, what, error);
}

bool Nccl::connectBeside(Transport &ranks, Error &error) {
  NcclId id = {};
  return device.check(
             device.driver().streamCreate(&besideStream, kCudaNonBlocking),
             "cannot make a stream for what ranks do meanwhile", error) &&
         device.check(device.driver().eventCreate(&border, kCudaNoTiming),
                      "cuEventCreate", error) &&
         (own != 0 || makeId(id, error)) &&
         broadcast(ranks, {0, 1, ranks.size()},
                   "the second number of NCCL's run", &id, sizeof(id), error) &&
         connectAll(beside, ranks.size(), id, error);
}

/// What is begun on `then` from now on waits for what was begun on `first`.
bool Nccl::order(const char *what, CudaStream first, CudaStream then,
                 Error &error) {
  const CudaDriver &driver = device.driver();
  return device.check(driver.eventRecord(border, first), what, error) &&
         device.check(driver.streamWait(then, border, 0), what, error);
}

bool Nccl::goBeside(const char *what, Error &error) {
  exchangesBeside = true;
  return order(what, device.stream(), besideStream, error);
}

bool Nccl::makeId(NcclId &id, Error &error) {
  return check(all, library().makeId(&id), "ncclGetUniqueId", error);
}

bool Nccl::connectPair(const NcclId &id, bool isFirst, Error &error) {
  const char *what = "connecting two GPUs";
  CudaStream stream = nullptr;
  if (!device.check(device.driver().streamCreate(&stream, kCudaNonBlocking),
                    "cannot make a stream for two GPUs", error))
    return false;
  if (!pairs.push({nullptr, stream, isFirst})) {
    device.driver().streamDestroy(stream);
    return error.set("no memory left for %zu pairs of GPUs", pairs.size() + 1);
  }
  Pair &pair = pairs[pairs.size() - 1];
  NcclResult code =
      connectOne(pair.ranks, 2, id, isFirst ? 0 : 1, blocks.ofPair);
  return check(pair.ranks, code, what, error) &&
         settle(pair.ranks, what, error);
}

bool Nccl::connectGroup(const NcclId &id, int member, int size, Error &error) {
  const char *what = "connecting a group of GPUs";
  if (!groups().push({nullptr, size}))
    return error.set("no memory left for %zu groups of GPUs",
                     groups().size() + 1);
  Some &group = groups()[groups().size() - 1];
  NcclResult code = connectOne(group.ranks, size, id, member, blocks.ofAll);
  return check(group.ranks, code, what, error) &&
         settle(group.ranks, what, error);
}

/// What `calls()` asks of the library is one piece of work; it returns what
/// went wrong.
template <typename Calls>
bool Nccl::together(NcclRanks ranks, const char *what, Calls calls,
                    Error &error) {
  if (!check(ranks, library().groupStart(), what, error))
    return false;
  bool good = check(ranks, calls(), what, error);
  Error other; // What a call in the group says is the cause.
  good = check(ranks, library().groupEnd(), what, good ? error : other) && good;
  return good && settle(ranks, what, error);
}

bool Nccl::move(const char *what, int number, char *bytes, size_t size,
                Error &error) {
  const Pair &pair = pairs[size_t(number)];
  const NcclLibrary &nccl = library();
  if (pair.isFirst)
    numBegun += int64_t(size);
  return together(
      pair.ranks, what,
      [&] {
        return pair.isFirst ? nccl.send(bytes, size, kNcclByte, 1, pair.ranks,
                                        pair.stream)
                            : nccl.receive(bytes, size, kNcclByte, 0,
                                           pair.ranks, pair.stream);
      },
      error);
}

/// Takes so many bytes for what `begin(room)` begins, and waits for that.
template <typename Begin>
bool Nccl::meet(const char *what, size_t bytes, Begin begin, Error &error) {
  const CudaDriver &driver = device.driver();
  CudaAddress room = 0;
  if (!device.check(driver.memoryAllocate(&room, bytes), what, error))
    return false;
  const bool good =
      begin(reinterpret_cast<char *>(room)) &&
      (!exchangesBeside || order(what, besideStream, device.stream(), error)) &&
      device.synchronize(what, error);
  if (!good) // The driver gives memory back when nothing runs any more.
    giveUp();
  driver.memoryFree(room);
  return good;
}

bool Nccl::greet(const int *peers, int numPeers, Error &error) {
  const char *what = "greeting other GPUs";
  auto begin = [&](char *room) {
    List<Parcel> sends, receives;
    for (int i = 0; i < numPeers; ++i)
      if (!sends.push(
              {peers[i], room + size_t(2 * i) * kGreeting, kGreeting}) ||
          !receives.push(
              {peers[i], room + size_t(2 * i + 1) * kGreeting, kGreeting}))
        return error.set("no memory left to greet %d GPUs", numPeers);
    return exchange(what, sends.begin(), int(sends.size()), receives.begin(),
                    int(receives.size()), error);
  };
  return meet(what, size_t(2 * numPeers + 1) * kGreeting, begin, error);
}

bool Nccl::greetSums(int group, Error &error) {
  const char *what = "first sums of GPUs";
  const auto size =
      size_t(group == kAll ? hosts->size() : groups()[size_t(group)].size);
  auto begin = [&](char *room) {
    char *part = room + kGreeting, *root = part + (size + 1) * kGreeting;
    const NcclSum sums[] = {
        {NcclSum::Whole, room, room, kGreeting / 4, 0},
        {NcclSum::Part, part, part + size * kGreeting, kGreeting / 4, 0},
        {NcclSum::ToRoot, root, root, kGreeting / 4, 0}};
    return sum(what, group, sums, 3, error);
  };
  return meet(what, (size + 3) * kGreeting, begin, error);
}

bool Nccl::exchange(const char *what, const Parcel *sends, int numSends,
                    const Parcel *receives, int numReceives, Error &error) {
  auto isEmpty = [](const Parcel &parcel) { return parcel.size == 0; };
  if (std::all_of(sends, sends + numSends, isEmpty) &&
      std::all_of(receives, receives + numReceives, isEmpty))
    return true; // The library would not know of the group.
  const NcclRanks used = exchangesBeside ? beside : all;
  auto calls = [&] {
    NcclResult code = 0;
    for (int i = 0; i < numSends && isTaken(code); ++i) {
      numBegun += int64_t(sends[i].size);
      if (!isEmpty(sends[i]))
        code = library().send(sends[i].bytes, sends[i].size, kNcclByte,
                              sends[i].rank, used, stream());
    }
    for (int i = 0; i < numReceives && isTaken(code); ++i)
      if (!isEmpty(receives[i]))
        code = library().receive(receives[i].bytes, receives[i].size, kNcclByte,
                                 receives[i].rank, used, stream());
    return code;
  };
  return together(used, what, calls, error);
}

bool Nccl::sum(const char *what, int group, const NcclSum *sums, int numSums,
               Error &error) {
  const Some some = group == kAll
                        ? Some{exchangesBeside ? beside : all, hosts->size()}
                        : groups()[size_t(group)];
  const NcclRanks used = some.ranks;
  const int64_t size = some.size;
  const NcclLibrary &nccl = library();
  auto calls = [&] {
    NcclResult code = 0;
    for (int i = 0; i < numSums && isTaken(code); ++i) {
      const NcclSum &sum = sums[i];
      const int64_t bytes = int64_t(sum.count) * 4 * (size - 1);
      if (sum.kind == NcclSum::Whole)
        code = nccl.allReduce(sum.from, sum.to, sum.count, kNcclF32, kNcclSum,
                              used, stream());
      else if (sum.kind == NcclSum::Part)
        code = nccl.reduceScatter(sum.from, sum.to, sum.count, kNcclF32,
                                  kNcclSum, used, stream());
      else
        code = nccl.reduce(sum.from, sum.to, sum.count, kNcclF32, kNcclSum,
                           sum.root, used, stream());
      numBegun += sum.kind == NcclSum::Whole  ? 2 * bytes / size
                  : sum.kind == NcclSum::Part ? bytes
                                              : bytes / size;
    }
    return code;
  };
  return numSums == 0 || together(used, what, calls, error);
}

/// Behind everything that was begun of these ranks.
bool Nccl::end(NcclRanks &ranks, const char *what, Error &error) {
  if (!check(ranks, library().finalize(ranks), what, error) ||
      !settle(ranks, what, error))
    return false;
  NcclRanks ended = ranks;
  ranks = nullptr;
  return check(all, library().destroy(ended), what, error);
}

bool Nccl::disconnect(Error &error) {
  if (!all)
    return true;
  const char *what = "disconnecting GPUs";
  if (!device.synchronize(what, error))
    return false;
  device.setWatch({});
  for (Pair &pair : pairs)
    if (!end(pair.ranks, what, error))
      return false;
  for (List<Some> *groups : {&ownGroups, &besideGroups})
    for (Some &group : *groups)
      if (!end(group.ranks, what, error))
        return false;
  return (!beside || end(beside, what, error)) && end(all, what, error);
}
