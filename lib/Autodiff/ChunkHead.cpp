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
#include "mlir/IR/TypeUtilities.h"
#include "reprise/Autodiff/Passes.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Interfaces/CostModel.h"
#include "reprise/Interfaces/Facts.h"
#include "reprise/Interfaces/Partitionable.h"
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
  /// What makes losses of the logits, in order: the first op reads them, and
  /// the last one makes the losses.
  SmallVector<Operation *> loss;
  Value targets;
  StringAttr axis; ///< along which ranks have parts of the vocabulary, or null
  IntegerAttr classes;
  /// Makes the gradient of the logits. Null in what only goes forward; with it,
  /// at least one of `input` and `weight` is there.
  Operation *backward = nullptr;
  /// What it reads and nothing else does, in order.
  SmallVector<Operation *> between;
  GemmGradient input, weight;
  ConstantNumber dlosses;
  Operation *dhit = nullptr;  ///< of parts of the vocabulary: less `dlosses`
  RunningSum accumulate;      ///< what `weight` is a term of,
  SmallVector<Value> earlier; ///< and the terms before it

  Value getLosses() const { return loss.back()->getResult(0); }
};

struct ChunkHead : public autodiff::impl::ChunkHeadBase<ChunkHead> {
  using Base::Base;
  void runOnOperation() override;

  FailureOr<int64_t> getRows();
  void fuse(const Head &head, int64_t chunkRows);
};
} // namespace

/// Whether `op` is the sum of two values.
static bool isAdd(Operation *op) {
  auto own = dyn_cast_if_present<Partitionable>(op);
  return own && own.addsOperands();
}

/// Whether `sum` is the running sum of a gradient, or that with terms that
/// another head or a lookup has made.
static bool isRunningSum(Value sum) {
  return sum.hasOneUse() && (isa<BlockArgument>(sum) ||
                             isa<RunningSum, RowChunks>(sum.getDefiningOp()));
}

/// What makes the sum of the gradients of a weight: `weight`, or a sum of which
/// it is a term. Null if something else reads it.
static RunningSum getAccumulate(Operation *weight) {
  Value term = weight->getResult(0);
  while (term.hasOneUse()) {
    Operation *user = *term.user_begin();
    if (auto accumulate = dyn_cast<RunningSum>(user))
      return accumulate.getTerm() == term && isRunningSum(accumulate.getSum())
                 ? accumulate
                 : RunningSum();
    if (!isAdd(user))
      return RunningSum();
    term = user->getResult(0);
  }
  return RunningSum();
}

/// The terms of the sum of all that come before `weight`, in order, if that
/// order is the one that they are made in, up to `place`, and each is added by
/// itself in the end: then the head may add the term of `weight` where it is
/// made. The sum of all is `(first + second) + third`.
static std::optional<SmallVector<Value>>
getEarlierTerms(RunningSum accumulate, Value weight, Operation *place) {
  SmallVector<Value> terms, open = {accumulate.getTerm()};
  while (!open.empty()) {
    Value term = open.pop_back_val();
    if (term == weight)
      return terms;
    Operation *maker = term.getDefiningOp();
    if (isAdd(maker)) {
      llvm::append_range(open, llvm::reverse(maker->getOperands()));
      continue;
    }
    if (!isa_and_present<LinearBackwardWeightOp, EmbeddingBackwardOp>(maker) ||
        !term.hasOneUse() || !maker->isBeforeInBlock(place) ||
        (!terms.empty() &&
         maker->isBeforeInBlock(terms.back().getDefiningOp())))
      return std::nullopt;
    terms.push_back(term);
  }
  return std::nullopt;
}

/// Adds the terms before that of the weight one by one, each behind what makes
/// it. Returns the sum so far; null without a weight.
static Value takeEarlierTerms(const Head &head) {
  RunningSum accumulate = head.accumulate;
  for (Value term : head.earlier) {
    Operation *add = *term.user_begin();
    OpBuilder builder(accumulate);
    builder.setInsertionPointAfter(term.getDefiningOp());
    auto earlier = AccumulateOp::create(builder, accumulate.getLoc(),
                                        accumulate.getSum(), term);
    earlier->setDiscardableAttrs(accumulate->getDiscardableAttrDictionary());
    accumulate.setSum(earlier);
    add->getResult(0).replaceAllUsesWith(add->getOperand(1));
    add->erase();
  }
  return accumulate ? accumulate.getSum() : Value();
}

