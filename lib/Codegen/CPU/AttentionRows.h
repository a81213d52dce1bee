//===- AttentionRows.h - Rows of heads on the stack -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arrays on the stack, and what goes between them and memory: a block of
// positions of one head. Of heads with `words` words of a row and `padded`
// columns (AttentionShape.h), a block of them has
//
//   elements   block rows, `words` apart: left factors
//   rows       of f32 the elements; of pairs block / 2 rows, `padded` words
//              apart: those of two positions in turn, right factors
//   sums       block rows of f32, `padded` apart
//   numbers    an f32 for each position
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CPU_ATTENTIONROWS_H
#define REPRISE_LIB_CODEGEN_CPU_ATTENTIONROWS_H

#include "AttentionShape.h"

namespace reprise::codegen::attention {

//===----------------------------------------------------------------------===//
// Arrays on the stack
//===----------------------------------------------------------------------===//

mlir::Value newElements(Code &code, const AttentionShape &shape,
                        const Heads &heads, int64_t blocks = 1);
mlir::Value newRows(Code &code, const AttentionShape &shape,
                    const Heads &heads);
/// For the rows of `elements`, which may be these.
mlir::Value newRowsOf(Code &code, const AttentionShape &shape,
                      const Heads &heads, mlir::Value elements);
mlir::Value newSums(Code &code, const AttentionShape &shape, const Heads &heads,
                    int64_t blocks = 1);
mlir::Value newTile(Code &code, const AttentionShape &shape);
mlir::Value newNumbers(Code &code, const AttentionShape &shape,
                       int64_t blocks = 1);

// Of such an array of several blocks, that of number `index`.
mlir::Value elementsOf(Code &code, const AttentionShape &shape,
                       const Heads &heads, mlir::Value elements,
                       mlir::Value index);
mlir::Value sumsOf(Code &code, const AttentionShape &shape, const Heads &heads,
                   mlir::Value sums, mlir::Value index);
mlir::Value numbersOf(Code &code, const AttentionShape &shape,
                      mlir::Value numbers, mlir::Value index);

/// 16 numbers of an array on the stack.
mlir::Value loadLanes(Code &code, mlir::Value base, mlir::Value offset);
void fillZero(Code &code, const AttentionShape &shape, const Heads &heads,
              mlir::Value sums);
/// to[w][r] = from[r][w], of `rows` rows of `cols` words.
void transpose(Code &code, mlir::Value from, int64_t rows, int64_t cols,
               mlir::Value to);
/// Elements of a block as what a GEMM over words of them has for rows.
void transposeElements(Code &code, const AttentionShape &shape,
                       const Heads &heads, mlir::Value elements,
                       mlir::Value to);
/// And of one over positions: that already, unless terms are pairs.
void makeRows(Code &code, const AttentionShape &shape, const Heads &heads,
              mlir::Value elements, mlir::Value rows);
/// For the sums of the 16 positions from `lane` on: each times its factor.
void scaleRows(Code &code, const Heads &heads, mlir::Value sums,
               mlir::Value lane, mlir::Value factors);

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// The address of element 0 of position 0 of head `index` = b * count + h.
mlir::Value headAddress(Code &code, const AttentionShape &shape,
                        const Heads &heads, mlir::Value base,
                        mlir::Value index);
/// Of blocks of queries that begin with `query`, the number of the first with
/// queries that see the keys from `first` on.
mlir::Value firstToSee(Code &code, const AttentionShape &shape,
                       mlir::Value query, mlir::Value first);

// Between memory, `base` at its head, and rows on the stack: those of the block
// of positions from `first` on. Positions beyond the last are read as the last,
// and never written. Sums are f32, written times what `factor` has for each
// row.
void gather(Code &code, const AttentionShape &shape, const Heads &heads,
            mlir::Value base, mlir::Value first, mlir::Value elements);
/// Of pairs, rows `r` and `r + 1` alone, while something else is computed: as
/// elements and as what `makeRows` makes of them, unless one is null. Asks for
/// those of the block behind it.
void gatherTwo(Code &code, const AttentionShape &shape, const Heads &heads,
               mlir::Value base, mlir::Value first, mlir::Value r,
               mlir::Value elements, mlir::Value rows);
/// Queries are scaled where it costs least: here, unless they are of bf16.
void gatherQueries(Code &code, const AttentionShape &shape, mlir::Value base,
                   mlir::Value first, mlir::Value elements);
void gatherSums(Code &code, const AttentionShape &shape, const Heads &heads,
                mlir::Value base, mlir::Value first, mlir::Value sums,
                double factor = 1);
using Factor = llvm::function_ref<mlir::Value(mlir::Value row)>;
void scatter(Code &code, const AttentionShape &shape, const Heads &heads,
             mlir::Value sums, mlir::Value base, mlir::Value first,
             Factor factor = {});
/// The dot product of two rows in memory, those at `position` of two heads of
/// what comes out.
mlir::Value dot(Code &code, const AttentionShape &shape, mlir::Value base,
                mlir::Value other, mlir::Value position);

/// Rows of a head, the block of positions from `first` on, that are asked for
/// ahead of their use, if `when` holds.
struct Soon {
  Heads heads;
  mlir::Value base, first, when = {};
  bool isWritten = false;
};
/// Asks for row `row` of the block.
void fetchRow(Code &code, const AttentionShape &shape, const Soon &rows,
              mlir::Value row);

//===----------------------------------------------------------------------===//
// Pairs
//===----------------------------------------------------------------------===//

/// Where a row in memory has `position`, or the last one.
mlir::Value rowOffset(Code &code, const AttentionShape &shape,
                      const Heads &heads, mlir::Value position);
/// Row `r` of the block from `first` on, as it lies in memory.
void copyPairs(Code &code, const AttentionShape &shape, const Heads &heads,
               mlir::Value base, mlir::Value first, mlir::Value r,
               mlir::Value elements);
/// A row of sums, times a vector unless that is null, to memory in bf16.
void roundRow(Code &code, const Heads &heads, mlir::Value sums,
              mlir::Value from, mlir::Value times, mlir::Value base,
              mlir::Value to);
/// The bf16 in a vector of pairs.
constexpr int64_t kHalves = 2 * kLanes;
/// Two vectors rounded to bf16, the first in the lower half. Denormal numbers
/// become zeros, which GEMMs take them for.
mlir::Value roundBoth(Code &code, mlir::ValueRange numbers);

} // namespace reprise::codegen::attention

#endif // REPRISE_LIB_CODEGEN_CPU_ATTENTIONROWS_H
