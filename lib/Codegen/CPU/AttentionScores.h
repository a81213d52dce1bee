//===- AttentionScores.h - The elements of a tile ---------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile of scores has a row for each key and a column for each query, 16 of
// which are the lanes of a vector. A query sees the keys up to its own
// position: queries of a tile begin `ahead` positions after its keys, which is
// null where it is known that all queries see all keys.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CPU_ATTENTIONSCORES_H
#define REPRISE_LIB_CODEGEN_CPU_ATTENTIONSCORES_H

#include "AttentionShape.h"

namespace reprise::codegen::attention {

/// Where a tile has query `lane` of `key`.
mlir::Value placeOf(Code &code, const AttentionShape &shape, mlir::Value key,
                    mlir::Value lane);
/// Calls `body` for each vector of queries, the first of which is `lane`, and
/// the number of keys that one of them may see.
void forQueries(
    Code &code, const AttentionShape &shape, mlir::Value ahead,
    llvm::function_ref<void(mlir::Value lane, mlir::Value keys)> body);
/// And `body` for every second key from there up to where GEMMs go that have
/// these queries: what they read must be zero.
void forUnseen(Code &code, const AttentionShape &shape, mlir::Value keys,
               llvm::function_ref<void(mlir::Value key)> body);
/// `number` where the 16 queries from `lane` on see `key`, both in a tile.
mlir::Value whereSeen(Code &code, mlir::Value lane, mlir::Value ahead,
                      mlir::Value key, mlir::Value number,
                      mlir::Value otherwise);
/// Which of the queries from position `query` on exist.
mlir::Value exist(Code &code, const AttentionShape &shape, mlir::Value query);
/// Of a tile all of whose queries see all keys, the number of the four keys
/// from `j` on for the queries from `lane` on, among all of these: as many as a
/// block of 64 has rows. (Of eights it is the first of two.)
mlir::Value rowOf(Code &code, const AttentionShape &shape, mlir::Value lane,
                  mlir::Value j);

// A score becomes a power of e or, of pairs, one of 2, which takes less: its
// exponent has the factor for that, with the scale.
mlir::Value power(Code &code, const AttentionShape &shape,
                  mlir::Value exponent);
mlir::Value exponentOf(Code &code, const AttentionShape &shape,
                       mlir::Value score);
/// That less another.
mlir::Value exponentLess(Code &code, const AttentionShape &shape,
                         mlir::Value score, mlir::Value exponent);
/// Between exponents and natural logarithms.
mlir::Value fromLogarithm(Code &code, const AttentionShape &shape,
                          mlir::Value number);
mlir::Value toLogarithm(Code &code, const AttentionShape &shape,
                        mlir::Value exponent);
/// What `p` weighs, with its dropout factor: of a pair, whether it is kept, for
/// the factor would be rounded with it, all of them the same way.
mlir::Value weight(Code &code, const AttentionShape &shape, mlir::Value p,
                   mlir::Value factor);

// Of two keys from `key` on and 16 queries from `lane` on, f32 numbers become
// elements of what `weighKeys` or `weighQueries` takes. They may lie where a
// tile of scores was, of which nothing is read any more before them.
void storeKeys(Code &code, const AttentionShape &shape, mlir::Value tile,
               mlir::Value key, mlir::Value lane, mlir::ValueRange numbers);
void storeQueries(Code &code, const AttentionShape &shape, mlir::Value tile,
                  mlir::Value key, mlir::Value lane, mlir::ValueRange numbers);

/// Draws the dropout factors of scores.
struct ScoreStream {
  mlir::Value rank; ///< the part of the heads of all ranks; null: all of them
  RandomStream random;

  /// The elements of key 0 for 16 queries: ((bh) * length + query + lane) *
  /// length, with `bh` among the heads of all ranks.
  mlir::Value elements(Code &code, const AttentionShape &shape, mlir::Value bh,
                       mlir::Value query) const;
  /// Calls `body` for every second key j of `count`, a multiple of 4, with the
  /// dropout factors of that and the next for the 16 queries whose `elements`
  /// are given. `first` is the position of key 0, a multiple of 4; `carried`
  /// goes from call to call. Every eighth key goes to `meanwhile`, too, if
  /// `count` is a multiple of 8.
  using Body = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      mlir::Value j, llvm::ArrayRef<mlir::Value> factors,
      mlir::ValueRange carried)>;
  llvm::SmallVector<mlir::Value>
  forKeys(Code &code, const AttentionShape &shape, mlir::Value elements,
          mlir::Value first, mlir::Value count, mlir::ValueRange carried,
          Body body,
          llvm::function_ref<void(mlir::Value j)> meanwhile = {}) const;
};

} // namespace reprise::codegen::attention

#endif // REPRISE_LIB_CODEGEN_CPU_ATTENTIONSCORES_H
