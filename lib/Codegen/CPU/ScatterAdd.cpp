//===- ScatterAdd.cpp - Rows added to the rows of a table -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A task is a strip of 64 columns of the table: it adds all rows, in order, so
// that no two tasks write one element and no atomics are needed.
//
//===----------------------------------------------------------------------===//

#include "RTKernels.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "reprise/Codegen/Common/LoopNest.h"
#include "reprise/Codegen/Common/Numbers.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

static constexpr int64_t kStrip = 64;

namespace {
/// Writes the kernel: first the table that there is, then all rows onto it.
class ScatterAdder {
public:
  ScatterAdder(Code &code, rt::ScatterAddOp op, Kernel &kernel)
      : code(code), op(op), kernel(kernel),
        rows(cast<ShapedType>(op.getRows().getType())),
        tableRows(cast<ShapedType>(op.getSum().getType()).getDimSize(0)),
        cols(cast<ShapedType>(op.getSum().getType()).getDimSize(1)),
        count(rows.getNumElements() / cols),
        lanes(code.lanesOf(code.getF32Type())) {}

  LogicalResult emit();

private:
  LogicalResult findStart();
  void emitTask(Value task);
  void emitStrip(Value first, int64_t width);
  void addRows(function_ref<void(Value, Value)> addRow);
  void copy(Value source, Value at, Value row, int64_t width);
  Value loadRow(Value at, Value mask);

  Code &code;
  rt::ScatterAddOp op;
  Kernel &kernel;
  ShapedType rows;
  int64_t tableRows, cols, count;
  VectorType lanes;
  /// What the table starts from: a table, or the same number everywhere.
  Value from, start;
  Value apart; ///< whether that is not the table itself
  Value rowBase, to, idBase;
  Value begin; ///< of the table, among the rows of all ranks
};
} // namespace

/// The table starts from another one, which may be in place, or a constant.
LogicalResult ScatterAdder::findStart() {
  auto fill = getRoot(op.getSum()).getDefiningOp<linalg::FillOp>();
  if (!fill) {
    from = addressOf(kernel, op, 0);
    apart = LLVM::ICmpOp::create(code, LLVM::ICmpPredicate::ne, from,
                                 kernel.outputs[0]);
    return success();
  }
  auto constant = fill.getInputs()[0].getDefiningOp<arith::ConstantOp>();
  if (!constant)
    return op.emitOpError("needs a table that is given or filled with a "
                          "constant");
  start = code.splat(code.clone(*constant)->getResult(0));
  apart = arith::ConstantOp::create(code, code.getBoolAttr(true));
  return success();
}

/// Rows may be bf16; sums are f32.
Value ScatterAdder::loadRow(Value at, Value mask) {
  Value row = code.load(code.lanesOf(rows.getElementType()), rowBase, at, mask);
  return toF32(code, row);
}

/// to[at + c] = source[at + c] (+ rows[row + c]) for `width` columns; the
/// constant in place of a source that nobody gave.
void ScatterAdder::copy(Value source, Value at, Value row, int64_t width) {
  for (int64_t c = 0; c < width; c += kLanes) {
    Value mask = width - c < kLanes ? code.maskOf(width - c) : Value();
    Value value =
        source ? code.load(lanes, source, code.add(at, c), mask) : start;
    if (row)
      value = code.add(value, loadRow(code.add(row, c), mask));
    code.store(value, to, code.add(at, c), mask);
  }
}

/// Calls `addRow` in a loop over all rows, with the row's number and that of
/// the table's.
void ScatterAdder::addRows(function_ref<void(Value, Value)> addRow) {
  if (idBase)
    return code.loop(code.i64(0), code.i64(count), 1, [&](Value r) {
      Value id =
          code.cast(code.load(code.getI32Type(), idBase, r), code.getI64Type());
      if (!begin)
        return addRow(r, id);
      id = code.sub(id, begin);
      code.when(arith::CmpIOp::create(code, arith::CmpIPredicate::ult, id,
                                      code.i64(tableRows)),
                [&] { addRow(r, id); });
    });
  int64_t length = rows.getDimSize(1);
  code.loop(code.i64(0), code.i64(count), length, [&](Value first) {
    code.loop(code.i64(0), code.i64(length), 1, [&](Value position) {
      addRow(code.add(first, position), position);
    });
  });
}

void ScatterAdder::emitStrip(Value first, int64_t width) {
  code.when(apart, [&] {
    code.loop(code.i64(0), code.i64(tableRows), 1, [&](Value r) {
      copy(from, code.add(code.mul(r, cols), first), {}, width);
    });
  });
  addRows([&](Value r, Value id) {
    copy(to, code.add(code.mul(id, cols), first),
         code.add(code.mul(r, cols), first), width);
  });
}

void ScatterAdder::emitTask(Value task) {
  Value first = code.mul(task, kStrip);
  int64_t whole = cols / kStrip, rest = cols % kStrip;
  if (rest == 0)
    return emitStrip(first, kStrip);
  if (whole == 0)
    return emitStrip(first, rest);
  Value isWhole = arith::CmpIOp::create(code, arith::CmpIPredicate::slt, task,
                                        code.i64(whole));
  code.when(
      isWhole, [&] { emitStrip(first, kStrip); },
      [&] { emitStrip(first, rest); });
}

LogicalResult ScatterAdder::emit() {
  int64_t tasks = llvm::divideCeil(cols, kStrip);
  kernel.function->setAttr(rt::kTasksAttr, code.getI64IntegerAttr(tasks));
  if (failed(findStart()))
    return failure();
  rowBase = addressOf(kernel, op, 1);
  to = kernel.outputs[0];
  if (op.getIds())
    idBase = addressOf(kernel, op, 2);
  if (op.getCoordinate())
    begin = code.mul(code.load(code.getI64Type(), kernel.ids,
                               code.i64(int64_t(*op.getCoordinate()))),
                     tableRows);
  kernel.tasks(code, [&](Value task) { emitTask(task); });
  return success();
}

LogicalResult codegen::emitScatterAdd(Code &code, rt::ScatterAddOp op,
                                      Kernel &kernel) {
  return ScatterAdder(code, op, kernel).emit();
}