/// Fills in what reads the gradient of the logits; whether that is all there
/// may be.
static bool matchGradients(Head &head) {
  Value dlogits = head.backward->getResult(0);
  for (Operation *user : dlogits.getUsers()) {
    auto gradient = dyn_cast<GemmGradient>(user);
    if (!gradient || !gradient.isGradientOf(head.linear, dlogits))
      return false;
    GemmGradient &known = gradient.isOfWeight() ? head.weight : head.input;
    if (known)
      return false;
    known = gradient;
  }
  if (!head.weight)
    return bool(head.input);
  head.accumulate = getAccumulate(head.weight);
  auto earlier = head.accumulate
                     ? getEarlierTerms(head.accumulate,
                                       head.weight->getResult(0), head.backward)
                     : std::nullopt;
  if (earlier)
    head.earlier = std::move(*earlier);
  return earlier.has_value();
}

/// Fills in the gradient of `loss`, if it has one; whether that is as it should
/// be.
static bool matchBackward(Head &head, CrossEntropyOp loss) {
  for (Operation *user : loss.getLse().getUsers())
    if (user != head.backward)
      return false;
  if (!head.backward)
    return true;
  if (!cast<LogitsLoss>(loss.getOperation()).isGradient(head.backward))
    return false;
  auto backward = cast<CrossEntropyBackwardOp>(head.backward);
  head.dlosses = backward.getDlosses().getDefiningOp<ConstantNumber>();
  return head.dlosses && matchGradients(head);
}

/// The user of `value` that is an `OpTy`, if there is no other besides
/// `backward` and `further`.
template <typename OpTy>
static OpTy getReader(Value value, Operation *backward,
                      Operation *further = nullptr) {
  OpTy found;
  for (Operation *user : value.getUsers()) {
    if (user == backward || user == further)
      continue;
    if (found)
      return {};
    found = dyn_cast<OpTy>(user);
    if (!found)
      return {};
  }
  return found;
}

/// Whether `op` makes `constant` with the other sign.
static bool isLess(Operation *op, ConstantNumber constant) {
  if (auto other = dyn_cast_if_present<ConstantNumber>(op))
    return other.getNumber().getValue() == -constant.getNumber().getValue();
  auto scale = dyn_cast_if_present<ScaleOp>(op);
  return scale && scale.getFactor().isExactlyValue(-1.0) &&
         scale.getInput() == constant->getResult(0);
}

/// The same of a part of the vocabulary. What partitioning has made of the loss
/// is ln(sum over ranks of exp(lse)) - sum over ranks of hit.
static bool matchBackward(Head &head, CrossEntropyPartOp part) {
  auto backward =
      dyn_cast_if_present<CrossEntropyPartBackwardOp>(head.backward);
  if (head.backward && !backward)
    return false;
  auto slice =
      backward ? backward.getDlse().getDefiningOp<SliceOp>() : SliceOp();
  auto joined = slice ? slice.getInput().getDefiningOp<JoinLseBackwardOp>()
                      : JoinLseBackwardOp();
  auto gather = getReader<AllGatherOp>(part.getLse(), head.backward);
  auto sum = getReader<AllReduceOp>(part.getHit(), head.backward);
  if (!gather || !sum || sum.getValues().size() != 1)
    return false;
  auto join = getReader<JoinLseOp>(gather.getOut(), joined);
  auto less = getReader<ScaleOp>(sum.getSums().front(), nullptr);
  auto losses = join ? getReader<AddOp>(join.getLse(), joined) : AddOp();
  if (!less || !less.getFactor().isExactlyValue(-1.0) || !losses ||
      losses.getLhs() != join.getLse() || losses.getRhs() != less.getOut() ||
      !less->hasOneUse())
    return false;
  head.loss = {part, gather, sum, join, less, losses};
  if (!backward)
    return true;
  if (!joined || !joined->hasOneUse() || !slice->hasOneUse() ||
      joined.getParts() != gather.getOut() ||
      joined.getLse() != join.getLse() ||
      !cast<LogitsLoss>(part.getOperation()).isGradient(backward))
    return false;
  head.between = {joined, slice};
  head.dlosses = joined.getDlse().getDefiningOp<ConstantNumber>();
  head.dhit = backward.getDhit().getDefiningOp();
  return head.dlosses && isLess(head.dhit, head.dlosses) &&
         matchGradients(head);
}

