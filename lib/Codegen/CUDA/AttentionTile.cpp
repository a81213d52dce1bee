//===- AttentionTile.cpp - Tiles of queries and of keys ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionTile.h"
#include "AsyncCopies.h"
#include "WarpGroup.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <numeric>

using namespace mlir;
using namespace reprise;
using namespace reprise::cuda;

/// Bytes of a vector access, and what lies between rows in shared memory.
static constexpr int64_t kVector = 16;
/// Below every score, and yet finite: differences of it are numbers.
static constexpr double kLowest = -1e30;
static constexpr double kLog2E = 1.4426950408889634;

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

AttentionShape::AttentionShape(ShapedType query, ShapedType value,
                               int64_t queryHeads, int64_t keyHeads,
                               double scale, double rate)
    : batch(query.getDimSize(0)), length(query.getDimSize(1)),
      queryHeads(queryHeads), keyHeads(keyHeads),
      width(query.getDimSize(2) / queryHeads),
      valueWidth(value.getDimSize(2) / keyHeads),
      element(query.getElementType()), scale(scale), dropout(rate) {}

int64_t AttentionShape::padded(int64_t columns) const {
  return llvm::alignTo(columns, element.isBF16() ? 16 : kBlockColumns);
}

static int64_t rowBytes(const AttentionShape &shape, const Division &division) {
  int64_t bytes = shape.paddedWidth() * (shape.element.isBF16() ? 2 : 4);
  return division.byWarpGroup ? bytes : bytes + kVector;
}

/// f32 weights lie in shared memory on the way from one product to the next.
static int64_t weightBytes(const AttentionShape &shape,
                           const Division &division) {
  if (shape.element.isBF16())
    return 0;
  return division.ownRows() * (division.tileRows * 4 + kVector);
}

/// Rows of copies for `writeRowNumbers`: of two steps, or of the own queries.
static int64_t copiedRows(const Division &division) {
  if (!division.byWarpGroup || division.direction == Direction::Forward)
    return 0;
  return std::max(2 * division.tileRows, division.ownRows());
}

static int64_t outTilesOffset(const AttentionShape &shape,
                              const Division &division) {
  int64_t rows =
      division.ownTiles() * division.ownRows() + 4 * division.tileRows;
  return rows * rowBytes(shape, division) + weightBytes(shape, division);
}

static int64_t lseCopiesOffset(const AttentionShape &shape,
                               const Division &division) {
  return outTilesOffset(shape, division) +
         copiedRows(division) * rowBytes(shape, division);
}

static int64_t rowNumbersOffset(const AttentionShape &shape,
                                const Division &division) {
  return lseCopiesOffset(shape, division) + 4 * copiedRows(division);
}

static int64_t sharedBytes(const AttentionShape &shape,
                           const Division &division) {
  return rowNumbersOffset(shape, division) +
         8 * std::max(division.ownRows(), division.tileRows);
}

/// Registers of a thread for the products that are kept: of own rows by tile
/// rows, and by the widths; forward, the queries too.
static int64_t registersOf(const AttentionShape &shape,
                           const Division &division) {
  int64_t width = shape.padded(shape.width);
  int64_t ofValues = shape.padded(shape.valueWidth);
  if (division.direction == Direction::Backward)
    return division.tileRows + (width + ofValues) / 2;
  return (division.tileRows + ofValues) / 2 +
         (shape.element.isBF16() ? width / 4 : 0);
}

Division cuda::divide(const AttentionShape &shape, Direction direction,
                      bool byWarpGroup) {
  constexpr int64_t most = 160; // of 255
  Division best = {direction, 1, 16, byWarpGroup};
  for (int64_t warps : {1, 2, 4})
    for (int64_t rows : {16, 32, 64}) {
      Division next = {direction, warps, rows, byWarpGroup};
      if (rows <= next.threads() && sharedBytes(shape, next) <= kSharedBytes &&
          (registersOf(shape, next) <= most || rows == 16))
        best = next;
    }
  return best;
}

bool cuda::canDivideByWarpGroup(const AttentionShape &shape,
                                Direction direction) {
  // Both forms are launched alike.
  auto isWhole = [&](bool byWarpGroup) {
    return divide(shape, direction, byWarpGroup).warps == kWarpGroup;
  };
  return shape.element.isBF16() && shape.width % kPanelColumns == 0 &&
         shape.valueWidth % kPanelColumns == 0 && isWhole(false) &&
         isWhole(true);
}

