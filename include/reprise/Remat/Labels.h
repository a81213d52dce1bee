//===- Labels.h - The labels that a step has a use for ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_REMAT_LABELS_H
#define REPRISE_REMAT_LABELS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SmallVector.h"

namespace reprise::remat {

/// The labels of `recompute_modules` whose region some op of the forward pass
/// of `step` is in, in the order of their table.
llvm::SmallVector<llvm::StringRef> findLabels(mlir::func::FuncOp step);

/// Whether all of `labels` are among `known`.
bool hasLabels(llvm::ArrayRef<llvm::StringRef> known,
               llvm::ArrayRef<llvm::StringRef> labels);

} // namespace reprise::remat

#endif // REPRISE_REMAT_LABELS_H
