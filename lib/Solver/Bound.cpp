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

#include "reprise/Solver/Certificate.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <unordered_map>

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

namespace {
/// A class with tensors by number.
struct Numbered {
  explicit Numbered(const CertifiedClass &kind);

  int64_t getNumber(const std::string &tensor) const {
    auto found = numbers.find(tensor);
    return found == numbers.end() ? -1 : found->second;
  }

  const CertifiedClass &kind;
  std::unordered_map<std::string, int64_t> numbers;
  std::vector<int64_t> writers;   ///< op of each tensor
  std::vector<int64_t> lastReads; ///< op of backward; -1 if none
};
} // namespace

Numbered::Numbered(const CertifiedClass &kind)
    : kind(kind), writers(kind.tensors.size(), -1),
      lastReads(kind.tensors.size(), -1) {
  for (size_t t = 0; t < kind.tensors.size(); ++t)
    numbers[kind.tensors[t].name] = t;
  for (size_t o = 0; o < kind.ops.size(); ++o)
    for (const std::string &tensor : kind.ops[o].writes)
      writers[getNumber(tensor)] = o;
  for (size_t g = 0; g < kind.backward.size(); ++g)
    for (const std::string &tensor : kind.backward[g].reads)
      if (int64_t number = getNumber(tensor); number >= 0)
        lastReads[number] = g;
}

/// What the moments make of the bytes of a layer.
namespace {
struct Prices {
  std::vector<double> kept; ///< seconds for a byte of each tensor that is kept
  double fixed = 0;         ///< seconds for bytes that no plan spares
};
} // namespace

static Prices getPrices(const Numbered &numbered, int64_t layer,
                        int64_t inFlight,
                        const std::vector<CertifiedMoment> &moments) {
  const CertifiedClass &kind = numbered.kind;
  Prices prices;
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
    std::vector<bool> isRead(kind.tensors.size());
    for (const std::string &tensor : kind.backward[moment.gradient].reads)
      if (int64_t t = numbered.getNumber(tensor); t >= 0 && !isRead[t]) {
        isRead[t] = true;
        prices.kept[t] -= moment.secondsPerByte;
        prices.fixed += moment.secondsPerByte * kind.tensors[t].bytes;
      }
  }
  return prices;
}

/// The least price of a layer whose `needed` tensors backward reads.
static double getMinimum(const Numbered &numbered, const Prices &prices,
                         const std::vector<bool> &needed) {
  const CertifiedClass &kind = numbered.kind;
  int64_t numOps = kind.ops.size(), numTensors = kind.tensors.size();
  int64_t source = numOps + numTensors, sink = source + 1;
  Network network(sink + 1);
  double minimum = prices.fixed;
  for (int64_t t = 0; t < numTensors; ++t) {
    const CertifiedTensor &tensor = kind.tensors[t];
    // Prices are differences of equal terms where they should be 0.
    double price = std::max(prices.kept[t] * tensor.bytes, 0.0);
    if (tensor.rule == CertifiedTensor::Rule::Keep) {
      minimum += price;
      continue;
    }
    if (needed[t])
      network.connect(source, numOps + t, kInfinite);
    network.connect(numOps + t, numbered.writers[t],
                    tensor.rule == CertifiedTensor::Rule::Drop ? kInfinite
                                                               : price);
  }
  for (int64_t o = 0; o < numOps; ++o) {
    const CertifiedOp &op = kind.ops[o];
    network.connect(o, sink, op.replayable ? op.seconds : kInfinite);
    for (const std::string &read : op.reads)
      if (int64_t t = numbered.getNumber(read);
          t >= 0 && kind.tensors[t].rule != CertifiedTensor::Rule::Keep)
        network.connect(o, numOps + t, kInfinite);
  }
  return minimum + network.getFlow(source, sink);
}

void reprise::solver::computeBound(Certificate &certificate) {
  const std::vector<CertifiedLayer> &layers = certificate.layers;
  std::vector<Numbered> classes;
  classes.reserve(certificate.classes.size());
  for (const CertifiedClass &kind : certificate.classes)
    classes.emplace_back(kind);

  // What backward of the layer itself and of later ones reads.
  std::vector<std::vector<bool>> needed;
  for (size_t l = 0; l < layers.size(); ++l) {
    const Numbered &numbered = classes[layers[l].kind];
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

  double total = 0;
  for (size_t l = 0; l < layers.size(); ++l) {
    CertifiedLayer &layer = certificate.layers[l];
    const Numbered &numbered = classes[layer.kind];
    Prices prices = getPrices(numbered, l, layer.inFlight, certificate.moments);
    layer.minimum = getMinimum(numbered, prices, needed[l]);
    total += layer.minimum;
  }
  int64_t available = certificate.budgetBytes;
  if (certificate.kind == Certificate::Budget::Memory)
    available -= certificate.baseBytes;
  for (const CertifiedMoment &moment : certificate.moments) {
    int64_t unavoidable = 0;
    if (moment.layer < int64_t(layers.size()))
      unavoidable = classes[layers[moment.layer].kind]
                        .kind.backward[moment.gradient]
                        .bytes;
    total -= moment.secondsPerByte * (available - unavoidable);
  }
  certificate.lowerBoundSeconds =
      std::max(total, 0.0) * certificate.microBatches;
}
