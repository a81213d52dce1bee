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
#include <numeric>

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
static Values rotateWhole(LoopBuilder &loops, Value input, Value rotary,
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

namespace {
/// Index arithmetic in the body of a loop.
struct Indices {
  ImplicitLocOpBuilder &builder;

  Value of(int64_t value) const {
    return arith::ConstantIndexOp::create(builder, value);
  }
  template <typename Op>
  Value make(Value a, int64_t b) const {
    return Op::create(builder, a, of(b));
  }
  template <typename Op>
  Value make(Value a, Value b) const {
    return Op::create(builder, a, b);
  }
  Value isBelow(Value a, int64_t b) const {
    return arith::CmpIOp::create(builder, arith::CmpIPredicate::ult, a, of(b));
  }
  Value select(Value condition, Value a, Value b) const {
    return arith::SelectOp::create(builder, condition, a, b);
  }
};

/// Heads of which some columns are turned, as rows of `cols` columns, so that a
/// row is turned as a whole or not at all, and its partners are another row or,
/// of two columns interleaved, the other column.
struct PartOfHeads {
  int64_t length, heads, half, cols, ofHead, begin;
  bool isInterleaved;

  PartOfHeads(Value input, Value rotary, int64_t heads, int64_t from,
              RopeStyle style)
      : length(getShape(rotary)[0]), heads(heads),
        half(getShape(rotary)[1] / 2),
        isInterleaved(style == RopeStyle::Interleaved) {
    int64_t width = getShape(input).back() / heads;
    cols = std::gcd(std::gcd(isInterleaved ? 2 : half, from), width);
    ofHead = width / cols, begin = from / cols;
  }
  bool arePairs() const { return isInterleaved && cols == 2; }
  /// Rows of what is beside each other in the table of angles.
  int64_t rowsOfAngles() const { return arePairs() ? 1 : half / cols; }

  /// Of a row: whether it is turned, whether that is to the left of its pair,
  /// the row of its partners, and those of its cosines and its sines in the
  /// table. All are rows that exist, of one that is not turned too.
  struct Place {
    Value isTurned, isLeft, partners, pair, cosines, sines;
  };
  Place locate(Indices at, Value row, Value col) const;
};
} // namespace

PartOfHeads::Place PartOfHeads::locate(Indices at, Value row, Value col) const {
  Place place;
  Value head = at.make<arith::DivUIOp>(row, ofHead);
  Value token = at.make<arith::DivUIOp>(head, heads);
  Value position = at.make<arith::RemUIOp>(token, length);
  Value ofPart =
      at.make<arith::SubIOp>(at.make<arith::RemUIOp>(row, ofHead), begin);
  // What is before the part is a large number.
  place.isTurned = at.isBelow(ofPart, 2 * half / cols);
  Value number = at.select(place.isTurned, ofPart, at.of(0));
  int64_t rows = rowsOfAngles(), apart = isInterleaved ? 1 : rows;
  if (arePairs()) {
    place.isLeft = at.isBelow(col, 1);
    place.pair = number;
  } else {
    place.isLeft =
        at.isBelow(at.make<arith::RemUIOp>(number, 2 * apart), apart);
    place.pair = isInterleaved ? at.make<arith::DivUIOp>(number, 2)
                               : at.make<arith::RemUIOp>(number, rows);
    Value right = at.make<arith::AddIOp>(row, apart);
    Value left = at.make<arith::SubIOp>(row, apart);
    place.partners =
        at.select(place.isTurned, at.select(place.isLeft, right, left), row);
  }
  Value first = at.make<arith::MulIOp>(position, 2 * rows);
  place.cosines = first;
  if (!arePairs())
    place.cosines = at.make<arith::AddIOp>(first, place.pair);
  place.sines = at.make<arith::AddIOp>(place.cosines, rows);
  return place;
}

/// As `rotateWhole`; elements of other columns stay as they are.
static Values rotatePart(LoopBuilder &loops, Value input, Value rotary,
                         const PartOfHeads &part, Type element,
                         bool isBackward) {
  Value x = loops.asMatrix(input, part.cols);
  Value angles =
      loops.asMatrix(rotary, part.arePairs() ? part.half : part.cols);
  auto body = [&](ImplicitLocOpBuilder &builder, Scalars s) -> Results {
    Indices at = {builder};
    Value row = linalg::IndexOp::create(builder, 0);
    Value col = linalg::IndexOp::create(builder, 1);
    PartOfHeads::Place place = part.locate(at, row, col);
    Value column = part.arePairs() ? place.pair : col;
    Scalar cosine = getElement(builder, angles, place.cosines, column);
    Scalar sine = getElement(builder, angles, place.sines, column);
    Scalar partner = s[0];
    if (part.arePairs()) {
      Scalar left = getElement(builder, x, row, at.of(0));
      partner = getElement(builder, x, row, at.of(1)).where(place.isLeft, left);
    } else {
      partner = getElement(builder, x, place.partners, col);
    }
    Scalar opposite = sine.unary<arith::NegFOp>();
    Scalar turn = isBackward ? sine.where(place.isLeft, opposite)
                             : opposite.where(place.isLeft, sine);
    Scalar kept = s[0] * cosine;
    Scalar turned = kept + partner * turn;
    return {turned.where(place.isTurned, s[0])};
  };
  return loops.map(getShape(x), {{x}}, element, body);
}

template <typename OpTy>
static Values rotate(LoopBuilder &loops, OpTy op, Value input,
                     bool isBackward) {
  int64_t heads = op.getHeads(), turned = getShape(op.getRotary())[1];
  Type element = getElementTypeOrSelf(input);
  if (getShape(input).back() == heads * turned)
    return rotateWhole(loops, input, op.getRotary(), heads, op.getStyle(),
                       element, isBackward);
  PartOfHeads part(input, op.getRotary(), heads, op.getFrom().value_or(0),
                   op.getStyle());
  return rotatePart(loops, input, op.getRotary(), part, element, isBackward);
}

static Values convert(LoopBuilder &loops, RopeOp op) {
  return rotate(loops, op, op.getInput(), /*isBackward=*/false);
}

static Values convert(LoopBuilder &loops, RopeBackwardOp op) {
  return rotate(loops, op, op.getDout(), /*isBackward=*/true);
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
