//===- AttentionTile.h - Sixteen queries against a block of keys *- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lanes are queries. A tile is a block of keys by 16 queries: one vector for
// each key. Elements of keys and values are broadcast from where they are, so
// only the queries are transposed, and any width of a head will do without
// masks. The softmax over the keys then runs from vector to vector.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CPU_ATTENTIONTILE_H
#define REPRISE_LIB_CODEGEN_CPU_ATTENTIONTILE_H

#include "Kernel.h"
#include "reprise/Codegen/Common/Philox.h"

namespace reprise::codegen {

/// Keys of a block: with 16 lanes of f32, and a head of 64, keys, values and
/// scores of a block stay in the first-level cache.
constexpr int64_t kKeys = 48;
/// Keys (or columns) that are accumulated side by side: with the 16 lanes in
/// two registers each, 6 make 12 sums of the 16 registers of AVX2.
constexpr int64_t kSideBySide = 6;
/// Blocks are computed in whole groups of so many keys, for products go by 6
/// and random words by 4.
constexpr int64_t kKeyGroup = 12;
/// What a task may have on the stack, of the 8 MiB that a thread usually has.
constexpr int64_t kStackBytes = 1 << 20;
/// The widest head whose arrays fit there, in both directions. Nothing on the
/// stack grows with the sequence.
constexpr int64_t kMaxHeadWidth = 1152;

class AttentionTile {
public:
  /// The shapes and numbers of an rt.attention or rt.attention_backward.
  template <typename Op>
  AttentionTile(Code &code, Op op)
      : AttentionTile(
            code, mlir::cast<mlir::ShapedType>(op.getQuery().getType()),
            op.getHeads(), op.getKvHeads() ? *op.getKvHeads() : op.getHeads(),
            op.getScale().convertToDouble(), op.getRate().convertToDouble()) {}

  /// What lies beside each other in one position.
  struct Heads {
    int64_t count, stride;
  };
  int64_t batch, length, width;
  Heads queryHeads, keyHeads;
  /// Heads of queries that share one of keys.
  int64_t group() const { return queryHeads.count / keyHeads.count; }

  /// The offset of element 0 of position 0 of head `index` = b * count + h.
  mlir::Value headOffset(const Heads &heads, mlir::Value index);
  /// The offset of the first element of `position` from there; positions beyond
  /// the last mean the last.
  mlir::Value rowOffset(const Heads &heads, mlir::Value position);

  /// to[d][lane] = from[row first + lane][d], `from` at its head of queries.
  void transpose(mlir::Value from, mlir::Value first, mlir::Value to);
  /// tile[j][lane] = dot(keys[first + j], queries[lane]) for `count` keys, a
  /// multiple of 6; `keys` at its head of keys.
  void products(mlir::Value keys, mlir::Value first, mlir::Value count,
                mlir::Value queries, mlir::Value tile);
  /// For `columns` vectors side by side, one for each column d of a head,
  /// sums[d] += from[first + j][d] * tile[j] for `count` keys.
  llvm::SmallVector<mlir::Value> weigh(mlir::Value from, mlir::Value first,
                                       mlir::Value count, mlir::Value tile,
                                       mlir::Value column, int64_t columns,
                                       mlir::ValueRange sums);

  /// `count` rounded up to whole groups of keys.
  mlir::Value wholeGroups(mlir::Value count);
  /// Which of the 16 queries from `query` on see `key`: those that exist and do
  /// not come before it.
  mlir::Value sees(mlir::Value query, mlir::Value key);
  /// The elements of a tile of key 0: ((bh) * length + query + lane) * length.
  mlir::Value elements(mlir::Value bh, mlir::Value query);
  /// Calls `body` for every key j of `count` with its dropout factors for
  /// the 16 queries whose `elements` are given.
  void
  forKeys(const RandomStream &random, mlir::Value elements, mlir::Value first,
          mlir::Value count,
          llvm::function_ref<void(mlir::Value j, mlir::Value factors)> body);

  /// Element `row` of an array of vectors.
  mlir::Value loadRow(mlir::Value base, mlir::Value row);
  void storeRow(mlir::Value vector, mlir::Value base, mlir::Value row);

  const float scale;
  const Dropout dropout;

private:
  AttentionTile(Code &code, mlir::ShapedType query, int64_t heads,
                int64_t keyHeads, double scale, double rate);

  Code &code;
};

/// Fails, at `op`, for heads that are too wide.
mlir::LogicalResult verifyHeadWidth(mlir::Operation *op, mlir::ShapedType query,
                                    int64_t heads);

} // namespace reprise::codegen

#endif // REPRISE_LIB_CODEGEN_CPU_ATTENTIONTILE_H
