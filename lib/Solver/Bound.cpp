//===- Bound.cpp - The least that replays can cost ------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With a price on bytes, what a layer does depends on no other. All that it may
// do is gone through, from the last op to the first. Where that is too much a
// minimum cut has the cheapest choice, of those that count what is made again
// once, and what is held of it for nothing: a node for each op says whether it
// runs again, and one for each tensor whether it is needed; being on the side
// of the source means yes. An op that runs again is cut from the sink for its
// seconds; a needed tensor whose op does not run again is cut from it for its
// price.
//
//===----------------------------------------------------------------------===//

#include "Bound.h"

#include <algorithm>
#include <cassert>
#include <limits>

using namespace reprise::solver;

static constexpr double kInfinite = std::numeric_limits<double>::infinity();

namespace {
/// A maximum flow by shortest augmenting paths (Dinic).
class Network {
public:
  explicit Network(int64_t nodes) : edges(nodes), levels(nodes), next(nodes) {}

  void connect(int64_t from, int64_t to, double capacity) {
    if (capacity <= 0)
      return;
    edges[from].push_back({to, edges[to].size(), capacity});
    edges[to].push_back({from, edges[from].size() - 1, 0});
  }

  double getFlow(int64_t source, int64_t sink);

  /// Whether `node` is on the side of the source, once the flow is known.
  bool isOnSourceSide(int64_t node) const { return levels[node] >= 0; }

private:
  struct Edge {
    int64_t to;
    size_t reverse; ///< index among the edges of `to`
    double capacity;
  };

  bool findLevels(int64_t source, int64_t sink);
  double push(int64_t node, int64_t sink, double most);

  std::vector<std::vector<Edge>> edges;
  std::vector<int64_t> levels;
  std::vector<size_t> next;
};
} // namespace

bool Network::findLevels(int64_t source, int64_t sink) {
  std::fill(levels.begin(), levels.end(), -1);
  levels[source] = 0;
  std::vector<int64_t> queue = {source};
  for (size_t head = 0; head < queue.size(); ++head)
    for (const Edge &edge : edges[queue[head]])
      if (edge.capacity > 0 && levels[edge.to] < 0) {
        levels[edge.to] = levels[queue[head]] + 1;
        queue.push_back(edge.to);
      }
  return levels[sink] >= 0;
}

double Network::push(int64_t node, int64_t sink, double most) {
  if (node == sink)
    return most;
  for (size_t &k = next[node]; k < edges[node].size(); ++k) {
    Edge &edge = edges[node][k];
    if (edge.capacity <= 0 || levels[edge.to] != levels[node] + 1)
      continue;
    double pushed = push(edge.to, sink, std::min(most, edge.capacity));
    if (pushed <= 0)
      continue;
    if (edge.capacity != kInfinite)
      edge.capacity -= pushed;
    edges[edge.to][edge.reverse].capacity += pushed;
    return pushed;
  }
  return 0;
}

double Network::getFlow(int64_t source, int64_t sink) {
  double flow = 0;
  while (findLevels(source, sink)) {
    std::fill(next.begin(), next.end(), 0);
    while (double pushed = push(source, sink, kInfinite)) {
      if (pushed == kInfinite)
        return kInfinite;
      flow += pushed;
    }
  }
  return flow;
}

//===----------------------------------------------------------------------===//
// One layer
//===----------------------------------------------------------------------===//

NumberedClass::NumberedClass(const CertifiedClass &kind)
    : kind(kind), writers(kind.tensors.size(), -1) {
  for (size_t t = 0; t < kind.tensors.size(); ++t)
    numbers[kind.tensors[t].name] = t;
  for (size_t o = 0; o < kind.ops.size(); ++o) {
    std::vector<int64_t> reads;
    for (const std::string &name : kind.ops[o].reads)
      if (int64_t t = getNumber(name);
          t >= 0 && std::find(reads.begin(), reads.end(), t) == reads.end())
        reads.push_back(t);
    opReads.push_back(std::move(reads));
    for (const std::string &tensor : kind.ops[o].writes)
      writers[getNumber(tensor)] = o;
  }
}

