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
#include "reprise/Dialect/NN/NNBalanceOps.h"
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

namespace {
/// What probabilities are shares of, and the sums of all of a token.
struct Terms {
  Value all, sum;
};
} // namespace

/// So that the sum of sigmoids that are all zero can be divided by.
static constexpr double kLeastOfSum = 1e-20;

/// Exponentials of logits, or their sigmoids.
static Terms buildTerms(LoopBuilder &loops, Value logits, bool isSigmoid) {
  if (!isSigmoid) {
    Exponentials exponentials = buildExponentials(loops, logits);
    return {exponentials.all, exponentials.sum};
  }
  Type f32 = loops.getBuilder().getF32Type();
  Value all = loops.map(getShape(logits), {{logits}}, f32,
                        [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                          return {sigmoid(s[0])};
                        })[0];
  Value sum =
      loops.reduceRows({{all}}, loops.filled({getShape(all)[0]}, 0),
                       [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                         return {s[1] + s[0]};
                       });
  sum = loops.map(getShape(sum), {{sum}}, f32,
                  [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                    return {s[0] + kLeastOfSum};
                  })[0];
  return {all, sum};
}

namespace {
/// The rows of experts, of which each sequence of tokens may have its own.
class ExpertRows {
public:
  ExpertRows(Value rows, int64_t tokens)
      : rows(rows), isOfSequence(getShape(rows).size() == 2),
        length(isOfSequence ? tokens / getShape(rows)[0] : tokens) {}

  /// Appends what a loop reads of them besides.
  void addTo(SmallVector<LoopOperand> &operands) const {
    if (!isOfSequence)
      operands.push_back({rows, Access::Column});
  }
  /// Those of the expert at hand, where `scalars` are the operands of the loop
  /// of which `number` was added.
  Scalar get(ImplicitLocOpBuilder &builder, Scalars scalars,
             unsigned number) const {
    if (!isOfSequence)
      return scalars[number];
    Value token = linalg::IndexOp::create(builder, 0);
    Value size = arith::ConstantIndexOp::create(builder, length);
    return gather(builder, rows, arith::DivUIOp::create(builder, token, size));
  }

private:
  Value rows;
  bool isOfSequence;
  int64_t length;
};
} // namespace

/// Of each token the sum of the products of terms with rows.
static Value sumExpected(LoopBuilder &loops, const Terms &terms,
                         const ExpertRows &rows) {
  int64_t tokens = getShape(terms.all)[0];
  SmallVector<LoopOperand> operands = {{terms.all}};
  rows.addTo(operands);
  return loops.reduceRows(
      operands, loops.filled({tokens}, 0),
      [&](ImplicitLocOpBuilder &builder, Scalars s) -> Results {
        Scalar term = s[0] * rows.get(builder, s, 1);
        return {s.back() + term};
      });
}

static Value divide(LoopBuilder &loops, Value value, Value by) {
  return loops.map(getShape(value), {{value}, {by}},
                   loops.getBuilder().getF32Type(),
                   [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                     return {s[0] / s[1]};
                   })[0];
}

static Values convert(LoopBuilder &loops, ExpectedRowsOp op) {
  Value logits = loops.asMatrix(op.getLogits());
  Terms terms = buildTerms(loops, logits, op.getSigmoid());
  ExpertRows rows(op.getRows(), getShape(logits)[0]);
  return {divide(loops, sumExpected(loops, terms, rows), terms.sum)};
}

static Values convert(LoopBuilder &loops, ExpectedRowsBackwardOp op) {
  Value logits = loops.asMatrix(op.getLogits());
  Terms terms = buildTerms(loops, logits, op.getSigmoid());
  ExpertRows rows(op.getRows(), getShape(logits)[0]);
  Value expected = divide(loops, sumExpected(loops, terms, rows), terms.sum);
  Value factor = divide(loops, loops.asVector(op.getDout()), terms.sum);
  SmallVector<LoopOperand> operands = {
      {terms.all}, {expected, Access::Row}, {factor, Access::Row}};
  rows.addTo(operands);
  bool isSigmoid = op.getSigmoid();
  return loops.map(getShape(terms.all), operands,
                   getElementTypeOrSelf(op.getDlogits()),
                   [&](ImplicitLocOpBuilder &builder, Scalars s) -> Results {
                     Scalar weight = s[2] * s[0];
                     Scalar slope = weight * (rows.get(builder, s, 3) - s[1]);
                     return {isSigmoid ? slope * (1.0 - s[0]) : slope};
                   });
}

/// The logarithm of each row's sum of exponentials.
static Value buildLogSumExp(LoopBuilder &loops,
                            const Exponentials &exponentials) {
  return loops.map(getShape(exponentials.sum),
                   {{exponentials.sum}, {exponentials.greatest}},
                   loops.getBuilder().getF32Type(),
                   [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                     return {log(s[0]) + s[1]};
                   })[0];
}

static Values convert(LoopBuilder &loops, SquaredLogSumExpOp op) {
  Value lse = buildLogSumExp(
      loops, buildExponentials(loops, loops.asMatrix(op.getLogits())));
  return loops.map(getShape(lse), {{lse}}, getElementTypeOrSelf(op.getOut()),
                   [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                     return {s[0] * s[0]};
                   });
}

