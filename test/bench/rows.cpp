//===- rows.cpp - Kernels against a copy of the same bytes ----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every kernel of a compiled model that moves bytes rather than computes
// (norms, losses, activations, dropout, sums, the optimizer), on the buffers of
// its first launch, next to a copy that reads and writes as many bytes in all.
// It is linked with the model's object, whose `main` calls `repriseMain`.
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"

#include "runtime/Arena.h"

using namespace reprise;
using namespace reprise::bench;

namespace {

/// Launches that move fewer bytes are over before they can be timed.
constexpr int64_t kLeastBytes = 32 << 10;

/// The chunks per thread of the runtime's own launches.
constexpr int64_t kChunksPerThread = 8;

class Bench {
public:
  Bench(const RepriseModel &model, double budget, const char *only)
      : model(model), budget(budget), only(only),
        seen(size_t(model.numKernels)) {}

  bool start(int threads) {
    runtime::Error error;
    if (pool.start(threads, error) && arena.map(model.arenaBytes, error))
      return true;
    fprintf(stderr, "bench: %s\n", error.text);
    return false;
  }

  void runAll(const RepriseLaunch *launches, int count) {
    for (int i = 0; i < count; ++i) {
      const RepriseLaunch &launch = launches[i];
      if (launch.kind != REPRISE_LAUNCH_KERNEL || seen[launch.callee])
        continue;
      seen[launch.callee] = true;
      const char *name = model.kernels[launch.callee].name;
      if (!isAttention(model, launch) && !(only && !strstr(name, only)) &&
          bytesOf(model, launch) >= kLeastBytes)
        run(launch);
    }
  }

private:
  /// Numbers between 0 and 1, which every kernel can work on; small integers
  /// where it expects tokens.
  void fill(const RepriseLaunch &launch) {
    uint32_t random = 1;
    for (int i = 0; i < launch.numBuffers; ++i) {
      const RepriseBuffer &buffer = model.buffers[launch.firstBuffer + i];
      bool isInteger = buffer.offset == model.tokens.offset ||
                       buffer.offset == model.targets.offset ||
                       buffer.offset == model.rng.offset;
      auto *words = arena.at<uint32_t>(buffer);
      auto *numbers = arena.at<float>(buffer);
      for (int64_t j = 0; j < buffer.bytes / 4; ++j) {
        random = random * 1664525u + 1013904223u;
        if (isInteger)
          words[j] = uint32_t((random >> 8) % uint64_t(model.vocabSize));
        else
          numbers[j] = float(random >> 8) * 0x1p-24f;
      }
    }
  }

  void run(const RepriseLaunch &launch) {
    fill(launch);
    std::vector<void *> buffers;
    for (int i = 0; i < launch.numBuffers; ++i)
      buffers.push_back(arena.at<void>(model.buffers[launch.firstBuffer + i]));
    const RepriseKernel &kernel = model.kernels[launch.callee];
    int64_t chunk =
        std::max<int64_t>(launch.tasks / (kChunksPerThread * pool.size()), 1);
    int64_t bytes = bytesOf(model, launch);
    Copy copy(bytes);
    std::vector<Contestant> contestants = {
        {"kernel",
         [&] {
           pool.parallelFor(launch.tasks, chunk,
                            [&](int, int64_t begin, int64_t end) {
                              kernel.fn(buffers.data(),
                                        model.ids + launch.firstId, begin, end);
                            });
         }},
        {"copy", [&] { copy.run(pool, Copy::kSmall); }},
        {"copy around caches", [&] { copy.run(pool, Copy::kLarge); }}};
    race(contestants, budget);
    double own = contestants[0].seconds;
    double best = std::min(contestants[1].seconds, contestants[2].seconds);
    printf("%-52s %9.2f %9.3f %8.1f %8.1f %7.3f\n", kernel.name,
           double(bytes) * 1e-6, own * 1e3, double(bytes) / own * 1e-9,
           double(bytes) / best * 1e-9, best / own);
    fflush(stdout);
  }

  const RepriseModel &model;
  double budget;
  const char *only;
  std::vector<bool> seen;
  runtime::ThreadPool pool;
  runtime::Arena arena;
};

} // namespace

/// bench-rows [THREADS [SECONDS-PER-KERNEL [NAME]]]
extern "C" int repriseMain(int argc, char **argv,
                           const RepriseModel *const *models, int32_t) {
  const RepriseModel *model = models[0];
  int threads = argc > 1 ? atoi(argv[1]) : 1;
  Bench bench(*model, argc > 2 ? atof(argv[2]) : 0.2,
              argc > 3 ? argv[3] : nullptr);
  ForeignLoad load;
  if (!bench.start(threads))
    return 1;
  printf("\n%s, %lld x %lld tokens, %d thread%s\n", model->name,
         (long long)model->microBatchSize, (long long)model->seqLength, threads,
         threads == 1 ? "" : "s");
  printf("%-52s %9s %9s %8s %8s %7s\n", "kernel", "MB moved", "ms", "GB/s",
         "copy", "of copy");
  bench.runAll(model->micro, model->numMicro);
  bench.runAll(model->update, model->numUpdate);
  printf("foreign load: %.2f processors\n", load.processors());
  return 0;
}
