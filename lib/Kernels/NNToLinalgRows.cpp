//===- NNToLinalgRows.cpp - Ops on rows and columns -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NNToLinalg.h"
#include "Shape.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"
#include "reprise/Dialect/RT/RTOps.h"
#include <limits>

using namespace mlir;
using namespace reprise;
using namespace reprise::kernels;
using namespace reprise::nn;

using Values = LoopBuilder::Values;
using Scalars = ArrayRef<Scalar>;
using Results = SmallVector<Scalar>;

/// The sum of a term over each row of `inputs`, [rows].
static Value sumRows(LoopBuilder &loops, ArrayRef<LoopOperand> inputs,
                     int64_t rows, function_ref<Scalar(Scalars)> term) {
  return loops.reduceRows(inputs, loops.filled({rows}, 0),
                          [&](ImplicitLocOpBuilder &, Scalars s) -> Results {
                            return {s.back() + term(s)};
                          });
}

//===----------------------------------------------------------------------===//
// Layer normalisation
//===----------------------------------------------------------------------===//

static Values convert(LoopBuilder &loops, LayerNormOp op) {
  Value x = loops.asMatrix(op.getInput());
  int64_t rows = getShape(x)[0], cols = getShape(x)[1];
  Type f32 = loops.getBuilder().getF32Type();

  Value sum = sumRows(loops, {{x}}, rows, [](Scalars s) { return s[0]; });
  Value mean = loops.map({rows}, {{sum}}, f32,
                         [&](ImplicitLocOpBuilder &, Scalars s) -> Results {
                           return {s[0] / double(cols)};
                         })[0];
  Value squares =
      sumRows(loops, {{x}, {mean, Access::Row}}, rows, [](Scalars s) {
        Scalar centred = s[0] - s[1];
        return centred * centred;
      });
  double eps = op.getEps().convertToDouble();
  Value rstd = loops.map({rows}, {{squares}}, f32,
                         [&](ImplicitLocOpBuilder &, Scalars s) -> Results {
                           Scalar variance = s[0] / double(cols);
                           return {1.0 / sqrt(variance + eps)};
                         })[0];
  Value out = loops.map({rows, cols},
                        {{x},
                         {mean, Access::Row},
                         {rstd, Access::Row},
                         {op.getGain(), Access::Column},
                         {op.getBias(), Access::Column}},
                        getElementTypeOrSelf(op.getOut()),
                        [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                          Scalar normal = (s[0] - s[1]) * s[2];
                          return {normal * s[3] + s[4]};
                        })[0];
  return {out, mean, rstd};
}

static Values convert(LoopBuilder &loops, LayerNormBackwardOp op) {
  Value x = loops.asMatrix(op.getInput()), dout = loops.asMatrix(op.getDout());
  int64_t rows = getShape(x)[0], cols = getShape(x)[1];
  SmallVector<LoopOperand> inputs = {
      {x},
      {dout},
      {op.getGain(), Access::Column},
      {loops.asVector(op.getMean()), Access::Row},
      {loops.asVector(op.getRstd()), Access::Row}};
  auto getGradient = [](Scalars s) { return s[1] * s[2]; };
  auto getNormal = [](Scalars s) { return (s[0] - s[3]) * s[4]; };

  Value sum = sumRows(loops, {inputs[1], inputs[2]}, rows,
                      [](Scalars s) { return s[0] * s[1]; });
  Value dot = sumRows(loops, inputs, rows, [&](Scalars s) {
    Scalar gradient = getGradient(s);
    return gradient * getNormal(s);
  });
  inputs.push_back({sum, Access::Row});
  inputs.push_back({dot, Access::Row});
  return loops.map({rows, cols}, inputs, getElementTypeOrSelf(op.getDinput()),
                   [&](ImplicitLocOpBuilder &, Scalars s) -> Results {
                     Scalar normal = getNormal(s);
                     Scalar gradient = getGradient(s);
                     Scalar meanDot = s[6] / double(cols);
                     Scalar rest = gradient - s[5] / double(cols);
                     return {s[4] * (rest - normal * meanDot)};
                   });
}

