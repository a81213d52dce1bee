//===- ExpertRounds.cpp - Experts have some rows at a time ------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A rank has room for the most rows that its experts can have of all ranks.
// Here what is done with these is done once for each round, with as many rows
// of each expert as the module says. What comes back in rounds is added up at
// home, each row to zeros.
//
// The last round comes first: backward then begins with the first one, so that
// the sums over an expert's rows, which are gradients of its weights, have the
// order that they have without rounds.
//
//===----------------------------------------------------------------------===//

#include "ExpertRounds.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "reprise/Dialect/NN/Axes.h"
#include "reprise/Dialect/NN/NNExpertRankOps.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Interfaces/EvenRows.h"
#include "reprise/Interfaces/ExpertRounds.h"
#include "reprise/Support/ExpertRows.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

namespace {
/// Of one choice of experts: what ranks do with the rows of their experts.
class RoundSplitter {
public:
  RoundSplitter(GatherOffsetsOp gather, int64_t rows)
      : gather(gather), rows(rows), builder(gather) {}

  LogicalResult run();

private:
  int64_t countRounds();
  LogicalResult findOps();
  bool isMadeThere(Value value);
  /// The rows of a round that its GEMMs are counted with, of `all`.
  int64_t getEvenRows(int64_t all, int64_t round);
  void buildRound(int64_t round, Value own);
  void setRows(Operation *op, int64_t round);
  void setMoved(Operation *op, Value home, int64_t round);
  void dropInBackward(Operation *op);

  int64_t getExperts() {
    return cast<RankedTensorType>(gather.getOwn().getType()).getDimSize(0) - 1;
  }

  GatherOffsetsOp gather;
  int64_t rows; ///< of an expert in a round
  OpBuilder builder;
  /// In order: what is sent, or made there; and what returns.
  llvm::SetVector<Operation *> ops;
  DenseSet<Operation *> sends, returns; ///< of these
  llvm::MapVector<Value, Value> sums;   ///< of returned rows, so far
};
} // namespace

