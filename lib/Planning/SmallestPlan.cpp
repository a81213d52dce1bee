//===- SmallestPlan.cpp - What a step needs at least ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BudgetPlans.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::planning;

FailureOr<int64_t> planning::findSmallest(const Phases &phases, ModuleOp module,
                                          Budget::Kind kind,
                                          const CostTable &costs, bool isFree) {
  FailureOr<std::unique_ptr<SolvedStep>> solved =
      SolvedStep::create(phases, module, kind, costs, isFree);
  if (failed(solved) || (*solved)->curve.points.empty())
    return failure();
  BudgetSearch &search = (*solved)->search;
  int64_t point = search.findSmallest();
  if (point < 0)
    return failure();
  return search.getBytes(point);
}
