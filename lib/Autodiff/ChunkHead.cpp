//===- ChunkHead.cpp - Head and loss some rows at a time --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Remarks.h"
#include "reprise/Autodiff/Passes.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Interfaces/CostModel.h"
#include <algorithm>

namespace reprise::autodiff {
#define GEN_PASS_DEF_CHUNKHEAD
#include "reprise/Autodiff/Passes.h.inc"
} // namespace reprise::autodiff

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

namespace {
/// A projection with its losses, and what is made of its gradient.
struct Head {
  LinearOp linear;
  CrossEntropyOp loss;
  /// Null in what only goes forward; with it, at least one of these is there.
  CrossEntropyBackwardOp backward;
  LinearBackwardInputOp input;
  LinearBackwardWeightOp weight;
  ConstantOp dlosses;
  AccumulateOp accumulate; ///< what `weight` is, or is the first term of
};

struct ChunkHead : public autodiff::impl::ChunkHeadBase<ChunkHead> {
  using Base::Base;
  void runOnOperation() override;

  FailureOr<int64_t> getRows();
  void fuse(Head head, int64_t chunkRows);
};
} // namespace

/// What makes the sum of the gradients of a weight: `weight`, or a sum of which
/// it is the first term. Null if something else reads it.
static AccumulateOp getAccumulate(LinearBackwardWeightOp weight) {
  Value term = weight.getDweight();
  while (term.hasOneUse()) {
    Operation *user = *term.user_begin();
    if (auto accumulate = dyn_cast<AccumulateOp>(user))
      return accumulate.getTerm() == term &&
                     isa<BlockArgument>(accumulate.getSum()) &&
                     accumulate.getSum().hasOneUse()
                 ? accumulate
                 : AccumulateOp();
    auto add = dyn_cast<AddOp>(user);
    if (!add || add.getLhs() != term)
      return {};
    term = add.getOut();
  }
  return {};
}

/// Fills in what reads the gradient of the logits; whether that is all there
/// may be.
static bool matchBackward(Head &head) {
  head.dlosses = head.backward.getDlosses().getDefiningOp<ConstantOp>();
  if (!head.dlosses || head.backward.getLogits() != head.linear.getOut() ||
      head.backward.getTargets() != head.loss.getTargets())
    return false;
  Value dlogits = head.backward.getDlogits();
  for (Operation *user : dlogits.getUsers()) {
    if (auto input = dyn_cast<LinearBackwardInputOp>(user);
        input && !head.input && input.getDout() == dlogits &&
        input.getWeight() == head.linear.getWeight() &&
        input.getLayout() == head.linear.getLayout())
      head.input = input;
    else if (auto weight = dyn_cast<LinearBackwardWeightOp>(user);
             weight && !head.weight && weight.getDout() == dlogits &&
             weight.getInput() == head.linear.getInput() &&
             weight.getLayout() == head.linear.getLayout())
      head.weight = weight;
    else
      return false;
  }
  if (head.weight)
    head.accumulate = getAccumulate(head.weight);
  return head.weight ? bool(head.accumulate) : bool(head.input);
}

/// The head that ends in `loss`, if nothing else reads its logits.
static std::optional<Head> matchHead(CrossEntropyOp loss) {
  Head head;
  head.loss = loss;
  head.linear = loss.getLogits().getDefiningOp<LinearOp>();
  if (!head.linear || head.linear.getBias())
    return std::nullopt;
  for (Operation *user : head.linear->getUsers())
    if (user != loss) {
      auto backward = dyn_cast<CrossEntropyBackwardOp>(user);
      if (!backward || head.backward)
        return std::nullopt;
      head.backward = backward;
    }
  for (Operation *user : loss.getLse().getUsers())
    if (user != head.backward)
      return std::nullopt;
  if (head.backward &&
      (head.backward.getLse() != loss.getLse() || !matchBackward(head)))
    return std::nullopt;
  return head;
}

/// What the losses lead to above `place` comes behind it, in its order.
static void moveReadersBehind(Operation *place, Value losses) {
  DenseSet<Value> moved = {losses};
  Operation *last = place;
  for (Operation *op = losses.getDefiningOp()->getNextNode(); op != place;) {
    Operation *next = op->getNextNode();
    if (llvm::any_of(op->getOperands(),
                     [&](Value operand) { return moved.contains(operand); })) {
      moved.insert(op->result_begin(), op->result_end());
      op->moveAfter(last);
      last = op;
    }
    op = next;
  }
}

