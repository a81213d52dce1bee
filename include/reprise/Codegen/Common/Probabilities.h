//===- Probabilities.h - Weights of the experts of a token ------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_CODEGEN_COMMON_PROBABILITIES_H
#define REPRISE_CODEGEN_COMMON_PROBABILITIES_H

#include "reprise/Codegen/Common/Code.h"

namespace reprise::codegen {

mlir::Value sigmoid(Code &code, mlir::Value x);

/// The softmax of the logits of a token, or of those that were chosen; or the
/// sigmoid of each, divided by the sum of those that were chosen, or not. Who
/// computes it makes `greatest` and `sum` in an order of its own.
struct Probabilities {
  /// Added to sums of sigmoids, which may all be zero.
  static constexpr double kLeastOfSum = 1e-20;

  Code &code;
  mlir::Value logits, ids; ///< of all tokens, in memory
  mlir::Value row, place;  ///< the first of the token's logits, and of its ids
  int64_t experts, slots;
  bool isSigmoid, isNormalized;
  mlir::Value greatest, sum;

  /// Those of `op`, nn's or rt's, for one token.
  template <typename OpTy>
  static Probabilities of(Code &code, OpTy op, mlir::Value logits,
                          mlir::Value ids, mlir::Value token) {
    auto getLast = [](mlir::Value value) {
      return mlir::cast<mlir::ShapedType>(value.getType()).getShape().back();
    };
    int64_t experts = getLast(op.getLogits()), slots = getLast(op.getIds());
    return {code,
            logits,
            ids,
            code.mul(token, experts),
            code.mul(token, slots),
            experts,
            slots,
            op.getSigmoid(),
            op.getNormalized(),
            {},
            {}};
  }

  /// Whether terms are divided by their sum, and that over how many of which.
  bool hasSum() const { return !isSigmoid || isNormalized; }
  int64_t countTerms() const { return isNormalized ? slots : experts; }
  mlir::Value getExpert(mlir::Value term) const {
    return isNormalized ? getChosen(term) : term;
  }

  mlir::Value getChosen(mlir::Value slot) const;
  mlir::Value getLogit(mlir::Value expert) const;
  /// What sums are made of.
  mlir::Value getTerm(mlir::Value expert) const;
  mlir::Value get(mlir::Value expert) const { return divide(getTerm(expert)); }
  mlir::Value divide(mlir::Value term) const;
  /// The gradient of the logit of a chosen expert, the gradient of whose weight
  /// is `gradient`, `dot` being the sum of all of these times weights; null
  /// without a sum.
  mlir::Value getLogitGradient(mlir::Value expert, mlir::Value gradient,
                               mlir::Value dot) const;
};

/// `x` times the scale of `op`, if it has one.
template <typename OpTy>
mlir::Value scaled(Code &code, OpTy op, mlir::Value x) {
  if (!op.getScale())
    return x;
  return code.mul(x, code.f32(op.getScale()->convertToDouble()));
}

} // namespace reprise::codegen

#endif // REPRISE_CODEGEN_COMMON_PROBABILITIES_H
