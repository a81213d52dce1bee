//===- ThreadPool.h - Fork and join over independent tasks ------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_BASE_THREADPOOL_H
#define REPRISE_RUNTIME_BASE_THREADPOOL_H

#include "Error.h"
#include "ThreadPlaces.h"

#include <atomic>
#include <cstdint>
#include <pthread.h>
#include <type_traits>

namespace reprise::runtime {

/// A fixed set of threads that share out the tasks of one job at a time; the
/// calling thread works along. Each thread has a part of the tasks, the same
/// one in every job of as many, so that what it wrote in one job is in its
/// cache in the next. It takes chunks of them as it comes free, and then those
/// of others: a thread that the operating system holds back delays nobody by
/// more than the chunk it has. Idle threads spin for some 50 microseconds,
/// then sleep; those that work are kept apart, each on a processor of its own.
class ThreadPool {
public:
  static constexpr int kMaxThreads = ThreadPlaces::kMaxThreads;

  ThreadPool() = default;
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;
  ~ThreadPool() { stop(); }

  /// Starts `threads` - 1 threads, 1 <= threads <= kMaxThreads.
  bool start(int threads, Error &error);

  /// Ends and joins all threads; the calling thread alone remains.
  void stop();

  int size() const { return numThreads; }

  /// Parts that a job of so many chunks, at least two, is divided into.
  int countParts(int64_t chunks, int limit = kMaxThreads) const {
    int most = limit < numThreads ? limit : numThreads;
    return chunks < most ? int(chunks) : most;
  }
  /// The first chunk of a part. Its thread takes it and the following ones in
  /// order, unless others do.
  static int64_t firstOfPart(int64_t chunks, int parts, int part) {
    return chunks * part / parts;
  }

  /// Calls `fn(slot, begin, end)` until [0, tasks) is covered, `chunk` tasks at
  /// a time (of fewer than 2^32 chunks), and returns when all calls have. Calls
  /// that run at the same time have different slots; slots are below `limit`,
  /// which also bounds the number of threads used. Unless it does, a thread has
  /// the same slot in every job. `fn` must not start jobs of its own.
  template <typename Fn>
  void parallelFor(int64_t tasks, int64_t chunk, Fn &&fn,
                   int limit = kMaxThreads) {
    if (tasks <= 0)
      return;
    if (numThreads == 1 || tasks <= chunk || limit == 1) {
      fn(0, int64_t(0), tasks);
      return;
    }
    using Callable = std::remove_reference_t<Fn>;
    run({[](void *context, int slot, int64_t begin, int64_t end) {
           (*static_cast<Callable *>(context))(slot, begin, end);
         },
         &fn, tasks, chunk, limit});
  }

  /// Tasks that `parallelRounds` can have in several rounds.
  static constexpr int64_t kMostTasksOfRounds = 33 * kMaxThreads;

  /// Calls `fn(slot, round, task)` for the tasks [0, tasks) in each of so many
  /// rounds, fewer than 2^32 in all, and returns when all calls have. A task
  /// waits for itself in the round before, and for nothing else: threads go on
  /// to the next round with what is theirs, each in its own time. Slots are as
  /// above.
  template <typename Fn>
  void parallelRounds(int64_t rounds, int64_t tasks, Fn &&fn) {
    if (numThreads > 1 && tasks > 1) {
      auto call = [&](int slot, int64_t index, int64_t) {
        fn(slot, index / tasks, index % tasks);
      };
      return run({[](void *context, int slot, int64_t begin, int64_t end) {
                    (*static_cast<decltype(call) *>(context))(slot, begin, end);
                  },
                  &call, tasks, /*chunk=*/1, kMaxThreads, rounds});
    }
    for (int64_t round = 0; round < rounds; ++round)
      for (int64_t task = 0; task < tasks; ++task)
        fn(0, round, task);
  }

private:
  struct Job {
    void (*fn)(void *context, int slot, int64_t begin, int64_t end);
    void *context;
    int64_t tasks, chunk;
    int limit;
    int64_t rounds = 1;
    int64_t chunks = 0; ///< Of a round.
    int parts = 0;
  };
  /// A generation (high half), and how many chunks of a part were taken in it:
  /// none in any later one. So nobody has to set all parts back, but once in
  /// 2^32 jobs, when the numbers begin again.
  struct alignas(64) Part {
    std::atomic<uint64_t> taken{0};
  };

  /// Forgets all jobs that were: the next one is number 1.
  void beginNumbers();
  void run(const Job &newJob);
  void runChunks(int thread, int slot, uint32_t number);
  /// The next chunk of a part in job `number`, -1 if all are taken: those of
  /// one round come behind those of the last.
  int64_t takeChunk(int part, uint32_t number);
  void awaitRounds(int64_t task, uint32_t count);
  void endRound(int64_t task, uint32_t count);
  void work(int thread);
  uint32_t awaitGeneration(int thread, uint32_t seen);
  static void *workerEntry(void *pool);

  int numThreads = 1;
  uint64_t spinCycles = 0; ///< 0 with more threads than processors.
  Job job = {};
  ThreadPlaces places;
  pthread_t workers[kMaxThreads];

  /// The number of the current job; what idle threads watch.
  alignas(64) std::atomic<uint32_t> generation{0};
  std::atomic<uint32_t> sleepers{0};
  std::atomic<int> started{0}; ///< Threads that have taken a number.
  std::atomic<bool> stopping{false};
  /// Generation (high half), whether the job still takes threads (kOpen), and
  /// how many are in it. A thread that comes too late finds the gate closed,
  /// and the caller waits only for those that are inside.
  alignas(64) std::atomic<uint64_t> gate{0};
  Part parts[kMaxThreads];
  /// Of each task, how many rounds are over, and whether a thread sleeps until
  /// there is one more (kAwaited).
  alignas(64) std::atomic<uint32_t> roundsOver[kMostTasksOfRounds];
  alignas(64) std::atomic<int> nextSlot{0};
  /// The last generation whose threads have all left after closing.
  alignas(64) std::atomic<uint32_t> finished{0};
  std::atomic<bool> callerSleeps{false};
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_BASE_THREADPOOL_H
