//===- Products.h - Matrix products of nn as rt.gemm ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_KERNELS_PRODUCTS_H
#define REPRISE_KERNELS_PRODUCTS_H

#include "reprise/Dialect/RT/RTOps.h"

namespace reprise::kernels {

/// Whether `op` is a matrix product that formProduct knows.
bool isProduct(mlir::Operation *op);

/// Heads of keys that heads of queries share. An rt.gemm has as many of both:
/// operand 1 of the op is to be repeated for each head of queries, or, if
/// `areSummed`, what it makes for each of them is to be summed.
struct SharedHeads {
  int64_t heads, keyHeads;
  bool areSummed;
};

/// The heads that a product shares, or none.
std::optional<SharedHeads> getSharedHeads(mlir::Operation *op);

/// What the gradient of a weight makes on its way: the sum of the rows of the
/// gradient that it reads, or the sums of the squares of what it writes.
enum class Beside { Nothing, SumOfRows, Squares };

/// Builds the product that `op` is; with `addend`, of its result's type, added
/// to that; and with `beside`. It shares no heads.
rt::GemmOp formProduct(mlir::OpBuilder &builder, mlir::Operation *op,
                       mlir::Value addend, Beside beside);

} // namespace reprise::kernels

#endif // REPRISE_KERNELS_PRODUCTS_H
