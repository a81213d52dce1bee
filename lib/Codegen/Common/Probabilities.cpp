//===- Probabilities.cpp - Weights of the experts of a token ----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Codegen/Common/Probabilities.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

Value codegen::sigmoid(Code &code, Value x) {
  Value one = code.f32(1);
  Value power = code.exp(arith::NegFOp::create(code, x));
  return arith::DivFOp::create(code, one, code.add(one, power));
}

Value Probabilities::getChosen(Value slot) const {
  Value id = code.load(code.getI32Type(), ids, code.add(place, slot));
  return code.cast(id, code.getI64Type());
}

Value Probabilities::getLogit(Value expert) const {
  return code.load(code.getF32Type(), logits, code.add(row, expert));
}

Value Probabilities::getTerm(Value expert) const {
  return isSigmoid ? sigmoid(code, getLogit(expert))
                   : code.exp(code.sub(getLogit(expert), greatest));
}

Value Probabilities::divide(Value term) const {
  return sum ? Value(arith::DivFOp::create(code, term, sum)) : term;
}

Value Probabilities::getLogitGradient(Value expert, Value gradient,
                                      Value dot) const {
  if (!isSigmoid)
    return code.mul(get(expert), code.sub(gradient, dot));
  if (dot)
    gradient = divide(code.sub(gradient, dot));
  Value term = getTerm(expert);
  return code.mul(code.mul(gradient, term), code.sub(code.f32(1), term));
}
