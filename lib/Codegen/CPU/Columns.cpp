//===- Columns.cpp - Kernels that reduce columns ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A task is a strip of 64 columns, four cache lines of f32: each column adds
// its rows in order, in a lane of its own. Rows of a strip are far apart, so
// that a processor does not see where it goes: the strips of a call are taken
// together, some rows at a time, and memory is read row by row. Between such
// blocks sums wait on the stack. Of a strip of bf16, two lines of a row, those
// of later rows are asked for on the way.
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/TypeUtilities.h"
#include "reprise/Codegen/Common/Expressions.h"
#include "reprise/Dialect/RT/RTOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

static constexpr int64_t kStrip = 64;
/// Strips that are taken together at most: 4 KiB of a row in f32.
static constexpr int64_t kTogether = 16;
/// Rows of a block: 8 of so many strips, and more where there are fewer.
static constexpr int64_t kBlock = 8 * kTogether;
/// bf16 is asked for so many rows ahead of its use: 2 KiB of a strip, 32 KiB of
/// all that are taken together, which L1 has room for.
static constexpr int64_t kRowsAhead = 16;

namespace {
class ColumnEmitter {
public:
  ColumnEmitter(Code &code, const LoopNest &nest, Kernel &kernel);

  /// Emits the strips from `first` on, before `end`.
  void emit(Value first, Value end);

private:
  void forEachStrip(Value first, Value end, function_ref<void()> body);
  void enter(Value strip, Value place, int64_t width);
  void begin();
  void addRows(Value from, Value to);
  void fetchAhead(Value row);
  SmallVector<Value> addRow(ValueRange sums);
  void finish();
  Value placeOf(int64_t number);
  SmallVector<Value> loadSums();
  void storeSums(ValueRange sums);
  void storeAll(Role role);

  Code &code;
  const LoopNest &nest;
  Kernel &kernel;
  Expressions here;
  SmallVector<linalg::GenericOp> reductions;
  SmallVector<Type> types; ///< of the sums of a column, as vectors
  int64_t bytes = 0;       ///< of the widest of their elements

  SmallVector<std::pair<Value, Value>> columns; ///< first column, mask
  Value waiting; ///< sums of the strips that are taken together
  Value place;   ///< of the strip's sums there, in vectors of lanes
};
} // namespace

ColumnEmitter::ColumnEmitter(Code &code, const LoopNest &nest, Kernel &kernel)
    : code(code), nest(nest), kernel(kernel), here(code, nest, kernel),
      reductions(nest.reductions()) {
  for (linalg::GenericOp op : reductions)
    for (Value result : op.getResults()) {
      Type type = getElementTypeOrSelf(result);
      types.push_back(code.lanesOf(type));
      bytes = std::max<int64_t>(bytes, type.getIntOrFloatBitWidth() / 8);
    }
  waiting =
      code.scratch(kTogether * kStrip * int64_t(types.size()) * bytes / 4);
}

void ColumnEmitter::enter(Value strip, Value number, int64_t width) {
  here.enterTask();
  Value first = code.mul(strip, kStrip);
  columns.clear();
  for (int64_t c = 0; c < width; c += kLanes)
    columns.push_back({code.add(first, c),
                       width - c < kLanes ? code.maskOf(width - c) : Value()});
  place = code.mul(number, kStrip / kLanes * types.size());
}

/// Emits `body` for each of the strips from `first` on, before `end`.
void ColumnEmitter::forEachStrip(Value first, Value end,
                                 function_ref<void()> body) {
  int64_t whole = nest.cols / kStrip, rest = nest.cols % kStrip;
  code.loop(first, end, 1, [&](Value strip) {
    Value number = code.sub(strip, first);
    auto emit = [&](int64_t width) {
      enter(strip, number, width);
      body();
    };
    if (rest == 0)
      return emit(kStrip);
    if (whole == 0)
      return emit(rest);
    Value isWhole = arith::CmpIOp::create(code, arith::CmpIPredicate::slt,
                                          strip, code.i64(whole));
    code.when(isWhole, [&] { emit(kStrip); }, [&] { emit(rest); });
  });
}

//===----------------------------------------------------------------------===//
// Sums of a strip
//===----------------------------------------------------------------------===//

/// Where sum `number` of the strip waits: as far from the next as the widest
/// is.
Value ColumnEmitter::placeOf(int64_t number) {
  return code.address(waiting, code.getI8Type(),
                      code.mul(code.add(place, number), kLanes * bytes));
}

SmallVector<Value> ColumnEmitter::loadSums() {
  SmallVector<Value> sums;
  for (size_t chunk = 0; chunk < columns.size(); ++chunk)
    for (Type type : types)
      sums.push_back(code.load(type, placeOf(sums.size()), code.i64(0), {},
                               /*aligned=*/kLanes));
  return sums;
}

