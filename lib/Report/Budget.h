//===- Budget.h - What reports say of a budget ------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_REPORT_BUDGET_H
#define REPRISE_LIB_REPORT_BUDGET_H

#include "reprise/Report/Plan.h"
#include "llvm/Support/JSON.h"

/// Each needs `plan.budget`, but for `drawBudget`.
namespace reprise::report {
/// Lines of text: use, bound, price, regret, rivals.
void printBudget(llvm::raw_ostream &os, const Plan &plan);

/// The key "budget".
void writeBudget(llvm::json::OStream &json, const Plan &plan);

/// What lib/Report/Page.html names: the curve, its bound and the plan; null if
/// there is no curve.
llvm::json::Value drawBudget(const Plan &plan);
} // namespace reprise::report

#endif // REPRISE_LIB_REPORT_BUDGET_H
