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
/// On an op of the forward pass: what happens to its results.
inline constexpr llvm::StringLiteral kDecisionAttr = "remat.decision";
/// On an op of the backward pass: it replays an op of this segment.
inline constexpr llvm::StringLiteral kReplayAttr = "remat.replay";
/// On a replay: the kernel of the gradient that follows makes the value on its
/// way, so that it is not counted as a replay.
inline constexpr llvm::StringLiteral kFreeAttr = "remat.free";
/// The label of such replays.
inline constexpr llvm::StringLiteral kFreeLabel = "free";
/// On a function: how its layers are spread over pipeline stages.
inline constexpr llvm::StringLiteral kChunksAttr = "remat.chunks";
} // namespace reprise::remat

#endif // REPRISE_DIALECT_REMAT_REMATOPS_H
