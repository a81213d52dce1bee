//===- Shrink.cpp - Plans that need less than the smallest ----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Solver/Budget.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

using namespace reprise::solver;

namespace {
/// Changes a plan as long as its peak falls; at the same peak, what is alive
/// where nearly as much is; then its seconds.
class Shrinker {
public:
  Shrinker(const StepGraph &graph, const KeptValues &start);

  std::vector<FoundPlan> run();

private:
  /// Peak, bytes above what is near the smallest peak, seconds.
  using Score = std::tuple<int64_t, int64_t, double>;

  /// What is known of a plan.
  struct Tried {
    Score score;
    int64_t launches = 0;
    bool isPossible = false;
  };

  std::optional<Score> getScore(const KeptValues &kept);
  Tried look(const KeptValues &kept);
  /// Decides `values` otherwise than they are; takes that back if it is no
  /// better.
  bool tryFlips(const std::vector<int64_t> &values);
  /// Goes down from a plan until so much work is left.
  void descend(KeptValues start, int64_t until);
  void note();

  StepSimulator simulator;
  KeptValues own;
  Score score = {};         ///< of `own`
  int64_t smallest;         ///< peak of all so far
  int64_t work = 2'000'000; ///< launches left to run: about 50 ms
  /// A small step has few plans, which come up again and again. Of those bytes
  /// that are near the present `smallest`.
  std::unordered_map<KeptValues, Tried> tried;
  std::vector<int64_t> choices;
  /// Choices of one name in all layers.
  std::vector<std::vector<int64_t>> groups;
  std::vector<FoundPlan> found;
};
} // namespace

/// "layer3.mlp.u" is "mlp.u".
static std::string getNameInLayer(const std::string &name) {
  size_t dot = name.compare(0, 5, "layer") == 0 ? name.find('.') : 0;
  return dot == std::string::npos || dot == 0 ? name : name.substr(dot + 1);
}

Shrinker::Shrinker(const StepGraph &graph, const KeptValues &start)
    : simulator(graph), own(start) {
  std::map<std::string, std::vector<int64_t>> byName;
  for (size_t v = 0; v < graph.values.size(); ++v)
    if (graph.values[v].rule == StepValue::Rule::Free) {
      choices.push_back(v);
      byName[getNameInLayer(graph.values[v].name)].push_back(v);
    }
  for (auto &[_, values] : byName)
    if (values.size() > 1)
      groups.push_back(std::move(values));
  smallest = simulator.run(start).peak;
}

Shrinker::Tried Shrinker::look(const KeptValues &kept) {
  const StepRun &run = simulator.run(kept);
  // A peak that several positions have falls when all of them do.
  int64_t near = smallest - smallest / 16, above = 0;
  for (int64_t live : run.live)
    above += std::max<int64_t>(live - near, 0);
  return {Score{run.peak, above, run.replaySeconds},
          int64_t(run.schedule.size()), run.isPossible};
}

/// A plan that is known counts as work like any other, so that what is found
/// depends on nothing that is remembered.
std::optional<Shrinker::Score> Shrinker::getScore(const KeptValues &kept) {
  auto [known, isNew] = tried.try_emplace(kept);
  if (isNew)
    known->second = look(kept);
  work -= known->second.launches;
  if (!known->second.isPossible)
    return std::nullopt;
  return known->second.score;
}

/// Keeps what is smaller than all so far, or as small and faster.
void Shrinker::note() {
  auto [peak, above, seconds] = score;
  FoundPlan plan = {own, {peak, seconds}};
  if (peak < smallest)
    found.push_back(std::move(plan));
  else if (peak == smallest && !found.empty() &&
           seconds < found.back().point.seconds)
    found.back() = std::move(plan);
  if (peak >= smallest)
    return;
  smallest = peak;
  tried.clear();
}

bool Shrinker::tryFlips(const std::vector<int64_t> &values) {
  auto flip = [&] {
    for (int64_t value : values)
      own[value] = !own[value];
  };
  flip();
  std::optional<Score> changed = getScore(own);
  if (!changed || *changed >= score) {
    flip();
    return false;
  }
  score = *changed;
  note();
  return true;
}

void Shrinker::descend(KeptValues start, int64_t until) {
  std::optional<Score> first = getScore(start);
  if (!first)
    return;
  own = std::move(start);
  score = *first;
  note();
  for (bool isBetter = true; isBetter && work > until;) {
    isBetter = false;
    for (const std::vector<int64_t> &group : groups)
      isBetter |= work > until && tryFlips(group);
    for (int64_t value : choices)
      isBetter |= work > until && tryFlips({value});
  }
}

std::vector<FoundPlan> Shrinker::run() {
  if (choices.empty())
    return {};
  KeptValues start = own, nothing = own, everything = own;
  for (int64_t value : choices) {
    nothing[value] = false;
    everything[value] = true;
  }
  int64_t part = work / 5;
  descend(everything, work - part);
  descend(nothing, work - part);
  descend(start, work - part);
  if (!found.empty())
    descend(found.back().kept, work - part);
  uint64_t random = 1;
  auto pick = [&](size_t count) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return size_t((random >> 33) % count);
  };
  // Half of what is left goes down from plans at random, from those that drop
  // little to those that drop nearly everything; the other half goes on near
  // the smallest.
  int64_t half = work / 2;
  for (size_t share = 1; work > half; share = share % 7 + 1) {
    for (int64_t value : choices)
      start[value] = pick(8) >= share;
    descend(start, half);
  }
  if (!found.empty())
    descend(found.back().kept, 0);
  while (work > 0) {
    std::vector<int64_t> values;
    for (size_t changes = 2 + pick(2); changes > 0; --changes)
      values.push_back(choices[pick(choices.size())]);
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    tryFlips(values);
  }
  return std::move(found);
}

std::vector<FoundPlan> reprise::solver::shrink(const StepGraph &graph,
                                               const KeptValues &start) {
  return Shrinker(graph, start).run();
}
