//===- SolveStep.h - All solvers on one step --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TOOLS_REPRISE_MEMPLAN_SOLVESTEP_H
#define REPRISE_TOOLS_REPRISE_MEMPLAN_SOLVESTEP_H

#include "reprise/Solver/StepGraph.h"
#include <iosfwd>

namespace reprise::tools {
/// Prints what each solver makes of `graph`, a plan a line as its peak in bytes
/// and the seconds of its replays of a micro-batch; and for each of `budgets`,
/// in bytes, the fastest that fits, beside what no plan takes less than.
void solveStep(const solver::StepGraph &graph,
               const std::vector<int64_t> &budgets, std::ostream &out);
} // namespace reprise::tools

#endif // REPRISE_TOOLS_REPRISE_MEMPLAN_SOLVESTEP_H