void ColumnEmitter::storeSums(ValueRange sums) {
  for (auto [number, sum] : llvm::enumerate(sums))
    code.store(sum, placeOf(number), code.i64(0), {}, /*aligned=*/kLanes);
}

/// What the sums start from.
void ColumnEmitter::begin() {
  SmallVector<Value> sums;
  for (auto [c, mask] : columns) {
    here.enterChunk(c, mask);
    for (linalg::GenericOp op : reductions)
      for (unsigned i = 0; i < op.getNumResults(); ++i)
        sums.push_back(here.initial(op, i));
  }
  storeSums(sums);
}

/// Asks for the lines of the strip some rows below `row`, in L1,
/// where elements are of two bytes. Of wider ones a strip has enough lines of a
/// row for the processor to see where it goes, and to ask as well costs more
/// than it gains where they lie in a cache.
void ColumnEmitter::fetchAhead(Value row) {
  constexpr int64_t kBytes = 2, kLine = 64 / kBytes;
  Value below = code.mul(code.add(row, kRowsAhead), nest.cols);
  for (auto [argument, input] :
       llvm::zip(kernel.source.getArguments(), kernel.inputs)) {
    auto type = cast<ShapedType>(argument.getType());
    if (type.getNumElements() != nest.rows * nest.cols ||
        type.getElementTypeBitWidth() != 8 * kBytes)
      continue;
    for (size_t chunk = 0; chunk < columns.size(); chunk += kLine / kLanes) {
      Value at = code.add(below, columns[chunk].first);
      LLVM::Prefetch::create(code,
                             code.address(input, type.getElementType(), at),
                             /*rw=*/false, /*hint=*/3, /*cache=*/1);
    }
  }
}

SmallVector<Value> ColumnEmitter::addRow(ValueRange sums) {
  SmallVector<Value> next;
  for (auto [c, mask] : columns) {
    here.enterChunk(c, mask);
    for (linalg::GenericOp op : reductions)
      llvm::append_range(
          next, here.emit(op, sums.slice(next.size(), op.getNumResults())));
    storeAll(Role::Full);
  }
  return next;
}

void ColumnEmitter::addRows(Value from, Value to) {
  SmallVector<Value> sums =
      code.loop(from, to, 1, loadSums(), [&](Value r, ValueRange carried) {
        here.setTaskAnchor(code.getInsertionBlock()->getParentOp());
        here.enterRow(r);
        fetchAhead(r);
        return addRow(carried);
      });
  here.setTaskAnchor(nullptr);
  storeSums(sums);
}

/// Writes what is made of the sums.
void ColumnEmitter::finish() {
  SmallVector<Value> sums = loadSums();
  unsigned next = 0;
  for (auto [c, mask] : columns) {
    here.enterChunk(c, mask);
    for (linalg::GenericOp op : reductions)
      for (Value result : op.getResults())
        here.set(result, Role::Column, sums[next++]);
    storeAll(Role::Column);
  }
}

void ColumnEmitter::storeAll(Role role) {
  SmallVector<std::pair<const LoopNest::Output *, Value>> stored;
  for (const LoopNest::Output &output : nest.outputs())
    if (output.role == role)
      stored.push_back({&output, here.get(output.root, role)});
  for (auto [output, value] : stored)
    here.store(*output, value);
}

//===----------------------------------------------------------------------===//
// Strips together
//===----------------------------------------------------------------------===//

void ColumnEmitter::emit(Value first, Value end) {
  forEachStrip(first, end, [&] { begin(); });
  Value step =
      arith::DivUIOp::create(code, code.i64(kBlock), code.sub(end, first));
  auto loop = scf::ForOp::create(code, code.i64(0), code.i64(nest.rows), step);
  {
    OpBuilder::InsertionGuard guard(code);
    code.setInsertionPoint(loop.getBody()->getTerminator());
    Value from = loop.getInductionVar();
    Value to = code.min(code.add(from, step), code.i64(nest.rows));
    forEachStrip(first, end, [&] { addRows(from, to); });
  }
  forEachStrip(first, end, [&] { finish(); });
}

LogicalResult codegen::emitColumns(Code &code, const LoopNest &nest,
                                   Kernel &kernel) {
  kernel.function->setAttr(
      rt::kTasksAttr,
      code.getI64IntegerAttr(llvm::divideCeil(nest.cols, kStrip)));
  ColumnEmitter strips(code, nest, kernel);
  code.loop(kernel.begin, kernel.end, kTogether, [&](Value first) {
    strips.emit(first, code.min(code.add(first, kTogether), kernel.end));
  });
  return success();
}
