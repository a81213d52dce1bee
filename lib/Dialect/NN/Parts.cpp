//===- Parts.cpp - From a value to parts of it, and back --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Dialect/NN/Parts.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

Operation *nn::createPart(OpBuilder &builder, Location location, Value whole,
                          StringRef axis, int64_t dim, int64_t ranks) {
  auto type = cast<RankedTensorType>(whole.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] /= ranks;
  return SliceOp::create(builder, location, type.clone(shape), whole, axis,
                         dim);
}

Operation *nn::createWhole(OpBuilder &builder, Location location, Value block,
                           Operation *part) {
  auto slice = cast<SliceOp>(part);
  return AllGatherOp::create(builder, location, slice.getInput().getType(),
                             block, Word::Invariant, slice.getAxis(),
                             slice.getDim());
}

Value nn::getWhole(Operation *part) {
  auto slice = dyn_cast<SliceOp>(part);
  return slice ? Value(slice.getInput()) : Value();
}

bool nn::makesWhole(Operation *op, Operation *part) {
  auto gather = dyn_cast<AllGatherOp>(op);
  auto slice = dyn_cast<SliceOp>(part);
  return gather && slice && gather.getAxis() == slice.getAxis() &&
         gather.getDim() == slice.getDim() &&
         gather.getOut().getType() == slice.getInput().getType();
}

StringRef nn::getAxis(Operation *op) {
  auto axis = op->getAttrOfType<StringAttr>("axis");
  return axis ? axis.getValue() : StringRef();
}

bool nn::makesInvariant(Operation *op) {
  if (auto sum = dyn_cast<AllReduceOp>(op))
    return !sum.getMembers();
  return isa<AllGatherOp>(op);
}
