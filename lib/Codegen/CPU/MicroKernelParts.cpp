//===- MicroKernelParts.cpp - What a tile begins and ends with ------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MicroKernelParts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

Value Fields::get(Type type, size_t offset) const {
  return code.load(
      type, code.address(tile, code.getI8Type(), code.i64(int64_t(offset))),
      code.i64(0));
}

Value Fields::pointer(size_t offset) const {
  return get(LLVM::LLVMPointerType::get(code.getContext()), offset);
}

Value Fields::integer(size_t offset) const {
  return get(code.getI64Type(), offset);
}

Value Fields::isSet(size_t offset) const {
  return arith::CmpIOp::create(code, arith::CmpIPredicate::ne,
                               get(code.getI32Type(), offset),
                               code.scalar(code.getI32Type(), 0));
}

Value Fields::isThere(size_t offset) const {
  Value address = pointer(offset);
  return LLVM::ICmpOp::create(code, LLVM::ICmpPredicate::ne, address,
                              LLVM::ZeroOp::create(code, address.getType()));
}

//===----------------------------------------------------------------------===//
// Fetching
//===----------------------------------------------------------------------===//

/// Rows that could be fetched between that of the last row of C and its use.
static constexpr int64_t kTimeToFetch = 2;

/// How many steps there are for each row of C: as many as leave time, 16 at
/// most. What waits for memory takes buffers of L1, which A needs
/// on its way from the second: so rows are fetched one by one, not in a burst.
static Value choosePace(Code &code, Value steps, int64_t rows) {
  Value pace = code.i64(kFetchSteps);
  for (int64_t each : {2 * kFetchSteps, 4 * kFetchSteps}) {
    Value isEnough =
        arith::CmpIOp::create(code, arith::CmpIPredicate::sge, steps,
                              code.i64((rows + kTimeToFetch) * each));
    pace = code.select(isEnough, code.i64(each), pace);
  }
  return pace;
}

SmallVector<FetchedRows, 2> codegen::getFetchedRows(Code &code,
                                                    const MicroKernel &tile,
                                                    const Fields &fields) {
  Value rounds = fields.isThere(offsetof(RepriseTile, rounded));
  Value target =
      code.select(rounds, fields.pointer(offsetof(RepriseTile, rounded)),
                  fields.pointer(offsetof(RepriseTile, c)));
  Value rowBytes = code.select(
      rounds, code.mul(fields.integer(offsetof(RepriseTile, ldRounded)), 2),
      code.mul(fields.integer(offsetof(RepriseTile, ldc)), 4));
  // Of a result that goes past the caches nothing: what is at hand.
  Value streams = fields.isSet(offsetof(RepriseTile, streams));
  target = code.select(streams, fields.tile, target);
  rowBytes = code.select(streams, code.i64(0), rowBytes);
  Value k = fields.integer(offsetof(RepriseTile, k));
  Value pace = choosePace(code, k, tile.rows);
  // C is fetched shortly before it is needed, so that it finds a place.
  Value whole = arith::AndIOp::create(code, k, code.sub(code.i64(0), pace));
  Value start = arith::MaxSIOp::create(
      code, code.i64(0),
      code.sub(whole, code.mul(pace, tile.rows + kTimeToFetch)));
  Value nextPace = arith::ExtSIOp::create(
      code, code.getI64Type(),
      fields.get(code.getI32Type(), offsetof(RepriseTile, nextSteps)));
  return {
      {start, pace, target, rowBytes, code.i64(tile.rows), 4 * tile.cols, true},
      {code.i64(0), nextPace, fields.pointer(offsetof(RepriseTile, next)),
       fields.integer(offsetof(RepriseTile, nextStride)),
       fields.integer(offsetof(RepriseTile, nextRows)), 128, false}};
}

/// What is written goes to L1, the rest to L2.
static void emitPrefetches(Code &code, const FetchedRows &rows, Value row) {
  constexpr int64_t kLine = 64;
  for (int64_t at = 0; at < rows.bytes; at += kLine)
    LLVM::Prefetch::create(
        code, code.address(row, code.getI8Type(), code.i64(at)),
        /*rw=*/rows.isWritten, /*hint=*/rows.isWritten ? 3 : 2, /*cache=*/1);
}

void codegen::emitFetchOfStep(Code &code, const FetchedRows &rows, Value p) {
  Value shift = math::CountTrailingZerosOp::create(code, rows.pace);
  Value since =
      arith::MaxSIOp::create(code, code.i64(0), code.sub(p, rows.start));
  Value index = code.min(arith::ShRUIOp::create(code, since, shift),
                         code.sub(rows.count, code.i64(1)));
  emitPrefetches(
      code, rows,
      code.address(rows.first, code.getI8Type(), code.mul(index, rows.stride)));
}

