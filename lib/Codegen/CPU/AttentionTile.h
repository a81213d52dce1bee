//===- AttentionTile.h - A block of queries against one of keys -*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile is a block of keys by as many queries, a row for each key: lanes are
// queries, so the softmax over the keys runs from vector to vector. What a tile
// works on is copied to the stack first, as f32 and with rows of whole vectors:
// rows of a head are far apart in memory, where many fall on the same places of
// a cache. All products then are of one kind, elements times rows.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CPU_ATTENTIONTILE_H
#define REPRISE_LIB_CODEGEN_CPU_ATTENTIONTILE_H

#include "Kernel.h"
#include "reprise/Codegen/Common/Philox.h"

namespace reprise::codegen {

/// What a task may have on the stack, of the 8 MiB that a thread usually has.
constexpr int64_t kStackBytes = 1 << 20;
/// The widest head whose arrays fit there, in both directions, however long the
/// sequence.
constexpr int64_t kMaxHeadWidth = 1808;

/// Keys, and queries, of a tile of a long sequence. Results depend on it.
constexpr int64_t blockOf(int64_t width) { return width <= 256 ? 64 : 16; }

class AttentionTile {
public:
  /// The shapes and numbers of an rt.attention or rt.attention_backward.
  template <typename Op>
  AttentionTile(Code &code, Op op, bool wide)
      : AttentionTile(
            code, mlir::cast<mlir::ShapedType>(op.getQuery().getType()),
            op.getHeads(), op.getKvHeads() ? *op.getKvHeads() : op.getHeads(),
            op.getScale().convertToDouble(), op.getRate().convertToDouble(),
            wide) {}

  /// What lies beside each other in one position.
  struct Heads {
    int64_t count, stride;
  };
  int64_t batch, length, width, block;
  Heads queryHeads, keyHeads;
  /// Elements of a row on the stack: whole vectors, zero beyond the width.
  int64_t padded;
  mlir::Type element;
  /// Heads of queries that share one of keys.
  int64_t group() const { return queryHeads.count / keyHeads.count; }
  int64_t blocks() const { return llvm::divideCeil(length, block); }

  /// Arrays on the stack: rows of a block, numbers of a tile, one for each
  /// query.
  mlir::Value newRows() { return code.scratch(block * padded); }
  mlir::Value newTile() { return code.scratch(block * block); }
  mlir::Value newNumbers() { return code.scratch(block); }

  /// The address of element 0 of position 0 of head `index` = b * count + h.
  mlir::Value headAddress(const Heads &heads, mlir::Value base,
                          mlir::Value index);

  // Between memory, `base` at its head, and rows on the stack: those of the
  // block of positions from `first` on. Positions beyond the last are read as
  // the last, times `factor`, and never written.
  void gather(const Heads &heads, mlir::Value base, mlir::Value first,
              mlir::Value rows, double factor = 1);
  void scatter(const Heads &heads, mlir::Value rows, mlir::Value base,
               mlir::Value first);
  void fillZero(mlir::Value rows);
  /// to[d][r] = rows[r][d].
  void transpose(mlir::Value rows, mlir::Value to);
  /// Elements, one for each row r and term t, at r * rowStep + t * termStep.
  struct Elements {
    mlir::Value base;
    int64_t rowStep, termStep;
  };
  /// Rows of `vectors` vectors, `step` apart.
  struct Rows {
    mlir::Value base;
    int64_t step, vectors;
  };
  /// Up to which row 16 columns go that begin at `column`, the same or more for
  /// later ones: all if null.
  using RowsOf = llvm::function_ref<mlir::Value(mlir::Value column)>;
  /// From and to which of the terms rows go that begin and end there.
  using TermsOf = llvm::function_ref<std::pair<mlir::Value, mlir::Value>(
      mlir::Value begin, mlir::Value end)>;
  /// What a product is added to: nothing, what was there, or that with each row
  /// times its factor.
  enum class Old { None, Sums, Scaled };
  /// Rows of a head, the block of positions from `first` on, that are asked for
  /// ahead of their use, if `when` holds.
  struct Soon {
    Heads heads;
    mlir::Value base, first, when = {};
    bool isWritten = false;
  };
  /// sums[r] = old + sum over terms t, in order, of elements[r, t] * rows[t],
  /// for the rows that its columns have and the terms that its rows have.
  /// Each of its tiles asks for a few rows of `soon`.
  void products(Rows sums, Elements elements, Rows rows, RowsOf rowsOf,
                TermsOf termsOf, Old old, mlir::Value factors,
                llvm::ArrayRef<Soon> soon);

