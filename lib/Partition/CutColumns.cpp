//===- CutColumns.cpp - Which values ranks have columns of ------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values that ops which keep columns or heads apart connect are of one class:
// all of it is cut, or nothing. It is cut where all that makes it are linears,
// whose weights can be cut by results, and all that reads it are linears, whose
// weights can be cut by inputs, or the loss. No linear is both: classes are
// decided in program order, and a later one gives way.
//
//===----------------------------------------------------------------------===//

#include "Layout.h"
#include "llvm/ADT/EquivalenceClasses.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;
using namespace reprise::partition;

Spread Spread::get(LayoutAttr layout, int64_t copies) {
  if (!layout)
    return {};
  if (int64_t dim = layout.getShardDim(kHeadsAxis); dim >= 0)
    return shard(dim, copies);
  Word word = layout.getWord(kTensorAxis);
  return {word, word == Word::Shard ? layout.getShardDim(kTensorAxis) : 0};
}

LayoutAttr Spread::getLayout(MLIRContext *context) const {
  if (copies == 1)
    return LayoutAttr::get(context, kTensorAxis, word, dim);
  StringAttr names[] = {StringAttr::get(context, kHeadsAxis),
                        StringAttr::get(context, kHeadCopiesAxis)};
  return LayoutAttr::get(context, names, {Word::Shard, Word::Replicated},
                         {dim, 0});
}

BlockArgument partition::getArgument(Value value) {
  for (Operation *op = value.getDefiningOp();
       getPartWay(op) == PartWay::Rounding; op = value.getDefiningOp())
    value = op->getOperand(0);
  return dyn_cast<BlockArgument>(value);
}

/// Whether `op` makes each element of one, and of nothing else: rounds or
/// scales it.
static bool isOfOneElement(Operation *op) {
  return op->hasTrait<nn::Pointwise>() && op->getNumOperands() == 1;
}

/// Whether the loss reads `value`, rounded or scaled perhaps.
static bool isOfLoss(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (getPartWay(user) == PartWay::Loss)
      return use.getOperandNumber() == 0;
    return isOfOneElement(user) && isOfLoss(user->getResult(0));
  });
}

bool partition::isOfVocabulary(Value value) {
  if (isOfLoss(value))
    return true;
  return llvm::any_of(value.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    PartWay way = getPartWay(user);
    if (way == PartWay::Rounding)
      return getArgument(value) && isOfVocabulary(user->getResult(0));
    if (use.getOperandNumber() != 1) // a weight or a table
      return false;
    return way == PartWay::Lookup ||
           (way == PartWay::Linear && isOfLoss(user->getResult(0)));
  });
}

SmallVector<OpOperand *> partition::getColumnOperands(Operation *op) {
  auto own = dyn_cast<Partitionable>(op);
  unsigned count = own ? own.getNumColumnOperands() : 0;
  SmallVector<OpOperand *> operands;
  for (unsigned index = 0; index < count; ++index)
    operands.push_back(&op->getOpOperand(index));
  return operands;
}

/// Whether attention reads `value`, maybe turned, as keys of one head.
static bool isOneHead(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) {
    auto user = dyn_cast<Partitionable>(use.getOwner());
    if (user && user.passesHeads())
      return isOneHead(user->getResult(0));
    return user && user.scoresHeads() && user.getNumKeyHeads() == 1 &&
           user->getOperand(1) == use.get();
  });
}

bool partition::isOfWholeRows(Operation *op) {
  auto norm = dyn_cast<Partitionable>(op);
  return norm && norm.getPartWay() == PartWay::Norm &&
         norm.getNumColumnOperands() > 0 && norm.getNumHeads() == 1 &&
         !isOneHead(op->getResult(0));
}

/// The same for whole values, where a norm may be of whole rows.
static SmallVector<OpOperand *> getKept(Operation *op) {
  return isOfWholeRows(op) ? SmallVector<OpOperand *>() : getColumnOperands(op);
}

bool partition::isOfOwnTokens(Operation *op,
                              const DenseMap<Value, Spread> &words) {
  if (op->getNumResults() == 0)
    return false;
  PartWay way = getPartWay(op);
  return way == PartWay::Tokens ||
         llvm::any_of(op->getOperands(), [&](Value operand) {
           Spread spread = words.lookup(operand);
           return spread.word == Word::Varying ||
                  (way == PartWay::Count && spread.isShard());
         });
}

