//===- Latent.cpp - Columns of latent attention -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each op moves a few runs of columns, which have blocks of their own one
// behind the other. A thread has a vector of 16 bytes of a run, or less where a
// run is no multiple of that. What all heads share is copied to each, and
// backward added up over the heads, in order and in f32.
//
//===----------------------------------------------------------------------===//

#include "DeviceKernels.h"
#include "ExpertKernels.h"
#include "reprise/Codegen/Common/Numbers.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;
using namespace reprise::cuda;

static constexpr int64_t kThreads = 256, kVector = 16;

namespace {
/// Emits the moves of a kernel.
class MoveEmitter {
public:
  MoveEmitter(DeviceCode &code, DeviceKernel &kernel, const ColumnMoves &moves,
              Operation *op);

  void emit();

private:
  void copy(const ColumnMove &move);
  void sum(const ColumnMove &move);
  void forVectors(int64_t rows, int64_t count,
                  function_ref<void(Value, Value)> body);
  Value place(const ColumnRun &run, Value row, Value column) {
    return code.add(code.add(code.mul(row, run.stride), column), run.first);
  }
  Value load(const ColumnRun &run, Value row, Value column) {
    return code.load(code.lanesOf(all.element), kernel.addressOf(op, run.index),
                     place(run, row, column), {}, code.lanes,
                     /*constant=*/true);
  }
  void store(Value value, const ColumnRun &run, Value row, Value column) {
    code.store(value, kernel.outputs[run.index], place(run, row, column), {},
               code.lanes);
  }

  DeviceCode &code;
  DeviceKernel &kernel;
  const ColumnMoves &all;
  Operation *op;
  int64_t blocks = 0;
};
} // namespace

MoveEmitter::MoveEmitter(DeviceCode &code, DeviceKernel &kernel,
                         const ColumnMoves &moves, Operation *op)
    : code(code), kernel(kernel), all(moves), op(op) {
  // Buffers that begin anywhere have single elements.
  bool isAligned = countAlignedLanes(kernel.source) * 4 >= kVector;
  code.lanes =
      isAligned ? kVector * 8 / all.element.getIntOrFloatBitWidth() : 1;
  for (const ColumnMove &move : all.moves)
    while (move.count % code.lanes != 0)
      code.lanes /= 2;
}

/// Calls `body` with the row and the column of each vector of a run.
void MoveEmitter::forVectors(int64_t rows, int64_t count,
                             function_ref<void(Value, Value)> body) {
  int64_t inRow = count / code.lanes, vectors = rows * inRow;
  Value block = code.sub(code.block(), code.i64(blocks));
  Value vector = code.add(code.mul(block, kThreads), code.thread());
  Value isBehind = arith::CmpIOp::create(code, arith::CmpIPredicate::sge, block,
                                         code.i64(0));
  code.when(code.both(isBehind, code.less(vector, vectors)), [&] {
    body(code.divide(vector, inRow),
         code.mul(code.remainder(vector, inRow), code.lanes));
  });
  blocks += llvm::divideCeil(vectors, kThreads);
}

/// From row to row: `row` counts the rows that come out.
void MoveEmitter::copy(const ColumnMove &move) {
  using Rows = ColumnMove::Rows;
  int64_t rows = all.positions * (move.rows == Rows::Each ? 1 : all.heads);
  forVectors(rows, move.count, [&](Value row, Value column) {
    Value from = move.rows == Rows::Repeat ? code.divide(row, all.heads) : row;
    store(load(move.from, from, column), move.to, row, column);
  });
}

void MoveEmitter::sum(const ColumnMove &move) {
  forVectors(all.positions, move.count, [&](Value row, Value column) {
    Value first = code.mul(row, all.heads);
    auto loadExact = [&](Value head) -> Value {
      return toF32(code, load(move.from, head, column));
    };
    Value total = code.loop(
        code.add(first, 1), code.add(first, all.heads), 1,
        ValueRange(loadExact(first)), [&](Value head, ValueRange old) {
          return SmallVector<Value>{code.add(old[0], loadExact(head))};
        })[0];
    store(fromF32(code, total, all.element), move.to, row, column);
  });
}

void MoveEmitter::emit() {
  for (const ColumnMove &move : all.moves)
    if (move.rows == ColumnMove::Rows::Sum)
      sum(move);
    else
      copy(move);
  kernel.setLaunch(code, blocks, kThreads);
}

LogicalResult cuda::emitColumnMoves(DeviceCode &code, const ColumnMoves &moves,
                                    Operation *op, DeviceKernel &kernel) {
  MoveEmitter(code, kernel, moves, op).emit();
  return success();
}
