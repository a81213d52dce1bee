//===- step.cpp - Training steps, and the least they could take -----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Steps of a compiled model on random tokens, as the trainer runs them, and
// their floor: GEMMs and attention at the measured rate of the micro-kernel,
// and every other launch's bytes at the measured rate of a copy. It is linked
// with the model's object, whose `main` calls `repriseMain`.
//
// With a third argument it also shows where the time goes: the least of each
// launch over the steps, next to its own floor, those of one kernel or shape of
// GEMM as one line.
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"

#include "runtime/device/Arena.h"
#include "runtime/device/Init.h"
#include "runtime/device/Peak.h"

#include <map>
#include <sched.h>
#include <string>

using namespace reprise;
using namespace reprise::bench;

namespace {

/// FLOPs of GEMMs and attention, and the bytes of all else, in one step.
struct Work {
  double flops = 0, bytes = 0;

  void add(const RepriseModel &model, const RepriseLaunch &launch,
           int64_t times) {
    bool isGemm = launch.kind == REPRISE_LAUNCH_GEMM;
    if (isGemm || isAttention(model, launch))
      flops += double(times) * double(launch.flops);
    else
      bytes += double(times) * double(bytesOf(model, launch));
  }
};

/// What the trainer is without files and output.
class Trainer {
public:
  explicit Trainer(const RepriseModel &model)
      : model(model), device(model, arena, pool, alone, cpuLevel()),
        executor(model, arena, device) {}

  bool start(int threads, bool profile) {
    runtime::Error error;
    if (!pool.start(threads, error) || !device.allocate(error) ||
        !executor.prepare(profile, /*rank=*/0, error)) {
      fprintf(stderr, "bench: %s\n", error.text);
      return false;
    }
    runtime::initializeStates(model, /*seed=*/1, arena, pool, error);
    runtime::roundParameters(model, arena, pool, error);
    runtime::fillRotaries(model, arena, pool, error);
    return true;
  }

  void run(int step) {
    runtime::Error error; // There is none on the CPU.
    *arena.at<float>(model.loss) = 0;
    for (int begin = 0; begin < model.numEntries;) {
      drawTokens(model.tokens);
      drawTokens(model.targets);
      auto *rng = arena.at<uint32_t>(model.rng);
      rng[0] = 1, rng[1] = 0, rng[2] = uint32_t(step);
      rng[3] = uint32_t(model.program[begin].microBatch);
      runtime::Turn turn = runtime::turnFrom(model, begin, /*most=*/1);
      executor.runTurn(turn, /*isApart=*/true, error);
      begin = turn.end;
    }
    *arena.at<float>(model.lr) = 1e-4f;
    *arena.at<float>(model.biasCorrection1) = 1;
    *arena.at<float>(model.biasCorrection2) = 1;
    device.runNorm(error);
    device.runOptimizer(error);
  }

  /// Seconds of each launch since the start, by its number.
  const double *profile() { return device.profile().all(); }

  double loss() const { return *arena.at<float>(model.loss); }

  /// FLOP/s that this machine has for these threads; 0 without GEMMs.
  double measurePeak() {
    const RepriseMicroKernel *kernel = device.facts().microKernel;
    return kernel ? runtime::measurePeakFlops(*kernel, pool) : 0;
  }

  /// Bytes/s that it has for them.
  double measureCopy() {
    constexpr int64_t kBytes = 512 << 20;
    Copy copy(kBytes);
    std::vector<Contestant> copies = copy.contestants(pool);
    race(copies, 0.3, pool.size());
    return double(kBytes) / leastOf(copies);
  }

  /// Where the threads run: one job of as many tasks, long enough for all.
  void printPlaces() {
    std::vector<int> places(size_t(pool.size()), -1);
    pool.parallelFor(pool.size(), 1, [&](int slot, int64_t, int64_t) {
      places[size_t(slot)] = sched_getcpu();
      usleep(1000);
    });
    for (size_t slot = 0; slot < places.size(); ++slot)
      fprintf(stderr, "bench: thread %zu is on processor %d\n", slot,
              places[slot]);
  }

private:
  void drawTokens(const RepriseBuffer &buffer) {
    auto *tokens = arena.at<int32_t>(buffer);
    for (int64_t i = 0; i < model.microBatchSize * model.seqLength; ++i) {
      random = random * 1664525u + 1013904223u;
      tokens[i] = int32_t((random >> 8) % uint64_t(model.vocabSize));
    }
  }

  const RepriseModel &model;
  runtime::ThreadPool pool;
  runtime::Arena arena;
  runtime::Transport alone;
  runtime::CpuDevice device;
  runtime::Executor executor;
  uint32_t random = 1;
};

/// The least time of each launch over the steps.
class Profile {
public:
  explicit Profile(const RepriseModel &model)
      : model(model),
        least(size_t(runtime::firstLaunch(model, model.numSchedules)), 1e30),
        last(least.size()) {}

