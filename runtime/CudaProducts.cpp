//===- CudaProducts.cpp - Matrix products by cuBLASLt ---------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaProducts.h"

#include <algorithm>
#include <cinttypes>

using namespace reprise::runtime;

/// Algorithms that are asked for, and repeated so often to find the fastest.
static constexpr int kMostChoices = 8, kRepeats = 3;

static int64_t bytesOf(int32_t type) { return type == REPRISE_BF16 ? 2 : 4; }
static int blasType(int32_t type) {
  return type == REPRISE_BF16 ? kBlasBF16 : kBlasF32;
}

bool CudaProducts::check(BlasResult code, const char *name, const char *what,
                         Error &error) const {
  return code == 0 || error.set("product %s: cuBLASLt %zu cannot %s: %s (%d)",
                                name, device.blas().version(), what,
                                device.blas().statusName(code), code);
}

void *CudaProducts::addressOf(int buffer) const {
  return reinterpret_cast<void *>(device.base() +
                                  CudaAddress(model.buffers[buffer].offset));
}

bool CudaProducts::layOut(BlasLayout &layout, int32_t type, int64_t rows,
                          int64_t columns, int64_t stride, int64_t batch,
                          int64_t batchStride, const char *name, Error &error) {
  const CublasLt &blas = device.blas();
  auto count = int32_t(batch);
  const char *what = "describe a matrix";
  return check(blas.layoutCreate(&layout, blasType(type), uint64_t(rows),
                                 uint64_t(columns), stride),
               name, what, error) &&
         check(blas.layoutSet(layout, kBlasLayoutBatchCount, &count,
                              sizeof(count)),
               name, what, error) &&
         check(blas.layoutSet(layout, kBlasLayoutBatchStride, &batchStride,
                              sizeof(batchStride)),
               name, what, error);
}

bool CudaProducts::describe(const RepriseGemm &gemm, bool tf32,
                            Product &product, const char *name, Error &error) {
  // One of the two batch dimensions is cuBLASLt's, or both if they are one.
  const int64_t *strides[3] = {gemm.strideB, gemm.strideA, gemm.strideC};
  int64_t b0 = gemm.batch[0], b1 = gemm.batch[1];
  bool isOne = std::all_of(strides, strides + 3,
                           [&](const int64_t *s) { return s[0] == b1 * s[1]; });
  int inner = b1 == 1 || (!isOne && b0 > b1) ? 0 : 1, outer = 1 - inner;
  int64_t batch = isOne ? b0 * b1 : gemm.batch[inner];
  product.repeats = isOne ? 1 : gemm.batch[outer];
  const int32_t types[3] = {gemm.typeAB, gemm.typeAB, gemm.typeC};
  for (int i = 0; i < 3; ++i)
    product.step[i] = strides[i][outer] * bytesOf(types[i]);

  const CublasLt &blas = device.blas();
  const char *what = "describe it";
  int compute =
      gemm.typeAB == REPRISE_F32 && tf32 ? kBlasComputeTF32 : kBlasComputeF32;
  int32_t transposeFirst = gemm.transposeB ? kBlasTransposed : 0;
  int32_t transposeSecond = gemm.transposeA ? kBlasTransposed : 0;
  if (!check(blas.productCreate(&product.product, compute, kBlasF32), name,
             what, error) ||
      !check(blas.productSet(product.product, kBlasProductTransA,
                             &transposeFirst, sizeof(transposeFirst)),
             name, what, error) ||
      !check(blas.productSet(product.product, kBlasProductTransB,
                             &transposeSecond, sizeof(transposeSecond)),
             name, what, error))
    return false;
  if (gemm.bias &&
      !check(blas.productSet(product.product, kBlasProductEpilogue,
                             &kBlasEpilogueBias, sizeof(kBlasEpilogueBias)),
             name, what, error))
    return false;
  int64_t m = gemm.m, n = gemm.n, k = gemm.k;
  return layOut(product.first, gemm.typeAB, gemm.transposeB ? k : n,
                gemm.transposeB ? n : k, gemm.ldb, batch, gemm.strideB[inner],
                name, error) &&
         layOut(product.second, gemm.typeAB, gemm.transposeA ? m : k,
                gemm.transposeA ? k : m, gemm.lda, batch, gemm.strideA[inner],
                name, error) &&
         layOut(product.sum, gemm.typeC, n, m, gemm.ldc, batch,
                gemm.strideC[inner], name, error);
}

