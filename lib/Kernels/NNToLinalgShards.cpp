//===- NNToLinalgShards.cpp - Ops on parts of values ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All ranks run these kernels: where a rank's part begins is computed from its
// number, an id of the launch.
//
//===----------------------------------------------------------------------===//

#include "NNToLinalg.h"
#include "Shape.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/TypeUtilities.h"
#include "reprise/Dialect/RT/RTOps.h"
#include <limits>
#include <numeric>

using namespace mlir;
using namespace reprise;
using namespace reprise::kernels;
using namespace reprise::nn;

using Values = LoopBuilder::Values;
using Scalars = ArrayRef<Scalar>;
using Results = SmallVector<Scalar>;

Value kernels::buildCoordinate(OpBuilder &builder, Operation *op) {
  auto position = op->getAttrOfType<IntegerAttr>(rt::kCoordinateAttr);
  return rt::StreamOp::create(builder, op->getLoc(), builder.getI32Type(),
                              position ? position.getInt() : 0);
}

static Value asIndex(ImplicitLocOpBuilder &builder, Value number) {
  return arith::IndexCastOp::create(builder, builder.getIndexType(), number);
}

static Value getI32(ImplicitLocOpBuilder &builder, int64_t number) {
  return arith::ConstantOp::create(builder, builder.getI32IntegerAttr(number));
}

namespace {
/// What an id names in a part of `size` rows or columns.
struct Own {
  Value index;   ///< an i32 below `size`, also where there is none
  Value isThere; ///< an i1
};
} // namespace

/// `begin` is that of the part.
static Own findOwn(ImplicitLocOpBuilder &builder, Value id, Value begin,
                   int64_t size) {
  Value index = arith::SubIOp::create(builder, id, begin);
  Value isThere = arith::CmpIOp::create(builder, arith::CmpIPredicate::ult,
                                        index, getI32(builder, size));
  Value zero = getI32(builder, 0);
  return {arith::SelectOp::create(builder, isThere, index, zero), isThere};
}

/// The first row or column of a part of `size`.
static Value buildBegin(LoopBuilder &loops, Operation *op, int64_t size) {
  ImplicitLocOpBuilder &builder = loops.getBuilder();
  return arith::MulIOp::create(builder, buildCoordinate(builder, op),
                               getI32(builder, size));
}

/// Of each piece of the whole, as long as one of the part, every so many rows.
static Values convert(LoopBuilder &loops, SliceOp op) {
  int64_t piece = 1;
  for (int64_t size : getShape(op.getOut()).drop_front(op.getDim()))
    piece *= size;
  int64_t rows = op.getOut().getType().getNumElements() / piece;
  int64_t ranks =
      getShape(op.getInput())[op.getDim()] / getShape(op.getOut())[op.getDim()];
  Value x = loops.asMatrix(op.getInput(), piece);
  Value rank = buildCoordinate(loops.getBuilder(), op);
  return loops.map(
      {rows, piece}, {}, getElementTypeOrSelf(op.getOut()),
      [&](ImplicitLocOpBuilder &builder, Scalars) -> Results {
        Value row = linalg::IndexOp::create(builder, 0);
        Value count = arith::ConstantIndexOp::create(builder, ranks);
        Value first = arith::MulIOp::create(builder, row, count);
        Value own = asIndex(builder, rank);
        return {gather(builder, x, arith::AddIOp::create(builder, first, own))};
      });
}

/// Rows of the whole from the rank's first on: as long as shares and whole have
/// in common. Where there are no more, zeros.
static Values convert(LoopBuilder &loops, TakeShareOp op) {
  int64_t elements = op.getInput().getType().getNumElements();
  int64_t own = op.getOut().getType().getNumElements();
  int64_t cols = std::gcd(elements, own);
  int64_t rows = own / cols;
  Value x = loops.asMatrix(op.getInput(), cols);
  Value begin = buildBegin(loops, op, rows);
  return loops.map(
      {rows, cols}, {}, getElementTypeOrSelf(op.getOut()),
      [&](ImplicitLocOpBuilder &builder, Scalars) -> Results {
        Value index = linalg::IndexOp::create(builder, 0);
        Value row = arith::AddIOp::create(
            builder, begin,
            arith::IndexCastOp::create(builder, builder.getI32Type(), index));
        Own found = findOwn(builder, row, getI32(builder, 0), elements / cols);
        Scalar value = gather(builder, x, asIndex(builder, found.index));
        return {value.where(found.isThere, Scalar(builder, 0.0))};
      });
}

static Values convert(LoopBuilder &loops, EmbeddingPartOp op) {
  Value ids = loops.asVector(op.getIds());
  int64_t rows = getShape(ids)[0], cols = getShape(op.getTable())[1];
  int64_t size = getShape(op.getTable())[0];
  Value begin = buildBegin(loops, op, size);
  return loops.map({rows, cols}, {{ids, Access::Row}},
                   getElementTypeOrSelf(op.getOut()),
                   [&](ImplicitLocOpBuilder &builder, Scalars s) -> Results {
                     Own own = findOwn(builder, s[0].get(), begin, size);
                     Scalar found = gather(builder, op.getTable(),
                                           asIndex(builder, own.index));
                     return {found.where(own.isThere, Scalar(builder, 0.0))};
                   });
}

/// Whether this iteration's column, of those from `begin` on, is a class.
static Value isClass(ImplicitLocOpBuilder &builder, Value begin,
                     int64_t classes) {
  Value index = linalg::IndexOp::create(builder, 1);
  Value col = arith::IndexCastOp::create(builder, builder.getI32Type(), index);
  Value left = arith::SubIOp::create(builder, getI32(builder, classes), begin);
  return arith::CmpIOp::create(builder, arith::CmpIPredicate::slt, col, left);
}

