//===- NNToLinalgExperts.cpp - Mixtures of experts --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Choosing and sorting go over integers, and are ops of `rt`. What goes over
// rows is a loop, which finds its rows elsewhere.
//
//===----------------------------------------------------------------------===//

#include "NNToLinalg.h"
#include "Shape.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"
#include "reprise/Dialect/RT/RTOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::kernels;
using namespace reprise::nn;

using Values = LoopBuilder::Values;
using Scalars = ArrayRef<Scalar>;
using Results = SmallVector<Scalar>;

static Value asIndex(ImplicitLocOpBuilder &builder, Scalar number) {
  return arith::IndexCastOp::create(builder, builder.getIndexType(),
                                    number.get());
}

static Values convert(LoopBuilder &loops, PermuteOp op) {
  Value input = loops.asMatrix(op.getInput(), 1);
  Value order = loops.asVector(op.getOrder());
  return loops.map({getShape(order)[0], 1}, {{order, Access::Row}},
                   getElementTypeOrSelf(op.getOut()),
                   [&](ImplicitLocOpBuilder &builder, Scalars s) -> Results {
                     return {gather(builder, input, asIndex(builder, s[0]))};
                   });
}

static Values convert(LoopBuilder &loops, DispatchOp op) {
  Value input = loops.asMatrix(op.getInput());
  int64_t rows = getShape(op.getOrder())[0], cols = getShape(input)[1];
  int64_t slots = getShape(op.getInverse()).back();
  return loops.map({rows, cols}, {{op.getOrder(), Access::Row}},
                   getElementTypeOrSelf(op.getOut()),
                   [&](ImplicitLocOpBuilder &builder, Scalars s) -> Results {
                     Value size =
                         arith::ConstantIndexOp::create(builder, slots);
                     Value token = arith::DivUIOp::create(
                         builder, asIndex(builder, s[0]), size);
                     return {gather(builder, input, token)};
                   });
}

static Values convert(LoopBuilder &loops, CombineOp op) {
  Value inverse = loops.asMatrix(op.getInverse());
  int64_t tokens = getShape(inverse)[0], slots = getShape(inverse)[1];
  int64_t cols = getShape(op.getInput())[1];
  auto body = [&](ImplicitLocOpBuilder &builder, Scalars) -> Results {
    Value token = linalg::IndexOp::create(builder, 0);
    std::optional<Scalar> sum;
    for (int64_t slot = 0; slot < slots; ++slot) {
      Value number = arith::ConstantIndexOp::create(builder, slot);
      Value row = asIndex(builder, getElement(builder, inverse, token, number));
      Scalar term = gather(builder, op.getInput(), row);
      sum = sum ? *sum + term : term;
    }
    return {*sum};
  };
  return loops.map({tokens, cols}, {}, getElementTypeOrSelf(op.getOut()), body);
}

//===----------------------------------------------------------------------===//
// Activation
//===----------------------------------------------------------------------===//

static Scalar sigmoid(Scalar x) {
  return 1.0 / (1.0 + exp(x.unary<arith::NegFOp>()));
}

static Values convert(LoopBuilder &loops, WeightedSwiGLUOp op) {
  Value gate = loops.asMatrix(op.getGate());
  return loops.map(getShape(gate),
                   {{gate},
                    {loops.asMatrix(op.getUp())},
                    {loops.asVector(op.getWeight()), Access::Row}},
                   getElementTypeOrSelf(op.getOut()),
                   [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                     Scalar activated = s[0] * sigmoid(s[0]);
                     Scalar out = activated * s[1];
                     return {out * s[2]};
                   });
}

static Values convert(LoopBuilder &loops, WeightedSwiGLUBackwardOp op) {
  Value gate = loops.asMatrix(op.getGate());
  SmallVector<LoopOperand> inputs = {
      {gate},
      {loops.asMatrix(op.getUp())},
      {loops.asVector(op.getWeight()), Access::Row},
      {loops.asMatrix(op.getDout())}};
  ArrayRef<int64_t> space = getShape(gate);
  Type element = getElementTypeOrSelf(op.getGate());
  Values gradients =
      loops.map(space, inputs, {element, element},
                [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                  Scalar sig = sigmoid(s[0]);
                  Scalar d = s[3] * s[2];
                  Scalar activated = s[0] * sig;
                  Scalar slope = fma(activated, 1.0 - sig, sig);
                  Scalar dup = d * activated;
                  Scalar scaled = d * s[1];
                  return {scaled * slope, dup};
                });
  Value dweight =
      loops.reduceRows(inputs, loops.filled({space[0]}, 0),
                       [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                         Scalar activated = s[0] * sigmoid(s[0]);
                         Scalar out = activated * s[1];
                         Scalar term = s[3] * out;
                         return {s[4] + term};
                       });
  return {gradients[0], gradients[1], dweight};
}

