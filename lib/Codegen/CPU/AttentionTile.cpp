//===- AttentionTile.cpp - Sixteen queries and a block of keys --*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionTile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

AttentionTile::AttentionTile(Code &code, ShapedType query, int64_t heads,
                             int64_t keyHeads, double scale, double rate)
    : batch(query.getDimSize(0)), length(query.getDimSize(1)),
      width(query.getDimSize(2) / heads), queryHeads{heads, heads * width},
      keyHeads{keyHeads, keyHeads * width}, scale(float(scale)), dropout(rate),
      code(code) {}

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

Value AttentionTile::headOffset(const Heads &heads, Value index) {
  Value count = code.i64(heads.count);
  Value b = arith::DivSIOp::create(code, index, count);
  Value h = arith::RemSIOp::create(code, index, count);
  return code.add(code.mul(b, length * heads.stride), code.mul(h, width));
}

Value AttentionTile::rowOffset(const Heads &heads, Value position) {
  return code.mul(code.min(position, code.i64(length - 1)), heads.stride);
}

Value AttentionTile::loadRow(Value base, Value row) {
  return code.load(code.lanesOf(code.getF32Type()), base,
                   code.mul(row, kLanes));
}

void AttentionTile::storeRow(Value vector, Value base, Value row) {
  code.store(vector, base, code.mul(row, kLanes));
}

Value AttentionTile::wholeGroups(Value count) {
  Value group = code.i64(kKeyGroup);
  Value groups =
      arith::DivSIOp::create(code, code.add(count, kKeyGroup - 1), group);
  return code.mul(groups, group);
}

Value AttentionTile::sees(Value query, Value key) {
  // In 32 bits, half the work of 64: a length has fewer.
  Type i32 = code.getI32Type();
  auto lanes = [&](Value position) {
    return code.splat(code.cast(position, i32));
  };
  Value queries = code.add(lanes(query), code.iota(i32));
  Value after = arith::CmpIOp::create(code, arith::CmpIPredicate::sle,
                                      lanes(key), queries);
  Value exists = arith::CmpIOp::create(code, arith::CmpIPredicate::slt, queries,
                                       lanes(code.i64(length)));
  return arith::AndIOp::create(code, after, exists);
}

Value AttentionTile::elements(Value bh, Value query) {
  Value first = code.add(code.mul(bh, length), query);
  Value rows = code.add(code.splat(first), code.iota(code.getI64Type()));
  return code.mul(rows, code.splat(code.i64(length)));
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

void AttentionTile::transpose(Value from, Value first, Value to) {
  code.loop(code.i64(0), code.i64(kLanes), 1, [&](Value lane) {
    Value row = rowOffset(queryHeads, code.add(first, lane));
    code.loop(code.i64(0), code.i64(width), 1, [&](Value d) {
      Value x = code.load(code.getF32Type(), from, code.add(row, d));
      code.store(x, to, code.add(code.mul(d, kLanes), lane));
    });
  });
}

void AttentionTile::products(Value keys, Value first, Value count,
                             Value queries, Value tile) {
  Type f32 = code.getF32Type();
  code.loop(code.i64(0), count, kSideBySide, [&](Value j) {
    SmallVector<Value> rows;
    for (int64_t k = 0; k < kSideBySide; ++k)
      rows.push_back(rowOffset(keyHeads, code.add(code.add(first, j), k)));
    SmallVector<Value> sums(kSideBySide, code.splatF32(0));
    sums = code.loop(code.i64(0), code.i64(width), 1, sums,
                     [&](Value d, ValueRange old) {
                       Value q = loadRow(queries, d);
                       SmallVector<Value> next;
                       for (auto [row, sum] : llvm::zip(rows, old)) {
                         Value x = code.load(f32, keys, code.add(row, d));
                         next.push_back(code.fma(code.splat(x), q, sum));
                       }
                       return next;
                     });
    for (auto [k, sum] : llvm::enumerate(sums))
      storeRow(sum, tile, code.add(j, k));
  });
}

SmallVector<Value> AttentionTile::weigh(Value from, Value first, Value count,
                                        Value tile, Value column,
                                        int64_t columns, ValueRange sums) {
  return code.loop(code.i64(0), count, 1, sums, [&](Value j, ValueRange old) {
    Value p = loadRow(tile, j);
    Value row = code.add(rowOffset(keyHeads, code.add(first, j)), column);
    SmallVector<Value> next;
    for (int64_t k = 0; k < columns; ++k) {
      Value x = code.load(code.getF32Type(), from, code.add(row, k));
      next.push_back(code.fma(code.splat(x), p, old[k]));
    }
    return next;
  });
}

//===----------------------------------------------------------------------===//
// Dropout
//===----------------------------------------------------------------------===//

void AttentionTile::forKeys(const RandomStream &random, Value elements,
                            Value first, Value count,
                            function_ref<void(Value, Value)> body) {
  if (dropout.isNone()) {
    Value one = code.splatF32(1);
    code.loop(code.i64(0), count, 1, [&](Value j) { body(j, one); });
    return;
  }
  if (length % 4 == 0) {
    // Four keys side by side are the four words of one block.
    Value start = code.cast(
        arith::ShRUIOp::create(code, elements, code.splat(code.i64(2))),
        code.lanesOf(code.getI32Type()));
    code.loop(code.i64(0), count, 4, [&](Value j) {
      Value step =
          arith::ShRUIOp::create(code, code.add(first, j), code.i64(2));
      Value block =
          code.add(start, code.splat(code.cast(step, code.getI32Type())));
      auto drawn = emitPhilox(code, random, block);
      for (int64_t k = 0; k < 4; ++k)
        body(code.add(j, k), dropout.emit(code, drawn[k]));
    });
    return;
  }
  code.loop(code.i64(0), count, 1, [&](Value j) {
    Value element = code.add(elements, code.splat(code.add(first, j)));
    body(j, dropout.emit(code, emitWords(code, random, element)));
  });
}
