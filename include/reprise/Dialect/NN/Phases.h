//===- Phases.h - The phases of a step --------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_NN_PHASES_H
#define REPRISE_DIALECT_NN_PHASES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <optional>

namespace reprise::nn {
/// The parts of a step; of several micro-batches, the first two alternate.
enum class StepPhase { Forward, Backward, Update };

/// The phase that begins with `op`, which is a mark and computes nothing; none
/// for other ops.
std::optional<StepPhase> getPhaseBegun(mlir::Operation *op);

/// Whether `op` is the mark that `phase` begins with.
inline bool begins(mlir::Operation *op, StepPhase phase) {
  return getPhaseBegun(op) == phase;
}

/// The first mark of `phase` in `function`, or null.
mlir::Operation *findPhase(mlir::func::FuncOp function, StepPhase phase);

/// The ops in front of the first mark of the backward pass: all of them, if
/// there is none.
llvm::iterator_range<mlir::Block::iterator> getForward(mlir::Block &block);
} // namespace reprise::nn

#endif // REPRISE_DIALECT_NN_PHASES_H
