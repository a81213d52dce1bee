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
#include "reprise/Codegen/Common/Numbers.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

static constexpr int64_t kRowsOfTask = 64;

namespace {
/// Emits tasks over the rows of positions.
class MoveEmitter {
public:
  MoveEmitter(Code &code, Kernel &kernel, const ColumnMoves &moves,
              Operation *op)
      : code(code), kernel(kernel), all(moves), op(op) {}

  void emit();

private:
  void emitRow(Value row);
  void copy(const ColumnMove &move, Value fromRow, Value toRow);
  void sum(const ColumnMove &move, Value firstHead, Value row);
  void forVectors(int64_t count, function_ref<void(Value, Value)> body);
  Value place(const ColumnRun &run, Value row, Value column) {
    return code.add(code.add(code.mul(row, run.stride), column), run.first);
  }
  Value load(const ColumnRun &run, Value row, Value column, Value mask) {
    return code.load(code.lanesOf(all.element),
                     addressOf(kernel, op, run.index), place(run, row, column),
                     mask);
  }
  void store(Value value, const ColumnRun &run, Value row, Value column,
             Value mask) {
    code.store(value, kernel.outputs[run.index], place(run, row, column), mask);
  }

  Code &code;
  Kernel &kernel;
  const ColumnMoves &all;
  Operation *op;
};
} // namespace

/// Calls `body` for each vector of `count` columns, with the mask of the last
/// if it is not whole.
void MoveEmitter::forVectors(int64_t count,
                             function_ref<void(Value, Value)> body) {
  int64_t whole = count / kLanes * kLanes;
  if (whole > 0)
    code.loop(code.i64(0), code.i64(whole), kLanes,
              [&](Value column) { body(column, {}); });
  if (whole < count)
    body(code.i64(whole), code.maskOf(count - whole));
}

/// Columns of row `fromRow` become those of row `toRow`.
void MoveEmitter::copy(const ColumnMove &move, Value fromRow, Value toRow) {
  forVectors(move.count, [&](Value column, Value mask) {
    store(load(move.from, fromRow, column, mask), move.to, toRow, column, mask);
  });
}

/// The sum of the rows of all heads, the first of which is `firstHead`, goes to
/// row `row`.
void MoveEmitter::sum(const ColumnMove &move, Value firstHead, Value row) {
  forVectors(move.count, [&](Value column, Value mask) {
    auto loadExact = [&](Value head) -> Value {
      return toF32(code, load(move.from, head, column, mask));
    };
    Value total =
        code.loop(code.add(firstHead, 1), code.add(firstHead, all.heads), 1,
                  ValueRange(loadExact(firstHead)),
                  [&](Value head, ValueRange old) -> SmallVector<Value> {
                    return {code.add(old[0], loadExact(head))};
                  })[0];
    store(fromF32(code, total, all.element), move.to, row, column, mask);
  });
}

/// What is of the position first, then head by head, then sums over heads.
void MoveEmitter::emitRow(Value row) {
  auto forMoves = [&](ArrayRef<ColumnMove::Rows> kinds,
                      function_ref<void(const ColumnMove &)> body) {
    for (const ColumnMove &move : all.moves)
      if (llvm::is_contained(kinds, move.rows))
        body(move);
  };
  using Rows = ColumnMove::Rows;
  forMoves({Rows::Each}, [&](const ColumnMove &move) { copy(move, row, row); });
  if (!all.hasHeads())
    return;
  Value first = code.mul(row, all.heads);
  code.loop(first, code.add(first, all.heads), 1, [&](Value head) {
    forMoves({Rows::Heads, Rows::Repeat}, [&](const ColumnMove &move) {
      copy(move, move.rows == Rows::Heads ? head : row, head);
    });
  });
  forMoves({Rows::Sum}, [&](const ColumnMove &move) { sum(move, first, row); });
}

void MoveEmitter::emit() {
  kernel.function->setAttr(
      rt::kTasksAttr,
      code.getI64IntegerAttr(llvm::divideCeil(all.positions, kRowsOfTask)));
  kernel.tasks(code, [&](Value task) {
    Value first = code.mul(task, kRowsOfTask);
    Value end = code.min(code.add(first, kRowsOfTask), code.i64(all.positions));
    code.loop(first, end, 1, [&](Value row) { emitRow(row); });
  });
}

LogicalResult codegen::emitColumnMoves(Code &code, const ColumnMoves &moves,
                                       Operation *op, Kernel &kernel) {
  MoveEmitter(code, kernel, moves, op).emit();
  return success();
}
