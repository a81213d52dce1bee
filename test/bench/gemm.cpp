//===- gemm.cpp - GEMMs against libraries ---------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The GEMMs of GPT-2 training, forward and both gradients, of f32 and of
// bf16, next to those of OpenBLAS and oneDNN if they are installed, and to the
// micro-kernel's own rate. It is linked with a compiled model, whose
// micro-kernels it takes: the object's `main` calls `repriseMain`, which is
// here and not the runtime's.
//
//===----------------------------------------------------------------------===//

#include "Bench.h"
#include "Libraries.h"

#include "runtime/compute/GemmAmx.h"
#include "runtime/device/Peak.h"

#include <cmath>
#include <cstring>
#include <sys/mman.h>

using namespace reprise;
using namespace reprise::bench;

namespace {

/// Threads of OpenMP and of OpenBLAS spin for up to 20 ms before they sleep. A
/// turn is long enough to wake them.
constexpr double kRest = 30e-3, kTurn = 4e-3;

constexpr Shape kShapes[] = {
    // Rows x width out x width in: a weight is stored [in, out].
    {"qkv, one of three", 256, 768, 768, false, false, false},
    {"qkv as one", 256, 2304, 768, false, false, false},
    {"fc forward", 256, 3072, 768, false, false, false},
    {"fc-proj forward", 256, 768, 3072, false, false, false},
    {"head forward", 256, 50304, 768, false, true, false},
    {"proj dX", 256, 768, 768, false, true, false},
    {"fc dX", 256, 768, 3072, false, true, false},
    {"fc-proj dX", 256, 3072, 768, false, true, false},
    {"head dX", 256, 768, 50304, false, false, false},
    {"proj dW", 768, 768, 256, true, false, true},
    {"fc dW", 768, 3072, 256, true, false, true},
    {"fc-proj dW", 3072, 768, 256, true, false, true},
    {"head dW", 50304, 768, 256, true, false, true},
    {"fc forward", 1024, 3072, 768, false, false, false},
    {"fc-proj forward", 1024, 768, 3072, false, false, false},
    {"fc dX", 1024, 768, 3072, false, true, false},
    {"fc-proj dX", 1024, 3072, 768, false, true, false},
    {"fc dW", 768, 3072, 1024, true, false, true},
    {"small, fc", 1024, 512, 128, false, false, false},
    {"small, dW", 128, 512, 1024, true, false, true},
    {"square", 2048, 2048, 2048, false, false, false},
};

/// f32 between -1 and 1; two bf16 in each place, the even one small, if they
/// are read as such.
float *allocate(int64_t count) {
  size_t bytes = (size_t(count) * 4 + (2 << 20)) & ~size_t((2 << 20) - 1);
  void *memory = aligned_alloc(2 << 20, bytes);
  madvise(memory, bytes, MADV_HUGEPAGE);
  auto *words = static_cast<uint32_t *>(memory);
  uint32_t state = 1;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    float value = float(int32_t(state)) * 0x1p-31f;
    memcpy(words + i, &value, sizeof(value));
    words[i] = (words[i] & 0xFFFFBFFF) | 0x3000;
  }
  return reinterpret_cast<float *>(words);
}

RepriseGemm toGemm(const Shape &shape, bool isBF16) {
  RepriseGemm gemm = {};
  gemm.m = shape.m, gemm.n = shape.n, gemm.k = shape.k;
  gemm.lda = shape.lda(), gemm.ldb = shape.ldb(), gemm.ldc = shape.n;
  gemm.batch[0] = gemm.batch[1] = 1;
  gemm.alpha = 1.0f;
  gemm.transposeA = shape.transposeA, gemm.transposeB = shape.transposeB;
  gemm.accumulate = shape.accumulate;
  if (isBF16) {
    gemm.typeAB = REPRISE_BF16;
    gemm.typeC = shape.accumulate ? REPRISE_F32 : REPRISE_BF16;
  }
  return gemm;
}

/// Everything that takes turns at the GEMMs of one table.
struct Field {
  bool isBF16;
  int threads;
  runtime::ThreadPool &pool;
  /// The fastest micro-kernels for operands of this type.
  runtime::MicroKernels kernels;
  const OpenBLAS &openBLAS;
  const OneDNN &oneDNN;

  void printHead() const {
    printf("\n%s, %d thread%s, micro-kernel %d x %d of %s, GFLOP/s\n",
           isBF16 ? "bf16" : "f32", threads, threads == 1 ? "" : "s",
           kernels.full->rows, kernels.full->cols,
           kernels.full->typeAB == REPRISE_BF16 ? "pairs" : "f32");
    printf("%-20s %6s %6s %6s %-4s %8s %8s %8s %9s %9s  ratio to best\n",
           "GEMM", "m", "n", "k", "form", "peak", "reprise", "of peak",
           "OpenBLAS", "oneDNN");
  }
  void run(const Shape &shape, double budget) const;
};

} // namespace

