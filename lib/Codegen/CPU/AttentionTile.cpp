//===- AttentionTile.cpp - A block of queries and one of keys ---*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionTile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

AttentionTile::AttentionTile(Code &code, ShapedType query, int64_t heads,
                             int64_t keyHeads, double scale, double rate,
                             bool wide)
    : batch(query.getDimSize(0)), length(query.getDimSize(1)),
      width(query.getDimSize(2) / heads),
      block(std::min(blockOf(width), int64_t(llvm::alignTo(length, kLanes)))),
      queryHeads{heads, heads * width}, keyHeads{keyHeads, keyHeads * width},
      padded(llvm::alignTo(width, kLanes)), element(query.getElementType()),
      scale(float(scale)), dropout(rate), code(code), tileRows(wide ? 8 : 4),
      tileVectors(wide ? 2 : 1) {}

LogicalResult codegen::verifyHeadWidth(Operation *op, ShapedType query,
                                       int64_t heads) {
  int64_t width = query.getDimSize(2) / heads;
  if (width <= kMaxHeadWidth)
    return success();
  return op->emitOpError("needs a head width of at most ")
         << kMaxHeadWidth << ", for a task to do with " << kStackBytes
         << " bytes of stack, but got " << width;
}

//===----------------------------------------------------------------------===//
// Where things are
//===----------------------------------------------------------------------===//

Value AttentionTile::headAddress(const Heads &heads, Value base, Value index) {
  Value count = code.i64(heads.count);
  Value b = arith::DivSIOp::create(code, index, count);
  Value h = arith::RemSIOp::create(code, index, count);
  return code.address(
      base, element,
      code.add(code.mul(b, length * heads.stride), code.mul(h, width)));
}

Value AttentionTile::rowOffset(const Heads &heads, Value position) {
  return code.mul(code.min(position, code.i64(length - 1)), heads.stride);
}

Value AttentionTile::load(Value base, Value offset) {
  return code.load(code.lanesOf(code.getF32Type()), base, offset);
}

Value AttentionTile::sees(Value lane, Value ahead, Value key) {
  // In 32 bits, half the work of 64: a tile has fewer.
  Type i32 = code.getI32Type();
  Value first = code.splat(code.cast(code.add(lane, ahead), i32));
  return arith::CmpIOp::create(code, arith::CmpIPredicate::sle,
                               code.splat(code.cast(key, i32)),
                               code.add(first, code.iota(i32)));
}

Value AttentionTile::exist(Value query) {
  Type i64 = code.getI64Type();
  Value left = code.sub(code.i64(length), query);
  return arith::CmpIOp::create(code, arith::CmpIPredicate::slt, code.iota(i64),
                               code.splat(left));
}

