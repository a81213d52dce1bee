//===- KernelBody.cpp - What a kernel is made of ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Codegen/Common/KernelBody.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "reprise/Codegen/Common/LoopNest.h"
#include "reprise/Dialect/RT/RTOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

static LogicalResult checkBuffers(func::FuncOp source) {
  if (source.isExternal() || !source.getBody().hasOneBlock())
    return source.emitOpError("needs a body of one block to be a kernel");
  auto hasBuffer = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape() || tensor.getNumElements() == 0)
      return false;
    Type element = tensor.getElementType();
    return element.isF32() || element.isBF16() || element.isInteger(32) ||
           element.isInteger(64);
  };
  for (TypeRange types : {TypeRange(source.getArgumentTypes()),
                          TypeRange(source.getResultTypes())})
    for (Type type : types)
      if (!hasBuffer(type))
        return source.emitOpError("needs tensors of static shape that have "
                                  "elements of f32, bf16, i32 or i64, but got ")
               << type;
  return success();
}

/// Whether the kernel returns the results of `found`, in order.
static LogicalResult checkResults(func::FuncOp source, Operation *found) {
  Operation *exit = source.getBody().front().getTerminator();
  if (exit->getNumOperands() != found->getNumResults())
    return found->emitOpError("needs its kernel to return all ")
           << found->getNumResults() << " results, but it returns "
           << exit->getNumOperands();
  for (auto [index, value] : llvm::enumerate(exit->getOperands()))
    if (index >= found->getNumResults() ||
        getRoot(value) != found->getResult(index))
      return found->emitOpError(
                 "needs to be what its kernel returns, result by "
                 "result, but #")
             << index << " is another value";
  return success();
}

/// Whether what `found` reads is given to the kernel, and not overwritten.
static LogicalResult checkOperands(func::FuncOp source, Operation *found) {
  // Their tasks read what other tasks have written, or write what they read;
  // but a GEMM reads each element that it adds to before it writes it.
  auto gemm = dyn_cast<rt::GemmOp>(found);
  Value addend = gemm ? Value(gemm.getAddend()) : Value();
  if (!isa<rt::ScatterAddOp>(found))
    for (unsigned i = 0; i < source.getNumArguments(); ++i)
      if ((source.getArgAttr(i, rt::kInPlaceAttr) &&
           source.getArgument(i) != addend) ||
          source.getArgAttr(i, rt::kMayAliasAttr))
        return found->emitOpError("needs buffers of its own, but argument #")
               << i << " of its kernel shares that of a result";
  for (Value operand : found->getOperands())
    if (!isa<BlockArgument>(getRoot(operand)) &&
        !(isa<rt::ScatterAddOp>(found) &&
          getRoot(operand).getDefiningOp<linalg::FillOp>()))
      return found->emitOpError("needs operands that its kernel is given");
  return success();
}

FailureOr<Operation *> codegen::getKernelOp(func::FuncOp source) {
  if (failed(checkBuffers(source)))
    return failure();
  Operation *found = nullptr, *other = nullptr;
  for (Operation &op : source.getBody().front()) {
    if (isa<rt::AttentionOp, rt::AttentionBackwardOp, rt::ScatterAddOp,
            rt::BlockSumsOp, rt::ChooseExpertsOp, rt::ExpertWeightsOp,
            rt::ExpertWeightsBackwardOp, rt::SortRowsOp, rt::CountRowsOp,
            rt::CountChoicesOp, rt::SplitColumnsOp, rt::JoinColumnsOp,
            rt::LatentHeadsOp, rt::LatentHeadsBackwardOp, rt::GemmOp>(op)) {
      if (found)
        other = &op;
      found = &op;
    } else if (!isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp,
                    tensor::EmptyOp, linalg::FillOp, arith::ConstantOp,
                    func::ReturnOp>(op)) {
      other = &op;
    }
  }
  if (!found)
    return found;
  if (other) {
    InFlightDiagnostic error = found->emitOpError("needs a kernel of its own");
    error.attachNote(other->getLoc()) << "but shares it with this op";
    return error;
  }
  if (failed(checkResults(source, found)) ||
      failed(checkOperands(source, found)))
    return failure();
  return found;
}

bool codegen::drawsRandomWords(func::FuncOp source) {
  return source.walk([](rt::RandomWordOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}
