//===- GemmTerms.cpp - The terms of a block's GEMM ------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GemmTerms.h"
#include "AsyncCopies.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::cuda;

/// Places in shared memory that terms take in turn.
static constexpr int64_t kPlaces = 3;

using Values = Warp::Values;

int64_t GemmTerms::countBytes(const GemmSide &a, const GemmSide &b) {
  return kPlaces * (a.sharedBytes() + b.sharedBytes());
}

GemmTerms::GemmTerms(Warp &code, const GemmTile &tile, const GemmSide &a,
                     const GemmSide &b)
    : code(code), tile(tile), a(a), b(b) {
  this->a.begin = 0, this->b.begin = a.sharedBytes();
  warpRow = code.mul(code.div(code.warp, tile.warpsOfCols()), tile.ownRows());
  warpCol = code.mul(code.rem(code.warp, tile.warpsOfCols()), tile.ownCols());
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// Where row `row` of a buffer begins, in elements.
Value GemmTerms::rowOf(const GemmSide &side, Value row) {
  if (side.order)
    row = code.div(
        loadDevice(code, code.getI32Type(), side.order, code.widen(row)),
        side.slots);
  return code.mul(code.widen(row), side.stride);
}

/// Calls `body` with each part of a tile that this thread copies: its row and
/// the first of its elements.
static void forEachPart(Warp &code, const GemmSide &side, int64_t threads,
                        llvm::function_ref<void(int64_t, Value, Value)> body) {
  int64_t inRow = side.cols() / side.lanes(), number = 0;
  for (int64_t begin = 0; begin < side.parts(); begin += threads) {
    Value index = code.add(code.thread, begin);
    auto call = [&]() -> Values {
      body(number, code.div(index, inRow),
           code.mul(code.rem(index, inRow), side.lanes()));
      return {};
    };
    if (begin + threads <= side.parts())
      call();
    else
      code.choose(code.isLess(index, side.parts()), call,
                  [] { return Values(); });
    ++number;
  }
}

/// Rows of terms are the same in all steps: where those begin that this thread
/// copies from.
void GemmTerms::fixRows(GemmSide &side) {
  int64_t inRow = side.cols() / side.lanes();
  for (int64_t begin = 0; begin < side.parts(); begin += tile.threads()) {
    Value index = code.add(code.thread, begin);
    Value row = code.add(side.first, code.div(index, inRow));
    Value isThere = code.isLess(row, side.end);
    side.isThere.push_back(isThere);
    side.offsets.push_back(rowOf(side, code.select(isThere, row, side.first)));
  }
}

void GemmTerms::copyPart(const GemmSide &side, Value to, Value from,
                         Value isThere) {
  from = code.select(isThere, from, code.i64(0));
  if (side.inVectors) {
    Value valid = code.select(isThere, code.i32(kTermVector), code.i32(0));
    copyVector(code, to, code.address(side.base, side.element, from), valid);
    return;
  }
  // Elements of rows that begin anywhere go through registers.
  Value zero =
      arith::ConstantOp::create(code, code.getFloatAttr(side.element, 0));
  Value element = loadDevice(code, side.element, side.base, from);
  storeShared(code, code.select(isThere, element, zero), to);
}

/// Begins to copy the terms of a step.
void GemmTerms::copy(const GemmSide &side, Value step, Value firstTerm,
                     Value numTerms) {
  Value place = code.add(placeOf(step), side.begin);
  Value firstOfStep = code.mul(step, side.terms());
  forEachPart(
      code, side, tile.threads(), [&](int64_t number, Value row, Value col) {
        Value to = code.add(place, code.add(code.mul(row, side.strideBytes()),
                                            code.mul(col, side.bytes())));
        if (side.ofTerms) {
          Value term = code.add(firstOfStep, col);
          Value isThere =
              code.both(side.isThere[number], code.isLess(term, numTerms));
          return copyPart(side, to,
                          code.add(side.offsets[number], code.widen(term)),
                          isThere);
        }
        Value term = code.add(firstOfStep, row);
        Value at = code.add(side.first, col);
        Value isThere =
            code.both(code.isLess(term, numTerms), code.isLess(at, side.end));
        // Where there are no terms at all, there is nothing to find them by.
        Value source =
            code.select(isThere, code.add(firstTerm, term), code.i32(0));
        copyPart(side, to, code.add(rowOf(side, source), code.widen(at)),
                 isThere);
      });
}

Value GemmTerms::placeOf(Value step) {
  return code.mul(code.rem(step, kPlaces), a.sharedBytes() + b.sharedBytes());
}

/// The sums of all terms.
GemmTerms::Values GemmTerms::sum(Value numTerms, Value firstTerm) {
  for (GemmSide *side : {&a, &b})
    if (side->ofTerms)
      fixRows(*side);
  int64_t terms = a.terms();
  Value count = code.div(code.add(numTerms, terms - 1), terms);
  auto begin = [&](Value step) {
    code.choose(
        code.isLess(step, count),
        [&]() -> Values {
          copy(a, step, firstTerm, numTerms);
          copy(b, step, firstTerm, numTerms);
          return {};
        },
        [] { return Values(); });
    commitCopies(code);
  };
  for (int64_t step = 0; step < kPlaces - 1; ++step)
    begin(code.i32(step));
  Values sums(tile.ownRows() * tile.ownCols() / kWarpSize, code.f32(0));
  return code.repeat(code.i32(0), count, 1, sums,
                     [&](Value step, ValueRange old) {
                       waitForCopies(code, kPlaces - 2);
                       // The terms of this step are there, and nobody reads
                       // those of the last one any more.
                       barrier(code);
                       begin(code.add(step, kPlaces - 1));
                       Value place = placeOf(step);
                       return a.element.isBF16() ? multiplyTerms(place, old)
                                                 : multiplyNumbers(place, old);
                     });
}

//===----------------------------------------------------------------------===//
// MMAs
//===----------------------------------------------------------------------===//

/// 16 rows of A, from `block` of this warp on, by 16 terms: see mma.sync in the
/// PTX manual. Lanes give the rows of four matrices of 8 by 8.
GemmTerms::Values GemmTerms::fragmentOfA(Value place, int64_t block,
                                         int64_t term) {
  Value lane16 = code.rem(code.lane, 16), half = code.div(code.lane, 16);
  Value row = code.add(warpRow, block), col;
  if (a.ofTerms) {
    row = code.add(row, lane16);
    col = code.add(code.mul(half, 8), term);
  } else {
    // Terms are rows: those of the first two matrices, then the others.
    col = code.add(row, code.mul(code.bits(code.div(code.lane, 8), 1), 8));
    row = code.add(code.add(code.mul(half, 8), code.rem(code.lane, 8)), term);
  }
  Value at = code.add(code.mul(row, a.strideBytes()), code.mul(col, 2));
  return loadMatrices(code, code.add(code.add(place, a.begin), at),
                      /*transposed=*/!a.ofTerms);
}

/// 16 terms by 16 columns of B, 8 of them for each MMA.
GemmTerms::Values GemmTerms::fragmentOfB(Value place, int64_t block,
                                         int64_t term) {
  Value lane16 = code.rem(code.lane, 16), half = code.div(code.lane, 16);
  Value col = code.add(warpCol, block), row;
  if (b.ofTerms) {
    row = code.add(col, code.add(code.mul(half, 8), code.rem(code.lane, 8)));
    col = code.add(code.mul(code.bits(code.div(code.lane, 8), 1), 8), term);
  } else {
    row = code.add(lane16, term);
    col = code.add(col, code.mul(half, 8));
  }
  Value at = code.add(code.mul(row, b.strideBytes()), code.mul(col, 2));
  return loadMatrices(code, code.add(code.add(place, b.begin), at),
                      /*transposed=*/!b.ofTerms);
}

GemmTerms::Values GemmTerms::multiplyTerms(Value place, ValueRange old) {
  Values sums(old);
  int64_t inRow = tile.ownCols() / 2; // numbers of 16 rows
  for (int64_t term = 0; term < a.terms(); term += 16) {
    SmallVector<Values> rows;
    for (int64_t r = 0; r < tile.ownRows(); r += kWarpRows)
      rows.push_back(fragmentOfA(place, r, term));
    for (int64_t c = 0; c < tile.ownCols(); c += 16) {
      Values cols = fragmentOfB(place, c, term);
      for (auto [r, row] : llvm::enumerate(rows))
        for (int64_t h = 0; h < 2; ++h) {
          MutableArrayRef<Value> part(sums.data() + r * inRow + c / 2 + 4 * h,
                                      4);
          llvm::copy(multiply(code, row, ValueRange(cols).slice(2 * h, 2),
                              ValueRange(ArrayRef<Value>(part))),
                     part.begin());
        }
    }
  }
  return sums;
}

/// Of four terms from `term` on, `width` rows or columns of a side from `row`
/// on: `width` numbers of the first term, then those of the next.
GemmTerms::Values GemmTerms::numbersOf(const GemmSide &side, Value place,
                                       Value row, int64_t width, Value term) {
  constexpr int64_t kTerms = 4;
  Values numbers(kTerms * width);
  Value base = code.add(place, side.begin);
  bool isWide = side.ofTerms || width > 1;
  int64_t length = side.ofTerms ? kTerms : width;
  Type type = code.getF32Type();
  if (isWide)
    type = VectorType::get({length}, type);
  for (int64_t i = 0; i < kTerms * width / length; ++i) {
    Value at = side.ofTerms
                   ? code.add(code.mul(code.add(row, i), side.strideBytes()),
                              code.mul(term, 4))
                   : code.add(code.mul(code.add(term, i), side.strideBytes()),
                              code.mul(row, 4));
    Value loaded = loadShared(code, type, code.add(base, at));
    for (int64_t k = 0; k < length; ++k)
      numbers[side.ofTerms ? k * width + i : i * width + k] =
          isWide ? Value(vector::ExtractOp::create(code, loaded, k)) : loaded;
  }
  return numbers;
}

GemmTerms::Values GemmTerms::multiplyNumbers(Value place, ValueRange sums) {
  int64_t inRow = tile.ownCols() / 2;
  return code.repeat(
      code.i32(0), code.i32(a.terms()), 4, sums,
      [&](Value term, ValueRange old) {
        Values next(old);
        SmallVector<Values> rows;
        Value first = code.add(warpRow, code.group);
        for (int64_t r = 0; r < tile.ownRows(); r += kBlockColumns)
          rows.push_back(numbersOf(a, place, code.add(first, r), 1, term));
        Value pair = code.add(warpCol, code.mul(code.quad, 2));
        for (int64_t c = 0; c < tile.ownCols(); c += kBlockColumns) {
          Values cols = numbersOf(b, place, code.add(pair, c), 2, term);
          for (auto [r, row] : llvm::enumerate(rows))
            for (int64_t e = 0; e < 2; ++e) {
              // Rows g and g + 8 of a block of 16.
              Value &sum = next[r / 2 * inRow + c / 2 + r % 2 * 2 + e];
              for (int64_t k = 0; k < 4; ++k)
                sum = code.fma(row[k], cols[2 * k + e], sum);
            }
        }
        return next;
      });
}