Value AttentionTile::elements(Value bh, Value query) {
  Value first = code.add(code.mul(bh, length), query);
  Value rows = code.add(code.splat(first), code.iota(code.getI64Type()));
  return code.mul(rows, code.splat(code.i64(length)));
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// Calls `body` for each vector of a row in memory.
void AttentionTile::forVectors(function_ref<void(Value, Value)> body) {
  int64_t whole = width / kLanes * kLanes;
  if (whole > 0)
    code.loop(code.i64(0), code.i64(whole), kLanes,
              [&](Value column) { body(column, {}); });
  if (whole < width)
    body(code.i64(whole), code.maskOf(width - whole));
}

void AttentionTile::gather(const Heads &heads, Value base, Value first,
                           Value rows, double factor) {
  VectorType lanes = code.lanesOf(code.getF32Type());
  code.loop(code.i64(0), code.i64(block), 1, [&](Value r) {
    Value from = rowOffset(heads, code.add(first, r));
    Value to = code.mul(r, padded);
    forVectors([&](Value column, Value mask) {
      Value x =
          code.load(code.lanesOf(element), base, code.add(from, column), mask);
      if (!element.isF32())
        x = arith::ExtFOp::create(code, lanes, x);
      if (factor != 1)
        x = code.mul(x, code.splatF32(factor));
      code.store(x, rows, code.add(to, column));
    });
  });
}

void AttentionTile::scatter(const Heads &heads, Value rows, Value base,
                            Value first) {
  Value count = code.min(code.sub(code.i64(length), first), code.i64(block));
  code.loop(code.i64(0), count, 1, [&](Value r) {
    Value to = code.mul(code.add(first, r), heads.stride);
    Value from = code.mul(r, padded);
    forVectors([&](Value column, Value mask) {
      Value x = load(rows, code.add(from, column));
      if (!element.isF32())
        x = arith::TruncFOp::create(code, code.lanesOf(element), x);
      code.store(x, base, code.add(to, column), mask);
    });
  });
}

void AttentionTile::fillZero(Value rows) {
  code.loop(code.i64(0), code.i64(block * padded), kLanes,
            [&](Value i) { code.store(code.splatF32(0), rows, i); });
}

void AttentionTile::transpose(Value rows, Value to) {
  code.loop(code.i64(0), code.i64(padded), kLanes, [&](Value d) {
    code.loop(code.i64(0), code.i64(block), kLanes, [&](Value r) {
      SmallVector<Value> x;
      for (int64_t k = 0; k < kLanes; ++k)
        x.push_back(load(rows, code.add(code.mul(code.add(r, k), padded), d)));
      // Each round swaps one bit of the numbers of rows with that of lanes.
      for (int64_t bit = 1; bit < kLanes; bit *= 2)
        for (int64_t k = 0; k < kLanes; ++k) {
          if (k & bit)
            continue;
          SmallVector<int64_t> low, high;
          for (int64_t lane = 0; lane < kLanes; ++lane) {
            low.push_back(lane & bit ? kLanes + lane - bit : lane);
            high.push_back(lane & bit ? kLanes + lane : lane + bit);
          }
          Value a = x[k], b = x[k + bit];
          x[k] = vector::ShuffleOp::create(code, a, b, low);
          x[k + bit] = vector::ShuffleOp::create(code, a, b, high);
        }
      for (int64_t k = 0; k < kLanes; ++k)
        code.store(x[k], to, at(code.add(d, k), r));
    });
  });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static constexpr int64_t kLine = 64;

/// Asks for as many rows as a tile has, from number `row` of each block on.
void AttentionTile::fetch(ArrayRef<Soon> soon, Value row) {
  int64_t bytes = width * (element.getIntOrFloatBitWidth() / 8);
  auto emit = [&](const Soon &rows) {
    for (int64_t k = 0; k < tileRows; ++k) {
      Value offset =
          rowOffset(rows.heads, code.add(rows.first, code.add(row, k)));
      for (int64_t at = 0; at < bytes; at += kLine)
        code.prefetch(rows.base, element, offset, at, rows.isWritten);
    }
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
  Type f32 = code.getF32Type();
  auto tile = [&](Value c, Value r, int64_t vectors) {
    auto place = [&](int64_t row, int64_t vector) {
      return code.add(code.mul(code.add(r, row), sums.step),
                      code.add(c, vector * kLanes));
    };
    SmallVector<Value> state;
    for (int64_t row = 0; row < tileRows; ++row)
      for (int64_t v = 0; v < vectors; ++v) {
        Value sum = code.splatF32(0);
        if (old != Old::None)
          sum = load(sums.base, place(row, v));
        if (old == Old::Scaled)
          sum = code.mul(sum,
                         code.splat(code.load(f32, factors, code.add(r, row))));
        state.push_back(sum);
      }
    auto [begin, end] = termsOf(r, code.add(r, tileRows));
    state = code.loop(begin, end, 1, state, [&](Value t, ValueRange was) {
      SmallVector<Value> terms, next;
      for (int64_t v = 0; v < vectors; ++v)
        terms.push_back(load(rows.base, code.add(code.mul(t, rows.step),
                                                 code.add(c, v * kLanes))));
      for (int64_t row = 0; row < tileRows; ++row) {
        Value x = code.splat(
            code.load(f32, elements.base,
                      code.add(code.mul(code.add(r, row), elements.rowStep),
                               code.mul(t, elements.termStep))));
        for (int64_t v = 0; v < vectors; ++v)
          next.push_back(code.fma(x, terms[v], was[next.size()]));
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

void AttentionTile::scores(Value keys, Value queriesT, Value to, Value ahead,
                           ArrayRef<Soon> soon) {
  Value zero = code.i64(0);
  products(
      {to, block, block / kLanes}, {keys, padded, 1},
      {queriesT, block, block / kLanes},
      // Keys up to the last of 16 queries.
      [&](Value column) {
        return code.min(code.add(code.add(column, ahead), kLanes),
                        code.i64(block));
      },
      [&](Value, Value) { return std::pair(zero, code.i64(width)); }, Old::None,
      /*factors=*/{}, soon);
}

void AttentionTile::weighKeys(Value sums, Value tile, Value rows, Value ahead,
                              Old old, Value factors, ArrayRef<Soon> soon) {
  Value zero = code.i64(0);
  products(
      {sums, padded, padded / kLanes}, {tile, 1, block},
      {rows, padded, padded / kLanes},
      /*rowsOf=*/{},
      // Keys up to the last of the queries.
      [&](Value, Value end) {
        return std::pair(zero, code.min(code.add(end, ahead), code.i64(block)));
      },
      old, factors, soon);
}

void AttentionTile::weighQueries(Value sums, Value tile, Value rows,
                                 Value ahead, ArrayRef<Soon> soon) {
  Value zero = code.i64(0), all = code.i64(block);
  products(
      {sums, padded, padded / kLanes}, {tile, block, 1},
      {rows, padded, padded / kLanes},
      /*rowsOf=*/{},
      // Queries from the first of the keys on.
      [&](Value begin, Value) -> std::pair<Value, Value> {
        return {arith::MaxSIOp::create(code, code.sub(begin, ahead), zero),
                all};
      },
      Old::Sums, /*factors=*/{}, soon);
}

//===----------------------------------------------------------------------===//
// The elements of a tile
//===----------------------------------------------------------------------===//

void AttentionTile::forQueries(Value ahead,
                               function_ref<void(Value, Value)> body) {
  code.loop(code.i64(0), code.i64(block), kLanes, [&](Value lane) {
    Value keys = code.add(code.add(lane, ahead), kLanes);
    body(lane, code.min(keys, code.i64(block)));
  });
}

SmallVector<Value> AttentionTile::forKeys(const RandomStream &random,
                                          Value elements, Value first,
                                          Value count, ValueRange carried,
                                          KeyBody body) {
  Value zero = code.i64(0);
  if (dropout.isNone())
    return code.loop(zero, count, 1, carried, [&](Value j, ValueRange old) {
      return body(j, code.splatF32(1), old);
    });
  if (length % 4 != 0)
    return code.loop(zero, count, 1, carried, [&](Value j, ValueRange old) {
      Value element = code.add(elements, code.splat(code.add(first, j)));
      return body(j, dropout.emit(code, emitWords(code, random, element)), old);
    });
  // Four keys side by side are the four words of one block.
  Type i32 = code.getI32Type();
  Value two = code.i64(2);
  Value start =
      code.cast(arith::ShRUIOp::create(code, elements, code.splat(two)),
                code.lanesOf(i32));
  return code.loop(zero, count, 4, carried, [&](Value j, ValueRange old) {
    Value step = arith::ShRUIOp::create(code, code.add(first, j), two);
    Value drawnFrom = code.add(start, code.splat(code.cast(step, i32)));
    auto drawn = emitPhilox(code, random, drawnFrom);
    SmallVector<Value> state(old);
    for (int64_t k = 0; k < 4; ++k)
      state = body(code.add(j, k), dropout.emit(code, drawn[k]), state);
    return state;
  });
}
