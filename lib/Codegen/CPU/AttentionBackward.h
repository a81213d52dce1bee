//===- AttentionBackward.h - Emits a task of backward -----------*- C++ -*-===//
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
// queries, which walks the keys that it sees: two products more in return for
// sums that stay on the stack, in the same order.
//
// Source: Dao, FlashAttention-2, arXiv:2307.08691, section 3.2.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CPU_ATTENTIONBACKWARD_H
#define REPRISE_LIB_CODEGEN_CPU_ATTENTIONBACKWARD_H

#include "AttentionTile.h"
#include "RTKernels.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace reprise::codegen {

/// Emits one task.
class BackwardEmitter {
public:
  BackwardEmitter(Code &code, rt::AttentionBackwardOp op, Kernel &kernel)
      : code(code), op(op), kernel(kernel), tile(code, op, kernel),
        together(tile.blocksTogether(mostTogether())),
        keyElements(tile.newElements(tile.keyHeads)),
        valueElements(tile.newElements(tile.valueHeads)),
        keyRows(tile.newRowsOf(tile.keyHeads, keyElements)), all(newBlocks()),
        one(all), dkeys(newSums(tile.keyHeads)),
        dvalues(newSums(tile.valueHeads)), probs(tile.newTile()),
        dscores(tile.newTile()),
        dscoresOfKeys(tile.hasPairs ? tile.newTile() : dscores),
        random(RandomStream::load(code, kernel, addressOf(kernel, op, 6),
                                  op.getStream())) {}

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

  int64_t tasks() const {
    return isWhole() ? keyHeads() : keyTasks() + queryTasks();
  }
  void emit(mlir::Value task);

private:
  /// Rows of keys whose gradients are summed on the stack: those of a sequence
  /// if they fit, otherwise those of a block.
  int64_t rowsOfSums() const {
    int64_t all = tile.blocks() * tile.block;
    int64_t columns = tile.keyHeads.padded + tile.valueHeads.padded;
    return 4 * all * columns <= kSumsBytes ? all : tile.block;
  }
  int64_t mostTogether() const {
    auto fit = [&](int64_t blocks) {
      return stackBytes(tile.keyHeads.width, tile.valueHeads.width, blocks) <=
             kStackBytes;
    };
    return fit(4) ? 4 : fit(2) ? 2 : 1;
  }
  bool hasAllSums() const { return rowsOfSums() >= tile.length; }
  mlir::Value newSums(const AttentionTile::Heads &heads) {
    return code.scratch(rowsOfSums() * heads.padded);
  }
  /// Those of the block from `first` on.
  mlir::Value sumsOf(const AttentionTile::Heads &heads, mlir::Value sums,
                     mlir::Value first) {
    return hasAllSums() ? code.address(sums, code.getF32Type(),
                                       code.mul(first, heads.padded))
                        : sums;
  }
  /// Whether the diagonal, and so code of its own, is the first to add to sums
  /// of keys.
  bool beginsOnDiagonal() const { return tile.hasPairs && tile.group() == 1; }
  bool isWhole() const { return hasAllSums() || tile.element.isF32(); }
  mlir::Value keyHeadOf(mlir::Value bh) {
    return mlir::arith::DivSIOp::create(code, bh, code.i64(tile.group()));
  }
  int64_t keyHeads() const { return tile.batch * tile.keyHeads.count; }
  int64_t keyTasks() const { return keyHeads() * tile.blocks(); }
  int64_t queryTasks() const {
    return tile.batch * tile.queryHeads.count * tile.blocks();
  }

  /// What is made of a block of queries, and their gradient.
  struct Block {
    mlir::Value queryElements, doutElements, queriesT, doutT, queryRows,
        doutRows, dqueries, deltas, lse;
  };
  Block newBlocks() {
    mlir::Value queries = tile.newElements(tile.queryHeads, together);
    mlir::Value dout = tile.newElements(tile.outHeads, together);
    return {queries,
            dout,
            tile.newElements(tile.queryHeads, together),
            tile.newElements(tile.outHeads, together),
            tile.newRowsOf(tile.queryHeads, queries),
            tile.newRowsOf(tile.outHeads, dout),
            tile.newSums(tile.queryHeads, together),
            tile.newNumbers(together),
            tile.newNumbers(together)};
  }
  /// Goes on with block `index` of those that go over keys together.
  void select(mlir::Value index);

