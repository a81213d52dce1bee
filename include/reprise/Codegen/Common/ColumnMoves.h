//===- ColumnMoves.h - Columns of latent attention --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Four ops of rt do nothing but bring runs of columns from rows to rows:
//
//   split_columns          [left|right]      -> [left], [right]
//   join_columns           [left], [right]   -> [left|right]
//   latent_heads           heads of [own|value], [shared]
//                                            -> heads of [own|shared], of
//                                            [value]
//   latent_heads_backward  heads of [own|shared], of [value]
//                                            -> heads of [own|value], [shared]
//
// A position has one row of what is no head's, and of heads a row for each. How
// a target moves them is the target's; which they are is said here.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_CODEGEN_COMMON_COLUMNMOVES_H
#define REPRISE_CODEGEN_COMMON_COLUMNMOVES_H

#include "reprise/Dialect/RT/RTOps.h"

namespace reprise::codegen {

/// Columns of an operand, or of a result, of `stride` columns: from `first` on.
struct ColumnRun {
  unsigned index;
  int64_t stride, first = 0;
};

struct ColumnMove {
  enum class Rows {
    Each,   ///< of a position to that of the position
    Heads,  ///< of a head to that of the head
    Repeat, ///< of a position to each of its heads
    Sum ///< of all heads, added in order and in f32, to that of the position
  };
  Rows rows;
  ColumnRun from, to; ///< of an operand, of a result
  int64_t count;
};

struct ColumnMoves {
  explicit ColumnMoves(rt::SplitColumnsOp op);
  explicit ColumnMoves(rt::JoinColumnsOp op);
  explicit ColumnMoves(rt::LatentHeadsOp op);
  explicit ColumnMoves(rt::LatentHeadsBackwardOp op);

  /// Whether any move is of rows of heads.
  bool hasHeads() const {
    return llvm::any_of(moves, [](const ColumnMove &move) {
      return move.rows != ColumnMove::Rows::Each;
    });
  }

  mlir::Type element;
  int64_t positions, heads = 1;
  llvm::SmallVector<ColumnMove, 3> moves;

private:
  /// \param value  has a row of `cols` columns for each position.
  ColumnMoves(mlir::Value value, int64_t cols);
};

} // namespace reprise::codegen

#endif // REPRISE_CODEGEN_COMMON_COLUMNMOVES_H
