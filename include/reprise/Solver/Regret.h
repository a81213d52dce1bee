//===- Regret.h - What wrong costs would have cost --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_SOLVER_REGRET_H
#define REPRISE_SOLVER_REGRET_H

#include "reprise/Solver/Budget.h"

namespace reprise::solver {

/// Costs other than those a plan was chosen by.
struct Scenario {
  std::string name;       ///< "GEMMs 20 % slower"
  double seconds = 0;     ///< the plan's replays of a micro-batch, then
  double bestSeconds = 0; ///< and those of the plan chosen by them
  double regretSeconds() const { return seconds - bestSeconds; }
};

/// For each group of ops, the costs in which these take a part `change` longer,
/// or less, than `graph` says, all else being the same: what `kept` costs then,
/// and what the cheapest plan for `bytes` within a step does. `groupOf` has the
/// group of each op of `graph`.
std::vector<Scenario> computeRegret(const StepGraph &graph,
                                    const KeptValues &kept, int64_t bytes,
                                    const std::vector<int64_t> &groupOf,
                                    const std::vector<std::string> &groups,
                                    double change = 0.2,
                                    const BudgetOptions &options = {});

} // namespace reprise::solver

#endif // REPRISE_SOLVER_REGRET_H
