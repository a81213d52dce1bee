//===- MoveFacts.cpp - What stands between the values of ranks ------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MoveFacts.h"
#include "reprise/Dialect/NN/Axes.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/NN/Parts.h"
#include "reprise/Interfaces/Facts.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::remat;

template <typename... Ops>
static bool isAnyOf(StringRef name) {
  auto is = [&](StringRef own) {
    return own.consume_front(nn::NNDialect::getDialectNamespace()) &&
           own.consume_front(".") && own == name;
  };
  return (is(Ops::getOperationName()) || ...);
}

Move remat::getMove(StringRef name, MLIRContext *context) {
  // The bias of a row linear is added to the sum.
  if (isAnyOf<nn::AllReduceOp, nn::ReduceScatterOp, nn::AddBiasOp>(name))
    return Move::Sum;
  if (isAnyOf<nn::JoinLseOp, nn::ScaleOp, nn::AddOp>(name))
    return Move::Loss;
  if (isAnyOf<nn::AllGatherOp, nn::SliceOp, nn::ReplicateOp>(name))
    return Move::Copy;
  std::string full = (nn::NNDialect::getDialectNamespace() + "." + name).str();
  auto op = RegisteredOperationName::lookup(full, context);
  bool hasAxis =
      op && llvm::any_of(op->getAttributeNames(),
                         [](StringAttr own) { return own == "axis"; });
  return hasAxis || isAnyOf<nn::DispatchOp>(name) ? Move::Rows : Move::None;
}

Move remat::getTensorMove(Operation *op) {
  nn::ScopeAttr scope = nn::getScope(op);
  StringRef name = op->getName().stripDialect();
  if (!scope || op->getNumResults() != 1 || op->getNumOperands() == 0 ||
      scope.getValue().rsplit('.').second != name)
    return Move::None;
  Move move = getMove(name, op->getContext());
  return move == Move::Rows ? Move::None : move;
}

bool remat::isOfRegion(const RecomputeLabel &label, Operation *op) {
  if (label.covers(getModule(op)))
    return true;
  Operation *made = getTensorMove(op) == Move::Copy
                        ? op->getOperand(0).getDefiningOp()
                        : nullptr;
  return made && label.covers(getModule(made));
}

StringRef remat::getOtherMove(StringRef name) {
  auto strip = [](StringRef full) { return full.rsplit('.').second; };
  StringRef sum = strip(nn::AllReduceOp::getOperationName()),
            scatter = strip(nn::ReduceScatterOp::getOperationName());
  return name == sum ? scatter : name == scatter ? sum : StringRef();
}

bool remat::isExpertMove(Operation *op) {
  return nn::getAxis(op) == nn::kExpertAxis && op->getNumResults() == 1;
}

/// The first of what reads `op` in the forward pass, if all of it is dropped;
/// with `isOfRows`, of what reads the rows that it gives to be sent.
static Operation *findReaders(const Step &step, Operation *op, bool isOfRows,
                              function_ref<bool(Operation *)> isDropped) {
  Operation *first = nullptr;
  for (Operation *reader : op->getUsers()) {
    if (!step.isForward(reader))
      continue;
    if (isOfRows &&
        (!isExpertMove(reader) || reader->getOperand(0).getDefiningOp() != op))
      return nullptr;
    Operation *own =
        isOfRows ? findReaders(step, reader, /*isOfRows=*/false, isDropped)
        : isDropped(reader) ? reader
                            : nullptr;
    if (!own)
      return nullptr;
    first = first ? first : own;
  }
  return first;
}

Operation *remat::findFollowed(const Step &step, Operation *op,
                               function_ref<bool(Operation *)> isDropped) {
  if (op->getNumResults() != 1 || !nn::mayBeReplayed(op))
    return nullptr;
  Move move = getTensorMove(op);
  if (isExpertMove(op) || move != Move::None) {
    Operation *made = op->getOperand(0).getDefiningOp();
    if (made && step.isForward(made) && isDropped(made))
      return made;
  }
  if (move == Move::Copy)
    return findReaders(step, op, /*isOfRows=*/false, isDropped);
  if (isExpertMove(op) || move != Move::None)
    return nullptr;
  return findReaders(step, op, /*isOfRows=*/true, isDropped);
}
