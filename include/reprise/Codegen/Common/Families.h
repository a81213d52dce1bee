//===- Families.h - Pointwise loops of different lengths --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel of several pointwise loops over arrays of their own, such as the
// update of many parameters. Loops of one body share its code: a family.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_CODEGEN_COMMON_FAMILIES_H
#define REPRISE_CODEGEN_COMMON_FAMILIES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "reprise/Codegen/Common/Code.h"
#include <vector>

namespace reprise::codegen {

/// A loop, and the numbers of its buffers among those of the kernel.
struct Segment {
  mlir::linalg::GenericOp loop;
  int64_t length;
  llvm::SmallVector<int64_t> buffers;
  /// Of a loop with a result that the kernel returns packed, as the weight of a
  /// GEMM: which, and the columns of that matrix.
  std::optional<unsigned> packed;
  int64_t cols = 0;
};

/// Segments of one body, which the first of them stands for.
struct Family {
  llvm::SmallVector<Segment> segments;
};

/// Whether a kernel is pointwise loops, of different lengths or with packed
/// results, that do not read each other.
bool isSegmented(mlir::func::FuncOp kernel);

/// The loops of such a kernel.
mlir::FailureOr<std::vector<Family>> getFamilies(mlir::func::FuncOp kernel);

/// What a kernel looks up about the segment that its task works on: all
/// segments, in the order of families.
struct SegmentTables {
  SegmentTables(llvm::ArrayRef<Family> families, int64_t block);

  llvm::SmallVector<int64_t> blocks; ///< of `block` elements, the last shorter
  /// Where blocks are whole pairs of rows, as many as have so many elements, or
  /// one: these, and their columns.
  llvm::SmallVector<int64_t> pairsOfBlock, cols;
  llvm::SmallVector<int64_t> lengths; ///< in elements
  llvm::SmallVector<int64_t> buffers; ///< `width` numbers for each segment
  int64_t width = 0;
};

/// A kernel of `loop` alone, beside `kernel`: what it reads is its arguments.
mlir::func::FuncOp outline(Code &code, mlir::linalg::GenericOp loop,
                           mlir::func::FuncOp kernel);

} // namespace reprise::codegen

#endif // REPRISE_CODEGEN_COMMON_FAMILIES_H
