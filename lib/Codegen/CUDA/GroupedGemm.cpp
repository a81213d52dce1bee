//===- GroupedGemm.cpp - GEMMs of rows that belong to groups --------------===//
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
//   GEMMs of rows     rows of one group. With R rows to a tile, tiles are
//                        numbered so that group e begins at tile
//                        floor(offsets[e] / R) + e: it has at most
//                        floor(offsets[e + 1] / R) + 1 - floor(offsets[e] / R)
//                        tiles, so no two groups meet. A block finds its group
//                        by bisection; numbers that no group has end at once.
//                        Rows behind the last group are as one more, of zeros.
//   sums over rows       a part of one group's C
//
// GemmTerms.h has how a block adds up its terms.
//
//===----------------------------------------------------------------------===//

#include "DeviceKernels.h"
#include "ExpertKernels.h"
#include "GemmTerms.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "reprise/Codegen/Common/Numbers.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;
using namespace reprise::cuda;

namespace {
using Values = Warp::Values;

/// Emits the body of one kernel.
class GemmEmitter {
public:
  GemmEmitter(DeviceCode &outer, rt::GemmOp op, DeviceKernel &kernel,
              const GemmTile &tile, Value shared);

  void emit();
  int64_t countBlocks();
  /// Of shared memory.
  static int64_t countBytes(rt::GemmOp op, const GemmTile &tile);

private:
  int64_t m() { return op.getM(); }
  int64_t n() { return op.getN(); }
  int64_t colTiles() { return llvm::divideCeil(n(), tile.cols); }
  int64_t rowTiles();
  Value loadOffset(Value group);
  Values findGroup(Value number);
  void emitRows();
  void emitSums();
  void compute(Value numTerms, Value firstTerm, Value c);
  void store(ValueRange sums, Value matrix, Value warpRow, Value warpCol);
  void storePair(Value low, Value high, Value at, Value col);

  rt::GemmOp op;
  const int64_t numGroups;
  const GemmTile tile;
  Warp code;
  GemmSide a, b;
  Value offsets, addend, out;
  Type elementOfC;
  bool pairsOfC; ///< whether two columns of C can be stored at once
};
} // namespace

/// A or B, of which a block has `tile` rows or columns.
static GemmSide describeSide(rt::GemmOp op, bool isA, int64_t tile) {
  GemmSide side;
  auto type = cast<ShapedType>((isA ? op.getA() : op.getB()).getType());
  side.element = type.getElementType();
  side.tile = tile;
  side.stride = isA ? op.getLda() : op.getLdb();
  side.ofTerms = isA ? !op.getTransposeA() : op.getTransposeB();
  side.slots = op.getSlots().value_or(1);
  // Of the buffer's rows that lie side by side.
  int64_t length = side.ofTerms ? op.getK() : isA ? op.getM() : op.getN();
  side.inVectors = side.stride * side.bytes() % kTermVector == 0 &&
                   length * side.bytes() % kTermVector == 0;
  return side;
}

int64_t GemmEmitter::countBytes(rt::GemmOp op, const GemmTile &tile) {
  return GemmTerms::countBytes(describeSide(op, true, tile.rows),
                               describeSide(op, false, tile.cols));
}

GemmEmitter::GemmEmitter(DeviceCode &outer, rt::GemmOp op, DeviceKernel &kernel,
                         const GemmTile &tile, Value shared)
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
  // Buffers may begin anywhere that is a multiple of their elements.
  bool isAligned = countAlignedLanes(kernel.source) * 4 >= kTermVector;
  a.inVectors &= isAligned, b.inVectors &= isAligned;
  pairsOfC = isAligned && op.getLdc() % 2 == 0 && op.getN() % 2 == 0;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// Of GEMMs of rows with a tile for each group and one more; of sums, those
/// of one group.
int64_t GemmEmitter::rowTiles() {
  if (op.getTransposeA())
    return llvm::divideCeil(m(), tile.rows);
  return m() / tile.rows + numGroups + 1;
}

int64_t GemmEmitter::countBlocks() {
  return rowTiles() * colTiles() * (op.getTransposeA() ? numGroups : 1);
}

