//===- step.cpp - Training steps, and the least they could take -----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Steps of a compiled model on random tokens, as the trainer runs them, and
// their floor: products and attention at the measured rate of the micro-kernel,
// and every other launch's bytes at the measured rate of a copy. It is linked
// with the model's object, whose `main` calls `repriseMain`.
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"

#include "runtime/Arena.h"
#include "runtime/Init.h"
#include "runtime/Peak.h"

using namespace reprise;
using namespace reprise::bench;

namespace {

/// FLOPs of products and attention, and the bytes of all else, in one step.
struct Work {
  double flops = 0, bytes = 0;

  void add(const RepriseModel &model, const RepriseLaunch *launches, int count,
           int times) {
    for (int i = 0; i < count; ++i) {
      bool isProduct = launches[i].kind == REPRISE_LAUNCH_GEMM;
      if (isProduct || isAttention(model, launches[i]))
        flops += times * double(launches[i].flops);
      else
        bytes += times * double(bytesOf(model, launches[i]));
    }
  }
};

/// What the trainer is without files and output.
class Trainer {
public:
  explicit Trainer(const RepriseModel &model)
      : model(model), executor(model, arena, pool) {}

  bool start(int threads) {
    runtime::Error error;
    if (!pool.start(threads, error) || !arena.map(model.arenaBytes, error) ||
        !executor.prepare(cpuLevel(), /*profile=*/false, error)) {
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
    for (int micro = 0; micro < model.numMicroBatches; ++micro) {
      drawTokens(model.tokens);
      drawTokens(model.targets);
      auto *rng = arena.at<uint32_t>(model.rng);
      rng[0] = 1, rng[1] = 0, rng[2] = uint32_t(step), rng[3] = uint32_t(micro);
      executor.runMicro(error);
    }
    *arena.at<float>(model.lr) = 1e-4f;
    *arena.at<float>(model.biasCorrection1) = 1;
    *arena.at<float>(model.biasCorrection2) = 1;
    executor.runNorm(error);
    executor.runOptimizer(error);
  }

  double loss() const { return *arena.at<float>(model.loss); }

  /// FLOP/s and bytes/s that this machine has for these threads.
  std::pair<double, double> measureRates() {
    constexpr int64_t kBytes = 512 << 20;
    Copy copy(kBytes);
    std::vector<Contestant> copies = {
        {"copy", [&] { copy.run(pool, Copy::kSmall); }},
        {"copy around caches", [&] { copy.run(pool, Copy::kLarge); }}};
    race(copies, 0.3, pool.size());
    double seconds = std::min(copies[0].seconds, copies[1].seconds);
    double peak = 0;
    if (executor.microKernel())
      peak = runtime::measurePeakFlops(*executor.microKernel(), pool);
    return {peak, double(kBytes) / seconds};
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
  runtime::Executor executor;
  uint32_t random = 1;
};

} // namespace

/// bench-step [THREADS [STEPS]]
extern "C" int repriseMain(int argc, char **argv,
                           const RepriseModel *const *models, int32_t) {
  const RepriseModel *model = models[0];
  int threads = argc > 1 ? atoi(argv[1]) : 1;
  int steps = argc > 2 ? atoi(argv[2]) : 3;
  ForeignLoad load;
  Trainer trainer(*model);
  if (!trainer.start(threads))
    return 1;
  // The first step meets memory that is not there yet.
  double least = 1e30;
  for (int step = 0; step <= steps; ++step) {
    double start = runtime::now();
    trainer.run(step);
    if (step > 0)
      least = std::min(least, runtime::now() - start);
  }
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);

  Work work;
  work.add(*model, model->micro, model->numMicro, model->numMicroBatches);
  work.add(*model, model->update, model->numUpdate, 1);
  auto [peak, copy] = trainer.measureRates();
  double floor = (peak > 0 ? work.flops / peak : 0) + work.bytes / copy;
  printf("ms=%.2f floor=%.2f gflop=%.2f peak=%.1f gb=%.3f copy=%.1f rss=%.3f "
         "loss=%.4f foreign=%.2f\n",
         least * 1e3, floor * 1e3, work.flops * 1e-9, peak * 1e-9,
         work.bytes * 1e-9, copy * 1e-9, double(usage.ru_maxrss) * 1024e-9,
         trainer.loss(), load.processors());
  return 0;
}
