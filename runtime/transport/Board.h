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
//   Board | RankState[numRanks] | Channel[from * numRanks + to]
//
// All words are atomic and lock-free, so they work between processes, and zero
// is their first value, as the mapping has it.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TRANSPORT_BOARD_H
#define REPRISE_RUNTIME_TRANSPORT_BOARD_H

#include "Embedded.h"

#include <atomic>

namespace reprise::runtime {

/// What the others know of a rank.
struct alignas(64) RankState {
  std::atomic<uint32_t> bell;     ///< A futex: goes up when it is rung.
  std::atomic<uint32_t> isAsleep; ///< Whether somebody waits on it.
  std::atomic<uint32_t> beats;    ///< Goes up each second.
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

static_assert(std::atomic<uint64_t>::is_always_lock_free &&
                  std::atomic<uint32_t>::is_always_lock_free,
              "processes share them");

/// The head of the mapping.
struct alignas(64) Board {
  int numRanks;
  const RankSettings *settings;    ///< At the same address in every process.
  const void *context;             ///< Of `settings->name`.
  std::atomic<uint32_t> hasReason; ///< 1: being written, 2: written.
  int reasonRank;                  ///< Who gave it.
  int64_t reasonStep;
  char reason[1024];

  static size_t bytesFor(int numRanks) {
    size_t ranks = size_t(numRanks);
    return sizeof(Board) + ranks * sizeof(RankState) +
           ranks * ranks * sizeof(Channel);
  }

  RankState *ranks() { return reinterpret_cast<RankState *>(this + 1); }
  Channel &channel(int from, int to) {
    auto *channels = reinterpret_cast<Channel *>(ranks() + numRanks);
    return channels[from * numRanks + to];
  }

  bool isAborted() const {
    return hasReason.load(std::memory_order_acquire) != 0;
  }
  /// Writes down why the run ends, unless somebody has, and wakes all.
  void abort(int rank, const char *why);

  /// Wakes a rank, or lets it not fall asleep.
  void ring(int rank);
  /// Sleeps until the bell of `rank` is no longer `bell`, but no longer than a
  /// second; whether that has passed.
  bool sleep(int rank, uint32_t bell);

  /// "rank 3 (dp 1, tp 1)".
  void nameRank(int rank, char *text, size_t size) const;
};

/// What a rank's process does once it is forked.
int runRank(Board &board, int rank, const RankSettings &settings, RankMain body,
            void *context);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRANSPORT_BOARD_H