LaunchShape cuda::launchOf(const AttentionShape &shape,
                           const Division &division, int64_t blocks) {
  // What ptxas needs beside sums, found by assembling; and for each block 1 KiB
  // of shared memory is the system's.
  int64_t registers =
      registersOf(shape, division) + (shape.dropout.isNone() ? 40 : 56);
  int64_t bytes = sharedBytes(shape, division);
  int64_t byRegisters =
      65536 / (division.threads() * llvm::alignTo(registers, 8));
  int64_t byMemory = (228 << 10) / (bytes + 1024);
  int64_t resident = std::clamp<int64_t>(std::min(byRegisters, byMemory), 1, 4);
  return {blocks, division.threads(), bytes, resident};
}

LogicalResult cuda::verifyShape(Operation *op, const AttentionShape &shape) {
  int64_t widest = std::max(shape.width, shape.valueWidth);
  if (widest > kMaxHeadWidth)
    return op->emitOpError("needs a head width of at most ")
           << kMaxHeadWidth << ", whose tiles fit into " << kSharedBytes
           << " bytes of shared memory, but got " << widest;
  if (!(shape.scale > 0))
    return op->emitOpError("needs a scale above 0, but got ") << shape.scale;
  if (!shape.element.isF32() && !shape.element.isBF16())
    return op->emitOpError("needs elements of f32 or bf16, but got ")
           << shape.element;
  return success();
}

//===----------------------------------------------------------------------===//
// Where things are
//===----------------------------------------------------------------------===//

AttentionTile::AttentionTile(Warp &code, const AttentionShape &shape,
                             const Division &division,
                             const AttentionPlaces &places, Value rng)
    : shape(shape), division(division), code(code) {
  if (shape.dropout.isNone())
    return;
  Value base = code.toDevice(rng);
  auto at = [&](int64_t index) {
    return code.loadDevice(code.getI32Type(), base, code.i64(index));
  };
  random = {at(0), at(1), at(2), at(3),
            code.cast(places.stream, code.getI32Type())};
  if (places.coordinate)
    rank = code.cast(places.coordinate, code.getI32Type());
}

int64_t AttentionTile::strideBytes() const { return rowBytes(shape, division); }

/// Whether every row of a head begins at a multiple of 16 bytes and has whole
/// vectors.
bool AttentionTile::copiesVectors(int64_t width) const {
  return width * elementBytes() % kVector == 0;
}

AttentionTile::Matrix AttentionTile::matrix(Value buffer, Value entry,
                                            Value head, int64_t heads,
                                            int64_t width) {
  int64_t stride = heads * width;
  Value offset = code.add(code.mul(code.widen(entry), shape.length * stride),
                          code.mul(code.widen(head), width));
  return {code.address(code.toDevice(buffer), shape.element, offset), stride,
          width};
}

Value AttentionTile::ownTile(int64_t index) {
  return code.i32(index * division.ownRows() * strideBytes());
}

Value AttentionTile::walkedTile(Value step, int64_t index) {
  int64_t bytes = division.tileRows * strideBytes();
  int64_t first = division.ownTiles() * division.ownRows() * strideBytes();
  return code.add(code.mul(code.bits(step, 1), 2 * bytes),
                  first + index * bytes);
}

/// Where a vector of a row of a tile with `rows` rows is.
Value AttentionTile::vectorOf(Value tile, int64_t rows, Value row,
                              Value vector) {
  if (!division.byWarpGroup)
    return code.add(tile, code.add(code.mul(row, strideBytes()),
                                   code.mul(vector, kVector)));
  constexpr int64_t inRow = kPanelRowBytes / kVector;
  Value place = arith::XOrIOp::create(code, code.rem(vector, inRow),
                                      code.rem(row, inRow));
  Value panel = code.mul(code.div(vector, inRow), rows * kPanelRowBytes);
  return code.add(code.add(tile, panel), code.add(code.mul(row, kPanelRowBytes),
                                                  code.mul(place, kVector)));
}

Value AttentionTile::outTile(Value step) {
  return code.add(
      code.mul(code.bits(step, 1), division.tileRows * strideBytes()),
      outTilesOffset(shape, division));
}

