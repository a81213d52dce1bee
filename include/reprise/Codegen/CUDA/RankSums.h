//===- RankSums.h - Kernels for sums over ranks -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_CODEGEN_CUDA_RANKSUMS_H
#define REPRISE_CODEGEN_CUDA_RANKSUMS_H

#include "reprise/Dialect/RT/RTOps.h"
#include <string>

namespace reprise::cuda {

/// A sum of terms of `element`, f32 or bf16: of each rank one for each run of
/// its groups.
struct RankSum {
  int64_t ranks, groups;
  mlir::Type element;

  int64_t getNumTerms() const;
};

/// The kernel for it: that of `getRankSumName` for so many terms, whose tree is
/// the one over the groups of all ranks; `_of_G` says so.
std::string getRankSumName(const RankSum &sum);

/// The kinds of sums that `op` needs: over ranks, and where a rank has several
/// terms those of one, which an engine may sum further.
llvm::SmallVector<RankSum> getRankSums(rt::CollectiveOp op);

} // namespace reprise::cuda

#endif // REPRISE_CODEGEN_CUDA_RANKSUMS_H
