//===- GroupedProduct.cpp - Products of rows that belong to groups --------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which rows a group has is data on the device, so launches have blocks for all
// that may come. A block has a tile of C:
//
//   products of rows     rows of one group. With R rows to a tile, tiles are
//                        numbered so that group e begins at tile
//                        floor(offsets[e] / R) + e: it has at most
//                        floor(offsets[e + 1] / R) + 1 - floor(offsets[e] / R)
//                        tiles, so no two groups meet. A block finds its group
//                        by bisection; numbers that no group has end at once.
//                        Rows behind the last group are as one more, of zeros.
//   sums over rows       a part of one group's C
//
// Terms of a sum are walked over in their order, some at a time: they lie in
// shared memory, in one of three places in turn, while the next two are on
// their way. bf16 is multiplied by mma.sync with sums in f32, and f32 by fused
// multiply-adds of the same numbers in the same threads, as Warp.h has them.
// The order of a sum is that of its terms, whatever the tiles are.
//
// In shared memory a side of the product lies as in device memory, row by row
// with 16 bytes between rows: either a row of terms for each row of the product
// or a row of these for each term, which ldmatrix then transposes.
//
//===----------------------------------------------------------------------===//

#include "AsyncCopies.h"
#include "DeviceKernels.h"
#include "ExpertKernels.h"
#include "Warp.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;
using namespace reprise::cuda;

/// Bytes of a vector access, and what lies between rows in shared memory.
static constexpr int64_t kVector = 16;
/// Places in shared memory that terms take in turn.
static constexpr int64_t kPlaces = 3;
/// Bytes of the terms of a row that are there at a time.
static constexpr int64_t kTermBytes = 64;

namespace {
using Values = Warp::Values;

/// How a block's tile of C is divided among its warps.
struct ProductTile {
  int64_t rows, cols;

  int64_t warpsOfRows() const { return std::min<int64_t>(rows / kWarpRows, 4); }
  int64_t warpsOfCols() const { return std::max<int64_t>(cols / 64, 1); }
  int64_t threads() const { return warpsOfRows() * warpsOfCols() * kWarpSize; }
  /// Rows and columns of a warp.
  int64_t ownRows() const { return rows / warpsOfRows(); }
  int64_t ownCols() const { return cols / warpsOfCols(); }
};

/// A or B: where its elements are, in device memory and in shared memory.
struct Side {
  Type element;
  int64_t tile;   ///< rows of A, or columns of B, of a block
  int64_t stride; ///< elements from row to row of the buffer
  int64_t extent; ///< of the buffer's rows that lie side by side
  bool ofTerms;   ///< a row of the buffer has the terms of a sum
  bool inVectors; ///< whether its rows can be copied so
  Value base;     ///< in device memory
  Value first;    ///< of the block: its first row, or column
  Value end;      ///< and the end of these
  Value order;    ///< in device memory, or null
  int64_t slots;  ///< of the rows of the buffer, in `order`
  int64_t begin;  ///< within a place in shared memory
  Values offsets; ///< with terms in rows: what this thread copies of the tile
  Values isThere;

  int64_t bytes() const { return element.isBF16() ? 2 : 4; }
  int64_t terms() const { return kTermBytes / bytes(); }
  int64_t rows() const { return ofTerms ? tile : terms(); }
  int64_t cols() const { return ofTerms ? terms() : tile; }
  int64_t strideBytes() const { return cols() * bytes() + kVector; }
  int64_t sharedBytes() const { return rows() * strideBytes(); }
  /// Elements that are copied at once, and how many such parts a tile has.
  int64_t lanes() const { return inVectors ? kVector / bytes() : 1; }
  int64_t parts() const { return rows() * cols() / lanes(); }
};

/// Emits the body of one kernel.
class ProductEmitter {
public:
  ProductEmitter(DeviceCode &outer, rt::GemmOp op, DeviceKernel &kernel,
                 const ProductTile &tile, Value shared);

