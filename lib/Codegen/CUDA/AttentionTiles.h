//===- AttentionTiles.h - Tiles in shared memory ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tiles lie in shared memory as GEMMs read them (AttentionGemms.h): for
// those of four warps in panels, otherwise row by row, with 16 bytes between
// rows that keep the threads of a warp from meeting in one bank.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CUDA_ATTENTIONTILES_H
#define REPRISE_LIB_CODEGEN_CUDA_ATTENTIONTILES_H

#include "AttentionShape.h"

namespace reprise::cuda {

/// Rows of one head, in device memory.
struct Matrix {
  mlir::Value base;
  int64_t stride; ///< elements from row to row
  int64_t width;
};

/// Whether every row of a head of `width` begins at a multiple of 16 bytes and
/// has whole vectors.
bool hasVectors(const AttentionShape &shape, int64_t width);

class SharedTiles {
public:
  using Values = Warp::Values;

  SharedTiles(Warp &code, const AttentionShape &shape, const Division &division)
      : layout(shape, division), code(code), shape(shape), division(division) {}

  Matrix matrix(mlir::Value buffer, mlir::Value entry, mlir::Value head,
                int64_t heads, int64_t width) const;

  // Where tiles begin in shared memory.
  mlir::Value own(int64_t index) const;
  /// Tile `index`, 0 or 1, of those that step `step` of a walk reads.
  mlir::Value walked(mlir::Value step, int64_t index) const;
  /// Where a vector of a row of a tile with `rows` rows is.
  mlir::Value vectorOf(mlir::Value tile, int64_t rows, mlir::Value row,
                       mlir::Value vector) const;

  /// Begins to copy `rows` rows from `first` on to shared memory.
  void copy(const Matrix &from, mlir::Value first, int64_t rows,
            mlir::Value to) const;
  /// `body` for steps 0 .. count - 1, with the state carried along, while the
  /// tiles of the next step are on their way. `begin` begins the copies of a
  /// step; `prepare` is done once the first of them are on their way.
  Values walk(mlir::Value count, mlir::ValueRange state,
              llvm::function_ref<void(mlir::Value step)> begin,
              llvm::function_ref<void()> prepare, Warp::Body body) const;
  /// Writes sums[r] * factors[r] to the own rows from `first` on that exist;
  /// `factors` for the two rows of this thread.
  void store(const Matrix &to, mlir::Value first, mlir::ValueRange sums,
             mlir::ValueRange factors) const;

  const SharedLayout layout;

private:
  void copyElements(const Matrix &from, mlir::Value first, int64_t rows,
                    mlir::Value to) const;

  Warp &code;
  const AttentionShape &shape;
  const Division &division;
};

/// Element `index` of a vector.
mlir::Value elementOf(Warp &code, mlir::Value vector, int64_t index);

/// Of the two rows of this thread, `which` 0 or 1, among the own ones.
mlir::Value ownRow(Warp &code, int64_t which);

} // namespace reprise::cuda

#endif // REPRISE_LIB_CODEGEN_CUDA_ATTENTIONTILES_H
