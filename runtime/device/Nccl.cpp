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

using namespace reprise::runtime;

/// Bytes of a greeting: an allocation's alignment.
static constexpr size_t kGreeting = 256;

void Nccl::giveUp() {
  if (!all)
    return;
  device.setWatch({});
  library().abort(all);
  all = nullptr;
}

/// "2.18.3" in parts.
static void nameVersion(int version, char (&text)[32]) {
  snprintf(text, sizeof(text), "%d.%d.%d", version / 10000, version / 100 % 100,
           version % 100);
}

/// Whether `code` is good, or says that more is to come.
bool Nccl::check(NcclResult code, const char *what, Error &error) {
  if (code == 0 || code == kNcclInProgress)
    return true;
  const char *last = library().lastError(all);
  return error.set("%s: NCCL: %s%s%s", what, library().errorText(code),
                   last && last[0] ? ": " : "", last ? last : "");
}

/// Whether what this waits for, since so many seconds, may still come; and what
/// the library says.
bool Nccl::look(const char *what, double waitedSeconds, NcclResult &state,
                Error &error) {
  if (!check(library().state(all, &state), what, error) ||
      !check(state, what, error))
    return false;
  if (hosts->hasEnded())
    return error.set("another rank has ended the run");
  const int64_t limit = hosts->limitSeconds();
  return limit == 0 || waitedSeconds <= double(limit) ||
         error.set("%s: GPU %d has not ended what was begun for %" PRId64
                   " s: another rank may have left out an operation",
                   what, device.ordinal(), limit);
}

/// Waits until the library has taken what it was told.
bool Nccl::settle(const char *what, Error &error) {
  const double begin = now();
  for (;;) {
    NcclResult state = 0;
    const double waited = now() - begin;
    if (!look(what, waited, state, error))
      return false;
    if (state != kNcclInProgress)
      return true;
    const timespec pause = {0, std::min(long(waited * 1e9 / 16), 1'000'000L)};
    nanosleep(&pause, nullptr);
  }
}

bool Nccl::connect(Transport &ranks, Error &error) {
  own = ranks.rank();
  hosts = &ranks;
  if (!device.openNccl(error) ||
      !check(library().version(&libraryVersion), "ncclGetVersion", error))
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
  if (own == 0 && !check(library().makeId(&first.id), "ncclGetUniqueId", error))
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
  NcclConfig config;
  config.isBlocking = 0;
  const char *what = "connecting GPUs";
  NcclResult code =
      library().connect(&all, ranks.size(), first.id, own, &config);
  if (!check(code, what, error) || !settle(what, error))
    return false;
  device.setWatch({[](void *nccl, double waited, Error &error) {
                     NcclResult state = 0;
                     return static_cast<Nccl *>(nccl)->look(
                         "what ranks do together on GPUs", waited, state,
                         error);
                   },
                   this});
  return true;
}

bool Nccl::greet(const int *peers, int numPeers, Error &error) {
  const CudaDriver &driver = device.driver();
  const char *what = "greeting other GPUs";
  CudaAddress room = 0;
  if (!device.check(
          driver.memoryAllocate(&room, size_t(2 * numPeers + 1) * kGreeting),
          what, error))
    return false;
  List<Parcel> sends, receives;
  bool good = true;
  for (int i = 0; i < numPeers && good; ++i) {
    auto place = [&](int number) {
      return reinterpret_cast<char *>(room + size_t(number) * kGreeting);
    };
    good = (sends.push({peers[i], place(2 * i), kGreeting}) &&
            receives.push({peers[i], place(2 * i + 1), kGreeting})) ||
           error.set("no memory left to greet %d GPUs", numPeers);
  }
  good = good &&
         exchange(what, sends.begin(), int(sends.size()), receives.begin(),
                  int(receives.size()), error) &&
         device.synchronize(what, error);
  driver.memoryFree(room);
  return good;
}

bool Nccl::exchange(const char *what, const Parcel *sends, int numSends,
                    const Parcel *receives, int numReceives, Error &error) {
  auto isEmpty = [](const Parcel &parcel) { return parcel.size == 0; };
  if (std::all_of(sends, sends + numSends, isEmpty) &&
      std::all_of(receives, receives + numReceives, isEmpty))
    return true; // The library would not know of the group.
  if (!check(library().groupStart(), what, error))
    return false;
  bool good = true;
  for (int i = 0; i < numSends && good; ++i) {
    numBegun += int64_t(sends[i].size);
    good = isEmpty(sends[i]) ||
           check(library().send(sends[i].bytes, sends[i].size, kNcclByte,
                                sends[i].rank, all, device.stream()),
                 what, error);
  }
  for (int i = 0; i < numReceives && good; ++i)
    good =
        isEmpty(receives[i]) ||
        check(library().receive(receives[i].bytes, receives[i].size, kNcclByte,
                                receives[i].rank, all, device.stream()),
              what, error);
  Error other; // What a call in the group says is the cause.
  good = check(library().groupEnd(), what, good ? error : other) && good;
  return good && settle(what, error);
}

bool Nccl::disconnect(Error &error) {
  if (!all)
    return true;
  const char *what = "disconnecting GPUs";
  if (!device.synchronize(what, error) ||
      !check(library().finalize(all), what, error) || !settle(what, error))
    return false;
  device.setWatch({});
  NcclRanks ended = all;
  all = nullptr;
  return check(library().destroy(ended), what, error);
}
