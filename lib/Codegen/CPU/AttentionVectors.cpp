//===- AttentionVectors.cpp - GEMMs on vector registers ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A GEMM goes by tiles of 8 or 4 rows and 2 vectors or 1, whose sums are in
// registers while all terms pass: an element of each row, in all lanes, times
// the vectors of the term.
//
//===----------------------------------------------------------------------===//

#include "AttentionGemms.h"
#include "BF16x2.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;
using namespace reprise::codegen::attention;

namespace {
class VectorUnit : public MatrixUnit {
public:
  VectorUnit(Code &code, const AttentionShape &shape, bool isWide)
      : MatrixUnit(code, shape, isWide ? 8 : 4), tileVectors(isWide ? 2 : 1) {}

private:
  /// Of sums in registers, the first row and column, and how many vectors.
  struct Tile {
    Value column, row;
    int64_t vectors;
  };
  using Values = SmallVector<Value>;

  void multiply(const Gemm &gemm) const override;
  Elements termsOfKeys(Value tile, Value) const override {
    return {tile, 1, shape.block};
  }
  void forTileRows(Value row, function_ref<void(Value)> body) const override {
    for (int64_t k = 0; k < tileRows; ++k)
      body(code.add(row, k));
  }

  Value placeOf(const Gemm &gemm, const Tile &tile, int64_t row,
                int64_t vector) const;
  Values startSums(const Gemm &gemm, const Tile &tile, Old old) const;
  Values addTerm(const Gemm &gemm, const Tile &tile, Value t,
                 ValueRange sums) const;
  void emitTile(const Gemm &gemm, const Tile &tile) const;
  Value emitColumns(const Gemm &gemm, Value c, int64_t vectors,
                    Value before) const;

  const int64_t tileVectors; ///< of a tile of sums in registers
};
} // namespace

Value VectorUnit::placeOf(const Gemm &gemm, const Tile &tile, int64_t row,
                          int64_t vector) const {
  return code.add(code.mul(code.add(tile.row, row), gemm.sums.step),
                  code.add(tile.column, vector * kLanes));
}

/// The sums of a tile, row by row, before its terms.
VectorUnit::Values VectorUnit::startSums(const Gemm &gemm, const Tile &tile,
                                         Old old) const {
  Values sums;
  for (int64_t row = 0; row < tileRows; ++row)
    for (int64_t v = 0; v < tile.vectors; ++v) {
      Value sum = code.splatF32(0);
      if (old != Old::None)
        sum = loadLanes(code, gemm.sums.base, placeOf(gemm, tile, row, v));
      if (old == Old::Scaled)
        sum =
            code.mul(sum, code.splat(code.load(code.getF32Type(), gemm.factors,
                                               code.add(tile.row, row))));
      sums.push_back(sum);
    }
  return sums;
}

/// The sums behind word `t` of terms.
VectorUnit::Values VectorUnit::addTerm(const Gemm &gemm, const Tile &tile,
                                       Value t, ValueRange sums) const {
  Type word = shape.hasBF16x2 ? Type(code.getI32Type()) : code.getF32Type();
  const Elements &elements = gemm.elements;
  Values terms, next;
  for (int64_t v = 0; v < tile.vectors; ++v)
    terms.push_back(code.load(code.lanesOf(word), gemm.rows.base,
                              code.add(code.mul(t, gemm.rows.step),
                                       code.add(tile.column, v * kLanes))));
  for (int64_t row = 0; row < tileRows; ++row) {
    Value x = code.splat(
        code.load(word, elements.base,
                  code.add(code.mul(code.add(tile.row, row), elements.rowStep),
                           code.mul(t, elements.termStep))));
    for (int64_t v = 0; v < tile.vectors; ++v)
      next.push_back(emitMultiplyAdd(code, x, terms[v], sums[next.size()]));
  }
  return next;
}

void VectorUnit::emitTile(const Gemm &gemm, const Tile &tile) const {
  Value isNew = gemm.sums.isNew;
  Old old = gemm.old;
  Values sums =
      isNew && old != Old::None
          ? code.choose(
                isNew, [&] { return startSums(gemm, tile, Old::None); },
                [&] { return startSums(gemm, tile, old); })
          : startSums(gemm, tile, old);
  auto [begin, end] = gemm.termsOf(tile.row, code.add(tile.row, tileRows));
  auto words = [&](Value terms) -> Value {
    if (!shape.hasBF16x2)
      return terms;
    return arith::ShRUIOp::create(code, terms, code.i64(1));
  };
  sums = code.loop(
      words(begin), words(end), 1, sums,
      [&](Value t, ValueRange old) { return addTerm(gemm, tile, t, old); });
  for (int64_t row = 0; row < tileRows; ++row)
    for (int64_t v = 0; v < tile.vectors; ++v)
      code.store(sums[row * tile.vectors + v], gemm.sums.base,
                 placeOf(gemm, tile, row, v));
}

/// The tiles of some vectors of columns. `before`, and what comes back: rows of
/// `soon` that tiles have asked for so far.
Value VectorUnit::emitColumns(const Gemm &gemm, Value c, int64_t vectors,
                              Value before) const {
  Value first = code.i64(0);
  // Rows that only the later of the vectors have are computed for these.
  for (int64_t v = 0; v < vectors; ++v) {
    Value from = code.add(c, v * kLanes);
    Value end = gemm.rowsOf ? gemm.rowsOf(from) : code.i64(shape.block);
    before =
        code.loop(first, end, tileRows, before, [&](Value r, ValueRange at) {
          if (!gemm.soon.empty())
            fetch(gemm.soon, at[0]);
          emitTile(gemm, {from, r, vectors - v});
          return Values{code.add(at[0], tileRows)};
        })[0];
    if (!gemm.rowsOf)
      break;
    first = end;
  }
  return before;
}

void VectorUnit::multiply(const Gemm &gemm) const {
  Value asked = code.i64(0);
  int64_t rest = gemm.sums.vectors % tileVectors;
  int64_t whole = gemm.sums.vectors - rest;
  if (whole > 0)
    asked =
        code.loop(code.i64(0), code.i64(whole * kLanes), tileVectors * kLanes,
                  asked, [&](Value c, ValueRange before) {
                    return Values{emitColumns(gemm, c, tileVectors, before[0])};
                  })[0];
  if (rest > 0)
    emitColumns(gemm, code.i64(whole * kLanes), rest, asked);
}

std::unique_ptr<MatrixUnit>
attention::createVectorUnit(Code &code, const AttentionShape &shape,
                            bool isWide) {
  return std::make_unique<VectorUnit>(code, shape, isWide);
}
