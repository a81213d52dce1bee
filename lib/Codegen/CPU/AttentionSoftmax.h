//===- AttentionSoftmax.h - The softmax of attention ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Block by block of keys, scores of a block of queries become weights. For each
// query the greatest score so far is subtracted from all of them, so the sum of
// weights and the weighted sum of values are yet to be multiplied by a factor
// whenever a greater one comes.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CPU_ATTENTIONSOFTMAX_H
#define REPRISE_LIB_CODEGEN_CPU_ATTENTIONSOFTMAX_H

#include "AttentionScores.h"

namespace reprise::codegen::attention {

/// What blocks of queries have on the stack, the last three for each query.
struct QueryBlock {
  mlir::Value first; ///< position; null of all blocks of a task
  mlir::Value queriesT, sums, maxima, totals, factors;

  static QueryBlock create(Code &code, const AttentionShape &shape,
                           int64_t blocks);
  /// The block of number `index` of these, from position `first` on.
  QueryBlock at(Code &code, const AttentionShape &shape, mlir::Value first,
                mlir::Value index) const;
};

class Softmax {
public:
  /// \param tile  has the scores, and then the weights.
  Softmax(Code &code, const AttentionShape &shape, const ScoreStream &stream,
          mlir::Value tile)
      : code(code), shape(shape), stream(stream), tile(tile) {}

  /// Before the first block of keys.
  void begin(const QueryBlock &queries) const;
  /// The block of keys from `first` on meets queries of head `bh`. If all
  /// queries see all keys, every second row of the block goes to `meanwhile`,
  /// which takes the next one, too.
  void add(const QueryBlock &queries, mlir::Value bh, mlir::Value first,
           mlir::Value ahead,
           llvm::function_ref<void(mlir::Value row)> meanwhile = {}) const;
  /// Behind the last: factors become those of the sums, and the logarithms of
  /// the totals go to `lse`.
  void finish(const QueryBlock &queries, mlir::Value bh, mlir::Value lse) const;

private:
  llvm::SmallVector<mlir::Value> findMaxima(mlir::Value lane, mlir::Value ahead,
                                            mlir::Value keys) const;
  mlir::Value emitWeights(mlir::Value elements, mlir::Value lane,
                          mlir::Value first, mlir::Value ahead,
                          mlir::Value keys, mlir::Value greatest,
                          mlir::Value total,
                          llvm::function_ref<void(mlir::Value row)>) const;
  void scaleSums(const QueryBlock &queries, mlir::Value lane,
                 mlir::Value isRaised, mlir::Value first) const;

  Code &code;
  const AttentionShape &shape;
  const ScoreStream &stream;
  mlir::Value tile;
};

} // namespace reprise::codegen::attention

#endif // REPRISE_LIB_CODEGEN_CPU_ATTENTIONSOFTMAX_H
