//===- ExpandHeads.cpp - Head and loss, chunk after chunk -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PrepareSchedule.h"
#include "mlir/IR/BuiltinOps.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Dialect/Remat/RematOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

namespace {
/// Writes one nn.linear_cross_entropy as the ops it stands for, on one chunk of
/// rows after the other.
class Expander {
public:
  explicit Expander(LinearCrossEntropyOp op)
      : op(op), builder(op), sum(op.getSum()) {}
  void run();

private:
  void addChunk(int64_t first, int64_t rows);
  /// The losses of `rows` rows, and the gradient of their logits if that is
  /// asked for.
  std::pair<Value, Value> addLoss(Value logits, Value targets, int64_t rows);
  std::pair<Value, Value> addLossOfParts(Value logits, Value targets,
                                         int64_t rows);
  /// Rows of a value of the op, as a batch of one sequence.
  Value view(Value value, int64_t first, int64_t rows);
  template <typename OpTy, typename... Args>
  OpTy create(ScopeAttr scope, Args &&...args) {
    auto made = OpTy::create(builder, op.getLoc(), std::forward<Args>(args)...);
    if (scope)
      made->setAttr(kScopeAttr, scope);
    remat::keepId(op, made);
    return made;
  }

  LinearCrossEntropyOp op;
  OpBuilder builder;
  Value sum; ///< of the gradients of the weight, so far
  SmallVector<Value> lossesOfChunks, dinputs;
};
} // namespace

Value Expander::view(Value value, int64_t first, int64_t rows) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  int64_t width = shape.size() == 3 ? shape[2] : 1;
  shape[0] = 1, shape[1] = rows;
  return rt::ViewOp::create(builder, op.getLoc(), type.clone(shape), value,
                            first * width);
}

std::pair<Value, Value> Expander::addLoss(Value logits, Value targets,
                                          int64_t rows) {
  ScopeAttr scope = op.getLossScopeAttr();
  auto perRow = RankedTensorType::get({1, rows}, builder.getF32Type());
  // This comes before the losses: they and the gradient are then one kernel.
  Value dlosses;
  if (op.getFactor())
    dlosses = create<ConstantOp>(scope, perRow, op.getFactorAttr());
  auto loss = create<CrossEntropyOp>(scope, TypeRange{perRow, perRow}, logits,
                                     targets, op.getClassesAttr());
  if (!dlosses)
    return {loss.getLosses(), Value()};
  return {loss.getLosses(), create<CrossEntropyBackwardOp>(
                                scope, logits.getType(), logits, targets,
                                loss.getLse(), dlosses, op.getClassesAttr())};
}

/// The same where ranks have parts of the vocabulary: what partitioning makes
/// of a loss, and differentiation of that.
std::pair<Value, Value> Expander::addLossOfParts(Value logits, Value targets,
                                                 int64_t rows) {
  ScopeAttr scope = op.getLossScopeAttr();
  auto module = op->getParentOfType<ModuleOp>();
  StringAttr axis = op.getAxisAttr();
  auto perRow = RankedTensorType::get({1, rows}, builder.getF32Type());
  auto part =
      create<CrossEntropyPartOp>(scope, TypeRange{perRow, perRow}, logits,
                                 targets, axis, op.getClassesAttr());
  Value parts = create<AllGatherOp>(
      scope, perRow.clone({getAxisSize(module, op.getAxis().value()), rows}),
      part.getLse(), Word::Invariant, op.getAxis().value(), /*dim=*/0);
  Value hit = create<AllReduceOp>(scope, part.getHit(), axis).getSums().front();
  Value lse = create<JoinLseOp>(scope, perRow, parts);
  Value less = create<ScaleOp>(scope, hit, builder.getF32FloatAttr(-1.0f));
  Value losses = create<AddOp>(scope, lse, less);
  if (!op.getFactor())
    return {losses, Value()};
  Value dlosses = create<ConstantOp>(scope, perRow, op.getFactorAttr());
  Value dparts =
      create<JoinLseBackwardOp>(scope, parts.getType(), parts, lse, dlosses);
  Value dlse = create<SliceOp>(scope, perRow, dparts, axis,
                               builder.getI64IntegerAttr(0));
  Value dhit = create<ConstantOp>(
      scope, perRow,
      builder.getF32FloatAttr(-op.getFactor()->convertToFloat()));
  return {losses, create<CrossEntropyPartBackwardOp>(
                      scope, logits.getType(), logits, targets, part.getLse(),
                      dlse, dhit, axis, op.getClassesAttr())};
}

void Expander::addChunk(int64_t first, int64_t rows) {
  ScopeAttr scope = getScope(op);
  WeightLayout layout = op.getLayout();
  Value weight = op.getWeight();
  auto weightType = cast<RankedTensorType>(weight.getType());
  int64_t vocabulary = weightType.getDimSize(layout == WeightLayout::InOut);

  Value input = view(op.getInput(), first, rows);
  Value targets = view(op.getTargets(), first, rows);
  Value logits =
      create<LinearOp>(scope, weightType.clone({1, rows, vocabulary}), input,
                       weight, /*bias=*/Value(), layout);
  auto [losses, dlogits] = op.getAxis() ? addLossOfParts(logits, targets, rows)
                                        : addLoss(logits, targets, rows);
  lossesOfChunks.push_back(losses);
  if (!dlogits)
    return;
  if (sum) {
    Value term = create<LinearBackwardWeightOp>(scope, sum.getType(), input,
                                                dlogits, layout);
    sum = create<AccumulateOp>(scope, sum.getType(), sum, term);
  }
  if (op.getDinput())
    dinputs.push_back(create<LinearBackwardInputOp>(scope, input.getType(),
                                                    dlogits, weight, layout));
}

void Expander::run() {
  int64_t first = 0;
  for (int64_t rows : op.getChunks()) {
    addChunk(first, rows);
    first += rows;
  }
  auto join = [&](Value whole, ArrayRef<Value> parts) {
    whole.replaceAllUsesWith(
        rt::JoinOp::create(builder, op.getLoc(), whole.getType(), parts));
  };
  join(op.getLosses(), lossesOfChunks);
  if (Value dinput = op.getInputGradient())
    join(dinput, dinputs);
  if (Value newSum = op.getNewSum())
    newSum.replaceAllUsesWith(sum);
  op.erase();
}

void kernels::expandHeads(func::FuncOp function) {
  SmallVector<LinearCrossEntropyOp> heads(
      function.getBody().front().getOps<LinearCrossEntropyOp>());
  for (LinearCrossEntropyOp head : heads)
    Expander(head).run();
}
