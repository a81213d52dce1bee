//===- ExpandHeads.cpp - Head and loss, chunk after chunk -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PrepareSchedule.h"
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
  SmallVector<Value> losses, dinputs;
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

void Expander::addChunk(int64_t first, int64_t rows) {
  ScopeAttr scope = getScope(op), lossScope = op.getLossScopeAttr();
  WeightLayout layout = op.getLayout();
  Value weight = op.getWeight();
  auto weightType = cast<RankedTensorType>(weight.getType());
  int64_t vocabulary = weightType.getDimSize(layout == WeightLayout::InOut);
  auto perRow = RankedTensorType::get({1, rows}, builder.getF32Type());

  Value input = view(op.getInput(), first, rows);
  Value targets = view(op.getTargets(), first, rows);
  Value logits =
      create<LinearOp>(scope, weightType.clone({1, rows, vocabulary}), input,
                       weight, /*bias=*/Value(), layout);
  // This comes before the losses: they and the gradient are then one kernel.
  Value dlosses;
  if (op.getFactor())
    dlosses = create<ConstantOp>(lossScope, perRow, op.getFactorAttr());
  auto loss = create<CrossEntropyOp>(lossScope, TypeRange{perRow, perRow},
                                     logits, targets, op.getClassesAttr());
  losses.push_back(loss.getLosses());
  if (!dlosses)
    return;
  Value dlogits = create<CrossEntropyBackwardOp>(lossScope, logits.getType(),
                                                 logits, targets, loss.getLse(),
                                                 dlosses, op.getClassesAttr());
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
  join(op.getLosses(), losses);
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
