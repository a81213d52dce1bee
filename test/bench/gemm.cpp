//===- gemm.cpp - Matrix products against libraries -----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The products of GPT-2 training, forward and both gradients, next to those of
// OpenBLAS and oneDNN if they are installed, and to the micro-kernel's own
// rate. It is linked with a compiled model, whose micro-kernels it takes: the
// object's `main` calls `repriseMain`, which is here and not the runtime's.
//
//===----------------------------------------------------------------------===//

#include "Bench.h"

#include "runtime/Gemm.h"
#include "runtime/Peak.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>

using namespace reprise;
using namespace reprise::bench;

namespace {

/// The part of a library that is compared.
struct Library {
  using Cblas = void (*)(int, int, int, int, int, int, float, const float *,
                         int, const float *, int, float, float *, int);
  using Dnnl = int (*)(char, char, int64_t, int64_t, int64_t, float,
                       const float *, int64_t, const float *, int64_t, float,
                       float *, int64_t);
  const char *name;
  Cblas cblas = nullptr;
  Dnnl dnnl = nullptr;
  void (*setThreads)(int) = nullptr;
};

struct Shape {
  const char *what;
  int64_t m, n, k;
  bool transposeA, transposeB, accumulate;
};

constexpr Shape kShapes[] = {
    // Rows x width out x width in: a weight is stored [in, out].
    {"qkv forward", 256, 768, 768, false, false, false},
    {"proj forward", 256, 768, 768, false, false, false},
    {"fc forward", 256, 3072, 768, false, false, false},
    {"fc-proj forward", 256, 768, 3072, false, false, false},
    {"head forward", 256, 50304, 768, false, true, false},
    {"fc dX", 256, 768, 3072, false, true, false},
    {"fc-proj dX", 256, 3072, 768, false, true, false},
    {"head dX", 256, 768, 50304, false, false, false},
    {"fc dW", 768, 3072, 256, true, false, true},
    {"fc-proj dW", 3072, 768, 256, true, false, true},
    {"head dW", 50304, 768, 256, true, false, true},
    {"fc forward, x W^T", 1024, 3072, 768, false, true, false},
    {"fc-proj, x W^T", 1024, 768, 3072, false, true, false},
    {"fc forward", 1024, 3072, 768, false, false, false},
    {"fc dW", 768, 3072, 1024, true, false, true},
    {"small, fc", 1024, 512, 128, false, false, false},
    {"small, dW", 128, 512, 1024, true, false, true},
    {"square", 2048, 2048, 2048, false, false, false},
};

float *allocate(int64_t count) {
  size_t bytes = (size_t(count) * 4 + (2 << 20)) & ~size_t((2 << 20) - 1);
  void *memory = aligned_alloc(2 << 20, bytes);
  madvise(memory, bytes, MADV_HUGEPAGE);
  auto *values = static_cast<float *>(memory);
  uint32_t state = 1;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    values[i] = float(int32_t(state)) * 0x1p-31f;
  }
  return values;
}

