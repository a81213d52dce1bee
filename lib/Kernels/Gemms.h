//===- Gemms.h - GEMMs of nn as rt.gemm -------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_KERNELS_GEMMS_H
#define REPRISE_KERNELS_GEMMS_H

#include "reprise/Dialect/RT/RTOps.h"

namespace reprise::kernels {

class GemmBody;

/// A GEMM of two matrices of a buffer each, as rt.gemm describes it.
struct Gemm {
  mlir::Value a, b, bias;
  int64_t m, n, k;
  int64_t lda, ldb, ldc;
  bool transposeA = false, transposeB = false;
  float alpha = 1;
  llvm::SmallVector<int64_t, 2> batch, strideA, strideB, strideC;
  mlir::Value offsets, order; ///< of rows that belong to groups
  std::optional<rt::Gather> gather;
  int64_t slots = 1;
  /// Rows of heads whose type its own have, before heads are summed; null where
  /// that is the type of the op's result.
  mlir::Value rows;
};

/// Heads of keys that heads of queries share. An rt.gemm has as many of both:
/// operand 1 of the op is to be repeated for each head of queries, or, if
/// `areSummed`, what it makes for each of them is to be summed.
struct SharedHeads {
  int64_t heads, keyHeads;
  bool areSummed;
};

/// What the gradient of a weight makes on its way: the sum of the rows of the
/// gradient that it reads, or the sums of the squares of what it writes.
enum class Beside { Nothing, SumOfRows, Squares };

/// Builds the GEMM that `op` is; with `addend`, of its result's type, added
/// to that; and with `beside`. It shares no heads.
rt::GemmOp formGemm(mlir::OpBuilder &builder, GemmBody op, mlir::Value addend,
                    Beside beside);

} // namespace reprise::kernels

#endif // REPRISE_KERNELS_GEMMS_H
