//===- Headers.cpp - What is written down of CUDA is what it is -----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compares runtime/device/CudaApi.h with NVIDIA's headers, where there are any:
// each function's symbol and the kinds and sizes of what it takes, each value,
// each struct. Compiling is the test.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/CudaApi.h"

#include <cublasLt.h>
#include <cuda.h>
#include <type_traits>

#if __has_include(<nccl.h>)
#include <nccl.h>
#define REPRISE_HAS_NCCL
#endif

using namespace reprise::runtime;

/// Whether a caller passes both in the same way.
template <typename A, typename B>
static constexpr bool areAlike() {
  return sizeof(A) == sizeof(B) &&
         std::is_pointer<A>::value == std::is_pointer<B>::value &&
         std::is_floating_point<A>::value == std::is_floating_point<B>::value;
}

template <typename Ours, typename Theirs>
struct IsSame;
template <typename A, typename... As, typename B, typename... Bs>
struct IsSame<A(As...), B(Bs...)> {
  static constexpr bool compare() {
    if constexpr (sizeof...(As) == sizeof...(Bs))
      return areAlike<A, B>() && (areAlike<As, Bs>() && ...);
    return false;
  }
};

#define REPRISE_COMPARE(member, symbol, parameters)                            \
  static_assert(IsSame<CudaResult parameters, decltype(::symbol)>::compare(),  \
                #symbol);
REPRISE_CUDA_DRIVER(REPRISE_COMPARE)
REPRISE_CUBLASLT(REPRISE_COMPARE)

#define REPRISE_VALUE(ours, theirs)                                            \
  static_assert(long(ours) == long(theirs), #theirs);
REPRISE_VALUE(kCudaOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY)
REPRISE_VALUE(kCudaMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
REPRISE_VALUE(kCudaMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
REPRISE_VALUE(kCudaMultiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
REPRISE_VALUE(kCudaMaxDynamicSharedBytes,
              CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
REPRISE_VALUE(kCudaNonBlocking, CU_STREAM_NON_BLOCKING)
REPRISE_VALUE(kCudaNoTiming, CU_EVENT_DISABLE_TIMING)
REPRISE_VALUE(kCudaCaptureRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED)
REPRISE_VALUE(kCudaJitErrorLog, CU_JIT_ERROR_LOG_BUFFER)
REPRISE_VALUE(kCudaJitErrorLogBytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
REPRISE_VALUE(0, CU_LAUNCH_PARAM_END_AS_INT)
REPRISE_VALUE(1, CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT)
REPRISE_VALUE(2, CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT)
REPRISE_VALUE(kBlasNotSupported, CUBLAS_STATUS_NOT_SUPPORTED)
REPRISE_VALUE(kBlasF32, CUDA_R_32F)
REPRISE_VALUE(kBlasBF16, CUDA_R_16BF)
REPRISE_VALUE(kBlasComputeF32, CUBLAS_COMPUTE_32F)
REPRISE_VALUE(kBlasComputeTF32, CUBLAS_COMPUTE_32F_FAST_TF32)
REPRISE_VALUE(kBlasMatmulTransA, CUBLASLT_MATMUL_DESC_TRANSA)
REPRISE_VALUE(kBlasMatmulTransB, CUBLASLT_MATMUL_DESC_TRANSB)
REPRISE_VALUE(kBlasMatmulEpilogue, CUBLASLT_MATMUL_DESC_EPILOGUE)
REPRISE_VALUE(kBlasMatmulBias, CUBLASLT_MATMUL_DESC_BIAS_POINTER)
REPRISE_VALUE(kBlasEpilogueNone, CUBLASLT_EPILOGUE_DEFAULT)
REPRISE_VALUE(kBlasEpilogueBias, CUBLASLT_EPILOGUE_BIAS)
REPRISE_VALUE(kBlasEpilogueSumsOfFirst, CUBLASLT_EPILOGUE_BGRADA)
REPRISE_VALUE(kBlasEpilogueSumsOfSecond, CUBLASLT_EPILOGUE_BGRADB)
REPRISE_VALUE(kBlasTransposed, CUBLAS_OP_T)
REPRISE_VALUE(kBlasLayoutBatchCount, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
REPRISE_VALUE(kBlasLayoutBatchStride,
              CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
REPRISE_VALUE(kBlasPreferenceWorkspace,
              CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
REPRISE_VALUE(kBlasPreferenceReductions,
              CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
REPRISE_VALUE(kBlasPreferenceAlignmentA,
              CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES)
REPRISE_VALUE(kBlasPreferenceAlignmentB,
              CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES)
REPRISE_VALUE(kBlasPreferenceAlignmentC,
              CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES)
REPRISE_VALUE(kBlasPreferenceAlignmentD,
              CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES)
REPRISE_VALUE(kBlasReduceInF32, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)

static_assert(sizeof(BlasAlgorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(BlasChoice) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(BlasChoice, workspaceBytes) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(BlasChoice, state) ==
              offsetof(cublasLtMatmulHeuristicResult_t, state));

#ifdef REPRISE_HAS_NCCL
REPRISE_NCCL(REPRISE_COMPARE)
REPRISE_VALUE(kNcclInProgress, ncclInProgress)
REPRISE_VALUE(kNcclByte, ncclInt8)
REPRISE_VALUE(kNcclF32, ncclFloat32)
REPRISE_VALUE(kNcclSum, ncclSum)
REPRISE_VALUE(kNcclUnset, NCCL_CONFIG_UNDEF_INT)
static_assert(sizeof(NcclId) == sizeof(ncclUniqueId));
/// What later versions have is behind what 2.18 has.
#define REPRISE_PLACE(OURS, THEIRS)                                            \
  static_assert(offsetof(NcclConfig, OURS) == offsetof(ncclConfig_t, THEIRS));
REPRISE_PLACE(size, size)
REPRISE_PLACE(magic, magic)
REPRISE_PLACE(version, version)
REPRISE_PLACE(isBlocking, blocking)
REPRISE_PLACE(clusterSize, cgaClusterSize)
REPRISE_PLACE(leastBlocks, minCTAs)
REPRISE_PLACE(mostBlocks, maxCTAs)
REPRISE_PLACE(network, netName)
REPRISE_PLACE(splitShare, splitShare)
static constexpr ncclConfig_t kConfig = NCCL_CONFIG_INITIALIZER;
REPRISE_VALUE(kNcclConfigMagic, kConfig.magic)
#endif
