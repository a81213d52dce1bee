//===- AttentionShape.h - What is known of an attention ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The numbers of an rt.attention or rt.attention_backward, and how a kernel of
// it is divided: all that is decided before any code is written.
//
// A block of threads owns some rows, 16 for each of its warps, and walks over
// tiles of others: a GEMM is of the own rows by those of a tile. Columns
// beyond the width of a head are zero, and so are rows beyond the length of the
// sequence.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CUDA_ATTENTIONSHAPE_H
#define REPRISE_LIB_CODEGEN_CUDA_ATTENTIONSHAPE_H

#include "Attention.h"
#include "Warp.h"
#include "reprise/Codegen/Common/Philox.h"

namespace reprise::cuda {

/// What an rt.attention or rt.attention_backward is about.
struct AttentionShape {
  template <typename Op>
  explicit AttentionShape(Op op)
      : AttentionShape(
            mlir::cast<mlir::ShapedType>(op.getQuery().getType()),
            mlir::cast<mlir::ShapedType>(op.getValue().getType()),
            op.getHeads(), op.getKvHeads() ? *op.getKvHeads() : op.getHeads(),
            op.getScale().convertToDouble(), op.getRate().convertToDouble()) {
    ranks = int64_t(op.getRanks().value_or(1));
  }

  int64_t ranks; ///< that have an equal part of the heads each
  int64_t batch, length, queryHeads, keyHeads;
  int64_t width;      ///< of a head of queries and of keys
  int64_t valueWidth; ///< and of values, and what is made of them
  mlir::Type element; ///< f32 or bf16
  double scale;
  codegen::Dropout dropout;

  bool isBF16() const { return element.isBF16(); }
  int64_t elementBytes() const { return isBF16() ? 2 : 4; }
  /// Heads of queries that share one of keys.
  int64_t group() const { return queryHeads / keyHeads; }
  /// Of a head of `columns`, in shared memory: whole blocks of columns, and of
  /// terms.
  int64_t padded(int64_t columns) const;
  /// That of the wider heads, which the rows of all tiles have room for.
  int64_t paddedWidth() const { return padded(std::max(width, valueWidth)); }

private:
  AttentionShape(mlir::ShapedType query, mlir::ShapedType value,
                 int64_t queryHeads, int64_t keyHeads, double scale,
                 double rate);
};

enum class Direction { Forward, Backward };

/// How the rows are divided: `ownRows` for a block, tiles of `tileRows`.
struct Division {
  Direction direction;
  int64_t warps, tileRows;
  bool byWarpGroup = false; ///< MMAs are those of WarpGroup.h
  int64_t ownRows() const { return warps * kWarpRows; }
  int64_t threads() const { return warps * kWarpSize; }
  /// Tiles of own rows: queries, or with them gradients, or keys and values.
  int64_t ownTiles() const { return direction == Direction::Forward ? 1 : 2; }
};

/// Bytes of a vector access, and what lies between rows in shared memory.
constexpr int64_t kVectorBytes = 16;

/// Where a block's shared memory has what, in bytes from its beginning:
///
///   own tiles | walked tiles, two for each of two steps | f32 weights of the
///   own rows | copies of rows of out, and of lse | two f32 for each row
///
/// f32 weights lie there on the way from one GEMM to the next; copies are
/// those for `RowNumbers::write`, of two steps or of the own queries.
struct SharedLayout {
  SharedLayout(const AttentionShape &shape, const Division &division);

  int64_t strideBytes; ///< from row to row of a tile
  int64_t walkedTiles, weights, weightStride, outTiles, lseCopies, rowNumbers;
  int64_t bytes;
};

/// Shared memory that every chip has for a block, and the widest head whose
/// tiles fit there.
constexpr int64_t kSharedBytes = 99 << 10, kMaxHeadWidth = 256;

/// The largest division whose tiles fit into shared memory and, if any does,
/// whose sums fit into registers.
Division divide(const AttentionShape &shape, Direction direction,
                bool byWarpGroup);
/// Whether four warps can make the GEMMs of that division together.
bool canDivideByWarpGroup(const AttentionShape &shape, Direction direction);
/// A launch of so many blocks with that.
LaunchShape launchOf(const AttentionShape &shape, const Division &division,
                     int64_t blocks);

/// Fails, at `op`, for what the kernels cannot do.
mlir::LogicalResult verifyShape(mlir::Operation *op,
                                const AttentionShape &shape);

} // namespace reprise::cuda

#endif // REPRISE_LIB_CODEGEN_CUDA_ATTENTIONSHAPE_H
