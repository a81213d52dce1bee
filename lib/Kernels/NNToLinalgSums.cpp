//===- NNToLinalgSums.cpp - Ops that add up into a parameter ----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NNToLinalg.h"
#include "Shape.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::kernels;
using namespace reprise::nn;

using Scalars = ArrayRef<Scalar>;
using Results = SmallVector<Scalar>;

bool kernels::sumsColumns(Operation *op) {
  return isa<SumRowsOp, LayerNormBackwardGainOp, RMSNormBackwardGainOp>(op);
}

bool kernels::canAccumulate(Operation *op) {
  return sumsColumns(op) || isa<PositionsBackwardOp, EmbeddingBackwardOp>(op);
}

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

static Value convert(LoopBuilder &loops, PositionsBackwardOp op, Value sum) {
  ImplicitLocOpBuilder &builder = loops.getBuilder();
  if (!sum)
    sum = loops.filled(getShape(op.getDtable()), 0);
  return rt::ScatterAddOp::create(builder, sum.getType(), sum, op.getDout(),
                                  /*ids=*/Value());
}

static Value convert(LoopBuilder &loops, EmbeddingBackwardOp op, Value sum) {
  ImplicitLocOpBuilder &builder = loops.getBuilder();
  if (!sum)
    sum = loops.filled(getShape(op.getDtable()), 0);
  return rt::ScatterAddOp::create(builder, sum.getType(), sum, op.getDout(),
                                  op.getIds());
}

Value kernels::convertSum(LoopBuilder &loops, Operation *op, Value sum) {
  return TypeSwitch<Operation *, Value>(op)
      .Case<SumRowsOp, LayerNormBackwardGainOp, RMSNormBackwardGainOp,
            PositionsBackwardOp, EmbeddingBackwardOp>(
          [&](auto typed) { return convert(loops, typed, sum); })
      .DefaultUnreachable("an op that cannot accumulate");
}
