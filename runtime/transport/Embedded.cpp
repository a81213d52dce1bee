//===- Embedded.cpp - Ranks that are processes of this machine ------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Embedded.h"

#include "Watcher.h"
#include "runtime/base/List.h"

#include <algorithm>
#include <cstring>

using namespace reprise::runtime;

/// Looks at its channels so often before it sleeps: a peer that is nearly done
/// is waited for without a call of the system.
static constexpr int kGlances = 2000;

namespace {
/// One rank's end of all channels.
class Embedded final : public Transport {
public:
  Embedded(Board &board, int rank, const RankSettings &settings)
      : Transport(rank, board.numRanks), board(board), settings(settings) {}

  void reportStep(int64_t step) override {
    board.ranks()[rank()].step.store(step, std::memory_order_relaxed);
  }
  void abort(const char *reason) override { board.abort(rank(), reason); }
  const char *engine() const override { return "processes of this machine"; }
  bool hasEnded() const override { return board.isAborted(); }
  int64_t limitSeconds() const override { return settings.operationSeconds; }

private:
  bool move(const char *what, Patience patience, const Parcel *sends,
            int numSends, const Parcel *receives, int numReceives,
            Error &error) override;
  bool put(const char *what, const LaneParcel &parcel, Error &error) override;
  bool take(const char *what, const LaneParcel &parcel, Error &error) override;

  /// A parcel and how much of it has moved.
  struct Moving {
    Parcel parcel;
    size_t done;
    bool isDone() const { return done == parcel.size; }
  };

  bool push(Moving &moving);
  bool pull(Moving &moving);
  bool moveSome(bool &isDone);
  bool wait(const char *what, Patience patience, uint32_t bell, int peer,
            int64_t &quiet, Error &error);
  template <typename Ready>
  bool waitUntil(const char *what, int peer, Ready isReady, Error &error);
  LaneRoom *findLane(const LaneParcel &parcel, int from, int to,
                     const Lane *&lane, Error &error);
  /// The first rank that something is still to come from or to go to.
  int missing() const;

  Board &board;
  const RankSettings &settings;
  List<Moving> outgoing, incoming;
};
} // namespace

/// Copies what fits into the channel; whether that was anything.
bool Embedded::push(Moving &moving) {
  Channel &channel = board.channel(rank(), moving.parcel.rank);
  uint64_t written = channel.written.load(std::memory_order_relaxed);
  size_t used = size_t(written - channel.read.load(std::memory_order_acquire));
  size_t count =
      std::min(moving.parcel.size - moving.done, Channel::kRoom - used);
  if (count == 0)
    return false;
  size_t at = written % Channel::kRoom;
  size_t first = std::min(count, Channel::kRoom - at);
  const char *from = moving.parcel.bytes + moving.done;
  memcpy(channel.bytes + at, from, first);
  memcpy(channel.bytes, from + first, count - first);
  channel.written.store(written + count, std::memory_order_release);
  moving.done += count;
  board.ring(moving.parcel.rank);
  return true;
}

/// The same out of it.
bool Embedded::pull(Moving &moving) {
  Channel &channel = board.channel(moving.parcel.rank, rank());
  uint64_t read = channel.read.load(std::memory_order_relaxed);
  size_t there = size_t(channel.written.load(std::memory_order_acquire) - read);
  size_t count = std::min(moving.parcel.size - moving.done, there);
  if (count == 0)
    return false;
  size_t at = read % Channel::kRoom;
  size_t first = std::min(count, Channel::kRoom - at);
  char *to = moving.parcel.bytes + moving.done;
  memcpy(to, channel.bytes + at, first);
  memcpy(to + first, channel.bytes, count - first);
  channel.read.store(read + count, std::memory_order_release);
  moving.done += count;
  board.ring(moving.parcel.rank);
  return true;
}

/// Moves what can be moved; whether that was anything. Parcels to or from one
/// rank go in their order, so a later one waits for the one before.
bool Embedded::moveSome(bool &isDone) {
  bool moved = false;
  isDone = true;
  for (List<Moving> *list : {&outgoing, &incoming})
    for (Moving &each : *list) {
      if (each.isDone())
        continue;
      bool waits = std::any_of(list->begin(), &each, [&](const Moving &other) {
        return other.parcel.rank == each.parcel.rank && !other.isDone();
      });
      moved |= !waits && (list == &outgoing ? push(each) : pull(each));
      isDone &= each.isDone();
    }
  return moved;
}

int Embedded::missing() const {
  for (const List<Moving> *list : {&incoming, &outgoing})
    for (const Moving &each : *list)
      if (!each.isDone())
        return each.parcel.rank;
  return rank();
}

