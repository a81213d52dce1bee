//===- GemmTerms.h - The terms of a block's GEMM ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Terms of a sum are walked over in their order, some at a time: they lie in
// shared memory, in one of three places in turn, while the next two are on
// their way. bf16 is multiplied by mma.sync with sums in f32, and f32 by fused
// multiply-adds of the same numbers in the same threads, as Warp.h has them.
// The order of a sum is that of its terms, whatever the tiles are.
//
// In shared memory a side of the GEMM lies as in device memory, row by row
// with 16 bytes between rows: either a row of terms for each row of the GEMM
// or a row of these for each term, which ldmatrix then transposes.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CUDA_GEMMTERMS_H
#define REPRISE_LIB_CODEGEN_CUDA_GEMMTERMS_H

#include "Warp.h"
#include "reprise/Dialect/RT/ElementFormat.h"

namespace reprise::cuda {

/// Bytes of the terms of a row that are in shared memory at a time.
constexpr int64_t kTermBytes = 64;
/// Bytes of a vector that is copied there, and what lies between rows.
constexpr int64_t kTermVector = 16;

/// How a block's tile of C is divided among its warps.
struct GemmTile {
  int64_t rows, cols;

  int64_t warpsOfRows() const { return std::min<int64_t>(rows / kWarpRows, 4); }
  int64_t warpsOfCols() const { return std::max<int64_t>(cols / 64, 1); }
  int64_t threads() const { return warpsOfRows() * warpsOfCols() * kWarpSize; }
  /// Rows and columns of a warp.
  int64_t ownRows() const { return rows / warpsOfRows(); }
  int64_t ownCols() const { return cols / warpsOfCols(); }
};

/// A or B: where its elements are, in device memory and in shared memory.
struct GemmSide {
  mlir::Type element;
  int64_t tile;      ///< rows of A, or columns of B, of a block
  int64_t stride;    ///< elements from row to row of the buffer
  bool ofTerms;      ///< a row of the buffer has the terms of a sum
  bool inVectors;    ///< whether its rows can be copied so
  mlir::Value base;  ///< in device memory
  mlir::Value first; ///< of the block: its first row, or column
  mlir::Value end;   ///< and the end of these
  mlir::Value order; ///< in device memory, or null
  int64_t slots;     ///< of the rows of the buffer, in `order`
  int64_t begin = 0; ///< within a place in shared memory
  /// With rows of terms: where those begin that this thread copies, and whether
  /// they are there.
  Warp::Values offsets, isThere;

  int64_t bytes() const { return rt::getElementFormat(element)->bytes; }
  int64_t terms() const { return kTermBytes / bytes(); }
  int64_t rows() const { return ofTerms ? tile : terms(); }
  int64_t cols() const { return ofTerms ? terms() : tile; }
  int64_t strideBytes() const { return cols() * bytes() + kTermVector; }
  int64_t sharedBytes() const { return rows() * strideBytes(); }
  /// Elements that are copied at once, and how many such parts a tile has.
  int64_t lanes() const { return inVectors ? kTermVector / bytes() : 1; }
  int64_t parts() const { return rows() * cols() / lanes(); }
};

/// Adds up the terms of a block's rows and columns.
class GemmTerms {
public:
  using Values = Warp::Values;

  /// Of a block with `tile`; `a` and `b` say where its rows and columns are.
  GemmTerms(Warp &code, const GemmTile &tile, const GemmSide &a,
            const GemmSide &b);

  /// Shared memory that a block needs.
  static int64_t countBytes(const GemmSide &a, const GemmSide &b);

  /// The sums of `numTerms` terms, which in a side that has them as rows are
  /// those from `firstTerm` on: of this warp's rows and columns, where Warp.h
  /// says.
  Values sum(mlir::Value numTerms, mlir::Value firstTerm);

  /// The first row and column of this warp, among those of the block.
  mlir::Value warpRow, warpCol;

private:
  mlir::Value rowOf(const GemmSide &side, mlir::Value row);
  void fixRows(GemmSide &side);
  void copy(const GemmSide &side, mlir::Value step, mlir::Value firstTerm,
            mlir::Value numTerms);
  void copyPart(const GemmSide &side, mlir::Value to, mlir::Value from,
                mlir::Value isThere);
  mlir::Value placeOf(mlir::Value step);
  Values multiplyTerms(mlir::Value place, mlir::ValueRange sums);
  Values fragmentOfA(mlir::Value place, int64_t block, int64_t term);
  Values fragmentOfB(mlir::Value place, int64_t block, int64_t term);
  Values multiplyNumbers(mlir::Value place, mlir::ValueRange sums);
  Values numbersOf(const GemmSide &side, mlir::Value place, mlir::Value row,
                   int64_t width, mlir::Value term);

  Warp &code;
  const GemmTile tile;
  GemmSide a, b;
};

} // namespace reprise::cuda

#endif // REPRISE_LIB_CODEGEN_CUDA_GEMMTERMS_H