std::vector<Library> findLibraries() {
  std::vector<Library> found;
  auto open = [](std::initializer_list<const char *> names) {
    void *handle = nullptr;
    for (const char *name : names)
      if (!handle)
        handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    return handle;
  };
  if (void *handle = open({"libopenblas.so.0", "libopenblas.so"})) {
    Library library = {"OpenBLAS"};
    library.cblas =
        reinterpret_cast<Library::Cblas>(dlsym(handle, "cblas_sgemm"));
    library.setThreads = reinterpret_cast<void (*)(int)>(
        dlsym(handle, "openblas_set_num_threads"));
    auto core =
        reinterpret_cast<char *(*)()>(dlsym(handle, "openblas_get_corename"));
    printf("OpenBLAS: kernels for %s (OPENBLAS_CORETYPE=%s)\n",
           core ? core() : "?",
           getenv("OPENBLAS_CORETYPE") ? getenv("OPENBLAS_CORETYPE") : "");
    if (library.cblas)
      found.push_back(library);
  }
  if (void *handle = open({"libdnnl.so.3", "libdnnl.so.2", "libdnnl.so"})) {
    Library library = {"oneDNN"};
    library.dnnl = reinterpret_cast<Library::Dnnl>(dlsym(handle, "dnnl_sgemm"));
    library.setThreads = reinterpret_cast<void (*)(int)>(
        dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
    if (!library.setThreads)
      if (void *omp = dlopen("libgomp.so.1", RTLD_NOW | RTLD_GLOBAL))
        library.setThreads =
            reinterpret_cast<void (*)(int)>(dlsym(omp, "omp_set_num_threads"));
    if (library.dnnl)
      found.push_back(library);
  }
  return found;
}

/// Runs `shape` once on a library, row-major.
void call(const Library &library, const Shape &shape, const float *a,
          const float *b, float *c) {
  constexpr int kRowMajor = 101, kPlain = 111, kTransposed = 112;
  int64_t lda = shape.transposeA ? shape.m : shape.k;
  int64_t ldb = shape.transposeB ? shape.k : shape.n;
  float beta = shape.accumulate ? 1.0f : 0.0f;
  if (library.cblas)
    library.cblas(kRowMajor, shape.transposeA ? kTransposed : kPlain,
                  shape.transposeB ? kTransposed : kPlain, int(shape.m),
                  int(shape.n), int(shape.k), 1.0f, a, int(lda), b, int(ldb),
                  beta, c, int(shape.n));
  else
    library.dnnl(shape.transposeA ? 'T' : 'N', shape.transposeB ? 'T' : 'N',
                 shape.m, shape.n, shape.k, 1.0f, a, lda, b, ldb, beta, c,
                 shape.n);
}

RepriseGemm toGemm(const Shape &shape) {
  RepriseGemm gemm = {};
  gemm.m = shape.m, gemm.n = shape.n, gemm.k = shape.k;
  gemm.lda = shape.transposeA ? shape.m : shape.k;
  gemm.ldb = shape.transposeB ? shape.k : shape.n;
  gemm.ldc = shape.n;
  gemm.batch[0] = gemm.batch[1] = 1;
  gemm.alpha = 1.0f;
  gemm.transposeA = shape.transposeA, gemm.transposeB = shape.transposeB;
  gemm.accumulate = shape.accumulate;
  return gemm;
}

bool runAll(const RepriseModel &model, int threads, double budget,
            const char *only) {
  runtime::ThreadPool pool;
  runtime::Error error;
  int level = __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq")
                  ? 4
                  : 3;
  runtime::MicroKernels kernels = runtime::chooseMicroKernels(
      model.microKernels, model.numMicroKernels, level);
  const RepriseMicroKernel *kernel = kernels.full;
  if (!kernel || !pool.start(threads, error)) {
    fprintf(stderr, "bench: %s\n", kernel ? error.text : "no micro-kernel");
    return false;
  }
  std::vector<Library> libraries = findLibraries();
  printf("\n%d thread%s, micro-kernel %d x %d, GFLOP/s\n", threads,
         threads == 1 ? "" : "s", kernel->rows, kernel->cols);
  printf("%-20s %6s %6s %6s %-4s %8s %8s %8s", "product", "m", "n", "k", "form",
         "peak", "reprise", "of peak");
  for (const Library &library : libraries)
    printf(" %9s", library.name);
  printf("  ratio to best\n");
  for (const Shape &shape : kShapes) {
    if (only && !strstr(shape.what, only))
      continue;
    RepriseGemm gemm = toGemm(shape);
    float *a = allocate(shape.m * shape.k), *b = allocate(shape.k * shape.n);
    float *c = allocate(shape.m * shape.n);
    float *workspace = allocate(repriseGemmWorkspaceBytes(&gemm) / 4);
    std::vector<Contestant> contestants;
    contestants.push_back({"reprise", [&] {
                             runtime::gemm(gemm, {a, b, nullptr, c, workspace},
                                           kernels, pool);
                           }});
    for (const Library &library : libraries)
      contestants.push_back({library.name, [&] {
                               if (library.setThreads)
                                 library.setThreads(threads);
                               call(library, shape, a, b, c);
                             }});
    // The clock changes with what the neighbours do: so does what can be had.
    double peak = 0;
    contestants.push_back(
        {"peak", [&] {
           peak = std::max(peak, runtime::measurePeakFlops(*kernel, pool));
         }});
    race(contestants, budget);
    contestants.pop_back();
    double flops = 2.0 * double(shape.m * shape.n) * double(shape.k);
    auto rate = [&](const Contestant &each) { return flops / each.seconds; };
    char form[8];
    snprintf(form, sizeof(form), "%c%c%s", shape.transposeA ? 'T' : 'N',
             shape.transposeB ? 'T' : 'N', shape.accumulate ? "+" : "");
    printf("%-20s %6lld %6lld %6lld %-4s %8.1f %8.1f %7.1f%%", shape.what,
           (long long)shape.m, (long long)shape.n, (long long)shape.k, form,
           peak * 1e-9, rate(contestants[0]) * 1e-9,
           100 * rate(contestants[0]) / peak);
    double best = 0;
    for (size_t i = 1; i < contestants.size(); ++i) {
      best = std::max(best, rate(contestants[i]));
      printf(" %9.1f", rate(contestants[i]) * 1e-9);
    }
    if (best > 0)
      printf("  %.3f", rate(contestants[0]) / best);
    printf("\n");
    fflush(stdout);
    for (float *memory : {a, b, c, workspace})
      free(memory);
  }
  return true;
}

} // namespace

/// bench-gemm [THREADS [SECONDS-PER-PRODUCT [NAME]]]
extern "C" int repriseMain(int argc, char **argv,
                           const RepriseModel *const *models, int32_t) {
  const RepriseModel *model = models[0];
  int threads = argc > 1 ? atoi(argv[1]) : 1;
  double budget = argc > 2 ? atof(argv[2]) : 0.5;
  ForeignLoad load;
  if (!runAll(*model, threads, budget, argc > 3 ? argv[3] : nullptr))
    return 1;
  printf("foreign load: %.2f processors\n", load.processors());
  return 0;
}