//===----------------------------------------------------------------------===//
// RMS normalisation
//===----------------------------------------------------------------------===//

static Values convert(LoopBuilder &loops, RMSNormOp op) {
  int64_t cols = getShape(op.getGain())[0];
  Value x = loops.asMatrix(op.getInput(), cols);
  int64_t rows = getShape(x)[0];

  Value squares =
      sumRows(loops, {{x}}, rows, [](Scalars s) { return s[0] * s[0]; });
  double eps = op.getEps().convertToDouble();
  Value rstd = loops.map({rows}, {{squares}}, loops.getBuilder().getF32Type(),
                         [&](ImplicitLocOpBuilder &, Scalars s) -> Results {
                           Scalar mean = s[0] / double(cols);
                           return {1.0 / sqrt(mean + eps)};
                         })[0];
  Value out = loops.map(
      {rows, cols}, {{x}, {rstd, Access::Row}, {op.getGain(), Access::Column}},
      getElementTypeOrSelf(op.getOut()),
      [](ImplicitLocOpBuilder &, Scalars s) -> Results {
        Scalar normal = s[0] * s[1];
        return {normal * s[2]};
      })[0];
  return {out, rstd};
}

static Values convert(LoopBuilder &loops, RMSNormBackwardOp op) {
  int64_t cols = getShape(op.getGain())[0];
  Value x = loops.asMatrix(op.getInput(), cols);
  int64_t rows = getShape(x)[0];
  SmallVector<LoopOperand> inputs = {
      {x},
      {loops.asMatrix(op.getDout(), cols)},
      {op.getGain(), Access::Column},
      {loops.asVector(op.getRstd()), Access::Row}};
  auto getGradient = [](Scalars s) { return s[1] * s[2]; };
  auto getNormal = [](Scalars s) { return s[0] * s[3]; };

  Value dot = sumRows(loops, inputs, rows, [&](Scalars s) {
    Scalar gradient = getGradient(s);
    return gradient * getNormal(s);
  });
  inputs.push_back({dot, Access::Row});
  return loops.map({rows, cols}, inputs, getElementTypeOrSelf(op.getDinput()),
                   [&](ImplicitLocOpBuilder &, Scalars s) -> Results {
                     Scalar normal = getNormal(s);
                     Scalar gradient = getGradient(s);
                     Scalar meanDot = s[4] / double(cols);
                     return {s[3] * (gradient - normal * meanDot)};
                   });
}

//===----------------------------------------------------------------------===//
// Softmax and cross-entropy
//===----------------------------------------------------------------------===//

/// Whether the position of this iteration's column is that of its row or one
/// before, where every `length` rows count positions from zero.
static Value isVisible(ImplicitLocOpBuilder &builder, int64_t length) {
  Value row = linalg::IndexOp::create(builder, 0);
  Value col = linalg::IndexOp::create(builder, 1);
  Value period = arith::ConstantIndexOp::create(builder, length);
  Value position = arith::RemUIOp::create(builder, row, period);
  // Half the bits, half the vectors.
  Type i32 = builder.getI32Type();
  return arith::CmpIOp::create(
      builder, arith::CmpIPredicate::ule,
      arith::IndexCastOp::create(builder, i32, col),
      arith::IndexCastOp::create(builder, i32, position));
}

Exponentials
kernels::buildExponentials(LoopBuilder &loops, Value x,
                           function_ref<Value(ImplicitLocOpBuilder &)> isSeen) {
  int64_t rows = getShape(x)[0];
  double lowest = -std::numeric_limits<double>::infinity();
  auto where = [&](ImplicitLocOpBuilder &builder, Scalar s, double otherwise) {
    return isSeen ? s.where(isSeen(builder), s.number(otherwise)) : s;
  };
  Exponentials result;
  // What is not a number is left to the sum.
  result.greatest = loops.reduceRows(
      {{x}}, loops.filled({rows}, lowest),
      [&](ImplicitLocOpBuilder &builder, Scalars s) -> Results {
        return {s[1].binary<arith::MaxNumFOp>(where(builder, s[0], lowest))};
      });
  result.all =
      loops.map(getShape(x), {{x}, {result.greatest, Access::Row}},
                loops.getBuilder().getF32Type(),
                [&](ImplicitLocOpBuilder &builder, Scalars s) -> Results {
                  return {where(builder, exp(s[0] - s[1]), 0)};
                })[0];
  result.sum =
      sumRows(loops, {{result.all}}, rows, [](Scalars s) { return s[0]; });
  return result;
}