/// Bytes of a tensor that is kept, at the points that readers are left at. What
/// is read right now is there anyway. Before any of a layer's tensors is read,
/// so is what only replays read, with `countsReplays`.
static double getHeldBytes(const LayerStages &stages, int64_t tensor,
                           double bytes, bool countsReplays) {
  double held = 0;
  for (size_t m = 0; m < stages.now.size(); ++m) {
    bool isHeld = countsReplays && m < stages.countIdle();
    for (size_t stage = m + 1; stage < stages.needed.size(); ++stage)
      isHeld |= stages.needed[stage][tensor];
    isHeld &= !stages.now[m][tensor];
    held += stages.weights[m] * bytes * double(isHeld);
  }
  return held;
}

size_t LayerStages::countIdle() const {
  size_t count = 0;
  while (count + 1 < needed.size() &&
         std::count(needed[count].begin(), needed[count].end(), true) == 0)
    ++count;
  return count;
}

LayerChoices::LayerChoices(const NumberedClass &numbered,
                           const LayerStages &stages)
    : numbered(numbered), stages(stages) {
  const std::vector<CertifiedTensor> &tensors = numbered.kind.tensors;
  for (size_t t = 0; t < tensors.size(); ++t) {
    double bytes = double(tensors[t].bytes);
    for (size_t m = 0; m < stages.now.size(); ++m)
      if (stages.now[m][t])
        fixed.held += stages.weights[m] * bytes;
    if (tensors[t].rule == CertifiedTensor::Rule::Keep) {
      fixed.held += getHeldBytes(stages, t, bytes, /*countsReplays=*/false);
      fixed.kept += bytes;
    }
  }
  build();
}

LeastParts LayerChoices::cut(double price, const ByteWeights &weights) const {
  const CertifiedClass &kind = numbered.kind;
  int64_t numOps = kind.ops.size(), numTensors = kind.tensors.size();
  int64_t source = numOps + numTensors, sink = source + 1;
  Network network(sink + 1);
  auto getParts = [&](int64_t t) -> LeastParts {
    double bytes = double(kind.tensors[t].bytes);
    return {0, getHeldBytes(stages, t, bytes, /*countsReplays=*/true), bytes};
  };
  using Rule = CertifiedTensor::Rule;
  for (int64_t t = 0; t < numTensors; ++t) {
    if (kind.tensors[t].rule == Rule::Keep)
      continue;
    for (const TensorSet &needed : stages.needed)
      if (needed[t])
        network.connect(source, numOps + t, kInfinite);
    network.connect(numOps + t, numbered.writers[t],
                    kind.tensors[t].rule == Rule::Drop
                        ? kInfinite
                        : getParts(t).getBytes(weights) * price);
  }
  for (int64_t o = 0; o < numOps; ++o) {
    const CertifiedOp &op = kind.ops[o];
    network.connect(o, sink, op.replayable ? op.seconds : kInfinite);
    for (int64_t t : numbered.opReads[o])
      if (kind.tensors[t].rule != Rule::Keep)
        network.connect(o, numOps + t, kInfinite);
  }
  LeastParts cost = fixed;
  if (network.getFlow(source, sink) == kInfinite)
    cost.seconds = kInfinite;
  for (int64_t o = 0; o < numOps; ++o)
    if (network.isOnSourceSide(o))
      cost.seconds += kind.ops[o].seconds;
  for (int64_t t = 0; t < numTensors; ++t)
    if (kind.tensors[t].rule != Rule::Keep &&
        network.isOnSourceSide(numOps + t) &&
        !network.isOnSourceSide(numbered.writers[t])) {
      cost.held += getParts(t).held;
      cost.kept += getParts(t).kept;
    }
  return cost;
}

//===----------------------------------------------------------------------===//
// All layers
//===----------------------------------------------------------------------===//

BackwardReads::BackwardReads(const Certificate &certificate,
                             const std::vector<NumberedClass> &classes)
    : certificate(certificate), begins(certificate.layers.size()) {
  const std::vector<CertifiedLayer> &layers = certificate.layers;
  for (const CertifiedLayer &layer : layers)
    times.emplace_back(certificate.classes[layer.kind].tensors.size());
  int64_t time = 0;
  for (size_t l = layers.size(); l-- > 0;) {
    const NumberedClass &numbered = classes[layers[l].kind];
    const CertifiedClass &kind = numbered.kind;
    begins[l] = time;
    for (const CertifiedGradient &gradient : kind.backward) {
      for (const std::string &read : gradient.reads) {
        auto input = std::find(kind.inputs.begin(), kind.inputs.end(), read);
        if (input == kind.inputs.end()) {
          times[l][numbered.getNumber(read)].push_back(time);
          continue;
        }
        const CertifiedLayer::Input &from =
            layers[l].inputs[input - kind.inputs.begin()];
        int64_t t = classes[layers[from.layer].kind].getNumber(from.tensor);
        assert(t >= 0 && "input of a tensor that its layer lacks");
        times[from.layer][t].push_back(time);
      }
      ++time;
    }
  }
}

