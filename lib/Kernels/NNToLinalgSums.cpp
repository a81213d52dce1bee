//===- NNToLinalgSums.cpp - Ops that add up into a parameter ----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NNToLinalg.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::kernels;
using namespace reprise::nn;

using Scalars = ArrayRef<Scalar>;
using Results = SmallVector<Scalar>;

static ArrayRef<int64_t> getShape(Value value) {
  return cast<ShapedType>(value.getType()).getShape();
}

bool kernels::canAccumulate(Operation *op) {
  return isa<SumRowsOp, LayerNormBackwardGainOp, PositionsBackwardOp,
             EmbeddingBackwardOp>(op);
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

/// The gradient of a table of positions is a loop over its elements, in which
/// the terms of the batch stand one after another: there are few.
static Value convert(LoopBuilder &loops, PositionsBackwardOp op, Value sum) {
  Value dout = loops.asMatrix(op.getDout());
  ArrayRef<int64_t> table = getShape(op.getDtable());
  int64_t length = getShape(op.getDout()).drop_back().back();
  int64_t batch = getShape(dout)[0] / length;
  SmallVector<LoopOperand> inputs;
  if (sum)
    inputs.push_back({sum});
  return loops.map(
      table, inputs, loops.getBuilder().getF32Type(),
      [&](ImplicitLocOpBuilder &builder, Scalars s) -> Results {
        auto constant = [&](int64_t value) -> Value {
          return arith::ConstantIndexOp::create(builder, value);
        };
        Scalar old = sum ? s[0] : Scalar(builder, 0.0);
        Scalar total = old;
        // Rows beyond the sequence read its last one, and drop it.
        Value row = linalg::IndexOp::create(builder, 0);
        Value last = constant(length - 1);
        Value position = arith::MinUIOp::create(builder, row, last);
        for (int64_t b = 0; b < batch; ++b) {
          Value start = constant(b * length);
          Value at = arith::AddIOp::create(builder, position, start);
          total = total + gather(builder, dout, at);
        }
        Value isUsed = arith::CmpIOp::create(builder, arith::CmpIPredicate::ule,
                                             row, last);
        return {total.where(isUsed, old)};
      })[0];
}

static Value convert(LoopBuilder &loops, EmbeddingBackwardOp op, Value sum) {
  ImplicitLocOpBuilder &builder = loops.getBuilder();
  if (!sum)
    sum = loops.filled(getShape(op.getDtable()), 0);
  return rt::ScatterAddOp::create(builder, sum.getType(), sum, op.getIds(),
                                  op.getDout());
}

Value kernels::convertSum(LoopBuilder &loops, Operation *op, Value sum) {
  return TypeSwitch<Operation *, Value>(op)
      .Case<SumRowsOp, LayerNormBackwardGainOp, PositionsBackwardOp,
            EmbeddingBackwardOp>(
          [&](auto typed) { return convert(loops, typed, sum); })
      .DefaultUnreachable("an op that cannot accumulate");
}
