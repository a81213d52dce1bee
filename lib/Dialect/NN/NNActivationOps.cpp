//===- NNActivationOps.cpp - Functions of one element ---------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Costs and derivatives.
//
//===----------------------------------------------------------------------===//

#include "reprise/Dialect/NN/NNActivationOps.h"
#include "Verify.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

/// The greater of two, and its square.
int64_t SquaredReluOp::getFlops() {
  return multiply({countElements(getInput()), 2});
}

/// The greater of two, its double, and the product.
int64_t SquaredReluBackwardOp::getFlops() {
  return multiply({countElements(getInput()), 3});
}

LogicalResult SquaredReluOp::buildVjp(OpBuilder &builder,
                                      ArrayRef<Value> cotangents,
                                      ArrayRef<bool> needed,
                                      MutableArrayRef<Value> gradients) {
  if (needed[0])
    gradients[0] = SquaredReluBackwardOp::create(builder, getLoc(), getInput(),
                                                 cotangents[0]);
  return success();
}
