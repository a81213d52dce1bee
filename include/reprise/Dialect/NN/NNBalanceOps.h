//===- NNBalanceOps.h - Balance of experts over a step ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_NN_NNBALANCEOPS_H
#define REPRISE_DIALECT_NN_NNBALANCEOPS_H

#include "reprise/Dialect/NN/NNOps.h"

namespace reprise::nn {
/// Of an op of `@forward` whose operand 0 is returned as the measure that this
/// names: it reads the measure's sum as far as the step has come.
inline constexpr llvm::StringLiteral kSoFarAttr = "nn.so_far";
} // namespace reprise::nn

#define GET_OP_CLASSES
#include "reprise/Dialect/NN/NNBalanceOps.h.inc"

#endif // REPRISE_DIALECT_NN_NNBALANCEOPS_H
