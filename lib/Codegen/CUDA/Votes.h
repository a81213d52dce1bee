//===- Votes.h - What the threads of a warp agree on ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CUDA_VOTES_H
#define REPRISE_LIB_CODEGEN_CUDA_VOTES_H

#include "DeviceCode.h"

namespace reprise::cuda {

/// Of a flag that each thread of a warp has, an i32 each: in how many threads
/// it is set, and in how many below this one.
struct Votes {
  mlir::Value all, below;
};

/// Of all threads of the warp; this one is its thread `lane`.
Votes vote(DeviceCode &code, mlir::Value flag, mlir::Value lane);

/// Waits for all threads of the warp; what they wrote is visible to them.
void syncWarp(DeviceCode &code);

} // namespace reprise::cuda

#endif // REPRISE_LIB_CODEGEN_CUDA_VOTES_H
