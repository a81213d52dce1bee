//===- Undo.h - A step as no decider has seen it ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_REMAT_UNDO_H
#define REPRISE_REMAT_UNDO_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace reprise::remat {
/// Takes decisions, replays and fences out of `step`, so that it can be decided
/// anew: what was kept or replayed, everything is kept. The order of the other
/// ops stays. Fails with a diagnostic if a replay has no original.
llvm::LogicalResult undo(mlir::func::FuncOp step);

/// Takes the decision off `op`, unless it is that of every plan.
void undecide(mlir::Operation *op);
} // namespace reprise::remat

#endif // REPRISE_REMAT_UNDO_H
