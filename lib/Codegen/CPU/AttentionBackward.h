//===- AttentionBackward.h - The parts of backward --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A task is a head of keys. Head by head of those that share it, it walks the
// blocks of queries and for each the blocks of keys that they see. The gradient
// of the queries is summed on the stack, and so are those of keys and values of
// a short sequence. Those of a long one are summed where they belong if they
// are f32. One task, so nothing is atomic and the order is always the same.
//
// In bf16, sums must not be rounded on the way. So of a long sequence a task is
// either a block of keys, which walks the queries that see it, or a block of
// queries, which walks the keys that it sees: two GEMMs more in return for
// sums that stay on the stack, in the same order.
//
// The walks are in AttentionBackward.cpp; here is what they walk over: heads in
// memory, blocks of them on the stack, and tiles of two blocks.
//
// Source: Dao, FlashAttention-2, arXiv:2307.08691, section 3.2.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CPU_ATTENTIONBACKWARD_H
#define REPRISE_LIB_CODEGEN_CPU_ATTENTIONBACKWARD_H

#include "AttentionGemms.h"
#include "AttentionScores.h"
#include "RTKernels.h"

namespace reprise::codegen::attention {

/// How the work is divided: all that is decided of it before any is emitted.
struct BackwardPlan {
  explicit BackwardPlan(const AttentionShape &shape);

  /// The bytes of the arrays on the stack for heads of keys and values of these
  /// widths, with the sums of a block of keys and so many blocks of queries.
  /// (Of pairs they take less for all but narrow heads, which are far from the
  /// limit.)
  static constexpr int64_t stackBytes(int64_t keyWidth, int64_t valueWidth,
                                      int64_t blocks = 1) {
    int64_t ofKeys = (keyWidth + kLanes - 1) / kLanes * kLanes;
    int64_t ofValues = (valueWidth + kLanes - 1) / kLanes * kLanes;
    int64_t block = blockOf(keyWidth > valueWidth ? keyWidth : valueWidth);
    int64_t columns = (2 + 3 * blocks) * ofKeys + (2 + 2 * blocks) * ofValues;
    return 4 * (columns * block + 2 * block * block + 2 * blocks * block);
  }

  int64_t together; ///< Blocks of queries that go over keys together.
  /// Rows of keys whose gradients are summed on the stack: those of a sequence
  /// if they fit, otherwise those of a block.
  int64_t rowsOfSums;
  bool hasAllSums;
  /// Whether the diagonal, and so code of its own, is the first to add to sums
  /// of keys.
  bool beginsOnDiagonal;
  /// Whether tasks are heads of keys; if not, blocks of keys come first.
  bool isWhole;
  int64_t keyTasks, queryTasks; ///< blocks
  int64_t tasks;
};
static_assert(BackwardPlan::stackBytes(256, 256) <= kStackBytes &&
              BackwardPlan::stackBytes(kMaxHeadWidth, kMaxHeadWidth) <=
                  kStackBytes &&
              BackwardPlan::stackBytes(kMaxHeadWidth + 1, kMaxHeadWidth + 1) >
                  kStackBytes);

//===----------------------------------------------------------------------===//
// Heads in memory
//===----------------------------------------------------------------------===//

/// The addresses of a head of keys, and of one of queries.
struct KeyHead {
  mlir::Value key, value, dkey, dvalue;
};
struct QueryHead {
  mlir::Value bh, query, out, dout, dquery;
};
class BackwardBuffers {
public:
  BackwardBuffers(Code &code, const AttentionShape &shape,
                  rt::AttentionBackwardOp op, Kernel &kernel)
      : code(code), shape(shape), op(op), kernel(kernel) {}

  KeyHead keysOf(mlir::Value head) const;
  QueryHead queriesOf(mlir::Value bh) const;
  /// Logarithms of the sums of exponentials, by head and position.
  mlir::Value lse() const { return addressOf(kernel, op, 4); }

private:
  Code &code;
  const AttentionShape &shape;
  rt::AttentionBackwardOp op;
  Kernel &kernel;
};

//===----------------------------------------------------------------------===//
// Blocks on the stack
//===----------------------------------------------------------------------===//

/// What is made of blocks of queries, and their gradient.
struct QueryRows {
  mlir::Value queryElements, doutElements, queriesT, doutT, queryRows, doutRows,
      dqueries, deltas, lse;

