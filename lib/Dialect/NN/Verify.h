//===- Verify.h - Shapes by the letters of the descriptions -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the verifiers, cost functions and derivatives of nn ops share; of no use
// elsewhere.
//
// A shape is written as in the descriptions, one letter for each dimension:
// `{"out", getOut(), "BTC"}` says that `out` is [B, T, C]. A letter is bound
// where it occurs first and has to agree from then on. `W` stands for the width
// `H*D`, `X` for that of keys and values, `G*D`. A dot in front stands for one
// dimension or more, `[...]`.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_DIALECT_NN_VERIFY_H
#define REPRISE_LIB_DIALECT_NN_VERIFY_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "llvm/Support/MathExtras.h"

#include <array>
#include <optional>

namespace reprise::nn {

/// An operand or result, its name in ODS, and the letters of its dimensions.
struct Shaped {
  llvm::StringRef name;
  mlir::Value value;
  llvm::StringRef letters;
};

/// The letters of one op and what they are bound to.
class Dims {
public:
  explicit Dims(mlir::Operation *op) : op(op) {}

  /// Matches the shapes one by one, or emits an error with the first letter
  /// that does not fit.
  llvm::LogicalResult match(llvm::ArrayRef<Shaped> shapes);

  /// Binds `H` to the attribute `heads`, which has to divide the width `W`,
  /// bound before, and `D` to the quotient.
  llvm::LogicalResult bindHeads(int64_t heads);

  /// The same, and binds `X` to the width of `kvHeads` heads, as many as
  /// `heads` without a value; they have to divide `heads`.
  llvm::LogicalResult bindHeads(int64_t heads, std::optional<int64_t> kvHeads);

  int64_t operator[](char letter) const { return bound(letter).size; }

private:
  struct Binding {
    int64_t size = -1;
    llvm::StringRef origin; ///< the operand, result or attribute that bound it
  };
  Binding &bound(char letter) { return bindings[letter - 'A']; }
  const Binding &bound(char letter) const { return bindings[letter - 'A']; }
  llvm::LogicalResult matchOne(const Shaped &shape);

  mlir::Operation *op;
  std::array<Binding, 26> bindings;
  llvm::ArrayRef<int64_t> leading; ///< what the dot is bound to
  llvm::StringRef leadingOrigin;
};

/// Checks the attributes of a dropout over the elements of `shape`, which are
/// all, or with `part` those of a rank.
llvm::LogicalResult verifyDropout(mlir::Operation *op, mlir::FloatAttr rate,
                                  int64_t stream, PartAttr part,
                                  llvm::ArrayRef<int64_t> shape);

/// Ids, random keys and the like have no gradient: asking for one is an error.
llvm::LogicalResult refuse(mlir::Operation *op, llvm::ArrayRef<bool> needed,
                           llvm::ArrayRef<unsigned> operands);

/// The type that the gradient of a parameter is made in, whatever it is read
/// as.
inline mlir::Type getSumType(mlir::Value parameter) {
  auto type = llvm::cast<mlir::RankedTensorType>(parameter.getType());
  return type.clone(mlir::Float32Type::get(parameter.getContext()));
}

/// Checks that the mesh of the module of `op`, if it has one, has `axis`.
llvm::LogicalResult verifyAxis(mlir::Operation *op, mlir::StringAttr axis);

/// And that it has the ranks of `part`, of a value of `rank` dimensions.
llvm::LogicalResult verifyPart(mlir::Operation *op, PartAttr part,
                               int64_t rank);

/// The product of `factors`, which are not negative, or 2^60 if that is
/// smaller: a few of these can be added without overflow.
inline int64_t multiply(llvm::ArrayRef<int64_t> factors) {
  uint64_t product = 1;
  for (int64_t factor : factors)
    product = llvm::SaturatingMultiply<uint64_t>(product, factor);
  return std::min(product, uint64_t(1) << 60);
}

inline llvm::ArrayRef<int64_t> getShape(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType()).getShape();
}

/// The number of elements of `value`, and of its rows: all but the last
/// dimension.
inline int64_t countElements(mlir::Value value) {
  return multiply(getShape(value));
}
inline int64_t countRows(mlir::Value value) {
  return multiply(getShape(value).drop_back());
}

} // namespace reprise::nn

#endif // REPRISE_LIB_DIALECT_NN_VERIFY_H