/// Of the addresses of all entries of a batch: that of the plan's buffers, as
/// far as the strides keep it.
static uint32_t alignmentOf(const int64_t *strides, int32_t type) {
  constexpr int64_t kBuffers = 256;
  int64_t bits =
      kBuffers | strides[0] * bytesOf(type) | strides[1] * bytesOf(type);
  return uint32_t(bits & -bits);
}

bool CudaProducts::choose(const RepriseGemm &gemm, const RepriseLaunch &launch,
                          Product &product, bool autotune, Error &error) {
  const CublasLt &blas = device.blas();
  BlasPreference preference = nullptr;
  const char *name = launch.name, *what = "choose an algorithm";
  if (!check(blas.preferenceCreate(&preference), name, what, error))
    return false;
  int last = launch.firstBuffer + launch.numBuffers - 1;
  auto workspace = uint64_t(model.buffers[last].bytes);
  uint32_t alignments[3] = {alignmentOf(gemm.strideB, gemm.typeAB),
                            alignmentOf(gemm.strideA, gemm.typeAB),
                            alignmentOf(gemm.strideC, gemm.typeC)};
  auto set = [&](int attribute, const void *value, size_t bytes) {
    return check(blas.preferenceSet(preference, attribute, value, bytes), name,
                 what, error);
  };
  // Parts of a sum stay f32 until all are added, also where C is bf16.
  bool good = set(kBlasPreferenceWorkspace, &workspace, sizeof(workspace)) &&
              set(kBlasPreferenceReductions, &kBlasReduceInF32,
                  sizeof(kBlasReduceInF32)) &&
              set(kBlasPreferenceAlignmentA, &alignments[0], 4) &&
              set(kBlasPreferenceAlignmentB, &alignments[1], 4) &&
              set(kBlasPreferenceAlignmentC, &alignments[2], 4) &&
              set(kBlasPreferenceAlignmentD, &alignments[2], 4);
  if (good && gemm.bias) { // Its alignment counts.
    void *bias = addressOf(launch.firstBuffer + 2);
    good = check(
        blas.productSet(product.product, kBlasProductBias, &bias, sizeof(bias)),
        name, what, error);
  }
  BlasChoice choices[kMostChoices] = {};
  int found = 0;
  good = good &&
         check(blas.choose(handle, product.product, product.first,
                           product.second, product.sum, product.sum, preference,
                           autotune ? kMostChoices : 1, choices, &found),
               name, what, error);
  blas.preferenceDestroy(preference);
  if (!good)
    return false;
  float best = -1;
  for (int i = 0; i < found; ++i) {
    if (choices[i].state != 0 || choices[i].workspaceBytes > workspace)
      continue;
    Product trial = product;
    trial.algorithm = choices[i].algorithm;
    trial.workspaceBytes = choices[i].workspaceBytes;
    float milliseconds = 0;
    int runs = autotune ? kRepeats : 0;
    if (!time(launch, trial, runs, milliseconds, error))
      return false;
    if (best < 0 || milliseconds < best) {
      best = milliseconds;
      product = trial;
    }
  }
  return best >= 0 ||
         error.set("product %s: cuBLASLt %zu has no algorithm for m %" PRId64
                   ", n %" PRId64 ", k %" PRId64 " of %s in %" PRIu64
                   " bytes of workspace",
                   name, blas.version(), gemm.m, gemm.n, gemm.k,
                   gemm.typeAB == REPRISE_BF16 ? "bf16" : "f32", workspace);
}