  // Ranges in a tile whose queries begin `ahead` positions after its keys.
  /// scores[key][query] = dot(keys[key], queries[query]).
  void scores(mlir::Value keys, mlir::Value queriesT, mlir::Value to,
              mlir::Value ahead, llvm::ArrayRef<Soon> soon = {});
  /// sums[query] = old + sum of tile[key][query] * rows[key].
  void weighKeys(mlir::Value sums, mlir::Value tile, mlir::Value rows,
                 mlir::Value ahead, Old old, mlir::Value factors = {},
                 llvm::ArrayRef<Soon> soon = {});
  /// sums[key] += sum of tile[key][query] * rows[query].
  void weighQueries(mlir::Value sums, mlir::Value tile, mlir::Value rows,
                    mlir::Value ahead, llvm::ArrayRef<Soon> soon = {});

  /// Calls `body` for each vector of queries, the first of which is `lane`, and
  /// the number of keys that one of them may see.
  void
  forQueries(mlir::Value ahead,
             llvm::function_ref<void(mlir::Value lane, mlir::Value keys)> body);
  /// Which of the 16 queries from `lane` on see `key`, both in a tile.
  mlir::Value sees(mlir::Value lane, mlir::Value ahead, mlir::Value key);
  /// Which of those from position `query` on exist.
  mlir::Value exist(mlir::Value query);

  /// The elements of key 0 for 16 queries: ((bh) * length + query + lane) *
  /// length.
  mlir::Value elements(mlir::Value bh, mlir::Value query);
  /// Calls `body` for every key j of `count`, a multiple of 4, with its dropout
  /// factors for the 16 queries whose `elements` are given. `first` is the
  /// position of key 0, a multiple of 4; `carried` goes from key to key.
  using KeyBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      mlir::Value j, mlir::Value factors, mlir::ValueRange carried)>;
  llvm::SmallVector<mlir::Value>
  forKeys(const RandomStream &random, mlir::Value elements, mlir::Value first,
          mlir::Value count, mlir::ValueRange carried, KeyBody body);

  /// 16 numbers of an array on the stack.
  mlir::Value load(mlir::Value base, mlir::Value offset);
  /// Where a tile has query `lane` of `key`.
  mlir::Value at(mlir::Value key, mlir::Value lane) {
    return code.add(code.mul(key, block), lane);
  }

  const float scale;
  const Dropout dropout;

private:
  AttentionTile(Code &code, mlir::ShapedType query, int64_t heads,
                int64_t keyHeads, double scale, double rate, bool wide);
  mlir::Value rowOffset(const Heads &heads, mlir::Value position);
  void fetch(llvm::ArrayRef<Soon> soon, mlir::Value row);
  void forVectors(
      llvm::function_ref<void(mlir::Value column, mlir::Value mask)> body);

  Code &code;
  /// The registers that hold sums of a product: rows by vectors.
  int64_t tileRows, tileVectors;
};

/// Fails, at `op`, for heads that are too wide.
mlir::LogicalResult verifyHeadWidth(mlir::Operation *op, mlir::ShapedType query,
                                    int64_t heads);

} // namespace reprise::codegen

#endif // REPRISE_LIB_CODEGEN_CPU_ATTENTIONTILE_H