void Field::run(const Shape &shape, double budget) const {
  RepriseGemm gemm = toGemm(shape, isBF16);
  int64_t perWord = isBF16 ? 2 : 1;
  float *a = allocate(shape.m * shape.k / perWord + 1);
  float *b = allocate(shape.k * shape.n / perWord + 1);
  float *c = allocate(shape.m * shape.n);
  float *workspace = allocate(repriseGemmWorkspaceBytes(&gemm) / 4);
  // The clock changes with what the neighbours do: so does what can be had.
  double peak = 0;
  std::vector<Contestant> contestants = {
      {"peak",
       [&] {
         peak = std::max(peak, runtime::measurePeakFlops(*kernels.full, pool));
       }},
      {"reprise", [&] {
         runtime::gemm(gemm, {a, b, nullptr, c, workspace}, kernels, pool);
       }}};
  if (openBLAS && !isBF16)
    contestants.push_back(
        {"OpenBLAS", [&] { openBLAS.run(shape, threads, a, b, c); }});
  if (oneDNN && !isBF16)
    contestants.push_back(
        {"oneDNN", [&] { oneDNN.run(shape, threads, a, b, c); }});
  if (oneDNN && isBF16)
    if (auto matmul = oneDNN.createMatmul(shape, threads, a, b, c))
      contestants.push_back({"oneDNN", *matmul});
  for (size_t other = 2; other < contestants.size(); ++other)
    contestants[other].rest = threads > 1 ? kRest : 0;
  race(contestants, budget, pool.size(), threads > 1 ? kTurn : 0);

  double flops = 2.0 * double(shape.m * shape.n) * double(shape.k);
  auto rate = [&](const char *name) {
    for (const Contestant &each : contestants)
      if (!strcmp(each.name, name))
        return flops / each.seconds;
    return 0.0;
  };
  double own = rate("reprise");
  printf("%-20s %6lld %6lld %6lld %c%c%-2s %8.1f %8.1f %7.1f%%", shape.what,
         (long long)shape.m, (long long)shape.n, (long long)shape.k,
         shape.transposeA ? 'T' : 'N', shape.transposeB ? 'T' : 'N',
         shape.accumulate ? "+" : "", peak * 1e-9, own * 1e-9,
         100 * own / peak);
  double best = 0;
  for (const char *name : {"OpenBLAS", "oneDNN"}) {
    if (rate(name) > 0)
      printf(" %9.1f", rate(name) * 1e-9);
    else
      printf(" %9s", "-");
    best = std::max(best, rate(name));
  }
  if (best > 0)
    printf("  %.3f", own / best);
  printf("\n");
  fflush(stdout);
  for (float *memory : {a, b, c, workspace})
    free(memory);
}

/// bench-gemm [THREADS [SECONDS-PER-PRODUCT [NAME [f32|bf16]]]]
extern "C" int repriseMain(int argc, char **argv,
                           const RepriseModel *const *models, int32_t) {
  const RepriseModel &model = *models[0];
  int threads = argc > 1 ? atoi(argv[1]) : 1;
  double budget = argc > 2 ? atof(argv[2]) : 0.5;
  const char *name = argc > 3 ? argv[3] : "", *type = argc > 4 ? argv[4] : "";
  ForeignLoad load;
  runtime::ThreadPool pool;
  runtime::Error error;
  if (!pool.start(threads, error)) {
    fprintf(stderr, "bench: %s\n", error.text);
    return 1;
  }
  OpenBLAS openBLAS;
  OneDNN oneDNN;
  if (openBLAS)
    openBLAS.describe();
  if (oneDNN)
    oneDNN.describe();
  for (bool isBF16 : {false, true}) {
    if (*type && strcmp(type, isBF16 ? "bf16" : "f32") != 0)
      continue;
    runtime::MicroKernels kernels = runtime::chooseMicroKernels(
        model.microKernels, model.numMicroKernels, cpuLevel());
    if (isBF16)
      kernels = runtime::chooseForBF16(model.microKernels,
                                       model.numMicroKernels, cpuLevel(), pool);
    runtime::AmxScratches scratches;
    runtime::Error error;
    if (!kernels.full || !scratches.allocate(threads, error)) {
      fprintf(stderr, "bench: %s\n",
              kernels.full ? error.text : "no micro-kernel");
      return 1;
    }
    kernels.scratches = scratches.get();
    Field field = {isBF16, threads, pool, kernels, openBLAS, oneDNN};
    field.printHead();
    for (const Shape &shape : kShapes)
      if (strstr(shape.what, name))
        field.run(shape, budget);
  }
  printf("foreign load: %.2f processors\n", load.processors());
  return 0;
}