Value codegen::emitFetch(Code &code, const FetchedRows &rows, Value row,
                         Value p) {
  emitPrefetches(code, rows, row);
  Value then = code.add(p, kFetchSteps);
  Value end = code.add(rows.start, code.mul(rows.count, rows.pace));
  Value rest =
      arith::AndIOp::create(code, then, code.sub(rows.pace, code.i64(1)));
  auto compare = [&](arith::CmpIPredicate predicate, Value x, Value y) {
    return arith::CmpIOp::create(code, predicate, x, y);
  };
  Value isDue = compare(arith::CmpIPredicate::eq, rest, code.i64(0));
  Value isAfter = compare(arith::CmpIPredicate::sge, p, rows.start);
  Value isBefore = compare(arith::CmpIPredicate::slt, then, end);
  Value moves = arith::AndIOp::create(
      code, isDue, arith::AndIOp::create(code, isAfter, isBefore));
  return code.address(row, code.getI8Type(),
                      code.select(moves, rows.stride, code.i64(0)));
}

//===----------------------------------------------------------------------===//
// The end
//===----------------------------------------------------------------------===//

/// Where the vectors of rows from `firstRow` on are, `stride` elements apart.
static SmallVector<Value> getPlaces(Code &code, const MicroKernel &tile,
                                    Value firstRow, size_t vectors,
                                    Value stride) {
  SmallVector<Value> places;
  for (size_t index = 0; index < vectors; ++index) {
    int64_t at = int64_t(index) * kLanes;
    places.push_back(code.add(
        code.mul(stride, code.add(firstRow, at / tile.cols)), at % tile.cols));
  }
  return places;
}

/// One way of `emitEnd`.
static SmallVector<Value> emitStores(Code &code, const MicroKernel &tile,
                                     const Fields &fields, Value firstRow,
                                     ValueRange sums, bool adds, bool hasBias,
                                     bool rounds) {
  VectorType lanes = code.lanesOf(code.getF32Type());
  Value c, ldc, bias;
  if (adds || !rounds) {
    c = fields.pointer(offsetof(RepriseTile, c));
    ldc = fields.integer(offsetof(RepriseTile, ldc));
  }
  if (hasBias)
    bias = fields.pointer(offsetof(RepriseTile, bias));
  auto placesOf = [&](Value stride) {
    return getPlaces(code, tile, firstRow, sums.size(), stride);
  };
  SmallVector<Value> places, values;
  if (c)
    places = placesOf(ldc);
  // All loads come before all stores: rows of C are often a multiple of 4 KiB
  // apart, where a load waits for each store whose address ends like its own.
  for (auto [index, sum] : llvm::enumerate(sums)) {
    Value value = sum;
    if (adds)
      value = code.add(code.load(lanes, c, places[index]), value);
    if (bias) {
      int64_t col = int64_t(index) * kLanes % tile.cols;
      value = code.add(value, code.load(lanes, bias, code.i64(col)));
    }
    values.push_back(value);
  }
  SmallVector<Value> results = values;
  if (rounds) {
    c = fields.pointer(offsetof(RepriseTile, rounded));
    places = placesOf(fields.integer(offsetof(RepriseTile, ldRounded)));
    // LLVM takes a vector apart where there is no instruction for it.
    VectorType narrow = code.lanesOf(code.getBF16Type());
    for (Value &value : values)
      value = tile.hasBF16x2()
                  ? Value(LLVM::FPTruncOp::create(code, narrow, value))
                  : Value(arith::TruncFOp::create(code, narrow, value));
  }
  for (auto [at, value] : llvm::zip(places, values))
    code.store(value, c, at);
  return results;
}

SmallVector<Value> codegen::emitEnd(Code &code, const MicroKernel &tile,
                                    const Fields &fields, Value firstRow,
                                    ValueRange sums, bool mayRound) {
  using Values = SmallVector<Value>;
  // Each of them or not: what a tile ends with has no branches.
  auto choose = [&](Value condition, auto emit) {
    return code.choose(
        condition, [&] { return emit(true); }, [&] { return emit(false); });
  };
  Value adds = fields.isSet(offsetof(RepriseTile, addToC));
  Value hasBias = fields.isThere(offsetof(RepriseTile, bias));
  auto store = [&](bool rounding) -> Values {
    return choose(adds, [&](bool adding) -> Values {
      return choose(hasBias, [&](bool biased) -> Values {
        return emitStores(code, tile, fields, firstRow, sums, adding, biased,
                          rounding);
      });
    });
  };
  auto stream = [&] {
    SmallVector<Value> places =
        getPlaces(code, tile, firstRow, sums.size(),
                  fields.integer(offsetof(RepriseTile, ldc)));
    Value c = fields.pointer(offsetof(RepriseTile, c));
    for (auto [sum, place] : llvm::zip(sums, places))
      code.stream(sum, c, place);
    return Values(sums);
  };
  return code.choose(fields.isSet(offsetof(RepriseTile, streams)), stream, [&] {
    return mayRound
               ? choose(fields.isThere(offsetof(RepriseTile, rounded)), store)
               : store(false);
  });
}
