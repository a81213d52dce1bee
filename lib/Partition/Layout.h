//===- Layout.h - What annotating and partitioning share --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_PARTITION_LAYOUT_H
#define REPRISE_LIB_PARTITION_LAYOUT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "reprise/Dialect/NN/NNOps.h"

namespace reprise::partition {
/// How a value is spread along `tp`.
struct Spread {
  nn::Word word = nn::Word::Invariant;
  int64_t dim = 0; ///< of `S`, otherwise 0

  static Spread shard(int64_t dim) { return {nn::Word::Shard, dim}; }
  /// From `layout`, which may be null.
  static Spread get(nn::LayoutAttr layout);

  bool isShard() const { return word == nn::Word::Shard; }
  bool operator==(const Spread &other) const {
    return word == other.word && dim == other.dim;
  }
  bool operator!=(const Spread &other) const { return !(*this == other); }
};

/// The dimensions of `value`.
inline int64_t getRank(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType()).getRank();
}

/// The argument that `value` is, or is a rounded copy of; or null.
mlir::BlockArgument getArgument(mlir::Value value);

/// The groups of columns that a norm is of; 1 for one of whole rows.
inline int64_t countHeads(nn::RMSNormOp norm) {
  return norm.getInput().getType().getShape().back() /
         norm.getGain().getType().getNumElements();
}

/// Whether the dimension of `value` that ranks have parts of is the vocabulary:
/// of logits, and of tables that are read by rows or make logits. Ranks have
/// equal parts of it whatever its size; columns behind the last word count for
/// nothing.
bool isOfVocabulary(mlir::Value value);

/// The operands of `op` that its first result is cut as, in columns or heads:
/// none for an op that mixes them. (A norm of whole rows mixes them, too.)
llvm::SmallVector<mlir::OpOperand *> getColumnOperands(mlir::Operation *op);

/// The values of a function that are cut in columns or heads, each with the
/// dimension.
llvm::DenseMap<mlir::Value, int64_t> findCutColumns(mlir::func::FuncOp forward);
} // namespace reprise::partition

#endif // REPRISE_LIB_PARTITION_LAYOUT_H
