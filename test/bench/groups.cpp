//===- groups.cpp - GEMMs with groups against GEMMs of each ---------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The GEMMs of experts, forward and both gradients, of f32 and of bf16: all
// groups in one call, the same GEMMs one by one, and one GEMM of as many
// operations with one matrix. Experts have equally many rows, or unequally. It
// is linked with a compiled model, whose micro-kernels it takes: the object's
// `main` calls `repriseMain`, which is here and not the runtime's.
//
//===----------------------------------------------------------------------===//

#include "Bench.h"
#include "Kernels.h"

#include "runtime/compute/GemmAmx.h"
#include "runtime/compute/GroupedGemm.h"
#include "runtime/device/Peak.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

using namespace reprise;
using namespace reprise::bench;

namespace {

/// A turn is long enough to wake threads.
constexpr double kTurn = 4e-3;

enum class Form { Forward, InputGradient, WeightGradient };

struct Shape {
  const char *what;
  Form form;
  int64_t groups, rows, inputs, outputs; ///< Rows of all groups.
};

/// Experts of Mixtral's proportions, at 1024 tokens with two experts each, at a
/// quarter and at four times that.
std::vector<Shape> listShapes(int64_t groups, int64_t inputs, int64_t outputs,
                              int64_t rows) {
  std::vector<Shape> shapes;
  for (int64_t all : {rows / 4, rows, 4 * rows}) {
    shapes.push_back({"up", Form::Forward, groups, all, inputs, outputs});
    shapes.push_back({"down", Form::Forward, groups, all, outputs, inputs});
    shapes.push_back(
        {"up dX", Form::InputGradient, groups, all, inputs, outputs});
    shapes.push_back(
        {"up dW", Form::WeightGradient, groups, all, inputs, outputs});
  }
  return shapes;
}

/// Memory as a buffer of the arena has it. Where it begins decides whether C
/// may go past the caches.
using Memory = std::unique_ptr<char, decltype(&free)>;

Memory allocateWords(int64_t words) {
  return Memory(allocatePages(size_t(4 * words)), free);
}

/// Numbers between -1 and 1; read as bf16 ones as well.
Memory draw(int64_t words) {
  Memory values = allocateWords(words);
  uint32_t state = 1;
  for (int64_t i = 0; i < words; ++i) {
    state = state * 1664525u + 1013904223u;
    uint32_t word = (state & 0xBFFFBFFF) | 0x30003000;
    memcpy(values.get() + 4 * i, &word, sizeof(word));
  }
  return values;
}

/// Groups of equal size; or the first has a quarter of all rows, the second a
/// quarter of the rest, and so on.
std::vector<int32_t> makeOffsets(const Shape &shape, bool isEven) {
  std::vector<int32_t> offsets = {0};
  int64_t left = shape.rows;
  for (int64_t group = 0; group < shape.groups; ++group) {
    int64_t size = isEven ? left / (shape.groups - group) : left / 4;
    if (group + 1 == shape.groups)
      size = left;
    left -= size;
    offsets.push_back(offsets.back() + int32_t(size));
  }
  return offsets;
}

RepriseGemm toGemm(const Shape &shape, bool isBF16) {
  RepriseGemm gemm = {};
  bool isWeight = shape.form == Form::WeightGradient;
  bool isForward = shape.form == Form::Forward;
  gemm.m = isWeight ? shape.outputs : shape.rows;
  gemm.n = isForward ? shape.outputs : shape.inputs;
  gemm.k = isWeight ? shape.rows : isForward ? shape.inputs : shape.outputs;
  gemm.transposeA = isWeight, gemm.transposeB = isForward;
  gemm.lda = isWeight ? gemm.m : gemm.k;
  gemm.ldb = isForward ? gemm.k : gemm.n, gemm.ldc = gemm.n;
  gemm.batch[0] = gemm.batch[1] = 1;
  gemm.alpha = 1;
  gemm.slots = 1;
  if (isBF16) {
    gemm.typeAB = REPRISE_BF16;
    gemm.typeC = isWeight ? REPRISE_F32 : REPRISE_BF16;
  }
  return gemm;
}

/// The operands of one shape, and what takes turns at it.
class Field {
public:
  Field(const Shape &shape, bool isBF16, bool isEven,
        const runtime::MicroKernels &kernels, runtime::ThreadPool &pool)
      : kernels(kernels), pool(pool), whole(toGemm(shape, isBF16)),
        grouped(whole), offsets(makeOffsets(shape, isEven)) {
    const int64_t matrix = shape.inputs * shape.outputs;
    const bool isWeight = whole.transposeA;
    grouped.groups = int32_t(shape.groups);
    (isWeight ? grouped.strideC : grouped.strideB)[1] = matrix;
    a = draw(shape.rows * std::max(shape.inputs, shape.outputs));
    b = draw(isWeight ? shape.rows * shape.inputs : shape.groups * matrix);
    c = allocateWords(isWeight ? shape.groups * matrix : shape.rows * whole.n);
    workspace = allocateWords(std::max(repriseGemmWorkspaceBytes(&grouped),
                                       repriseGemmWorkspaceBytes(&whole)) /
                              4);
  }

