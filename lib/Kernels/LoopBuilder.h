//===- LoopBuilder.h - Formulas and loops of kernels ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_KERNELS_LOOPBUILDER_H
#define REPRISE_KERNELS_LOOPBUILDER_H

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace reprise::kernels {

/// A number in the body of a loop: f32, or an id in i32. Operators build
/// `arith` ops without fast-math flags. C++ leaves open which operand of an
/// operator is evaluated first: for the same text from every compiler, let at
/// most one operand be a formula itself.
class Scalar {
public:
  Scalar(mlir::ImplicitLocOpBuilder &builder, mlir::Value value)
      : builder(&builder), value(value) {}
  Scalar(mlir::ImplicitLocOpBuilder &builder, double number);

  mlir::Value get() const { return value; }

  /// The number that an element of any type stands for.
  Scalar loaded() const;
  /// The number as it is after storing it as an element of `type` and reading
  /// it again.
  Scalar roundedTo(mlir::Type type) const;
  /// The value to store as an element of `type`.
  mlir::Value storedAs(mlir::Type type) const;

  template <typename Op>
  Scalar unary() const {
    return {*builder, Op::create(*builder, value)};
  }
  template <typename Op>
  Scalar binary(Scalar other) const {
    return {*builder, Op::create(*builder, value, other.value)};
  }
  Scalar fma(Scalar factor, Scalar term) const {
    return {*builder, mlir::math::FmaOp::create(*builder, value, factor.value,
                                                term.value)};
  }
  Scalar number(double value) const { return {*builder, value}; }
  /// This where `condition`, an i1, holds, else `other`.
  Scalar where(mlir::Value condition, Scalar other) const;

private:
  mlir::ImplicitLocOpBuilder *builder;
  mlir::Value value;
};

Scalar operator+(Scalar a, Scalar b);
Scalar operator-(Scalar a, Scalar b);
Scalar operator*(Scalar a, Scalar b);
Scalar operator/(Scalar a, Scalar b);
Scalar operator+(double a, Scalar b);
Scalar operator-(double a, Scalar b);
Scalar operator*(double a, Scalar b);
Scalar operator/(double a, Scalar b);
Scalar operator+(Scalar a, double b);
Scalar operator/(Scalar a, double b);
Scalar exp(Scalar a);
Scalar exp2(Scalar a);
Scalar log(Scalar a);
Scalar sqrt(Scalar a);
Scalar erf(Scalar a);
Scalar max(Scalar a, Scalar b);
Scalar min(Scalar a, Scalar b);
/// a * b + c with one rounding.
Scalar fma(Scalar a, Scalar b, Scalar c);

/// Which element of an operand an iteration reads or writes: of loops over
/// elements its own; of loops over rows and columns also that of the row or of
/// the column; of either the only one.
enum class Access { Element, Row, Column, Scalar };

struct LoopOperand {
  mlir::Value value;
  Access access = Access::Element;
};

/// Builds `linalg.generic` on flattened shapes: `[n]`, or `[rows, cols]` with
/// the last dimension as columns.
class LoopBuilder {
public:
  using Values = llvm::SmallVector<mlir::Value>;
  using Body = llvm::function_ref<llvm::SmallVector<Scalar>(
      mlir::ImplicitLocOpBuilder &, llvm::ArrayRef<Scalar>)>;

  LoopBuilder(mlir::OpBuilder &builder, mlir::Location loc)
      : builder(loc, builder) {}

  mlir::ImplicitLocOpBuilder &getBuilder() { return builder; }

  /// `value` as `[n]`, as `[rows, cols]`, with the shape of `type`. Columns are
  /// those of its last dimension, unless `cols` says how many.
  mlir::Value asVector(mlir::Value value);
  mlir::Value asMatrix(mlir::Value value, int64_t cols = 0);
  mlir::Value asShapeOf(mlir::Value value, mlir::Type type);

  /// `value` with the shape of `type`, rounded to its element type.
  mlir::Value storedAs(mlir::Value value, mlir::Type type);

  /// A tensor of `shape` that holds nothing, or `value` everywhere.
  mlir::Value empty(llvm::ArrayRef<int64_t> shape, mlir::Type element);
  mlir::Value filled(llvm::ArrayRef<int64_t> shape, double value);

  /// Loops over all of `space`, with a result of that shape for each of
  /// `elements`.
  Values map(llvm::ArrayRef<int64_t> space, llvm::ArrayRef<LoopOperand> inputs,
             llvm::ArrayRef<mlir::Type> elements, Body body);

  /// Loops over `[rows, cols]`; the body gets the inputs and, last, the
  /// accumulator `init` of the row (column), and returns its new value.
  mlir::Value reduceRows(llvm::ArrayRef<LoopOperand> inputs, mlir::Value init,
                         Body body);
  mlir::Value reduceColumns(llvm::ArrayRef<LoopOperand> inputs,
                            mlir::Value init, Body body);

private:
  Values loop(llvm::ArrayRef<mlir::utils::IteratorType> iterators,
              llvm::ArrayRef<LoopOperand> inputs,
              llvm::ArrayRef<LoopOperand> outputs, bool readsOutputs,
              Body body);

  mlir::ImplicitLocOpBuilder builder;
};

/// `table[row, col]`.
Scalar getElement(mlir::ImplicitLocOpBuilder &builder, mlir::Value table,
                  mlir::Value row, mlir::Value col);

/// `table[row, column of this iteration]`, in loops over rows and columns.
Scalar gather(mlir::ImplicitLocOpBuilder &builder, mlir::Value table,
              mlir::Value row);

} // namespace reprise::kernels

#endif // REPRISE_KERNELS_LOOPBUILDER_H
