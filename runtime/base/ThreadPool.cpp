//===- ThreadPool.cpp - Fork and join over independent tasks --------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ThreadPool.h"

#include <cassert>
#include <climits>
#include <cstring>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace reprise::runtime;

/// Of the time stamp counter, some 50 microseconds: longer than from one job to
/// the next and than a thread waits for the last chunk of another, about as
/// long as it takes to wake a thread of a virtual machine, shorter than anybody
/// minds who shares the machine.
static constexpr uint64_t kSpinCycles = 1 << 17;

static constexpr uint64_t kOpen = uint64_t(1) << 31;
static constexpr uint64_t kInside = kOpen - 1;
static constexpr uint32_t kAwaited = uint32_t(1) << 31;

/// Sleeps while `word` is `value`; may return early.
static void futexWait(std::atomic<uint32_t> &word, uint32_t value) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

static void futexWake(std::atomic<uint32_t> &word, int count) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

/// Looks until `isDone` or so many cycles are over; returns whether it is.
template <typename Fn>
static bool spin(uint64_t cycles, Fn isDone) {
  for (uint64_t start = __builtin_ia32_rdtsc();;) {
    if (isDone())
      return true;
    if (__builtin_ia32_rdtsc() - start >= cycles)
      return false;
    __builtin_ia32_pause();
  }
}

bool ThreadPool::start(int threads, Error &error) {
  cpu_set_t allowed;
  bool crowded = sched_getaffinity(0, sizeof(allowed), &allowed) == 0 &&
                 threads > CPU_COUNT(&allowed);
  spinCycles = crowded ? 0 : kSpinCycles;
  started = 0;
  beginNumbers();
  places.start(threads);
  places.lookNow(0);
  for (int i = 1; i < threads; ++i) {
    int code = pthread_create(&workers[i], nullptr, workerEntry, this);
    if (code != 0) {
      stop();
      return error.set("cannot start thread %d of %d: %s", i + 1, threads,
                       strerror(code));
    }
    numThreads = i + 1;
  }
  return true;
}

void ThreadPool::stop() {
  stopping = true;
  ++generation;
  futexWake(generation, INT_MAX);
  for (int i = 1; i < numThreads; ++i)
    pthread_join(workers[i], nullptr);
  numThreads = 1;
  stopping = false;
}

void *ThreadPool::workerEntry(void *pool) {
  auto *self = static_cast<ThreadPool *>(pool);
  self->work(++self->started);
  return nullptr;
}

uint32_t ThreadPool::awaitGeneration(int thread, uint32_t seen) {
  uint32_t now = seen;
  if (spin(spinCycles, [&] {
        now = generation.load(std::memory_order_acquire);
        return now != seen;
      }))
    return now;
  // `run` raises the generation first and looks for sleepers then; here it is
  // the other way round, so one of the two sees the other.
  ++sleepers;
  while ((now = generation.load()) == seen)
    futexWait(generation, seen);
  --sleepers;
  // Whoever comes too late because it woke up with the caller does not do so
  // again.
  places.lookNow(thread);
  return now;
}

void ThreadPool::work(int thread) {
  uint32_t seen = 0;
  for (;;) {
    seen = awaitGeneration(thread, seen);
    if (stopping)
      return;
    uint64_t state = gate.load();
    while ((state & kOpen) && uint32_t(state >> 32) == seen) {
      if (!gate.compare_exchange_weak(state, state + 1))
        continue;
      // Where there are enough, a thread has the same one each time, and what
      // belongs to it in its cache.
      int slot = job.limit < numThreads ? nextSlot.fetch_add(1) : thread;
      if (slot < job.limit)
        runChunks(thread, slot, seen);
      state = gate.fetch_sub(1) - 1;
      if (!(state & kOpen) && !(state & kInside)) {
        finished = seen;
        if (callerSleeps)
          futexWake(finished, 1);
      }
      break;
    }
  }
}

