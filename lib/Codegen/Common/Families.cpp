//===- Families.cpp - Pointwise loops of different lengths ------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Codegen/Common/Families.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/OperationSupport.h"
#include "reprise/Codegen/Common/LoopNest.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

bool codegen::isSegmented(func::FuncOp kernel) {
  DenseSet<int64_t> lengths;
  for (Operation &op : kernel.getBody().front()) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic) {
      if (!isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::EmptyOp,
               func::ReturnOp>(op))
        return false;
      continue;
    }
    if (generic.getNumLoops() != 1 || generic.getNumReductionLoops() != 0)
      return false;
    lengths.insert(generic.getStaticLoopRanges()[0]);
    for (OpOperand *input : generic.getDpsInputOperands())
      if (!isa<BlockArgument>(getRoot(input->get())))
        return false;
    for (BlockArgument output : generic.getRegionOutputArgs())
      if (!output.use_empty())
        return false;
  }
  return lengths.size() > 1;
}

/// Whether two loops differ in their lengths and buffers alone.
static bool isAlike(linalg::GenericOp a, linalg::GenericOp b) {
  return a.getIndexingMaps() == b.getIndexingMaps() &&
         a->getNumResults() == b->getNumResults() &&
         OperationEquivalence::isRegionEquivalentTo(
             &a.getRegion(), &b.getRegion(),
             OperationEquivalence::IgnoreLocations);
}

static FailureOr<Segment> getSegment(linalg::GenericOp loop,
                                     func::FuncOp kernel) {
  Segment segment = {loop, loop.getStaticLoopRanges()[0], {}};
  for (OpOperand *input : loop.getDpsInputOperands())
    segment.buffers.push_back(
        cast<BlockArgument>(getRoot(input->get())).getArgNumber());
  auto returned = kernel.getBody().front().getTerminator()->getOperands();
  for (Value result : loop.getResults()) {
    auto isIt = [&](Value value) { return getRoot(value) == result; };
    if (llvm::count_if(returned, isIt) != 1)
      return loop.emitOpError("needs its results to be results of the kernel, "
                              "each once, where loops have different lengths");
    segment.buffers.push_back(
        kernel.getNumArguments() +
        (llvm::find_if(returned, isIt) - returned.begin()));
  }
  return segment;
}

FailureOr<std::vector<Family>> codegen::getFamilies(func::FuncOp kernel) {
  std::vector<Family> families;
  for (auto loop : kernel.getOps<linalg::GenericOp>()) {
    FailureOr<Segment> segment = getSegment(loop, kernel);
    if (failed(segment))
      return failure();
    auto family = llvm::find_if(families, [&](const Family &each) {
      return isAlike(each.segments.front().loop, loop);
    });
    if (family == families.end())
      family = families.insert(family, Family());
    family->segments.push_back(*segment);
  }
  return families;
}

SegmentTables::SegmentTables(ArrayRef<Family> families, int64_t block) {
  for (const Family &family : families)
    for (const Segment &segment : family.segments)
      width = std::max(width, int64_t(segment.buffers.size()));
  for (const Family &family : families)
    for (const Segment &segment : family.segments) {
      blocks.push_back(llvm::divideCeil(segment.length, block));
      lengths.push_back(segment.length);
      llvm::append_range(buffers, segment.buffers);
      buffers.resize(lengths.size() * width, 0);
    }
}

func::FuncOp codegen::outline(Code &code, linalg::GenericOp loop,
                              func::FuncOp kernel) {
  OpBuilder::InsertionGuard guard(code);
  code.setInsertionPoint(kernel);
  auto type = code.getFunctionType(ValueRange(loop.getInputs()).getTypes(),
                                   loop.getResultTypes());
  auto alone =
      func::FuncOp::create(code, (kernel.getName() + ".segment").str(), type);
  alone.setPrivate();
  code.setInsertionPointToStart(alone.addEntryBlock());
  IRMapping mapping;
  for (auto [index, operand] : llvm::enumerate(loop.getInputs()))
    mapping.map(operand, alone.getArgument(index));
  for (Value output : loop.getOutputs()) {
    auto shape = cast<RankedTensorType>(output.getType());
    mapping.map(output, tensor::EmptyOp::create(code, shape.getShape(),
                                                shape.getElementType())
                            .getResult());
  }
  Operation *clone = code.clone(*loop, mapping);
  func::ReturnOp::create(code, clone->getResults());
  return alone;
}
