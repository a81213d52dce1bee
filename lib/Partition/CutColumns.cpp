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
#include "llvm/ADT/TypeSwitch.h"

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
  while (auto cast = value.getDefiningOp<CastOp>())
    value = cast.getInput();
  return dyn_cast<BlockArgument>(value);
}

/// Whether the loss reads `value`, rounded or scaled perhaps.
static bool isOfLoss(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    return (isa<CrossEntropyOp>(user) && use.getOperandNumber() == 0) ||
           (isa<CastOp, ScaleOp>(user) && isOfLoss(user->getResult(0)));
  });
}

bool partition::isOfVocabulary(Value value) {
  if (isOfLoss(value))
    return true;
  return llvm::any_of(value.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (auto cast = dyn_cast<CastOp>(user))
      return getArgument(value) && isOfVocabulary(cast.getOut());
    auto linear = dyn_cast<LinearOp>(user);
    bool isWeight = linear && use.getOperandNumber() ==
                                  linear.getWeightMutable().getOperandNumber();
    auto embedding = dyn_cast<EmbeddingOp>(user);
    return (isWeight && isOfLoss(linear.getOut())) ||
           (embedding && embedding.getTable() == value);
  });
}

SmallVector<OpOperand *> partition::getColumnOperands(Operation *op) {
  unsigned count =
      TypeSwitch<Operation *, unsigned>(op)
          .Case<AttentionOp>([](auto) { return 3u; })
          .Case<ScoresOp, ContextOp, SwiGLUOp>([](auto) { return 2u; })
          .Case<RMSNormOp, RopeOp, SoftmaxOp, GeluOp, DropoutOp, CastOp,
                ScaleOp>([](auto) { return 1u; })
          .Default(0u);
  SmallVector<OpOperand *> operands;
  for (unsigned index = 0; index < count; ++index)
    operands.push_back(&op->getOpOperand(index));
  return operands;
}

/// Whether attention reads `value`, maybe turned, as keys of one head.
static bool isOneHead(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (auto rope = dyn_cast<RopeOp>(user))
      return isOneHead(rope.getOut());
    auto attention = dyn_cast<AttentionOp>(user);
    auto scores = dyn_cast<ScoresOp>(user);
    return (attention && attention.getKeyHeads() == 1 &&
            attention.getKey() == use.get()) ||
           (scores && scores.getKeyHeads() == 1 &&
            scores.getRhs() == use.get());
  });
}

bool partition::isOfWholeRows(RMSNormOp norm) {
  return countHeads(norm) == 1 && !isOneHead(norm.getOut());
}

/// The same for whole values, where a norm may be of whole rows.
static SmallVector<OpOperand *> getKept(Operation *op) {
  auto norm = dyn_cast<RMSNormOp>(op);
  return norm && isOfWholeRows(norm) ? SmallVector<OpOperand *>()
                                     : getColumnOperands(op);
}

namespace {
class ColumnCutter {
public:
  explicit ColumnCutter(func::FuncOp forward) : forward(forward) {}
  DenseMap<Value, int64_t> run();

private:
  bool isCut(Value value) const {
    auto leader = classes.findLeader(value.getAsOpaquePointer());
    return leader != classes.member_end() && cut.contains(*leader);
  }
  bool canBeMade(Value value);
  bool canBeRead(OpOperand &use);
  bool canBeCut(Value value);

  func::FuncOp forward;
  /// By the opaque pointers of values, which have an order.
  llvm::EquivalenceClasses<const void *> classes;
  DenseSet<const void *> cut; ///< the leaders
};
} // namespace

/// By what keeps columns apart, or by a linear that is free for it.
bool ColumnCutter::canBeMade(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (!getKept(op).empty())
    return true;
  auto linear = dyn_cast<LinearOp>(op);
  return linear && getArgument(linear.getWeight()) &&
         (!linear.getBias() || getArgument(linear.getBias())) &&
         !isCut(linear.getInput());
}

bool ColumnCutter::canBeRead(OpOperand &use) {
  Operation *op = use.getOwner();
  if (llvm::is_contained(getKept(op), &use))
    return true;
  if (isa<CrossEntropyOp>(op))
    return use.getOperandNumber() == 0;
  auto linear = dyn_cast<LinearOp>(op);
  return linear && use.getOperandNumber() == 0 &&
         getArgument(linear.getWeight()) && !isCut(linear.getOut()) &&
         (!linear.getBias() || getArgument(linear.getBias()));
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
      isRead |= isa<LinearOp, CrossEntropyOp>(use.getOwner());
    }
  }
  return isRead;
}

DenseMap<Value, int64_t> ColumnCutter::run() {
  for (Operation &op : forward.getOps()) {
    if (isa<LinearOp>(op))
      classes.insert(op.getResult(0).getAsOpaquePointer());
    for (OpOperand *operand : getKept(&op))
      classes.unionSets(op.getResult(0).getAsOpaquePointer(),
                        operand->get().getAsOpaquePointer());
  }
  for (auto linear : forward.getOps<LinearOp>())
    if (!isCut(linear.getInput()) && canBeCut(linear.getOut()))
      cut.insert(*classes.findLeader(linear.getOut().getAsOpaquePointer()));

  // Heads are a dimension of their own in scores, [B, H, T, T].
  DenseMap<Value, int64_t> dims;
  for (Operation &op : forward.getOps()) {
    if (op.getNumResults() == 0 || !isCut(op.getResult(0)))
      continue;
    Value result = op.getResult(0);
    if (isa<LinearOp, ContextOp>(op))
      dims[result] = getRank(result) - 1;
    else if (isa<ScoresOp>(op))
      dims[result] = 1;
    else
      dims[result] = dims.lookup(op.getOperand(0));
  }
  return dims;
}

DenseMap<Value, int64_t> partition::findCutColumns(func::FuncOp forward) {
  return ColumnCutter(forward).run();
}
