//===- AttentionShape.h - What is known of an attention ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The numbers of an rt.attention or rt.attention_backward, and how a version of
// its kernel divides it: all that is decided before any code is written.
//
// A tile is a block of keys by as many queries, a row for each key: lanes are
// queries, so the softmax over the keys runs from vector to vector. What a tile
// works on is copied to the stack first, with rows of whole vectors: rows of a
// head are far apart in memory, where many fall on the same places of a cache.
// All GEMMs then are of one kind, elements times rows (AttentionGemms.h).
//
// On the stack everything is made of words of 32 bits: f32 or, for processors
// with an instruction that multiplies them, pairs of bf16. Terms that follow
// each other are a word of the elements, and a word of a row for each of its
// columns.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CPU_ATTENTIONSHAPE_H
#define REPRISE_LIB_CODEGEN_CPU_ATTENTIONSHAPE_H

#include "Kernel.h"
#include "reprise/Codegen/Common/Philox.h"
#include "llvm/Support/MathExtras.h"

namespace reprise::codegen::attention {

/// What a task may have on the stack, of the 8 MiB that a thread usually has;
/// and, beside that, for the sums of a sequence.
constexpr int64_t kStackBytes = 1 << 20, kSumsBytes = 2 << 20;
/// The widest head whose arrays fit there, in both directions, however long the
/// sequence.
constexpr int64_t kMaxHeadWidth = 1808;

/// Keys, and queries, of a tile of a long sequence. Results depend on it.
constexpr int64_t blockOf(int64_t width) { return width <= 256 ? 64 : 16; }

/// Terms, rows and columns of a step of a GEMM on tile registers; terms of
/// pairs have zeros up to a multiple of them.
constexpr int64_t kTerms = 32;

/// What lies beside each other in one position: `count` heads of `width`.
struct Heads {
  int64_t count, width;
  /// Numbers of a row of sums on the stack, and words of an operand's, whole
  /// vectors both. These are zero beyond the width.
  int64_t padded, words;

  Heads(int64_t count, int64_t width, bool hasBF16x2)
      : count(count), width(width), padded(llvm::alignTo(width, kLanes)),
        words(hasBF16x2 ? llvm::alignTo(width, kTerms) / 2 : padded) {}
  int64_t stride() const { return count * width; }
};

struct AttentionShape {
  template <typename Op>
  AttentionShape(Op op, const Version &version)
      : AttentionShape(
            mlir::cast<mlir::ShapedType>(op.getQuery().getType()),
            mlir::cast<mlir::ShapedType>(op.getOut().getType()).getDimSize(2),
            op.getHeads(), op.getKvHeads() ? *op.getKvHeads() : op.getHeads(),
            op.getScale().convertToDouble(), op.getRate().convertToDouble(),
            version.avx512BF16) {
    ranks = int64_t(op.getRanks().value_or(1));
  }

  const bool hasBF16x2; ///< GEMMs are of pairs of bf16.
  int64_t batch, length;
  /// Keys are as wide as queries, and values as what comes out.
  Heads queryHeads, keyHeads, valueHeads, outHeads;
  int64_t ranks = 1; ///< that have as many heads each
  int64_t block;
  mlir::Type element;
  float scale;
  Dropout dropout;

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
  /// What a score is yet to be multiplied by.
  float scoreScale() const { return hasBF16x2 ? scale : 1; }
  /// What sums of weights are yet to be multiplied by.
  float weightScale() const { return hasBF16x2 ? dropout.factor : 1; }

private:
  AttentionShape(mlir::ShapedType query, int64_t outWidth, int64_t heads,
                 int64_t keyHeads, double scale, double rate, bool hasBF16x2);
};

/// Of an op whose heads are a part of those of all ranks, the number of the
/// part: an i64, null if the heads are all here.
template <typename Op>
mlir::Value loadRank(Code &code, Op op, const Kernel &kernel) {
  if (!op.getRanks())
    return {};
  return code.load(code.getI64Type(), kernel.ids,
                   code.i64(int64_t(*op.getCoordinate())));
}

/// Fails, at `op`, for heads of `query`, or of `out`, that are too wide.
mlir::LogicalResult verifyHeadWidth(mlir::Operation *op, mlir::Value query,
                                    mlir::Value out, int64_t heads);

} // namespace reprise::codegen::attention

#endif // REPRISE_LIB_CODEGEN_CPU_ATTENTIONSHAPE_H
