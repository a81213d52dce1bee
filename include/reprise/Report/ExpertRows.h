//===- ExpertRows.h - Room for rows that seldom come ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shapes of a plan are static, so a rank's experts have room for the most rows
// that can come. What of the plan is there for more rows than come where all
// experts are used evenly is read from the packed buffers.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_REPORT_EXPERTROWS_H
#define REPRISE_REPORT_EXPERTROWS_H

#include "reprise/Report/MemoryProfile.h"

namespace reprise::report {
/// Rows of the experts of a rank.
struct ExpertRows {
  /// For so many at most; 0 where none come from other ranks, as there is room
  /// then for those that there are.
  int64_t room = 0;
  int64_t even = 0; ///< of these, what comes where experts are used evenly
  /// By how many bytes less would be alive at the peak without room for others.
  int64_t peakBytes = 0;
  /// Whether rows come in rounds, as they do not on GPUs.
  enum class Rounds { Impossible, Possible, Used };
  Rounds rounds = Rounds::Impossible;

  /// "rows of experts: room for 4096, of which 1024 come where ...".
  std::string describe() const;
};

/// Those of `step`, in buffer form, of which `profile` is.
ExpertRows countExpertRows(mlir::func::FuncOp step,
                           const MemoryProfile &profile);
} // namespace reprise::report

#endif // REPRISE_REPORT_EXPERTROWS_H
