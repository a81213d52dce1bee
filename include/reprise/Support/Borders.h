//===- Borders.h - Names of what chunks pass on -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_SUPPORT_BORDERS_H
#define REPRISE_SUPPORT_BORDERS_H

#include "llvm/ADT/StringRef.h"

namespace reprise {
/// As `nn.input` and `nn.output` of a chunk of a model: what chunks pass on,
/// and its gradient, which they pass back.
inline constexpr llvm::StringLiteral kBorder = "border";
inline constexpr llvm::StringLiteral kBorderGradient = "border_gradient";
/// On the border that a chunk reads: no chunk before it trains anything, so its
/// gradient is not asked for.
inline constexpr llvm::StringLiteral kUntrainedAttr = "nn.untrained";
/// On a parameter that two stages train: the stages, which sum its gradients.
inline constexpr llvm::StringLiteral kSumStagesAttr = "nn.sum_stages";
/// On the norm of stages: the axis along which ranks have shares.
inline constexpr llvm::StringLiteral kSharesAttr = "nn.shares";
} // namespace reprise

#endif // REPRISE_SUPPORT_BORDERS_H
