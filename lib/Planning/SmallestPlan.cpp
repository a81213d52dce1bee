//===- SmallestPlan.cpp - What a step needs at least ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BudgetPlans.h"
#include "reprise/Dialect/RT/RTOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::planning;

FailureOr<int64_t> planning::findSmallest(const Phases &phases, ModuleOp module,
                                          Budget::Kind kind,
                                          const CostTable &costs, bool isFree) {
  if (kind == Budget::Kind::Activations)
    module->setAttr(rt::kActivationsFirstAttr,
                    UnitAttr::get(module.getContext()));
  FailureOr<std::unique_ptr<WhatIf>> whatIf = WhatIf::create(module, phases);
  if (failed(whatIf))
    return failure();
  FailureOr<PlanCurve> curve = PlanCurve::find(**whatIf, kind, costs, isFree);
  if (failed(curve) || curve->points.empty())
    return failure();
  BudgetSearch search(**whatIf, *curve, kind, isFree);
  int64_t point = search.findSmallest();
  if (point < 0)
    return failure();
  return search.getBytes(point);
}
