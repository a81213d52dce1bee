//===- LayerPlans.cpp - What a layer may keep, and what of it -------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerPlans.h"

#include <algorithm>
#include <cassert>
#include <tuple>

using namespace reprise::solver;

/// So many choices are all tried; more are cut in two where only the residual
/// stream goes on.
static constexpr size_t kMostGroups = 12;

//===----------------------------------------------------------------------===//
// One plan
//===----------------------------------------------------------------------===//

namespace {
/// Finds out what plans of an excerpt take.
class Evaluator {
public:
  explicit Evaluator(const Excerpt &excerpt)
      : excerpt(excerpt), simulator(excerpt.graph) {}

  /// Nothing if an op would have to run again that cannot.
  std::optional<LayerPlan> run(const KeptValues &kept);

  StepSimulator &getSimulator() { return simulator; }

private:
  const Excerpt &excerpt;
  StepSimulator simulator;
};
} // namespace

std::optional<LayerPlan> Evaluator::run(const KeptValues &kept) {
  const StepRun &result = simulator.run(kept);
  if (!result.isPossible)
    return std::nullopt;
  LayerPlan plan;
  plan.seconds = result.replaySeconds;
  int64_t gap = 0, end = result.schedule.size();
  while (result.schedule[gap].op != excerpt.gap)
    ++gap;
  for (int64_t p = 0; p < gap; ++p)
    plan.forwardNeed = std::max(plan.forwardNeed, result.live[p]);
  for (int64_t p = gap + 1; p < end; ++p)
    plan.backwardNeed = std::max(plan.backwardNeed, result.live[p]);
  plan.saved = simulator.getBytesAcross(gap);
  return plan;
}

void reprise::solver::keepBest(std::vector<LayerPlan> &plans) {
  auto getKey = [](const LayerPlan &plan) {
    return std::make_tuple(plan.saved, plan.seconds, plan.backwardNeed,
                           plan.forwardNeed);
  };
  std::stable_sort(plans.begin(), plans.end(),
                   [&](const LayerPlan &a, const LayerPlan &b) {
                     return getKey(a) < getKey(b);
                   });
  std::vector<LayerPlan> best;
  for (LayerPlan &plan : plans) {
    bool isWorse =
        std::any_of(best.begin(), best.end(), [&](const LayerPlan &other) {
          return other.saved <= plan.saved &&
                 other.seconds <= plan.seconds * (1 + 1e-12) &&
                 other.backwardNeed <= plan.backwardNeed &&
                 other.forwardNeed <= plan.forwardNeed;
        });
    if (!isWorse)
      best.push_back(std::move(plan));
  }
  plans = std::move(best);
}

//===----------------------------------------------------------------------===//
// All plans of a block
//===----------------------------------------------------------------------===//

namespace {
/// What is kept or dropped together: what one op makes and may be dropped.
struct Group {
  int64_t op; ///< of the excerpt
  std::vector<int64_t> values;
  int64_t bytes = 0;
};

/// Tries what a block may keep.
class Enumeration {
public:
  explicit Enumeration(const Excerpt &excerpt);

  std::vector<LayerPlan> run(std::vector<KeptValues> &kept);

private:
  void findGroups();
  bool isPassedOn(const Group &group, const std::vector<bool> &isNeeded) const;
  /// The group whose value alone goes on from the ops before it to those
  /// behind; -1 if there is none near the middle.
  int64_t findCut() const;
  std::vector<std::vector<bool>> getBestOf(const std::vector<size_t> &some,
                                           size_t cut, bool isCutKept);
  KeptValues asValues(const std::vector<bool> &choice) const;

  const Excerpt &excerpt;
  Evaluator evaluator;
  std::vector<Group> groups;
};
} // namespace

Enumeration::Enumeration(const Excerpt &excerpt)
    : excerpt(excerpt), evaluator(excerpt) {
  findGroups();
}

/// Whether nothing reads what `group` is but one op, whose results are no
/// larger and could be kept instead: then that is never worse.
bool Enumeration::isPassedOn(const Group &group,
                             const std::vector<bool> &isNeeded) const {
  int64_t reader = -1;
  for (size_t op = 0; op < excerpt.graph.ops.size(); ++op)
    for (int64_t read : excerpt.graph.ops[op].reads)
      if (std::count(group.values.begin(), group.values.end(), read) &&
          reader != int64_t(op)) {
        if (reader >= 0 || int64_t(op) >= excerpt.gap)
          return false;
        reader = op;
      }
  if (reader < 0)
    return false;
  int64_t bytes = 0;
  for (int64_t value : excerpt.graph.ops[reader].writes) {
    if (!isNeeded[value])
      continue;
    if (excerpt.graph.values[value].rule != StepValue::Rule::Free)
      return false;
    bytes += excerpt.graph.values[value].bytes;
  }
  return bytes <= group.bytes;
}