/// One over each number of a vector.
static Value buildInverse(LoopBuilder &loops, Value numbers) {
  return loops.map(getShape(numbers), {{numbers}},
                   loops.getBuilder().getF32Type(),
                   [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                     return {1.0 / s[0]};
                   })[0];
}

static Values convert(LoopBuilder &loops, SoftmaxOp op) {
  Value x = loops.asMatrix(op.getInput());
  int64_t length = getShape(op.getInput()).drop_back().back();
  Exponentials exponentials =
      buildExponentials(loops, x, [&](ImplicitLocOpBuilder &builder) {
        return isVisible(builder, length);
      });
  Value inverse = buildInverse(loops, exponentials.sum);
  return loops.map(getShape(x), {{exponentials.all}, {inverse, Access::Row}},
                   getElementTypeOrSelf(op.getOut()),
                   [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                     return {s[0] * s[1]};
                   });
}

static Values convert(LoopBuilder &loops, SoftmaxBackwardOp op) {
  Value p = loops.asMatrix(op.getProbs()), dout = loops.asMatrix(op.getDout());
  int64_t rows = getShape(p)[0], cols = getShape(p)[1];
  Value dot = sumRows(loops, {{p}, {dout}}, rows,
                      [](Scalars s) { return s[0] * s[1]; });
  return loops.map({rows, cols}, {{p}, {dout}, {dot, Access::Row}},
                   getElementTypeOrSelf(op.getDinput()),
                   [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                     return {s[0] * (s[1] - s[2])};
                   });
}

/// Whether this iteration's column is the one that `target`, an i32, names.
static Value isTarget(ImplicitLocOpBuilder &builder, Scalar target) {
  Value index = linalg::IndexOp::create(builder, 1);
  Value col = arith::IndexCastOp::create(builder, builder.getI32Type(), index);
  return arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, col,
                               target.get());
}

/// The logit of each row that its target names.
static Value readPicked(LoopBuilder &loops, Value x, Value targets) {
  return loops.map({getShape(x)[0]}, {{targets}},
                   loops.getBuilder().getF32Type(),
                   [&](ImplicitLocOpBuilder &builder, Scalars s) -> Results {
                     Value row = linalg::IndexOp::create(builder, 0);
                     Value target = arith::IndexCastOp::create(
                         builder, builder.getIndexType(), s[0].get());
                     return {getElement(builder, x, row, target)};
                   })[0];
}

/// The losses of rows, and the logarithms of their sums.
static Values buildLosses(LoopBuilder &loops, Value picked,
                          const Exponentials &exponentials) {
  Type f32 = loops.getBuilder().getF32Type();
  return loops.map({getShape(picked)[0]},
                   {{exponentials.greatest}, {exponentials.sum}, {picked}},
                   {f32, f32},
                   [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                     Scalar lse = s[0] + log(s[1]);
                     return {lse - s[2], lse};
                   });
}

/// The exponentials of a row of logits, of those that are of a class.
static Exponentials buildClassExponentials(LoopBuilder &loops, Value x,
                                           std::optional<uint64_t> classes) {
  if (!classes || int64_t(*classes) == getShape(x)[1])
    return buildExponentials(loops, x);
  return buildExponentials(loops, x, [&](ImplicitLocOpBuilder &builder) {
    Type i32 = builder.getI32Type();
    Value column = linalg::IndexOp::create(builder, 1);
    Value end = arith::ConstantOp::create(
        builder, builder.getI32IntegerAttr(int32_t(*classes)));
    return arith::CmpIOp::create(
        builder, arith::CmpIPredicate::ult,
        arith::IndexCastOp::create(builder, i32, column), end);
  });
}