static Values convert(LoopBuilder &loops, GateWeightOp op) {
  Value input = loops.asVector(op.getInput());
  return loops.map(getShape(input), {{input}},
                   getElementTypeOrSelf(op.getWeight()),
                   [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                     return {sigmoid(s[0])};
                   });
}

static Values convert(LoopBuilder &loops, GateWeightBackwardOp op) {
  Value weight = loops.asVector(op.getWeight());
  return loops.map(getShape(weight),
                   {{weight}, {loops.asVector(op.getDweight())}},
                   getElementTypeOrSelf(op.getDinput()),
                   [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                     Scalar slope = s[0] * (1.0 - s[0]);
                     return {s[1] * slope};
                   });
}

//===----------------------------------------------------------------------===//
// Balance
//===----------------------------------------------------------------------===//

/// The exponentials of logits, and of each row the sum of their products with
/// `rows`.
static Value sumExpected(LoopBuilder &loops, const Exponentials &exponentials,
                         Value rows) {
  int64_t tokens = getShape(exponentials.all)[0];
  return loops.reduceRows({{exponentials.all}, {rows, Access::Column}},
                          loops.filled({tokens}, 0),
                          [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                            Scalar term = s[0] * s[1];
                            return {s[2] + term};
                          });
}

static Values convert(LoopBuilder &loops, ExpectedRowsOp op) {
  Exponentials exponentials =
      buildExponentials(loops, loops.asMatrix(op.getLogits()));
  Value sum = sumExpected(loops, exponentials, op.getRows());
  return loops.map(getShape(sum), {{sum}, {exponentials.sum}},
                   getElementTypeOrSelf(op.getOut()),
                   [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                     return {s[0] / s[1]};
                   });
}

static Values convert(LoopBuilder &loops, ExpectedRowsBackwardOp op) {
  Exponentials exponentials =
      buildExponentials(loops, loops.asMatrix(op.getLogits()));
  Value sum = sumExpected(loops, exponentials, op.getRows());
  Value dout = loops.asVector(op.getDout());
  auto divide = [&](Value value) {
    return loops.map(getShape(sum), {{value}, {exponentials.sum}},
                     loops.getBuilder().getF32Type(),
                     [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                       return {s[0] / s[1]};
                     })[0];
  };
  Value expected = divide(sum), factor = divide(dout);
  return loops.map(getShape(exponentials.all),
                   {{exponentials.all},
                    {op.getRows(), Access::Column},
                    {expected, Access::Row},
                    {factor, Access::Row}},
                   getElementTypeOrSelf(op.getDlogits()),
                   [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                     Scalar weight = s[3] * s[0];
                     return {weight * (s[1] - s[2])};
                   });
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

namespace {
template <typename OpTy>
struct Loops : LoopBody::ExternalModel<Loops<OpTy>, OpTy> {
  Values buildLoops(Operation *op, LoopBuilder &loops) const {
    return convert(loops, cast<OpTy>(op));
  }
};
} // namespace

template <typename... Ops>
static void attach(MLIRContext &context) {
  (Ops::template attachInterface<Loops<Ops>>(context), ...);
}

void kernels::attachExpertBodies(MLIRContext &context) {
  attach<PermuteOp, DispatchOp, CombineOp, WeightedSwiGLUOp,
         WeightedSwiGLUBackwardOp, GateWeightOp, GateWeightBackwardOp,
         ExpectedRowsOp, ExpectedRowsBackwardOp>(context);
  attachRenamed<ChooseExpertsOp, rt::ChooseExpertsOp>(context);
  attachRenamed<ExpertWeightsOp, rt::ExpertWeightsOp>(context);
  attachRenamed<ExpertWeightsBackwardOp, rt::ExpertWeightsBackwardOp>(context);
  attachRenamed<SortRowsOp, rt::SortRowsOp>(context);
  attachRenamed<CountRowsOp, rt::CountRowsOp>(context);
}
