//===- CudaApi.h - What is used of CUDA's libraries -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions, types and values of the driver, of cuBLASLt and of NCCL that
// training needs, as their headers have them (CUDA 12 and 13, NCCL 2.18 and
// later). They are written down here so that neither the build nor a program
// needs a CUDA toolkit: a program opens the libraries where it runs.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_CUDAAPI_H
#define REPRISE_RUNTIME_DEVICE_CUDAAPI_H

#include <cstddef>
#include <cstdint>

namespace reprise::runtime {

//===----------------------------------------------------------------------===//
// The driver
//===----------------------------------------------------------------------===//

using CudaResult = int; ///< 0: good.
using CudaDeviceNumber = int;
using CudaAddress = unsigned long long;
using CudaContext = struct CudaContextObject *;
using CudaModule = struct CudaModuleObject *;
using CudaFunction = struct CudaFunctionObject *;
using CudaStream = struct CudaStreamObject *;
using CudaEvent = struct CudaEventObject *;
using CudaGraph = struct CudaGraphObject *;
using CudaGraphExec = struct CudaGraphExecObject *;

constexpr CudaResult kCudaOutOfMemory = 2, kCudaNotReady = 600;
constexpr int kCudaMajor = 75, kCudaMinor = 76, kCudaMultiprocessors = 16;
constexpr int kCudaMaxDynamicSharedBytes = 8; // Of a function.
constexpr unsigned kCudaNonBlocking = 1;      // Of a stream.
constexpr unsigned kCudaNoTiming = 2;         // Of an event.
constexpr int kCudaCaptureRelaxed = 2;
constexpr int kCudaJitErrorLog = 5, kCudaJitErrorLogBytes = 6;
/// The list that `extra` of cuLaunchKernel is.
inline void *const kCudaLaunchEnd = nullptr;
inline void *const kCudaLaunchBuffer = reinterpret_cast<void *>(1);
inline void *const kCudaLaunchBufferBytes = reinterpret_cast<void *>(2);

// clang-format off
/// X(member, symbol, parameters): each returns a CudaResult.
#define REPRISE_CUDA_DRIVER(X)                                                 \
  X(init, cuInit, (unsigned flags))                                            \
  X(driverVersion, cuDriverGetVersion, (int *version))                         \
  X(errorName, cuGetErrorName, (CudaResult code, const char **name))           \
  X(errorText, cuGetErrorString, (CudaResult code, const char **text))         \
  X(deviceCount, cuDeviceGetCount, (int *count))                               \
  X(deviceGet, cuDeviceGet, (CudaDeviceNumber *device, int ordinal))           \
  X(deviceName, cuDeviceGetName,                                               \
    (char *name, int length, CudaDeviceNumber device))                         \
  X(deviceAttribute, cuDeviceGetAttribute,                                     \
    (int *value, int attribute, CudaDeviceNumber device))                      \
  X(contextRetain, cuDevicePrimaryCtxRetain,                                   \
    (CudaContext *context, CudaDeviceNumber device))                           \
  X(contextRelease, cuDevicePrimaryCtxRelease_v2, (CudaDeviceNumber device))   \
  X(contextSet, cuCtxSetCurrent, (CudaContext context))                        \
  X(memoryInfo, cuMemGetInfo_v2, (size_t *free, size_t *total))                \
  X(memoryAllocate, cuMemAlloc_v2, (CudaAddress *address, size_t bytes))       \
  X(memoryFree, cuMemFree_v2, (CudaAddress address))                           \
  X(hostAllocate, cuMemHostAlloc,                                              \
    (void **memory, size_t bytes, unsigned flags))                             \
  X(hostFree, cuMemFreeHost, (void *memory))                                   \
  X(copyToDevice, cuMemcpyHtoDAsync_v2,                                        \
    (CudaAddress to, const void *from, size_t bytes, CudaStream stream))       \
  X(copyToHost, cuMemcpyDtoHAsync_v2,                                          \
    (void *to, CudaAddress from, size_t bytes, CudaStream stream))             \
  X(copyOnDevice, cuMemcpyDtoDAsync_v2,                                        \
    (CudaAddress to, CudaAddress from, size_t bytes, CudaStream stream))       \
  X(fillBytes, cuMemsetD8Async,                                                \
    (CudaAddress to, unsigned char byte, size_t count, CudaStream stream))     \
  X(fillWords, cuMemsetD32Async,                                               \
    (CudaAddress to, unsigned word, size_t count, CudaStream stream))          \
  X(moduleLoad, cuModuleLoadDataEx,                                            \
    (CudaModule *module, const void *image, unsigned numOptions, int *options, \
     void **values))                                                           \
  X(moduleUnload, cuModuleUnload, (CudaModule module))                         \
  X(moduleFunction, cuModuleGetFunction,                                       \
    (CudaFunction *function, CudaModule module, const char *name))             \
  X(functionSet, cuFuncSetAttribute,                                           \
    (CudaFunction function, int attribute, int value))                         \
  X(launch, cuLaunchKernel,                                                    \
    (CudaFunction function, unsigned gridX, unsigned gridY, unsigned gridZ,    \
     unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,  \
     CudaStream stream, void **parameters, void **extra))                      \
  X(streamCreate, cuStreamCreate, (CudaStream *stream, unsigned flags))        \
  X(streamDestroy, cuStreamDestroy_v2, (CudaStream stream))                    \
  X(streamSynchronize, cuStreamSynchronize, (CudaStream stream))               \
  X(streamQuery, cuStreamQuery, (CudaStream stream))                           \
  X(streamWait, cuStreamWaitEvent,                                             \
    (CudaStream stream, CudaEvent event, unsigned flags))                      \
  X(eventCreate, cuEventCreate, (CudaEvent *event, unsigned flags))            \
  X(eventDestroy, cuEventDestroy_v2, (CudaEvent event))                        \
  X(eventRecord, cuEventRecord, (CudaEvent event, CudaStream stream))          \
  X(eventSynchronize, cuEventSynchronize, (CudaEvent event))                   \
  X(eventQuery, cuEventQuery, (CudaEvent event))                               \
  X(eventElapsed, cuEventElapsedTime,                                          \
    (float *milliseconds, CudaEvent begin, CudaEvent end))                     \
  X(captureBegin, cuStreamBeginCapture_v2, (CudaStream stream, int mode))      \
  X(captureEnd, cuStreamEndCapture, (CudaStream stream, CudaGraph *graph))     \
  X(graphInstantiate, cuGraphInstantiateWithFlags,                             \
    (CudaGraphExec *exec, CudaGraph graph, unsigned long long flags))          \
  X(graphLaunch, cuGraphLaunch, (CudaGraphExec exec, CudaStream stream))       \
  X(graphExecDestroy, cuGraphExecDestroy, (CudaGraphExec exec))                \
  X(graphDestroy, cuGraphDestroy, (CudaGraph graph))
// clang-format on

//===----------------------------------------------------------------------===//
// cuBLASLt
//===----------------------------------------------------------------------===//

using BlasResult = int; ///< 0: good.
using BlasHandle = struct BlasHandleObject *;
using BlasMatmul = struct BlasMatmulObject *; ///< cublasLtMatmulDesc_t
using BlasLayout = struct BlasLayoutObject *; ///< cublasLtMatrixLayout_t
using BlasPreference = struct BlasPreferenceObject *;

constexpr BlasResult kBlasNotSupported = 15;
constexpr int kBlasF32 = 0, kBlasBF16 = 14; // cudaDataType
constexpr int kBlasComputeF32 = 68, kBlasComputeTF32 = 77;
constexpr int kBlasMatmulTransA = 3, kBlasMatmulTransB = 4,
              kBlasMatmulEpilogue = 7, kBlasMatmulBias = 8;
constexpr uint32_t kBlasEpilogueNone = 1, kBlasEpilogueBias = 4,
                   kBlasEpilogueSumsOfFirst = 256,
                   kBlasEpilogueSumsOfSecond = 512;
constexpr int32_t kBlasTransposed = 1;
constexpr int kBlasLayoutBatchCount = 5, kBlasLayoutBatchStride = 6;
constexpr int kBlasPreferenceWorkspace = 1, kBlasPreferenceReductions = 3,
              kBlasPreferenceAlignmentA = 5, kBlasPreferenceAlignmentB = 6,
              kBlasPreferenceAlignmentC = 7, kBlasPreferenceAlignmentD = 8;
constexpr uint32_t kBlasReduceInF32 = 2; // In the workspace, compute type.

struct BlasAlgorithm {
  uint64_t data[8];
};

/// cublasLtMatmulHeuristicResult_t
struct BlasChoice {
  BlasAlgorithm algorithm;
  size_t workspaceBytes;
  BlasResult state;
  float waves;
  int reserved[4];
};

// clang-format off
#define REPRISE_CUBLASLT(X)                                                    \
  X(create, cublasLtCreate, (BlasHandle *handle))                              \
  X(destroy, cublasLtDestroy, (BlasHandle handle))                             \
  X(matmulCreate, cublasLtMatmulDescCreate,                                   \
    (BlasMatmul *matmul, int compute, int scaleType))                        \
  X(matmulDestroy, cublasLtMatmulDescDestroy, (BlasMatmul matmul))          \
  X(matmulSet, cublasLtMatmulDescSetAttribute,                                \
    (BlasMatmul matmul, int attribute, const void *value, size_t bytes))     \
  X(layoutCreate, cublasLtMatrixLayoutCreate,                                  \
    (BlasLayout *layout, int type, uint64_t rows, uint64_t columns,            \
     int64_t stride))                                                          \
  X(layoutDestroy, cublasLtMatrixLayoutDestroy, (BlasLayout layout))           \
  X(layoutSet, cublasLtMatrixLayoutSetAttribute,                               \
    (BlasLayout layout, int attribute, const void *value, size_t bytes))       \
  X(preferenceCreate, cublasLtMatmulPreferenceCreate,                          \
    (BlasPreference *preference))                                              \
  X(preferenceDestroy, cublasLtMatmulPreferenceDestroy,                        \
    (BlasPreference preference))                                               \
  X(preferenceSet, cublasLtMatmulPreferenceSetAttribute,                       \
    (BlasPreference preference, int attribute, const void *value,              \
     size_t bytes))                                                            \
  X(choose, cublasLtMatmulAlgoGetHeuristic,                                    \
    (BlasHandle handle, BlasMatmul matmul, BlasLayout a, BlasLayout b,       \
     BlasLayout c, BlasLayout d, BlasPreference preference, int requested,     \
     BlasChoice *choices, int *found))                                         \
  X(multiply, cublasLtMatmul,                                                  \
    (BlasHandle handle, BlasMatmul matmul, const void *alpha, const void *a, \
     BlasLayout layoutA, const void *b, BlasLayout layoutB, const void *beta,  \
     const void *c, BlasLayout layoutC, void *d, BlasLayout layoutD,           \
     const BlasAlgorithm *algorithm, void *workspace, size_t workspaceBytes,   \
     CudaStream stream))
// clang-format on

//===----------------------------------------------------------------------===//
// NCCL
//===----------------------------------------------------------------------===//

using NcclResult = int;                     ///< 0: good.
using NcclRanks = struct NcclRanksObject *; ///< ncclComm_t

constexpr NcclResult kNcclInProgress = 7;
constexpr int kNcclByte = 0; // ncclDataType_t
constexpr int kNcclF32 = 7;
constexpr int kNcclSum = 0;                 // ncclRedOp_t
constexpr int kNcclUnset = -2147483647 - 1; // Of a number of a configuration.
constexpr unsigned kNcclConfigMagic = 0xcafebeef;
/// The version whose configuration is written down here, as any later library
/// takes it; and the least that there has to be.
constexpr int kNcclConfigVersion = 21800, kNcclOldest = 21800;

struct NcclId {
  char bytes[128];
};

/// ncclConfig_t of 2.18. What is unset is as the library thinks best.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned magic = kNcclConfigMagic;
  unsigned version = kNcclConfigVersion;
  int isBlocking = kNcclUnset, clusterSize = kNcclUnset;
  int leastBlocks = kNcclUnset, mostBlocks = kNcclUnset;
  const char *network = nullptr;
  int splitShare = kNcclUnset;
};