static RankedTensorType getTensor(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// The scope of `op`, whose name ends as the op's does, with another `end`.
static void setScope(Operation *made, Operation *op, const Twine &end) {
  ScopeAttr scope = nn::getScope(op);
  if (!scope)
    return;
  StringRef name = scope.getValue();
  name.consume_back(op->getName().stripDialect());
  made->setAttr(kScopeAttr,
                ScopeAttr::get(op->getContext(), scope.getLayer(),
                               scope.getModule(), (name + end).str()));
}

/// As many as the most rows of an expert need: of each rank all of its tokens',
/// or its capacity.
int64_t RoundSplitter::countRounds() {
  Operation *sort = gather.getOffsets().getDefiningOp();
  RankedTensorType inverse = getTensor(sort->getResult(1));
  int64_t most = inverse.getNumElements() / inverse.getShape().back();
  if (auto capacity = sort->getAttrOfType<IntegerAttr>("capacity"))
    most = std::min(most, capacity.getInt());
  int64_t ranks = getTensor(gather.getAll()).getDimSize(0);
  return llvm::divideCeil(ranks * most, rows);
}

bool RoundSplitter::isMadeThere(Value value) {
  Operation *maker = value.getDefiningOp();
  return maker && ops.contains(maker) && !returns.contains(maker);
}

/// What reads offsets of all ranks moves rows: those that are made there come
/// back.
LogicalResult RoundSplitter::findOps() {
  for (Operation *op = gather->getNextNode(); op; op = op->getNextNode()) {
    bool isMadeOfThem = llvm::any_of(
        op->getOperands(), [&](Value operand) { return isMadeThere(operand); });
    if (llvm::is_contained(op->getOperands(), gather.getAll()))
      (isMadeOfThem ? returns : sends).insert(op);
    else if (!isMadeOfThem)
      continue;
    ops.insert(op);
  }
  for (Operation *op : returns)
    for (Operation *user : op->getUsers())
      if (user->isBeforeInBlock(ops.back()))
        return user->emitOpError("needs to stand behind all GEMMs of "
                                 "experts that nn.sort_rows sorts rows for, to "
                                 "have these in rounds");
  return success();
}

int64_t RoundSplitter::getEvenRows(int64_t all, int64_t round) {
  int64_t ofExpert = llvm::divideCeil(all, getExperts());
  int64_t left = std::clamp(ofExpert - round * rows, int64_t(0), rows);
  return std::max<int64_t>(left * getExperts(), 1);
}

/// Has what `op` makes recomputed, whatever else is decided.
void RoundSplitter::dropInBackward(Operation *op) {
  ScopeAttr scope = nn::getScope(op);
  int64_t layer = scope ? std::max<int64_t>(scope.getLayer(), 0) : 0;
  op->setAttr(remat::kDecisionAttr,
              remat::RecomputeAttr::get(op->getContext(), layer, kRoundsLabel,
                                        DenseI64ArrayAttr()));
}

/// Says of what is made there which rows it has.
void RoundSplitter::setRows(Operation *op, int64_t round) {
  if (auto even = op->getAttrOfType<IntegerAttr>(kEvenNNRowsAttr))
    op->setAttr(kEvenNNRowsAttr,
                builder.getI64IntegerAttr(getEvenRows(even.getInt(), round)));
  for (Value result : op->getResults()) {
    SmallVector<int64_t> shape(getTensor(result).getShape());
    shape.front() = std::min(shape.front(), rows * getExperts());
    result.setType(getTensor(result).clone(shape));
  }
  dropInBackward(op);
}

/// Says of what moves which rows do.
void RoundSplitter::setMoved(Operation *op, Value home, int64_t round) {
  op->setAttr("round", builder.getI64IntegerAttr(round));
  op->setAttr("rows", builder.getI64IntegerAttr(rows));
  op->setAttr(kEvenNNRowsAttr, builder.getI64IntegerAttr(getEvenRows(
                                   getTensor(home).getDimSize(0), round)));
}

void RoundSplitter::buildRound(int64_t round, Value own) {
  IRMapping mapping;
  auto offsets = RoundOffsetsOp::create(builder, gather.getLoc(),
                                        gather.getOwn().getType(), own, round);
  setScope(offsets, gather, "round_offsets");
  dropInBackward(offsets);
  mapping.map(gather.getOwn(), offsets);
  for (Operation *op : ops) {
    Operation *copy = builder.clone(*op, mapping);
    if (!returns.contains(op)) {
      setRows(copy, round);
      if (sends.contains(op))
        setMoved(copy, copy->getOperand(0), round);
      continue;
    }
    Value made = copy->getResult(0);
    setMoved(copy, made, round);
    // Which of these a budget keeps is of no use, and may differ.
    std::string number = "." + std::to_string(round);
    setScope(copy, op, "return_rows" + number);
    Value &sum = sums[op->getResult(0)];
    if (sum) {
      auto add = AddOp::create(builder, op->getLoc(), sum, made);
      setScope(add, op, "add_rows" + number);
      made = add;
    }
    sum = made;
  }
}

LogicalResult RoundSplitter::run() {
  int64_t count = countRounds();
  if (count > kMostExpertRounds)
    return gather.emitOpError("needs at most ")
           << kMostExpertRounds
           << " rounds, each of which is compiled, but with " << rows
           << " rows of an expert it has " << count
           << ": 'moe_expert_rows_per_round' needs to be at least "
           << llvm::divideCeil(count * rows, kMostExpertRounds);
  if (failed(findOps()))
    return failure();
  if (count <= 1 || ops.empty())
    return success();
  // What is made at home for what is sent is made again with it.
  for (Operation *op : sends)
    if (Operation *maker = op->getOperand(0).getDefiningOp();
        maker && nn::mayBeReplayed(maker) &&
        llvm::all_of(maker->getUsers(),
                     [&](Operation *user) { return sends.contains(user); }))
      dropInBackward(maker);
  auto inRounds = GatherOffsetsOp::create(
      builder, gather.getLoc(), gather.getAll().getType(),
      RankedTensorType::get({count, getExperts() + 1}, builder.getI32Type()),
      gather.getOffsets(), gather.getAxisAttr(),
      builder.getI64IntegerAttr(rows));
  if (ScopeAttr scope = nn::getScope(gather))
    inRounds->setAttr(kScopeAttr, scope);
  gather.getAll().replaceAllUsesWith(inRounds.getAll());
  builder.setInsertionPoint(ops.back());
  for (int64_t round = count; round-- > 0;)
    buildRound(round, inRounds.getOwn());
  for (auto [old, sum] : sums)
    old.replaceAllUsesWith(sum);
  for (Operation *op : llvm::reverse(ops.getArrayRef()))
    op->erase();
  gather->erase();
  return success();
}

LogicalResult partition::splitIntoRounds(GatherOffsetsOp gather, int64_t rows) {
  return RoundSplitter(gather, rows).run();
}
