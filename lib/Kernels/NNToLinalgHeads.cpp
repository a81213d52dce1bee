//===- NNToLinalgHeads.cpp - Heads turned, repeated, summed -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is [B, T, H*D] is [B*T*H, D] here: a row is a head of a token, or half
// of one.
//
//===----------------------------------------------------------------------===//

#include "NNToLinalg.h"
#include "Shape.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::kernels;
using namespace reprise::nn;

using Values = LoopBuilder::Values;
using Scalars = ArrayRef<Scalar>;
using Results = SmallVector<Scalar>;

//===----------------------------------------------------------------------===//
// Rotary positions
//===----------------------------------------------------------------------===//

/// Every element becomes `element * cosine + partner * sine`, where the sine
/// has a sign. A row of the loops is half a head, and its partners are those of
/// the row beside it; or, interleaved, a pair.
///
/// \param isBackward  turn by the opposite angle.
static Values rotate(LoopBuilder &loops, Value input, Value rotary,
                     int64_t heads, RopeStyle style, Type element,
                     bool isBackward) {
  int64_t length = getShape(rotary)[0], half = getShape(rotary)[1] / 2;
  bool isInterleaved = style == RopeStyle::Interleaved;
  int64_t cols = isInterleaved ? 2 : half, rowsOfHead = 2 * half / cols;
  Value x = loops.asMatrix(input, cols), angles = loops.asMatrix(rotary, half);
  auto body = [&](ImplicitLocOpBuilder &builder, Scalars s) -> Results {
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(builder, value);
    };
    Value row = linalg::IndexOp::create(builder, 0);
    Value col = linalg::IndexOp::create(builder, 1);
    Value one = constant(1), rowsOfPosition = constant(heads * rowsOfHead);
    Value token = arith::DivUIOp::create(builder, row, rowsOfPosition);
    Value position = arith::RemUIOp::create(builder, token, constant(length));
    Value place = arith::RemUIOp::create(builder, row, constant(rowsOfHead));
    Value cosines = arith::MulIOp::create(builder, position, constant(2));
    Value sines = arith::AddIOp::create(builder, cosines, one);

    Value pair = isInterleaved ? place : col;
    Scalar cosine = getElement(builder, angles, cosines, pair);
    Scalar sine = getElement(builder, angles, sines, pair);
    Value isLeft =
        arith::CmpIOp::create(builder, arith::CmpIPredicate::eq,
                              isInterleaved ? col : place, constant(0));
    Scalar partner = s[0];
    if (isInterleaved) {
      Scalar left = getElement(builder, x, row, constant(0));
      partner = getElement(builder, x, row, one).where(isLeft, left);
    } else {
      Value beside = arith::XOrIOp::create(builder, row, one);
      partner = getElement(builder, x, beside, col);
    }
    Scalar opposite = sine.unary<arith::NegFOp>();
    Scalar turn = isBackward ? sine.where(isLeft, opposite)
                             : opposite.where(isLeft, sine);
    Scalar kept = s[0] * cosine;
    return {kept + partner * turn};
  };
  return loops.map(getShape(x), {{x}}, element, body);
}

static Values convert(LoopBuilder &loops, RopeOp op) {
  return rotate(loops, op.getInput(), op.getRotary(), op.getHeads(),
                op.getStyle(), getElementTypeOrSelf(op.getOut()),
                /*isBackward=*/false);
}

static Values convert(LoopBuilder &loops, RopeBackwardOp op) {
  return rotate(loops, op.getDout(), op.getRotary(), op.getHeads(),
                op.getStyle(), getElementTypeOrSelf(op.getDinput()),
                /*isBackward=*/true);
}

namespace {
template <typename OpTy>
struct Turn : LoopBody::ExternalModel<Turn<OpTy>, OpTy> {
  Values buildLoops(Operation *op, LoopBuilder &loops) const {
    return convert(loops, cast<OpTy>(op));
  }
};
} // namespace

void kernels::attachHeadBodies(MLIRContext &context) {
  RopeOp::attachInterface<Turn<RopeOp>>(context);
  RopeBackwardOp::attachInterface<Turn<RopeBackwardOp>>(context);
}

//===----------------------------------------------------------------------===//
// Heads of keys that heads of queries share
//===----------------------------------------------------------------------===//

Value kernels::buildRepeatedHeads(LoopBuilder &loops, Value value,
                                  int64_t heads, int64_t keyHeads,
                                  Type element) {
  int64_t cols = getShape(value).back() / keyHeads, group = heads / keyHeads;
  Value x = loops.asMatrix(value, cols);
  auto body = [&](ImplicitLocOpBuilder &builder, Scalars) -> Results {
    Value row = linalg::IndexOp::create(builder, 0);
    Value size = arith::ConstantIndexOp::create(builder, group);
    Value shared = arith::DivUIOp::create(builder, row, size);
    return {gather(builder, x, shared)};
  };
  return loops.map({getShape(x)[0] * group, cols}, {}, element, body)[0];
}

Value kernels::buildSummedHeads(LoopBuilder &loops, Value value, int64_t heads,
                                int64_t keyHeads, Type element) {
  int64_t cols = getShape(value).back() / heads, group = heads / keyHeads;
  Value x = loops.asMatrix(value, cols);
  auto body = [&](ImplicitLocOpBuilder &builder, Scalars) -> Results {
    Value row = linalg::IndexOp::create(builder, 0);
    Value size = arith::ConstantIndexOp::create(builder, group);
    Value first = arith::MulIOp::create(builder, row, size);
    Scalar sum = gather(builder, x, first);
    for (int64_t head = 1; head < group; ++head) {
      Value number = arith::ConstantIndexOp::create(builder, head);
      Value next = arith::AddIOp::create(builder, first, number);
      sum = sum + gather(builder, x, next);
    }
    return {sum};
  };
  return loops.map({getShape(x)[0] / group, cols}, {}, element, body)[0];
}