/// The head that ends in `loss`, if nothing else reads its logits.
static std::optional<Head> matchHead(LogitsLoss loss) {
  Head head;
  head.loss = {loss};
  head.targets = loss.getTargets();
  head.classes = loss.getClassesAttr();
  head.axis = loss->getAttrOfType<StringAttr>("axis");
  head.linear = loss.getLogits().getDefiningOp<LinearOp>();
  if (!head.linear || head.linear.getBias())
    return std::nullopt;
  for (Operation *user : head.linear->getUsers())
    if (user != loss) {
      if (head.backward)
        return std::nullopt;
      head.backward = user;
    }
  auto part = dyn_cast<CrossEntropyPartOp>(loss.getOperation());
  if (part ? !matchBackward(head, part)
           : !matchBackward(head, cast<CrossEntropyOp>(loss.getOperation())))
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

/// Lets the sum of the gradients of the weight be the one that `fused` makes,
/// and adds to `dead` what made it.
static void replaceSum(const Head &head, LinearCrossEntropyOp fused,
                       SmallVectorImpl<Operation *> &dead) {
  Value weight = head.weight->getResult(0);
  RunningSum accumulate = head.accumulate;
  if (accumulate.getTerm() == weight) {
    accumulate->getResult(0).replaceAllUsesWith(fused.getNewSum());
    dead.push_back(accumulate);
  } else {
    // The other terms are added to what there is with this one.
    Operation *add = *weight.user_begin();
    add->getResult(0).replaceAllUsesWith(add->getOperand(1));
    accumulate.setSum(fused.getNewSum());
    dead.push_back(add);
  }
  dead.push_back(head.weight);
}

void ChunkHead::fuse(const Head &head, int64_t chunkRows) {
  LinearOp linear = head.linear;
  Operation *place = head.backward ? head.backward : head.loss.back();
  if (head.backward)
    moveReadersBehind(place, head.getLosses());

  Value sum = takeEarlierTerms(head);
  ConstantNumber dlosses = head.dlosses;
  SmallVector<Type> types = {head.getLosses().getType()};
  if (head.input)
    types.push_back(linear.getInput().getType());
  if (sum)
    types.push_back(sum.getType());
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
      head.targets, sum, dlosses ? dlosses.getNumber() : FloatAttr(),
      head.input ? builder.getUnitAttr() : UnitAttr(), linear.getLayoutAttr(),
      builder.getI64IntegerAttr(chunkRows), head.axis,
      getScope(head.loss.front()), head.classes);
  fused->setDiscardableAttrs(linear->getDiscardableAttrDictionary());
  head.getLosses().replaceAllUsesWith(fused.getLosses());
  SmallVector<Operation *> dead;
  if (head.weight)
    replaceSum(head, fused, dead);
  if (GemmGradient input = head.input) {
    input->getResult(0).replaceAllUsesWith(fused.getInputGradient());
    dead.push_back(input);
  }
  if (head.backward)
    dead.push_back(head.backward);
  llvm::append_range(dead, llvm::reverse(head.between));
  llvm::append_range(dead, llvm::reverse(head.loss));
  dead.push_back(linear);
  for (Operation *op : dead)
    op->erase();
  for (Operation *op : {head.dhit, dlosses.getOperation()})
    if (op && op->use_empty())
      op->erase();
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
  for (auto loss : getOperation().getOps<LogitsLoss>())
    block = std::max(block, LinearCrossEntropyOp::getRowBlock(
                                getElementTypeOrSelf(loss.getLogits())));
  if (wanted >= 0 && wanted % block != 0)
    return getOperation().emitError(
               "needs chunks of the head of a multiple of ")
           << block << " rows, or 0, but got " << wanted;
  return wanted;
}

/// A quarter of the rows, 1024 to 4096 of them. Each chunk reads and writes the
/// gradient of the weight, which takes as long as some 1000 rows of its GEMM
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
  // Gradients of the last one are made first.
  SmallVector<LogitsLoss> losses(getOperation().getOps<LogitsLoss>());
  for (LogitsLoss loss : llvm::reverse(losses)) {
    // Unless told, what the caches hold is left as it is.
    constexpr int64_t kFewBytes = 16 << 20;
    RankedTensorType logits = loss.getLogits().getType();
    if (*given < 0 && getTypeBytes(logits) < kFewBytes)
      continue;
    if (std::optional<Head> head = matchHead(loss))
      fuse(*head, *given < 0 ? getDefaultRows(logits) : *given);
  }
}