  /// Takes the sums after a step; of the first one they count no time.
  void take(const double *sums, bool isFirst) {
    for (size_t i = 0; i < least.size(); ++i) {
      if (!isFirst)
        least[i] = std::min(least[i], sums[i] - last[i]);
      last[i] = sums[i];
    }
  }

  void print(double peak, double copy) const {
    struct Line {
      int launches = 0;
      double seconds = 0, floor = 0, flops = 0, bytes = 0;
    };
    std::map<std::string, Line> lines;
    runtime::forEachLaunch(model, [&](const RepriseLaunch &launch,
                                      int64_t number, int64_t runs, bool) {
      Work work;
      work.add(model, launch, runs);
      Line &line = lines[nameOf(launch)];
      ++line.launches;
      line.seconds += least[size_t(number)];
      line.floor += work.flops / peak + work.bytes / copy;
      line.flops += work.flops, line.bytes += work.bytes;
    });
    std::vector<std::pair<std::string, Line>> sorted(lines.begin(),
                                                     lines.end());
    std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) {
      return a.second.seconds > b.second.seconds;
    });
    printf("%-44s %8s %9s %9s %9s %9s %9s\n", "kernel or GEMM", "launches",
           "ms", "floor", "of floor", "GFLOP/s", "GB/s");
    for (const auto &[name, line] : sorted)
      printf("%-44s %8d %9.3f %9.3f %9.2f %9.1f %9.1f\n", name.c_str(),
             line.launches, line.seconds * 1e3, line.floor * 1e3,
             line.seconds / line.floor, line.flops / line.seconds * 1e-9,
             line.bytes / line.seconds * 1e-9);
  }

private:
  /// Of a GEMM its shape, with how A and B are stored and whether it adds.
  std::string nameOf(const RepriseLaunch &launch) const {
    if (launch.kind != REPRISE_LAUNCH_GEMM)
      return model.kernels[launch.callee].name;
    const RepriseGemm &gemm = model.gemms[launch.callee];
    char text[128];
    snprintf(text, sizeof(text), "GEMM %lld x %lld x %lld %c%c%s%s",
             (long long)gemm.m, (long long)gemm.n, (long long)gemm.k,
             gemm.transposeA ? 'T' : 'N', gemm.transposeB ? 'T' : 'N',
             gemm.accumulate ? "+" : "", gemm.bias ? " bias" : "");
    return text;
  }

  const RepriseModel &model;
  std::vector<double> least, last;
};

} // namespace

/// bench-step [THREADS [STEPS [profile]]]
extern "C" int repriseMain(int argc, char **argv,
                           const RepriseModel *const *models, int32_t) {
  const RepriseModel *model = models[0];
  int threads = argc > 1 ? atoi(argv[1]) : 1;
  int steps = argc > 2 ? atoi(argv[2]) : 3;
  bool profiled = argc > 3;
  ForeignLoad load;
  Trainer trainer(*model);
  if (!trainer.start(threads, profiled))
    return 1;
  Profile profile(*model);
  double peakBefore = trainer.measurePeak();
  // The first step meets memory that is not there yet.
  double least = 1e30;
  for (int step = 0; step <= steps; ++step) {
    double start = runtime::now();
    trainer.run(step);
    if (step > 0)
      least = std::min(least, runtime::now() - start);
    if (profiled)
      profile.take(trainer.profile(), /*isFirst=*/step == 0);
  }
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);

  Work work;
  runtime::forEachLaunch(*model,
                         [&](const RepriseLaunch &launch, int64_t, int64_t runs,
                             bool) { work.add(*model, launch, runs); });
  // Rates move with whoever else is on the machine's host, so the floor takes
  // the better of two moments.
  double peakAfter = trainer.measurePeak(), copy = trainer.measureCopy();
  double peak = std::max(peakBefore, peakAfter);
  if (std::min(peakBefore, peakAfter) < 0.75 * peak) {
    fprintf(stderr, "bench: %.1f GFLOP/s before the steps, %.1f after them\n",
            peakBefore * 1e-9, peakAfter * 1e-9);
    trainer.printPlaces();
  }
  double floor = (peak > 0 ? work.flops / peak : 0) + work.bytes / copy;
  printf("ms=%.2f floor=%.2f gflop=%.2f peak=%.1f gb=%.3f copy=%.1f rss=%.3f "
         "loss=%.4f foreign=%.2f\n",
         least * 1e3, floor * 1e3, work.flops * 1e-9, peak * 1e-9,
         work.bytes * 1e-9, copy * 1e-9, double(usage.ru_maxrss) * 1024e-9,
         trainer.loss(), load.processors());
  if (profiled)
    profile.print(peak, copy);
  return 0;
}