  static QueryRows create(Code &code, const AttentionShape &shape,
                          int64_t blocks);
  /// Those of block `index`.
  QueryRows at(Code &code, const AttentionShape &shape,
               mlir::Value index) const;

  /// What the block of queries from `first` on needs, whatever the keys. In f32
  /// gradients of keys are made with scaled queries, so that of a score is
  /// never scaled itself.
  void load(Code &code, const AttentionShape &shape, const QueryHead &head,
            mlir::Value lse, mlir::Value first) const;
  /// What is made of elements of queries.
  void prepare(Code &code, const AttentionShape &shape, const QueryHead &head,
               mlir::Value lse, mlir::Value first) const;
  /// For GEMMs over queries.
  void makeRows(Code &code, const AttentionShape &shape) const;
  /// Brings the gradient to memory.
  void write(Code &code, const AttentionShape &shape, const QueryHead &head,
             mlir::Value first) const;
};

/// What is made of a block of keys.
struct KeyRows {
  mlir::Value keyElements, valueElements, keyRows;

  static KeyRows create(Code &code, const AttentionShape &shape);
  void load(Code &code, const AttentionShape &shape, const KeyHead &head,
            mlir::Value first) const;
  /// Of pairs, rows `row` and `row + 1` of the block from `first` on.
  void loadTwo(Code &code, const AttentionShape &shape, const KeyHead &head,
               mlir::Value first, mlir::Value row) const;
};

/// The gradients of keys and values: of a block, or of a sequence.
struct KeySums {
  mlir::Value dkeys, dvalues;
  bool hasAll;

  static KeySums create(Code &code, const AttentionShape &shape,
                        const BackwardPlan &plan);
  // Those of the block from `first` on.
  mlir::Value keysFrom(Code &code, const AttentionShape &shape,
                       mlir::Value first) const;
  mlir::Value valuesFrom(Code &code, const AttentionShape &shape,
                         mlir::Value first) const;
  void fill(Code &code, const AttentionShape &shape, mlir::Value first) const;
  /// Sums that lie where they belong, of which there may be nothing yet.
  void load(Code &code, const AttentionShape &shape, const KeyHead &head,
            mlir::Value first, mlir::Value isNew) const;
  void write(Code &code, const AttentionShape &shape, const KeyHead &head,
             mlir::Value first) const;
};

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// What is loaded next, and written, while the GEMMs of a tile are computed:
/// those that make it, and those of it.
struct Next {
  using AllSoon = llvm::SmallVector<Soon>;
  AllSoon scores, dprobs, dvalues, dkeys;
};

enum class Gradients { OfKeys, OfQueries, All };

/// The block from `query` on of the queries of head `bh` meets that of keys
/// from `first` on.
struct TilePlace {
  mlir::Value bh, query, first, ahead;
};

/// Makes the gradients of scores of a tile, and adds to the gradients of keys
/// and queries what follows from them.
class GradientTile {
public:
  GradientTile(Code &code, const AttentionShape &shape,
               const BackwardPlan &plan, const MatrixUnit &unit)
      : code(code), shape(shape), plan(plan), unit(unit),
        probs(newTile(code, shape)), dscores(newTile(code, shape)),
        dscoresOfKeys(shape.hasBF16x2 ? newTile(code, shape) : dscores) {}

  /// probs[j] = p * m and dscores[j] = p * (m * dot(dout, value) - delta), zero
  /// where the query does not see the key, for the GEMMs that make the
  /// gradients `of` these. Where all queries see all keys, `meanwhile` gets
  /// every second row of a block.
  void emit(const ScoreStream &stream, const TilePlace &at,
            const QueryRows &queries, const KeyRows &keys, Gradients of,
            const Next &next,
            llvm::function_ref<void(mlir::Value row)> meanwhile = {}) const;
  void addToKeys(const KeySums &sums, const QueryRows &queries,
                 const TilePlace &at, const Next &next) const;
  void addToQueries(const QueryRows &queries, const KeyRows &keys,
                    mlir::Value ahead, mlir::Value isNew = {}) const;

private:
  void store(mlir::Value key, mlir::Value lane, Gradients of,
             mlir::ValueRange weights, mlir::ValueRange gradients) const;

  Code &code;
  const AttentionShape &shape;
  const BackwardPlan &plan;
  const MatrixUnit &unit;
  // On the stack.
  const mlir::Value probs, dscores, dscoresOfKeys;
};

} // namespace reprise::codegen::attention

#endif // REPRISE_LIB_CODEGEN_CPU_ATTENTIONBACKWARD_H