Value GemmEmitter::loadOffset(Value group) {
  return loadDevice(code, code.getI32Type(), offsets, code.widen(group));
}

/// The last group that begins at tile `number` or before it, and the number of
/// the tile among those of the group.
Values GemmEmitter::findGroup(Value number) {
  auto firstTile = [&](Value group) {
    return code.add(code.div(loadOffset(group), tile.rows), group);
  };
  int64_t count = llvm::bit_ceil(uint64_t(numGroups + 1));
  Value group = code.i32(0), begin = code.i32(0);
  for (int64_t step = count / 2; step > 0; step /= 2) {
    Value next = code.add(group, step);
    Value exists = code.isLess(next, numGroups + 1);
    Value tried = firstTile(code.select(exists, next, code.i32(numGroups)));
    Value isReached =
        arith::CmpIOp::create(code, arith::CmpIPredicate::sle, tried, number);
    Value moves = code.both(exists, isReached);
    group = code.select(moves, next, group);
    begin = code.select(moves, tried, begin);
  }
  return {group, code.sub(number, begin)};
}

void GemmEmitter::emit() {
  if (op.getTransposeA())
    emitSums();
  else
    emitRows();
}

/// Blocks of one column of tiles are neighbours: they read the same part of the
/// group's B.
void GemmEmitter::emitRows() {
  Value block = code.blockIndex();
  Values found = findGroup(code.rem(block, rowTiles()));
  Value group = found[0], last = code.i32(numGroups);
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

void GemmEmitter::emitSums() {
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

void GemmEmitter::compute(Value numTerms, Value firstTerm, Value c) {
  GemmTerms terms(code, tile, a, b);
  Values sums = terms.sum(numTerms, firstTerm);
  store(sums, c, terms.warpRow, terms.warpCol);
}

//===----------------------------------------------------------------------===//
// C
//===----------------------------------------------------------------------===//

/// Two sums side by side, the first in column `col`.
void GemmEmitter::storePair(Value low, Value high, Value at, Value col) {
  auto add = [&](Value sum, Value old) {
    return addend ? code.add(old, sum) : sum;
  };
  auto one = [&](Value sum, Value to) {
    if (addend)
      sum = add(sum, loadDevice(code, elementOfC, addend, to));
    storeDevice(code, fromF32(code, sum, elementOfC), out, to);
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
    Value old = loadDevice(code, two, addend, at);
    low = add(low, vector::ExtractOp::create(code, old, 0));
    high = add(high, vector::ExtractOp::create(code, old, 1));
  }
  Value pair = vector::FromElementsOp::create(
      code, two,
      ValueRange{fromF32(code, low, elementOfC),
                 fromF32(code, high, elementOfC)});
  storeDevice(code, pair, out, at);
}

void GemmEmitter::store(ValueRange sums, Value matrix, Value warpRow,
                        Value warpCol) {
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

LogicalResult cuda::emitGroupedGemm(DeviceCode &code, rt::GemmOp op,
                                    DeviceKernel &kernel) {
  if (!op.getOffsets())
    return op.emitOpError("needs groups to be a kernel: a library makes other "
                          "GEMMs");
  if (op.getAddend() && !op.getTransposeA())
    return op.emitOpError("needs 'transpose_a' to add to what is there on a "
                          "GPU");
  // As many rows as a group has if all have the same.
  int64_t rows = op.getM();
  if (!op.getTransposeA())
    rows = llvm::divideCeil(rows, op.getGroupCount());
  GemmTile tile = {chooseSize(rows), chooseSize(int64_t(op.getN()))};
  int64_t bytes = GemmEmitter::countBytes(op, tile);
  Value shared = kernel.takeShared(code, bytes);
  GemmEmitter emitter(code, op, kernel, tile, shared);
  int64_t blocks = emitter.countBlocks();
  constexpr int64_t kMostBlocks = INT32_MAX; // of a launch along x
  if (blocks > kMostBlocks)
    return op.emitOpError("needs at most ")
           << kMostBlocks << " blocks of " << tile.rows << "x" << tile.cols
           << " elements, but got " << blocks;
  emitter.emit();
  kernel.setLaunch(code, blocks, tile.threads());
  return success();
}
