//===- CudaGemms.cpp - GEMMs by cuBLASLt ----------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaGemms.h"

#include "reprise/ABI/ElementFormat.h"

#include <algorithm>
#include <cinttypes>

using namespace reprise::runtime;

/// Algorithms that are asked for, and repeated so often to find the fastest.
static constexpr int kMostChoices = 8, kRepeats = 3;

static int blasType(int32_t type) {
  return type == REPRISE_BF16 ? kBlasBF16 : kBlasF32;
}

bool CudaGemms::check(BlasResult code, const char *name, const char *what,
                      Error &error) const {
  return code == 0 || error.set("GEMM %s: cuBLASLt %zu cannot %s: %s (%d)",
                                name, device.blas().version(), what,
                                device.blas().statusName(code), code);
}

CudaGemms::Operands CudaGemms::operandsOf(const RepriseLaunch &launch) const {
  const RepriseGemm &gemm = model.gemms[launch.callee];
  int first = launch.firstBuffer, last = first + launch.numBuffers - 1;
  auto addressOf = [&](int buffer) {
    return reinterpret_cast<char *>(device.base() +
                                    CudaAddress(model.buffers[buffer].offset));
  };
  Operands of = {};
  of.a = addressOf(first);
  of.b = addressOf(first + 1);
  of.c = addressOf(first + (gemm.bias ? 3 : 2));
  if (gemm.bias || gemm.epilogue)
    of.vector = addressOf(first + (gemm.bias ? 2 : 3));
  of.workspace = addressOf(last);
  of.workspaceBytes = model.buffers[last].bytes;
  return of;
}

/// The sums of an epilogue, as a row of ones times the operand they are of.
static RepriseGemm getGemmOfOnes(const RepriseGemm &gemm) {
  bool isOfA = gemm.epilogue == REPRISE_EPILOGUE_SUMS_OF_A;
  RepriseGemm sums = {};
  sums.m = 1;
  sums.n = isOfA ? gemm.m : gemm.n;
  sums.k = gemm.k;
  sums.lda = gemm.k;
  sums.ldb = isOfA ? gemm.lda : gemm.ldb;
  sums.ldc = sums.n;
  sums.batch[0] = sums.batch[1] = 1;
  sums.alpha = 1;
  sums.transposeB = isOfA ? !gemm.transposeA : gemm.transposeB;
  sums.typeAB = gemm.typeAB;
  sums.typeC = gemm.typeC;
  return sums;
}

/// Bytes of the workspace that ones take, so that the rest is aligned.
static int64_t bytesOfOnes(const RepriseGemm &gemm) {
  return (gemm.k * repriseElementBytes(gemm.typeAB) + 255) / 256 * 256;
}

/// Of the GEMM of ones, which are at the head of the workspace.
static CudaGemms::Operands getOperandsOfOnes(const RepriseGemm &gemm,
                                             CudaGemms::Operands of) {
  of.b = gemm.epilogue == REPRISE_EPILOGUE_SUMS_OF_A ? of.a : of.b;
  of.a = of.workspace;
  of.c = static_cast<char *>(of.vector);
  of.vector = nullptr;
  of.workspace += bytesOfOnes(gemm);
  of.workspaceBytes -= bytesOfOnes(gemm);
  return of;
}

/// Of cuBLASLt, to which B is the first operand.
static uint32_t epilogueOf(const RepriseGemm &gemm) {
  switch (gemm.epilogue) {
  case REPRISE_EPILOGUE_SUMS_OF_A:
    return kBlasEpilogueSumsOfSecond;
  case REPRISE_EPILOGUE_SUMS_OF_B:
    return kBlasEpilogueSumsOfFirst;
  default:
    return gemm.bias ? kBlasEpilogueBias : 0;
  }
}

