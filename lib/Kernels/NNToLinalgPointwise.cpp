//===- NNToLinalgPointwise.cpp - Elementwise ops, fused ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NNToLinalg.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"
#include "reprise/Dialect/NN/NNActivationOps.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "llvm/ADT/MapVector.h"
#include <cmath>

using namespace mlir;
using namespace reprise;
using namespace reprise::kernels;
using namespace reprise::nn;

static double getDouble(APFloat number) { return number.convertToDouble(); }

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

/// Reads what an op's random words depend on besides the element, before the
/// loops: seed (low, high), step, micro-batch and stream; and of part of a
/// whole the rank's number.
static SmallVector<Value> buildRandomSource(ImplicitLocOpBuilder &builder,
                                            Value rng, int64_t stream) {
  SmallVector<Value> source;
  for (int64_t index = 0; index < 4; ++index) {
    Value at = arith::ConstantIndexOp::create(builder, index);
    source.push_back(tensor::ExtractOp::create(builder, rng, at));
  }
  source.push_back(rt::StreamOp::create(builder, builder.getI32Type(), stream));
  return source;
}

/// The number of this iteration's element in the whole that a dropout has part
/// of: (e / piece * ranks + rank) * piece + e mod piece, where a piece is what
/// lies side by side.
static Value buildElement(ImplicitLocOpBuilder &builder, DropoutOp op,
                          ArrayRef<Value> source) {
  Value element = linalg::IndexOp::create(builder, 0);
  PartAttr part = op.getPartAttr();
  if (!part)
    return element;
  int64_t size = 1;
  for (int64_t dim : op.getOut().getType().getShape().drop_front(part.getDim()))
    size *= dim;
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, value);
  };
  Value rank =
      arith::IndexCastOp::create(builder, builder.getIndexType(), source[5]);
  Value piece = arith::DivUIOp::create(builder, element, number(size));
  Value before = arith::MulIOp::create(builder, piece,
                                       number((part.getRanks() - 1) * size));
  Value own = arith::MulIOp::create(builder, rank, number(size));
  return arith::AddIOp::create(
      builder, arith::AddIOp::create(builder, element, before), own);
}

static Scalar buildDropout(ImplicitLocOpBuilder &builder, DropoutOp op,
                           Scalar x, double rate, ArrayRef<Value> source) {
  double threshold = std::min(std::round(rate * 0x1p32), 0x1p32 - 1);
  Value bound = arith::ConstantOp::create(
      builder, builder.getI32IntegerAttr(static_cast<uint32_t>(threshold)));
  Value element = buildElement(builder, op, source);
  Value word = rt::RandomWordOp::create(builder, builder.getI32Type(), element,
                                        source[0], source[1], source[2],
                                        source[3], source[4]);
  Value keep =
      arith::CmpIOp::create(builder, arith::CmpIPredicate::uge, word, bound);
  Scalar scaled = x * x.number(1.0 / (1.0 - rate));
  return scaled.where(keep, x.number(0));
}

//===----------------------------------------------------------------------===//
// GELU
//===----------------------------------------------------------------------===//

static constexpr double kSqrtTwoOverPi = 0.79788456080286535588;
static constexpr double kCubic = 0.044715;
static constexpr double kSqrtHalf = 0.70710678118654752440;
static constexpr double kInvSqrtTwoPi = 0.39894228040143267794;
static constexpr double kLog2E = 1.44269504088896340736;

/// 1 + 2^x: of x = -y log2(e), one over the logistic function of y.
static Scalar buildInverseLogistic(Scalar x) { return 1.0 + exp2(x); }

/// One over the logistic function of 2 u, where u = sqrt(2/pi) (x + 0.044715
/// x^3): the tanh form is built on it, as (1 + tanh(u)) / 2. Unlike that, it
/// has no cancellation for negative x.
static Scalar buildGeluInverse(Scalar x, Scalar square) {
  double scale = -2 * kLog2E * kSqrtTwoOverPi;
  return buildInverseLogistic(
      x * fma(square, x.number(scale * kCubic), x.number(scale)));
}

/// The probability of a standard normal number below x.
static Scalar buildNormalCdf(Scalar x) {
  return 0.5 * (1.0 + erf(kSqrtHalf * x));
}

