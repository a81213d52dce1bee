//===- Board.h - The memory that embedded ranks share -----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Layout of the mapping, each part at a multiple of 64 bytes:
//
//   Board | RankState[numRanks] | Channel[from * numRanks + to] |
//   LaneRoom, places | LaneRoom, places | ... of each lane of the settings
//
// A rank that a launcher has started shares a board with its watcher alone, and
// has no channels and no lanes.
//
// All words are atomic and lock-free, so they work between processes, and zero
// is their first value, as the mapping has it.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TRANSPORT_BOARD_H
#define REPRISE_RUNTIME_TRANSPORT_BOARD_H

#include "Ranks.h"

#include <atomic>

namespace reprise::runtime {

/// What the others know of a rank.
struct alignas(64) RankState {
  std::atomic<uint32_t> bell;     ///< A futex: goes up when it is rung.
  std::atomic<uint32_t> isAsleep; ///< Whether somebody waits on it.
  std::atomic<uint32_t> beats;    ///< Goes up with each beat of its heart.
  std::atomic<uint32_t> isDone;   ///< It ends: its heart may stop.
  std::atomic<int64_t> step;      ///< That it computes, from 1; 0 before.
};

/// A ring of bytes from one rank to another: byte n of all that was ever
/// written is at `n % kRoom`.
struct alignas(64) Channel {
  static constexpr size_t kRoom = 256 << 10;
  std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> read;
  alignas(64) char bytes[kRoom];
};

/// The parcels of a lane on their way: number n of all that were ever sent is
/// at place `n % places`. Behind it are the places, each at a multiple of 64
/// bytes; nobody touches those that are never needed.
struct alignas(64) LaneRoom {
  std::atomic<uint64_t> sent;
  alignas(64) std::atomic<uint64_t> received;

  static size_t placeBytes(const Lane &lane) {
    return (lane.size + 63) / 64 * 64;
  }
  static size_t bytes(const Lane &lane) {
    return sizeof(LaneRoom) + size_t(lane.places) * placeBytes(lane);
  }
  char *place(const Lane &lane, uint64_t n) {
    return reinterpret_cast<char *>(this + 1) +
           n % uint64_t(lane.places) * placeBytes(lane);
  }
};

static_assert(std::atomic<uint64_t>::is_always_lock_free &&
                  std::atomic<uint32_t>::is_always_lock_free,
              "processes share them");

/// Where the watchers of ranks on several machines meet: rank 0's listens
/// there. It goes from rank to rank as bytes.
struct MeetingPlace {
  static constexpr int kMostAddresses = 8;
  char secret[16]; ///< Who knows it belongs to the run.
  uint16_t port;   ///< As `sockaddr_in` has it, and so are addresses.
  uint16_t numAddresses;
  uint32_t addresses[kMostAddresses];
};

/// The head of the mapping.
struct alignas(64) Board {
  int numRanks;
  const RankSettings *settings;    ///< At the same address in every process.
  const void *context;             ///< Of what the settings call.
  std::atomic<uint32_t> hasReason; ///< 1: being written, 2: written.
  int reasonRank;                  ///< Who gave it.
  int64_t reasonStep;
  char reason[1024];
  MeetingPlace place;
  std::atomic<uint32_t> hasPlace; ///< Whether a rank has written it.
  int news; ///< Of `eventfd`, for the watcher of a single rank; -1: none.

  /// Maps one of zeros for these ranks.
  static Board *map(const RankSettings &settings, const void *context,
                    bool hasChannels, Error &error);
  void unmap(bool hasChannels);

  RankState *ranks() { return reinterpret_cast<RankState *>(this + 1); }
  Channel &channel(int from, int to) {
    auto *channels = reinterpret_cast<Channel *>(ranks() + numRanks);
    return channels[from * numRanks + to];
  }
  /// The room of a lane and what the settings say of it; null without one.
  LaneRoom *findLane(int from, int to, int number, const Lane *&lane);

  bool isAborted() const {
    return hasReason.load(std::memory_order_acquire) != 0;
  }
  /// Whether somebody has written down why the run ends.
  bool hasWholeReason() const {
    return hasReason.load(std::memory_order_acquire) == 2;
  }
  /// Writes down why the run ends, unless somebody has, and wakes all.
  void abort(int rank, const char *why) {
    abort(rank, ranks()[rank].step.load(std::memory_order_relaxed), why);
  }
  void abort(int rank, int64_t step, const char *why);

  /// The rank has written something for its watcher.
  void tellWatcher();

  /// Wakes a rank, or lets it not fall asleep.
  void ring(int rank);
  /// Sleeps until the bell of `rank` is no longer `bell`, but no longer than a
  /// second; whether that has passed.
  bool sleep(int rank, uint32_t bell);

  /// "rank 3 (dp 1, tp 1)".
  void nameRank(int rank, char *text, size_t size) const;
};

/// What a rank does, and over what.
struct RankWork {
  RankMain body;
  void *context;
  /// What the rank's process does once it is forked: makes an engine and calls
  /// the body; returns its status.
  int (*run)(Board &board, int rank, const RankWork &work);
  const void *engine; ///< What `run` wants to know besides.
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRANSPORT_BOARD_H
