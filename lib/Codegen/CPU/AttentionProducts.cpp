//===- AttentionProducts.cpp - Elements times rows --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionTile.h"
#include "Pairs.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

static constexpr int64_t kLine = 64;

void AttentionTile::fetchRow(const Soon &rows, Value row) {
  int64_t bytes = rows.heads.width * (element.getIntOrFloatBitWidth() / 8);
  Value offset = rowOffset(rows.heads, code.add(rows.first, row));
  for (int64_t at = 0; at < bytes; at += kLine)
    code.prefetch(rows.base, element, offset, at, rows.isWritten);
}

/// Asks for as many rows as a tile has, from number `row` of each block on.
void AttentionTile::fetch(ArrayRef<Soon> soon, Value row) {
  auto emit = [&](const Soon &rows) {
    if (hasTiles)
      return code.loop(row, code.add(row, tileRows), 1,
                       [&](Value each) { fetchRow(rows, each); });
    for (int64_t k = 0; k < tileRows; ++k)
      fetchRow(rows, code.add(row, k));
  };
  Value isLeft = arith::CmpIOp::create(code, arith::CmpIPredicate::slt, row,
                                       code.i64(block));
  code.when(isLeft, [&] {
    for (const Soon &rows : soon)
      if (rows.when)
        code.when(rows.when, [&] { emit(rows); });
      else
        emit(rows);
  });
}

void AttentionTile::products(Rows sums, Elements elements, Rows rows,
                             RowsOf rowsOf, TermsOf termsOf, Old old,
                             Value factors, ArrayRef<Soon> soon) {
  if (hasTiles)
    return productsOnTiles(sums, elements, rows, rowsOf, termsOf, old, soon);
  Type f32 = code.getF32Type();
  Type word = hasPairs ? Type(code.getI32Type()) : f32;
  auto tile = [&](Value c, Value r, int64_t vectors) {
    auto place = [&](int64_t row, int64_t vector) {
      return code.add(code.mul(code.add(r, row), sums.step),
                      code.add(c, vector * kLanes));
    };
    auto start = [&](Old old) {
      SmallVector<Value> state;
      for (int64_t row = 0; row < tileRows; ++row)
        for (int64_t v = 0; v < vectors; ++v) {
          Value sum = code.splatF32(0);
          if (old != Old::None)
            sum = load(sums.base, place(row, v));
          if (old == Old::Scaled)
            sum = code.mul(
                sum, code.splat(code.load(f32, factors, code.add(r, row))));
          state.push_back(sum);
        }
      return state;
    };
    SmallVector<Value> state =
        sums.isNew && old != Old::None
            ? code.choose(
                  sums.isNew, [&] { return start(Old::None); },
                  [&] { return start(old); })
            : start(old);
    auto [begin, end] = termsOf(r, code.add(r, tileRows));
    auto words = [&](Value terms) -> Value {
      if (!hasPairs)
        return terms;
      return arith::ShRUIOp::create(code, terms, code.i64(1));
    };
    state = code.loop(
        words(begin), words(end), 1, state, [&](Value t, ValueRange was) {
          SmallVector<Value> terms, next;
          for (int64_t v = 0; v < vectors; ++v)
            terms.push_back(code.load(
                code.lanesOf(word), rows.base,
                code.add(code.mul(t, rows.step), code.add(c, v * kLanes))));
          for (int64_t row = 0; row < tileRows; ++row) {
            Value x = code.splat(
                code.load(word, elements.base,
                          code.add(code.mul(code.add(r, row), elements.rowStep),
                                   code.mul(t, elements.termStep))));
            for (int64_t v = 0; v < vectors; ++v)
              next.push_back(
                  emitMultiplyAdd(code, x, terms[v], was[next.size()]));
          }
          return next;
        });
    for (int64_t row = 0; row < tileRows; ++row)
      for (int64_t v = 0; v < vectors; ++v)
        code.store(state[row * vectors + v], sums.base, place(row, v));
  };
  // Rows of `soon` that tiles have asked for so far.
  Value asked = code.i64(0);
  auto columns = [&](Value c, int64_t vectors, Value before) {
    Value first = code.i64(0);
    // Rows that only the later of the vectors have are computed for these.
    for (int64_t v = 0; v < vectors; ++v) {
      Value from = code.add(c, v * kLanes);
      Value end = rowsOf ? rowsOf(from) : code.i64(block);
      before =
          code.loop(first, end, tileRows, before, [&](Value r, ValueRange at) {
            if (!soon.empty())
              fetch(soon, at[0]);
            tile(from, r, vectors - v);
            return SmallVector<Value>{code.add(at[0], tileRows)};
          })[0];
      if (!rowsOf)
        break;
      first = end;
    }
    return before;
  };
  int64_t rest = sums.vectors % tileVectors, whole = sums.vectors - rest;
  if (whole > 0)
    asked = code.loop(
        code.i64(0), code.i64(whole * kLanes), tileVectors * kLanes, asked,
        [&](Value c, ValueRange before) {
          return SmallVector<Value>{columns(c, tileVectors, before[0])};
        })[0];
  if (rest > 0)
    columns(code.i64(whole * kLanes), rest, asked);
}

