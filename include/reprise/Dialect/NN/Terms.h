//===- Terms.h - Terms of a loss that are measured apart --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_NN_TERMS_H
#define REPRISE_DIALECT_NN_TERMS_H

#include "llvm/ADT/StringRef.h"

namespace reprise::nn {

/// Of a result of `@forward` that is a measure: it is a term of the loss that
/// is trained, and with the others that say the same the measure of this name.
/// So that the sum does not depend on which stages have the terms, it is made
/// once a step, of what all micro-batches have added to each.
inline constexpr llvm::StringLiteral kTermAttr = "nn.term";

/// Of the modules of chunks: the names of what the whole model measures, in its
/// order.
inline constexpr llvm::StringLiteral kMeasuresAttr = "nn.measures";

} // namespace reprise::nn

#endif // REPRISE_DIALECT_NN_TERMS_H