Value AttentionTile::lseCopy(Value step) {
  return code.add(code.mul(code.bits(step, 1), division.tileRows * 4),
                  lseCopiesOffset(shape, division));
}

Value AttentionTile::rowNumbers() {
  return code.i32(rowNumbersOffset(shape, division));
}

Value AttentionTile::ownRow(int64_t which) {
  return code.add(code.add(code.mul(code.warp, kWarpRows), code.group),
                  8 * which);
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void AttentionTile::copy(const Matrix &from, Value first, int64_t rows,
                         Value to) {
  if (!copiesVectors(from.width))
    return copyElements(from, first, rows, to);
  // Columns of padding are vectors of which nothing is read.
  int64_t perVector = kVector / elementBytes();
  int64_t inRow = shape.padded(from.width) / perVector;
  int64_t inDevice = from.width / perVector;
  int64_t total = rows * inRow, threads = division.threads();
  for (int64_t begin = 0; begin < total; begin += threads) {
    Value index = code.add(code.thread, begin);
    auto copyOne = [&]() -> Warp::Values {
      Value row = code.div(index, inRow), vector = code.rem(index, inRow);
      Value position = code.add(first, row);
      Value exists = code.isLess(position, shape.length);
      if (inDevice < inRow)
        exists = code.both(exists, code.isLess(vector, inDevice));
      Value zero = code.i32(0);
      Value offset = code.add(code.mul(code.widen(position), from.stride),
                              code.mul(code.widen(vector), perVector));
      offset = code.select(exists, offset, code.i64(0));
      code.copyAsync(vectorOf(to, rows, row, vector),
                     code.address(from.base, shape.element, offset),
                     code.select(exists, code.i32(kVector), zero));
      return {};
    };
    if (begin + threads <= total)
      copyOne();
    else
      code.choose(code.isLess(index, total), copyOne,
                  [] { return Warp::Values(); });
  }
}

/// Rows that begin anywhere go through registers, element by element.
void AttentionTile::copyElements(const Matrix &from, Value first, int64_t rows,
                                 Value to) {
  int64_t padded = shape.padded(from.width);
  Value zero =
      arith::ConstantOp::create(code, code.getFloatAttr(shape.element, 0));
  code.repeat(
      code.thread, code.i32(rows * padded), division.threads(), {},
      [&](Value index, ValueRange) -> Values {
        Value row = code.div(index, padded), column = code.rem(index, padded);
        Value position = code.add(first, row);
        Value exists = code.both(code.isLess(position, shape.length),
                                 code.isLess(column, from.width));
        Value element = code.choose(
            exists,
            [&]() -> Values {
              Value offset =
                  code.add(code.mul(code.widen(position), from.stride),
                           code.widen(column));
              return {code.loadDevice(shape.element, from.base, offset)};
            },
            [&]() -> Values { return {zero}; })[0];
        code.storeShared(
            element, code.add(to, code.add(code.mul(row, strideBytes()),
                                           code.mul(column, elementBytes()))));
        return {};
      });
}

AttentionTile::Values AttentionTile::walk(Value count, ValueRange state,
                                          function_ref<void(Value)> begin,
                                          function_ref<void()> prepare,
                                          Warp::Body body) {
  begin(code.i32(0));
  commitCopies(code);
  prepare();
  return code.repeat(code.i32(0), count, 1, state,
                     [&](Value step, ValueRange old) {
                       waitForCopies(code, 0);
                       if (isAsync())
                         showToProducts(code);
                       // What this step reads is there, and nobody reads what
                       // the last step read: the next copies may land there.
                       code.barrier();
                       Value next = code.add(step, 1);
                       code.choose(
                           code.isLess(next, count),
                           [&]() -> Values {
                             begin(next);
                             return {};
                           },
                           [] { return Values(); });
                       commitCopies(code);
                       return body(step, old);
                     });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

AttentionTile::Values AttentionTile::rowsToKeep(Value own, int64_t width) {
  Values kept;
  if (!isBF16() || division.byWarpGroup)
    return kept;
  Value row = code.add(code.mul(code.warp, kWarpRows), code.rem(code.lane, 16));
  Value at = code.add(code.add(own, code.mul(row, strideBytes())),
                      code.mul(code.div(code.lane, 16), kVector));
  for (int64_t k = 0; k < shape.padded(width); k += 16)
    kept.append(code.loadMatrices(code.add(at, 2 * k), /*transposed=*/false));
  return kept;
}

AttentionTile::Values AttentionTile::zeros(int64_t width) {
  return Values(shape.padded(width) / 2, code.f32(0));
}

AttentionTile::Values AttentionTile::products(Value own, Value tile,
                                              int64_t width, ValueRange kept) {
  if (!isBF16())
    return productsOfNumbers(own, tile, width);
  if (division.byWarpGroup)
    return productsOfWarpGroup(own, tile, width);
  Values loaded;
  if (kept.empty())
    loaded = rowsToKeep(own, width), kept = loaded;
  // Matrices of 8 rows by 8 terms: two of terms, then those of the next rows.
  Value row =
      code.add(code.mul(code.div(code.lane, 16), 8), code.rem(code.lane, 8));
  Value half = code.bits(code.div(code.lane, 8), 1);
  Value at = code.add(code.add(tile, code.mul(row, strideBytes())),
                      code.mul(half, kVector));
  Values sums(division.tileRows / 2, code.f32(0));
  for (int64_t k = 0; k < shape.padded(width); k += 16)
    for (int64_t c = 0; c < division.tileRows; c += 16) {
      Values rows = code.loadMatrices(code.add(at, c * strideBytes() + 2 * k),
                                      /*transposed=*/false);
      for (int64_t h = 0; h < 2; ++h) {
        MutableArrayRef<Value> part(sums.data() + c / 2 + 4 * h, 4);
        llvm::copy(code.multiply(ValueRange(kept).slice(k / 4, 4),
                                 ValueRange(rows).slice(2 * h, 2),
                                 ValueRange(ArrayRef<Value>(part))),
                   part.begin());
      }
    }
  return sums;
}

AttentionTile::Values
AttentionTile::addProducts(ValueRange old, ValueRange weights, Value tile) {
  if (!isBF16())
    return addProductsOfNumbers(old, weights, tile);
  if (division.byWarpGroup)
    return addProductsOfWarpGroup(old, weights, tile);
  // What a thread has of two blocks of weights is what it needs of 16 terms.
  Value row = code.rem(code.lane, 16), half = code.div(code.lane, 16);
  Value at = code.add(code.add(tile, code.mul(row, strideBytes())),
                      code.mul(half, kVector));
  Values sums(old);
  for (int64_t k = 0; k < division.tileRows; k += 16) {
    Values packed;
    for (int64_t i = 0; i < 8; i += 2)
      packed.push_back(code.pack(weights[k / 2 + i], weights[k / 2 + i + 1]));
    for (int64_t c = 0; c < int64_t(2 * old.size()); c += 16) {
      Values rows = code.loadMatrices(code.add(at, k * strideBytes() + 2 * c),
                                      /*transposed=*/true);
      for (int64_t h = 0; h < 2; ++h) {
        MutableArrayRef<Value> part(sums.data() + c / 2 + 4 * h, 4);
        llvm::copy(code.multiply(packed, ValueRange(rows).slice(2 * h, 2),
                                 ValueRange(ArrayRef<Value>(part))),
                   part.begin());
      }
    }
  }
  return sums;
}

AttentionTile::Values AttentionTile::finish(ValueRange values, int64_t later) {
  return isAsync() ? waitForProducts(code, values, later) : Values(values);
}

AttentionTile::Values AttentionTile::productsOfWarpGroup(Value own, Value tile,
                                                         int64_t width) {
  Value a = describeMatrix(code, own), b = describeMatrix(code, tile);
  Values sums;
  fenceProducts(code);
  for (int64_t k = 0; k < width; k += 16) {
    // Sixteen terms are two vectors of every row of a panel.
    int64_t panel = k / kPanelColumns, within = 2 * (k % kPanelColumns);
    auto part = [&](Value matrix, int64_t rows) {
      return advanceMatrix(code, matrix,
                           panel * rows * kPanelRowBytes + within);
    };
    sums = beginProduct(code, sums, part(a, division.ownRows()),
                        part(b, division.tileRows), division.tileRows,
                        /*byTerms=*/false);
  }
  commitProducts(code);
  return sums;
}

AttentionTile::Values AttentionTile::addProductsOfWarpGroup(ValueRange old,
                                                            ValueRange weights,
                                                            Value tile) {
  Value b = describeMatrix(code, tile);
  Values sums(old), packed;
  for (size_t i = 0; i < weights.size(); i += 2)
    packed.push_back(code.pack(weights[i], weights[i + 1]));
  size_t count = sums.size();
  sums.append(packed);
  sums = fenceProducts(code, sums);
  packed.assign(sums.begin() + count, sums.end());
  sums.truncate(count);
  for (int64_t k = 0; k < division.tileRows; k += 16)
    for (int64_t c = 0; c < int64_t(2 * old.size()); c += kPanelColumns) {
      int64_t rows = c / kPanelColumns * division.tileRows + k;
      MutableArrayRef<Value> part(sums.data() + c / 2, kPanelColumns / 2);
      llvm::copy(beginProduct(code, ValueRange(ArrayRef<Value>(part)),
                              ValueRange(packed).slice(k / 4, 4),
                              advanceMatrix(code, b, rows * kPanelRowBytes),
                              kPanelColumns, /*byTerms=*/true),
                 part.begin());
    }
  commitProducts(code);
  return sums;
}

/// Element `index` of a vector.
static Value element(Warp &code, Value vector, int64_t index) {
  return vector::ExtractOp::create(code, vector, index);
}

AttentionTile::Values AttentionTile::productsOfNumbers(Value own, Value tile,
                                                       int64_t width) {
  VectorType four = VectorType::get({4}, code.getF32Type());
  Value low = code.add(own, code.mul(ownRow(0), strideBytes()));
  Value first = code.add(tile, code.mul(code.quad, 2 * strideBytes()));
  Values sums(division.tileRows / 2, code.f32(0));
  return code.repeat(
      code.i32(0), code.i32(shape.padded(width) * 4), kVector, sums,
      [&](Value k, ValueRange old) {
        Value rows[2];
        for (int64_t r = 0; r < 2; ++r)
          rows[r] = code.loadShared(
              four, code.add(code.add(low, k), 8 * r * strideBytes()));
        Values next(old);
        for (int64_t c = 0; c < division.tileRows; c += kBlockColumns)
          for (int64_t e = 0; e < 2; ++e) {
            Value column = code.loadShared(
                four, code.add(code.add(first, k), (c + e) * strideBytes()));
            for (int64_t r = 0; r < 2; ++r) {
              Value &sum = next[c / 2 + 2 * r + e];
              for (int64_t i = 0; i < 4; ++i)
                sum = code.fma(element(code, rows[r], i),
                               element(code, column, i), sum);
            }
          }
        return next;
      });
}

AttentionTile::Values AttentionTile::addProductsOfNumbers(ValueRange sums,
                                                          ValueRange weights,
                                                          Value tile) {
  VectorType two = VectorType::get({2}, code.getF32Type());
  VectorType four = VectorType::get({4}, code.getF32Type());
  int64_t stride = division.tileRows * 4 + kVector;
  int64_t begin =
      (division.ownTiles() * division.ownRows() + 4 * division.tileRows) *
      strideBytes();
  Value low = code.add(code.mul(ownRow(0), stride), begin);
  Value mine = code.add(low, code.mul(code.quad, 8));
  for (int64_t c = 0; c < division.tileRows; c += kBlockColumns)
    for (int64_t r = 0; r < 2; ++r) {
      Value pair = vector::FromElementsOp::create(
          code, two,
          ValueRange{weights[c / 2 + 2 * r], weights[c / 2 + 2 * r + 1]});
      code.storeShared(pair, code.add(mine, 8 * r * stride + 4 * c));
    }
  code.syncWarp();
  Value columns = code.add(tile, code.mul(code.quad, 8));
  Values result = code.repeat(
      code.i32(0), code.i32(division.tileRows), 4, sums,
      [&](Value k, ValueRange old) {
        Value rows[2];
        for (int64_t r = 0; r < 2; ++r)
          rows[r] = code.loadShared(
              four, code.add(code.add(low, code.mul(k, 4)), 8 * r * stride));
        Value at = code.add(columns, code.mul(k, strideBytes()));
        Values next(old);
        for (int64_t i = 0; i < 4; ++i)
          for (int64_t c = 0; c < int64_t(2 * old.size()); c += kBlockColumns) {
            Value terms =
                code.loadShared(two, code.add(at, i * strideBytes() + 4 * c));
            for (int64_t r = 0; r < 2; ++r)
              for (int64_t e = 0; e < 2; ++e) {
                Value &sum = next[c / 2 + 2 * r + e];
                sum = code.fma(element(code, rows[r], i),
                               element(code, terms, e), sum);
              }
          }
        return next;
      });
  code.syncWarp(); // before the next weights
  return result;
}

void AttentionTile::store(const Matrix &to, Value first, ValueRange sums,
                          ValueRange factors) {
  bool pairs = to.width % 2 == 0;
  VectorType two = VectorType::get({2}, shape.element);
  for (int64_t r = 0; r < 2; ++r) {
    Value position = code.add(first, ownRow(r));
    Value row = code.mul(code.widen(position), to.stride);
    auto storeRow = [&]() -> Values {
      for (int64_t c = 0; c < to.width; c += kBlockColumns) {
        Value column = code.add(code.mul(code.quad, 2), c);
        auto value = [&](int64_t e) {
          return code.fromF32(code.mul(sums[c / 2 + 2 * r + e], factors[r]),
                              shape.element);
        };
        auto at = [&](int64_t e) {
          return code.add(row, code.widen(code.add(column, e)));
        };
        auto storeAll = [&]() -> Values {
          if (pairs) {
            Value pair = vector::FromElementsOp::create(
                code, two, ValueRange{value(0), value(1)});
            code.storeDevice(pair, to.base, at(0));
          } else {
            code.storeDevice(value(0), to.base, at(0));
            code.choose(
                code.isLess(code.add(column, 1), to.width),
                [&]() -> Values {
                  code.storeDevice(value(1), to.base, at(1));
                  return {};
                },
                [] { return Values(); });
          }
          return {};
        };
        if (c + kBlockColumns <= to.width)
          storeAll();
        else
          code.choose(code.isLess(column, to.width), storeAll,
                      [] { return Values(); });
      }
      return {};
    };
    code.choose(code.isLess(position, shape.length), storeRow,
                [] { return Values(); });
  }
}

//===----------------------------------------------------------------------===//
// Scores and rows
//===----------------------------------------------------------------------===//

AttentionTile::Values AttentionTile::masked(ValueRange scores,
                                            const Scores &where) {
  // Only tiles at the diagonal have anything to hide.
  Value lastKey, firstQuery;
  if (where.keysAreRows) {
    lastKey = code.add(where.firstOwn, division.ownRows() - 1);
    firstQuery = where.firstOfTile;
  } else {
    lastKey = code.add(where.firstOfTile, division.tileRows - 1);
    firstQuery = where.firstOwn;
  }
  return code.choose(
      code.isLess(firstQuery, lastKey),
      [&] {
        Value lowest = code.f32(kLowest);
        Value column = code.add(where.firstOfTile, code.mul(code.quad, 2));
        Values result(scores);
        for (int64_t r = 0; r < 2; ++r) {
          Value row = code.add(where.firstOwn, ownRow(r));
          // The row's number among the columns of this thread.
          Value number = code.sub(row, column);
          for (int64_t c = 0; c < division.tileRows; c += kBlockColumns)
            for (int64_t e = 0; e < 2; ++e) {
              Value here = code.i32(c + e);
              Value hidden = where.keysAreRows ? code.isLess(here, number)
                                               : code.isLess(number, here);
              Value &score = result[c / 2 + 2 * r + e];
              score = code.select(hidden, lowest, score);
            }
        }
        return result;
      },
      [&] { return Values(scores); });
}

/// Part `part` of `parts` of dot(a[row], tile[tileRow]): every parts-th vector,
/// or element where rows begin anywhere.
Value AttentionTile::sumOfProducts(const Matrix &a, Value row, Value tile,
                                   Value tileRow, Value part, int64_t parts) {
  int64_t size = copiesVectors(a.width) ? kVector / elementBytes() : 1;
  Type type = shape.element;
  if (size > 1)
    type = VectorType::get({size}, type);
  Value base = code.mul(code.widen(row), a.stride);
  Value shared = code.add(tile, code.mul(tileRow, strideBytes()));
  return code.repeat(
      part, code.i32(a.width / size), parts, code.f32(0),
      [&](Value index, ValueRange old) -> Values {
        Value from = code.add(base, code.mul(code.widen(index), size));
        Value left = code.loadDevice(type, a.base, from);
        Value right = code.loadShared(
            type, code.add(shared, code.mul(index, size * elementBytes())));
        Value sum = old[0];
        for (int64_t i = 0; i < size; ++i) {
          auto at = [&](Value of) {
            return code.toF32(size > 1 ? element(code, of, i) : of);
          };
          sum = code.fma(at(left), at(right), sum);
        }
        return {sum};
      })[0];
}

void AttentionTile::copyForRowNumbers(const RowSource &source, Value first,
                                      int64_t rows, Value step) {
  copy(source.out, first, rows, outTile(step));
  auto copyOne = [&]() -> Values {
    constexpr int64_t bytes = 4;
    Value position = code.add(first, code.thread);
    Value exists = code.isLess(position, shape.length);
    position = code.select(exists, position, code.i32(0));
    Value offset = code.add(code.mul(code.widen(source.head), shape.length),
                            code.widen(position));
    Value to = code.add(lseCopy(step), code.mul(code.thread, bytes));
    copyAsync(
        code, code.sharedAddress(to),
        code.address(code.toDevice(source.lse), code.getF32Type(), offset),
        bytes, code.select(exists, code.i32(bytes), code.i32(0)));
    return {};
  };
  code.choose(code.isLess(code.thread, rows), copyOne, [] { return Values(); });
}

/// Part `part` of `parts` of dot(a[row], b[row]) for tiles of `rows` rows:
/// vectors side by side, which no other thread of a quarter of a warp meets in
/// a bank where rows are one panel wide.
Value AttentionTile::sumOfCopies(Value a, Value b, int64_t rows, Value row,
                                 Value part, int64_t parts) {
  int64_t size = kVector / elementBytes();
  int64_t count = shape.valueWidth / size / parts;
  auto type = VectorType::get({size}, shape.element);
  Value first = code.mul(part, count), total;
  for (int64_t v = 0; v < count; ++v) {
    Value vector = code.add(first, v), sum = code.f32(0);
    Value left = code.loadShared(type, vectorOf(a, rows, row, vector));
    Value right = code.loadShared(type, vectorOf(b, rows, row, vector));
    for (int64_t i = 0; i < size; ++i)
      sum = code.fma(code.toF32(element(code, left, i)),
                     code.toF32(element(code, right, i)), sum);
    total = total ? code.add(total, sum) : sum;
  }
  return total;
}

void AttentionTile::writeRowNumbers(const RowSource &source, Value dout,
                                    Value first, int64_t rows, Value step) {
  int64_t parts = division.threads() / rows;
  Value row = code.div(code.thread, parts), part = code.rem(code.thread, parts);
  Value position = code.add(first, row);
  Value exists = code.isLess(position, shape.length);
  Value sum, logSum;
  if (isAsync()) {
    logSum = code.loadShared(code.getF32Type(),
                             code.add(lseCopy(step), code.mul(row, 4)));
    sum = sumOfCopies(outTile(step), dout, rows, row, part, parts);
  } else {
    position = code.select(exists, position, code.i32(shape.length - 1));
    Value offset = code.add(code.mul(code.widen(source.head), shape.length),
                            code.widen(position));
    logSum =
        code.loadDevice(code.getF32Type(), code.toDevice(source.lse), offset);
    sum = sumOfProducts(source.out, position, dout, row, part, parts);
  }
  sum = code.reduceLanes(sum, parts,
                         [&](Value a, Value b) { return code.add(a, b); });
  // Weights of a query that does not exist are zero, whatever the last one has.
  logSum = code.select(exists, code.mul(logSum, code.f32(-kLog2E)),
                       code.f32(kLowest));
  Value to = code.add(rowNumbers(), code.mul(row, 4));
  code.storeShared(logSum, to);
  code.storeShared(sum, code.add(to, 4 * rows));
}

Value AttentionTile::logSum(Value row) {
  return code.loadShared(code.getF32Type(),
                         code.add(rowNumbers(), code.mul(row, 4)));
}

Value AttentionTile::delta(Value row, int64_t rows) {
  return code.loadShared(
      code.getF32Type(),
      code.add(code.add(rowNumbers(), code.mul(row, 4)), 4 * rows));
}