  // A task.
  void emitHead(mlir::Value head);
  void emitBlocks(mlir::Value query, mlir::Value lastHead,
                  mlir::Value isFirstHead);
  void emitKeys(mlir::Value head, mlir::Value first);
  void emitQueries(mlir::Value head, mlir::Value first);

  /// The addresses of a head of keys, and of one of queries.
  struct KeyHead {
    mlir::Value key, value, dkey, dvalue;
  };
  struct QueryHead {
    mlir::Value bh, query, out, dout, dquery;
  };
  KeyHead keyHeadAt(mlir::Value head);
  QueryHead queryHeadAt(mlir::Value bh);
  /// Emits `body` for each head of queries that shares one of keys, in order.
  void forGroup(mlir::Value keyHead,
                llvm::function_ref<void(mlir::Value isFirst)> body);
  mlir::Value isEqual(mlir::Value a, mlir::Value b) {
    return mlir::arith::CmpIOp::create(code, mlir::arith::CmpIPredicate::eq, a,
                                       b);
  }
  void loadQueries(mlir::Value first);
  void prepareQueries(mlir::Value first);
  void makeQueryRows() {
    tile.makeRows(tile.queryHeads, one.queryElements, one.queryRows);
    tile.makeRows(tile.outHeads, one.doutElements, one.doutRows);
  }
  void loadKeys(mlir::Value first);

  using AllSoon = llvm::SmallVector<AttentionTile::Soon>;
  /// What is loaded next, and written, while the products of a tile are
  /// computed: those that make it, and those of it.
  struct Next {
    AllSoon scores, dprobs, dvalues, dkeys;
  };
  /// The block of keys behind that from `first` on.
  AllSoon nextKeys(mlir::Value first) {
    mlir::Value next = code.add(first, tile.block);
    return {{tile.keyHeads, keys.key, next},
            {tile.valueHeads, keys.value, next}};
  }
  Next nextOfHead(mlir::Value query, mlir::Value block, mlir::Value first,
                  mlir::Value lastHead);
  /// probs and dscores of the block of queries from `query` on and that of
  /// keys from `first` on, for the products that make the gradients.
  enum class Gradients { OfKeys, OfQueries, All };
  void emitTile(mlir::Value query, mlir::Value first, mlir::Value ahead,
                Gradients of, const Next &next,
                llvm::function_ref<void(mlir::Value row)> meanwhile = {});
  void addToKeys(mlir::Value first, mlir::Value ahead, const Next &next);
  /// The blocks of keys that the block of queries from `query` on sees, if
  /// products are of pairs: `next` comes with the last of them.
  void walkKeys(mlir::Value query, Gradients of, const Next &next);
  void addToQueries(mlir::Value ahead, mlir::Value isNew = {}) {
    tile.weighKeys(tile.keyHeads, one.dqueries, dscoresOfKeys, keyRows, ahead,
                   AttentionTile::Old::Sums, /*factors=*/{}, /*soon=*/{},
                   isNew);
  }
  void loadSumsOfKeys(mlir::Value first, mlir::Value isNew);
  void fillSumsOfKeys() {
    tile.fillZero(tile.keyHeads, dkeys);
    tile.fillZero(tile.valueHeads, dvalues);
  }
  void writeKeys(mlir::Value first);
  void writeQueries(mlir::Value first);

  Code &code;
  rt::AttentionBackwardOp op;
  Kernel &kernel;
  AttentionTile tile;
  const int64_t together; ///< Blocks of queries that go over keys together.
  // On the stack.
  mlir::Value keyElements, valueElements, keyRows;
  const Block all; ///< of them
  Block one;
  mlir::Value dkeys, dvalues, probs, dscores, dscoresOfKeys;
  RandomStream random;
  KeyHead keys;
  QueryHead queries;
};
static_assert(BackwardEmitter::stackBytes(256, 256) <= kStackBytes &&
              BackwardEmitter::stackBytes(kMaxHeadWidth, kMaxHeadWidth) <=
                  kStackBytes &&
              BackwardEmitter::stackBytes(kMaxHeadWidth + 1,
                                          kMaxHeadWidth + 1) > kStackBytes);

} // namespace reprise::codegen

#endif // REPRISE_LIB_CODEGEN_CPU_ATTENTIONBACKWARD_H
