//===- Curve.h - Two ways to solve for every budget -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_SOLVER_CURVE_H
#define REPRISE_LIB_SOLVER_CURVE_H

#include "LayerPlans.h"
#include "reprise/Solver/Budget.h"

namespace reprise::solver {

/// What a curve's plans come from.
class BudgetCurve::Solver {
public:
  virtual ~Solver() = default;
  virtual std::vector<BudgetPoint> getPoints() const = 0;
  virtual KeptValues getPlan(size_t point) const = 0;
  virtual std::vector<std::pair<int64_t, int64_t>> getSegments(size_t) const {
    return {};
  }
};

/// Dynamic programming over the blocks of a chain, from the last to the first.
class BudgetCurve::ChainSolver : public BudgetCurve::Solver {
public:
  ChainSolver(Chain chain, const BudgetOptions &options);

  std::vector<BudgetPoint> getPoints() const override;
  KeptValues getPlan(size_t point) const override;
  std::vector<std::pair<int64_t, int64_t>>
  getSegments(size_t point) const override;

private:
  /// Blocks from one on, planned.
  struct State {
    int64_t need; ///< bytes, beside what earlier blocks keep
    double seconds;
    int32_t count = 0; ///< of blocks that `plan` is for
    int32_t plan = -1, next = -1;
  };

  void findRest();
  int64_t getNeed(int64_t first, int64_t count, const LayerPlan &plan) const;
  std::vector<State> solve(int64_t first);
  template <typename Visit>
  void walk(size_t point, Visit visit) const;

  Chain chain;
  BudgetOptions options;
  mutable LayerPlans plans;
  /// Bytes beside those of the blocks, while a block runs forward, or backward;
  /// and all bytes of the update.
  std::vector<int64_t> restForward, restBackward;
  int64_t updateNeed = 0;
  int64_t unit = 1;
  std::vector<std::vector<State>> states; ///< by first block
};

/// Local search from plans that are cheapest for a price of memory.
class BudgetCurve::GraphSolver : public BudgetCurve::Solver {
public:
  GraphSolver(const StepGraph &graph, const BudgetOptions &options);

  std::vector<BudgetPoint> getPoints() const override;
  KeptValues getPlan(size_t point) const override { return found[point].kept; }

private:
  struct Found {
    BudgetPoint point;
    KeptValues kept;
  };

  void add(const KeptValues &kept);
  void improve(const BudgetOptions &options);

  StepSimulator simulator;
  std::vector<int64_t> choices; ///< values that may be dropped
  std::vector<Found> found;     ///< peaks grow, seconds fall
};

} // namespace reprise::solver

#endif // REPRISE_LIB_SOLVER_CURVE_H
