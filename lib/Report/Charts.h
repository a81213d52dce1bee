//===- Charts.h - What the pictures of the page show ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_REPORT_CHARTS_H
#define REPRISE_LIB_REPORT_CHARTS_H

#include "reprise/Report/Plan.h"
#include "llvm/Support/JSON.h"

/// Each function makes the values that lib/Report/Page.html names. Pictures are
/// 1000 wide and 300 high whatever they show; times run from left to right,
/// over one micro-batch and the update.
namespace reprise::report {
/// Bytes over the step, stacked by role, with the peak.
llvm::json::Value drawMemory(const Plan &plan);

/// What lies where in the arena, and when. Draws the largest `limit` values.
llvm::json::Value drawArena(const Plan &plan, size_t limit);

/// Bytes of the arena by category.
llvm::json::Value drawCategories(const Plan &plan);

/// A dot for each plan, its peak against the time of its replays; null if there
/// is nothing to compare.
llvm::json::Value drawPlans(const Plan &plan);

/// `text` as a section of the page, which is passed over if it is empty.
inline llvm::json::Value asSection(std::string text) {
  if (text.empty())
    return nullptr;
  return text;
}
} // namespace reprise::report

#endif // REPRISE_LIB_REPORT_CHARTS_H
