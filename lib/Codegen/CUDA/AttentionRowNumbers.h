//===- AttentionRowNumbers.h - What belongs to rows of queries --*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Backward needs two numbers of each query beside its row and that of dout. A
// block makes them from rows of dout in a tile, and has them in shared memory.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CUDA_ATTENTIONROWNUMBERS_H
#define REPRISE_LIB_CODEGEN_CUDA_ATTENTIONROWNUMBERS_H

#include "AttentionTiles.h"

namespace reprise::cuda {

class RowNumbers {
public:
  /// What they are made of, beside dout.
  struct Source {
    Matrix out;
    mlir::Value lse, head; ///< entry * heads + head of queries
  };

  RowNumbers(Warp &code, const AttentionShape &shape, const Division &division,
             const SharedTiles &tiles)
      : code(code), shape(shape), division(division), tiles(tiles),
        layout(tiles.layout) {}

  /// Begins to copy what `write` reads, where GEMMs are under way while it
  /// does: for `rows` queries from `first` on.
  void copy(const Source &source, mlir::Value first, int64_t rows,
            mlir::Value step) const;
  /// For these queries, to shared memory: -log2(e) * lse, and dot(dout, out)
  /// with the rows of dout in the tile `dout`.
  void write(const Source &source, mlir::Value dout, mlir::Value first,
             int64_t rows, mlir::Value step) const;
  /// Both again, by number of the row.
  mlir::Value logSum(mlir::Value row) const;
  mlir::Value delta(mlir::Value row, int64_t rows) const;

private:
  // Of the rows of out, and of lse, that `write` needs of a step.
  mlir::Value outTile(mlir::Value step) const;
  mlir::Value lseCopy(mlir::Value step) const;
  mlir::Value sumOfCopies(mlir::Value a, mlir::Value b, int64_t rows,
                          mlir::Value row, mlir::Value part,
                          int64_t parts) const;
  mlir::Value dotOf(const Matrix &a, mlir::Value row, mlir::Value tile,
                    mlir::Value tileRow, mlir::Value part, int64_t parts) const;

  Warp &code;
  const AttentionShape &shape;
  const Division &division;
  const SharedTiles &tiles;
  const SharedLayout &layout;
};

} // namespace reprise::cuda

#endif // REPRISE_LIB_CODEGEN_CUDA_ATTENTIONROWNUMBERS_H
