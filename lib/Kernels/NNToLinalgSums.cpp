//===- NNToLinalgSums.cpp - Ops that add up into a parameter ----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NNToLinalg.h"
#include "Shape.h"
#include "reprise/Dialect/NN/NNBalanceOps.h"
#include "reprise/Dialect/RT/RTOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::kernels;
using namespace reprise::nn;

using Scalars = ArrayRef<Scalar>;
using Results = SmallVector<Scalar>;

static Value convert(LoopBuilder &loops, SumRowsOp op, Value sum) {
  Value x = loops.asMatrix(op.getInput());
  if (!sum)
    sum = loops.filled(getShape(op.getOut()), 0);
  return loops.reduceColumns({{x}}, sum,
                             [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                               return {s[1] + s[0]};
                             });
}

static Value convert(LoopBuilder &loops, LayerNormBackwardGainOp op,
                     Value sum) {
  if (!sum)
    sum = loops.filled(getShape(op.getDgain()), 0);
  return loops.reduceColumns({{loops.asMatrix(op.getInput())},
                              {loops.asVector(op.getMean()), Access::Row},
                              {loops.asVector(op.getRstd()), Access::Row},
                              {loops.asMatrix(op.getDout())}},
                             sum,
                             [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                               Scalar normal = (s[0] - s[1]) * s[2];
                               return {s[4] + s[3] * normal};
                             });
}

static Value convert(LoopBuilder &loops, RMSNormBackwardGainOp op, Value sum) {
  int64_t cols = getShape(op.getDgain())[0];
  if (!sum)
    sum = loops.filled({cols}, 0);
  return loops.reduceColumns({{loops.asMatrix(op.getInput(), cols)},
                              {loops.asVector(op.getRstd()), Access::Row},
                              {loops.asMatrix(op.getDout(), cols)}},
                             sum,
                             [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                               Scalar normal = s[0] * s[1];
                               return {s[3] + s[2] * normal};
                             });
}

static Value convert(LoopBuilder &loops, SumProbabilitiesOp op, Value sum) {
  if (!sum)
    sum = loops.filled(getShape(op.getOut()), 0);
  return loops.reduceColumns({{loops.asMatrix(op.getLogits())},
                              {loops.asVector(op.getLse()), Access::Row}},
                             sum,
                             [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                               return {s[2] + exp(s[0] - s[1])};
                             });
}

static Value convert(LoopBuilder &loops, PositionsBackwardOp op, Value sum) {
  ImplicitLocOpBuilder &builder = loops.getBuilder();
  if (!sum)
    sum = loops.filled(getShape(op.getDtable()), 0);
  return rt::ScatterAddOp::create(builder, sum.getType(), sum, op.getDout(),
                                  /*ids=*/Value(),
                                  /*coordinate=*/IntegerAttr());
}

static Value convert(LoopBuilder &loops, EmbeddingBackwardOp op, Value sum) {
  ImplicitLocOpBuilder &builder = loops.getBuilder();
  if (!sum)
    sum = loops.filled(getShape(op.getDtable()), 0);
  return rt::ScatterAddOp::create(builder, sum.getType(), sum, op.getDout(),
                                  op.getIds(), /*coordinate=*/IntegerAttr());
}

static Value convert(LoopBuilder &loops, EmbeddingPartBackwardOp op,
                     Value sum) {
  ImplicitLocOpBuilder &builder = loops.getBuilder();
  if (!sum)
    sum = loops.filled(getShape(op.getDtable()), 0);
  return rt::ScatterAddOp::create(
      builder, sum.getType(), sum, op.getDout(), op.getIds(),
      op->getAttrOfType<IntegerAttr>(rt::kCoordinateAttr));
}

namespace {
/// Sums of columns are written; rows are added to those of a table.
template <typename OpTy, bool isOfColumns>
struct Sum : SumBody::ExternalModel<Sum<OpTy, isOfColumns>, OpTy> {
  Value buildSum(Operation *op, LoopBuilder &loops, Value sum) const {
    return convert(loops, cast<OpTy>(op), sum);
  }
  bool sumsColumns(Operation *) const { return isOfColumns; }
  bool canWrite(Operation *) const { return isOfColumns; }
};
} // namespace

template <bool isOfColumns, typename... Ops>
static void attach(MLIRContext &context) {
  (Ops::template attachInterface<Sum<Ops, isOfColumns>>(context), ...);
}

void kernels::attachSumBodies(MLIRContext &context) {
  attach</*isOfColumns=*/true, SumRowsOp, LayerNormBackwardGainOp,
         RMSNormBackwardGainOp, SumProbabilitiesOp>(context);
  attach</*isOfColumns=*/false, PositionsBackwardOp, EmbeddingBackwardOp,
         EmbeddingPartBackwardOp>(context);
}
