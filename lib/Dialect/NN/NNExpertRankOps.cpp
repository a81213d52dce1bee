//===- NNExpertRankOps.cpp - Experts on several ranks ---------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Dialect/NN/NNExpertRankOps.h"
#include "Verify.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

/// That `all` has offsets of each rank along `axis`.
static LogicalResult verifyAll(Operation *op, Value all, StringAttr axis) {
  if (failed(verifyAxis(op, axis))) // C2
    return failure();
  ArrayRef<int64_t> shape = getShape(all);
  if (shape.size() != 2 || shape[1] < 2 || (shape[1] - 1) % shape[0] != 0) // C1
    return op->emitOpError("needs 'all' to be [n, E + 1] with n that divides "
                           "E, but got ")
           << all.getType();
  auto module = op->getParentOfType<ModuleOp>();
  if (!module || !module->hasAttr(kMeshAttr))
    return success();
  int64_t ranks = getAxisSize(module, axis);
  if (shape[0] != ranks) // C2
    return op->emitOpError("needs offsets of the ")
           << ranks << " ranks along " << axis << ", but got " << all.getType();
  return success();
}

LogicalResult GatherOffsetsOp::verify() {
  if (failed(verifyAll(*this, getAll(), getAxisAttr())))
    return failure();
  ArrayRef<int64_t> all = getShape(getAll());
  if (getShape(getOffsets()) == all.drop_front() &&
      getShape(getOwn()) == ArrayRef<int64_t>{(all[1] - 1) / all[0] + 1}) // C1
    return success();
  return emitOpError("needs 'offsets' to be [E + 1] and 'own' [E/n + 1] of ")
         << getAll().getType() << ", but got " << getOffsets().getType()
         << " and " << getOwn().getType();
}

/// Whole numbers.
int64_t GatherOffsetsOp::getFlops() { return 0; }

/// Rows of equal sizes, here and there.
template <typename OpTy>
static LogicalResult verifyRows(OpTy op) {
  if (failed(verifyAll(op, op.getAll(), op.getAxisAttr())))
    return failure();
  ArrayRef<int64_t> from = getShape(op.getInput()), to = getShape(op.getOut());
  if (!from.empty() && !to.empty() && from.drop_front() == to.drop_front())
    return success();
  return op.emitOpError("needs rows of equal sizes, but got ") // C1
         << op.getInput().getType() << " and " << op.getOut().getType();
}

LogicalResult SendRowsOp::verify() { return verifyRows(*this); }
int64_t SendRowsOp::getFlops() { return 0; }

LogicalResult ReturnRowsOp::verify() { return verifyRows(*this); }
int64_t ReturnRowsOp::getFlops() { return 0; }

//===----------------------------------------------------------------------===//
// Derivatives
//===----------------------------------------------------------------------===//

LogicalResult SendRowsOp::buildVjp(OpBuilder &builder,
                                   ArrayRef<Value> cotangents,
                                   ArrayRef<bool> needed,
                                   MutableArrayRef<Value> gradients) {
  if (needed[0])
    gradients[0] = ReturnRowsOp::create(builder, getLoc(), getInput().getType(),
                                        cotangents[0], getAll(), getAxisAttr());
  return success();
}

LogicalResult ReturnRowsOp::buildVjp(OpBuilder &builder,
                                     ArrayRef<Value> cotangents,
                                     ArrayRef<bool> needed,
                                     MutableArrayRef<Value> gradients) {
  if (needed[0])
    gradients[0] = SendRowsOp::create(builder, getLoc(), getInput().getType(),
                                      cotangents[0], getAll(), getAxisAttr());
  return success();
}
