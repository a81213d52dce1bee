//===- Partition.cpp - The forward pass of one rank -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Goes over the ops in program order. By then the operands of an op have their
// final types and their words; it moves them to the words that the op reads,
// gives the op the shapes of a part, and moves what it makes to the word that
// its annotation asks for.
//
//===----------------------------------------------------------------------===//

#include "Words.h"
#include "mlir/IR/BuiltinOps.h"
#include "reprise/Dialect/NN/Axes.h"
#include "reprise/Partition/Passes.h"

#include <map>

namespace reprise::partition {
#define GEN_PASS_DEF_PARTITION
#include "reprise/Partition/Passes.h.inc"
} // namespace reprise::partition

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;
using namespace reprise::partition;

/// Refuses a layout that the ranks do not divide.
static LogicalResult checkLayout(Operation *op, LayoutAttr layout, Value value,
                                 MeshAttr mesh) {
  auto type = cast<RankedTensorType>(value.getType());
  for (StringRef axis : kCutAxes) {
    int64_t dim = layout.getShardDim(axis), ranks = mesh.getSize(axis);
    if (dim >= 0 && !isOfVocabulary(value) && type.getDimSize(dim) % ranks != 0)
      return op->emitOpError("needs a size of dimension ")
             << dim << " that the " << ranks << " ranks along '" << axis
             << "' divide for " << layout << ", but got " << type;
  }
  return success();
}

/// Refuses a function that has not been annotated.
static LogicalResult checkLayouts(func::FuncOp forward, MeshAttr mesh) {
  for (BlockArgument argument : forward.getArguments())
    if (auto layout = forward.getArgAttrOfType<LayoutAttr>(
            argument.getArgNumber(), kLayoutAttr))
      if (failed(checkLayout(forward, layout, argument, mesh)))
        return failure();
  for (Operation &op : forward.getOps()) {
    if (op.getNumResults() == 0)
      continue;
    auto layout = op.getAttrOfType<LayoutAttr>(kLayoutAttr);
    if (!layout)
      return op.emitOpError("needs 'nn.layout', which reprise-annotate-layout "
                            "gives, to be on ")
             << mesh.getSize(kTensorAxis) << " ranks along 'tp'";
    if (failed(checkLayout(&op, layout, op.getResult(0), mesh)))
      return failure();
  }
  return success();
}

namespace {
class Partitioner {
public:
  Partitioner(func::FuncOp forward, MeshAttr mesh)
      : forward(forward), mesh(mesh), ranks(mesh.getSize(kTensorAxis)),
        builder(forward.getContext()),
        axis(builder.getStringAttr(kTensorAxis)) {}
  LogicalResult run();

private:
  LogicalResult partition(Operation *op);
  LogicalResult partitionLinear(Partitionable op, Spread want);
  LogicalResult partitionSum(Operation *op, Spread want);
  LogicalResult partitionEmbedding(EmbeddingOp op, Spread want);
  LogicalResult partitionPositions(Operation *op, Spread want);
  LogicalResult partitionLoss(CrossEntropyOp op);
  LogicalResult partitionTokens(Operation *op, Spread want);
  LogicalResult partitionHeads(Operation *op, Spread want);
  LogicalResult partitionWhole(Operation *op, Spread want);
  void setPart(Operation *op);

  /// Makes operand `operand` a value of the word `to`.
  LogicalResult read(OpOperand &operand, Spread to);
  /// `value`, of the word `from`, moved to `to` by ops at the builder's place.
  FailureOr<Value> move(Operation *cause, Value value, Spread from, Spread to);
  /// What reads `value` behind `now` reads `now` instead, of the word `want`.
  void replace(Value value, Value now, Spread want);
  /// The type of a part of `value`, or of all of it.
  Type getPart(Value value, Spread spread);
  /// The scope of `op` on ops from `first` on up to the builder's place, each
  /// with a name of its own: that of `value`, if it has one, and what is done
  /// with it.
  void setScope(Operation *op, Operation *first, Value value);

