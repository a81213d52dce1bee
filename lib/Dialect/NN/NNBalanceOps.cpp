//===- NNBalanceOps.cpp - Balance of experts over a step ------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Dialect/NN/NNBalanceOps.h"
#include "Verify.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

LogicalResult RowSharesOp::verify() {
  return Dims(*this).match({{"rows", getRows(), "E"}}); // C1
}

/// A sum, and a quotient for each.
int64_t RowSharesOp::getFlops() {
  return multiply({2, countElements(getRows())});
}
