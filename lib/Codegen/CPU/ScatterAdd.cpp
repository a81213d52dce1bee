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

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

static constexpr int64_t kStrip = 64;

LogicalResult codegen::emitScatterAdd(Code &code, rt::ScatterAddOp op,
                                      Kernel &kernel) {
  auto table = cast<ShapedType>(op.getSum().getType());
  auto rows = cast<ShapedType>(op.getRows().getType());
  int64_t tableRows = table.getDimSize(0), cols = table.getDimSize(1);
  int64_t count = rows.getNumElements() / cols;
  int64_t tasks = llvm::divideCeil(cols, kStrip);
  kernel.function->setAttr(rt::kTasksAttr, code.getI64IntegerAttr(tasks));

  // The table starts from another one, which may be in place, or a constant.
  auto fill = getRoot(op.getSum()).getDefiningOp<linalg::FillOp>();
  Value start, from, apart;
  if (fill) {
    auto constant = fill.getInputs()[0].getDefiningOp<arith::ConstantOp>();
    if (!constant)
      return op.emitOpError("needs a table that is given or filled with a "
                            "constant");
    start = code.splat(code.clone(*constant)->getResult(0));
    apart = arith::ConstantOp::create(code, code.getBoolAttr(true));
  } else {
    from = addressOf(kernel, op, 0);
    apart = LLVM::ICmpOp::create(code, LLVM::ICmpPredicate::ne, from,
                                 kernel.outputs[0]);
  }
  Value rowBase = addressOf(kernel, op, 1), to = kernel.outputs[0];
  Value idBase = op.getIds() ? addressOf(kernel, op, 2) : Value();
  VectorType lanes = code.lanesOf(code.getF32Type());
  Value begin; // of the table, among the rows of all ranks
  if (op.getCoordinate())
    begin = code.mul(code.load(code.getI64Type(), kernel.ids,
                               code.i64(int64_t(*op.getCoordinate()))),
                     tableRows);

  // Rows may be bf16; sums are f32.
  auto loadRow = [&](Value at, Value mask) -> Value {
    Value row =
        code.load(code.lanesOf(rows.getElementType()), rowBase, at, mask);
    return row.getType() == lanes ? row
                                  : arith::ExtFOp::create(code, lanes, row);
  };
  auto emitStrip = [&](Value first, int64_t width) {
    // to[at + c] = from[at + c] (+ rows[row + c]) for the columns of the strip;
    // the constant in place of what nobody gave.
    auto copy = [&](Value from, Value at, Value row) {
      for (int64_t c = 0; c < width; c += kLanes) {
        Value mask = width - c < kLanes ? code.maskOf(width - c) : Value();
        Value value =
            from ? code.load(lanes, from, code.add(at, c), mask) : start;
        if (row)
          value = code.add(value, loadRow(code.add(row, c), mask));
        code.store(value, to, code.add(at, c), mask);
      }
    };
    code.when(apart, [&] {
      code.loop(code.i64(0), code.i64(tableRows), 1, [&](Value r) {
        copy(from, code.add(code.mul(r, cols), first), {});
      });
    });
    auto addRow = [&](Value r, Value id) {
      copy(to, code.add(code.mul(id, cols), first),
           code.add(code.mul(r, cols), first));
    };
    if (idBase)
      return code.loop(code.i64(0), code.i64(count), 1, [&](Value r) {
        Value id = code.cast(code.load(code.getI32Type(), idBase, r),
                             code.getI64Type());
        if (!begin)
          return addRow(r, id);
        id = code.sub(id, begin);
        code.when(arith::CmpIOp::create(code, arith::CmpIPredicate::ult, id,
                                        code.i64(tableRows)),
                  [&] { addRow(r, id); });
      });
    int64_t length = rows.getDimSize(1);
    code.loop(code.i64(0), code.i64(count), length, [&](Value start) {
      code.loop(code.i64(0), code.i64(length), 1, [&](Value position) {
        addRow(code.add(start, position), position);
      });
    });
  };
  kernel.tasks(code, [&](Value task) {
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
  });
  return success();
}
