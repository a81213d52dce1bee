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
#include <optional>

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
    /// Bytes, beside what earlier blocks keep. With several micro-batches in
    /// flight, what the blocks keep.
    int64_t need;
    double seconds;
    int32_t count = 0; ///< of blocks that `plan` is for
    int32_t plan = -1, next = -1;
  };
  using States = std::vector<std::vector<State>>; ///< by first block
  class UnitStates;

  /// The best plans of the first block's curve that are left.
  struct Found {
    BudgetPoint point;
    size_t table, state;
  };

  void findRest();
  int64_t getNeed(int64_t first, int64_t count, const LayerPlan &plan) const;
  std::vector<State> solve(const States &behind, int64_t first,
                           std::optional<int64_t> overhang);
  States solveAll(std::optional<int64_t> overhang);
  void addPoints(size_t table);
  int64_t getOverhang(size_t table, size_t state) const;
  template <typename Visit>
  void walk(size_t table, size_t state, Visit visit) const;

  Chain chain;
  BudgetOptions options;
  mutable LayerPlans plans;
  /// Bytes beside those of the blocks, while a block runs forward, or backward;
  /// and all bytes of the update.
  std::vector<int64_t> restForward, restBackward;
  /// What backward of a block makes and leaves to the update or the end: to
  /// blocks before it that is rest, unless they are in one segment with it.
  std::vector<int64_t> made;
  int64_t updateNeed = 0;
  int64_t unit = 1;
  /// One; with several micro-batches in flight one for each limit of what is
  /// alive beside what a micro-batch keeps.
  std::vector<States> tables;
  std::vector<Found> found; ///< peaks grow, seconds fall
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