void Enumeration::findGroups() {
  const StepGraph &graph = excerpt.graph;
  // What backward reads, or replays would read if all were dropped.
  KeptValues none(graph.values.size());
  double seconds = 0;
  std::vector<bool> isNeeded(graph.values.size());
  auto need = [&](const StepOp &op) {
    for (int64_t value : op.reads)
      isNeeded[value] = true;
  };
  for (int64_t op : evaluator.getSimulator().getReplays(none, seconds))
    need(graph.ops[op]);
  for (size_t op = excerpt.gap; op < graph.ops.size(); ++op)
    need(graph.ops[op]);

  for (int64_t op = 0; op < excerpt.gap; ++op) {
    Group group = {op, {}};
    for (int64_t value : graph.ops[op].writes)
      if (graph.values[value].rule == StepValue::Rule::Free &&
          isNeeded[value]) {
        group.values.push_back(value);
        group.bytes += graph.values[value].bytes;
      }
    if (!group.values.empty() && graph.ops[op].isReplayable &&
        !isPassedOn(group, isNeeded))
      groups.push_back(std::move(group));
  }
}

KeptValues Enumeration::asValues(const std::vector<bool> &choice) const {
  KeptValues kept(excerpt.graph.values.size());
  for (size_t v = 0; v < kept.size(); ++v)
    kept[v] = excerpt.graph.values[v].rule == StepValue::Rule::Keep;
  for (size_t g = 0; g < groups.size(); ++g)
    for (int64_t value : groups[g].values)
      kept[value] = choice[g];
  return kept;
}

int64_t Enumeration::findCut() const {
  int64_t best = -1;
  auto getDistance = [&](int64_t group) {
    return std::abs(2 * group - int64_t(groups.size()) + 1);
  };
  for (size_t g = 0; g < groups.size(); ++g) {
    // No value that is made up to here but the group's own is read behind it.
    bool isCut = true;
    for (int64_t op = groups[g].op + 1; op < excerpt.gap; ++op)
      for (int64_t read : excerpt.graph.ops[op].reads)
        for (size_t other = 0; other < g; ++other)
          isCut &= !std::count(groups[other].values.begin(),
                               groups[other].values.end(), read);
    if (isCut && (best < 0 || getDistance(g) < getDistance(best)))
      best = g;
  }
  return best;
}

/// The choices for `some` groups that are best in bytes and seconds, where all
/// other groups are kept.
std::vector<std::vector<bool>>
Enumeration::getBestOf(const std::vector<size_t> &some, size_t cut,
                       bool isCutKept) {
  struct Candidate {
    int64_t bytes;
    double seconds;
    uint64_t bits;
  };
  std::vector<Candidate> candidates;
  std::vector<bool> choice(groups.size(), true);
  choice[cut] = isCutKept;
  auto choose = [&](uint64_t bits) {
    for (size_t k = 0; k < some.size(); ++k)
      choice[some[k]] = bits >> k & 1;
  };
  for (uint64_t bits = 0; bits < uint64_t(1) << some.size(); ++bits) {
    choose(bits);
    Candidate candidate = {0, 0, bits};
    evaluator.getSimulator().getReplays(asValues(choice), candidate.seconds);
    for (size_t k = 0; k < some.size(); ++k)
      candidate.bytes += bits >> k & 1 ? groups[some[k]].bytes : 0;
    candidates.push_back(candidate);
  }
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate &a, const Candidate &b) {
              return std::tie(a.bytes, a.seconds, a.bits) <
                     std::tie(b.bytes, b.seconds, b.bits);
            });
  std::vector<std::vector<bool>> best;
  double least = 0;
  for (const Candidate &candidate : candidates) {
    if (!best.empty() && candidate.seconds >= least)
      continue;
    least = candidate.seconds;
    choose(candidate.bits);
    best.push_back(choice);
  }
  return best;
}