  void emit();
  int64_t countBlocks();
  static int64_t countSharedBytes(rt::GemmOp op, const ProductTile &tile);

private:
  int64_t groups() { return numGroups; }
  int64_t m() { return op.getM(); }
  int64_t n() { return op.getN(); }
  int64_t colTiles() { return llvm::divideCeil(n(), tile.cols); }
  int64_t rowTiles();
  Value loadOffset(Value group);
  Values findGroup(Value number);
  void emitRows();
  void emitSums();
  void compute(Value numTerms, Value firstTerm, Value c);

  Value rowOf(const Side &side, Value row);
  void fixRows(Side &side);
  void copy(const Side &side, Value step, Value firstTerm, Value numTerms);
  void copyPart(const Side &side, Value to, Value from, Value isThere);
  Value placeOf(Value step);
  Values walk(Value numTerms, Value firstTerm);
  Values multiplyTerms(Value place, ValueRange sums);
  Values fragmentOfA(Value place, int64_t block, int64_t term);
  Values fragmentOfB(Value place, int64_t block, int64_t term);
  Values multiplyNumbers(Value place, ValueRange sums);
  Values numbersOf(const Side &side, Value place, Value row, int64_t width,
                   Value term);
  void store(ValueRange sums, Value matrix);
  void storePair(Value low, Value high, Value at, Value col);

  rt::GemmOp op;
  const int64_t numGroups;
  const ProductTile tile;
  Warp code;
  Side a, b;
  Value offsets, addend, out;
  Type elementOfC;
  bool pairsOfC; ///< whether two columns of C can be stored at once
  Value warpRow, warpCol;
};
} // namespace

/// Elements of the operand `buffer`, a side with `tile` rows.
static Side describeSide(rt::GemmOp op, bool isA, int64_t tile) {
  Side side;
  auto type = cast<ShapedType>((isA ? op.getA() : op.getB()).getType());
  side.element = type.getElementType();
  side.tile = tile;
  side.stride = isA ? op.getLda() : op.getLdb();
  side.ofTerms = isA ? !op.getTransposeA() : op.getTransposeB();
  side.extent = side.ofTerms ? op.getK() : isA ? op.getM() : op.getN();
  side.slots = op.getSlots().value_or(1);
  int64_t size = side.bytes();
  side.inVectors =
      side.stride * size % kVector == 0 && side.extent * size % kVector == 0;
  return side;
}

int64_t ProductEmitter::countSharedBytes(rt::GemmOp op,
                                         const ProductTile &tile) {
  return kPlaces * (describeSide(op, true, tile.rows).sharedBytes() +
                    describeSide(op, false, tile.cols).sharedBytes());
}

