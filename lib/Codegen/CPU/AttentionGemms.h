//===- AttentionGemms.h - The GEMMs of a tile -------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All GEMMs of attention are of one kind, elements times rows, on the stack:
//
//   sums[r][c] = old + sum over terms t, in order, of elements[r][t] *
//   rows[t][c]
//
// A unit of the processor makes them: registers of vectors, whose GEMMs are
// of f32 or of pairs of bf16, or tile registers, of pairs. A further unit is a
// class here and a line of `MatrixUnit::create`.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CPU_ATTENTIONGEMMS_H
#define REPRISE_LIB_CODEGEN_CPU_ATTENTIONGEMMS_H

#include "AttentionRows.h"
#include <memory>

namespace reprise::codegen::attention {

/// Words of elements, one for each row r and word t of terms, at r * rowStep +
/// t * termStep. `terms`: how many of these words all rows have, if that is
/// known.
struct Elements {
  mlir::Value base;
  int64_t rowStep, termStep, terms = 0;
};
/// Rows of `vectors` vectors, `step` apart. Of sums of pairs, nothing is there
/// yet if `isNew` holds.
struct Rows {
  mlir::Value base;
  int64_t step, vectors;
  mlir::Value isNew = {};
};
/// What a GEMM is added to: nothing, what was there, or that with each row
/// times its factor.
enum class Old { None, Sums, Scaled };

/// A GEMM. Of pairs, terms begin and end at multiples of 32.
struct Gemm {
  Rows sums;
  Elements elements;
  Rows rows;
  /// Up to which row 16 columns go that begin at `column`, the same or more for
  /// later ones: all if null.
  llvm::function_ref<mlir::Value(mlir::Value column)> rowsOf;
  /// From and to which of the terms rows go that begin and end there.
  llvm::function_ref<std::pair<mlir::Value, mlir::Value>(mlir::Value begin,
                                                         mlir::Value end)>
      termsOf;
  Old old;
  mlir::Value factors; ///< of `Old::Scaled`, one for each row
  /// Each of the GEMM's tiles asks for a few rows of these.
  llvm::ArrayRef<Soon> soon;
};

class MatrixUnit {
public:
  /// That of the processor a version of a kernel is for.
  static std::unique_ptr<MatrixUnit>
  create(Code &code, const AttentionShape &shape, const Version &version);
  virtual ~MatrixUnit() = default;

  // Ranges in a tile whose queries begin `ahead` positions after its keys: all
  // of them if that is null, where it is known that all queries see all keys.
  // `heads` tells how wide the rows are.
  /// scores[key][query] = dot(keys[key], queries[query]).
  void scores(const Heads &heads, mlir::Value keys, mlir::Value queriesT,
              mlir::Value to, mlir::Value ahead,
              llvm::ArrayRef<Soon> soon = {}) const;
  /// sums[query] = old + sum of tile[key][query] * rows[key]. Of pairs there is
  /// nothing old yet if `isNew` holds.
  void weighKeys(const Heads &heads, mlir::Value sums, mlir::Value tile,
                 mlir::Value rows, mlir::Value ahead, Old old,
                 mlir::Value factors = {}, llvm::ArrayRef<Soon> soon = {},
                 mlir::Value isNew = {}) const;
  /// sums[key] = old + sum of tile[key][query] * rows[query].
  void weighQueries(const Heads &heads, mlir::Value sums, mlir::Value tile,
                    mlir::Value rows, mlir::Value ahead, Old old,
                    llvm::ArrayRef<Soon> soon = {}) const;

protected:
  MatrixUnit(Code &code, const AttentionShape &shape, int64_t tileRows)
      : code(code), shape(shape), tileRows(tileRows) {}

  virtual void multiply(const Gemm &gemm) const = 0;
  /// A tile with keys in rows, as elements whose terms are the keys.
  virtual Elements termsOfKeys(mlir::Value tile, mlir::Value ahead) const = 0;
  /// Emits `body` for the rows of a tile of a GEMM from `row` on.
  virtual void
  forTileRows(mlir::Value row,
              llvm::function_ref<void(mlir::Value)> body) const = 0;

  /// Asks for as many rows as a tile has, from number `row` of each block on.
  void fetch(llvm::ArrayRef<Soon> soon, mlir::Value row) const;

  Code &code;
  const AttentionShape &shape;
  const int64_t tileRows; ///< of a tile of sums in registers
};

std::unique_ptr<MatrixUnit>
createVectorUnit(Code &code, const AttentionShape &shape, bool isWide);
std::unique_ptr<MatrixUnit> createTileUnit(Code &code,
                                           const AttentionShape &shape);

} // namespace reprise::codegen::attention

#endif // REPRISE_LIB_CODEGEN_CPU_ATTENTIONGEMMS_H
