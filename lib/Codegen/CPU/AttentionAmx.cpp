//===- AttentionAmx.cpp - GEMMs on tile registers ---------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A GEMM of pairs goes by 32 rows and 32 columns: of the eight tile
// registers four hold sums, two 16 rows of elements each and two 16 columns of
// rows. Where terms are few and the same for all rows, four hold those of 32
// columns, and rows pass by 16.
//
//===----------------------------------------------------------------------===//

#include "AmxRegisters.h"
#include "AttentionGemms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;
using namespace reprise::codegen::attention;

/// Terms that the registers hold for all rows: two of their steps.
static constexpr int64_t kPanelWords = 2 * AmxRegisters::kWords;
static constexpr int64_t kRows = AmxRegisters::kRows;

namespace {
class TileUnit : public MatrixUnit {
public:
  TileUnit(Code &code, const AttentionShape &shape)
      : MatrixUnit(code, shape, kTerms), registers{code},
        word(code.getI32Type()) {}

private:
  void multiply(const Gemm &gemm) const override;
  /// Pairs of keys fill half of where the scores were: the other half gets them
  /// with a row for each query.
  Elements termsOfKeys(Value tile, Value ahead) const override {
    int64_t block = shape.block;
    Value transposed =
        code.address(tile, code.getF32Type(), code.i64(block * block / 2));
    transpose(code, tile, block / 2, block, transposed);
    return {transposed, block / 2, 1, ahead ? 0 : block / 2};
  }
  void forTileRows(Value row, function_ref<void(Value)> body) const override {
    code.loop(row, code.add(row, tileRows), 1, body);
  }

  void startSum(int64_t sum, const Gemm &gemm, Value at) const;
  void emitWhole(const Gemm &gemm) const;
  void emitPanel(const Gemm &gemm, Value c, int64_t vectors) const;
  void addTerms(const Gemm &gemm, Value c, Value r, int64_t vectors,
                Value t) const;
  void emitTile(const Gemm &gemm, Value c, Value r, int64_t vectors) const;
  Value emitColumns(const Gemm &gemm, Value c, int64_t vectors,
                    Value before) const;

  AmxRegisters registers;
  Type word;
};
} // namespace

/// What is added to: nothing, or what `at` has.
void TileUnit::startSum(int64_t sum, const Gemm &gemm, Value at) const {
  const Rows &sums = gemm.sums;
  auto clear = [&] { registers.call("tilezero", {sum}); };
  auto load = [&] { registers.call("tileloadd64", {sum}, at, 4 * sums.step); };
  if (gemm.old == Old::None)
    clear();
  else if (sums.isNew)
    code.when(sums.isNew, clear, load);
  else
    load();
}

/// Of a GEMM of at most `kPanelWords` words of terms, some vectors of
/// columns: those of their terms stay in registers 4 to 7 for all rows, 16 of
/// which have their sums in 0 and 1 and their elements in 2 and 3.
void TileUnit::emitPanel(const Gemm &gemm, Value c, int64_t vectors) const {
  const Rows &sums = gemm.sums, &rows = gemm.rows;
  const Elements &elements = gemm.elements;
  int64_t steps = elements.terms / AmxRegisters::kWords;
  auto forVectors = [&](function_ref<void(int64_t)> body) {
    for (int64_t v = 0; v < vectors; ++v)
      body(v);
  };
  auto column = [&](int64_t v) { return code.add(c, v * kLanes); };
  for (int64_t s = 0; s < steps; ++s)
    forVectors([&](int64_t v) {
      int64_t row = s * AmxRegisters::kWords * rows.step;
      registers.call("tileloadd64", {4 + 2 * s + v},
                     code.address(rows.base, word, code.add(column(v), row)),
                     4 * rows.step);
    });
  code.loop(code.i64(0), code.i64(shape.block), kRows, [&](Value r) {
    auto sumAt = [&](int64_t v) {
      return code.address(sums.base, word,
                          code.add(code.mul(r, sums.step), column(v)));
    };
    forVectors([&](int64_t v) { startSum(v, gemm, sumAt(v)); });
    for (int64_t s = 0; s < steps; ++s) {
      Value at =
          code.add(code.mul(r, elements.rowStep), s * AmxRegisters::kWords);
      registers.call("tileloadd64", {2 + s},
                     code.address(elements.base, word, at),
                     4 * elements.rowStep);
      forVectors([&](int64_t v) {
        registers.call("tdpbf16ps", {v, 2 + s, 4 + 2 * s + v});
      });
    }
    forVectors([&](int64_t v) {
      registers.call("tilestored64", {v}, sumAt(v), 4 * sums.step);
    });
  });
}