static Scalar buildGelu(Scalar x, GeluForm form) {
  if (form == GeluForm::Erf)
    return x * buildNormalCdf(x);
  // Its derivative divides too: beside that, this is a product.
  Scalar inverse = buildGeluInverse(x, x * x);
  return x * (1.0 / inverse);
}

static Scalar buildGeluDerivative(Scalar x, GeluForm form) {
  Scalar square = x * x;
  if (form == GeluForm::Erf) {
    Scalar cdf = buildNormalCdf(x);
    Scalar density = kInvSqrtTwoPi * exp(-0.5 * square);
    return cdf + x * density;
  }
  // With the logistic s of 2 u: s + x s (1 - s) 2 u'.
  Scalar s = 1.0 / buildGeluInverse(x, square);
  Scalar slope = fma(square, x.number(6 * kSqrtTwoOverPi * kCubic),
                     x.number(2 * kSqrtTwoOverPi));
  Scalar bend = (x * slope) * (1.0 - s);
  return fma(bend, s, s);
}

//===----------------------------------------------------------------------===//
// SwiGLU
//===----------------------------------------------------------------------===//

static Scalar buildSigmoid(Scalar x) {
  return 1.0 / buildInverseLogistic(-kLog2E * x);
}

static Scalar buildSwiGLU(Scalar gate, Scalar up) {
  Scalar silu = gate * buildSigmoid(gate);
  return silu * up;
}

/// The gradients of the gate and of what it gates.
static SmallVector<Scalar> buildSwiGLUBackward(Scalar gate, Scalar up,
                                               Scalar dout) {
  Scalar sigmoid = buildSigmoid(gate);
  Scalar silu = gate * sigmoid;
  Scalar slope = sigmoid + silu * (1.0 - sigmoid);
  Scalar dsilu = dout * up;
  return {dsilu * slope, dout * silu};
}

//===----------------------------------------------------------------------===//
// AdamW
//===----------------------------------------------------------------------===//

static SmallVector<Scalar> buildAdamW(ImplicitLocOpBuilder &builder, AdamWOp op,
                                      ArrayRef<Scalar> operands) {
  Scalar p = operands[0], g = operands[1], m = operands[2], v = operands[3];
  Scalar scale = operands[4], lr = operands[5], c1 = operands[6],
         c2 = operands[7];
  double beta1 = getDouble(op.getBeta1()), beta2 = getDouble(op.getBeta2());
  double decay = getDouble(op.getWeightDecay());

  g = g * scale;
  Scalar oldM = beta1 * m;
  Scalar newM = oldM + (1.0 - beta1) * g;
  Scalar oldV = beta2 * v;
  Scalar newV = oldV + ((1.0 - beta2) * g) * g;
  // Quotients of scalars: the only division of an element is that below.
  Scalar factor1 = 1.0 / c1, factor2 = 1.0 / c2;
  Scalar mean = newM * factor1;
  Scalar deviation = sqrt(newV * factor2) + getDouble(op.getEps());
  Scalar ratio = mean / deviation;
  Scalar decayed = p;
  if (decay != 0) {
    Scalar rate = decay * lr;
    decayed = p - rate * p;
  }
  Scalar newP = decayed - lr * ratio;
  Value isNumber = arith::CmpFOp::create(builder, arith::CmpFPredicate::ORD,
                                         scale.get(), scale.get());
  newP = newP.where(isNumber, p);
  newM = newM.where(isNumber, m);
  newV = newV.where(isNumber, v);
  SmallVector<Scalar> results = {newP, newM, newV};
  if (op.getNewWorking())
    results.push_back(newP);
  return results;
}

//===----------------------------------------------------------------------===//
// Formulas
//===----------------------------------------------------------------------===//

using LocBuilder = ImplicitLocOpBuilder;
using Scalars = ArrayRef<Scalar>;
using Results = SmallVector<Scalar>;

