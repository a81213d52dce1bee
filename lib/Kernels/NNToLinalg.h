//===- NNToLinalg.h - Parts of the conversion to linalg ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_KERNELS_NNTOLINALG_H
#define REPRISE_KERNELS_NNTOLINALG_H

#include "KernelBody.h"
#include "reprise/Dialect/NN/NNOps.h"

namespace reprise::kernels {

/// Builds one loop nest for elementwise `ops` of one shape, each reading what
/// it likes of those before, and replaces the results.
void convertElementwise(LoopBuilder &loops,
                        llvm::ArrayRef<mlir::Operation *> ops);

/// [B, T, H*D] with a copy of each of `value`'s heads, [B, T, G*D], for every
/// one of the `heads / keyHeads` heads that share it, flattened, of `element`.
mlir::Value buildRepeatedHeads(LoopBuilder &loops, mlir::Value value,
                               int64_t heads, int64_t keyHeads,
                               mlir::Type element);
/// The other way round: the sums of heads of `value` that share a head of keys,
/// in ascending order.
mlir::Value buildSummedHeads(LoopBuilder &loops, mlir::Value value,
                             int64_t heads, int64_t keyHeads,
                             mlir::Type element);

/// The number of the rank along the axis that `op`, in a kernel, depends on, an
/// i32.
mlir::Value buildCoordinate(mlir::OpBuilder &builder, mlir::Operation *op);

/// Of each row the greatest element and the sum of the exponentials of what
/// elements are below it; and these, [rows, cols].
struct Exponentials {
  mlir::Value greatest, sum, all;
};

/// Those of the rows of `x`. Elements for which `isSeen`, where given, does not
/// hold count for nothing.
Exponentials buildExponentials(
    LoopBuilder &loops, mlir::Value x,
    llvm::function_ref<mlir::Value(mlir::ImplicitLocOpBuilder &)> isSeen = {});

/// The Euclidean norm, of one element, of what `squares` are sums of.
mlir::Value buildRootOfSum(LoopBuilder &loops, mlir::Value squares);

/// An op that has an equal in `rt`, which emitters write.
template <typename OpTy, typename Target>
struct Renamed : LoopBody::ExternalModel<Renamed<OpTy, Target>, OpTy> {
  LoopBuilder::Values buildLoops(mlir::Operation *op,
                                 LoopBuilder &loops) const {
    return Target::create(loops.getBuilder(), op->getResultTypes(),
                          op->getOperands(), op->getAttrs())
        ->getResults();
  }
};

template <typename OpTy, typename Target>
void attachRenamed(mlir::MLIRContext &context) {
  OpTy::template attachInterface<Renamed<OpTy, Target>>(context);
}

} // namespace reprise::kernels

#endif // REPRISE_KERNELS_NNTOLINALG_H
