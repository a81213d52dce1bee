//===- FindUnits.h - Which ops one launch or GEMM is of ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_KERNELS_FINDUNITS_H
#define REPRISE_KERNELS_FINDUNITS_H

#include "mlir/IR/Operation.h"
#include "reprise/Dialect/NN/Phases.h"
#include <vector>

namespace reprise::kernels {

/// Ops that become one launch or GEMM, by what the first of them is.
struct Unit {
  llvm::SmallVector<mlir::Operation *> ops;
  nn::StepPhase phase;
  mlir::Operation *rows = nullptr; ///< the one that goes over rows, if any does
};

/// Those of a function, in the order of its schedule.
struct Units {
  std::vector<Unit> all;
  /// By op, the index of its unit. Marks of phases have none.
  llvm::DenseMap<mlir::Operation *, unsigned> indices;
  /// Gradients of biases, by the gradient of the weight that makes them.
  llvm::DenseMap<mlir::Operation *, mlir::Operation *> biasGradients;

  bool isInside(mlir::Operation *op, unsigned unit) const {
    auto found = indices.find(op);
    return found != indices.end() && found->second == unit;
  }
};

/// Finds the units of a prepared schedule.
///
/// \param rowsApart  whether what goes over rows in the forward pass, and what
/// a
///                   replay may come before, begin a launch of their own.
Units findUnits(mlir::func::FuncOp function, bool rowsApart);

} // namespace reprise::kernels

#endif // REPRISE_KERNELS_FINDUNITS_H
