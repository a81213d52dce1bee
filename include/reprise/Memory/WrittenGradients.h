//===- WrittenGradients.h - Gradients that start from nothing ---*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_MEMORY_WRITTENGRADIENTS_H
#define REPRISE_MEMORY_WRITTENGRADIENTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"

namespace reprise::memory {

/// Values of a schedule on tensors that are made in the bytes of a gradient's
/// argument which nothing reads. What `step` returns in its place is such a
/// value, or made of it in place. Linear in the size of the schedule.
llvm::MapVector<mlir::Value, mlir::BlockArgument>
findWrittenGradients(mlir::func::FuncOp step, const mlir::SymbolTable &symbols);

} // namespace reprise::memory

#endif // REPRISE_MEMORY_WRITTENGRADIENTS_H
