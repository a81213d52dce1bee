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
#include "reprise/Interfaces/EvenRows.h"

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
  ArrayRef<int64_t> all = getShape(getAll()), own = getShape(getOwn());
  bool isInRounds = getRows().has_value();
  if (isInRounds && int64_t(*getRows()) < 1) // C3
    return emitOpError("needs 'rows' of at least 1, but got ")
           << int64_t(*getRows());
  if (getShape(getOffsets()) == all.drop_front() &&
      own.size() == (isInRounds ? 2 : 1) && own[0] >= 1 &&
      own.back() == (all[1] - 1) / all[0] + 1) // C1, C3
    return success();
  return emitOpError("needs 'offsets' to be [E + 1] and 'own' ")
         << (isInRounds ? "[K, E/n + 1]" : "[E/n + 1]") << " of "
         << getAll().getType() << ", but got " << getOffsets().getType()
         << " and " << getOwn().getType();
}

/// Whole numbers.
int64_t GatherOffsetsOp::getFlops() { return 0; }

LogicalResult RoundOffsetsOp::verify() {
  ArrayRef<int64_t> own = getShape(getOwn());
  int64_t round = getRound();
  if (own.size() == 2 && getShape(getOut()) == own.drop_front() && round >= 0 &&
      round < own[0]) // C1
    return success();
  return emitOpError("needs 'own' to be [K, E/n + 1], 'out' [E/n + 1] and "
                     "'round' below K, but got ")
         << getOwn().getType() << ", " << getOut().getType() << " and "
         << round;
}

/// It is where it is.
int64_t RoundOffsetsOp::getFlops() { return 0; }

/// Rows of equal sizes, here and there.
template <typename OpTy>
static LogicalResult verifyRows(OpTy op) {
  if (failed(verifyAll(op, op.getAll(), op.getAxisAttr())))
    return failure();
  if (op.getRound().has_value() != op.getRows().has_value() ||
      int64_t(op.getRound().value_or(0)) < 0 ||
      int64_t(op.getRows().value_or(1)) < 1)
    return op.emitOpError("needs 'round' of at least 0 together with 'rows' of "
                          "at least 1");
  ArrayRef<int64_t> from = getShape(op.getInput()), to = getShape(op.getOut());
  if (!from.empty() && !to.empty() && from.drop_front() == to.drop_front())
    return success();
  return op.emitOpError("needs rows of equal sizes, but got ") // C1
         << op.getInput().getType() << " and " << op.getOut().getType();
}

LogicalResult SendRowsOp::verify() { return verifyRows(*this); }
int64_t SendRowsOp::getFlops() { return 0; }

LogicalResult ReturnRowsOp::verify() {
  if (getKept() &&
      (!getRound() || getKept().getType() != getOut().getType())) // C3
    return emitOpError("needs 'kept' with 'round' only, and of type ")
           << getOut().getType() << ", but got " << getKept().getType();
  return verifyRows(*this);
}
int64_t ReturnRowsOp::getFlops() { return 0; }

//===----------------------------------------------------------------------===//
// Derivatives
//===----------------------------------------------------------------------===//

/// The same rows go the other way.
template <typename FromTy>
static Value moveBack(OpBuilder &builder, FromTy op, Value cotangent) {
  Type type = op.getInput().getType();
  Operation *made;
  if constexpr (std::is_same_v<FromTy, SendRowsOp>)
    made = ReturnRowsOp::create(builder, op.getLoc(), type, cotangent,
                                op.getAll(), /*kept=*/Value(), op.getAxisAttr(),
                                op.getRoundAttr(), op.getRowsAttr());
  else
    made = SendRowsOp::create(builder, op.getLoc(), type, cotangent,
                              op.getAll(), op.getAxisAttr(), op.getRoundAttr(),
                              op.getRowsAttr());
  if (Attribute rows = op->getAttr(kEvenNNRowsAttr))
    made->setAttr(kEvenNNRowsAttr, rows);
  return made->getResult(0);
}

LogicalResult SendRowsOp::buildVjp(OpBuilder &builder,
                                   ArrayRef<Value> cotangents,
                                   ArrayRef<bool> needed,
                                   MutableArrayRef<Value> gradients) {
  if (needed[0])
    gradients[0] = moveBack(builder, *this, cotangents[0]);
  return success();
}

LogicalResult ReturnRowsOp::buildVjp(OpBuilder &builder,
                                     ArrayRef<Value> cotangents,
                                     ArrayRef<bool> needed,
                                     MutableArrayRef<Value> gradients) {
  if (needed[0])
    gradients[0] = moveBack(builder, *this, cotangents[0]);
  if (getKept() && needed[2]) // Where it has zeros, none of it is trained.
    gradients[2] = cotangents[0];
  return success();
}