/// The least time of `runs` runs behind a first one, which loads what the
/// algorithm needs.
bool CudaProducts::time(const RepriseLaunch &launch, const Product &product,
                        int runs, float &best, Error &error) {
  const CudaDriver &driver = device.driver();
  CudaEvent begin = nullptr, end = nullptr;
  bool good =
      device.check(driver.eventCreate(&begin, 0), "cuEventCreate", error) &&
      device.check(driver.eventCreate(&end, 0), "cuEventCreate", error);
  best = 0;
  for (int i = 0; good && i <= runs; ++i) {
    float milliseconds = 0;
    good = device.check(driver.eventRecord(begin, device.stream()), launch.name,
                        error) &&
           multiply(launch, product, error) &&
           device.check(driver.eventRecord(end, device.stream()), launch.name,
                        error) &&
           device.check(driver.eventSynchronize(end), launch.name, error) &&
           device.check(driver.eventElapsed(&milliseconds, begin, end),
                        launch.name, error);
    best = i <= 1 ? milliseconds : std::min(best, milliseconds);
  }
  if (begin)
    driver.eventDestroy(begin);
  if (end)
    driver.eventDestroy(end);
  return good;
}

bool CudaProducts::multiply(const RepriseLaunch &launch, const Product &product,
                            Error &error) {
  const RepriseGemm &gemm = model.gemms[launch.callee];
  const CublasLt &blas = device.blas();
  int last = launch.firstBuffer + launch.numBuffers - 1;
  if (gemm.bias) {
    void *bias = addressOf(launch.firstBuffer + 2);
    if (!check(blas.productSet(product.product, kBlasProductBias, &bias,
                               sizeof(bias)),
               launch.name, "take its bias", error))
      return false;
  }
  auto *b = static_cast<char *>(addressOf(launch.firstBuffer + 1));
  auto *a = static_cast<char *>(addressOf(launch.firstBuffer));
  auto *c = static_cast<char *>(addressOf(last - 1));
  float beta = gemm.accumulate ? 1.0f : 0.0f;
  for (int64_t i = 0; i < product.repeats; ++i) {
    void *sum = c + i * product.step[2];
    if (!check(blas.multiply(handle, product.product, &gemm.alpha,
                             b + i * product.step[0], product.first,
                             a + i * product.step[1], product.second, &beta,
                             sum, product.sum, sum, product.sum,
                             &product.algorithm, addressOf(last),
                             product.workspaceBytes, device.stream()),
               launch.name, "begin it", error))
      return false;
  }
  return true;
}

bool CudaProducts::run(const RepriseLaunch &launch, Error &error) {
  return multiply(launch, products[size_t(launch.callee)], error);
}

bool CudaProducts::prepareOne(int index, const RepriseLaunch &launch, bool tf32,
                              bool autotune, Error &error) {
  const RepriseGemm &gemm = model.gemms[index];
  Product &product = products[size_t(index)];
  return describe(gemm, tf32, product, launch.name, error) &&
         choose(gemm, launch, product, autotune, error);
}

bool CudaProducts::prepare(bool tf32, bool autotune, Error &error) {
  if (model.numGemms == 0)
    return true;
  if (!products.resize(size_t(model.numGemms)))
    return error.set("no memory left for %d products", model.numGemms);
  for (Product &product : products)
    product = {};
  if (!check(device.blas().create(&handle), "of any kind", "start", error))
    return false;
  const struct {
    const RepriseLaunch *launches;
    int count;
  } schedules[] = {{model.micro, model.numMicro},
                   {model.update, model.numUpdate},
                   {model.evaluate, model.numEvaluate},
                   {model.sample, model.numSample}};
  for (auto [launches, count] : schedules)
    for (int i = 0; i < count; ++i) {
      const RepriseLaunch &launch = launches[i];
      if (launch.kind == REPRISE_LAUNCH_GEMM &&
          !products[size_t(launch.callee)].product &&
          !prepareOne(launch.callee, launch, tf32, autotune, error))
        return false;
    }
  return true;
}

CudaProducts::~CudaProducts() {
  const CublasLt &blas = device.blas();
  for (Product &product : products) {
    for (BlasLayout layout : {product.first, product.second, product.sum})
      if (layout)
        blas.layoutDestroy(layout);
    if (product.product)
      blas.productDestroy(product.product);
  }
  if (handle)
    blas.destroy(handle);
}
