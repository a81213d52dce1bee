//===- GroupSums.h - Sums over ranks that have groups -----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_RT_GROUPSUMS_H
#define REPRISE_DIALECT_RT_GROUPSUMS_H

#include "reprise/Dialect/RT/RTOps.h"

namespace reprise::rt {

/// On an `rt.collective all_reduce` or `reduce_shares`: each rank has so many
/// groups of micro-batches, and of each sum a term for each of their runs. With
/// `m` results or outputs, number `i` is that of the inputs `i`, `m + i` and so
/// on, the terms in order of the runs, and has the bytes of the last.
inline constexpr llvm::StringLiteral kGroupsAttr = "rt.groups";

/// The groups of each rank; 1 where nothing is said.
int64_t getGroups(CollectiveOp op);

/// What `op` makes: its results, or else its outputs.
mlir::ValueRange getMade(CollectiveOp op);

/// The terms that a rank has of each sum of `op`, which is one in place.
int64_t getNumTerms(CollectiveOp op);

/// Whether a sum in place has the terms that its groups need, those of one sum
/// of one type.
llvm::LogicalResult verifyTerms(CollectiveOp op);

/// Whether `value` may be the `rt.groups` of `op`, which `name` is.
llvm::LogicalResult verifyGroups(mlir::Operation *op, llvm::StringRef name,
                                 mlir::Attribute value);

} // namespace reprise::rt

#endif // REPRISE_DIALECT_RT_GROUPSUMS_H
