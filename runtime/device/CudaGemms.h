//===- CudaGemms.h - GEMMs by cuBLASLt --------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_CUDAGEMMS_H
#define REPRISE_RUNTIME_DEVICE_CUDAGEMMS_H

#include "Gpu.h"
#include "runtime/base/List.h"

namespace reprise::runtime {

/// The GEMMs of a model. Each has one algorithm, chosen at the start, so all
/// of its launches add in the same order, and so does every run of the same
/// library on the same chip. (With `autotune`, of the same choice.)
class CudaGemms {
public:
  CudaGemms(const RepriseModel &model, const Gpu &device)
      : model(model), device(device) {}
  CudaGemms(const CudaGemms &) = delete;
  CudaGemms &operator=(const CudaGemms &) = delete;
  ~CudaGemms();

  /// Chooses the algorithms of all GEMMs. With `tf32`, f32 is rounded to
  /// TF32 before it is multiplied. With `autotune`, several algorithms run, on
  /// what the memory holds at the moment, and the fastest is taken.
  bool prepare(bool tf32, bool autotune, Error &error);

  /// Begins the GEMM of a launch; an error names it.
  bool run(const RepriseLaunch &launch, Error &error);

  /// GEMMs whose epilogue's sums are a GEMM of their own, as the library
  /// has none with that epilogue.
  int numSeparateSums() const;

  /// What a launch multiplies, and where.
  struct Operands {
    char *a, *b, *c;
    void *vector; ///< The bias, or what an epilogue makes beside C, or null.
    char *workspace;
    int64_t workspaceBytes;
  };

private:
  /// One entry of `model.gemms`, as cuBLASLt has it: its matrices are columns,
  /// so it is asked for the transposed C, and A and B change places.
  struct Matmul {
    BlasMatmul matmul;
    BlasLayout first, second, sum; ///< B, A, C
    BlasAlgorithm algorithm;
    size_t workspaceBytes; ///< Of the algorithm.
    int64_t repeats;       ///< Of the batch dimension that is not strided.
    int64_t step[3];       ///< Of B, A and C between these, in bytes.
  };

  bool prepareOne(int index, const RepriseLaunch &launch, bool tf32,
                  bool autotune, Error &error);
  bool describe(const RepriseGemm &gemm, bool tf32, Matmul &matmul,
                const char *name, Error &error);
  bool layOut(BlasLayout &layout, int32_t type, int64_t rows, int64_t columns,
              int64_t stride, int64_t batch, int64_t batchStride,
              const char *name, Error &error);
  bool findChoices(const RepriseGemm &gemm, const Operands &operands,
                   const Matmul &matmul, List<BlasChoice> &choices,
                   const char *name, Error &error);
  bool choose(const RepriseGemm &gemm, const Operands &operands, Matmul &matmul,
              bool autotune, bool &isThere, const char *name, Error &error);
  bool separateSums(int index, const RepriseLaunch &launch, bool autotune,
                    bool &isThere, Error &error);
  bool time(const RepriseGemm &gemm, const Operands &operands,
            const Matmul &matmul, int runs, float &best, const char *name,
            Error &error);
  bool setVector(const Matmul &matmul, const Operands &operands,
                 const char *name, Error &error);
  bool multiply(const RepriseGemm &gemm, const Operands &operands,
                const Matmul &matmul, const char *name, Error &error);
  bool check(BlasResult code, const char *name, const char *what,
             Error &error) const;
  Operands operandsOf(const RepriseLaunch &launch) const;

  const RepriseModel &model;
  const Gpu &device;
  BlasHandle handle = nullptr;
  List<Matmul> matmuls;
  List<Matmul> matmulsOfOnes; ///< Of each, if its sums are separate.
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_CUDAGEMMS_H
