//===- ClassFacts.cpp - Losses, and what has a row for each class ---------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Facts.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Interfaces/Facts.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

//===----------------------------------------------------------------------===//
// Losses
//===----------------------------------------------------------------------===//

/// Whether `backward` reads what `loss` reads, and what it makes.
template <typename LossOp, typename BackwardOp>
static bool isOfSameRows(LossOp loss, BackwardOp backward) {
  return backward.getLogits() == loss.getLogits() &&
         backward.getTargets() == loss.getTargets() &&
         backward.getClasses() == loss.getClasses() &&
         backward.getLse() == loss.getLse();
}

namespace {
template <typename LossOp, typename BackwardOp>
struct Loss : LogitsLoss::ExternalModel<Loss<LossOp, BackwardOp>, LossOp> {
  TypedValue<RankedTensorType> getLogits(Operation *op) const {
    return cast<LossOp>(op).getLogits();
  }
  Value getTargets(Operation *op) const {
    return cast<LossOp>(op).getTargets();
  }
  IntegerAttr getClassesAttr(Operation *op) const {
    return cast<LossOp>(op).getClassesAttr();
  }
  bool isGradient(Operation *op, Operation *other) const {
    auto backward = dyn_cast_if_present<BackwardOp>(other);
    return backward && isOfSameRows(cast<LossOp>(op), backward);
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Rows of classes
//===----------------------------------------------------------------------===//

using Found = function_ref<void(Value, bool)>;

static ArrayRef<int64_t> getShape(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// A weight `[V, K]`, or its gradient, has a row for each class where the
/// logits have a column. What `rows` are has neither.
template <typename LinearTy>
static bool followLinear(LinearTy op, Value logits, Value table, Value rows,
                         Value value, Found found) {
  found(logits, /*areColumns=*/true);
  found(table, /*areColumns=*/false);
  return op.getLayout() == WeightLayout::OutIn && value != rows;
}

namespace {
/// What it computes element by element is padded as what it reads.
template <typename OpTy>
struct Alike : ClassRows::ExternalModel<Alike<OpTy>, OpTy> {
  bool followClasses(Operation *op, Value value, bool areColumns,
                     Found found) const {
    auto look = [&](Value other) {
      if (getShape(other) == getShape(value))
        found(other, areColumns);
    };
    llvm::for_each(op->getOperands(), look);
    llvm::for_each(op->getResults(), look);
    return true;
  }
};

/// Zeros change no sum, in whatever rows or columns they are.
struct NormClasses : ClassRows::ExternalModel<NormClasses, GlobalNormOp> {
  bool followClasses(Operation *, Value, bool, Found) const { return true; }
};

/// Each result is padded as its operand is, or as its terms are.
struct AllReduceClasses
    : ClassRows::ExternalModel<AllReduceClasses, AllReduceOp> {
  bool followClasses(Operation *op, Value value, bool areColumns,
                     Found found) const {
    for (auto [number, term] : llvm::enumerate(op->getOperands())) {
      Value sum = op->getResult(number % op->getNumResults());
      if (term == value || sum == value) {
        found(term, areColumns);
        found(sum, areColumns);
      }
    }
    return true;
  }
};

/// No id names a further row.
struct EmbeddingClasses
    : ClassRows::ExternalModel<EmbeddingClasses, EmbeddingOp> {
  bool followClasses(Operation *op, Value value, bool areColumns, Found) const {
    return value == cast<EmbeddingOp>(op).getTable() && !areColumns;
  }
};

struct EmbeddingBackwardClasses
    : ClassRows::ExternalModel<EmbeddingBackwardClasses, EmbeddingBackwardOp> {
  bool followClasses(Operation *, Value, bool areColumns, Found) const {
    return !areColumns;
  }
};

struct LinearClasses : ClassRows::ExternalModel<LinearClasses, LinearOp> {
  bool followClasses(Operation *op, Value value, bool, Found found) const {
    auto linear = cast<LinearOp>(op);
    return followLinear(linear, linear.getOut(), linear.getWeight(),
                        linear.getInput(), value, found) &&
           !linear.getBias();
  }
};

struct LinearInputClasses
    : ClassRows::ExternalModel<LinearInputClasses, LinearBackwardInputOp> {
  bool followClasses(Operation *op, Value value, bool, Found found) const {
    auto linear = cast<LinearBackwardInputOp>(op);
    return followLinear(linear, linear.getDout(), linear.getWeight(),
                        linear.getDinput(), value, found);
  }
};

struct LinearWeightClasses
    : ClassRows::ExternalModel<LinearWeightClasses, LinearBackwardWeightOp> {
  bool followClasses(Operation *op, Value value, bool, Found found) const {
    auto linear = cast<LinearBackwardWeightOp>(op);
    return followLinear(linear, linear.getDout(), linear.getDweight(),
                        linear.getInput(), value, found);
  }
};

struct LossClasses : ClassRows::ExternalModel<LossClasses, CrossEntropyOp> {
  bool followClasses(Operation *, Value, bool areColumns, Found) const {
    return areColumns;
  }
  Value getClassTable(Operation *op) const {
    auto linear =
        cast<CrossEntropyOp>(op).getLogits().getDefiningOp<LinearOp>();
    return linear ? linear.getWeight() : Value();
  }
  void setNumClasses(Operation *op, int64_t classes) const {
    auto loss = cast<CrossEntropyOp>(op);
    if (!loss.getClasses())
      loss.setClasses(classes);
  }
};

struct LossBackwardClasses
    : ClassRows::ExternalModel<LossBackwardClasses, CrossEntropyBackwardOp> {
  bool followClasses(Operation *op, Value, bool areColumns, Found found) const {
    auto backward = cast<CrossEntropyBackwardOp>(op);
    found(backward.getLogits(), /*areColumns=*/true);
    found(backward.getDlogits(), /*areColumns=*/true);
    return areColumns;
  }
  void setNumClasses(Operation *op, int64_t classes) const {
    auto backward = cast<CrossEntropyBackwardOp>(op);
    if (!backward.getClasses())
      backward.setClasses(classes);
  }
};

struct HeadClasses
    : ClassRows::ExternalModel<HeadClasses, LinearCrossEntropyOp> {
  bool followClasses(Operation *op, Value value, bool, Found found) const {
    auto head = cast<LinearCrossEntropyOp>(op);
    found(head.getWeight(), /*areColumns=*/false);
    if (head.getSum()) {
      found(head.getSum(), /*areColumns=*/false);
      found(head.getNewSum(), /*areColumns=*/false);
    }
    return head.getLayout() == WeightLayout::OutIn && !head.getAxis() &&
           value != head.getInput() && value != head.getInputGradient();
  }
  Value getClassTable(Operation *op) const {
    return cast<LinearCrossEntropyOp>(op).getWeight();
  }
  void setNumClasses(Operation *op, int64_t classes) const {
    auto head = cast<LinearCrossEntropyOp>(op);
    if (!head.getClasses())
      head.setClasses(classes);
  }
};
} // namespace

template <template <typename> typename Model, typename... Ops>
static void attach(MLIRContext &context) {
  (Ops::template attachInterface<Model<Ops>>(context), ...);
}

void nn::attachClassFacts(MLIRContext &context) {
  CrossEntropyOp::attachInterface<Loss<CrossEntropyOp, CrossEntropyBackwardOp>,
                                  LossClasses>(context);
  CrossEntropyPartOp::attachInterface<
      Loss<CrossEntropyPartOp, CrossEntropyPartBackwardOp>>(context);
  attach<Alike, AdamWOp, AccumulateOp, AddOp, CastOp, ConstantOp, PushOp>(
      context);
  GlobalNormOp::attachInterface<NormClasses>(context);
  AllReduceOp::attachInterface<AllReduceClasses>(context);
  EmbeddingOp::attachInterface<EmbeddingClasses>(context);
  EmbeddingBackwardOp::attachInterface<EmbeddingBackwardClasses>(context);
  LinearOp::attachInterface<LinearClasses>(context);
  LinearBackwardInputOp::attachInterface<LinearInputClasses>(context);
  LinearBackwardWeightOp::attachInterface<LinearWeightClasses>(context);
  CrossEntropyBackwardOp::attachInterface<LossBackwardClasses>(context);
  LinearCrossEntropyOp::attachInterface<HeadClasses>(context);
}
