//===- Active.h - What a gradient goes through ------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_SUPPORT_ACTIVE_H
#define REPRISE_SUPPORT_ACTIVE_H

#include "mlir/IR/Block.h"

namespace reprise {
/// The arguments of `block` that are `trained`, and what its ops make of them.
/// Integers have no gradient: what is made of these alone is not active.
llvm::DenseSet<mlir::Value>
findActive(mlir::Block &block,
           llvm::function_ref<bool(mlir::BlockArgument)> isTrained);
} // namespace reprise

#endif // REPRISE_SUPPORT_ACTIVE_H