/// Sleeps until somebody rings, but no longer than a second, of which `quiet`
/// counts those in which nobody did. False if the run is to end.
bool Embedded::wait(const char *what, Patience patience, uint32_t bell,
                    int waited, int64_t &quiet, Error &error) {
  if (board.isAborted())
    return error.set("another rank has ended the run");
  if (!board.sleep(rank(), bell))
    return true;
  if (board.isAborted() || patience == Patience::Endless ||
      ++quiet < settings.operationSeconds)
    return true;
  char self[128], peer[128];
  board.nameRank(rank(), self, sizeof(self));
  board.nameRank(waited, peer, sizeof(peer));
  return error.set("%s has waited for %s for %" PRId64 " s in %s", self, peer,
                   quiet, what);
}

bool Embedded::move(const char *what, Patience patience, const Parcel *sends,
                    int numSends, const Parcel *receives, int numReceives,
                    Error &error) {
  outgoing.clear();
  incoming.clear();
  for (int i = 0; i < numSends; ++i)
    if (!outgoing.push({sends[i], 0}))
      return error.set("no memory left for %d parcels", numSends);
  for (int i = 0; i < numReceives; ++i)
    if (!incoming.push({receives[i], 0}))
      return error.set("no memory left for %d parcels", numReceives);
  int64_t quiet = 0;
  for (int glances = 0;;) {
    uint32_t bell = board.ranks()[rank()].bell.load(std::memory_order_seq_cst);
    bool isDone;
    if (moveSome(isDone))
      glances = 0, quiet = 0;
    if (isDone)
      return true;
    if (++glances < kGlances && !board.isAborted()) {
      __builtin_ia32_pause();
      continue;
    }
    if (!wait(what, patience, bell, missing(), quiet, error))
      return false;
    glances = kGlances - 1;
  }
}

/// Waits for what `peer` does, which rings then.
template <typename Ready>
bool Embedded::waitUntil(const char *what, int peer, Ready isReady,
                         Error &error) {
  int64_t quiet = 0;
  for (int glances = 0;; ++glances) {
    uint32_t bell = board.ranks()[rank()].bell.load(std::memory_order_seq_cst);
    if (isReady())
      return true;
    if (glances < kGlances && !board.isAborted())
      __builtin_ia32_pause();
    else if (!wait(what, Patience::Limited, bell, peer, quiet, error))
      return false;
  }
}

LaneRoom *Embedded::findLane(const LaneParcel &parcel, int from, int to,
                             const Lane *&lane, Error &error) {
  LaneRoom *room = board.findLane(from, to, parcel.lane, lane);
  if (room && lane->size == parcel.size && lane->places == parcel.places)
    return room;
  error.set("no lane %d from rank %d to %d has %d places of %zu bytes",
            parcel.lane, from, to, parcel.places, parcel.size);
  return nullptr;
}

bool Embedded::put(const char *what, const LaneParcel &parcel, Error &error) {
  const Lane *lane = nullptr;
  LaneRoom *room = findLane(parcel, rank(), parcel.rank, lane, error);
  if (!room)
    return false;
  const uint64_t number = room->sent.load(std::memory_order_relaxed);
  auto hasPlace = [&] {
    return number - room->received.load(std::memory_order_acquire) <
           uint64_t(lane->places);
  };
  if (!waitUntil(what, parcel.rank, hasPlace, error))
    return false;
  memcpy(room->place(*lane, number), parcel.bytes, parcel.size);
  room->sent.store(number + 1, std::memory_order_release);
  board.ring(parcel.rank);
  return true;
}

bool Embedded::take(const char *what, const LaneParcel &parcel, Error &error) {
  const Lane *lane = nullptr;
  LaneRoom *room = findLane(parcel, parcel.rank, rank(), lane, error);
  if (!room)
    return false;
  const uint64_t number = room->received.load(std::memory_order_relaxed);
  auto isThere = [&] {
    return room->sent.load(std::memory_order_acquire) > number;
  };
  if (!waitUntil(what, parcel.rank, isThere, error))
    return false;
  memcpy(parcel.bytes, room->place(*lane, number), parcel.size);
  room->received.store(number + 1, std::memory_order_release);
  board.ring(parcel.rank);
  return true;
}

static int runRank(Board &board, int rank, const RankWork &work) {
  Embedded transport(board, rank, *board.settings);
  return work.body(transport, work.context);
}

int reprise::runtime::runRanks(const RankSettings &settings, RankMain body,
                               void *context, Error &error) {
  Board *board = Board::map(settings, context, /*hasChannels=*/true, error);
  if (!board)
    return 1;
  int status = 1;
  {
    Watcher watcher(*board);
    if (watcher.start(0, settings.numRanks, {body, context, runRank, nullptr},
                      error))
      status = watcher.watch(error);
  }
  board->unmap(/*hasChannels=*/true);
  return status;
}
