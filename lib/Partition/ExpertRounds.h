//===- ExpertRounds.h - Experts have some rows at a time --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_PARTITION_EXPERTROUNDS_H
#define REPRISE_LIB_PARTITION_EXPERTROUNDS_H

#include "reprise/Dialect/NN/NNExpertRankOps.h"

namespace reprise::partition {
/// Splits what the ranks along `ep` do with the rows of one choice of experts,
/// whose offsets `gather` gives all of them, into rounds of at most `rows` rows
/// of an expert; nothing where one round has all that can come.
llvm::LogicalResult splitIntoRounds(nn::GatherOffsetsOp gather, int64_t rows);
} // namespace reprise::partition

#endif // REPRISE_LIB_PARTITION_EXPERTROUNDS_H
