//===- LoopBuilder.cpp - Formulas and loops of kernels ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::kernels;

//===----------------------------------------------------------------------===//
// Scalar
//===----------------------------------------------------------------------===//

Scalar::Scalar(ImplicitLocOpBuilder &builder, double number)
    : builder(&builder),
      value(arith::ConstantOp::create(
          builder, builder.getF32FloatAttr(static_cast<float>(number)))) {}

Scalar Scalar::loaded() const {
  if (!value.getType().isBF16())
    return *this;
  return {*builder,
          arith::ExtFOp::create(*builder, builder->getF32Type(), value)};
}

Value Scalar::storedAs(Type type) const {
  if (value.getType() == type)
    return value;
  // What was rounded and read again is the rounded number.
  if (auto read = value.getDefiningOp<arith::ExtFOp>();
      read && read.getIn().getType() == type)
    return read.getIn();
  return arith::TruncFOp::create(*builder, type, value);
}

Scalar Scalar::roundedTo(Type type) const {
  return Scalar(*builder, storedAs(type)).loaded();
}

Scalar Scalar::where(Value condition, Scalar other) const {
  return {*builder,
          arith::SelectOp::create(*builder, condition, value, other.value)};
}

namespace reprise::kernels {
Scalar operator+(Scalar a, Scalar b) { return a.binary<arith::AddFOp>(b); }
Scalar operator-(Scalar a, Scalar b) { return a.binary<arith::SubFOp>(b); }
Scalar operator*(Scalar a, Scalar b) { return a.binary<arith::MulFOp>(b); }
Scalar operator/(Scalar a, Scalar b) { return a.binary<arith::DivFOp>(b); }
Scalar operator+(double a, Scalar b) { return b.number(a) + b; }
Scalar operator-(double a, Scalar b) { return b.number(a) - b; }
Scalar operator*(double a, Scalar b) { return b.number(a) * b; }
Scalar operator/(double a, Scalar b) { return b.number(a) / b; }
Scalar operator+(Scalar a, double b) { return a + a.number(b); }
Scalar operator/(Scalar a, double b) { return a / a.number(b); }
Scalar exp(Scalar a) { return a.unary<math::ExpOp>(); }
Scalar exp2(Scalar a) { return a.unary<math::Exp2Op>(); }
Scalar log(Scalar a) { return a.unary<math::LogOp>(); }
Scalar sqrt(Scalar a) { return a.unary<math::SqrtOp>(); }
Scalar erf(Scalar a) { return a.unary<math::ErfOp>(); }
Scalar max(Scalar a, Scalar b) { return a.binary<arith::MaximumFOp>(b); }
Scalar min(Scalar a, Scalar b) { return a.binary<arith::MinimumFOp>(b); }
Scalar fma(Scalar a, Scalar b, Scalar c) { return a.fma(b, c); }
} // namespace reprise::kernels

//===----------------------------------------------------------------------===//
// LoopBuilder
//===----------------------------------------------------------------------===//

static RankedTensorType getTensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// The groups of dimensions of `wide` that make up those of `narrow`, which
/// has its last dimension and the product of the others, the product of all,
/// or, being of rank 0, none.
static SmallVector<ReassociationIndices> getGroups(int64_t wide,
                                                   int64_t narrow) {
  SmallVector<ReassociationIndices> groups(narrow);
  for (int64_t d = 0; narrow && d < wide; ++d)
    groups[narrow == 2 && d == wide - 1 ? 1 : 0].push_back(d);
  return groups;
}

Value LoopBuilder::asShapeOf(Value value, Type type) {
  RankedTensorType from = getTensorType(value);
  ArrayRef<int64_t> shape = cast<ShapedType>(type).getShape();
  if (from.getShape() == shape)
    return value;
  auto to = RankedTensorType::get(shape, from.getElementType());
  int64_t have = from.getRank(), want = to.getRank();
  // Rows are cut, or joined, only where all is one vector.
  if (have > 1 && want > 1 && from.getShape().back() != shape.back())
    return asShapeOf(asVector(value), type);
  if (have > want)
    return tensor::CollapseShapeOp::create(builder, to, value,
                                           getGroups(have, want));
  return tensor::ExpandShapeOp::create(builder, to, value,
                                       getGroups(want, have));
}

Value LoopBuilder::asVector(Value value) {
  RankedTensorType type = getTensorType(value);
  return asShapeOf(value, type.clone({type.getNumElements()}));
}

