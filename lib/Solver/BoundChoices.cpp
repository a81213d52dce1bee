//===- BoundChoices.cpp - All that a layer may do -------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tensor that a stage of the backward pass needs is made again in it, or held
// at the point before it, for which the stage before needs it; the first stage
// finds it kept from the forward pass, or makes it again. So later ops of a
// layer matter only by the tensors of earlier ones that they need, in each
// stage:
//
//   node  after op k: for each stage, the set of needed tensors of ops before k
//   edge  a way to have the results of op k: kept, held or made again, with its
//         s and b
//
// A path from the last op to the first is a choice x. Few sets are met where
// ops read tensors made just before, and the same sets serve all prices.
//
//===----------------------------------------------------------------------===//

#include "Bound.h"

#include <algorithm>
#include <limits>

using namespace reprise::solver;

static constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// More sets of needed tensors between two ops are not gone through; nor, of
/// one of them, more choices of what is behind it.
static constexpr size_t kMostSets = 1 << 16, kMostChoices = 1 << 12;

/// More ways from set to set are not gone through, once each for a price, or
/// with all choices behind them. The checker of certificates follows twice as
/// many.
static constexpr size_t kMostWays = 1 << 21;

/// More stages are as many choices for an op that they are not gone through.
static constexpr size_t kMostStages = 4;

void reprise::solver::keepBest(std::vector<LeastCost> &choices) {
  std::sort(choices.begin(), choices.end(),
            [](const LeastCost &a, const LeastCost &b) {
              return std::tie(a.bytes, a.seconds) <
                     std::tie(b.bytes, b.seconds);
            });
  size_t count = 0;
  for (const LeastCost &choice : choices)
    if (count == 0 || choice.seconds < choices[count - 1].seconds)
      choices[count++] = choice;
  choices.resize(count);
}

namespace {
/// Needed tensors: of each stage, one after the other, a bit for each.
using Needs = std::vector<uint64_t>;

struct HashNeeds {
  size_t operator()(const Needs &needs) const {
    uint64_t hash = 0;
    for (uint64_t word : needs)
      hash = (hash ^ word) * 0x9e3779b97f4a7c15u, hash ^= hash >> 29;
    return hash;
  }
};

/// A way to have what an op makes.
struct Step {
  Needs before;
  double seconds = 0, held = 0, kept = 0;
};
} // namespace

namespace {
/// What an op of a layer may do for what is needed of it.
class OpChoices {
public:
  OpChoices(const NumberedClass &numbered, const LayerStages &stages,
            int64_t op)
      : kind(numbered.kind), stages(stages), op(kind.ops[op]),
        words((kind.tensors.size() + 63) / 64) {
    auto isFree = [&](int64_t t) {
      return kind.tensors[t].rule != CertifiedTensor::Rule::Keep;
    };
    for (const std::string &name : this->op.writes)
      if (int64_t t = numbered.getNumber(name); isFree(t))
        writes.push_back(t);
    for (int64_t t : numbered.opReads[op])
      if (isFree(t))
        reads.push_back(t);
  }

  bool isNeeded(const Needs &needs, int64_t stage, int64_t tensor) const {
    return needs[stage * words + tensor / 64] >> (tensor % 64) & 1;
  }

  /// With a run in each stage of `runs`; nothing if that is not allowed, or if
  /// one of the runs makes nothing that is needed.
  std::optional<Step> take(const Needs &needs, unsigned runs) const;

private:
  const CertifiedClass &kind;
  const LayerStages &stages;
  const CertifiedOp &op;
  size_t words;
  std::vector<int64_t> writes, reads;
};
} // namespace

std::optional<Step> OpChoices::take(const Needs &needs, unsigned runs) const {
  Step step = {needs, 0, 0, 0};
  unsigned used = 0;
  for (int64_t t : writes) {
    double bytes = double(kind.tensors[t].bytes);
    bool isCarried = false;
    for (size_t s = stages.needed.size(); s-- > 0;) {
      step.before[s * words + t / 64] &= ~(uint64_t(1) << (t % 64));
      isCarried |= isNeeded(needs, s, t);
      if (!isCarried)
        continue;
      if (runs >> s & 1) {
        used |= 1u << s;
        isCarried = false;
      } else if (s > 0 && !stages.now[s - 1][t]) {
        step.held += stages.weights[s - 1] * bytes;
      }
    }
    if (!isCarried)
      continue;
    if (kind.tensors[t].rule == CertifiedTensor::Rule::Drop)
      return std::nullopt;
    step.kept += bytes;
  }
  if (used != runs)
    return std::nullopt;
  for (size_t s = 0; s < stages.needed.size(); ++s)
    if (runs >> s & 1) {
      step.seconds += op.seconds;
      for (int64_t t : reads)
        step.before[s * words + t / 64] |= uint64_t(1) << (t % 64);
    }
  return step;
}

