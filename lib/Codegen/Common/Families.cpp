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
#include "reprise/Dialect/RT/RTOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

bool codegen::isSegmented(func::FuncOp kernel) {
  DenseSet<int64_t> lengths;
  bool packs = false;
  for (Operation &op : kernel.getBody().front()) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic) {
      if (!isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::EmptyOp,
               linalg::PackOp, func::ReturnOp>(op))
        return false;
      packs |= isa<linalg::PackOp>(op);
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
  return lengths.size() > 1 || packs;
}

/// Whether two loops differ in their lengths and buffers alone.
static bool isAlike(const Segment &one, const Segment &other) {
  linalg::GenericOp a = one.loop, b = other.loop;
  return one.packed == other.packed &&
         a.getIndexingMaps() == b.getIndexingMaps() &&
         a->getNumResults() == b->getNumResults() &&
         OperationEquivalence::isRegionEquivalentTo(
             &a.getRegion(), &b.getRegion(),
             OperationEquivalence::IgnoreLocations);
}

/// The columns of the matrix that `pack` packs as GEMMs read it.
static FailureOr<int64_t> getPackedCols(linalg::PackOp pack) {
  auto source = dyn_cast<RankedTensorType>(pack.getSource().getType());
  std::optional<SmallVector<int64_t, 4>> shape;
  if (source && source.getRank() == 2 && source.getElementType().isBF16())
    shape = rt::getPackedShape(source.getDimSize(0), source.getDimSize(1));
  if (!shape || pack.getInnerDimsPos() != ArrayRef<int64_t>({1, 0}) ||
      pack.getOuterDimsPerm() != ArrayRef<int64_t>({1, 0}) ||
      pack.getDestType().getShape() != ArrayRef<int64_t>(*shape))
    return pack.emitOpError("needs a matrix of bf16 packed as GEMMs read "
                            "it, [cols/32][rows/2][32][2], but got ")
           << pack.getSource().getType() << " as " << pack.getDestType();
  return source.getDimSize(1);
}

/// What `returned` is, packed or not.
static Value getStored(Value returned) {
  auto pack = returned.getDefiningOp<linalg::PackOp>();
  return getRoot(pack ? pack.getSource() : returned);
}

static FailureOr<Segment> getSegment(linalg::GenericOp loop,
                                     func::FuncOp kernel) {
  Segment segment = {loop, loop.getStaticLoopRanges()[0], {}, std::nullopt};
  for (OpOperand *input : loop.getDpsInputOperands())
    segment.buffers.push_back(
        cast<BlockArgument>(getRoot(input->get())).getArgNumber());
  auto returned = kernel.getBody().front().getTerminator()->getOperands();
  for (OpResult result : loop->getResults()) {
    auto isIt = [&](Value value) { return getStored(value) == result; };
    if (llvm::count_if(returned, isIt) != 1)
      return loop.emitOpError("needs its results to be results of the kernel, "
                              "each once, where loops have different lengths");
    auto place = llvm::find_if(returned, isIt);
    segment.buffers.push_back(kernel.getNumArguments() +
                              (place - returned.begin()));
    auto pack = (*place).getDefiningOp<linalg::PackOp>();
    if (!pack)
      continue;
    if (segment.packed)
      return pack.emitOpError("needs to be the only one of a loop's results");
    if (!loop.getBody()->getOps<linalg::IndexOp>().empty())
      return pack.emitOpError("needs a loop whose elements are the same "
                              "wherever they are, but got one with an index");
    FailureOr<int64_t> cols = getPackedCols(pack);
    if (failed(cols))
      return failure();
    segment.packed = result.getResultNumber(), segment.cols = *cols;
  }
  return segment;
}

FailureOr<std::vector<Family>> codegen::getFamilies(func::FuncOp kernel) {
  std::vector<Family> families;
  Operation *exit = kernel.getBody().front().getTerminator();
  for (auto [index, value] : llvm::enumerate(exit->getOperands()))
    if (!getStored(value).getDefiningOp<linalg::GenericOp>())
      return kernel.emitOpError(
                 "needs results that its loops make, where these "
                 "have different lengths or are packed, but #")
             << index << " is another value";
  for (auto loop : kernel.getOps<linalg::GenericOp>()) {
    FailureOr<Segment> segment = getSegment(loop, kernel);
    if (failed(segment))
      return failure();
    auto family = llvm::find_if(families, [&](const Family &each) {
      return isAlike(each.segments.front(), *segment);
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
      int64_t pairs = 0, ofBlock = block;
      if (segment.packed) {
        pairs = std::max<int64_t>(block / (2 * segment.cols), 1);
        ofBlock = pairs * 2 * segment.cols;
      }
      pairsOfBlock.push_back(pairs);
      cols.push_back(segment.cols);
      blocks.push_back(llvm::divideCeil(segment.length, ofBlock));
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