std::vector<LayerPlan> Enumeration::run(std::vector<KeptValues> &kept) {
  std::vector<std::vector<bool>> choices;
  int64_t cut = groups.size() > kMostGroups ? findCut() : -1;
  if (cut < 0) {
    // Of choices beyond all trying, the largest groups are tried.
    std::vector<size_t> order(groups.size());
    for (size_t g = 0; g < groups.size(); ++g)
      order[g] = g;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return groups[a].bytes > groups[b].bytes;
    });
    size_t tried = std::min(groups.size(), kMostGroups);
    for (uint64_t bits = 0; bits < uint64_t(1) << tried; ++bits) {
      std::vector<bool> choice(groups.size(), true);
      for (size_t k = 0; k < tried; ++k)
        choice[order[k]] = bits >> k & 1;
      choices.push_back(std::move(choice));
    }
  } else {
    std::vector<size_t> before, behind;
    for (size_t g = 0; g < groups.size(); ++g)
      if (int64_t(g) != cut)
        (int64_t(g) < cut ? before : behind).push_back(g);
    before.resize(std::min(before.size(), kMostGroups));
    behind.resize(std::min(behind.size(), kMostGroups));
    for (bool isCutKept : {false, true}) {
      std::vector<std::vector<bool>> lower = getBestOf(before, cut, isCutKept);
      for (const std::vector<bool> &upper : getBestOf(behind, cut, isCutKept))
        for (const std::vector<bool> &choice : lower) {
          choices.push_back(upper);
          for (size_t g : before)
            choices.back()[g] = choice[g];
        }
    }
  }
  std::vector<LayerPlan> plans;
  for (const std::vector<bool> &choice : choices)
    if (std::optional<LayerPlan> plan = evaluator.run(asValues(choice))) {
      plans.push_back(std::move(*plan));
      kept.push_back(asValues(choice));
    }
  return plans;
}

std::vector<LayerPlan> LayerPlans::enumerate(const Excerpt &excerpt,
                                             int64_t block) {
  std::vector<KeptValues> kept;
  std::vector<LayerPlan> result = Enumeration(excerpt).run(kept);
  std::vector<Slot> slots = chain.getSlots(block);
  for (size_t p = 0; p < result.size(); ++p)
    for (Slot slot : slots)
      result[p].kept.push_back(
          kept[p][excerpt.graph.ops[slot.op].writes[slot.write]]);
  keepBest(result);
  return result;
}

//===----------------------------------------------------------------------===//
// Segments
//===----------------------------------------------------------------------===//

/// The slots that plans of the blocks' kind keep, in each of them.
std::vector<LayerPlan> LayerPlans::extend(const Excerpt &excerpt, int64_t first,
                                          int64_t count) {
  std::vector<LayerPlan> result;
  Evaluator evaluator(excerpt);
  const std::vector<LayerPlan> &single = get(first, 1);
  for (const LayerPlan &pattern : single) {
    KeptValues kept(excerpt.graph.values.size());
    for (size_t v = 0; v < kept.size(); ++v)
      kept[v] = excerpt.graph.values[v].rule == StepValue::Rule::Keep;
    std::vector<int64_t> written;
    for (int64_t op = 0; op < excerpt.gap; ++op)
      for (int64_t value : excerpt.graph.ops[op].writes)
        written.push_back(value);
    assert(written.size() == pattern.kept.size() * count);
    for (size_t k = 0; k < written.size(); ++k)
      if (excerpt.graph.values[written[k]].rule == StepValue::Rule::Free)
        kept[written[k]] = pattern.kept[k % pattern.kept.size()];
    std::optional<LayerPlan> plan = evaluator.run(kept);
    if (!plan)
      continue;
    for (int64_t value : written)
      plan->kept.push_back(kept[value]);
    // A segment is for what no plan of its blocks alone can do.
    bool isWorse =
        std::any_of(single.begin(), single.end(), [&](const LayerPlan &other) {
          return count * other.saved <= plan->saved &&
                 count * other.seconds <= plan->seconds * (1 + 1e-12) &&
                 (count - 1) * other.saved + other.backwardNeed <=
                     plan->backwardNeed;
        });
    if (!isWorse)
      result.push_back(std::move(*plan));
  }
  keepBest(result);
  return result;
}

const std::vector<LayerPlan> &LayerPlans::get(int64_t first, int64_t count) {
  static const std::vector<LayerPlan> none;
  auto [entry, isNew] = found.try_emplace({first, count}, &none);
  if (!isNew)
    return *entry->second;
  // The blocks of a segment are all of one kind.
  if (count > kMostSegmentLayers ||
      first + count > int64_t(chain.blocks.size()))
    return none;
  for (int64_t k = 1; k < count; ++k)
    if (getKind(first + k) != getKind(first) ||
        chain.blocks[first + k].layer < 0)
      return none;
  std::optional<Excerpt> excerpt = extract(chain, first, count);
  if (!excerpt)
    return none;
  std::string key = excerpt->getKey();
  auto known = plans.find(key);
  if (known == plans.end())
    known = plans
                .emplace(key, count == 1 ? enumerate(*excerpt, first)
                                         : extend(*excerpt, first, count))
                .first;
  found[{first, count}] = &known->second;
  return known->second;
}

int64_t LayerPlans::getKind(int64_t block) {
  auto [entry, isNew] = kindOf.try_emplace(block, -1);
  if (!isNew)
    return entry->second;
  std::optional<Excerpt> excerpt = extract(chain, block, 1);
  // A block that cannot be by itself is of its own kind.
  std::string key =
      excerpt ? excerpt->getKey() : "block " + std::to_string(block);
  return entry->second = kinds.try_emplace(key, kinds.size()).first->second;
}
