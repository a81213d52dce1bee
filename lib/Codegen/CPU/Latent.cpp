//===- Latent.cpp - Columns of latent attention -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs of columns go from one row to another, vector by vector. A task is 64
// rows, those of all heads of as many positions.
//
//===----------------------------------------------------------------------===//

#include "RTKernels.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

static constexpr int64_t kRowsOfTask = 64;

static int64_t getColumns(Value value) {
  return cast<ShapedType>(value.getType()).getShape().back();
}

namespace {
/// Rows in memory, `stride` apart, and the first column of a run.
struct Run {
  Value base;
  int64_t stride, first = 0;
};

/// Emits tasks over the rows of `value`.
class ColumnEmitter {
public:
  ColumnEmitter(Code &code, Kernel &kernel, Value value)
      : code(code), kernel(kernel),
        element(cast<ShapedType>(value.getType()).getElementType()),
        rows(cast<ShapedType>(value.getType()).getNumElements() /
             getColumns(value)) {}

  void forEachRow(function_ref<void(Value)> body) {
    kernel.function->setAttr(
        rt::kTasksAttr,
        code.getI64IntegerAttr(llvm::divideCeil(rows, kRowsOfTask)));
    kernel.tasks(code, [&](Value task) {
      Value first = code.mul(task, kRowsOfTask);
      Value end = code.min(code.add(first, kRowsOfTask), code.i64(rows));
      code.loop(first, end, 1, body);
    });
  }

  /// Calls `body` for each vector of `count` columns, with the mask of the last
  /// if it is not whole.
  void forVectors(int64_t count, function_ref<void(Value, Value)> body) {
    int64_t whole = count / kLanes * kLanes;
    if (whole > 0)
      code.loop(code.i64(0), code.i64(whole), kLanes,
                [&](Value column) { body(column, {}); });
    if (whole < count)
      body(code.i64(whole), code.maskOf(count - whole));
  }

  Value place(const Run &run, Value row, Value column) {
    return code.add(code.add(code.mul(row, run.stride), column), run.first);
  }

  Value load(const Run &run, Value row, Value column, Value mask) {
    return code.load(code.lanesOf(element), run.base, place(run, row, column),
                     mask);
  }

  /// `count` columns of row `fromRow` become those of row `toRow`.
  void copy(const Run &from, Value fromRow, const Run &to, Value toRow,
            int64_t count) {
    forVectors(count, [&](Value column, Value mask) {
      code.store(load(from, fromRow, column, mask), to.base,
                 place(to, toRow, column), mask);
    });
  }

  /// The sum of `count` columns of the rows from `first` on, `heads` of them in
  /// order, in f32, goes to row `toRow`.
  void sum(const Run &from, Value first, int64_t heads, const Run &to,
           Value toRow, int64_t count) {
    forVectors(count, [&](Value column, Value mask) {
      auto loadExact = [&](Value row) -> Value {
        Value x = load(from, row, column, mask);
        if (element.isF32())
          return x;
        return arith::ExtFOp::create(code, code.lanesOf(code.getF32Type()), x);
      };
      Value all =
          code.loop(code.add(first, 1), code.add(first, heads), 1,
                    ValueRange(loadExact(first)),
                    [&](Value row, ValueRange old) -> SmallVector<Value> {
                      return {code.add(old[0], loadExact(row))};
                    })[0];
      if (!element.isF32())
        all = arith::TruncFOp::create(code, code.lanesOf(element), all);
      code.store(all, to.base, place(to, toRow, column), mask);
    });
  }

private:
  Code &code;
  Kernel &kernel;
  Type element;
  int64_t rows;
};
} // namespace

LogicalResult codegen::emitColumns(Code &code, rt::SplitColumnsOp op,
                                   Kernel &kernel) {
  int64_t left = getColumns(op.getLeft()), right = getColumns(op.getRight());
  ColumnEmitter columns(code, kernel, op.getInput());
  Value input = addressOf(kernel, op, 0);
  columns.forEachRow([&](Value row) {
    columns.copy({input, left + right}, row, {kernel.outputs[0], left}, row,
                 left);
    columns.copy({input, left + right, left}, row, {kernel.outputs[1], right},
                 row, right);
  });
  return success();
}

LogicalResult codegen::emitColumns(Code &code, rt::JoinColumnsOp op,
                                   Kernel &kernel) {
  int64_t left = getColumns(op.getLeft()), right = getColumns(op.getRight());
  ColumnEmitter columns(code, kernel, op.getOut());
  Value out = kernel.outputs[0];
  columns.forEachRow([&](Value row) {
    columns.copy({addressOf(kernel, op, 0), left}, row, {out, left + right},
                 row, left);
    columns.copy({addressOf(kernel, op, 1), right}, row,
                 {out, left + right, left}, row, right);
  });
  return success();
}

LogicalResult codegen::emitColumns(Code &code, rt::LatentHeadsOp op,
                                   Kernel &kernel) {
  int64_t heads = op.getHeads(), shared = getColumns(op.getShared());
  int64_t key = getColumns(op.getKey()) / heads, own = key - shared;
  int64_t value = getColumns(op.getValue()) / heads;
  ColumnEmitter columns(code, kernel, op.getInput());
  Value input = addressOf(kernel, op, 0), turned = addressOf(kernel, op, 1);
  columns.forEachRow([&](Value row) {
    Value first = code.mul(row, heads);
    code.loop(first, code.add(first, heads), 1, [&](Value head) {
      columns.copy({input, own + value}, head, {kernel.outputs[0], key}, head,
                   own);
      columns.copy({turned, shared}, row, {kernel.outputs[0], key, own}, head,
                   shared);
      columns.copy({input, own + value, own}, head, {kernel.outputs[1], value},
                   head, value);
    });
  });
  return success();
}

LogicalResult codegen::emitColumns(Code &code, rt::LatentHeadsBackwardOp op,
                                   Kernel &kernel) {
  int64_t heads = op.getHeads(), shared = getColumns(op.getDshared());
  int64_t key = getColumns(op.getDkey()) / heads, own = key - shared;
  int64_t value = getColumns(op.getDvalue()) / heads;
  ColumnEmitter columns(code, kernel, op.getDinput());
  Value dkey = addressOf(kernel, op, 0), dvalue = addressOf(kernel, op, 1);
  columns.forEachRow([&](Value row) {
    Value first = code.mul(row, heads);
    code.loop(first, code.add(first, heads), 1, [&](Value head) {
      columns.copy({dkey, key}, head, {kernel.outputs[0], own + value}, head,
                   own);
      columns.copy({dvalue, value}, head, {kernel.outputs[0], own + value, own},
                   head, value);
    });
    columns.sum({dkey, key, own}, first, heads, {kernel.outputs[1], shared},
                row, shared);
  });
  return success();
}
