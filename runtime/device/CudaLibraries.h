//===- CudaLibraries.h - Opens CUDA's libraries -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_CUDALIBRARIES_H
#define REPRISE_RUNTIME_DEVICE_CUDALIBRARIES_H

#include "CudaApi.h"
#include "runtime/base/Error.h"

namespace reprise::runtime {

/// The driver, cuBLASLt and NCCL of this machine, found by the linker's rules
/// or in the folders that REPRISE_CUDA_PATH names (several with colons, as in
/// PATH; a folder's lib64 and lib are looked at, too). They stay open to the
/// end.
struct CudaLibraries {
  CudaDriver driver;
  CublasLt blas;
  NcclLibrary nccl;

  /// Opens the first two. Says what is missing and where it was looked for.
  bool open(Error &error);
  /// Opens the third, which only several ranks need.
  bool openNccl(Error &error);
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_CUDALIBRARIES_H
