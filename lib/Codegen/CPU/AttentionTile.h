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
// works on is copied to the stack first, with rows of whole vectors: rows of a
// head are far apart in memory, where many fall on the same places of a cache.
// All products then are of one kind, elements times rows.
//
// On the stack everything is made of words of 32 bits: f32 or, for processors
// with an instruction for their products, pairs of bf16. Terms that follow each
// other are a word of the elements, and a word of a row for each of its
// columns.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CPU_ATTENTIONTILE_H
#define REPRISE_LIB_CODEGEN_CPU_ATTENTIONTILE_H

#include "Kernel.h"
#include "reprise/Codegen/Common/Philox.h"
#include "llvm/Support/MathExtras.h"

namespace reprise::codegen {

/// What a task may have on the stack, of the 8 MiB that a thread usually has;
/// and, beside that, for the sums of a sequence.
constexpr int64_t kStackBytes = 1 << 20, kSumsBytes = 2 << 20;
/// The widest head whose arrays fit there, in both directions, however long the
/// sequence.
constexpr int64_t kMaxHeadWidth = 1808;

/// Keys, and queries, of a tile of a long sequence. Results depend on it.
constexpr int64_t blockOf(int64_t width) { return width <= 256 ? 64 : 16; }

/// Terms, rows and columns of a step of a product on tile registers; terms of
/// pairs have zeros up to a multiple of them.
constexpr int64_t kTerms = 32;

class AttentionTile {
public:
  /// The shapes and numbers of an rt.attention or rt.attention_backward.
  template <typename Op>
  AttentionTile(Code &code, Op op, const Kernel &kernel)
      : AttentionTile(
            code, mlir::cast<mlir::ShapedType>(op.getQuery().getType()),
            mlir::cast<mlir::ShapedType>(op.getOut().getType()).getDimSize(2),
            op.getHeads(), op.getKvHeads() ? *op.getKvHeads() : op.getHeads(),
            op.getScale().convertToDouble(), op.getRate().convertToDouble(),
            kernel) {
    if (op.getRanks()) {
      ranks = *op.getRanks();
      rank = code.load(code.getI64Type(), kernel.ids,
                       code.i64(int64_t(*op.getCoordinate())));
    }
  }

  /// What lies beside each other in one position: `count` heads of `width`.
  struct Heads {
    int64_t count, width;
    /// Numbers of a row of sums on the stack, and words of an operand's, whole
    /// vectors both. These are zero beyond the width.
    int64_t padded, words;

    Heads(int64_t count, int64_t width, bool hasPairs)
        : count(count), width(width), padded(llvm::alignTo(width, kLanes)),
          words(hasPairs ? llvm::alignTo(width, kTerms) / 2 : padded) {}
    int64_t stride() const { return count * width; }
  };
  const bool hasPairs; ///< Products are of pairs of bf16.
  const bool hasTiles; ///< And on tile registers.
  int64_t batch, length;
  /// Keys are as wide as queries, and values as what comes out.
  Heads queryHeads, keyHeads, valueHeads, outHeads;
  int64_t block;
  mlir::Type element;
  /// Heads of queries that share one of keys.
  int64_t group() const { return queryHeads.count / keyHeads.count; }
  int64_t blocks() const { return llvm::divideCeil(length, block); }
  /// Blocks of queries that go over keys together: what it costs to copy a
  /// block of these is shared then. `most` as the stack permits. Tasks are made
  /// of them, so a head has several. (Of bf16 there are versions with pairs, of
  /// the same tasks and of single blocks.)
  int64_t blocksTogether(int64_t most) const {
    constexpr int64_t kLeastOfHead = 4;
    for (int64_t count : {4, 2})
      if (count <= most && element.isF32() && blocks() % count == 0 &&
          blocks() >= kLeastOfHead * count)
        return count;
    return 1;
  }

