//===- AttentionTile.h - Tiles of queries and of keys -----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block of threads owns some rows, 16 for each of its warps, and walks over
// tiles of others: a product is of the own rows by those of a tile. Columns
// beyond the width of a head are zero, and so are rows beyond the length of the
// sequence.
//
// bf16 is multiplied by mma.sync or by the products of WarpGroup.h, with sums
// in f32, and f32 by fused multiply-adds; all leave their products where Warp.h
// says. Tiles lie in shared memory as these read them: for products of four
// warps in panels, otherwise row by row, with 16 bytes between rows that keep
// the threads of a warp from meeting in one bank.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CUDA_ATTENTIONTILE_H
#define REPRISE_LIB_CODEGEN_CUDA_ATTENTIONTILE_H

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
  bool byWarpGroup = false; ///< products are those of WarpGroup.h
  int64_t ownRows() const { return warps * kWarpRows; }
  int64_t threads() const { return warps * kWarpSize; }
  /// Tiles of own rows: queries, or with them gradients, or keys and values.
  int64_t ownTiles() const { return direction == Direction::Forward ? 1 : 2; }
};

/// Shared memory that every chip has for a block, and the widest head whose
/// tiles fit there.
constexpr int64_t kSharedBytes = 99 << 10, kMaxHeadWidth = 256;

/// The largest division whose tiles fit into shared memory and, if any does,
/// whose sums fit into registers.
Division divide(const AttentionShape &shape, Direction direction,
                bool byWarpGroup);
/// Whether four warps can make the products of that division together.
bool canDivideByWarpGroup(const AttentionShape &shape, Direction direction);
/// A launch of so many blocks with that.
LaunchShape launchOf(const AttentionShape &shape, const Division &division,
                     int64_t blocks);

/// Fails, at `op`, for what the kernels cannot do.
mlir::LogicalResult verifyShape(mlir::Operation *op,
                                const AttentionShape &shape);

/// The scores of a block: its own rows by the rows of a tile.
struct Scores {
  mlir::Value head;     ///< entry * heads + head of queries
  mlir::Value firstOwn; ///< positions
  mlir::Value firstOfTile;
  bool keysAreRows; ///< own rows are keys, and the tile has queries
};

class AttentionTile {
public:
  AttentionTile(Warp &code, const AttentionShape &shape,
                const Division &division, const AttentionPlaces &places,
                mlir::Value rng);

  using Values = Warp::Values;

  /// Rows of one head, in device memory.
  struct Matrix {
    mlir::Value base;
    int64_t stride; ///< elements from row to row
    int64_t width;
  };
  Matrix matrix(mlir::Value buffer, mlir::Value entry, mlir::Value head,
                int64_t heads, int64_t width);

  // Where tiles begin in shared memory.
  mlir::Value ownTile(int64_t index);
  /// Tile `index`, 0 or 1, of those that step `step` of a walk reads.
  mlir::Value walkedTile(mlir::Value step, int64_t index);
  /// Room for two f32 for each row of the own or of a tile: `logSums`.
  mlir::Value rowNumbers();

  /// Of the rows of out, and of lse, that `writeRowNumbers` needs of a step.
  mlir::Value outTile(mlir::Value step);
  mlir::Value lseCopy(mlir::Value step);

  /// Begins to copy `rows` rows from `first` on to shared memory.
  void copy(const Matrix &from, mlir::Value first, int64_t rows,
            mlir::Value to);
  /// `body` for steps 0 .. count - 1, with the state carried along, while the
  /// tiles of the next step are on their way. `begin` begins the copies of a
  /// step; `prepare` is done once the first of them are on their way.
  Values walk(mlir::Value count, mlir::ValueRange state,
              llvm::function_ref<void(mlir::Value step)> begin,
              llvm::function_ref<void()> prepare, Warp::Body body);