int64_t BackwardReads::getTime(const PricedPoint &point) const {
  return point.layer == int64_t(begins.size())
             ? -1
             : begins[point.layer] + point.gradient;
}

LayerStages
BackwardReads::getStages(int64_t layer,
                         const std::vector<PricedPoint> &points) const {
  std::map<int64_t, double> weights; // By time.
  double others = 0;
  for (const PricedPoint &point : points)
    if (point.secondsPerByte > 0) {
      double inFlight = point.inFlight > 0
                            ? point.inFlight
                            : double(certificate.layers[layer].inFlight);
      weights[getTime(point)] += point.secondsPerByte * point.running;
      others += point.secondsPerByte * (inFlight - point.running);
    }
  size_t numTensors = times[layer].size();
  LayerStages stages = {certificate.layers[layer].kind,
                        others,
                        {weights.size() + 1, TensorSet(numTensors)},
                        {weights.size(), TensorSet(numTensors)},
                        {}};
  for (auto [_, weight] : weights)
    stages.weights.push_back(weight);
  for (size_t t = 0; t < numTensors; ++t)
    for (int64_t time : times[layer][t]) {
      auto stage = weights.lower_bound(time);
      int64_t number = std::distance(weights.begin(), stage);
      stages.needed[number][t] = true;
      if (stage != weights.end() && stage->first == time)
        stages.now[number][t] = true;
    }
  return stages;
}

double reprise::solver::getAvailable(const Certificate &certificate,
                                     const PricedPoint &point) {
  int64_t available = certificate.budgetBytes;
  if (certificate.kind == Certificate::Budget::Memory)
    available -= certificate.baseBytes;
  if (point.layer == int64_t(certificate.layers.size()))
    return double(available);
  int64_t kind = certificate.layers[point.layer].kind;
  return double(available) -
         point.running *
             double(certificate.classes[kind].backward[point.gradient].bytes);
}

void reprise::solver::computeBound(Certificate &certificate) {
  std::vector<NumberedClass> classes(certificate.classes.begin(),
                                     certificate.classes.end());
  BackwardReads reads(certificate, classes);
  // Of several points the dearest byte weighs one, so that bytes at a single
  // point are whole numbers.
  double price = 0, available = 0;
  for (const PricedPoint &point : certificate.points)
    price = std::max(price, point.secondsPerByte);
  std::vector<PricedPoint> weighted = certificate.points;
  for (PricedPoint &point : weighted) {
    if (price > 0)
      point.secondsPerByte /= price;
    available += point.secondsPerByte * getAvailable(certificate, point);
  }
  std::map<LayerStages, std::pair<LayerChoices, int64_t>> choices;
  double total = 0;
  for (size_t l = 0; l < certificate.layers.size(); ++l) {
    CertifiedLayer &layer = certificate.layers[l];
    LayerStages stages = reads.getStages(l, weighted);
    auto known = choices.find(stages);
    if (known == choices.end())
      known = choices
                  .emplace(stages,
                           std::make_pair(
                               LayerChoices(classes[layer.kind], stages), 0))
                  .first;
    ++known->second.second;
    LeastCost cost = known->second.first.getLeast(price);
    layer.minimum = cost.seconds + price * cost.bytes;
    total += layer.minimum;
  }
  double bound = std::max(total - price * available, 0.0);
  if (price > 0) {
    std::vector<LayerGroup> groups;
    for (auto &[_, same] : choices)
      groups.push_back({&same.first, same.second});
    bound = std::max(bound, findLeastSum(groups, available, price).value_or(0));
  }
  bound *= double(certificate.microBatches);
  // The replays of the plan itself, added up in another order.
  double replays = certificate.replaySeconds;
  if (bound > replays && bound <= replays * (1 + 1e-12))
    bound = replays;
  certificate.lowerBoundSeconds = bound;
}
