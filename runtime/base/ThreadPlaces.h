//===- ThreadPlaces.h - On which processors threads are ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_BASE_THREADPLACES_H
#define REPRISE_RUNTIME_BASE_THREADPLACES_H

#include <atomic>
#include <cstdint>

namespace reprise::runtime {

/// Keeps the threads of a pool from sharing a processor. The system lets a
/// thread wake up where it slept or where the thread is that woke it, and takes
/// its time to part two that share one; a helper may not even run before the
/// job is over, again and again. So each notes where it is, looks now and then
/// where the others were last, and moves to a processor that none of them is
/// on. It stays nowhere by force: where it may run is the same before and
/// after.
class ThreadPlaces {
public:
  static constexpr int kMaxThreads = 512;

  /// For so many threads, numbered from 0. There is nothing to do unless each
  /// can have a processor.
  void start(int threads);

  /// Looks, if the last time is long enough ago. Of two threads on one
  /// processor, that with the higher number moves.
  void look(int thread) {
    if (count > 0 && isDue(thread))
      lookNow(thread);
  }
  void lookNow(int thread);

private:
  static constexpr int kNone = -1;

  bool isDue(int thread);
  void leave(int processor);

  struct alignas(64) Place {
    std::atomic<int> processor{kNone}; ///< where it was last
    uint64_t lastLook = 0;             ///< in cycles of the time stamp counter
  };
  Place places[kMaxThreads];
  int count = 0; ///< Threads to be kept apart.
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_BASE_THREADPLACES_H
