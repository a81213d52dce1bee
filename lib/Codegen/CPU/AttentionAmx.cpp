//===- AttentionAmx.cpp - Products of attention on tile registers ---------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A product of pairs goes by 32 rows and 32 columns: of the eight tile
// registers four hold sums, two 16 rows of elements each and two 16 columns of
// rows. Where terms are few and the same for all rows, four hold those of 32
// columns, and rows pass by 16.
//
//===----------------------------------------------------------------------===//

#include "AmxRegisters.h"
#include "AttentionTile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

/// Terms that the registers hold for all rows: two of their steps.
static constexpr int64_t kPanelWords = 2 * AmxRegisters::kWords;

/// What is added to: nothing, or what `at` has.
void AttentionTile::startSum(int64_t sum, Rows sums, Value at, Old old) {
  AmxRegisters registers = {code};
  auto clear = [&] { registers.call("tilezero", {sum}); };
  auto load = [&] { registers.call("tileloadd64", {sum}, at, 4 * sums.step); };
  if (old == Old::None)
    clear();
  else if (sums.isNew)
    code.when(sums.isNew, clear, load);
  else
    load();
}

/// A product of at most `kPanelWords` words of terms: those of 32 columns stay
/// in registers 4 to 7 for all rows, 16 of which have their sums in 0 and 1 and
/// their elements in 2 and 3.
void AttentionTile::wholeProducts(Rows sums, Elements elements, Rows rows,
                                  Old old) {
  AmxRegisters registers = {code};
  Type word = code.getI32Type();
  int64_t steps = elements.terms / AmxRegisters::kWords;
  auto panel = [&](Value c, int64_t vectors) {
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
    code.loop(code.i64(0), code.i64(block), AmxRegisters::kRows, [&](Value r) {
      auto sumAt = [&](int64_t v) {
        return code.address(sums.base, word,
                            code.add(code.mul(r, sums.step), column(v)));
      };
      forVectors([&](int64_t v) { startSum(v, sums, sumAt(v), old); });
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
  };
  int64_t whole = sums.vectors / 2 * kTerms;
  if (whole > 0)
    code.loop(code.i64(0), code.i64(whole), kTerms,
              [&](Value c) { panel(c, 2); });
  if (sums.vectors % 2 > 0)
    panel(code.i64(whole), 1);
}

void AttentionTile::productsOnTiles(Rows sums, Elements elements, Rows rows,
                                    RowsOf rowsOf, TermsOf termsOf, Old old,
                                    ArrayRef<Soon> soon) {
  assert(old != Old::Scaled && "rows are scaled apart");
  if (elements.terms > 0 && elements.terms <= kPanelWords)
    return wholeProducts(sums, elements, rows, old);
  AmxRegisters registers = {code};
  Type word = code.getI32Type();
  constexpr int64_t kRows = AmxRegisters::kRows;
  // Registers 0 to 3 are sums, 4 and 5 elements, 6 and 7 rows.
  auto tile = [&](Value c, Value r, int64_t vectors) {
    auto forSums = [&](function_ref<void(int64_t, Value)> body) {
      for (int64_t i = 0; i < 2; ++i)
        for (int64_t v = 0; v < vectors; ++v)
          body(2 * i + v, code.address(sums.base, word,
                                       code.add(code.mul(code.add(r, i * kRows),
                                                         sums.step),
                                                code.add(c, v * kLanes))));
    };
    forSums([&](int64_t sum, Value at) { startSum(sum, sums, at, old); });
    auto [begin, end] = termsOf(r, code.add(r, tileRows));
    auto half = [&](Value terms) {
      return arith::ShRUIOp::create(code, terms, code.i64(1));
    };
    code.loop(half(begin), half(end), AmxRegisters::kWords, [&](Value t) {
      for (int64_t v = 0; v < vectors; ++v)
        registers.call("tileloadd64", {6 + v},
                       code.address(rows.base, word,
                                    code.add(code.mul(t, rows.step),
                                             code.add(c, v * kLanes))),
                       4 * rows.step);
      for (int64_t i = 0; i < 2; ++i)
        registers.call("tileloadd64", {4 + i},
                       code.address(elements.base, word,
                                    code.add(code.mul(code.add(r, i * kRows),
                                                      elements.rowStep),
                                             t)),
                       4 * elements.rowStep);
      for (int64_t i = 0; i < 2; ++i)
        for (int64_t v = 0; v < vectors; ++v)
          registers.call("tdpbf16ps", {2 * i + v, 4 + i, 6 + v});
    });
    forSums([&](int64_t sum, Value at) {
      registers.call("tilestored64", {sum}, at, 4 * sums.step);
    });
  };
  // Rows of `soon` that tiles have asked for so far.
  Value asked = code.i64(0);
  auto columns = [&](Value c, int64_t vectors, Value before) {
    Value end =
        rowsOf ? rowsOf(code.add(c, (vectors - 1) * kLanes)) : code.i64(block);
    return code.loop(code.i64(0), end, tileRows, before,
                     [&](Value r, ValueRange at) {
                       if (!soon.empty())
                         fetch(soon, at[0]);
                       tile(c, r, vectors);
                       return SmallVector<Value>{code.add(at[0], tileRows)};
                     })[0];
  };
  int64_t whole = sums.vectors / 2 * kTerms;
  if (whole > 0)
    asked = code.loop(code.i64(0), code.i64(whole), kTerms, asked,
                      [&](Value c, ValueRange before) {
                        return SmallVector<Value>{columns(c, 2, before[0])};
                      })[0];
  if (sums.vectors % 2 > 0)
    columns(code.i64(whole), 1, asked);
}
