//===- RTWaitOp.h - The end of what ranks have begun ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_RT_RTWAITOP_H
#define REPRISE_DIALECT_RT_RTWAITOP_H

#include "reprise/Dialect/RT/RTOps.h"

#define GET_OP_CLASSES
#include "reprise/Dialect/RT/RTWaitOp.h.inc"

namespace reprise::rt {
/// On an op in which ranks meet: it only begins where it stands, and ends at
/// the rt.wait of this number.
inline constexpr llvm::StringLiteral kBegunAttr = "rt.begun";
/// On an op in which ranks meet, above rt.update, and on its wait if it is only
/// begun: they run in the last micro-batch of a step.
inline constexpr llvm::StringLiteral kOnceAttr = "rt.once";
/// On the module: ranks begin nothing before they wait for it.
inline constexpr llvm::StringLiteral kNoOverlapAttr = "rt.no_overlap";

/// Whether ranks meet in `op`, which may be begun and waited for.
bool isMeeting(mlir::Operation *op);

/// The number of what `op` begins, if it only begins it.
std::optional<int64_t> getBegun(mlir::Operation *op);

/// Lets the op have the interface of ops of schedules; the dialect does so when
/// it is loaded.
void attachScheduledWait(mlir::MLIRContext &context);
} // namespace reprise::rt

#endif // REPRISE_DIALECT_RT_RTWAITOP_H
