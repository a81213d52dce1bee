//===- Forms.h - Ops on tensors and ops on buffers --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_DIALECT_RT_FORMS_H
#define REPRISE_LIB_DIALECT_RT_FORMS_H

#include "mlir/IR/Operation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace reprise::rt {

/// Buffers are read and written; values of tensor type have no effects.
void addEffects(mlir::Operation *op, mlir::ValueRange reads,
                mlir::ValueRange writes,
                llvm::SmallVectorImpl<mlir::SideEffects::EffectInstance<
                    mlir::MemoryEffects::Effect>> &effects);

/// Both forms of an op: all operands are buffers, or all are tensors.
llvm::LogicalResult verifyForm(mlir::Operation *op, bool buffers);

/// `rt.begun`, `rt.once` and `rt.no_overlap`, on `op`.
llvm::LogicalResult verifyOverlapForm(mlir::Operation *op, llvm::StringRef name,
                                      mlir::Attribute value);

} // namespace reprise::rt

#endif // REPRISE_LIB_DIALECT_RT_FORMS_H
