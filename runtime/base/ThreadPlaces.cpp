//===- ThreadPlaces.cpp - On which processors threads are -----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ThreadPlaces.h"

#include <sched.h>

using namespace reprise::runtime;

/// Some half a millisecond: to look costs a thousandth of that, to move a
/// tenth, and a turn of the system's scheduler is longer.
static constexpr uint64_t kCyclesBetweenLooks = 1 << 20;

void ThreadPlaces::start(int threads) {
  cpu_set_t allowed;
  bool canPart = threads > 1 && threads <= kMaxThreads &&
                 sched_getaffinity(0, sizeof(allowed), &allowed) == 0 &&
                 threads <= CPU_COUNT(&allowed);
  count = canPart ? threads : 0;
  for (Place &place : places)
    place.processor.store(kNone, std::memory_order_relaxed);
}

bool ThreadPlaces::isDue(int thread) {
  return __builtin_ia32_rdtsc() - places[thread].lastLook >=
         kCyclesBetweenLooks;
}

void ThreadPlaces::lookNow(int thread) {
  if (count == 0)
    return;
  places[thread].lastLook = __builtin_ia32_rdtsc();
  int own = sched_getcpu();
  places[thread].processor.store(own, std::memory_order_relaxed);
  for (int i = 0; i < thread; ++i)
    if (places[i].processor.load(std::memory_order_relaxed) == own) {
      leave(own);
      places[thread].processor.store(sched_getcpu(), std::memory_order_relaxed);
      return;
    }
}

/// Moves this thread to a processor that no thread was seen on.
void ThreadPlaces::leave(int processor) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
    return;
  cpu_set_t others = allowed;
  CPU_CLR(processor, &others);
  for (int i = 0; i < count; ++i) {
    int taken = places[i].processor.load(std::memory_order_relaxed);
    if (taken != kNone)
      CPU_CLR(taken, &others);
  }
  // Who is where it must not be moves at once; then it may be anywhere again.
  if (CPU_COUNT(&others) > 0 &&
      sched_setaffinity(0, sizeof(others), &others) == 0)
    sched_setaffinity(0, sizeof(allowed), &allowed);
}
