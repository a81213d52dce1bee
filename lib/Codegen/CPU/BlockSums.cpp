//===- BlockSums.cpp - Sums of the blocks of a few arrays -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A task is a block. Which operand it belongs to is looked up in a table of
// constants, so the code does not grow with the number of operands.
//
//===----------------------------------------------------------------------===//

#include "Prefetch.h"
#include "RTKernels.h"
#include "Segments.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

namespace {
/// Of each operand the blocks, the elements and the number of its buffer.
struct Operands {
  SmallVector<int64_t> blocks, sizes, buffers;
};
} // namespace

static FailureOr<Operands> getOperands(rt::BlockSumsOp op, Kernel &kernel) {
  Operands all;
  for (Value input : op.getInputs()) {
    auto type = cast<ShapedType>(input.getType());
    if (!type.getElementType().isF32())
      return op.emitOpError("needs elements of f32, but got ") << type;
    all.blocks.push_back(
        llvm::divideCeil(type.getNumElements(), rt::BlockSumsOp::kBlock));
    all.sizes.push_back(type.getNumElements());
    Value address = addressOf(kernel, op, all.sizes.size() - 1);
    all.buffers.push_back(llvm::find(kernel.inputs, address) -
                          kernel.inputs.begin());
  }
  return all;
}

/// The sum of elements [from, to) or, if `square` holds, of their squares.
static Value emitSum(Code &code, Value base, Value from, Value to,
                     bool square) {
  Type i64 = code.getI64Type();
  VectorType lanes = code.lanesOf(code.getF32Type());
  constexpr int64_t kStep = kSumVectors * kLanes;
  Value rest = code.sub(
      to, arith::RemSIOp::create(code, code.sub(to, from), code.i64(kStep)));

  auto term = [&](Value x) { return square ? code.mul(x, x) : x; };
  SmallVector<Value> sums(kSumVectors, code.splatF32(0));
  sums = code.loop(from, rest, kStep, sums, [&](Value c, ValueRange carried) {
    SmallVector<Value> next;
    for (int64_t v = 0; v < kSumVectors; ++v) {
      Value at = code.add(c, v * kLanes);
      // Nothing but reading is done here, which one line at a time is slow.
      code.prefetch(base, code.getF32Type(), at, 2 * kPrefetchBytes);
      next.push_back(code.add(carried[v], term(code.load(lanes, base, at))));
    }
    return next;
  });
  // At most four more, the last of the lanes that are left.
  for (Value &sum : sums) {
    Value end = code.min(code.add(rest, kLanes), to);
    sum = code.loop(rest, end, kLanes, sum, [&](Value c, ValueRange carried) {
      Value mask =
          arith::CmpIOp::create(code, arith::CmpIPredicate::slt, code.iota(i64),
                                code.splat(code.sub(to, c)));
      Value x = term(code.load(lanes, base, c, mask));
      return SmallVector<Value>{
          code.select(mask, code.add(carried[0], x), carried[0])};
    })[0];
    rest = end;
  }
  return code.sum(sums);
}

LogicalResult codegen::emitBlockSums(Code &code, rt::BlockSumsOp op,
                                     Kernel &kernel) {
  constexpr int64_t kBlock = rt::BlockSumsOp::kBlock;
  FailureOr<Operands> operands = getOperands(op, kernel);
  if (failed(operands))
    return failure();
  TaskTable tasks(code, kernel, operands->blocks);
  kernel.function->setAttr(rt::kTasksAttr,
                           code.getI64IntegerAttr(tasks.numTasks));
  Value sizeTable = constantTable(code, kernel, ".sizes", operands->sizes);
  Value bufferTable =
      constantTable(code, kernel, ".buffers", operands->buffers);

  Type i64 = code.getI64Type();
  kernel.tasks(code, [&](Value task) {
    auto [operand, block] = tasks.find(code, task);
    Value size = code.load(i64, sizeTable, operand);
    Value base =
        code.load(LLVM::LLVMPointerType::get(code.getContext()), kernel.buffers,
                  code.load(i64, bufferTable, operand));
    Value from = code.mul(block, kBlock);
    Value to = code.min(code.add(from, kBlock), size);
    Value sum = emitSum(code, base, from, to, op.getSquare());
    code.store(sum, kernel.outputs[0], task);
  });
  return success();
}
