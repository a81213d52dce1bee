//===- PrepareSchedule.h - What a schedule makes explicit -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_KERNELS_PREPARESCHEDULE_H
#define REPRISE_KERNELS_PREPARESCHEDULE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "reprise/Interfaces/Facts.h"

namespace reprise::kernels {

/// Rewrites a step of nn ops so that each value a schedule works on is one of
/// its values: fences become their values, heads go chunk by chunk, sums of
/// gradients are accumulated term by term, with one micro-batch from the first
/// on; and where the next step adds to one, the zero that nn.adamw leaves
/// behind is returned.
mlir::LogicalResult prepareSchedule(mlir::func::FuncOp function);

/// What `value` is the rank's share of, or `value`.
mlir::Value getWhole(mlir::Value value);

/// That zero, or null. `sum` is the gradient, or what that is a share of.
mlir::Operation *getZeroBehind(ParameterUpdate update, mlir::Value sum);

/// The part of that for nn.linear_cross_entropy: it becomes the ops that it
/// stands for, on views of its rows, one chunk after the other.
void expandHeads(mlir::func::FuncOp function);

/// The part of that for experts that have some rows at a time: where rows of a
/// round are added to those of others, which have zeros there, they are put
/// among these.
void putAmongOthers(mlir::Block &block);

/// Whether the kernel of `op`, or the GEMM that it is, can start from an
/// old sum.
bool canStartFromSum(mlir::Operation *op);

/// Gradients of biases that the gradients of weights, by which they are found,
/// make beside them, where a library multiplies. What adds them to their sums,
/// if anything does, is moved behind the backward pass.
llvm::DenseMap<mlir::Operation *, mlir::Operation *>
takeBiasGradients(mlir::func::FuncOp function);

} // namespace reprise::kernels

#endif // REPRISE_KERNELS_PREPARESCHEDULE_H
