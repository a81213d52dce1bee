//===- attention.cpp - Attention against the rate of GEMMs ----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The attention of a compiled model, forward and backward, next to the rate of
// the micro-kernel, measured in turn; in bf16, where the processor has a
// version with bits of its own, also next to that of portable bits. It is
// linked with the model's object, whose `main` calls `repriseMain`.
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"

#include "runtime/compute/Gemm.h"
#include "runtime/device/Peak.h"

using namespace reprise;
using namespace reprise::bench;

namespace {

void print(const char *name, double flops, double seconds, double peak) {
  printf("%-40s %9.2f %9.3f %9.1f %9.1f %8.3f\n", name, flops * 1e-9,
         seconds * 1e3, flops / seconds * 1e-9, peak * 1e-9,
         flops / seconds / peak);
}

} // namespace

/// bench-attention [THREADS [SECONDS-PER-KERNEL]]
extern "C" int repriseMain(int argc, char **argv,
                           const RepriseModel *const *models, int) {
  const RepriseModel *model = models[0];
  int threads = argc > 1 ? atoi(argv[1]) : 1;
  double budget = argc > 2 ? atof(argv[2]) : 1;
  ForeignLoad load;
  Launcher launcher(*model);
  if (!launcher.start(threads))
    return 1;
  bool isBF16 = std::any_of(
      model->gemms, model->gemms + model->numGemms,
      [](const RepriseGemm &gemm) { return gemm.typeAB == REPRISE_BF16; });
  const RepriseMicroKernel *best =
      (isBF16
           ? runtime::chooseForBF16(model->microKernels, model->numMicroKernels,
                                    cpuLevel(), launcher.pool)
           : runtime::chooseMicroKernels(model->microKernels,
                                         model->numMicroKernels, cpuLevel()))
          .full;

  printf("\n%s, %s, %lld x %lld tokens, %d thread%s\n", model->name,
         isBF16 ? "bf16" : "f32", (long long)model->microBatchSize,
         (long long)model->seqLength, threads, threads == 1 ? "" : "s");
  printf("%-40s %9s %9s %9s %9s %8s\n", "kernel", "GFLOP", "ms", "GFLOP/s",
         "GEMMs", "of them");
  const runtime::Processor portable(cpuLevel(), /*hasPortableBits=*/true);
  std::vector<bool> seen(size_t(model->numKernels));
  double flops = 0, seconds = 0, portableSeconds = 0, peak = 0;
  const RepriseSchedule &micro = model->schedules[model->program[0].schedule];
  for (int i = 0; i < micro.numLaunches; ++i) {
    const RepriseLaunch &launch = micro.launches[i];
    if (launch.kind != REPRISE_LAUNCH_KERNEL || seen[launch.callee] ||
        !isAttention(*model, launch))
      continue;
    seen[launch.callee] = true;
    std::vector<Contestant> contestants = {
        {"kernel", launcher.prepare(launch)},
        {"GEMMs", [&] {
           peak =
               std::max(peak, runtime::measurePeakFlops(*best, launcher.pool));
         }}};
    const RepriseKernel &kernel = model->kernels[launch.callee];
    bool hasPortable = runtime::chooseKernel(kernel, cpuLevel()) !=
                       runtime::chooseKernel(kernel, portable);
    if (hasPortable)
      contestants.push_back(
          {"portable bits", launcher.prepare(launch, portable)});
    race(contestants, budget, threads);
    print(kernel.name, double(launch.flops), contestants[0].seconds, peak);
    if (hasPortable) {
      print("  portable bits", double(launch.flops), contestants[2].seconds,
            peak);
      portableSeconds += contestants[2].seconds;
    }
    flops += double(launch.flops), seconds += contestants[0].seconds;
  }
  print("forward and backward", flops, seconds, peak);
  if (portableSeconds > 0)
    print("  portable bits", flops, portableSeconds, peak);
  printf("foreign load: %.2f processors\n", load.processors());
  return 0;
}