bool CudaGemms::layOut(BlasLayout &layout, int32_t type, int64_t rows,
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

bool CudaGemms::describe(const RepriseGemm &gemm, bool tf32, Matmul &matmul,
                         const char *name, Error &error) {
  // One of the two batch dimensions is cuBLASLt's, or both if they are one.
  const int64_t *strides[3] = {gemm.strideB, gemm.strideA, gemm.strideC};
  int64_t b0 = gemm.batch[0], b1 = gemm.batch[1];
  bool isOne = std::all_of(strides, strides + 3,
                           [&](const int64_t *s) { return s[0] == b1 * s[1]; });
  int inner = b1 == 1 || (!isOne && b0 > b1) ? 0 : 1, outer = 1 - inner;
  int64_t batch = isOne ? b0 * b1 : gemm.batch[inner];
  matmul.repeats = isOne ? 1 : gemm.batch[outer];
  const int32_t types[3] = {gemm.typeAB, gemm.typeAB, gemm.typeC};
  for (int i = 0; i < 3; ++i)
    matmul.step[i] = strides[i][outer] * repriseElementBytes(types[i]);

  const CublasLt &blas = device.blas();
  const char *what = "describe it";
  int compute =
      gemm.typeAB == REPRISE_F32 && tf32 ? kBlasComputeTF32 : kBlasComputeF32;
  int32_t transposeFirst = gemm.transposeB ? kBlasTransposed : 0;
  int32_t transposeSecond = gemm.transposeA ? kBlasTransposed : 0;
  if (!check(blas.matmulCreate(&matmul.matmul, compute, kBlasF32), name, what,
             error) ||
      !check(blas.matmulSet(matmul.matmul, kBlasMatmulTransA, &transposeFirst,
                            sizeof(transposeFirst)),
             name, what, error) ||
      !check(blas.matmulSet(matmul.matmul, kBlasMatmulTransB, &transposeSecond,
                            sizeof(transposeSecond)),
             name, what, error))
    return false;
  uint32_t epilogue = epilogueOf(gemm);
  if (epilogue && !check(blas.matmulSet(matmul.matmul, kBlasMatmulEpilogue,
                                        &epilogue, sizeof(epilogue)),
                         name, what, error))
    return false;
  int64_t m = gemm.m, n = gemm.n, k = gemm.k;
  return layOut(matmul.first, gemm.typeAB, gemm.transposeB ? k : n,
                gemm.transposeB ? n : k, gemm.ldb, batch, gemm.strideB[inner],
                name, error) &&
         layOut(matmul.second, gemm.typeAB, gemm.transposeA ? m : k,
                gemm.transposeA ? k : m, gemm.lda, batch, gemm.strideA[inner],
                name, error) &&
         layOut(matmul.sum, gemm.typeC, n, m, gemm.ldc, batch,
                gemm.strideC[inner], name, error);
}

/// Of the addresses of all entries of a batch: that of the plan's buffers, as
/// far as the strides keep it.
static uint32_t alignmentOf(const int64_t *strides, int32_t type) {
  constexpr int64_t kBuffers = 256;
  int64_t bits = kBuffers | strides[0] * repriseElementBytes(type) |
                 strides[1] * repriseElementBytes(type);
  return uint32_t(bits & -bits);
}

/// Asks for at most `kMostChoices` algorithms, the likely fastest first.
bool CudaGemms::findChoices(const RepriseGemm &gemm, const Operands &operands,
                            const Matmul &matmul, List<BlasChoice> &choices,
                            const char *name, Error &error) {
  const CublasLt &blas = device.blas();
  BlasPreference preference = nullptr;
  const char *what = "choose an algorithm";
  if (!check(blas.preferenceCreate(&preference), name, what, error))
    return false;
  auto workspace = uint64_t(operands.workspaceBytes);
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
  good = good && setVector(matmul, operands, name, error);
  good = good && (choices.resize(kMostChoices) ||
                  error.set("no memory left for %d algorithms", kMostChoices));
  int found = 0;
  if (good) {
    std::fill(choices.begin(), choices.end(), BlasChoice());
    BlasResult code = blas.choose(
        handle, matmul.matmul, matmul.first, matmul.second, matmul.sum,
        matmul.sum, preference, kMostChoices, choices.begin(), &found);
    if (code == kBlasNotSupported) // So it says that it has none.
      found = 0;
    else
      good = check(code, name, what, error);
  }
  blas.preferenceDestroy(preference);
  return good && choices.resize(size_t(found));
}

/// Takes an algorithm if there is one.
bool CudaGemms::choose(const RepriseGemm &gemm, const Operands &operands,
                       Matmul &matmul, bool autotune, bool &isThere,
                       const char *name, Error &error) {
  List<BlasChoice> choices;
  if (!findChoices(gemm, operands, matmul, choices, name, error))
    return false;
  isThere = false;
  float best = 0;
  for (const BlasChoice &choice : choices) {
    if (isThere && !autotune)
      break;
    if (choice.state != 0 ||
        choice.workspaceBytes > uint64_t(operands.workspaceBytes))
      continue;
    Matmul trial = matmul;
    trial.algorithm = choice.algorithm;
    trial.workspaceBytes = choice.workspaceBytes;
    float milliseconds = 0;
    int runs = autotune ? kRepeats : 0;
    if (!time(gemm, operands, trial, runs, milliseconds, name, error))
      return false;
    if (!isThere || milliseconds < best) {
      best = milliseconds;
      matmul = trial;
      isThere = true;
    }
  }
  return true;
}

/// The least time of `runs` runs behind a first one, which loads what the
/// algorithm needs.
bool CudaGemms::time(const RepriseGemm &gemm, const Operands &operands,
                     const Matmul &matmul, int runs, float &best,
                     const char *name, Error &error) {
  const CudaDriver &driver = device.driver();
  CudaEvent begin = nullptr, end = nullptr;
  bool good =
      device.check(driver.eventCreate(&begin, 0), "cuEventCreate", error) &&
      device.check(driver.eventCreate(&end, 0), "cuEventCreate", error);
  best = 0;
  for (int i = 0; good && i <= runs; ++i) {
    float milliseconds = 0;
    good =
        device.check(driver.eventRecord(begin, device.stream()), name, error) &&
        multiply(gemm, operands, matmul, name, error) &&
        device.check(driver.eventRecord(end, device.stream()), name, error) &&
        device.check(driver.eventSynchronize(end), name, error) &&
        device.check(driver.eventElapsed(&milliseconds, begin, end), name,
                     error);
    best = i <= 1 ? milliseconds : std::min(best, milliseconds);
  }
  if (begin)
    driver.eventDestroy(begin);
  if (end)
    driver.eventDestroy(end);
  return good;
}

/// What is at its address decides about algorithms too, by its alignment.
bool CudaGemms::setVector(const Matmul &matmul, const Operands &operands,
                          const char *name, Error &error) {
  return !operands.vector ||
         check(device.blas().matmulSet(matmul.matmul, kBlasMatmulBias,
                                       &operands.vector,
                                       sizeof(operands.vector)),
               name, "take its bias", error);
}

bool CudaGemms::multiply(const RepriseGemm &gemm, const Operands &operands,
                         const Matmul &matmul, const char *name, Error &error) {
  const CublasLt &blas = device.blas();
  if (!setVector(matmul, operands, name, error))
    return false;
  float beta = gemm.accumulate ? 1.0f : 0.0f;
  for (int64_t i = 0; i < matmul.repeats; ++i) {
    void *sum = operands.c + i * matmul.step[2];
    if (!check(blas.multiply(handle, matmul.matmul, &gemm.alpha,
                             operands.b + i * matmul.step[0], matmul.first,
                             operands.a + i * matmul.step[1], matmul.second,
                             &beta, sum, matmul.sum, sum, matmul.sum,
                             &matmul.algorithm, operands.workspace,
                             matmul.workspaceBytes, device.stream()),
               name, "begin it", error))
      return false;
  }
  return true;
}

bool CudaGemms::run(const RepriseLaunch &launch, Error &error) {
  const RepriseGemm &gemm = model.gemms[launch.callee];
  const Matmul &sums = matmulsOfOnes[size_t(launch.callee)];
  Operands operands = operandsOf(launch), ofOnes = operands;
  if (sums.matmul) {
    ofOnes = getOperandsOfOnes(gemm, operands);
    operands.vector = nullptr;
  }
  if (!multiply(gemm, operands, matmuls[size_t(launch.callee)], launch.name,
                error))
    return false;
  if (!sums.matmul)
    return true;
  // Words of one f32, or of two bf16.
  unsigned ones = gemm.typeAB == REPRISE_BF16 ? 0x3F803F80 : 0x3F800000;
  auto words = size_t((gemm.k * repriseElementBytes(gemm.typeAB) + 3) / 4);
  auto address = CudaAddress(reinterpret_cast<uintptr_t>(ofOnes.a));
  return device.check(
             device.driver().fillWords(address, ones, words, device.stream()),
             launch.name, error) &&
         multiply(getGemmOfOnes(gemm), ofOnes, sums, launch.name, error);
}

/// Where the library has no such epilogue: the GEMM without it, and then the
/// sums by another one.
bool CudaGemms::separateSums(int index, const RepriseLaunch &launch,
                             bool autotune, bool &isThere, Error &error) {
  const RepriseGemm &gemm = model.gemms[index];
  const char *name = launch.name;
  Matmul &matmul = matmuls[size_t(index)];
  Matmul &sums = matmulsOfOnes[size_t(index)];
  Operands operands = operandsOf(launch);
  Operands ofOnes = getOperandsOfOnes(gemm, operands);
  operands.vector = nullptr;
  if (ofOnes.workspaceBytes < 0) // No room for them.
    return true;
  uint32_t none = kBlasEpilogueNone;
  if (!check(device.blas().matmulSet(matmul.matmul, kBlasMatmulEpilogue, &none,
                                     sizeof(none)),
             name, "describe it", error) ||
      !choose(gemm, operands, matmul, autotune, isThere, name, error))
    return false;
  if (!isThere)
    return true;
  // As in the epilogue, nothing is rounded to TF32.
  RepriseGemm row = getGemmOfOnes(gemm);
  return describe(row, /*tf32=*/false, sums, name, error) &&
         choose(row, ofOnes, sums, autotune, isThere, name, error);
}

bool CudaGemms::prepareOne(int index, const RepriseLaunch &launch, bool tf32,
                           bool autotune, Error &error) {
  const RepriseGemm &gemm = model.gemms[index];
  Matmul &matmul = matmuls[size_t(index)];
  Operands operands = operandsOf(launch);
  bool isThere = false;
  if (!describe(gemm, tf32, matmul, launch.name, error) ||
      !choose(gemm, operands, matmul, autotune, isThere, launch.name, error))
    return false;
  if (!isThere && gemm.epilogue &&
      !separateSums(index, launch, autotune, isThere, error))
    return false;
  return isThere ||
         error.set("GEMM %s: cuBLASLt %zu has no algorithm for m %" PRId64
                   ", n %" PRId64 ", k %" PRId64 " of %s in %" PRId64
                   " bytes of workspace%s",
                   launch.name, device.blas().version(), gemm.m, gemm.n, gemm.k,
                   repriseElementName(gemm.typeAB), operands.workspaceBytes,
                   gemm.epilogue ? ", with the gradient of a bias; reprisec "
                                   "--cuda-bias-gradients=kernel asks for none"
                                 : "");
}

int CudaGemms::numSeparateSums() const {
  return int(
      std::count_if(matmulsOfOnes.begin(), matmulsOfOnes.end(),
                    [](const Matmul &sums) { return sums.matmul != nullptr; }));
}

bool CudaGemms::prepare(bool tf32, bool autotune, Error &error) {
  if (model.numGemms == 0)
    return true;
  for (List<Matmul> *list : {&matmuls, &matmulsOfOnes}) {
    if (!list->resize(size_t(model.numGemms)))
      return error.set("no memory left for %d GEMMs", model.numGemms);
    for (Matmul &matmul : *list)
      matmul = {};
  }
  if (!check(device.blas().create(&handle), "of any kind", "start", error))
    return false;
  for (int i = 0; i < model.numSchedules; ++i)
    for (int j = 0; j < model.schedules[i].numLaunches; ++j) {
      const RepriseLaunch &launch = model.schedules[i].launches[j];
      if (launch.kind == REPRISE_LAUNCH_GEMM &&
          !matmuls[size_t(launch.callee)].matmul &&
          !prepareOne(launch.callee, launch, tf32, autotune, error))
        return false;
    }
  return true;
}

CudaGemms::~CudaGemms() {
  const CublasLt &blas = device.blas();
  for (List<Matmul> *list : {&matmuls, &matmulsOfOnes})
    for (Matmul &matmul : *list) {
      for (BlasLayout layout : {matmul.first, matmul.second, matmul.sum})
        if (layout)
          blas.layoutDestroy(layout);
      if (matmul.matmul)
        blas.matmulDestroy(matmul.matmul);
    }
  if (handle)
    blas.destroy(handle);
}
