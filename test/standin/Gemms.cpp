//===- Gemms.cpp - A stand-in for libcublasLt.so.13 -----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matrices are stored by columns and types go together as NVIDIA documents it:
// C is of the type of A and B, or f32; a bias has the type of C and a value for
// each row; its gradient, of the type of C too, is the sum over k of A for each
// row or of B for each column, and replaces what was there; there is one of an
// A that is not transposed, and of a B that is, or with
// REPRISE_STANDIN_SUMS=none of neither. Sums are f64, but of two halves, each
// rounded to the type of C, unless that is forbidden. The workspace is spoilt
// by each GEMM: as a whole in its first run, later its ends. Addresses have
// the alignment that was promised when the algorithm was chosen, the workspace
// 256 bytes.
//
//===----------------------------------------------------------------------===//

#include "StandIn.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>

using namespace reprise::runtime;
using namespace reprise::standin;

static constexpr BlasResult kInvalid = 7;

namespace {
struct Layout {
  int type = 0;
  int64_t rows = 0, columns = 0, stride = 0;
  int32_t batch = 1;
  int64_t batchStride = 0;

  size_t elementBytes() const { return type == kBlasBF16 ? 2 : 4; }
  /// From the first element to the last of all entries.
  size_t bytes() const {
    int64_t last = (batch - 1) * batchStride + (columns - 1) * stride + rows;
    return size_t(last) * elementBytes();
  }
};

struct Description {
  int compute = 0;
  bool transposeA = false, transposeB = false;
  uint32_t epilogue = kBlasEpilogueNone;
  const void *bias = nullptr;
};

struct Preference {
  size_t workspace = 0;
  uint32_t reductions = 7;                       ///< All of them.
  uint32_t alignments[4] = {256, 256, 256, 256}; ///< Of A, B, C, D.
};

/// What an algorithm of ours is.
struct Choice {
  uint32_t alignments[4];
  bool isInHalves;
};
static_assert(sizeof(Choice) <= sizeof(BlasAlgorithm));
} // namespace

static bool isSum(uint32_t epilogue) {
  return epilogue == kBlasEpilogueSumsOfFirst ||
         epilogue == kBlasEpilogueSumsOfSecond;
}

template <typename T, typename Handle>
static T &as(Handle handle) {
  return *reinterpret_cast<T *>(handle);
}

static double read(const void *base, int type, int64_t at) {
  uint32_t bits = 0;
  if (type == kBlasBF16) {
    uint16_t half;
    memcpy(&half, static_cast<const char *>(base) + at * 2, sizeof(half));
    bits = uint32_t(half) << 16;
  } else {
    memcpy(&bits, static_cast<const char *>(base) + at * 4, sizeof(bits));
  }
  float value;
  memcpy(&value, &bits, sizeof(value));
  return double(value);
}

/// Without the low `bits` of an f32, to nearest even.
static uint32_t rounded(float value, int bits) {
  uint32_t word;
  memcpy(&word, &value, sizeof(word));
  if ((word & 0x7FFFFFFF) > 0x7F800000)
    return word | 0x400000;
  uint32_t half = (1u << (bits - 1)) - 1;
  return (word + half + (word >> bits & 1)) >> bits << bits;
}

static void write(void *base, int type, int64_t at, double value) {
  auto single = float(value);
  if (type == kBlasBF16) {
    auto half = uint16_t(rounded(single, 16) >> 16);
    memcpy(static_cast<char *>(base) + at * 2, &half, sizeof(half));
  } else {
    memcpy(static_cast<char *>(base) + at * 4, &single, sizeof(single));
  }
}

static double roundTo(int type, double value) {
  uint64_t place = 0;
  write(&place, type, 0, value);
  return read(&place, type, 0);
}

static double operand(const void *base, const Layout &layout, int64_t row,
                      int64_t column, int64_t entry, bool isTF32) {
  double value =
      read(base, layout.type,
           entry * layout.batchStride + column * layout.stride + row);
  if (!isTF32)
    return value;
  uint32_t bits = rounded(float(value), 13);
  float single;
  memcpy(&single, &bits, sizeof(single));
  return double(single);
}

/// Whether there is the epilogue, if it makes sums.
static bool hasSums(const Description &matmul, const Layout &c) {
  if (!isSum(matmul.epilogue))
    return true;
  const char *sums = getenv("REPRISE_STANDIN_SUMS");
  if (c.batch != 1 || (sums && strcmp(sums, "none") == 0))
    return false;
  return matmul.epilogue == kBlasEpilogueSumsOfFirst ? !matmul.transposeA
                                                     : matmul.transposeB;
}

/// Whether sizes and types go together.
static BlasResult check(const Description &matmul, const Layout &a,
                        const Layout &b, const Layout &c) {
  int64_t k = matmul.transposeA ? a.rows : a.columns;
  bool fits = (matmul.transposeA ? a.columns : a.rows) == c.rows &&
              (matmul.transposeB ? b.rows : b.columns) == c.columns &&
              (matmul.transposeB ? b.columns : b.rows) == k &&
              a.batch == c.batch && b.batch == c.batch && a.stride >= a.rows &&
              b.stride >= b.rows && c.stride >= c.rows;
  if (!fits)
    return kInvalid;
  return a.type == b.type && (c.type == a.type || c.type == kBlasF32) &&
                 hasSums(matmul, c)
             ? 0
             : kBlasNotSupported;
}