static Values convert(LoopBuilder &loops, SquaredLogSumExpBackwardOp op) {
  Exponentials exponentials =
      buildExponentials(loops, loops.asMatrix(op.getLogits()));
  Value lse = buildLogSumExp(loops, exponentials);
  Value slope =
      loops.map(getShape(lse),
                {{lse}, {loops.asVector(op.getDout())}, {exponentials.sum}},
                loops.getBuilder().getF32Type(),
                [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                  Scalar twice = s[1] + s[1];
                  return {twice * s[0] / s[2]};
                })[0];
  return loops.map(getShape(exponentials.all),
                   {{exponentials.all}, {slope, Access::Row}},
                   getElementTypeOrSelf(op.getDlogits()),
                   [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                     return {s[0] * s[1]};
                   });
}

/// Rows are whole numbers, so of any there are their sum is 1 or more.
static Values convert(LoopBuilder &loops, RowSharesOp op) {
  int64_t experts = getShape(op.getRows())[0];
  Value rows = loops.asMatrix(op.getRows(), experts);
  Value sum =
      loops.reduceRows({{rows}}, loops.filled({1}, 0),
                       [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                         return {s[1] + s[0]};
                       });
  return loops.map({1, experts}, {{rows}, {sum, Access::Row}},
                   getElementTypeOrSelf(op.getOut()),
                   [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                     return {s[0] / max(s[1], s[1].number(1))};
                   });
}

static Values convert(LoopBuilder &loops, RowLogSumExpOp op) {
  return {buildLogSumExp(
      loops, buildExponentials(loops, loops.asMatrix(op.getInput())))};
}

static Values convert(LoopBuilder &loops, BalanceLossOp op) {
  int64_t experts = getShape(op.getRows())[0];
  Value sum = loops.reduceRows(
      {{loops.asMatrix(op.getRows(), experts)},
       {loops.asMatrix(op.getSums(), experts)}},
      loops.filled({1}, 0), [](ImplicitLocOpBuilder &, Scalars s) -> Results {
        Scalar term = s[0] * s[1];
        return {s[2] + term};
      });
  double factor = op.getFactor().convertToDouble();
  return loops.map({1}, {{sum}}, getElementTypeOrSelf(op.getOut()),
                   [&](ImplicitLocOpBuilder &, Scalars s) -> Results {
                     return {factor * s[0]};
                   });
}

static Values convert(LoopBuilder &loops, BalanceLossBackwardOp op) {
  int64_t experts = getShape(op.getRows())[0];
  double factor = op.getFactor().convertToDouble();
  return loops.map(
      {1, experts},
      {{loops.asMatrix(op.getRows(), experts)}, {op.getDout(), Access::Scalar}},
      getElementTypeOrSelf(op.getDsums()),
      [&](ImplicitLocOpBuilder &, Scalars s) -> Results {
        Scalar scale = factor * s[1];
        return {scale * s[0]};
      });
}

static Values convert(LoopBuilder &loops, BalanceBiasOp op) {
  int64_t experts = getShape(op.getBias())[0];
  Value bias = loops.asMatrix(op.getBias(), experts);
  Value rows = loops.asMatrix(op.getRows(), experts);
  double rate = op.getRate().convertToDouble();
  Value sum =
      loops.reduceRows({{rows}}, loops.filled({1}, 0),
                       [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                         return {s[1] + s[0]};
                       });
  return loops.map(
      {1, experts},
      {{bias}, {rows}, {sum, Access::Row}, {op.getScale(), Access::Scalar}},
      getElementTypeOrSelf(op.getNewBias()),
      [&](ImplicitLocOpBuilder &builder, Scalars s) -> Results {
        Scalar mean = s[2] / double(experts);
        auto compare = [&](arith::CmpFPredicate predicate, Scalar a, Scalar b) {
          return arith::CmpFOp::create(builder, predicate, a.get(), b.get())
              .getResult();
        };
        Scalar more = s[0] + s[0].number(rate), less = s[0] - s[0].number(rate);
        Scalar moved =
            more.where(compare(arith::CmpFPredicate::OGT, mean, s[1]), s[0]);
        moved =
            less.where(compare(arith::CmpFPredicate::OLT, mean, s[1]), moved);
        return {
            s[0].where(compare(arith::CmpFPredicate::UNO, s[3], s[3]), moved)};
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
         ExpectedRowsOp, ExpectedRowsBackwardOp, SquaredLogSumExpOp,
         SquaredLogSumExpBackwardOp, BalanceBiasOp, RowSharesOp, RowLogSumExpOp,
         BalanceLossOp, BalanceLossBackwardOp>(context);
  attachRenamed<ChooseExpertsOp, rt::ChooseExpertsOp>(context);
  attachRenamed<ExpertWeightsOp, rt::ExpertWeightsOp>(context);
  attachRenamed<ExpertWeightsBackwardOp, rt::ExpertWeightsBackwardOp>(context);
  attachRenamed<SortRowsOp, rt::SortRowsOp>(context);
  attachRenamed<CountRowsOp, rt::CountRowsOp>(context);
  attachRenamed<CountChoicesOp, rt::CountChoicesOp>(context);
}