int64_t ThreadPool::takeChunk(int part, uint32_t number) {
  int64_t first = firstOfPart(job.chunks, job.parts, part);
  int64_t count = firstOfPart(job.chunks, job.parts, part + 1) - first;
  std::atomic<uint64_t> &taken = parts[part].taken;
  uint64_t seen = taken.load(std::memory_order_relaxed), next;
  int64_t index;
  do {
    index = uint32_t(seen >> 32) == number ? int64_t(uint32_t(seen)) : 0;
    if (index >= count * job.rounds)
      return -1;
    next = uint64_t(number) << 32 | uint64_t(index + 1);
  } while (!taken.compare_exchange_weak(seen, next, std::memory_order_relaxed));
  return index / count * job.chunks + first + index % count;
}

/// Whoever has the round that is awaited works, or waits for one before it:
/// rounds of a task are taken in order.
void ThreadPool::awaitRounds(int64_t task, uint32_t count) {
  std::atomic<uint32_t> &over = roundsOver[task];
  if (spin(spinCycles, [&] {
        return (over.load(std::memory_order_acquire) & ~kAwaited) == count;
      }))
    return;
  for (uint32_t now;
       (now = over.fetch_or(kAwaited) | kAwaited) != (count | kAwaited);)
    futexWait(over, now);
}

void ThreadPool::endRound(int64_t task, uint32_t count) {
  std::atomic<uint32_t> &over = roundsOver[task];
  if (over.exchange(count, std::memory_order_acq_rel) & kAwaited)
    futexWake(over, INT_MAX);
}

void ThreadPool::runChunks(int thread, int slot, uint32_t number) {
  for (int i = 0; i < job.parts; ++i)
    for (int64_t chunk;
         (chunk = takeChunk((thread + i) % job.parts, number)) >= 0;) {
      places.look(thread);
      if (job.rounds > 1) {
        int64_t task = chunk % job.chunks;
        uint32_t round = uint32_t(chunk / job.chunks);
        if (round > 0)
          awaitRounds(task, round);
        job.fn(job.context, slot, chunk, chunk + 1);
        if (round + 1 < job.rounds)
          endRound(task, round + 1);
        continue;
      }
      int64_t begin = chunk * job.chunk, end = begin + job.chunk;
      job.fn(job.context, slot, begin, end < job.tasks ? end : job.tasks);
    }
}

void ThreadPool::beginNumbers() {
  for (Part &part : parts)
    part.taken = 0;
  finished = 0;
  generation = 0;
}

void ThreadPool::run(const Job &newJob) {
  if (generation.load(std::memory_order_relaxed) == UINT32_MAX)
    beginNumbers();
  job = newJob;
  job.chunks = (job.tasks + job.chunk - 1) / job.chunk;
  job.parts = countParts(job.chunks, job.limit);
  assert(job.rounds == 1 || job.tasks <= kMostTasksOfRounds);
  if (job.rounds > 1)
    for (int64_t task = 0; task < job.tasks; ++task)
      roundsOver[task].store(0, std::memory_order_relaxed);
  nextSlot.store(1, std::memory_order_relaxed); // Slot 0 is the caller's.
  uint32_t number = generation.load(std::memory_order_relaxed) + 1;
  gate = uint64_t(number) << 32 | kOpen;
  generation = number;
  if (sleepers.load() > 0) {
    int64_t helpers = job.chunks - 1;
    futexWake(generation, helpers < numThreads ? int(helpers) : numThreads);
  }

  runChunks(/*thread=*/0, /*slot=*/0, number);

  if (!(gate.fetch_and(~kOpen) & kInside))
    return;
  if (spin(spinCycles,
           [&] { return finished.load(std::memory_order_acquire) == number; }))
    return;
  callerSleeps = true;
  for (uint32_t last; (last = finished.load()) != number;)
    futexWait(finished, last);
  callerSleeps = false;
}