static Results build(LocBuilder &, GeluOp op, Scalars x) {
  return {buildGelu(x[0], op.getForm())};
}
static Results build(LocBuilder &, GeluBackwardOp op, Scalars x) {
  return {x[1] * buildGeluDerivative(x[0], op.getForm())};
}
static Results build(LocBuilder &, SquaredReluOp, Scalars x) {
  Scalar positive = max(x[0], x[0].number(0));
  return {positive * positive};
}
static Results build(LocBuilder &, SquaredReluBackwardOp, Scalars x) {
  Scalar positive = max(x[0], x[0].number(0));
  Scalar slope = 2.0 * positive;
  return {x[1] * slope};
}
static Results build(LocBuilder &, SwiGLUOp, Scalars x) {
  return {buildSwiGLU(x[0], x[1])};
}
static Results build(LocBuilder &, SwiGLUBackwardOp, Scalars x) {
  return buildSwiGLUBackward(x[0], x[1], x[2]);
}
static Results build(LocBuilder &, AddOp, Scalars x) { return {x[0] + x[1]}; }
static Results build(LocBuilder &, TrainingTermOp op, Scalars x) {
  Scalar term = getDouble(op.getFactor()) * x[1];
  return {x[0] + term};
}
static Results build(LocBuilder &, AccumulateOp, Scalars x) {
  return {x[0] + x[1]};
}
static Results build(LocBuilder &, ScaleOp op, Scalars x) {
  return {getDouble(op.getFactor()) * x[0]};
}
static Results build(LocBuilder &, CastOp, Scalars x) { return {x[0]}; }
static Results build(LocBuilder &builder, ConstantOp op, Scalars) {
  return {Scalar(builder, getDouble(op.getValue()))};
}
static Results build(LocBuilder &, BroadcastOp op, Scalars x) {
  return {getDouble(op.getFactor()) * x[0]};
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

namespace {
/// An op that needs nothing but its formula, an overload of `build`.
template <typename OpTy>
struct Element : ElementBody::ExternalModel<Element<OpTy>, OpTy> {
  SmallVector<Scalar> buildElement(Operation *op, ImplicitLocOpBuilder &builder,
                                   ArrayRef<Scalar> operands,
                                   ArrayRef<Value>) const {
    return build(builder, cast<OpTy>(op), operands);
  }
};

struct DropoutElement : ElementBody::ExternalModel<DropoutElement, DropoutOp> {
  SmallVector<Value> buildBefore(Operation *op,
                                 ImplicitLocOpBuilder &builder) const {
    auto dropout = cast<DropoutOp>(op);
    SmallVector<Value> source =
        buildRandomSource(builder, dropout.getRng(), dropout.getStream());
    if (dropout.getPart())
      source.push_back(buildCoordinate(builder, op));
    return source;
  }
  SmallVector<Scalar> buildElement(Operation *op, ImplicitLocOpBuilder &builder,
                                   ArrayRef<Scalar> operands,
                                   ArrayRef<Value> before) const {
    auto dropout = cast<DropoutOp>(op);
    return {buildDropout(builder, dropout, operands[0],
                         getDouble(dropout.getRate()), before)};
  }
  bool readsNumbersOf(Operation *op, OpOperand &operand) const {
    return operand.get() != cast<DropoutOp>(op).getRng();
  }
};

struct PushElement : ElementBody::ExternalModel<PushElement, PushOp> {
  SmallVector<Scalar> buildElement(Operation *op, ImplicitLocOpBuilder &builder,
                                   ArrayRef<Scalar> operands,
                                   ArrayRef<Value>) const {
    Scalar pushed = operands.front();
    for (Scalar older : operands.drop_front().drop_back())
      pushed = pushed + older;
    return {pushed, Scalar(builder, 0.0)};
  }
  /// What is at the place is there to be written over.
  bool readsNumbersOf(Operation *op, OpOperand &operand) const {
    return operand.getOperandNumber() + 1 != op->getNumOperands();
  }
};

struct AdamWElement : ElementBody::ExternalModel<AdamWElement, AdamWOp> {
  SmallVector<Scalar> buildElement(Operation *op, ImplicitLocOpBuilder &builder,
                                   ArrayRef<Scalar> operands,
                                   ArrayRef<Value>) const {
    return buildAdamW(builder, cast<AdamWOp>(op), operands);
  }
  /// The old working copy is there to be written over.
  bool readsNumbersOf(Operation *op, OpOperand &operand) const {
    return operand.get() != cast<AdamWOp>(op).getWorking();
  }
};
} // namespace

template <typename... Ops>
static void attach(MLIRContext &context) {
  (Ops::template attachInterface<Element<Ops>>(context), ...);
}

void kernels::attachElementBodies(MLIRContext &context) {
  attach<GeluOp, GeluBackwardOp, SquaredReluOp, SquaredReluBackwardOp, SwiGLUOp,
         SwiGLUBackwardOp, AddOp, TrainingTermOp, AccumulateOp, ScaleOp, CastOp,
         ConstantOp, BroadcastOp>(context);
  DropoutOp::attachInterface<DropoutElement>(context);
  PushOp::attachInterface<PushElement>(context);
  AdamWOp::attachInterface<AdamWElement>(context);
}

namespace {
/// One loop over the elements of several ops of one shape.
class ElementLoop {
public:
  ElementLoop(LoopBuilder &loops, ArrayRef<Operation *> ops)
      : loops(loops), ops(ops),
        shape(cast<ShapedType>(ops.front()->getResult(0).getType())),
        members(ops.begin(), ops.end()) {}

  void convert();

private:
  void addInputs(Operation *op);
  void addOutputs(Operation *op);
  SmallVector<Scalar> buildElements(ImplicitLocOpBuilder &builder,
                                    ArrayRef<Scalar> elements);

  LoopBuilder &loops;
  ArrayRef<Operation *> ops;
  ShapedType shape;
  DenseSet<Operation *> members;
  /// What the loop reads: elements, or scalars.
  llvm::MapVector<Value, LoopOperand> inputs;
  /// Values that come before it.
  DenseMap<Operation *, SmallVector<Value>> before;
  SmallVector<Value> outputs; ///< Read outside.
};
} // namespace

void ElementLoop::addInputs(Operation *op) {
  auto body = cast<ElementBody>(op);
  before[op] = body.buildBefore(loops.getBuilder());
  for (OpOperand &use : op->getOpOperands()) {
    Value operand = use.get();
    if (!body.readsNumbersOf(use) ||
        members.contains(operand.getDefiningOp()) || inputs.count(operand))
      continue;
    auto type = cast<ShapedType>(operand.getType());
    bool isScalar = type.getRank() == 0 && shape.getRank() != 0;
    inputs[operand] = isScalar ? LoopOperand{operand, Access::Scalar}
                               : LoopOperand{loops.asVector(operand)};
  }
}

void ElementLoop::addOutputs(Operation *op) {
  for (Value result : op->getResults())
    if (llvm::any_of(result.getUsers(),
                     [&](Operation *user) { return !members.contains(user); }))
      outputs.push_back(result);
}

/// Of one element of each input, those of the outputs.
SmallVector<Scalar> ElementLoop::buildElements(ImplicitLocOpBuilder &builder,
                                               ArrayRef<Scalar> elements) {
  DenseMap<Value, Value> numbers;
  for (auto [entry, element] : llvm::zip(inputs, elements))
    numbers[entry.first] = element.get();
  for (Operation *op : ops) {
    SmallVector<Scalar> arguments;
    for (Value operand : op->getOperands())
      arguments.emplace_back(builder, numbers.lookup(operand));
    auto made =
        cast<ElementBody>(op).buildElement(builder, arguments, before[op]);
    for (auto [result, number] : llvm::zip(op->getResults(), made)) {
      Type element = getElementTypeOrSelf(result);
      numbers[result] = number.roundedTo(element).get();
    }
  }
  SmallVector<Scalar> stored;
  for (Value output : outputs)
    stored.emplace_back(builder, numbers.lookup(output));
  return stored;
}

void ElementLoop::convert() {
  for (Operation *op : ops) {
    addInputs(op);
    addOutputs(op);
  }
  SmallVector<LoopOperand> operands;
  for (auto &[value, operand] : inputs)
    operands.push_back(operand);
  auto elementTypes = llvm::map_to_vector(
      outputs, [](Value output) { return getElementTypeOrSelf(output); });
  LoopBuilder::Values results =
      loops.map({shape.getNumElements()}, operands, elementTypes,
                [&](ImplicitLocOpBuilder &builder, ArrayRef<Scalar> elements) {
                  return buildElements(builder, elements);
                });
  for (auto [output, result] : llvm::zip(outputs, results))
    output.replaceAllUsesWith(loops.asShapeOf(result, output.getType()));
}

void kernels::convertElementwise(LoopBuilder &loops,
                                 ArrayRef<Operation *> ops) {
  ElementLoop(loops, ops).convert();
}
