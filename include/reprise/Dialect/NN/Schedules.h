//===- Schedules.h - The functions of a program -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_NN_SCHEDULES_H
#define REPRISE_DIALECT_NN_SCHEDULES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace reprise::nn {

/// The functions of `module` that become schedules of one program: the step
/// first, or null if there is none, then those of the others that there are.
/// They may be external.
llvm::SmallVector<mlir::func::FuncOp> getSchedules(mlir::ModuleOp module);

/// The level of the partial sums that `function` makes, if it is one that puts
/// sums aside.
std::optional<unsigned> getPushLevel(mlir::func::FuncOp function);

/// The groups of the micro-batches of `step`, of one rank: 1 if it says
/// nothing.
int64_t getReductionGroups(mlir::func::FuncOp step);

/// The levels of partial sums that so many groups need: 0 for one.
unsigned getPartialLevels(int64_t groups);

/// The level that the sums of group `group`, from 0, and of those before it are
/// put into, if there is another group behind it.
unsigned getLevelBehind(int64_t group);

/// Whether the sums of `level` wait for the last of `groups` groups.
bool waitsForLast(unsigned level, int64_t groups);

} // namespace reprise::nn

#endif // REPRISE_DIALECT_NN_SCHEDULES_H