void AttentionTile::scores(const Heads &heads, Value keys, Value queriesT,
                           Value to, Value ahead, ArrayRef<Soon> soon) {
  Value zero = code.i64(0);
  // Keys up to the last of 16 queries.
  auto seenFrom = [&](Value column) {
    return code.min(code.add(code.add(column, ahead), kLanes), code.i64(block));
  };
  products(
      {to, block, block / kLanes},
      {keys, heads.words, 1, ahead ? 0 : heads.words},
      {queriesT, block, block / kLanes}, ahead ? RowsOf(seenFrom) : RowsOf(),
      [&](Value, Value) {
        return std::pair(zero,
                         code.i64(hasPairs ? 2 * heads.words : heads.width));
      },
      Old::None,
      /*factors=*/{}, soon);
}

void AttentionTile::weighKeys(const Heads &heads, Value sums, Value tile,
                              Value rows, Value ahead, Old old, Value factors,
                              ArrayRef<Soon> soon, Value isNew) {
  int64_t padded = heads.padded;
  Value zero = code.i64(0);
  Elements elements = {tile, 1, block};
  if (hasTiles) {
    // Pairs of keys fill half of where the scores were.
    Value transposed =
        code.address(tile, code.getF32Type(), code.i64(block * block / 2));
    transpose(tile, block / 2, block, transposed);
    elements = {transposed, block / 2, 1, ahead ? 0 : block / 2};
  }
  products(
      {sums, padded, padded / kLanes, isNew}, elements,
      {rows, padded, padded / kLanes},
      /*rowsOf=*/{},
      // Keys up to the last of the queries.
      [&](Value, Value end) {
        if (!ahead)
          return std::pair(zero, code.i64(block));
        return std::pair(zero, code.min(code.add(end, ahead), code.i64(block)));
      },
      old, factors, soon);
}

void AttentionTile::weighQueries(const Heads &heads, Value sums, Value tile,
                                 Value rows, Value ahead, Old old,
                                 ArrayRef<Soon> soon) {
  int64_t padded = heads.padded;
  Value zero = code.i64(0), all = code.i64(block);
  products(
      {sums, padded, padded / kLanes}, {tile, block, 1, ahead ? 0 : block / 2},
      {rows, padded, padded / kLanes},
      /*rowsOf=*/{},
      // Queries from the first of the keys on.
      [&](Value begin, Value) -> std::pair<Value, Value> {
        if (!ahead)
          return {zero, all};
        return {arith::MaxSIOp::create(code, code.sub(begin, ahead), zero),
                all};
      },
      old, /*factors=*/{}, soon);
}