ProductEmitter::ProductEmitter(DeviceCode &outer, rt::GemmOp op,
                               DeviceKernel &kernel, const ProductTile &tile,
                               Value shared)
    : op(op), numGroups(op.getGroupCount()), tile(tile), code(outer, shared),
      a(describeSide(op, true, tile.rows)),
      b(describeSide(op, false, tile.cols)), out(kernel.outputs[0]),
      elementOfC(op.getCType().getElementType()) {
  unsigned next = 2;
  a.base = kernel.addressOf(op, 0), b.base = kernel.addressOf(op, 1);
  offsets = kernel.addressOf(op, next++);
  if (op.getOrder())
    (op.getGather() == rt::Gather::A ? a : b).order =
        kernel.addressOf(op, next++);
  if (op.getAddend())
    addend = kernel.addressOf(op, next++);
  b.begin = a.sharedBytes(), a.begin = 0;
  // Buffers may begin anywhere that is a multiple of their elements.
  bool isAligned = countAlignedLanes(kernel.source) * 4 >= kVector;
  a.inVectors &= isAligned, b.inVectors &= isAligned;
  pairsOfC = isAligned && op.getLdc() % 2 == 0 && op.getN() % 2 == 0;
  warpRow = code.mul(code.div(code.warp, tile.warpsOfCols()), tile.ownRows());
  warpCol = code.mul(code.rem(code.warp, tile.warpsOfCols()), tile.ownCols());
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// Of products of rows with a tile for each group and one more; of sums, those
/// of one group.
int64_t ProductEmitter::rowTiles() {
  if (op.getTransposeA())
    return llvm::divideCeil(m(), tile.rows);
  return m() / tile.rows + groups() + 1;
}

int64_t ProductEmitter::countBlocks() {
  return rowTiles() * colTiles() * (op.getTransposeA() ? groups() : 1);
}

Value ProductEmitter::loadOffset(Value group) {
  return code.loadDevice(code.getI32Type(), offsets, code.widen(group));
}

/// The last group that begins at tile `number` or before it, and the number of
/// the tile among those of the group.
Values ProductEmitter::findGroup(Value number) {
  auto firstTile = [&](Value group) {
    return code.add(code.div(loadOffset(group), tile.rows), group);
  };
  int64_t count = llvm::bit_ceil(uint64_t(groups() + 1));
  Value group = code.i32(0), begin = code.i32(0);
  for (int64_t step = count / 2; step > 0; step /= 2) {
    Value next = code.add(group, step);
    Value exists = code.isLess(next, groups() + 1);
    Value tried = firstTile(code.select(exists, next, code.i32(groups())));
    Value isReached =
        arith::CmpIOp::create(code, arith::CmpIPredicate::sle, tried, number);
    Value moves = code.both(exists, isReached);
    group = code.select(moves, next, group);
    begin = code.select(moves, tried, begin);
  }
  return {group, code.sub(number, begin)};
}

void ProductEmitter::emit() {
  if (op.getTransposeA())
    emitSums();
  else
    emitRows();
}

/// Blocks of one column of tiles are neighbours: they read the same part of the
/// group's B.
void ProductEmitter::emitRows() {
  Value block = code.blockIndex();
  Values found = findGroup(code.rem(block, rowTiles()));
  Value group = found[0], last = code.i32(groups());
  Value isRest =
      arith::CmpIOp::create(code, arith::CmpIPredicate::eq, group, last);
  a.first = code.add(loadOffset(group), code.mul(found[1], tile.rows));
  Value behind = code.select(isRest, last, code.add(group, 1));
  a.end = code.select(isRest, code.i32(m()), loadOffset(behind));
  b.first = code.mul(code.div(block, rowTiles()), tile.cols);
  b.end = code.i32(n());
  code.choose(
      code.isLess(a.first, a.end),
      [&]() -> Values {
        // The weights of a group, of which the rest has none.
        Value matrix = code.select(isRest, code.i32(0), group);
        b.base = code.address(
            b.base, b.element,
            code.mul(code.widen(matrix), n() * int64_t(op.getK())));
        Value terms = code.select(isRest, code.i32(0), code.i32(op.getK()));
        compute(terms, code.i32(0), out);
        return {};
      },
      [] { return Values(); });
}

void ProductEmitter::emitSums() {
  Value block = code.blockIndex();
  int64_t tiles = rowTiles() * colTiles();
  Value group = code.div(block, tiles), within = code.rem(block, tiles);
  a.first = code.mul(code.rem(within, rowTiles()), tile.rows);
  a.end = code.i32(m());
  b.first = code.mul(code.div(within, rowTiles()), tile.cols);
  b.end = code.i32(n());
  Value begin = loadOffset(group), end = loadOffset(code.add(group, 1));
  Value matrix = code.mul(code.widen(group), m() * n());
  if (addend)
    addend = code.address(addend, elementOfC, matrix);
  compute(code.sub(end, begin), begin, code.address(out, elementOfC, matrix));
}

void ProductEmitter::compute(Value numTerms, Value firstTerm, Value c) {
  for (Side *side : {&a, &b})
    if (side->ofTerms)
      fixRows(*side);
  store(walk(numTerms, firstTerm), c);
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// Where row `row` of a buffer begins, in elements.
Value ProductEmitter::rowOf(const Side &side, Value row) {
  if (side.order)
    row = code.div(
        code.loadDevice(code.getI32Type(), side.order, code.widen(row)),
        side.slots);
  return code.mul(code.widen(row), side.stride);
}

/// Calls `body` with each part of a tile that this thread copies: its row and
/// the first of its elements.
static void forEachPart(Warp &code, const Side &side, int64_t threads,
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
void ProductEmitter::fixRows(Side &side) {
  int64_t inRow = side.cols() / side.lanes();
  for (int64_t begin = 0; begin < side.parts(); begin += tile.threads()) {
    Value index = code.add(code.thread, begin);
    Value row = code.add(side.first, code.div(index, inRow));
    Value isThere = code.isLess(row, side.end);
    side.isThere.push_back(isThere);
    side.offsets.push_back(rowOf(side, code.select(isThere, row, side.first)));
  }
}

void ProductEmitter::copyPart(const Side &side, Value to, Value from,
                              Value isThere) {
  from = code.select(isThere, from, code.i64(0));
  if (side.inVectors) {
    Value valid = code.select(isThere, code.i32(kVector), code.i32(0));
    code.copyAsync(to, code.address(side.base, side.element, from), valid);
    return;
  }
  // Elements of rows that begin anywhere go through registers.
  Value zero =
      arith::ConstantOp::create(code, code.getFloatAttr(side.element, 0));
  Value element = code.loadDevice(side.element, side.base, from);
  code.storeShared(code.select(isThere, element, zero), to);
}

/// Begins to copy the terms of a step.
void ProductEmitter::copy(const Side &side, Value step, Value firstTerm,
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

Value ProductEmitter::placeOf(Value step) {
  return code.mul(code.rem(step, kPlaces), a.sharedBytes() + b.sharedBytes());
}

/// The sums of all terms.
Values ProductEmitter::walk(Value numTerms, Value firstTerm) {
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
                       code.barrier();
                       begin(code.add(step, kPlaces - 1));
                       Value place = placeOf(step);
                       return a.element.isBF16() ? multiplyTerms(place, old)
                                                 : multiplyNumbers(place, old);
                     });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// 16 rows of A, from `block` of this warp on, by 16 terms: see mma.sync in the
/// PTX manual. Lanes give the rows of four matrices of 8 by 8.
Values ProductEmitter::fragmentOfA(Value place, int64_t block, int64_t term) {
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
  return code.loadMatrices(code.add(code.add(place, a.begin), at),
                           /*transposed=*/!a.ofTerms);
}

/// 16 terms by 16 columns of B, 8 of them for each product.
Values ProductEmitter::fragmentOfB(Value place, int64_t block, int64_t term) {
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
  return code.loadMatrices(code.add(code.add(place, b.begin), at),
                           /*transposed=*/!b.ofTerms);
}

Values ProductEmitter::multiplyTerms(Value place, ValueRange old) {
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
          llvm::copy(code.multiply(row, ValueRange(cols).slice(2 * h, 2),
                                   ValueRange(ArrayRef<Value>(part))),
                     part.begin());
        }
    }
  }
  return sums;
}

