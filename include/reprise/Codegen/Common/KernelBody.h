//===- KernelBody.h - What a kernel is made of ------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_CODEGEN_COMMON_KERNELBODY_H
#define REPRISE_CODEGEN_COMMON_KERNELBODY_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace reprise::codegen {

/// Checks that `source` can be a kernel, and gives the op of `rt` that it is
/// made of, or null if it is loops.
mlir::FailureOr<mlir::Operation *> getKernelOp(mlir::func::FuncOp source);

/// Whether its loops draw random words.
bool drawsRandomWords(mlir::func::FuncOp source);

} // namespace reprise::codegen

#endif // REPRISE_CODEGEN_COMMON_KERNELBODY_H
