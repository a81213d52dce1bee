//===- AsyncCopies.cpp - Copies to shared memory, under way -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AsyncCopies.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace reprise;

void cuda::copyAsync(codegen::Code &code, Value to, Value from, int64_t bytes,
                     Value valid) {
  // Past L1 where that can be: each byte is read once.
  NVVM::CpAsyncOp::create(code, to, from, bytes,
                          bytes == 16 ? NVVM::LoadCacheModifierKind::CG
                                      : NVVM::LoadCacheModifierKind::CA,
                          valid);
}

void cuda::commitCopies(codegen::Code &code) {
  NVVM::CpAsyncCommitGroupOp::create(code);
}

void cuda::waitForCopies(codegen::Code &code, int64_t groups) {
  NVVM::CpAsyncWaitGroupOp::create(code, uint32_t(groups));
}
