//===- Bench.h - Times that can be compared ---------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contestants take turns, and of each the shortest time counts: what a busy
// neighbour or a change of the clock does to one, it does to all.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_BENCH_BENCH_H
#define REPRISE_TEST_BENCH_BENCH_H

#include "runtime/compute/Cpu.h"
#include "runtime/device/CpuDevice.h"
#include "runtime/device/Executor.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

namespace reprise::bench {

using runtime::cpuLevel;

struct Contestant {
  const char *name;
  std::function<void()> work;
  double seconds = 1e30; ///< The least so far.
  /// Seconds after its turn until its idle threads no longer spin: meanwhile
  /// they would take a processor from the next.
  double rest = 0;
};

/// The processor time of this process, in seconds.
inline double processorTime() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

/// Lets all take turns until `budget` seconds are over, five rounds at least.
/// Of one thread the processor time counts, so that what lasts longer than a
/// turn of the scheduler does not count its neighbours'. A turn is one call, or
/// as many as `turn` seconds hold: the first of several wakes threads.
inline void race(std::vector<Contestant> &contestants, double budget,
                 int threads, double turn = 0) {
  auto time = [&] { return threads == 1 ? processorTime() : runtime::now(); };
  double end = runtime::now() + budget;
  for (int round = 0; round < 5 || runtime::now() < end; ++round)
    for (Contestant &each : contestants) {
      double start, first = time();
      do {
        start = time();
        each.work();
        each.seconds = std::min(each.seconds, time() - start);
      } while (start - first < turn);
      if (each.rest > 0)
        usleep(useconds_t(1e6 * each.rest));
    }
}

/// The time of the fastest.
inline double leastOf(const std::vector<Contestant> &contestants) {
  double least = contestants.front().seconds;
  for (const Contestant &each : contestants)
    least = std::min(least, each.seconds);
  return least;
}

/// What the processors did for others while this lives, as a number of them.
class ForeignLoad {
public:
  ForeignLoad() : start(runtime::now()), busy(others()) {}
  double processors() const {
    return (others() - busy) / (runtime::now() - start);
  }

private:
  /// Busy seconds of all processors without those of this process.
  static double others() {
    long long user = 0, nice = 0, system = 0;
    if (FILE *file = fopen("/proc/stat", "re")) {
      if (fscanf(file, "cpu %lld %lld %lld", &user, &nice, &system) != 3)
        user = nice = system = 0;
      fclose(file);
    }
    rusage own;
    getrusage(RUSAGE_SELF, &own);
    auto seconds = [](const timeval &time) {
      return double(time.tv_sec) + 1e-6 * double(time.tv_usec);
    };
    return double(user + nice + system) / double(sysconf(_SC_CLK_TCK)) -
           seconds(own.ru_utime) - seconds(own.ru_stime);
  }

  double start, busy;
};

} // namespace reprise::bench

#endif // REPRISE_TEST_BENCH_BENCH_H
