//===- Budget.h - What a budget of bytes bought -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_REPORT_BUDGET_H
#define REPRISE_REPORT_BUDGET_H

#include <cstdint>
#include <string>
#include <vector>

namespace reprise::report {
/// The plans for all budgets of a step, and what is known of the one that was
/// asked for. Seconds are those of a step, bytes those that the budget counts.
struct Budget {
  /// The plan that replays least with so many bytes; if its head is in other
  /// chunks than that of the plan, the seconds have what that takes longer.
  struct Point {
    int64_t peakBytes = 0;
    double replaySeconds = 0;
  };

  /// Costs other than those of the table, and what the plan chosen by them
  /// would replay.
  struct Scenario {
    std::string name; ///< "GEMMs 20 % slower"
    double replaySeconds = 0, bestSeconds = 0;
  };

  /// A plan that Megatron has a name for.
  struct Rival {
    std::string name;    ///< "full block 14"
    std::string command; ///< that makes a program of it; may be empty
    int64_t peakBytes = 0;
    double replaySeconds = 0;
  };

  bool isOfActivations = false; ///< counts what lives within a step alone
  int64_t bytes = 0;            ///< 0: none was asked for, the curve alone was
  int64_t peakBytes = 0;        ///< of the plan
  double replaySeconds = 0;     ///< of the plan
  double boundSeconds = 0;      ///< no plan of `bytes` replays for less
  double secondsPerByte = 0;    ///< what one byte more would save
  std::vector<Point> curve;     ///< peaks grow, seconds fall
  std::vector<Scenario> scenarios;
  std::vector<Rival> rivals;

  /// The largest regret of all scenarios.
  const Scenario *getWorst() const;
};
} // namespace reprise::report

#endif // REPRISE_REPORT_BUDGET_H