// clang-format off
#define REPRISE_NCCL(X)                                                        \
  X(version, ncclGetVersion, (int *version))                                   \
  X(makeId, ncclGetUniqueId, (NcclId *id))                                     \
  X(connect, ncclCommInitRankConfig,                                           \
    (NcclRanks *ranks, int count, NcclId id, int rank, NcclConfig *config))    \
  X(state, ncclCommGetAsyncError, (NcclRanks ranks, NcclResult *state))        \
  X(abort, ncclCommAbort, (NcclRanks ranks))                                   \
  X(finalize, ncclCommFinalize, (NcclRanks ranks))                             \
  X(destroy, ncclCommDestroy, (NcclRanks ranks))                               \
  X(send, ncclSend,                                                            \
    (const void *bytes, size_t count, int type, int peer, NcclRanks ranks,     \
     CudaStream stream))                                                       \
  X(receive, ncclRecv,                                                         \
    (void *bytes, size_t count, int type, int peer, NcclRanks ranks,           \
     CudaStream stream))                                                       \
  X(allReduce, ncclAllReduce,                                                  \
    (const void *from, void *to, size_t count, int type, int operation,        \
     NcclRanks ranks, CudaStream stream))                                      \
  X(reduceScatter, ncclReduceScatter,                                          \
    (const void *from, void *part, size_t countOfPart, int type,               \
     int operation, NcclRanks ranks, CudaStream stream))                       \
  X(reduce, ncclReduce,                                                        \
    (const void *from, void *to, size_t count, int type, int operation,        \
     int root, NcclRanks ranks, CudaStream stream))                            \
  X(groupStart, ncclGroupStart, ())                                            \
  X(groupEnd, ncclGroupEnd, ())
// clang-format on

//===----------------------------------------------------------------------===//
// Opened
//===----------------------------------------------------------------------===//

#define REPRISE_MEMBER(member, symbol, parameters)                             \
  CudaResult(*member) parameters = nullptr;
struct CudaDriver {
  REPRISE_CUDA_DRIVER(REPRISE_MEMBER)
};
struct CublasLt {
  REPRISE_CUBLASLT(REPRISE_MEMBER)
  size_t (*version)() = nullptr;                        ///< cublasLtGetVersion
  const char *(*statusName)(BlasResult code) = nullptr; ///< …StatusName
};
struct NcclLibrary {
  REPRISE_NCCL(REPRISE_MEMBER)
  const char *(*errorText)(NcclResult code) = nullptr; ///< ncclGetErrorString
  const char *(*lastError)(NcclRanks ranks) = nullptr; ///< ncclGetLastError
};
#undef REPRISE_MEMBER

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_CUDAAPI_H
