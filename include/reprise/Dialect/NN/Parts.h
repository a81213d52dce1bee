//===- Parts.h - From a value to parts of it, and back ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_NN_PARTS_H
#define REPRISE_DIALECT_NN_PARTS_H

#include "reprise/Dialect/NN/NNOps.h"

namespace reprise::nn {
/// Takes a rank's own of the equal blocks of dimension `dim` of `whole`, which
/// all `ranks` along `axis` have: an `nn.slice`.
mlir::Operation *createPart(mlir::OpBuilder &builder, mlir::Location location,
                            mlir::Value whole, llvm::StringRef axis,
                            int64_t dim, int64_t ranks);

/// Makes whole again what `part`, by `createPart`, was taken of. `block` is its
/// result, or stands for it: an `nn.all_gather`, the same on all ranks.
mlir::Operation *createWhole(mlir::OpBuilder &builder, mlir::Location location,
                             mlir::Value block, mlir::Operation *part);

/// What `part` takes a block of; null if it is no `nn.slice`.
mlir::Value getWhole(mlir::Operation *part);

/// Whether `op` makes whole what `part` takes a block of, if its operand stands
/// for that block.
bool makesWhole(mlir::Operation *op, mlir::Operation *part);

/// The axis that `op` has a place or meets others along; empty if there is
/// none.
llvm::StringRef getAxis(mlir::Operation *op);

/// Whether all ranks along the axis of `op`, a collective, have the same of
/// what it makes.
bool makesInvariant(mlir::Operation *op);
} // namespace reprise::nn

#endif // REPRISE_DIALECT_NN_PARTS_H
