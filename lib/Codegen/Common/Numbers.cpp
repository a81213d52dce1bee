//===- Numbers.cpp - Elements as the numbers they are added in --*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Codegen/Common/Numbers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

/// `element`, or a vector of as many as `like` has.
static Type getTypeLike(Type like, Type element) {
  auto vector = dyn_cast<VectorType>(like);
  return vector ? VectorType::get(vector.getShape(), element) : element;
}

Value codegen::toF32(Code &code, Value number) {
  if (getElementTypeOrSelf(number).isF32())
    return number;
  Type wide = getTypeLike(number.getType(), code.getF32Type());
  return arith::ExtFOp::create(code, wide, number);
}

Value codegen::fromF32(Code &code, Value number, Type element) {
  if (element.isF32())
    return number;
  Type narrow = getTypeLike(number.getType(), element);
  return arith::TruncFOp::create(code, narrow, number);
}
