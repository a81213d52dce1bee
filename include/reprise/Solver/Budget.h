//===- Budget.h - The cheapest plan for every budget ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a step should keep, for the least time of replays that a peak of memory
// allows. All budgets are solved at once: a curve of plans, from the one that
// needs least memory to the one that takes least time. A budget then picks the
// last plan that fits; hence a smaller budget never gives a faster step or a
// larger peak.
//
// docs/solver.md tells how.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_SOLVER_BUDGET_H
#define REPRISE_SOLVER_BUDGET_H

#include "reprise/Solver/Certificate.h"
#include "reprise/Solver/StepGraph.h"
#include <memory>

namespace reprise::solver {

/// Segments of a plan, which keep only what enters them, have no more layers.
inline constexpr int64_t kMostSegmentLayers = 8;

struct BudgetPoint {
  int64_t peak = 0;   ///< bytes within a step
  double seconds = 0; ///< of the replays of a micro-batch
};

struct BudgetOptions {
  /// Peaks that differ by less than this part of the largest are one where
  /// there are many. What a plan needs is exact all the same.
  int64_t resolution = 8192;
  /// Steps that are no chain: how often a plan is changed in search of a
  /// better one.
  int64_t searchSteps = 2000;
  /// Micro-batches whose kept values are there when most are: a peak has them
  /// once for each but the one that runs. A step that is no chain needs 1.
  int64_t inFlight = 1;
  /// Searches for plans of a chain, too, as if it were none.
  bool isSearched = false;
};

class BudgetCurve {
public:
  /// Solves `graph`, which passes `check` and stays as long as the curve.
  explicit BudgetCurve(const StepGraph &graph,
                       const BudgetOptions &options = {});
  ~BudgetCurve();

  /// Peaks grow, seconds fall. At least one point, unless rules want what
  /// cannot be.
  const std::vector<BudgetPoint> &getPoints() const { return points; }

  /// What a point keeps.
  KeptValues getPlan(size_t point) const;

  /// The last point whose peak is at most `bytes`; -1 if there is none.
  int64_t find(int64_t bytes) const;

  /// Whether the step is a chain of layers, solved exactly, and if not, why.
  bool isChain() const { return reason.empty(); }
  const std::string &getReason() const { return reason; }

  /// Segments of a plan: first and last layer of those with several.
  std::vector<std::pair<int64_t, int64_t>> getSegments(size_t point) const;

private:
  class Solver;
  class ChainSolver;
  class GraphSolver;

  std::vector<BudgetPoint> points;
  std::string reason;
  std::unique_ptr<Solver> solver;
};

/// A plan, and what it comes to.
struct FoundPlan {
  KeptValues kept;
  BudgetPoint point;
};

/// Plans with smaller peaks than `start`, each smaller than the one before:
/// what a value, or a value of all layers, is decided to be is changed as long
/// as that helps, then some at random, with a fixed seed. A curve's plans are
/// of layers that do alike; near the smallest peak others may need less. Runs
/// two million launches of the step in all.
std::vector<FoundPlan> shrink(const StepGraph &graph, const KeptValues &start);

/// Of all plans of a step, those that none is better than: peaks grow, seconds
/// fall. Runs the step twice as often for each value more to decide on: for
/// small steps, to compare others with.
std::vector<FoundPlan> tryAllPlans(const StepGraph &graph);

/// Fills what `certificate`, whose budget is set, says of the plan `kept` and
/// of what no plan can do better: classes, layers, times, and the bound, for a
/// price of memory near `price`, in seconds of a micro-batch a byte; without
/// one, memory has no price yet. The schedule is that of a run of `graph`;
/// buffers, and what it reads and writes of them, are left to who knows the
/// offsets.
void certify(const StepGraph &graph, const KeptValues &kept,
             std::optional<double> price, Certificate &certificate,
             int64_t inFlight = 1);

/// What a micro-batch in flight keeps of a step that keeps `kept`: what
/// backward or a replay reads of it.
int64_t getKeptBytes(const StepGraph &graph, const KeptValues &kept);

/// Packs the buffers of a run of `graph` that keeps `kept`, which `certificate`
/// is of, and fills them in, with what its schedule reads and writes of them
/// and the peak. For steps that no program is planned for.
void certifyMemory(const StepGraph &graph, const KeptValues &kept,
                   Certificate &certificate);

/// The peak that `certifyMemory` finds, with no other micro-batch in flight.
int64_t getPackedBytes(const StepGraph &graph, const KeptValues &kept);

/// Whether that is the peak of the run, so that nothing is packed with waste.
bool isPackedTight(const StepGraph &graph, const KeptValues &kept);

/// The ops of a stage's graph behind its forward pass, which reads what the
/// next stage gets, and behind its backward, up to which results are there.
inline constexpr const char kSendName[] = "send", kAfterName[] = "after";

/// Some layers of a step, as a stage of a pipeline runs them.
struct StepStage {
  StepGraph graph;
  std::vector<int64_t> values; ///< of the whole step, by value
};

/// The stages of a step that have so many of its layers each, one behind the
/// other: with the first comes the embedding, with the last the head, and with
/// each layer the head before it, if there is one. A stage without layers may
/// have nothing but these. Empty if the step is no chain, or of other layers.
///
/// \param homes  by op: the stage of one that is in no layer and runs behind
///               all layers of that stage, instead of with the head; -1 for all
///               others. Empty: there are none.
std::vector<StepStage> takeStages(const StepGraph &graph,
                                  const std::vector<int64_t> &layers,
                                  const std::vector<int64_t> &homes = {});

} // namespace reprise::solver

#endif // REPRISE_SOLVER_BUDGET_H
