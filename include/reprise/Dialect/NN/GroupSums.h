//===- GroupSums.h - Sums over ranks that have groups -----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_NN_GROUPSUMS_H
#define REPRISE_DIALECT_NN_GROUPSUMS_H

#include "reprise/Dialect/NN/NNOps.h"

namespace reprise::nn {

/// The groups of micro-batches that each rank has, as `sum` says with
/// `nn.reduction_groups`, an nn.all_reduce or nn.reduce_shares: 1 if it says
/// nothing. Of its `m` results number `i` has the terms `i`, `m + i` and so on,
/// one for each run of these groups (see Runs.h).
inline int64_t getGroupsOfRank(mlir::Operation *sum) {
  auto groups = sum->getAttrOfType<mlir::IntegerAttr>(kReductionGroupsAttr);
  return groups ? groups.getInt() : 1;
}

} // namespace reprise::nn

#endif // REPRISE_DIALECT_NN_GROUPSUMS_H
