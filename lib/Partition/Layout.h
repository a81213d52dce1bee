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
#include "reprise/Dialect/NN/Axes.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Interfaces/Partitionable.h"

namespace reprise::partition {
/// How a value is spread along `tp`.
struct Spread {
  nn::Word word = nn::Word::Invariant;
  int64_t dim = 0; ///< of `S`, otherwise 0
  /// Of `S`: so many neighbours have the same block, each for a use of its own.
  /// That is `S` along `kv` and `R` along `kv_copies`.
  int64_t copies = 1;

  static Spread shard(int64_t dim, int64_t copies = 1) {
    return {nn::Word::Shard, dim, copies};
  }
  /// From `layout`, which may be null.
  ///
  /// \param copies  the ranks along `kv_copies`.
  static Spread get(nn::LayoutAttr layout, int64_t copies);
  nn::LayoutAttr getLayout(mlir::MLIRContext *context) const;

  bool isShard() const { return word == nn::Word::Shard; }
  /// Whether each rank has a use of its own for what others have, too.
  bool isShared() const {
    return word == nn::Word::Replicated || (isShard() && copies > 1);
  }
  bool operator==(const Spread &other) const {
    return word == other.word && dim == other.dim && copies == other.copies;
  }
  bool operator!=(const Spread &other) const { return !(*this == other); }
};

/// The dimensions of `value`.
inline int64_t getRank(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType()).getRank();
}

/// The argument that `value` is, or is a rounded copy of; or null.
mlir::BlockArgument getArgument(mlir::Value value);

/// Whether the dimension of `value` that ranks have parts of is the vocabulary:
/// of logits, and of tables that are read by rows or make logits. Ranks have
/// equal parts of it whatever its size; columns behind the last word count for
/// nothing.
bool isOfVocabulary(mlir::Value value);

/// Whether `op` is a norm that keeps columns apart by heads, but not that of
/// each head by itself. Of one head both are the same.
bool isOfWholeRows(mlir::Operation *op);

/// The operands of `op` that its first result is cut as, in columns or heads:
/// none for an op that mixes them. (A norm of whole rows mixes them, too.)
llvm::SmallVector<mlir::OpOperand *> getColumnOperands(mlir::Operation *op);

/// The results of `op` that are cut as these operands are.
mlir::ResultRange getColumnResults(mlir::Operation *op);

/// Whether experts are whole, on ranks along `tp`, too: neighbours of these
/// have other experts, or each has all of them, for tokens of its own.
inline bool hasWholeExperts(nn::MeshAttr mesh) {
  return mesh &&
         mesh.getStride(nn::kExpertAxis) % mesh.getSize(nn::kTensorAxis);
}

/// Whether `op` is a linear with a weight for each expert.
inline bool isOfExperts(mlir::Operation *op) {
  auto own = llvm::dyn_cast<Partitionable>(op);
  return own && !own.getExpertOperands().empty();
}

/// Whether `op`, where experts are whole, is of a rank's own tokens, or of
/// their rows: `S(1)` and `V`. From the choice of experts on these are
///
///   choose, weights   [B, T, *]  ->  [B, T, S]   S(1) to S(1)
///   sort, permute     [B, T, S]  ->  [R]         S(1) to V
///   GEMMs                         [R, *]      S(1) or V to V
///   combine           [R, C]     ->  [B, T, C]   V to S(1)
///   counts            [B, T, S], or offsets      S(1) or V to P
bool isOfOwnTokens(mlir::Operation *op,
                   const llvm::DenseMap<mlir::Value, Spread> &words);

/// What such an op makes.
Spread getOfOwnTokens(mlir::Operation *op);

/// The values of a function that are cut in columns or heads, each with the
/// dimension.
///
/// \param cutsExperts  ranks have columns of each expert.
llvm::DenseMap<mlir::Value, int64_t> findCutColumns(mlir::func::FuncOp forward,
                                                    bool cutsExperts);
} // namespace reprise::partition

#endif // REPRISE_LIB_PARTITION_LAYOUT_H
