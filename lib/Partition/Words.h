//===- Words.h - From words of operands to words of results -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_PARTITION_WORDS_H
#define REPRISE_LIB_PARTITION_WORDS_H

#include "Layout.h"

namespace reprise::partition {
/// How a value is spread along `tp`, and whether it has a gradient.
struct Read {
  Spread spread;
  /// Ids, random numbers, frozen parameters and what is made of these alone:
  /// several parts may read the same.
  bool isData = false;
};

/// `S(1)`, say.
std::string spell(Spread spread);

/// How the results of an op of a rank's forward pass are spread, by a rule for
/// each op: these know nothing of how layouts are chosen, or moves placed. An
/// error, if ranks would not make parts of one result so, or not the parts of
/// its gradient.
mlir::FailureOr<llvm::SmallVector<Spread>>
inferSpreads(mlir::Operation *op, llvm::ArrayRef<Read> reads);

/// Whether result `i` of `op` is the sum over ranks of operand `i`, or a rank's
/// part of that.
bool sumsOverRanks(mlir::Operation *op);
} // namespace reprise::partition

#endif // REPRISE_LIB_PARTITION_WORDS_H
