//===- SplitSums.h - Sums over ranks in parts -------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_MEMORY_SPLITSUMS_H
#define REPRISE_LIB_MEMORY_SPLITSUMS_H

#include "mlir/IR/Operation.h"

namespace reprise::memory {

/// Takes sums over ranks apart that stand below `update`, and are of what is
/// made above it: into sums of what is there early and of what is there late,
/// of like bytes each. Each element is the same sum as before. Returns
/// `exchanges`, ops of one block, with these in place of what they are parts
/// of, in their order.
llvm::SmallVector<mlir::Operation *>
splitSums(llvm::ArrayRef<mlir::Operation *> exchanges, mlir::Operation *update);

} // namespace reprise::memory

#endif // REPRISE_LIB_MEMORY_SPLITSUMS_H
