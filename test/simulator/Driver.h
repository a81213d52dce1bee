//===- Driver.h - A stand-in for the CUDA driver ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the parts of the stand-in libcuda.so.1 share. DriverKernels.cpp has
// modules, functions and launches; the kernels are those of the shared object
// that REPRISE_SIMULATOR_KERNELS names, whatever image a module is made of.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_SIMULATOR_DRIVER_H
#define REPRISE_TEST_SIMULATOR_DRIVER_H

#include "runtime/CudaApi.h"
#include <functional>

namespace reprise::simulator {

constexpr runtime::CudaResult kInvalidValue = 1, kInvalidHandle = 400,
                              kNotFound = 500, kLaunchFailed = 719;

/// One thing that a stream does; what becomes of it.
using Work = std::function<runtime::CudaResult()>;

/// Does `work` in its turn on `stream`, or, while that is captured, each time
/// the graph runs. What fails at once is returned.
runtime::CudaResult submit(runtime::CudaStream stream, Work work);

} // namespace reprise::simulator

#endif // REPRISE_TEST_SIMULATOR_DRIVER_H
