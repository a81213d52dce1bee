//===- ScatterAdd.cpp - Rows added to the rows of a table -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block of threads has 32 rows of the table, 256 columns wide: a thread has a
// column. It looks through all ids, 2048 at a time, makes a list of those that
// are its rows', in order, and adds what the list says to sums in shared
// memory. So every element is added in the order of the tokens, without sorting
// and without atomics; only rows that somebody adds to are read and written.
//
// Without ids, an element of the table is one thread's.
//
//===----------------------------------------------------------------------===//

#include "DeviceKernels.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "reprise/Codegen/Common/Numbers.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;
using namespace reprise::cuda;

static constexpr int64_t kThreads = 256, kWarps = kThreads / kWarp;
static constexpr int64_t kRows = 32, kColumns = kThreads;
/// Ids that a thread looks at in one go, and all of them.
static constexpr int64_t kIds = 8, kTile = kThreads * kIds;
/// Rows whose loads are under way at once.
static constexpr int64_t kSideBySide = 8;

namespace {
class ScatterEmitter {
public:
  ScatterEmitter(DeviceCode &code, rt::ScatterAddOp op, DeviceKernel &kernel)
      : code(code), op(op), kernel(kernel),
        table(cast<RankedTensorType>(op.getSum().getType())),
        rows(cast<RankedTensorType>(op.getRows().getType())),
        cols(table.getDimSize(1)), count(rows.getNumElements() / cols) {}

  LogicalResult emit();

private:
  LogicalResult findStart();
  void emitByPosition();
  void emitByIds();
  /// Ids of a thread: which rows of the table they are, counted from the first
  /// of the group, and whether of those.
  struct Ids {
    SmallVector<Value> rows, isHere;
  };
  Ids look(Value mine, Value groupFirst);
  std::pair<Value, Value> countLower(const Ids &ids, Value first);
  Value tile(Value first, Value groupFirst, Value touched);
  Value addListed(Value length, Value touched);
  /// Of the table before, vectors of `lanes` or a scalar.
  Value before(Type type, Value offset) {
    if (!from)
      return isa<VectorType>(type) ? code.splat(start) : start;
    return code.load(type, from, offset, {}, code.lanes);
  }
  Value loadRow(Value offset, bool vector);

  DeviceCode &code;
  rt::ScatterAddOp op;
  DeviceKernel &kernel;
  RankedTensorType table, rows;
  int64_t cols, count;
  Value start, from; ///< what the table starts from: a number or an address
  Value apart;       ///< whether that is elsewhere: all of it is copied
  Value thread, column, sums, list, totals;
};
} // namespace

LogicalResult ScatterEmitter::findStart() {
  auto fill = getRoot(op.getSum()).getDefiningOp<linalg::FillOp>();
  if (!fill) {
    from = kernel.addressOf(op, 0);
    apart = LLVM::ICmpOp::create(code, LLVM::ICmpPredicate::ne, from,
                                 kernel.outputs[0]);
    return success();
  }
  auto constant = fill.getInputs()[0].getDefiningOp<arith::ConstantOp>();
  if (!constant)
    return op.emitOpError("needs a table that is given or filled with a "
                          "constant");
  start = code.clone(*constant)->getResult(0);
  apart = arith::ConstantOp::create(code, code.getBoolAttr(true));
  return success();
}

/// Of the rows that are added, as f32.
Value ScatterEmitter::loadRow(Value offset, bool vector) {
  Type element = rows.getElementType();
  Value value = code.load(vector ? code.lanesOf(element) : element,
                          kernel.addressOf(op, 1), offset, {}, code.lanes,
                          /*constant=*/true);
  return toF32(code, value);
}

//===----------------------------------------------------------------------===//
// By position
//===----------------------------------------------------------------------===//

void ScatterEmitter::emitByPosition() {
  code.lanes = 4;
  while (cols % code.lanes != 0)
    code.lanes /= 2;
  int64_t length = rows.getDimSize(1), batch = count / length;
  int64_t chunks = table.getNumElements() / code.lanes;
  kernel.setLaunch(code, llvm::divideCeil(chunks, kThreads), kThreads);
  VectorType lanes = code.lanesOf(code.getF32Type());
  Value at = code.mul(code.add(code.mul(code.block(), kThreads), code.thread()),
                      code.lanes);
  code.when(code.less(at, table.getNumElements()), [&] {
    Value isAdded = code.less(at, length * cols);
    code.when(
        isAdded,
        [&] {
          Value sum = before(lanes, at);
          sum = code.loop(
              code.i64(0), code.i64(batch), 1, sum,
              [&](Value entry, ValueRange carried) {
                Value row =
                    loadRow(code.add(code.mul(entry, length * cols), at), true);
                return SmallVector<Value>{code.add(carried[0], row)};
              })[0];
          code.store(sum, kernel.outputs[0], at, {}, code.lanes);
        },
        [&] {
          code.when(apart, [&] {
            code.store(before(lanes, at), kernel.outputs[0], at, {},
                       code.lanes);
          });
        });
  });
}

