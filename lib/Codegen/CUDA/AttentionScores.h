//===- AttentionScores.h - What hides and drops scores ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CUDA_ATTENTIONSCORES_H
#define REPRISE_LIB_CODEGEN_CUDA_ATTENTIONSCORES_H

#include "AttentionShape.h"
#include <array>

namespace reprise::cuda {

/// The scores of a block: its own rows by the rows of a tile.
struct Scores {
  mlir::Value head;     ///< entry * heads + head of queries
  mlir::Value firstOwn; ///< positions
  mlir::Value firstOfTile;
  bool keysAreRows; ///< own rows are keys, and the tile has queries
};

/// Scores with a low number where a query does not see a key.
Warp::Values masked(Warp &code, const Division &division,
                    mlir::ValueRange scores, const Scores &where);

/// Draws the dropout factors of scores.
class ScoreDropout {
public:
  using Values = Warp::Values;

  /// \param rng  the address of the four words of the random stream.
  ScoreDropout(Warp &code, const AttentionShape &shape,
               const Division &division, const AttentionPlaces &places,
               mlir::Value rng);

  /// Those of scores; none without dropout.
  Values factors(const Scores &where) const;

private:
  std::array<mlir::Value, 4> words(mlir::Value block) const;
  mlir::Value word(mlir::Value element) const;
  Values wordsOfRows(mlir::Value row, mlir::Value column,
                     mlir::Value head) const;
  Values wordsOfColumns(mlir::Value row, mlir::Value column,
                        mlir::Value head) const;
  mlir::Value firstElement(mlir::Value head, mlir::Value query) const;

  Warp &code;
  const AttentionShape &shape;
  const Division &division;
  codegen::RandomStream random;
  mlir::Value rank; ///< i32, which part of the heads; null: they are all here
};

} // namespace reprise::cuda

#endif // REPRISE_LIB_CODEGEN_CUDA_ATTENTIONSCORES_H