Spread partition::getOfOwnTokens(Operation *op) {
  if (getPartWay(op) == PartWay::Count)
    return {Word::Partial, 0};
  return getRank(op->getResult(0)) == 3 ? Spread::shard(1)
                                        : Spread{Word::Varying, 0};
}

/// Whether `op` is a linear whose weight and bias are parameters.
static bool isLinearOfParameters(Operation *op) {
  if (getPartWay(op) != PartWay::Linear)
    return false;
  int64_t bias = cast<Partitionable>(op).getBiasOperand();
  return getArgument(op->getOperand(1)) &&
         (bias < 0 || getArgument(op->getOperand(bias)));
}

ResultRange partition::getColumnResults(Operation *op) {
  auto own = dyn_cast<Partitionable>(op);
  unsigned count = own ? own.getNumColumnResults() : 1;
  return op->getResults().take_front(std::min(count, op->getNumResults()));
}

namespace {
class ColumnCutter {
public:
  ColumnCutter(func::FuncOp forward, bool cutsExperts)
      : forward(forward), cutsExperts(cutsExperts) {}
  DenseMap<Value, int64_t> run();

private:
  bool isCut(Value value) const {
    auto leader = classes.findLeader(value.getAsOpaquePointer());
    return leader != classes.member_end() && cut.contains(*leader);
  }
  /// Whether `op` is a linear whose weight can be cut.
  bool isFree(Operation *op) const {
    return isLinearOfParameters(op) && (cutsExperts || !isOfExperts(op));
  }
  bool canBeMade(Value value);
  bool canBeRead(OpOperand &use);
  bool canBeCut(Value value);

  func::FuncOp forward;
  bool cutsExperts;
  /// By the opaque pointers of values, which have an order.
  llvm::EquivalenceClasses<const void *> classes;
  DenseSet<const void *> cut; ///< the leaders
};
} // namespace

/// By what keeps columns apart, or by a linear that is free for it.
bool ColumnCutter::canBeMade(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !llvm::is_contained(getColumnResults(op), value))
    return false;
  if (!getKept(op).empty())
    return true;
  return isFree(op) && !isCut(op->getOperand(0));
}

bool ColumnCutter::canBeRead(OpOperand &use) {
  Operation *op = use.getOwner();
  if (llvm::is_contained(getKept(op), &use))
    return true;
  if (use.getOperandNumber() != 0)
    return false;
  return getPartWay(op) == PartWay::Loss ||
         (isFree(op) && !isCut(op->getResult(0)));
}

bool ColumnCutter::canBeCut(Value value) {
  auto members = llvm::make_range(
      classes.findLeader(value.getAsOpaquePointer()), classes.member_end());
  bool isRead = false;
  for (const void *pointer : members) {
    Value member = Value::getFromOpaquePointer(pointer);
    if (!canBeMade(member))
      return false;
    for (OpOperand &use : member.getUses()) {
      if (!canBeRead(use))
        return false;
      PartWay way = getPartWay(use.getOwner());
      isRead |= way == PartWay::Linear || way == PartWay::Loss;
    }
  }
  return isRead;
}

DenseMap<Value, int64_t> ColumnCutter::run() {
  for (Operation &op : forward.getOps()) {
    if (getPartWay(&op) == PartWay::Linear)
      classes.insert(op.getResult(0).getAsOpaquePointer());
    for (OpOperand *operand : getKept(&op))
      for (Value result : getColumnResults(&op))
        classes.unionSets(result.getAsOpaquePointer(),
                          operand->get().getAsOpaquePointer());
  }
  for (Operation &op : forward.getOps())
    if (getPartWay(&op) == PartWay::Linear && !isCut(op.getOperand(0)) &&
        canBeCut(op.getResult(0)))
      cut.insert(*classes.findLeader(op.getResult(0).getAsOpaquePointer()));

  // Heads are a dimension of their own in scores, [B, H, T, T].
  DenseMap<Value, int64_t> dims;
  for (Operation &op : forward.getOps()) {
    if (op.getNumResults() == 0 || !isCut(op.getResult(0)))
      continue;
    int64_t dim = dims.lookup(op.getOperand(0));
    for (Value result : getColumnResults(&op))
      dims[result] = cast<Partitionable>(op).getResultDim(dim);
  }
  return dims;
}

DenseMap<Value, int64_t> partition::findCutColumns(func::FuncOp forward,
                                                   bool cutsExperts) {
  return ColumnCutter(forward, cutsExperts).run();
}