static Values convert(LoopBuilder &loops, CrossEntropyOp op) {
  Value x = loops.asMatrix(op.getLogits());
  Exponentials exponentials = buildClassExponentials(loops, x, op.getClasses());
  Value picked = readPicked(loops, x, loops.asVector(op.getTargets()));
  return buildLosses(loops, picked, exponentials);
}

/// The gradient of the logits, [rows, cols].
static Value buildLossGradient(LoopBuilder &loops, CrossEntropyBackwardOp op,
                               const Exponentials &exponentials) {
  Value inverse = buildInverse(loops, exponentials.sum);
  return loops.map(getShape(exponentials.all),
                   {{exponentials.all},
                    {loops.asVector(op.getTargets()), Access::Row},
                    {inverse, Access::Row},
                    {loops.asVector(op.getDlosses()), Access::Row}},
                   getElementTypeOrSelf(op.getDlogits()),
                   [](ImplicitLocOpBuilder &builder, Scalars s) -> Results {
                     Scalar probability = s[0] * s[2];
                     Value isWanted = isTarget(builder, s[1]);
                     Scalar one = s[0].number(1);
                     Scalar wanted = one.where(isWanted, s[0].number(0));
                     return {(probability - wanted) * s[3]};
                   })[0];
}

/// The sum is taken anew, not from `lse`, so that a kernel that has both ops,
/// which computes each exponential once, has the same bits.
static Values convert(LoopBuilder &loops, CrossEntropyBackwardOp op) {
  Value x = loops.asMatrix(op.getLogits());
  return {buildLossGradient(loops, op,
                            buildClassExponentials(loops, x, op.getClasses()))};
}

/// An exponential serves for either.
static Values convertWithGradient(LoopBuilder &loops, CrossEntropyOp loss,
                                  CrossEntropyBackwardOp backward) {
  Value x = loops.asMatrix(loss.getLogits());
  Exponentials exponentials =
      buildClassExponentials(loops, x, loss.getClasses());
  Values results = buildLosses(
      loops, readPicked(loops, x, loops.asVector(loss.getTargets())),
      exponentials);
  results.push_back(buildLossGradient(loops, backward, exponentials));
  return results;
}

static Values convert(LoopBuilder &loops, MeanOp op) {
  Value all = loops.asVector(op.getInput());
  int64_t count = getShape(all)[0];
  auto row = RankedTensorType::get({1, count}, getElementTypeOrSelf(all));
  Value sum = sumRows(loops, {{loops.asShapeOf(all, row)}}, 1,
                      [](Scalars s) { return s[0]; });
  return loops.map({1}, {{sum}}, loops.getBuilder().getF32Type(),
                   [&](ImplicitLocOpBuilder &, Scalars s) -> Results {
                     return {s[0] / double(count)};
                   });
}

static Values convert(LoopBuilder &loops, ClipScaleOp op) {
  SmallVector<LoopOperand> inputs = {{loops.asVector(op.getNorm())}};
  if (op.getLoss())
    inputs.push_back({loops.asVector(op.getLoss())});
  return loops.map(
      {1}, inputs, loops.getBuilder().getF32Type(),
      [&](ImplicitLocOpBuilder &builder, Scalars s) -> Results {
        Scalar scale = s[0].number(1);
        if (op.getMaxNorm()) {
          Scalar ratio = op.getMaxNorm()->convertToDouble() / (s[0] + 1e-6);
          scale = min(ratio, scale);
        }
        // Zero times what is not finite is NaN, else zero.
        for (Scalar number : s) {
          Scalar isFinite = 0.0 * number;
          scale = scale.where(
              arith::CmpFOp::create(builder, arith::CmpFPredicate::ORD,
                                    isFinite.get(), isFinite.get()),
              isFinite);
        }
        return {scale};
      });
}

