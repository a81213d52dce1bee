//===- NNFurtherOps.cpp - Prediction of further tokens --------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Verifiers, costs and derivatives of what later positions are read with, and
// of the term of the loss.
//
//===----------------------------------------------------------------------===//

#include "Verify.h"
#include "reprise/Dialect/NN/NNOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

/// That the positions of `some` are those of `all` from `from` on.
static LogicalResult verifyRange(Operation *op, Shaped all, Shaped some,
                                 int64_t from) {
  Dims dims(op);
  if (failed(dims.match({all, some}))) // C2
    return failure();
  if (from < 0 || from > dims['T'] - dims['U']) // C3
    return op->emitOpError("needs the ")
           << dims['U'] << " positions of '" << some.name << "' to be of the "
           << dims['T'] << " of '" << all.name << "', but they begin at "
           << from;
  return success();
}

LogicalResult CropPositionsOp::verify() {
  bool isOfIds = getShape(getInput()).size() == 2;
  return verifyRange(*this, {"input", getInput(), isOfIds ? "BT" : "BTC"},
                     {"out", getOut(), isOfIds ? "BU" : "BUC"},
                     int64_t(getFrom()));
}

int64_t CropPositionsOp::getFlops() { return 0; }

LogicalResult PadPositionsOp::verify() {
  return verifyRange(*this, {"out", getOut(), "BTC"},
                     {"input", getInput(), "BUC"}, int64_t(getFrom()));
}

int64_t PadPositionsOp::getFlops() { return 0; }

LogicalResult CropPositionsOp::buildVjp(OpBuilder &builder,
                                        ArrayRef<Value> cotangents,
                                        ArrayRef<bool> needed,
                                        MutableArrayRef<Value> gradients) {
  if (needed[0])
    gradients[0] = PadPositionsOp::create(
        builder, getLoc(), getInput().getType(), cotangents[0], getFromAttr());
  return success();
}

LogicalResult PadPositionsOp::buildVjp(OpBuilder &builder,
                                       ArrayRef<Value> cotangents,
                                       ArrayRef<bool> needed,
                                       MutableArrayRef<Value> gradients) {
  if (needed[0])
    gradients[0] = CropPositionsOp::create(
        builder, getLoc(), getInput().getType(), cotangents[0], getFromAttr());
  return success();
}

//===----------------------------------------------------------------------===//
// The loss
//===----------------------------------------------------------------------===//

/// A product and a sum.
int64_t TrainingTermOp::getFlops() { return 2; }

LogicalResult TrainingTermOp::buildVjp(OpBuilder &builder,
                                       ArrayRef<Value> cotangents,
                                       ArrayRef<bool> needed,
                                       MutableArrayRef<Value> gradients) {
  if (needed[0])
    gradients[0] = cotangents[0];
  // Of a constant it is one, which a head in chunks asks for.
  if (needed[1])
    gradients[1] = BroadcastOp::create(builder, getLoc(), getTerm().getType(),
                                       cotangents[0], getFactorAttr());
  return success();
}
