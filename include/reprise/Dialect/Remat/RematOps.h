//===- RematOps.h - The remat dialect ---------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_REMAT_REMATOPS_H
#define REPRISE_DIALECT_REMAT_REMATOPS_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "reprise/Dialect/Remat/RematDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "reprise/Dialect/Remat/RematAttributes.h.inc"

#define GET_OP_CLASSES
#include "reprise/Dialect/Remat/RematOps.h.inc"

namespace reprise::remat {
/// On an op of the forward pass, or on an argument: what happens to its
/// results.
inline constexpr llvm::StringLiteral kDecisionAttr = "remat.decision";
/// On an op of the backward pass: it replays an op of this segment.
inline constexpr llvm::StringLiteral kReplayAttr = "remat.replay";
/// On a replay: the kernel of the gradient that follows makes the value on its
/// way, so that it is not counted as a replay.
inline constexpr llvm::StringLiteral kFreeAttr = "remat.free";
/// The label of such replays.
inline constexpr llvm::StringLiteral kFreeLabel = "free";
/// On an op of the forward pass: it takes what a rank keeps of a shared value.
inline constexpr llvm::StringLiteral kShareAttr = "remat.share";
/// On a function: how its layers are spread over pipeline stages.
inline constexpr llvm::StringLiteral kChunksAttr = "remat.chunks";
/// On a module: what its description asks of recompute.
inline constexpr llvm::StringLiteral kRequestAttr = "remat.request";
/// On an op: its number, which what is made of it keeps.
inline constexpr llvm::StringLiteral kIdAttr = "remat.id";
/// On what several ops became: their numbers.
inline constexpr llvm::StringLiteral kIdsAttr = "remat.ids";

/// Gives `to`, which is made of `from`, its number, if it has one.
void keepId(mlir::Operation *from, mlir::Operation *to);
/// Gives `to` the numbers of `ops`, in their order, each once, if they have
/// any.
void keepIds(llvm::ArrayRef<mlir::Operation *> ops, mlir::Operation *to);
/// The numbers of the ops that `op` was made of; empty: none had one.
llvm::ArrayRef<int64_t> getIds(mlir::Operation *op);
} // namespace reprise::remat

#endif // REPRISE_DIALECT_REMAT_REMATOPS_H