  func::FuncOp forward;
  MeshAttr mesh;
  int64_t ranks; ///< along `tp`
  OpBuilder builder;
  StringAttr axis;
  DenseMap<Value, Spread> words;
  /// The columns of logits, by the loss that reads them.
  DenseMap<Operation *, int64_t> classes;
  /// What is moved already: by value, word and dimension.
  std::map<std::tuple<const void *, int, int64_t>, Value> moved;
};

struct Partition : public partition::impl::PartitionBase<Partition> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (getAxisSize(module, kTensorAxis) == 1)
      return;
    auto mesh = module->getAttrOfType<MeshAttr>(kMeshAttr);
    auto forward = module.lookupSymbol<func::FuncOp>(kForwardFunction);
    if (!forward) {
      module.emitError("needs a function @forward to partition");
      return signalPassFailure();
    }
    if (failed(checkLayouts(forward, mesh)) ||
        failed(Partitioner(forward, mesh).run()))
      signalPassFailure();
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Moves
//===----------------------------------------------------------------------===//

Type Partitioner::getPart(Value value, Spread spread) {
  auto type = cast<RankedTensorType>(value.getType());
  if (!spread.isShard())
    return type;
  SmallVector<int64_t> shape(type.getShape());
  shape[spread.dim] =
      llvm::divideCeil(shape[spread.dim], ranks / spread.copies);
  return type.clone(shape);
}

FailureOr<Value> Partitioner::move(Operation *cause, Value value, Spread from,
                                   Spread to) {
  Location loc = cause->getLoc();
  auto type = cast<RankedTensorType>(value.getType());
  if (from == to)
    return value;
  if (from.word == Word::Invariant && to.word == Word::Replicated)
    return Value(ReplicateOp::create(builder, loc, value, axis));
  if (from.word == Word::Partial && to.word == Word::Invariant)
    return Value(
        AllReduceOp::create(builder, loc, value, axis).getSums().front());
  if (from.word == Word::Partial && to.isShard() && to.copies == 1)
    return Value(ReduceScatterOp::create(builder, loc, getPart(value, to),
                                         value, axis,
                                         builder.getI64IntegerAttr(to.dim)));
  if (from.word == Word::Invariant && to.isShard() && to.copies == 1)
    return Value(SliceOp::create(builder, loc, getPart(value, to), value, axis,
                                 builder.getI64IntegerAttr(to.dim)));
  if (from.isShard() && from.copies == 1 &&
      (to.word == Word::Replicated || to.word == Word::Invariant)) {
    SmallVector<int64_t> shape(type.getShape());
    shape[from.dim] *= ranks;
    return Value(AllGatherOp::create(builder, loc, type.clone(shape), value,
                                     to.word, axis, from.dim));
  }
  return cause->emitOpError("needs ")
         << spell(to) << " along 'tp', but gets " << spell(from)
         << ", from where there is no way";
}

/// What `value` is called in `layer`: an op's result by its scope, an argument
/// by its parameter. In no layer, the values of all layers need other names.
static std::string getName(func::FuncOp forward, Value value, int64_t layer) {
  if (Operation *maker = value.getDefiningOp()) {
    ScopeAttr scope = getScope(maker);
    if (!scope || scope.getValue().empty() || layer >= 0 ||
        scope.getLayer() < 0)
      return scope ? scope.getValue().str() : "";
    return scope.getValue().str() + std::to_string(scope.getLayer());
  }
  auto parameter = forward.getArgAttrOfType<ParameterAttr>(
      cast<BlockArgument>(value).getArgNumber(), kParameterAttr);
  return parameter ? parameter.getName().str() : "";
}

void Partitioner::setScope(Operation *op, Operation *first, Value value) {
  ScopeAttr scope = getScope(op);
  if (!scope)
    return;
  std::string name = getName(forward, value, scope.getLayer());
  for (Operation *made = first; made != &*builder.getInsertionPoint();
       made = made->getNextNode()) {
    if (getScope(made))
      continue;
    std::string own;
    if (!name.empty())
      own = name + "." + made->getName().stripDialect().str();
    made->setAttr(kScopeAttr, ScopeAttr::get(op->getContext(), scope.getLayer(),
                                             scope.getModule(), own));
  }
}

LogicalResult Partitioner::read(OpOperand &operand, Spread to) {
  Value value = operand.get();
  Spread from = words.lookup(value);
  if (from == to)
    return success();
  Value &found = moved[{value.getAsOpaquePointer(), int(to.word), to.dim}];
  if (!found) {
    Operation *op = operand.getOwner();
    builder.setInsertionPoint(op);
    FailureOr<Value> now = move(op, value, from, to);
    if (failed(now))
      return failure();
    setScope(op, now->getDefiningOp(), value);
    found = *now;
    words[found] = to;
  }
  operand.set(found);
  return success();
}

void Partitioner::replace(Value value, Value now, Spread want) {
  words[now] = want;
  if (now == value)
    return;
  value.replaceUsesWithIf(now, [&](OpOperand &use) {
    return now.getDefiningOp()->isBeforeInBlock(use.getOwner());
  });
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// A column linear has some of the results; a row linear some of the terms of
/// all of them, whose sum has the bias.
LogicalResult Partitioner::partitionLinear(Partitionable op, Spread want) {
  OpOperand &input = op->getOpOperand(0);
  Value out = op->getResult(0);
  bool isColumn = want.isShard() && want.dim == getRank(out) - 1;
  bool isRow = !isColumn && words.lookup(input.get()) ==
                                Spread::shard(getRank(input.get()) - 1);
  if (!isRow) {
    if (failed(read(input, isColumn ? Spread{Word::Replicated, 0} : want)))
      return failure();
    out.setType(cast<RankedTensorType>(getPart(out, want)));
    words[out] = want;
    return success();
  }
  int64_t biasOperand = op.getBiasOperand();
  Value bias;
  if (biasOperand >= 0) {
    bias = op->getOperand(biasOperand);
    op->eraseOperand(biasOperand);
  }
  builder.setInsertionPointAfter(op);
  FailureOr<Value> sum = move(op, out, {Word::Partial, 0}, want);
  if (failed(sum))
    return failure();
  Value now = *sum;
  if (bias)
    now = AddBiasOp::create(builder, op.getLoc(), now.getType(), now, bias);
  setScope(op, sum->getDefiningOp(), out);
  replace(out, now, want);
  return success();
}

/// Ranks add up the parts that they have, and meet behind that.
LogicalResult Partitioner::partitionSum(Operation *op, Spread want) {
  Value out = op->getResult(0);
  builder.setInsertionPointAfter(op);
  FailureOr<Value> sum = move(op, out, {Word::Partial, 0}, want);
  if (failed(sum))
    return failure();
  setScope(op, sum->getDefiningOp(), out);
  replace(out, *sum, want);
  return success();
}

LogicalResult Partitioner::partitionEmbedding(EmbeddingOp op, Spread want) {
  if (words.lookup(op.getTable()) != Spread::shard(0))
    return partitionWhole(op, want);
  builder.setInsertionPoint(op);
  auto part =
      EmbeddingPartOp::create(builder, op.getLoc(), op.getOut().getType(),
                              op.getIds(), op.getTable(), axis);
  if (ScopeAttr scope = getScope(op))
    part->setAttr(kScopeAttr, scope);
  FailureOr<Value> sum = move(op, part, {Word::Partial, 0}, want);
  if (failed(sum))
    return failure();
  setScope(op, sum->getDefiningOp(), part);
  op.getOut().replaceAllUsesWith(*sum);
  words[*sum] = want;
  op.erase();
  return success();
}

/// Row `t` of the table is that of position `t` in whole rows.
LogicalResult Partitioner::partitionPositions(Operation *op, Spread want) {
  if (failed(read(op->getOpOperand(0), {})))
    return failure();
  Value out = op->getResult(0);
  builder.setInsertionPointAfter(op);
  FailureOr<Value> now = move(op, out, {}, want);
  if (failed(now))
    return failure();
  if (*now != out)
    setScope(op, now->getDefiningOp(), out);
  replace(out, *now, want);
  return success();
}

/// loss = ln(sum over ranks of exp(lse)) - sum over ranks of hit.
LogicalResult Partitioner::partitionLoss(CrossEntropyOp op) {
  if (words.lookup(op.getLogits()) != Spread::shard(2))
    return partitionWhole(op, {});
  Location loc = op.getLoc();
  builder.setInsertionPoint(op);
  auto type = cast<RankedTensorType>(op.getLosses().getType());
  // What the logits have columns for, unless all parts of them are full.
  int64_t count = classes.lookup(op);
  auto part = CrossEntropyPartOp::create(
      builder, loc, TypeRange{type, type}, op.getLogits(), op.getTargets(),
      axis,
      count % ranks == 0 ? IntegerAttr() : builder.getI64IntegerAttr(count));
  if (ScopeAttr scope = getScope(op))
    part->setAttr(kScopeAttr, scope);
  FailureOr<Value> parts = move(op, part.getLse(), Spread::shard(0), {});
  FailureOr<Value> hit = move(op, part.getHit(), {Word::Partial, 0}, {});
  if (failed(parts) || failed(hit))
    return failure();
  Value lse = JoinLseOp::create(builder, loc, type, *parts);
  Value less =
      ScaleOp::create(builder, loc, *hit, builder.getF32FloatAttr(-1.0f));
  Value losses = AddOp::create(builder, loc, lse, less);
  setScope(op, part, part.getLse());
  op.getLosses().replaceAllUsesWith(losses);
  op.getLse().replaceAllUsesWith(lse);
  op.erase();
  return success();
}

/// Parameters are the same numbers for all tokens. Experts are told of a rank's
/// own tokens, also where the residual stream has all of them.
LogicalResult Partitioner::partitionTokens(Operation *op, Spread want) {
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get();
    bool isWeight = isOfExperts(op) && operand.getOperandNumber() == 1;
    bool isOfTokens = !isWeight && getRank(value) == 3 &&
                      words.lookup(value).word != Word::Varying;
    if (isOfTokens && failed(read(operand, Spread::shard(1))))
      return failure();
  }
  auto kept = dyn_cast<Partitionable>(op);
  if (op->hasTrait<OpTrait::SameOperandsAndResultType>() ||
      op->hasTrait<nn::Pointwise>())
    for (Value result : op->getResults())
      result.setType(
          cast<RankedTensorType>(result.getType())
              .clone(cast<ShapedType>(op->getOperand(0).getType()).getShape()));
  else if (kept)
    kept.fitTokens();
  else
    return op->emitOpError("needs rows of all tokens, but each of ")
           << ranks << " ranks along 'tp' has those of its own";
  Spread own = getOfOwnTokens(op);
  for (Value result : op->getResults())
    words[result] = own;
  if (own == want)
    return success();
  Value out = op->getResult(0);
  builder.setInsertionPointAfter(op);
  FailureOr<Value> now = move(op, out, own, want);
  if (failed(now))
    return failure();
  setScope(op, now->getDefiningOp(), out);
  replace(out, *now, want);
  return success();
}

/// What keeps columns or heads apart does with some of them as with all.
LogicalResult Partitioner::partitionHeads(Operation *op, Spread want) {
  auto own = cast<Partitionable>(op);
  for (OpOperand *operand : getColumnOperands(op)) {
    int64_t dim = own.getOperandDim(operand->getOperandNumber(), want.dim);
    Spread now = words.lookup(operand->get());
    if (failed(read(*operand, now.isShared() ? now : Spread::shard(dim))))
      return failure();
  }
  for (unsigned number : own.getSharedOperands())
    if (failed(read(op->getOpOperand(number), {Word::Replicated, 0})))
      return failure();
  auto divide = [&](StringRef name, int64_t parts) {
    if (auto heads = op->getAttrOfType<IntegerAttr>(name))
      op->setAttr(name, builder.getI64IntegerAttr(
                            std::max<int64_t>(heads.getInt() / parts, 1)));
  };
  divide("heads", want.isShard() ? ranks / want.copies : 1);
  divide("kv_heads", ranks); // If there are fewer, a rank has one.
  for (Value result : getColumnResults(op)) {
    result.setType(getPart(result, want));
    words[result] = want;
  }
  own.fitResults(ranks);
  return success();
}

/// Whole columns, of some rows or of all: each operand is spread as the result.
LogicalResult Partitioner::partitionWhole(Operation *op, Spread want) {
  PartWay way = getPartWay(op);
  bool isRowwise = way == PartWay::Norm || way == PartWay::Join;
  bool isRange = way == PartWay::Range;
  bool isSame = op->hasTrait<OpTrait::SameOperandsAndResultType>();
  bool isPointwise = isSame || op->hasTrait<nn::Pointwise>();
  bool isParameter = op->getNumResults() == 1 && getArgument(op->getResult(0));
  for (OpOperand &operand : op->getOpOperands()) {
    bool follows = operand.getOperandNumber() == 0
                       ? isRowwise || isPointwise || isRange
                       : isSame || way == PartWay::Join;
    // Gains and biases are whole: R and I are the same numbers.
    if (isParameter || (isRowwise && !follows))
      continue;
    if (failed(read(operand, follows ? want : Spread())))
      return failure();
  }
  bool isCut = isParameter || isRowwise || isPointwise || isRange;
  for (Value result : op->getResults()) {
    Spread spread = isCut ? want : Spread();
    result.setType(getPart(result, spread));
    words[result] = spread;
  }
  return success();
}

/// What draws for the elements of a part draws for those of the whole.
void Partitioner::setPart(Operation *op) {
  Spread spread = words.lookup(op->getResult(0));
  auto rate = op->getAttrOfType<FloatAttr>("rate");
  if (!spread.isShard() || rate.getValue().isZero())
    return;
  int64_t dim = *cast<Partitionable>(op).getDrawnDim(spread.dim);
  op->setAttr("part", PartAttr::get(forward.getContext(), axis, dim, ranks));
}

LogicalResult Partitioner::partition(Operation *op) {
  auto layout = op->getAttrOfType<LayoutAttr>(kLayoutAttr);
  op->removeAttr(kLayoutAttr);
  Spread want = Spread::get(layout, mesh.getSize(kHeadCopiesAxis));
  bool isParameter = op->getNumResults() == 1 && getArgument(op->getResult(0));
  if (hasWholeExperts(mesh) && isOfOwnTokens(op, words))
    return partitionTokens(op, want);
  if (isParameter) // Rounded, it is spread as it was.
    want = words.lookup(op->getOperand(0));
  else if ((want.isShard() || want.isShared()) &&
           !getColumnOperands(op).empty() &&
           !(want.isShard() && want.dim == 1 &&
             getRank(op->getResult(0)) == 3)) // no rows
    return partitionHeads(op, want);
  // What adds parts up reads nothing else.
  if (op->getNumOperands() > 0 &&
      words.lookup(op->getOperand(0)).word == Word::Partial)
    return partitionSum(op, want);
  switch (getPartWay(op)) {
  case PartWay::Linear:
    return partitionLinear(cast<Partitionable>(op), want);
  case PartWay::Lookup:
    return partitionEmbedding(cast<EmbeddingOp>(op), want);
  case PartWay::Positions:
    return partitionPositions(op, want);
  case PartWay::Loss:
    return partitionLoss(cast<CrossEntropyOp>(op));
  default:
    return partitionWhole(op, want);
  }
}

LogicalResult Partitioner::run() {
  for (Operation &op : forward.getOps())
    if (getPartWay(&op) == PartWay::Loss)
      classes[&op] =
          cast<ShapedType>(op.getOperand(0).getType()).getShape().back();
  for (BlockArgument argument : forward.getArguments()) {
    Spread spread = Spread::get(forward.getArgAttrOfType<LayoutAttr>(
                                    argument.getArgNumber(), kLayoutAttr),
                                mesh.getSize(kHeadCopiesAxis));
    auto whole = cast<RankedTensorType>(argument.getType());
    if (spread.isShard() && spread.copies == 1 &&
        whole.getDimSize(spread.dim) % ranks != 0)
      forward.setArgAttr(
          argument.getArgNumber(), kWholeAttr,
          builder.getI64IntegerAttr(whole.getDimSize(spread.dim)));
    argument.setType(getPart(argument, spread));
    words[argument] = spread;
  }
  for (Operation &op : llvm::make_early_inc_range(forward.getOps())) {
    auto own = dyn_cast<Partitionable>(op);
    bool draws = own && own.getDrawnDim(/*dim=*/0);
    if (failed(partition(&op)))
      return failure();
    if (draws)
      setPart(&op);
  }
  Block &block = forward.getBody().front();
  forward.setType(builder.getFunctionType(
      block.getArgumentTypes(), block.getTerminator()->getOperandTypes()));
  return success();
}