void ChunkHead::fuse(Head head, int64_t chunkRows) {
  LinearOp linear = head.linear;
  CrossEntropyOp loss = head.loss;
  Operation *place = head.backward ? head.backward.getOperation() : loss;
  if (head.backward)
    moveReadersBehind(place, loss.getLosses());

  SmallVector<Type> types = {loss.getLosses().getType()};
  if (head.input)
    types.push_back(linear.getInput().getType());
  if (head.weight)
    types.push_back(head.accumulate.getSum().getType());
  int64_t bytes = getTypeBytes(linear.getOut().getType());
  int64_t numRows = cast<ShapedType>(types[0]).getNumElements();
  remark::passed(linear.getLoc(), remark::RemarkOpts::name("Chunked")
                                      .category("Autodiff")
                                      .function(getOperation().getName()))
      << remark::metric("rows", chunkRows)
      << remark::metric("chunks", llvm::divideCeil(numRows, chunkRows))
      << remark::metric("bytes", bytes / numRows * std::min(chunkRows, numRows))
      << remark::metric("whole", bytes);
  OpBuilder builder(place);
  auto fused = LinearCrossEntropyOp::create(
      builder, linear.getLoc(), types, linear.getInput(), linear.getWeight(),
      loss.getTargets(), head.weight ? head.accumulate.getSum() : Value(),
      head.backward ? head.dlosses.getValueAttr() : FloatAttr(),
      head.input ? builder.getUnitAttr() : UnitAttr(), linear.getLayoutAttr(),
      builder.getI64IntegerAttr(chunkRows), getScope(loss),
      loss.getClassesAttr());
  fused->setDiscardableAttrs(linear->getDiscardableAttrDictionary());
  loss.getLosses().replaceAllUsesWith(fused.getLosses());
  if (head.input)
    head.input.getDinput().replaceAllUsesWith(fused.getInputGradient());
  SmallVector<Operation *> dead;
  if (head.weight) {
    AccumulateOp accumulate = head.accumulate;
    if (accumulate.getTerm() == head.weight.getDweight()) {
      accumulate.replaceAllUsesWith(fused.getNewSum());
      dead.push_back(accumulate);
    } else {
      // The other terms are added to what there is with this one.
      auto add = cast<AddOp>(*head.weight.getDweight().user_begin());
      add.replaceAllUsesWith(add.getRhs());
      accumulate.getSumMutable().assign(fused.getNewSum());
      dead.push_back(add);
    }
    dead.push_back(head.weight);
  }
  if (head.input)
    dead.push_back(head.input);
  if (head.backward)
    dead.push_back(head.backward);
  dead.push_back(loss);
  dead.push_back(linear);
  for (Operation *op : dead)
    op->erase();
  if (head.dlosses && head.dlosses->use_empty())
    head.dlosses->erase();
}

/// Rows of a chunk: the option's, or those of the model; -1 for neither.
FailureOr<int64_t> ChunkHead::getRows() {
  int64_t wanted = rows;
  auto train =
      getOperation()->getParentOp()->getAttrOfType<DictionaryAttr>(kTrainAttr);
  if (wanted < 0 && train)
    if (auto given = train.getAs<IntegerAttr>(kHeadChunkRows))
      wanted = given.getInt();
  int64_t block = LinearCrossEntropyOp::getRowBlock(
      Float32Type::get(getOperation().getContext()));
  for (auto loss : getOperation().getOps<CrossEntropyOp>())
    block = std::max(block, LinearCrossEntropyOp::getRowBlock(
                                loss.getLogits().getType().getElementType()));
  if (wanted >= 0 && wanted % block != 0)
    return getOperation().emitError(
               "needs chunks of the head of a multiple of ")
           << block << " rows, or 0, but got " << wanted;
  return wanted;
}

/// A quarter of the rows, 1024 to 4096 of them. Each chunk reads and writes the
/// gradient of the weight, which takes as long as some 1000 rows of its product
/// on a large GPU; beyond 4096 rows there is little left to gain.
static int64_t getDefaultRows(RankedTensorType logits) {
  constexpr int64_t kLeast = 1024, kMost = 4096;
  int64_t rows = logits.getNumElements() / logits.getShape().back();
  return std::clamp(rows / 4 / kLeast * kLeast, kLeast, kMost);
}

void ChunkHead::runOnOperation() {
  FailureOr<int64_t> given = getRows();
  if (failed(given))
    return signalPassFailure();
  if (*given == 0 || getOperation().isExternal() ||
      !getOperation().getBody().hasOneBlock())
    return;
  SmallVector<CrossEntropyOp> losses(getOperation().getOps<CrossEntropyOp>());
  for (CrossEntropyOp loss : losses) {
    // Unless told, what the caches hold is left as it is.
    constexpr int64_t kFewBytes = 16 << 20;
    auto logits = loss.getLogits().getType();
    if (*given < 0 && getTypeBytes(logits) < kFewBytes)
      continue;
    if (std::optional<Head> head = matchHead(loss))
      fuse(*head, *given < 0 ? getDefaultRows(logits) : *given);
  }
}
