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

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;
using namespace reprise::cuda;

static constexpr int64_t kThreads = 256, kVector = 16;

static int64_t getColumns(Value value) {
  return cast<ShapedType>(value.getType()).getShape().back();
}

namespace {
/// Rows in memory, `stride` apart, and the first column of a run.
struct Run {
  Value base;
  int64_t stride, first = 0;
};

/// Emits the runs of a kernel over rows of `value`.
class ColumnEmitter {
public:
  ColumnEmitter(DeviceCode &code, DeviceKernel &kernel, Value value,
                ArrayRef<int64_t> widths)
      : code(code), kernel(kernel),
        element(cast<ShapedType>(value.getType()).getElementType()),
        rows(cast<ShapedType>(value.getType()).getNumElements() /
             getColumns(value)) {
    // Buffers that begin anywhere have single elements.
    bool isAligned = countAlignedLanes(kernel.source) * 4 >= kVector;
    code.lanes = isAligned ? kVector * 8 / element.getIntOrFloatBitWidth() : 1;
    for (int64_t width : widths)
      while (width % code.lanes != 0)
        code.lanes /= 2;
  }

  /// `count` columns of each row become those of the same row of `to`.
  void copy(const Run &from, const Run &to, int64_t count) {
    forVectors(rows, count, [&](Value row, Value column) {
      store(load(from, row, column), to, row, column);
    });
  }
  /// Of each row, those of its `heads` rows of `to`.
  void repeat(const Run &from, const Run &to, int64_t heads, int64_t count) {
    forVectors(rows * heads, count, [&](Value head, Value column) {
      store(load(from, code.divide(head, heads), column), to, head, column);
    });
  }
  /// Of each head of a row.
  void copyHeads(const Run &from, const Run &to, int64_t heads, int64_t count) {
    forVectors(rows * heads, count, [&](Value head, Value column) {
      store(load(from, head, column), to, head, column);
    });
  }
  /// Of the `heads` rows of `from` that each row has, the sums.
  void sum(const Run &from, const Run &to, int64_t heads, int64_t count);

  /// Sets how the kernel is launched, when it has all runs.
  void finish() { kernel.setLaunch(code, blocks, kThreads); }

private:
  void forVectors(int64_t rows, int64_t count,
                  function_ref<void(Value, Value)> body);
  Value place(const Run &run, Value row, Value column) {
    return code.add(code.add(code.mul(row, run.stride), column), run.first);
  }
  Value load(const Run &run, Value row, Value column) {
    return code.load(code.lanesOf(element), run.base, place(run, row, column),
                     {}, code.lanes, /*constant=*/true);
  }
  void store(Value value, const Run &run, Value row, Value column) {
    code.store(value, run.base, place(run, row, column), {}, code.lanes);
  }

  DeviceCode &code;
  DeviceKernel &kernel;
  Type element;
  int64_t rows, blocks = 0;
};
} // namespace

/// Calls `body` with the row and the column of each vector of a run.
void ColumnEmitter::forVectors(int64_t rows, int64_t count,
                               function_ref<void(Value, Value)> body) {
  int64_t inRow = count / code.lanes, all = rows * inRow;
  Value block = code.sub(code.block(), code.i64(blocks));
  Value vector = code.add(code.mul(block, kThreads), code.thread());
  Value isBehind = arith::CmpIOp::create(code, arith::CmpIPredicate::sge, block,
                                         code.i64(0));
  code.when(code.both(isBehind, code.less(vector, all)), [&] {
    body(code.divide(vector, inRow),
         code.mul(code.remainder(vector, inRow), code.lanes));
  });
  blocks += llvm::divideCeil(all, kThreads);
}

void ColumnEmitter::sum(const Run &from, const Run &to, int64_t heads,
                        int64_t count) {
  VectorType f32 = code.lanesOf(code.getF32Type());
  forVectors(rows, count, [&](Value row, Value column) {
    Value first = code.mul(row, heads);
    auto loadExact = [&](Value head) -> Value {
      Value x = load(from, head, column);
      return element.isF32() ? x : arith::ExtFOp::create(code, f32, x);
    };
    Value all = code.loop(
        code.add(first, 1), code.add(first, heads), 1,
        ValueRange(loadExact(first)), [&](Value head, ValueRange old) {
          return SmallVector<Value>{code.add(old[0], loadExact(head))};
        })[0];
    if (!element.isF32())
      all = arith::TruncFOp::create(code, code.lanesOf(element), all);
    store(all, to, row, column);
  });
}

LogicalResult cuda::emitColumns(DeviceCode &code, rt::SplitColumnsOp op,
                                DeviceKernel &kernel) {
  int64_t left = getColumns(op.getLeft()), right = getColumns(op.getRight());
  ColumnEmitter columns(code, kernel, op.getInput(), {left, right});
  Value input = kernel.addressOf(op, 0);
  columns.copy({input, left + right}, {kernel.outputs[0], left}, left);
  columns.copy({input, left + right, left}, {kernel.outputs[1], right}, right);
  columns.finish();
  return success();
}

LogicalResult cuda::emitColumns(DeviceCode &code, rt::JoinColumnsOp op,
                                DeviceKernel &kernel) {
  int64_t left = getColumns(op.getLeft()), right = getColumns(op.getRight());
  ColumnEmitter columns(code, kernel, op.getOut(), {left, right});
  Value out = kernel.outputs[0];
  columns.copy({kernel.addressOf(op, 0), left}, {out, left + right}, left);
  columns.copy({kernel.addressOf(op, 1), right}, {out, left + right, left},
               right);
  columns.finish();
  return success();
}

LogicalResult cuda::emitColumns(DeviceCode &code, rt::LatentHeadsOp op,
                                DeviceKernel &kernel) {
  int64_t heads = op.getHeads(), shared = getColumns(op.getShared());
  int64_t key = getColumns(op.getKey()) / heads, own = key - shared;
  int64_t value = getColumns(op.getValue()) / heads;
  ColumnEmitter columns(code, kernel, op.getInput(), {own, shared, value});
  Value input = kernel.addressOf(op, 0), keys = kernel.outputs[0];
  columns.copyHeads({input, own + value}, {keys, key}, heads, own);
  columns.repeat({kernel.addressOf(op, 1), shared}, {keys, key, own}, heads,
                 shared);
  columns.copyHeads({input, own + value, own}, {kernel.outputs[1], value},
                    heads, value);
  columns.finish();
  return success();
}

LogicalResult cuda::emitColumns(DeviceCode &code, rt::LatentHeadsBackwardOp op,
                                DeviceKernel &kernel) {
  int64_t heads = op.getHeads(), shared = getColumns(op.getDshared());
  int64_t key = getColumns(op.getDkey()) / heads, own = key - shared;
  int64_t value = getColumns(op.getDvalue()) / heads;
  ColumnEmitter columns(code, kernel, op.getDinput(), {own, shared, value});
  Value dkey = kernel.addressOf(op, 0), dinput = kernel.outputs[0];
  columns.copyHeads({dkey, key}, {dinput, own + value}, heads, own);
  columns.copyHeads({kernel.addressOf(op, 1), value},
                    {dinput, own + value, own}, heads, value);
  columns.sum({dkey, key, own}, {kernel.outputs[1], shared}, heads, shared);
  columns.finish();
  return success();
}