  /// Arrays on the stack: rows of a block, as elements of a product and as its
  /// rows, sums of rows, a tile, a number for each query.
  mlir::Value newElements(const Heads &heads, int64_t blocks = 1) {
    return code.scratch(blocks * block * heads.words);
  }
  mlir::Value newRows(const Heads &heads) {
    return code.scratch(block / 2 * heads.padded);
  }
  mlir::Value newRowsOf(const Heads &heads, mlir::Value elements) {
    return hasPairs ? newRows(heads) : elements;
  }
  mlir::Value newSums(const Heads &heads, int64_t blocks = 1) {
    return code.scratch(blocks * block * heads.padded);
  }
  mlir::Value newTile() { return code.scratch(block * block); }
  mlir::Value newNumbers(int64_t blocks = 1) {
    return code.scratch(blocks * block);
  }
  /// Of those that begin with `query`, the number of the first block with
  /// queries that see the keys from `first` on.
  mlir::Value firstToSee(mlir::Value query, mlir::Value first);
  /// Of such an array of several blocks, that of number `index`.
  mlir::Value elementsOf(const Heads &heads, mlir::Value elements,
                         mlir::Value index) {
    return partOf(elements, index, block * heads.words);
  }
  mlir::Value sumsOf(const Heads &heads, mlir::Value sums, mlir::Value index) {
    return partOf(sums, index, block * heads.padded);
  }
  mlir::Value numbersOf(mlir::Value numbers, mlir::Value index) {
    return partOf(numbers, index, block);
  }

  /// The address of element 0 of position 0 of head `index` = b * count + h.
  mlir::Value headAddress(const Heads &heads, mlir::Value base,
                          mlir::Value index);

  // Between memory, `base` at its head, and rows on the stack: those of the
  // block of positions from `first` on. Positions beyond the last are read as
  // the last, and never written. Sums are f32, written times what `factor` has
  // for each row.
  void gather(const Heads &heads, mlir::Value base, mlir::Value first,
              mlir::Value elements);
  /// Of pairs, rows `r` and `r + 1` alone, while something else is computed: as
  /// elements and as what `makeRows` makes of them, unless one is null. Asks
  /// for those of the block behind it.
  void gatherTwo(const Heads &heads, mlir::Value base, mlir::Value first,
                 mlir::Value r, mlir::Value elements, mlir::Value rows);
  /// Queries are scaled where it costs least: here, unless they are of bf16.
  void gatherQueries(mlir::Value base, mlir::Value first, mlir::Value elements);
  void gatherSums(const Heads &heads, mlir::Value base, mlir::Value first,
                  mlir::Value sums, double factor = 1);
  using Factor = llvm::function_ref<mlir::Value(mlir::Value row)>;
  void scatter(const Heads &heads, mlir::Value sums, mlir::Value base,
               mlir::Value first, Factor factor = {});
  void fillZero(const Heads &heads, mlir::Value sums);
  /// The product of two rows in memory, those at `position` of two heads of
  /// what comes out.
  mlir::Value dot(mlir::Value base, mlir::Value other, mlir::Value position);
  /// to[w][r] = from[r][w], of `rows` rows of `cols` words.
  void transpose(mlir::Value from, int64_t rows, int64_t cols, mlir::Value to);
  /// Elements of a block as what a product over words of them has for rows.
  void transposeElements(const Heads &heads, mlir::Value elements,
                         mlir::Value to) {
    transpose(elements, block, heads.words, to);
  }
  /// And of one over positions: that already, unless terms are pairs.
  void makeRows(const Heads &heads, mlir::Value elements, mlir::Value rows);

  /// Words of elements, one for each row r and word t of terms, at r * rowStep
  /// + t * termStep. `terms`: how many of these words all rows have, if that is
  /// known.
  struct Elements {
    mlir::Value base;
    int64_t rowStep, termStep, terms = 0;
  };
  /// Rows of `vectors` vectors, `step` apart. Of sums of pairs, nothing is
  /// there yet if `isNew` holds.
  struct Rows {
    mlir::Value base;
    int64_t step, vectors;
    mlir::Value isNew = {};
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
  /// Each of its tiles asks for a few rows of `soon`. Of pairs, terms begin and
  /// end at multiples of 32.
  void products(Rows sums, Elements elements, Rows rows, RowsOf rowsOf,
                TermsOf termsOf, Old old, mlir::Value factors,
                llvm::ArrayRef<Soon> soon);

