//===- SplitSums.h - Sums over ranks in parts -------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_MEMORY_SPLITSUMS_H
#define REPRISE_LIB_MEMORY_SPLITSUMS_H

#include "reprise/Dialect/RT/RTOps.h"

namespace reprise::memory {

/// A sum over ranks of some of the inputs of another one, by their numbers.
struct SumPart {
  rt::CollectiveOp op;
  llvm::SmallVector<unsigned> numbers;
};

/// Whether a sum over ranks stands below `update`, and is of something that is
/// made above it.
bool isSumToSplit(rt::CollectiveOp op, mlir::Operation *update);

/// Puts sums of parts of its inputs in place of `sums`, which stays without a
/// use: of what is made above `update` in its order, of like bytes each, and of
/// the rest. Each element is the same sum as before.
llvm::SmallVector<SumPart> splitSum(rt::CollectiveOp sums,
                                    mlir::Operation *update);

/// Puts one sum in place of parts of one, one behind another.
rt::CollectiveOp joinSums(llvm::ArrayRef<SumPart> parts);

} // namespace reprise::memory

#endif // REPRISE_LIB_MEMORY_SPLITSUMS_H
