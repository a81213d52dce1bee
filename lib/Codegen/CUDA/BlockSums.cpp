//===- BlockSums.cpp - Sums of blocks ---------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block of threads has a block of numbers. Which operand it belongs to is
// looked up in a table of constants, so the code does not grow with their
// number.
//
//===----------------------------------------------------------------------===//

#include "DeviceKernels.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;
using namespace reprise::cuda;

static constexpr int64_t kThreads = 256;

namespace {
/// Of each operand the blocks, the elements and the number of its buffer.
struct Operands {
  SmallVector<int64_t> blocks, sizes, buffers;
};
} // namespace

static FailureOr<Operands> getOperands(rt::BlockSumsOp op,
                                       DeviceKernel &kernel) {
  Operands all;
  for (auto [index, input] : llvm::enumerate(op.getInputs())) {
    auto type = cast<ShapedType>(input.getType());
    if (!type.getElementType().isF32())
      return op.emitOpError("needs elements of f32, but got ") << type;
    all.blocks.push_back(
        llvm::divideCeil(type.getNumElements(), rt::BlockSumsOp::kBlock));
    all.sizes.push_back(type.getNumElements());
    all.buffers.push_back(
        llvm::find(kernel.inputs, kernel.addressOf(op, index)) -
        kernel.inputs.begin());
  }
  return all;
}

/// The vector of sums of `thread`, of elements [from, to) of `base` or, if
/// `square` holds, of their squares.
static Value emitSum(DeviceCode &code, Value base, Value from, Value to,
                     Value thread, bool square, int64_t aligned) {
  VectorType lanes = code.lanesOf(code.getF32Type());
  Value first = code.add(from, code.mul(thread, code.lanes));
  Value whole = code.sub(to, code.remainder(code.sub(to, from), code.lanes));
  auto add1 = [&](Value sum, Value c, Value mask) {
    Value x = code.load(lanes, base, c, mask, aligned, /*constant=*/true);
    return code.add(sum, square ? code.mul(x, x) : x);
  };
  // Four at a time, whose loads are under way at once; then one by one.
  int64_t step = kThreads * code.lanes;
  SmallVector<Value> sums(4, code.splatF32(0));
  Value last = code.sub(whole, code.i64(3 * step));
  sums =
      code.loop(first, last, 4 * step, sums, [&](Value c, ValueRange carried) {
        SmallVector<Value> next;
        for (auto [k, sum] : llvm::enumerate(carried))
          next.push_back(add1(sum, code.add(c, k * step), {}));
        return next;
      });
  Value length = arith::MaxSIOp::create(
      code, code.sub(code.add(last, 4 * step - 1), first), code.i64(0));
  Value rest =
      code.add(first, code.mul(code.divide(length, 4 * step), 4 * step));
  Value sum = code.add(code.add(sums[0], sums[1]), code.add(sums[2], sums[3]));
  sum = code.loop(rest, whole, step, sum, [&](Value c, ValueRange carried) {
    return SmallVector<Value>{add1(carried[0], c, {})};
  })[0];
  // The lanes that are left are one thread's: a loop of at most one turn.
  Value mine = code.select(code.equal(thread, 0), whole, to);
  return code.loop(mine, to, code.lanes, sum, [&](Value c, ValueRange carried) {
    Value mask = arith::CmpIOp::create(code, arith::CmpIPredicate::slt,
                                       code.iota(code.getI64Type()),
                                       code.splat(code.sub(to, c)));
    return SmallVector<Value>{add1(carried[0], c, mask)};
  })[0];
}

/// Adds the sums of a block's threads, and writes that of block `number`.
static void storeTotal(DeviceCode &code, DeviceKernel &kernel, Value words,
                       Value thread, Value sum, Value number) {
  Type f32 = code.getF32Type();
  auto add = [&](Value a, Value b) { return code.add(a, b); };
  Value total = code.combineInWarp(code.sum(sum), kWarp, 1, add);
  code.when(code.equal(code.remainder(thread, kWarp), 0),
            [&] { code.store(total, words, code.divide(thread, kWarp)); });
  code.barrier();
  code.when(code.equal(thread, 0), [&] {
    Value all = code.load(f32, words, code.i64(0));
    for (int64_t warp = 1; warp < kThreads / kWarp; ++warp)
      all = add(all, code.load(f32, words, code.i64(warp)));
    code.store(all, kernel.outputs[0], number);
  });
}

LogicalResult cuda::emitBlockSums(DeviceCode &code, rt::BlockSumsOp op,
                                  DeviceKernel &kernel) {
  constexpr int64_t kBlock = rt::BlockSumsOp::kBlock;
  code.lanes = 4;
  const int64_t aligned = countAlignedLanes(kernel.source);
  FailureOr<Operands> operands = getOperands(op, kernel);
  if (failed(operands))
    return failure();
  BlockTable table(code, kernel, operands->blocks);
  Value sizeTable = kernel.constantTable(code, ".sizes", operands->sizes);
  Value bufferTable = kernel.constantTable(code, ".buffers", operands->buffers);
  Value words = kernel.takeShared(code, kThreads / kWarp * 4);
  kernel.setLaunch(code, table.numBlocks, kThreads);

  Type i64 = code.getI64Type();
  Value thread = code.thread(), number = code.block();
  auto [operand, block] = table.find(code, number);
  Value size = code.load(i64, sizeTable, operand);
  Value base = kernel.bufferAt(code, code.load(i64, bufferTable, operand));
  Value from = code.mul(block, kBlock);
  Value to = code.min(code.add(from, kBlock), size);
  Value sum = emitSum(code, base, from, to, thread, op.getSquare(), aligned);
  storeTotal(code, kernel, words, thread, sum, number);
  return success();
}