  // Ranges in a tile whose queries begin `ahead` positions after its keys: all
  // of them if that is null, where it is known that all queries see all keys.
  // `heads` tells how wide the rows are.
  /// scores[key][query] = dot(keys[key], queries[query]).
  void scores(const Heads &heads, mlir::Value keys, mlir::Value queriesT,
              mlir::Value to, mlir::Value ahead,
              llvm::ArrayRef<Soon> soon = {});
  /// sums[query] = old + sum of tile[key][query] * rows[key]. Of pairs there is
  /// nothing old yet if `isNew` holds.
  void weighKeys(const Heads &heads, mlir::Value sums, mlir::Value tile,
                 mlir::Value rows, mlir::Value ahead, Old old,
                 mlir::Value factors = {}, llvm::ArrayRef<Soon> soon = {},
                 mlir::Value isNew = {});
  /// sums[key] = old + sum of tile[key][query] * rows[query].
  void weighQueries(const Heads &heads, mlir::Value sums, mlir::Value tile,
                    mlir::Value rows, mlir::Value ahead, Old old,
                    llvm::ArrayRef<Soon> soon = {});

  /// Calls `body` for each vector of queries, the first of which is `lane`, and
  /// the number of keys that one of them may see.
  void
  forQueries(mlir::Value ahead,
             llvm::function_ref<void(mlir::Value lane, mlir::Value keys)> body);
  /// And `body` for every second key from there up to where products go that
  /// have these queries: what they read must be zero.
  void forUnseen(mlir::Value keys,
                 llvm::function_ref<void(mlir::Value key)> body);
  /// What a score is yet to be multiplied by.
  float scoreScale() const { return hasPairs ? scale : 1; }
  // A score becomes a power of e or, of pairs, one of 2, which takes less: its
  // exponent has the factor for that, with the scale.
  mlir::Value power(mlir::Value exponent);
  mlir::Value exponentOf(mlir::Value score);
  /// That less another.
  mlir::Value exponentLess(mlir::Value score, mlir::Value exponent);
  /// Between exponents and natural logarithms.
  mlir::Value fromLogarithm(mlir::Value number);
  mlir::Value toLogarithm(mlir::Value exponent);
  /// What `p` weighs, with its dropout factor: of a pair, whether it is kept,
  /// for the factor would be rounded with it, all of them the same way.
  mlir::Value weight(mlir::Value p, mlir::Value factor);
  /// What sums of weights are yet to be multiplied by.
  float weightScale() const { return hasPairs ? dropout.factor : 1; }
  /// `number` where the 16 queries from `lane` on see `key`, both in a tile.
  mlir::Value whereSeen(mlir::Value lane, mlir::Value ahead, mlir::Value key,
                        mlir::Value number, mlir::Value otherwise);
  /// Which of those from position `query` on exist.
  mlir::Value exist(mlir::Value query);

  /// The elements of key 0 for 16 queries: ((bh) * length + query + lane) *
  /// length, with `bh` among the heads of all ranks.
  mlir::Value elements(mlir::Value bh, mlir::Value query);
  /// Calls `body` for every second key j of `count`, a multiple of 4, with the
  /// dropout factors of that and the next for the 16 queries whose `elements`
  /// are given. `first` is the position of key 0, a multiple of 4; `carried`
  /// goes from call to call. Every eighth key goes to `meanwhile`, too, if
  /// `count` is a multiple of 8.
  using KeysBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      mlir::Value j, llvm::ArrayRef<mlir::Value> factors,
      mlir::ValueRange carried)>;
  llvm::SmallVector<mlir::Value>
  forKeys(const RandomStream &random, mlir::Value elements, mlir::Value first,
          mlir::Value count, mlir::ValueRange carried, KeysBody body,
          llvm::function_ref<void(mlir::Value j)> meanwhile = {});