static Values convert(LoopBuilder &loops, CrossEntropyPartOp op) {
  Value x = loops.asMatrix(op.getLogits());
  int64_t rows = getShape(x)[0], cols = getShape(x)[1];
  Value begin = buildBegin(loops, op, cols);
  auto isSeen = [&](ImplicitLocOpBuilder &builder) {
    return isClass(builder, begin, int64_t(*op.getClasses()));
  };
  Exponentials exponentials = op.getClasses()
                                  ? buildExponentials(loops, x, isSeen)
                                  : buildExponentials(loops, x);
  Type f32 = loops.getBuilder().getF32Type();
  return loops.map(
      {rows},
      {{exponentials.greatest},
       {exponentials.sum},
       {loops.asVector(op.getTargets())}},
      {f32, f32}, [&](ImplicitLocOpBuilder &builder, Scalars s) -> Results {
        Own own = findOwn(builder, s[2].get(), begin, cols);
        Value row = linalg::IndexOp::create(builder, 0);
        Scalar hit = getElement(builder, x, row, asIndex(builder, own.index));
        Scalar lse = s[0] + log(s[1]);
        return {lse, hit.where(own.isThere, Scalar(builder, 0.0))};
      });
}

static Values convert(LoopBuilder &loops, CrossEntropyPartBackwardOp op) {
  Value x = loops.asMatrix(op.getLogits());
  int64_t cols = getShape(x)[1];
  Value begin = buildBegin(loops, op, cols);
  return loops.map(
      getShape(x),
      {{x},
       {loops.asVector(op.getTargets()), Access::Row},
       {loops.asVector(op.getLse()), Access::Row},
       {loops.asVector(op.getDlse()), Access::Row},
       {loops.asVector(op.getDhit()), Access::Row}},
      getElementTypeOrSelf(op.getDlogits()),
      [&](ImplicitLocOpBuilder &builder, Scalars s) -> Results {
        Scalar probability = exp(s[0] - s[2]);
        if (op.getClasses())
          probability = probability.where(
              isClass(builder, begin, int64_t(*op.getClasses())),
              Scalar(builder, 0.0));
        Value own = arith::SubIOp::create(builder, s[1].get(), begin);
        Value index = linalg::IndexOp::create(builder, 1);
        Value col =
            arith::IndexCastOp::create(builder, builder.getI32Type(), index);
        Value isTarget =
            arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, col, own);
        Scalar hit = s[4].where(isTarget, Scalar(builder, 0.0));
        Scalar all = probability * s[3];
        return {all + hit};
      });
}

/// Of each column of [ranks, rows]: few numbers, so that all are written out.
static Values convert(LoopBuilder &loops, JoinLseOp op) {
  int64_t count = op.getLse().getType().getNumElements();
  int64_t ranks = op.getParts().getType().getNumElements() / count;
  Value parts = loops.asMatrix(op.getParts(), count);
  return loops.map(
      {1, count}, {}, loops.getBuilder().getF32Type(),
      [&](ImplicitLocOpBuilder &builder, Scalars) -> Results {
        SmallVector<Scalar> all;
        for (int64_t rank = 0; rank < ranks; ++rank)
          all.push_back(gather(builder, parts,
                               arith::ConstantIndexOp::create(builder, rank)));
        Scalar greatest = all.front();
        for (Scalar part : ArrayRef(all).drop_front())
          greatest = greatest.binary<arith::MaxNumFOp>(part);
        Scalar sum = exp(all.front() - greatest);
        for (Scalar part : ArrayRef(all).drop_front())
          sum = sum + exp(part - greatest);
        return {greatest + log(sum)};
      });
}

static Values convert(LoopBuilder &loops, JoinLseBackwardOp op) {
  int64_t count = op.getLse().getType().getNumElements();
  Value parts = loops.asMatrix(op.getParts(), count);
  return loops.map(getShape(parts),
                   {{parts},
                    {loops.asVector(op.getLse()), Access::Column},
                    {loops.asVector(op.getDlse()), Access::Column}},
                   loops.getBuilder().getF32Type(),
                   [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                     return {exp(s[0] - s[1]) * s[2]};
                   });
}

static Values convert(LoopBuilder &loops, AddBiasOp op) {
  Value x = loops.asMatrix(op.getInput());
  return loops.map(getShape(x), {{x}, {op.getBias(), Access::Column}},
                   getElementTypeOrSelf(op.getOut()),
                   [](ImplicitLocOpBuilder &, Scalars s) -> Results {
                     return {s[0] + s[1]};
                   });
}

namespace {
template <typename OpTy>
struct Loops : LoopBody::ExternalModel<Loops<OpTy>, OpTy> {
  Values buildLoops(Operation *op, LoopBuilder &loops) const {
    return convert(loops, cast<OpTy>(op));
  }
  /// Of a gradient whose exponentials are of the elements that it replaces.
  bool readsBeforeWriting(Operation *) const {
    return std::is_same_v<OpTy, CrossEntropyPartBackwardOp>;
  }
};
} // namespace

template <typename... Ops>
static void attach(MLIRContext &context) {
  (Ops::template attachInterface<Loops<Ops>>(context), ...);
}

void kernels::attachShardBodies(MLIRContext &context) {
  attach<SliceOp, TakeShareOp, EmbeddingPartOp, CrossEntropyPartOp,
         CrossEntropyPartBackwardOp, JoinLseOp, JoinLseBackwardOp, AddBiasOp>(
      context);
}