Value kernels::buildRootOfSum(LoopBuilder &loops, Value squares) {
  auto row = RankedTensorType::get({1, getShape(squares)[0]},
                                   getElementTypeOrSelf(squares));
  Value sum = sumRows(loops, {{loops.asShapeOf(squares, row)}}, 1,
                      [](Scalars s) { return s[0]; });
  return loops.map({1}, {{sum}}, loops.getBuilder().getF32Type(),
                   [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                     return {sqrt(s[0])};
                   })[0];
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

static Values convert(LoopBuilder &loops, EmbeddingOp op) {
  Value ids = loops.asVector(op.getIds());
  int64_t rows = getShape(ids)[0], cols = getShape(op.getTable())[1];
  return loops.map({rows, cols}, {{ids, Access::Row}},
                   getElementTypeOrSelf(op.getOut()),
                   [&](ImplicitLocOpBuilder &builder, Scalars s) -> Results {
                     Value row = arith::IndexCastOp::create(
                         builder, builder.getIndexType(), s[0].get());
                     return {gather(builder, op.getTable(), row)};
                   });
}

static Values convert(LoopBuilder &loops, AddPositionsOp op) {
  Value x = loops.asMatrix(op.getInput());
  int64_t length = getShape(op.getInput()).drop_back().back();
  return loops.map(getShape(x), {{x}}, getElementTypeOrSelf(op.getOut()),
                   [&](ImplicitLocOpBuilder &builder, Scalars s) -> Results {
                     Value row = linalg::IndexOp::create(builder, 0);
                     Value period =
                         arith::ConstantIndexOp::create(builder, length);
                     Value position =
                         arith::RemUIOp::create(builder, row, period);
                     return {s[0] + gather(builder, op.getTable(), position)};
                   });
}

/// The row of `all` positions of each text that row `row` of `some` of them is,
/// from `first` on.
static Value getRowOfAll(ImplicitLocOpBuilder &builder, Value row, int64_t all,
                         int64_t some, int64_t first) {
  Value length = arith::ConstantIndexOp::create(builder, some);
  Value entry = arith::DivUIOp::create(builder, row, length);
  Value position = arith::RemUIOp::create(builder, row, length);
  Value begin = arith::MulIOp::create(
      builder, entry, arith::ConstantIndexOp::create(builder, all));
  Value offset = arith::AddIOp::create(
      builder, position, arith::ConstantIndexOp::create(builder, first));
  return arith::AddIOp::create(builder, begin, offset);
}

/// Rows are positions, of one column where they are ids.
static Value asPositions(LoopBuilder &loops, Value value) {
  return loops.asMatrix(
      value, getShape(value).size() == 3 ? getShape(value).back() : 1);
}

static Values convert(LoopBuilder &loops, CropPositionsOp op) {
  Value x = asPositions(loops, op.getInput());
  ArrayRef<int64_t> all = getShape(op.getInput()), some = getShape(op.getOut());
  return loops.map({some[0] * some[1], getShape(x)[1]}, {},
                   getElementTypeOrSelf(op.getOut()),
                   [&](ImplicitLocOpBuilder &builder, Scalars) -> Results {
                     Value row = linalg::IndexOp::create(builder, 0);
                     return {gather(builder, x,
                                    getRowOfAll(builder, row, all[1], some[1],
                                                op.getFrom()))};
                   });
}

static Values convert(LoopBuilder &loops, PadPositionsOp op) {
  Value x = loops.asMatrix(op.getInput());
  ArrayRef<int64_t> some = getShape(op.getInput()), all = getShape(op.getOut());
  auto pad = [&](ImplicitLocOpBuilder &builder, Scalars) -> Results {
    auto number = [&](int64_t value) {
      return arith::ConstantIndexOp::create(builder, value);
    };
    Value row = linalg::IndexOp::create(builder, 0);
    Value entry = arith::DivUIOp::create(builder, row, number(all[1]));
    Value position = arith::RemUIOp::create(builder, row, number(all[1]));
    // Below zero is beyond the end, too.
    Value own = arith::SubIOp::create(builder, position, number(op.getFrom()));
    Value isThere = arith::CmpIOp::create(builder, arith::CmpIPredicate::ult,
                                          own, number(some[1]));
    Value safe = arith::SelectOp::create(builder, isThere, own, number(0));
    Value begin = arith::MulIOp::create(builder, entry, number(some[1]));
    Scalar element =
        gather(builder, x, arith::AddIOp::create(builder, begin, safe));
    return {element.where(isThere, element.number(0))};
  };
  return loops.map({all[0] * all[1], getShape(x)[1]}, {},
                   getElementTypeOrSelf(op.getOut()), pad);
}

static Values convert(LoopBuilder &loops, TakePositionOp op) {
  ArrayRef<int64_t> shape = getShape(op.getInput());
  Value x = loops.asMatrix(op.getInput());
  return loops.map(
      {shape[0], shape[2]}, {{op.getPosition(), Access::Row}},
      getElementTypeOrSelf(op.getOut()),
      [&](ImplicitLocOpBuilder &builder, Scalars s) -> Results {
        Value entry = linalg::IndexOp::create(builder, 0);
        Value length = arith::ConstantIndexOp::create(builder, shape[1]);
        Value first = arith::MulIOp::create(builder, entry, length);
        Value position = arith::IndexCastOp::create(
            builder, builder.getIndexType(), s[0].get());
        Value row = arith::AddIOp::create(builder, first, position);
        return {gather(builder, x, row)};
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

/// What reads a row, for its sums, before it writes it.
template <typename OpTy>
struct LossLoops : LoopBody::ExternalModel<LossLoops<OpTy>, OpTy> {
  Values buildLoops(Operation *op, LoopBuilder &loops) const {
    return convert(loops, cast<OpTy>(op));
  }
  bool readsBeforeWriting(Operation *) const { return true; }
};

struct LossWithGradient
    : GradientBeside::ExternalModel<LossWithGradient, CrossEntropyOp> {
  Values buildWithGradient(Operation *op, LoopBuilder &loops,
                           Operation *gradient) const {
    return convertWithGradient(loops, cast<CrossEntropyOp>(op),
                               cast<CrossEntropyBackwardOp>(gradient));
  }
};

/// An op that has an equal in `rt`, which emitters write. Of some of the heads
/// it has the rank's number as an id.
template <typename OpTy, typename Target>
struct Fused : LoopBody::ExternalModel<Fused<OpTy, Target>, OpTy> {
  Values buildLoops(Operation *op, LoopBuilder &loops) const {
    NamedAttrList attributes(op->getAttrs());
    attributes.erase("part");
    if (PartAttr part = cast<OpTy>(op).getPartAttr()) {
      attributes.set("ranks",
                     loops.getBuilder().getI64IntegerAttr(part.getRanks()));
      attributes.set("coordinate", attributes.erase(rt::kCoordinateAttr));
    }
    return Target::create(loops.getBuilder(), op->getResultTypes(),
                          op->getOperands(), attributes.getAttrs())
        ->getResults();
  }
};
} // namespace

template <typename... Ops>
static void attach(MLIRContext &context) {
  (Ops::template attachInterface<Loops<Ops>>(context), ...);
}

void kernels::attachRowBodies(MLIRContext &context) {
  attach<LayerNormOp, LayerNormBackwardOp, RMSNormOp, RMSNormBackwardOp,
         SoftmaxOp, SoftmaxBackwardOp, MeanOp, ClipScaleOp, EmbeddingOp,
         AddPositionsOp, CropPositionsOp, PadPositionsOp, TakePositionOp>(
      context);
  CrossEntropyOp::attachInterface<LossLoops<CrossEntropyOp>, LossWithGradient>(
      context);
  CrossEntropyBackwardOp::attachInterface<LossLoops<CrossEntropyBackwardOp>>(
      context);
  AttentionOp::attachInterface<Fused<AttentionOp, rt::AttentionOp>>(context);
  AttentionBackwardOp::attachInterface<
      Fused<AttentionBackwardOp, rt::AttentionBackwardOp>>(context);
}
