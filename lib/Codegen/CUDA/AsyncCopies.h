//===- AsyncCopies.h - Copies to shared memory, under way -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Copies from device to shared memory (cp.async) that are under way beside what
// a thread does, in groups that it ends.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CUDA_ASYNCCOPIES_H
#define REPRISE_LIB_CODEGEN_CUDA_ASYNCCOPIES_H

#include "reprise/Codegen/Common/Code.h"

namespace reprise::cuda {

/// Begins to copy `bytes`, 4, 8 or 16, both addresses at a multiple of them: of
/// these `valid`, an i32, are read, and the others are zero.
void copyAsync(codegen::Code &code, mlir::Value to, mlir::Value from,
               int64_t bytes, mlir::Value valid);

/// Ends the group of the copies that have begun since the last one.
void commitCopies(codegen::Code &code);

/// Waits for all groups but the last `groups`.
void waitForCopies(codegen::Code &code, int64_t groups);

} // namespace reprise::cuda

#endif // REPRISE_LIB_CODEGEN_CUDA_ASYNCCOPIES_H