void TileUnit::emitWhole(const Gemm &gemm) const {
  int64_t whole = gemm.sums.vectors / 2 * kTerms;
  if (whole > 0)
    code.loop(code.i64(0), code.i64(whole), kTerms,
              [&](Value c) { emitPanel(gemm, c, 2); });
  if (gemm.sums.vectors % 2 > 0)
    emitPanel(gemm, code.i64(whole), 1);
}

/// Adds 16 words of terms from `t` on: registers 4 and 5 get their elements, 6
/// and 7 their rows.
void TileUnit::addTerms(const Gemm &gemm, Value c, Value r, int64_t vectors,
                        Value t) const {
  const Rows &rows = gemm.rows;
  const Elements &elements = gemm.elements;
  for (int64_t v = 0; v < vectors; ++v)
    registers.call(
        "tileloadd64", {6 + v},
        code.address(rows.base, word,
                     code.add(code.mul(t, rows.step), code.add(c, v * kLanes))),
        4 * rows.step);
  for (int64_t i = 0; i < 2; ++i)
    registers.call(
        "tileloadd64", {4 + i},
        code.address(
            elements.base, word,
            code.add(code.mul(code.add(r, i * kRows), elements.rowStep), t)),
        4 * elements.rowStep);
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t v = 0; v < vectors; ++v)
      registers.call("tdpbf16ps", {2 * i + v, 4 + i, 6 + v});
}

/// 32 rows and some vectors of columns, with their sums in registers 0 to 3.
void TileUnit::emitTile(const Gemm &gemm, Value c, Value r,
                        int64_t vectors) const {
  const Rows &sums = gemm.sums;
  auto forSums = [&](function_ref<void(int64_t, Value)> body) {
    for (int64_t i = 0; i < 2; ++i)
      for (int64_t v = 0; v < vectors; ++v)
        body(2 * i + v,
             code.address(sums.base, word,
                          code.add(code.mul(code.add(r, i * kRows), sums.step),
                                   code.add(c, v * kLanes))));
  };
  forSums([&](int64_t sum, Value at) { startSum(sum, gemm, at); });
  auto [begin, end] = gemm.termsOf(r, code.add(r, tileRows));
  auto half = [&](Value terms) {
    return arith::ShRUIOp::create(code, terms, code.i64(1));
  };
  code.loop(half(begin), half(end), AmxRegisters::kWords,
            [&](Value t) { addTerms(gemm, c, r, vectors, t); });
  forSums([&](int64_t sum, Value at) {
    registers.call("tilestored64", {sum}, at, 4 * sums.step);
  });
}

/// `before`, and what comes back: rows of `soon` that tiles have asked for so
/// far.
Value TileUnit::emitColumns(const Gemm &gemm, Value c, int64_t vectors,
                            Value before) const {
  Value end = gemm.rowsOf ? gemm.rowsOf(code.add(c, (vectors - 1) * kLanes))
                          : code.i64(shape.block);
  return code.loop(code.i64(0), end, tileRows, before,
                   [&](Value r, ValueRange at) {
                     if (!gemm.soon.empty())
                       fetch(gemm.soon, at[0]);
                     emitTile(gemm, c, r, vectors);
                     return SmallVector<Value>{code.add(at[0], tileRows)};
                   })[0];
}

void TileUnit::multiply(const Gemm &gemm) const {
  assert(gemm.old != Old::Scaled && "rows are scaled apart");
  if (gemm.elements.terms > 0 && gemm.elements.terms <= kPanelWords)
    return emitWhole(gemm);
  Value asked = code.i64(0);
  int64_t whole = gemm.sums.vectors / 2 * kTerms;
  if (whole > 0)
    asked = code.loop(code.i64(0), code.i64(whole), kTerms, asked,
                      [&](Value c, ValueRange before) {
                        return SmallVector<Value>{
                            emitColumns(gemm, c, 2, before[0])};
                      })[0];
  if (gemm.sums.vectors % 2 > 0)
    emitColumns(gemm, code.i64(whole), 1, asked);
}

std::unique_ptr<MatrixUnit>
attention::createTileUnit(Code &code, const AttentionShape &shape) {
  return std::make_unique<TileUnit>(code, shape);
}