/// Of four terms from `term` on, `width` rows or columns of a side from `row`
/// on: `width` numbers of the first term, then those of the next.
Values ProductEmitter::numbersOf(const Side &side, Value place, Value row,
                                 int64_t width, Value term) {
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
    Value loaded = code.loadShared(type, code.add(base, at));
    for (int64_t k = 0; k < length; ++k)
      numbers[side.ofTerms ? k * width + i : i * width + k] =
          isWide ? Value(vector::ExtractOp::create(code, loaded, k)) : loaded;
  }
  return numbers;
}

Values ProductEmitter::multiplyNumbers(Value place, ValueRange sums) {
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

//===----------------------------------------------------------------------===//
// C
//===----------------------------------------------------------------------===//

/// Two sums side by side, the first in column `col`.
void ProductEmitter::storePair(Value low, Value high, Value at, Value col) {
  auto add = [&](Value sum, Value old) {
    return addend ? code.add(old, sum) : sum;
  };
  auto one = [&](Value sum, Value to) {
    if (addend)
      sum = add(sum, code.loadDevice(elementOfC, addend, to));
    code.storeDevice(code.fromF32(sum, elementOfC), out, to);
  };
  if (!pairsOfC) {
    one(low, at);
    code.choose(
        code.isLess(code.add(col, 1), b.end),
        [&]() -> Values {
          one(high, code.add(at, 1));
          return {};
        },
        [] { return Values(); });
    return;
  }
  auto two = VectorType::get({2}, elementOfC);
  if (addend) {
    Value old = code.loadDevice(two, addend, at);
    low = add(low, vector::ExtractOp::create(code, old, 0));
    high = add(high, vector::ExtractOp::create(code, old, 1));
  }
  Value pair = vector::FromElementsOp::create(
      code, two,
      ValueRange{code.fromF32(low, elementOfC),
                 code.fromF32(high, elementOfC)});
  code.storeDevice(pair, out, at);
}

void ProductEmitter::store(ValueRange sums, Value matrix) {
  out = matrix;
  int64_t inRow = tile.ownCols() / 2;
  Value firstRow = code.add(code.add(a.first, warpRow), code.group);
  Value firstCol = code.add(code.add(b.first, warpCol), code.mul(code.quad, 2));
  for (int64_t r = 0; r < tile.ownRows(); r += kBlockColumns) {
    Value row = code.add(firstRow, r);
    Value begin = code.mul(code.widen(row), op.getLdc());
    auto storeRow = [&]() -> Values {
      for (int64_t c = 0; c < tile.ownCols(); c += kBlockColumns) {
        Value col = code.add(firstCol, c);
        int64_t at = r / 16 * inRow + c / 2 + r / 8 % 2 * 2;
        code.choose(
            code.isLess(col, b.end),
            [&]() -> Values {
              storePair(sums[at], sums[at + 1],
                        code.add(begin, code.widen(col)), col);
              return {};
            },
            [] { return Values(); });
      }
      return {};
    };
    code.choose(code.isLess(row, a.end), storeRow, [] { return Values(); });
  }
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

/// The smallest size that `count` fits in, up to 128.
static int64_t chooseSize(int64_t count) {
  return count > 64 ? 128 : count > 32 ? 64 : 32;
}

LogicalResult cuda::emitGroupedProduct(DeviceCode &code, rt::GemmOp op,
                                       DeviceKernel &kernel) {
  if (!op.getOffsets())
    return op.emitOpError("needs groups to be a kernel: a library makes other "
                          "products");
  if (op.getAddend() && !op.getTransposeA())
    return op.emitOpError("needs 'transpose_a' to add to what is there on a "
                          "GPU");
  // As many rows as a group has if all have the same.
  int64_t rows = op.getM();
  if (!op.getTransposeA())
    rows = llvm::divideCeil(rows, op.getGroupCount());
  ProductTile tile = {chooseSize(rows), chooseSize(int64_t(op.getN()))};
  int64_t bytes = ProductEmitter::countSharedBytes(op, tile);
  Value shared = kernel.takeShared(code, bytes);
  ProductEmitter product(code, op, kernel, tile, shared);
  int64_t blocks = product.countBlocks();
  constexpr int64_t kMostBlocks = INT32_MAX; // of a launch along x
  if (blocks > kMostBlocks)
    return op.emitOpError("needs at most ")
           << kMostBlocks << " blocks of " << tile.rows << "x" << tile.cols
           << " elements, but got " << blocks;
  product.emit();
  kernel.setLaunch(code, blocks, tile.threads());
  return success();
}