  // Of two keys from `key` on and 16 queries from `lane` on, f32 numbers become
  // elements of what `weighKeys` or `weighQueries` takes. They may lie where a
  // tile of scores was, of which nothing is read any more before them.
  void storeKeys(mlir::Value tile, mlir::Value key, mlir::Value lane,
                 mlir::ValueRange numbers);
  void storeQueries(mlir::Value tile, mlir::Value key, mlir::Value lane,
                    mlir::ValueRange numbers);

  /// For the sums of the 16 queries from `lane` on: each times its factor.
  void scaleRows(const Heads &heads, mlir::Value sums, mlir::Value lane,
                 mlir::Value factors);

  /// Of a tile all of whose queries see all keys, the number of the four keys
  /// from `j` on for the queries from `lane` on, among all of these: as many as
  /// a block of 64 has rows. (Of eights it is the first of two.)
  mlir::Value rowOf(mlir::Value lane, mlir::Value j);

  /// 16 numbers of an array on the stack.
  mlir::Value load(mlir::Value base, mlir::Value offset);
  /// Where a tile has query `lane` of `key`.
  mlir::Value at(mlir::Value key, mlir::Value lane) {
    return code.add(code.mul(key, block), lane);
  }

  const float scale;
  const Dropout dropout;

private:
  /// The block of heads that these are, among so many; null of one.
  mlir::Value rank;
  int64_t ranks = 1;
  AttentionTile(Code &code, mlir::ShapedType query, int64_t outWidth,
                int64_t heads, int64_t keyHeads, double scale, double rate,
                const Kernel &kernel);
  mlir::Value partOf(mlir::Value array, mlir::Value index, int64_t size) {
    return code.address(array, code.getF32Type(), code.mul(index, size));
  }
  mlir::Value rowOffset(const Heads &heads, mlir::Value position);
  void fetch(llvm::ArrayRef<Soon> soon, mlir::Value row);
  void fetchRow(const Soon &rows, mlir::Value row);
  mlir::Value sees(mlir::Value lane, mlir::Value ahead, mlir::Value key);
  float exponentScale() const { return scale * llvm::numbers::log2ef; }
  void productsOnTiles(Rows sums, Elements elements, Rows rows, RowsOf rowsOf,
                       TermsOf termsOf, Old old, llvm::ArrayRef<Soon> soon);
  void interleaveRows(const Heads &heads, mlir::Value even, mlir::Value odd,
                      int64_t column, mlir::Value pair, mlir::Value rows);
  void startSum(int64_t sum, Rows sums, mlir::Value at, Old old);
  void wholeProducts(Rows sums, Elements elements, Rows rows, Old old);
  void copyPairs(const Heads &heads, mlir::Value base, mlir::Value first,
                 mlir::Value r, mlir::Value elements);
  /// Of the 32 columns from `column` on, those that a row in memory has: null
  /// if all.
  mlir::Value halvesMask(const Heads &heads, int64_t column);
  /// A row of sums, times a vector unless that is null, to memory in bf16.
  void roundRow(const Heads &heads, mlir::Value sums, mlir::Value from,
                mlir::Value times, mlir::Value base, mlir::Value to);
  /// 16 numbers of a row in memory, in f32.
  mlir::Value loadRow(mlir::Value base, mlir::Value offset, mlir::Value mask);
  void forVectors(
      const Heads &heads,
      llvm::function_ref<void(mlir::Value column, mlir::Value mask)> body);

  Code &code;
  /// The registers that hold sums of a product: rows by vectors.
  int64_t tileRows, tileVectors;
};

/// Fails, at `op`, for heads of `query`, or of `out`, that are too wide.
mlir::LogicalResult verifyHeadWidth(mlir::Operation *op, mlir::Value query,
                                    mlir::Value out, int64_t heads);

} // namespace reprise::codegen

#endif // REPRISE_LIB_CODEGEN_CPU_ATTENTIONTILE_H
