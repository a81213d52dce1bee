//===- EvenRows.h - Rows that are counted on --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_INTERFACES_EVENROWS_H
#define REPRISE_INTERFACES_EVENROWS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace reprise {

/// On a GEMM of groups of rows, an i64: how many rows come where experts are
/// used evenly. There is room for more where other ranks send them; what does
/// not come costs nothing.
inline constexpr llvm::StringLiteral kEvenNNRowsAttr = "nn.even_rows";
inline constexpr llvm::StringLiteral kEvenRTRowsAttr = "rt.even_rows";

/// The rows that a GEMM costs, of those that it has room for.
inline int64_t getEvenRows(mlir::Operation *op, llvm::StringRef attribute,
                           int64_t room) {
  auto rows = op->getAttrOfType<mlir::IntegerAttr>(attribute);
  return rows ? rows.getInt() : room;
}

} // namespace reprise

#endif // REPRISE_INTERFACES_EVENROWS_H