  // Products by warp group are under way when a function comes back; their
  // numbers come from `finish`. Others are there at once.
  bool isAsync() const { return division.byWarpGroup; }
  /// Waits for products but the last `later`, of which `values` are results.
  Values finish(mlir::ValueRange values, int64_t later = 0);
  /// What `products` needs of own rows again and again, to keep.
  Values rowsToKeep(mlir::Value own, int64_t width);
  /// own[r] . tile[c] for the rows of this warp and the rows of the tile, all
  /// of `width` columns.
  Values products(mlir::Value own, mlir::Value tile, int64_t width,
                  mlir::ValueRange kept = {});
  /// sums[r] += sum over c of weights[r][c] tile[c].
  Values addProducts(mlir::ValueRange sums, mlir::ValueRange weights,
                     mlir::Value tile);
  /// As many zeros as `addProducts` has sums of tiles with `width` columns.
  Values zeros(int64_t width);
  /// Writes sums[r] * factors[r] to the own rows from `first` on that exist;
  /// `factors` for the two rows of this thread.
  void store(const Matrix &to, mlir::Value first, mlir::ValueRange sums,
             mlir::ValueRange factors);

  /// Scores with a low number where a query does not see a key.
  Values masked(mlir::ValueRange scores, const Scores &where);
  /// The dropout factors of scores; none without dropout.
  Values factors(const Scores &where);

  /// What belongs to queries of a head beside queries and dout.
  struct RowSource {
    Matrix out;
    mlir::Value lse, head; ///< entry * heads + head of queries
  };
  /// Begins to copy what `writeRowNumbers` reads, where products are under way
  /// while it does: for `rows` queries from `first` on.
  void copyForRowNumbers(const RowSource &source, mlir::Value first,
                         int64_t rows, mlir::Value step);
  /// For these queries, to shared memory: -log2(e) * lse, and dot(dout, out)
  /// with the rows of dout in the tile `dout`.
  void writeRowNumbers(const RowSource &source, mlir::Value dout,
                       mlir::Value first, int64_t rows, mlir::Value step);
  /// Both again, by number of the row.
  mlir::Value logSum(mlir::Value row);
  mlir::Value delta(mlir::Value row, int64_t rows);

  /// Of the two rows of this thread, `which` 0 or 1, among the own ones.
  mlir::Value ownRow(int64_t which);

  const AttentionShape &shape;
  const Division division;

private:
  bool isBF16() const { return shape.element.isBF16(); }
  int64_t elementBytes() const { return isBF16() ? 2 : 4; }
  int64_t strideBytes() const;
  mlir::Value vectorOf(mlir::Value tile, int64_t rows, mlir::Value row,
                       mlir::Value vector);
  Values productsOfWarpGroup(mlir::Value own, mlir::Value tile, int64_t width);
  Values addProductsOfWarpGroup(mlir::ValueRange sums, mlir::ValueRange weights,
                                mlir::Value tile);
  bool copiesVectors(int64_t width) const;
  void copyElements(const Matrix &from, mlir::Value first, int64_t rows,
                    mlir::Value to);
  Values productsOfNumbers(mlir::Value own, mlir::Value tile, int64_t width);
  Values addProductsOfNumbers(mlir::ValueRange sums, mlir::ValueRange weights,
                              mlir::Value tile);
  mlir::Value sumOfCopies(mlir::Value a, mlir::Value b, int64_t rows,
                          mlir::Value row, mlir::Value part, int64_t parts);
  mlir::Value sumOfProducts(const Matrix &a, mlir::Value row, mlir::Value tile,
                            mlir::Value tileRow, mlir::Value part,
                            int64_t parts);
  std::array<mlir::Value, 4> words(mlir::Value block);
  mlir::Value word(mlir::Value element);
  Values wordsOfRows(mlir::Value row, mlir::Value column, mlir::Value head);
  Values wordsOfColumns(mlir::Value row, mlir::Value column, mlir::Value head);
  mlir::Value firstElement(mlir::Value head, mlir::Value query);

  Warp &code;
  codegen::RandomStream random;
  mlir::Value rank; ///< i32, which part of the heads; null: they are all here
};

} // namespace reprise::cuda

#endif // REPRISE_LIB_CODEGEN_CUDA_ATTENTIONTILE_H
