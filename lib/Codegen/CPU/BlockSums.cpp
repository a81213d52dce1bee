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

#include "RTKernels.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

/// A constant array of i64 beside the kernel, and its address.
static Value constantTable(Code &code, Kernel &kernel, StringRef suffix,
                           ArrayRef<int64_t> values) {
  std::string name = (kernel.function.getName() + suffix).str();
  {
    OpBuilder::InsertionGuard guard(code);
    code.setInsertionPoint(kernel.function);
    auto type = LLVM::LLVMArrayType::get(code.getI64Type(), values.size());
    LLVM::GlobalOp::create(code, type, /*isConstant=*/true,
                           LLVM::Linkage::Internal, name,
                           code.getI64TensorAttr(values));
  }
  return LLVM::AddressOfOp::create(
      code, LLVM::LLVMPointerType::get(code.getContext()), name);
}

LogicalResult codegen::emitBlockSums(Code &code, rt::BlockSumsOp op,
                                     Kernel &kernel) {
  constexpr int64_t kBlock = rt::BlockSumsOp::kBlock;
  // For each operand the block after its last, its elements and its buffer.
  SmallVector<int64_t> ends, sizes, buffers;
  int64_t blocks = 0;
  for (Value input : op.getInputs()) {
    auto type = cast<ShapedType>(input.getType());
    if (!type.getElementType().isF32())
      return op.emitOpError("needs elements of f32, but got ") << type;
    blocks += llvm::divideCeil(type.getNumElements(), kBlock);
    ends.push_back(blocks);
    sizes.push_back(type.getNumElements());
    Value address = addressOf(kernel, op, sizes.size() - 1);
    buffers.push_back(llvm::find(kernel.inputs, address) -
                      kernel.inputs.begin());
  }
  kernel.function->setAttr(rt::kTasksAttr, code.getI64IntegerAttr(blocks));
  Value endTable = constantTable(code, kernel, ".ends", ends);
  Value sizeTable = constantTable(code, kernel, ".sizes", sizes);
  Value bufferTable = constantTable(code, kernel, ".buffers", buffers);

  Type i64 = code.getI64Type();
  VectorType lanes = code.lanesOf(code.getF32Type());
  bool square = op.getSquare();
  kernel.tasks(code, [&](Value task) {
    // Operands whose blocks all come before this one, and where they end.
    SmallVector<Value> found =
        code.loop(code.i64(0), code.i64(ends.size() - 1), 1,
                  {code.i64(0), code.i64(0)}, [&](Value i, ValueRange carried) {
                    Value end = code.load(i64, endTable, i);
                    Value before = arith::CmpIOp::create(
                        code, arith::CmpIPredicate::sle, end, task);
                    return SmallVector<Value>{
                        code.select(before, code.add(i, 1), carried[0]),
                        code.select(before, end, carried[1])};
                  });
    Value operand = found[0];
    Value size = code.load(i64, sizeTable, operand);
    Value base =
        code.load(LLVM::LLVMPointerType::get(code.getContext()), kernel.buffers,
                  code.load(i64, bufferTable, operand));
    Value from = code.mul(code.sub(task, found[1]), kBlock);
    Value to = code.min(code.add(from, kBlock), size);
    Value whole = code.sub(
        to, arith::RemSIOp::create(code, code.sub(to, from), code.i64(kLanes)));

    auto term = [&](Value x) { return square ? code.mul(x, x) : x; };
    SmallVector<Value> sums =
        code.loop(from, whole, kLanes, {code.splatF32(0)},
                  [&](Value c, ValueRange carried) {
                    Value x = code.load(lanes, base, c);
                    return SmallVector<Value>{code.add(carried[0], term(x))};
                  });
    // At most one more, of the lanes that are left.
    sums = code.loop(whole, to, kLanes, sums, [&](Value c, ValueRange carried) {
      Value left = code.splat(code.sub(to, c));
      Value mask = arith::CmpIOp::create(code, arith::CmpIPredicate::slt,
                                         code.iota(i64), left);
      Value sum = code.add(carried[0], term(code.load(lanes, base, c, mask)));
      return SmallVector<Value>{code.select(mask, sum, carried[0])};
    });
    code.store(code.sum(sums[0]), kernel.outputs[0], task);
  });
  return success();
}