//===----------------------------------------------------------------------===//
// By ids
//===----------------------------------------------------------------------===//

/// Adds the `length` rows of the list in order: an entry is 32 times the row of
/// `rows`, plus the row of the table in this group. Rows that were added to are
/// bits of `touched`.
Value ScatterEmitter::addListed(Value length, Value touched) {
  Type i32 = code.getI32Type(), f32 = code.getF32Type();
  return code.loop(
      code.i64(0), length, kSideBySide, touched,
      [&](Value first, ValueRange carried) {
        Value bits = carried[0];
        SmallVector<Value> places, values;
        for (int64_t k = 0; k < kSideBySide; ++k) {
          Value number = code.add(first, k);
          Value isThere = code.less(number, length);
          Value entry =
              code.load(i32, list, code.select(isThere, number, code.i64(0)));
          Value row =
              arith::AndIOp::create(code, entry, code.scalar(i32, kRows - 1));
          Value source =
              arith::ShRUIOp::create(code, entry, code.scalar(i32, 5));
          Value at = code.add(
              code.mul(code.cast(source, code.getI64Type()), cols), column);
          values.push_back(
              code.select(isThere, loadRow(at, false), code.f32(0)));
          places.push_back(code.add(
              code.mul(code.cast(row, code.getI64Type()), kColumns), thread));
          bits = arith::OrIOp::create(
              code, bits,
              arith::ShLIOp::create(code, code.scalar(i32, 1), row));
        }
        for (auto [place, value] : llvm::zip(places, values))
          code.store(code.add(code.load(f32, sums, place), value), sums, place);
        return SmallVector<Value>{bits};
      })[0];
}

/// The ids from number `mine` on, as many as a thread looks at.
ScatterEmitter::Ids ScatterEmitter::look(Value mine, Value groupFirst) {
  Type i32 = code.getI32Type();
  Value ids = kernel.addressOf(op, 2);
  Ids found;
  Value none = arith::ConstantOp::create(code, code.getBoolAttr(false));
  auto add = [&](Value id, Value isThere) {
    Value row = code.sub(id, groupFirst);
    Value isRow = arith::CmpIOp::create(code, arith::CmpIPredicate::ult, row,
                                        code.scalar(i32, kRows));
    found.rows.push_back(row);
    found.isHere.push_back(code.select(isThere, isRow, none));
  };
  if (count % kIds == 0) {
    Value isThere = code.less(mine, count);
    Value at = code.select(isThere, mine, code.i64(0));
    Value all = code.load(VectorType::get({kIds}, i32), ids, at, {}, kIds,
                          /*constant=*/true);
    for (int64_t k = 0; k < kIds; ++k)
      add(vector::ExtractOp::create(code, all, k), isThere);
    return found;
  }
  for (int64_t k = 0; k < kIds; ++k) {
    Value at = code.add(mine, k);
    Value isThere = code.less(at, count);
    add(code.load(i32, ids, code.select(isThere, at, code.i64(0)), {}, 1,
                  /*constant=*/true),
        isThere);
  }
  return found;
}

/// Of the ids that are of this group, how many lower threads of the block have
/// in the tile of the ids from `first` on, and how many all have.
std::pair<Value, Value> ScatterEmitter::countLower(const Ids &ids,
                                                   Value first) {
  Type i32 = code.getI32Type();
  Value found = code.scalar(i32, 0);
  for (Value is : ids.isHere)
    found = code.add(found, arith::ExtUIOp::create(code, i32, is));

  // What lower lanes found, and the whole warp: a sum in halves that knows
  // which half it is in.
  Value lane = code.remainder(thread, kWarp), warp = code.divide(thread, kWarp);
  Value lower = code.scalar(i32, 0), ofWarp = found;
  for (int64_t distance = 1; distance < kWarp; distance *= 2) {
    Value other = code.shuffle(ofWarp, distance);
    Value isUpper =
        code.equal(code.remainder(code.divide(lane, distance), 2), 1);
    lower = code.add(lower, code.select(isUpper, other, code.scalar(i32, 0)));
    ofWarp = code.add(ofWarp, other);
  }
  // Tiles take the two rows of totals in turn: one barrier is enough.
  Value turn = code.mul(code.remainder(code.divide(first, kTile), 2), kWarps);
  code.when(code.equal(lane, 0),
            [&] { code.store(ofWarp, totals, code.add(turn, warp)); });
  code.barrier();
  Value length = code.scalar(i32, 0);
  for (int64_t other = 0; other < kWarps; ++other) {
    Value total = code.load(i32, totals, code.add(turn, other));
    Value isLower = code.less(code.i64(other), warp);
    lower = code.add(lower, code.select(isLower, total, code.scalar(i32, 0)));
    length = code.add(length, total);
  }
  return {lower, code.cast(length, code.getI64Type())};
}

