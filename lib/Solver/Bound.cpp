//===- Bound.cpp - The least that replays can cost -----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With a price on bytes, what a layer keeps does not depend on what the others
// keep, and the cheapest choice is a minimum cut. A node for each op says
// whether it runs again, and one for each tensor whether it is needed; being on
// the side of the source means yes. An op that runs again is cut from the sink
// for its seconds; a needed tensor whose op does not run again is cut from it
// for its price.
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
    : kind(kind), writers(kind.tensors.size(), -1),
      lastReads(kind.tensors.size(), -1) {
  for (size_t t = 0; t < kind.tensors.size(); ++t)
    numbers[kind.tensors[t].name] = t;
  auto getReads = [&](const std::vector<std::string> &names) {
    std::vector<int64_t> reads;
    for (const std::string &name : names)
      if (int64_t t = getNumber(name);
          t >= 0 && std::find(reads.begin(), reads.end(), t) == reads.end())
        reads.push_back(t);
    return reads;
  };
  for (size_t o = 0; o < kind.ops.size(); ++o) {
    opReads.push_back(getReads(kind.ops[o].reads));
    for (const std::string &tensor : kind.ops[o].writes)
      writers[getNumber(tensor)] = o;
  }
  for (size_t g = 0; g < kind.backward.size(); ++g) {
    gradientReads.push_back(getReads(kind.backward[g].reads));
    for (int64_t t : gradientReads.back())
      lastReads[t] = g;
  }
}

LayerPrices
reprise::solver::getPrices(const NumberedClass &numbered, int64_t layer,
                           int64_t inFlight,
                           const std::vector<CertifiedMoment> &moments) {
  const CertifiedClass &kind = numbered.kind;
  LayerPrices prices;
  prices.kept.resize(kind.tensors.size());
  for (const CertifiedMoment &moment : moments) {
    for (size_t t = 0; t < kind.tensors.size(); ++t) {
      // Another micro-batch has all that it keeps. This one has, of the layer
      // under way, what is read later; what is read now is there in any plan.
      bool isThere =
          layer < moment.layer ||
          (layer == moment.layer && numbered.lastReads[t] >= moment.gradient);
      prices.kept[t] += moment.secondsPerByte * (inFlight - 1 + isThere);
    }
    if (layer != moment.layer)
      continue;
    for (int64_t t : numbered.gradientReads[moment.gradient]) {
      prices.kept[t] -= moment.secondsPerByte;
      prices.fixed += moment.secondsPerByte * kind.tensors[t].bytes;
    }
  }
  return prices;
}

LeastCost reprise::solver::getLeastCost(const NumberedClass &numbered,
                                        const LayerPrices &prices,
                                        const std::vector<bool> &needed,
                                        double times) {
  const CertifiedClass &kind = numbered.kind;
  int64_t numOps = kind.ops.size(), numTensors = kind.tensors.size();
  int64_t source = numOps + numTensors, sink = source + 1;
  Network network(sink + 1);
  // Prices are differences of equal terms where they should be 0.
  auto getBytes = [&](int64_t t) {
    return std::max(prices.kept[t] * kind.tensors[t].bytes, 0.0);
  };
  using Rule = CertifiedTensor::Rule;
  for (int64_t t = 0; t < numTensors; ++t) {
    if (kind.tensors[t].rule == Rule::Keep)
      continue;
    if (needed[t])
      network.connect(source, numOps + t, kInfinite);
    network.connect(numOps + t, numbered.writers[t],
                    kind.tensors[t].rule == Rule::Drop ? kInfinite
                                                       : getBytes(t) * times);
  }
  for (int64_t o = 0; o < numOps; ++o) {
    const CertifiedOp &op = kind.ops[o];
    network.connect(o, sink, op.replayable ? op.seconds : kInfinite);
    for (int64_t t : numbered.opReads[o])
      if (kind.tensors[t].rule != Rule::Keep)
        network.connect(o, numOps + t, kInfinite);
  }
  LeastCost cost = {0, prices.fixed};
  if (network.getFlow(source, sink) == kInfinite)
    cost.seconds = kInfinite;
  for (int64_t o = 0; o < numOps; ++o)
    if (network.isOnSourceSide(o))
      cost.seconds += kind.ops[o].seconds;
  for (int64_t t = 0; t < numTensors; ++t)
    if (kind.tensors[t].rule == Rule::Keep ||
        (network.isOnSourceSide(numOps + t) &&
         !network.isOnSourceSide(numbered.writers[t])))
      cost.bytes += getBytes(t);
  return cost;
}

//===----------------------------------------------------------------------===//
// All layers
//===----------------------------------------------------------------------===//

std::vector<std::vector<bool>>
reprise::solver::getNeeded(const Certificate &certificate,
                           const std::vector<NumberedClass> &classes) {
  const std::vector<CertifiedLayer> &layers = certificate.layers;
  std::vector<std::vector<bool>> needed;
  for (size_t l = 0; l < layers.size(); ++l) {
    const NumberedClass &numbered = classes[layers[l].kind];
    needed.emplace_back(numbered.kind.tensors.size());
    for (size_t t = 0; t < needed[l].size(); ++t)
      needed[l][t] = numbered.lastReads[t] >= 0;
    const CertifiedClass &kind = numbered.kind;
    for (const CertifiedGradient &gradient : kind.backward)
      for (const std::string &read : gradient.reads) {
        auto input = std::find(kind.inputs.begin(), kind.inputs.end(), read);
        if (input == kind.inputs.end())
          continue;
        const CertifiedLayer::Input &from =
            layers[l].inputs[input - kind.inputs.begin()];
        int64_t t = classes[layers[from.layer].kind].getNumber(from.tensor);
        assert(t >= 0 && "input of a tensor that its layer lacks");
        needed[from.layer][t] = true;
      }
  }
  return needed;
}

int64_t reprise::solver::getAvailable(const Certificate &certificate,
                                      const CertifiedMoment &moment) {
  int64_t available = certificate.budgetBytes;
  if (certificate.kind == Certificate::Budget::Memory)
    available -= certificate.baseBytes;
  if (moment.layer < int64_t(certificate.layers.size()))
    available -= certificate.classes[certificate.layers[moment.layer].kind]
                     .backward[moment.gradient]
                     .bytes;
  return available;
}

void reprise::solver::computeBound(Certificate &certificate) {
  std::vector<NumberedClass> classes(certificate.classes.begin(),
                                     certificate.classes.end());
  std::vector<std::vector<bool>> needed = getNeeded(certificate, classes);
  double total = 0;
  for (size_t l = 0; l < certificate.layers.size(); ++l) {
    CertifiedLayer &layer = certificate.layers[l];
    const NumberedClass &numbered = classes[layer.kind];
    LayerPrices prices =
        getPrices(numbered, l, layer.inFlight, certificate.moments);
    LeastCost cost = getLeastCost(numbered, prices, needed[l], 1);
    layer.minimum = cost.seconds + cost.bytes;
    total += layer.minimum;
  }
  for (const CertifiedMoment &moment : certificate.moments)
    total -= moment.secondsPerByte * getAvailable(certificate, moment);
  certificate.lowerBoundSeconds =
      std::max(total, 0.0) * certificate.microBatches;
}
