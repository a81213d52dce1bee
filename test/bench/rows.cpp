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

using namespace reprise;
using namespace reprise::bench;

namespace {

/// Launches that move fewer bytes are over before they can be timed.
constexpr int64_t kLeastBytes = 32 << 10;

class Bench {
public:
  Bench(const RepriseModel &model, double budget, const char *only)
      : model(model), budget(budget), only(only),
        seen(size_t(model.numKernels)), launcher(model) {}

  bool start(int threads) { return launcher.start(threads); }

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
  void run(const RepriseLaunch &launch) {
    std::function<void()> work = launcher.prepare(launch);
    runtime::ThreadPool &pool = launcher.pool;
    int64_t bytes = bytesOf(model, launch);
    Copy copy(bytes);
    std::vector<Contestant> contestants = copy.contestants(pool);
    contestants.push_back({"kernel", work});
    race(contestants, budget, pool.size());
    double own = contestants.back().seconds;
    contestants.pop_back();
    double best = leastOf(contestants);
    printf("%-52s %9.2f %9.3f %8.1f %8.1f %7.3f\n",
           model.kernels[launch.callee].name, double(bytes) * 1e-6, own * 1e3,
           double(bytes) / own * 1e-9, double(bytes) / best * 1e-9, best / own);
    fflush(stdout);
  }

  const RepriseModel &model;
  double budget;
  const char *only;
  std::vector<bool> seen;
  Launcher launcher;
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
  for (int i = 0; i < model->numSchedules; ++i)
    if (runtime::countRuns(*model, i) > 0)
      bench.runAll(model->schedules[i].launches,
                   model->schedules[i].numLaunches);
  printf("foreign load: %.2f processors\n", load.processors());
  return 0;
}