extern "C" {

size_t cublasLtGetVersion() { return 130000; }

const char *cublasLtGetStatusName(BlasResult code) {
  return code == kBlasNotSupported ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                   : "CUBLAS_STATUS_INVALID_VALUE";
}

BlasResult cublasLtCreate(BlasHandle *handle) {
  *handle = reinterpret_cast<BlasHandle>(new char);
  return 0;
}

BlasResult cublasLtDestroy(BlasHandle handle) {
  delete reinterpret_cast<char *>(handle);
  return 0;
}

BlasResult cublasLtMatmulDescCreate(BlasMatmul *matmul, int compute,
                                    int scaleType) {
  if (scaleType != kBlasF32)
    return kBlasNotSupported;
  auto *description = new Description;
  description->compute = compute;
  *matmul = reinterpret_cast<BlasMatmul>(description);
  return 0;
}

BlasResult cublasLtMatmulDescDestroy(BlasMatmul matmul) {
  delete &as<Description>(matmul);
  return 0;
}

BlasResult cublasLtMatmulDescSetAttribute(BlasMatmul matmul, int attribute,
                                          const void *value, size_t bytes) {
  auto &description = as<Description>(matmul);
  int32_t word = 0;
  if (bytes == sizeof(word))
    memcpy(&word, value, sizeof(word));
  switch (attribute) {
  case kBlasMatmulTransA:
    description.transposeA = word == kBlasTransposed;
    return 0;
  case kBlasMatmulTransB:
    description.transposeB = word == kBlasTransposed;
    return 0;
  case kBlasMatmulEpilogue:
    description.epilogue = uint32_t(word);
    return uint32_t(word) == kBlasEpilogueNone ||
                   uint32_t(word) == kBlasEpilogueBias ||
                   isSum(description.epilogue)
               ? 0
               : kBlasNotSupported;
  case kBlasMatmulBias:
    memcpy(&description.bias, value, sizeof(description.bias));
    return 0;
  default:
    return kInvalid;
  }
}

BlasResult cublasLtMatrixLayoutCreate(BlasLayout *layout, int type,
                                      uint64_t rows, uint64_t columns,
                                      int64_t stride) {
  *layout = reinterpret_cast<BlasLayout>(
      new Layout{type, int64_t(rows), int64_t(columns), stride});
  return 0;
}

BlasResult cublasLtMatrixLayoutDestroy(BlasLayout layout) {
  delete &as<Layout>(layout);
  return 0;
}

BlasResult cublasLtMatrixLayoutSetAttribute(BlasLayout layout, int attribute,
                                            const void *value, size_t bytes) {
  auto &described = as<Layout>(layout);
  if (attribute == kBlasLayoutBatchCount && bytes == 4)
    memcpy(&described.batch, value, bytes);
  else if (attribute == kBlasLayoutBatchStride && bytes == 8)
    memcpy(&described.batchStride, value, bytes);
  else
    return kInvalid;
  return 0;
}

BlasResult cublasLtMatmulPreferenceCreate(BlasPreference *preference) {
  *preference = reinterpret_cast<BlasPreference>(new Preference);
  return 0;
}

BlasResult cublasLtMatmulPreferenceDestroy(BlasPreference preference) {
  delete &as<Preference>(preference);
  return 0;
}

BlasResult cublasLtMatmulPreferenceSetAttribute(BlasPreference preference,
                                                int attribute,
                                                const void *value,
                                                size_t bytes) {
  auto &described = as<Preference>(preference);
  int matrix = attribute - kBlasPreferenceAlignmentA;
  if (attribute == kBlasPreferenceWorkspace && bytes == 8)
    memcpy(&described.workspace, value, bytes);
  else if (attribute == kBlasPreferenceReductions && bytes == 4)
    memcpy(&described.reductions, value, bytes);
  else if (matrix >= 0 && matrix < 4 && bytes == 4)
    memcpy(&described.alignments[matrix], value, bytes);
  else
    return kInvalid;
  return 0;
}

BlasResult cublasLtMatmulAlgoGetHeuristic(BlasHandle, BlasMatmul matmul,
                                          BlasLayout a, BlasLayout b,
                                          BlasLayout c, BlasLayout,
                                          BlasPreference preference,
                                          int requested, BlasChoice *choices,
                                          int *found) {
  BlasResult code = check(as<Description>(matmul), as<Layout>(a), as<Layout>(b),
                          as<Layout>(c));
  *found = code == 0 ? std::min(requested, 2) : 0;
  if (!*found)
    return code;
  // The first will not do, as the library may find when it looks closely.
  choices[0] = {};
  choices[0].state = kBlasNotSupported;
  if (*found < 2)
    return 0;
  const auto &wanted = as<Preference>(preference);
  Choice choice = {};
  memcpy(choice.alignments, wanted.alignments, sizeof(choice.alignments));
  choice.isInHalves = wanted.reductions & ~kBlasReduceInF32;
  choices[1] = {{}, wanted.workspace, 0, 1, {}};
  memcpy(&choices[1].algorithm, &choice, sizeof(choice));
  return 0;
}

/// Every step has its GEMMs at the same addresses, and a workspace may be
/// tens of megabytes: what lies in one by mistake is lost in the first step.
static void spoil(void *workspace, size_t bytes,
                  const std::array<const void *, 3> &operands) {
  constexpr size_t kEnd = 1 << 16;
  static std::mutex guard;
  static std::set<std::pair<void *, std::array<const void *, 3>>> known;
  std::lock_guard<std::mutex> lock(guard);
  bool isFirst = known.insert({workspace, operands}).second;
  auto *begin = static_cast<char *>(workspace);
  constexpr int kByte = 0x7F; // Not what memory is filled with.
  if (isFirst || bytes <= 2 * kEnd) {
    memset(begin, kByte, bytes);
  } else {
    memset(begin, kByte, kEnd);
    memset(begin + bytes - kEnd, kByte, kEnd);
  }
}

BlasResult cublasLtMatmul(BlasHandle, BlasMatmul matmul, const void *alpha,
                          const void *a, BlasLayout layoutA, const void *b,
                          BlasLayout layoutB, const void *beta, const void *c,
                          BlasLayout layoutC, void *d, BlasLayout layoutD,
                          const BlasAlgorithm *algorithm, void *workspace,
                          size_t workspaceBytes, CudaStream stream) {
  Description description = as<Description>(matmul);
  Layout la = as<Layout>(layoutA), lb = as<Layout>(layoutB),
         lc = as<Layout>(layoutC);
  if (c != d || layoutC != layoutD)
    return kBlasNotSupported;
  if (BlasResult code = check(description, la, lb, lc))
    return code;
  Choice choice;
  memcpy(&choice, algorithm, sizeof(choice));
  const void *addresses[] = {a, b, c, d};
  for (int i = 0; i < 4; ++i)
    if (reinterpret_cast<uintptr_t>(addresses[i]) % choice.alignments[i] != 0)
      return kInvalid;
  if (reinterpret_cast<uintptr_t>(workspace) % 256 != 0)
    return kInvalid;
  float scale, keep;
  memcpy(&scale, alpha, sizeof(scale));
  memcpy(&keep, beta, sizeof(keep));
  auto work = [=]() -> std::string {
    bool hasBias = description.epilogue == kBlasEpilogueBias;
    bool sumsFirst = description.epilogue == kBlasEpilogueSumsOfFirst;
    int64_t numSums = !isSum(description.epilogue) ? 0
                      : sumsFirst                  ? lc.rows
                                                   : lc.columns;
    std::string wrong = checkAllocated("A", a, la.bytes());
    if (wrong.empty())
      wrong = checkAllocated("B", b, lb.bytes());
    if (wrong.empty())
      wrong = checkAllocated("C", c, lc.bytes());
    if (wrong.empty())
      wrong = checkAllocated("workspace", workspace, workspaceBytes);
    if (wrong.empty() && (hasBias || numSums))
      wrong = checkAllocated("bias", description.bias,
                             size_t(hasBias ? lc.rows : numSums) *
                                 lc.elementBytes());
    if (!wrong.empty())
      return wrong;
    spoil(workspace, workspaceBytes, {a, b, c});
    bool isTF32 = description.compute == kBlasComputeTF32;
    int64_t k = description.transposeA ? la.rows : la.columns;
    for (int64_t i = 0; i < numSums; ++i) {
      const Layout &layout = sumsFirst ? la : lb;
      bool isColumn =
          sumsFirst ? description.transposeA : !description.transposeB;
      double sum = 0;
      for (int64_t p = 0; p < k; ++p)
        sum += operand(sumsFirst ? a : b, layout, isColumn ? p : i,
                       isColumn ? i : p, 0, /*isTF32=*/false);
      write(const_cast<void *>(description.bias), lc.type, i, sum);
    }
    for (int64_t entry = 0; entry < lc.batch; ++entry)
      for (int64_t j = 0; j < lc.columns; ++j)
        for (int64_t i = 0; i < lc.rows; ++i) {
          double sum = 0, firstHalf = 0;
          for (int64_t p = 0; p < k; ++p) {
            if (choice.isInHalves && p == k / 2)
              firstHalf = roundTo(lc.type, sum), sum = 0;
            sum += operand(a, la, description.transposeA ? p : i,
                           description.transposeA ? i : p, entry, isTF32) *
                   operand(b, lb, description.transposeB ? j : p,
                           description.transposeB ? p : j, entry, isTF32);
          }
          if (choice.isInHalves)
            sum = firstHalf + roundTo(lc.type, sum);
          sum *= double(scale);
          int64_t at = entry * lc.batchStride + j * lc.stride + i;
          if (keep != 0)
            sum += double(keep) * read(c, lc.type, at);
          if (hasBias)
            sum += read(description.bias, lc.type, i);
          write(d, lc.type, at, sum);
        }
    return "";
  };
  enqueue(stream, "GEMM", work);
  return 0;
}

} // extern "C"
