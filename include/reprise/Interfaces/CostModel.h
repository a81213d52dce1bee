//===- CostModel.h - What an op costs ---------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_INTERFACES_COSTMODEL_H
#define REPRISE_INTERFACES_COSTMODEL_H

#include "mlir/IR/OpDefinition.h"

namespace reprise {
/// Bytes of a type of static shape, INT64_MAX at most; 0 for any other type.
int64_t getTypeBytes(mlir::Type type);

/// Bytes of all operands and results of `op`.
int64_t getOperandAndResultBytes(mlir::Operation *op);
} // namespace reprise

#include "reprise/Interfaces/CostModel.h.inc"

#endif // REPRISE_INTERFACES_COSTMODEL_H