Value LoopBuilder::asMatrix(Value value, int64_t cols) {
  RankedTensorType type = getTensorType(value);
  if (!cols)
    cols = type.getRank() ? type.getShape().back() : 1;
  if (type.getRank() == 0)
    value = asVector(value);
  return asShapeOf(value, type.clone({type.getNumElements() / cols, cols}));
}

Value LoopBuilder::storedAs(Value value, Type type) {
  Type element = cast<ShapedType>(type).getElementType();
  if (getTensorType(value).getElementType() != element) {
    Value all = asVector(value);
    value = map(getTensorType(all).getShape(), {{all}}, element,
                [](ImplicitLocOpBuilder &, ArrayRef<Scalar> s) {
                  return SmallVector<Scalar>{s[0]};
                })[0];
  }
  return asShapeOf(value, type);
}

Value LoopBuilder::empty(ArrayRef<int64_t> shape, Type element) {
  return tensor::EmptyOp::create(builder, shape, element);
}

Value LoopBuilder::filled(ArrayRef<int64_t> shape, double value) {
  Value scalar = Scalar(builder, value).get();
  Value tensor = empty(shape, builder.getF32Type());
  return linalg::FillOp::create(builder, scalar, tensor).getResult(0);
}

LoopBuilder::Values LoopBuilder::loop(ArrayRef<utils::IteratorType> iterators,
                                      ArrayRef<LoopOperand> inputs,
                                      ArrayRef<LoopOperand> outputs,
                                      bool readsOutputs, Body body) {
  unsigned rank = iterators.size();
  auto getMap = [&](Access access) {
    MLIRContext *context = builder.getContext();
    switch (access) {
    case Access::Element:
      return builder.getMultiDimIdentityMap(rank);
    case Access::Row:
      return AffineMap::get(rank, 0, builder.getAffineDimExpr(0));
    case Access::Column:
      return AffineMap::get(rank, 0, builder.getAffineDimExpr(1));
    case Access::Scalar:
      return AffineMap::get(rank, 0, context);
    }
    llvm_unreachable("unknown access");
  };
  SmallVector<AffineMap> maps;
  Values ins, outs;
  for (const LoopOperand &input : inputs) {
    maps.push_back(getMap(input.access));
    ins.push_back(input.value);
  }
  for (const LoopOperand &output : outputs) {
    maps.push_back(getMap(output.access));
    outs.push_back(output.value);
  }
  auto generic = linalg::GenericOp::create(
      builder, ValueRange(outs).getTypes(), ins, outs, maps, iterators,
      [&](OpBuilder &nested, Location loc, ValueRange elements) {
        ImplicitLocOpBuilder inner(loc, nested);
        SmallVector<Scalar> scalars;
        size_t read = readsOutputs ? elements.size() : inputs.size();
        for (Value element : elements.take_front(read))
          scalars.push_back(Scalar(inner, element).loaded());
        Values stored;
        for (auto [result, output] : llvm::zip(body(inner, scalars), outs))
          stored.push_back(
              result.storedAs(getTensorType(output).getElementType()));
        linalg::YieldOp::create(inner, stored);
      });
  return generic->getResults();
}

LoopBuilder::Values LoopBuilder::map(ArrayRef<int64_t> space,
                                     ArrayRef<LoopOperand> inputs,
                                     ArrayRef<Type> elements, Body body) {
  SmallVector<LoopOperand> outputs;
  for (Type element : elements)
    outputs.push_back({empty(space, element)});
  SmallVector<utils::IteratorType> iterators(space.size(),
                                             utils::IteratorType::parallel);
  return loop(iterators, inputs, outputs, /*readsOutputs=*/false, body);
}

Value LoopBuilder::reduceRows(ArrayRef<LoopOperand> inputs, Value init,
                              Body body) {
  return loop({utils::IteratorType::parallel, utils::IteratorType::reduction},
              inputs, {{init, Access::Row}}, /*readsOutputs=*/true, body)
      .front();
}

Value LoopBuilder::reduceColumns(ArrayRef<LoopOperand> inputs, Value init,
                                 Body body) {
  return loop({utils::IteratorType::reduction, utils::IteratorType::parallel},
              inputs, {{init, Access::Column}}, /*readsOutputs=*/true, body)
      .front();
}

Scalar kernels::getElement(ImplicitLocOpBuilder &builder, Value table,
                           Value row, Value col) {
  Scalar element(
      builder, tensor::ExtractOp::create(builder, table, ValueRange{row, col}));
  return element.loaded();
}

/// `table[row, column of this iteration]`.
Scalar kernels::gather(ImplicitLocOpBuilder &builder, Value table, Value row) {
  return getElement(builder, table, row, linalg::IndexOp::create(builder, 1));
}