  void runGrouped() {
    runtime::Error error;
    if (!runtime::groupedGemm(
            grouped,
            {a.get(), b.get(), offsets.data(), nullptr, c.get(), getSums()},
            kernels, pool, "experts", error))
      fprintf(stderr, "bench: %s\n", error.text);
  }
  void runWhole() { runOne(whole, 0, 0, 0); }
  void runOneByOne() {
    for (int64_t group = 0; group < grouped.groups; ++group) {
      const int64_t first = offsets[size_t(group)];
      const int64_t rows = offsets[size_t(group) + 1] - first;
      if (rows == 0)
        continue;
      RepriseGemm one = whole;
      (one.transposeA ? one.k : one.m) = rows;
      if (one.transposeA)
        runOne(one, first * one.m, first * one.n, group * one.m * one.n);
      else
        runOne(one, first * one.k, group * one.k * one.n, first * one.n);
    }
  }

private:
  static void *at(const Memory &base, int64_t element, int32_t type) {
    return base.get() + element * repriseElementBytes(type);
  }
  float *getSums() { return reinterpret_cast<float *>(workspace.get()); }
  /// From these elements of the operands on.
  void runOne(const RepriseGemm &gemm, int64_t inA, int64_t inB, int64_t inC) {
    runtime::gemm(gemm,
                  {at(a, inA, gemm.typeAB), at(b, inB, gemm.typeAB), nullptr,
                   at(c, inC, gemm.typeC), getSums()},
                  kernels, pool);
  }

  const runtime::MicroKernels &kernels;
  runtime::ThreadPool &pool;
  RepriseGemm whole, grouped;
  std::vector<int32_t> offsets;
  Memory a{nullptr, free}, b{nullptr, free}, c{nullptr, free},
      workspace{nullptr, free};
};

void run(const Shape &shape, bool isBF16, bool isEven, double budget,
         const runtime::MicroKernels &kernels, runtime::ThreadPool &pool) {
  Field field(shape, isBF16, isEven, kernels, pool);
  std::vector<Contestant> contestants = {
      {"grouped", [&] { field.runGrouped(); }},
      {"one by one", [&] { field.runOneByOne(); }},
      {"whole", [&] { field.runWhole(); }}};
  race(contestants, budget, pool.size(), pool.size() > 1 ? kTurn : 0);
  double flops =
      2.0 * double(shape.rows) * double(shape.inputs) * double(shape.outputs);
  auto rate = [&](int which) {
    return flops / contestants[size_t(which)].seconds * 1e-9;
  };
  printf("%-6s %6lld %6lld %6lld %-6s %9.1f %10.1f %9.1f %8.3f %8.3f\n",
         shape.what, (long long)(shape.rows / shape.groups),
         (long long)shape.inputs, (long long)shape.outputs,
         isEven ? "even" : "uneven", rate(0), rate(1), rate(2),
         contestants[0].seconds / contestants[1].seconds, rate(0) / rate(2));
  fflush(stdout);
}

} // namespace

/// bench-groups [THREADS [SECONDS-PER-PRODUCT [GROUPS INPUTS OUTPUTS ROWS]]]
extern "C" int repriseMain(int argc, char **argv,
                           const RepriseModel *const *models, int32_t) {
  const RepriseModel &model = *models[0];
  int threads = argc > 1 ? atoi(argv[1]) : 1;
  double budget = argc > 2 ? atof(argv[2]) : 0.5;
  int64_t sizes[] = {8, 768, 2048, 2048};
  for (int i = 0; i < 4 && argc > 3 + i; ++i)
    sizes[i] = atoll(argv[3 + i]);
  ForeignLoad load;
  runtime::ThreadPool pool;
  runtime::Error error;
  if (!pool.start(threads, error)) {
    fprintf(stderr, "bench: %s\n", error.text);
    return 1;
  }
  for (bool isBF16 : {false, true}) {
    runtime::MicroKernels kernels =
        isBF16 ? runtime::chooseForBF16(model.microKernels,
                                        model.numMicroKernels, cpuLevel(), pool)
               : runtime::chooseMicroKernels(model.microKernels,
                                             model.numMicroKernels, cpuLevel());
    runtime::AmxScratches scratches;
    if (!kernels.full || !scratches.allocate(threads, error)) {
      fprintf(stderr, "bench: %s\n",
              kernels.full ? error.text : "no micro-kernel");
      return 1;
    }
    kernels.scratches = scratches.get();
    printf("\n%s, %d thread%s, %lld groups, GFLOP/s\n", isBF16 ? "bf16" : "f32",
           threads, threads == 1 ? "" : "s", (long long)sizes[0]);
    printf("%-6s %6s %6s %6s %-6s %9s %10s %9s %8s %8s\n", "", "rows", "in",
           "out", "groups", "grouped", "one by one", "one whole", "of each",
           "of whole");
    for (const Shape &shape :
         listShapes(sizes[0], sizes[1], sizes[2], sizes[3]))
      for (bool isEven : {true, false})
        run(shape, isBF16, isEven, budget, kernels, pool);
  }
  printf("foreign load: %.2f processors\n", load.processors());
  return 0;
}
