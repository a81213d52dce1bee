//===- Decide.h - What deciders share ---------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_REMAT_DECIDE_H
#define REPRISE_LIB_REMAT_DECIDE_H

#include "Step.h"

namespace reprise::remat {
/// Writes that `op` is kept, unless it has a decision.
void decideToSave(mlir::Operation *op, llvm::StringRef reason,
                  int64_t segment = -1);

/// Writes that the results of these numbers are dropped, unless `op` has a
/// decision. Without side effects only; returns whether it wrote.
bool decideToRecompute(mlir::Operation *op, int64_t segment,
                       llvm::StringRef label, llvm::ArrayRef<int64_t> results);

/// The results of `op` that only ops with `isInside`, or the backward phase,
/// read. Sets `outside` to an op of the forward phase that reads another.
llvm::SmallVector<int64_t>
getInnerResults(const Step &step, mlir::Operation *op,
                llvm::function_ref<bool(mlir::Operation *)> isInside,
                mlir::Operation *&outside);

/// Whether `op` makes rows of a round of experts, which are recomputed under
/// every plan.
bool isMadeInRounds(mlir::Operation *op);

/// Bytes of the results of `op` that are dropped and that backward reads.
int64_t getFreedBytes(const Step &step, mlir::Operation *op);

/// A remark for each decision.
void remarkDecisions(const Step &step);
} // namespace reprise::remat

#endif // REPRISE_LIB_REMAT_DECIDE_H