/// The ids from `first` on.
Value ScatterEmitter::tile(Value first, Value groupFirst, Value touched) {
  Type i32 = code.getI32Type(), i64 = code.getI64Type();
  Value mine = code.add(first, code.mul(thread, kIds));
  Ids ids = look(mine, groupFirst);
  std::pair<Value, Value> counted = countLower(ids, first);
  return code.loop(
      code.i64(0), code.min(counted.second, 1), 1, touched,
      [&](Value, ValueRange carried) {
        Value place = counted.first;
        for (int64_t k = 0; k < kIds; ++k) {
          Value entry = code.cast(code.add(mine, k), i32);
          entry =
              code.add(code.mul(entry, code.scalar(i32, kRows)), ids.rows[k]);
          code.when(ids.isHere[k],
                    [&] { code.store(entry, list, code.cast(place, i64)); });
          place =
              code.add(place, arith::ExtUIOp::create(code, i32, ids.isHere[k]));
        }
        code.barrier();
        return SmallVector<Value>{addListed(counted.second, carried[0])};
      })[0];
}

void ScatterEmitter::emitByIds() {
  int64_t tableRows = table.getDimSize(0);
  int64_t groups = llvm::divideCeil(tableRows, kRows);
  int64_t slices = llvm::divideCeil(cols, kColumns);
  kernel.setLaunch(code, groups * slices, kThreads);
  sums = kernel.takeShared(code, kRows * kColumns * 4);
  list = kernel.takeShared(code, kTile * 4);
  totals = kernel.takeShared(code, 2 * kWarps * 4);
  code.lanes = 1;

  Type i32 = code.getI32Type(), f32 = code.getF32Type();
  thread = code.thread();
  Value block = code.block();
  Value firstRow = code.mul(code.divide(block, slices), kRows);
  Value given =
      code.add(code.mul(code.remainder(block, slices), kColumns), thread);
  Value isThere = code.less(given, cols);
  column = code.min(given, cols - 1);
  code.loop(code.i64(0), code.i64(kRows), 1, [&](Value row) {
    code.store(code.f32(0), sums, code.add(code.mul(row, kColumns), thread));
  });
  Value groupFirst = code.cast(firstRow, i32);
  if (op.getCoordinate()) { // Among the rows of all ranks.
    Value rank = code.load(code.getI64Type(), kernel.ids,
                           code.i64(int64_t(*op.getCoordinate())));
    groupFirst =
        code.add(groupFirst, code.cast(code.mul(rank, tableRows), i32));
  }
  Value touched = code.loop(
      code.i64(0), code.i64(count), kTile, code.scalar(i32, 0),
      [&](Value first, ValueRange carried) {
        return SmallVector<Value>{tile(first, groupFirst, carried[0])};
      })[0];
  Value rowsHere = code.min(code.sub(code.i64(tableRows), firstRow), kRows);
  code.when(isThere, [&] {
    code.loop(code.i64(0), rowsHere, 1, [&](Value row) {
      Value bit = arith::ShRUIOp::create(code, touched, code.cast(row, i32));
      Value isTouched = arith::TruncIOp::create(code, code.getI1Type(), bit);
      Value isWritten = arith::OrIOp::create(code, isTouched, apart);
      code.when(isWritten, [&] {
        Value at = code.add(code.mul(code.add(firstRow, row), cols), column);
        Value sum =
            code.load(f32, sums, code.add(code.mul(row, kColumns), thread));
        code.store(code.add(before(f32, at), sum), kernel.outputs[0], at);
      });
    });
  });
}

LogicalResult ScatterEmitter::emit() {
  if (failed(findStart()))
    return failure();
  if (count > INT32_MAX / kRows)
    return op.emitOpError("needs at most ")
           << INT32_MAX / kRows << " rows, but got " << count;
  if (op.getIds())
    emitByIds();
  else
    emitByPosition();
  return success();
}

LogicalResult cuda::emitScatterAdd(DeviceCode &code, rt::ScatterAddOp op,
                                   DeviceKernel &kernel) {
  return ScatterEmitter(code, op, kernel).emit();
}