void LayerChoices::build() {
  const CertifiedClass &kind = numbered.kind;
  size_t numStages = stages.needed.size();
  size_t words = (kind.tensors.size() + 63) / 64;
  isComplete = numStages <= kMostStages;
  // Before backward reads anything of the layer nothing has to run. Of what is
  // kept, and what is held then at points, the smallest could be all of them:
  // unless a rule forbids to keep it.
  unsigned idle = (1u << stages.countIdle()) - 1;
  for (const CertifiedTensor &tensor : kind.tensors)
    if (tensor.rule == CertifiedTensor::Rule::Drop)
      idle = 0;
  Needs needs(numStages * words);
  for (size_t s = 0; s < numStages; ++s)
    for (size_t t = 0; t < kind.tensors.size(); ++t)
      if (stages.needed[s][t] &&
          kind.tensors[t].rule != CertifiedTensor::Rule::Keep)
        needs[s * words + t / 64] |= uint64_t(1) << (t % 64);
  std::vector<Needs> nodes = {needs}, before;
  for (int64_t op = int64_t(kind.ops.size()) - 1; op >= 0 && isComplete; --op) {
    OpChoices choices(numbered, stages, op);
    std::unordered_map<Needs, int32_t, HashNeeds> numbers;
    int32_t begin = numNodes - int32_t(nodes.size());
    before.clear();
    unsigned most = kind.ops[op].replayable ? 1u << numStages : 1;
    for (size_t n = 0; n < nodes.size(); ++n)
      for (unsigned runs = 0; runs < most; ++runs) {
        if (runs & idle)
          continue;
        std::optional<Step> step = choices.take(nodes[n], runs);
        if (!step)
          continue;
        auto [known, isNew] =
            numbers.emplace(step->before, numNodes + int32_t(before.size()));
        if (isNew)
          before.push_back(step->before);
        edges.push_back({begin + int32_t(n), known->second, step->seconds,
                         step->held, step->kept});
      }
    numNodes += int32_t(before.size());
    std::swap(nodes, before);
    isComplete = nodes.size() <= kMostSets && edges.size() <= kMostWays;
  }
  // In the end nothing is needed: one node, unless rules ask for what cannot
  // run again.
  if (isComplete && nodes.empty())
    ++numNodes;
}

LeastCost LayerChoices::getLeast(double price) const {
  LeastParts least = getLeast(price, getWeights());
  return {least.seconds, least.getBytes(getWeights())};
}

LeastParts LayerChoices::getLeast(double price,
                                  const ByteWeights &weights) const {
  if (!isComplete)
    return cut(price, weights);
  std::vector<LeastParts> best(numNodes, {kInfinite, 0, 0});
  best[0] = fixed;
  for (const Edge &edge : edges) {
    const LeastParts &before = best[edge.from];
    LeastParts cost = {before.seconds + edge.seconds, before.held + edge.held,
                       before.kept + edge.kept};
    LeastParts &known = best[edge.to];
    double bytes = cost.getBytes(weights) - known.getBytes(weights);
    double difference = cost.seconds - known.seconds + price * bytes;
    if (known.seconds == kInfinite || difference < 0 ||
        (difference == 0 && bytes < 0))
      known = cost;
  }
  return best.back();
}

const std::vector<LeastCost> *LayerChoices::getFront() {
  if (isFrontKnown || !isComplete)
    return front ? &*front : nullptr;
  isFrontKnown = true;
  std::vector<std::vector<LeastCost>> best(numNodes);
  best[0] = {{0, fixed.getBytes(getWeights())}};
  int32_t done = -1; // The last node that is known.
  size_t ways = 0;
  for (const Edge &edge : edges) {
    if (edge.from > done) {
      keepBest(best[edge.from]);
      if (best[edge.from].size() > kMostChoices)
        return nullptr;
      done = edge.from;
    }
    ways += best[edge.from].size();
    if (ways > kMostWays)
      return nullptr;
    LeastParts own = {edge.seconds, edge.held, edge.kept};
    for (const LeastCost &cost : best[edge.from])
      best[edge.to].push_back({cost.seconds + own.seconds,
                               cost.bytes + own.getBytes(getWeights())});
  }
  keepBest(best.back());
  front = std::move(best.back());
  return &*front;
}
