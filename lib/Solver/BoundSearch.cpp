//===- BoundSearch.cpp - The moment and the price that prove most --------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a moment proves is, in its price, a sum of minima over choices of
// straight lines: concave, and straight between a few prices. Two of the lines,
// one that rises and one that falls, meet where the summit would be if there
// were no others; what is cheapest at that price is another line, or the proof
// that it is the summit.
//
//===----------------------------------------------------------------------===//

#include "Bound.h"

#include <algorithm>
#include <optional>

using namespace reprise::solver;

BoundSearch::BoundSearch(const Certificate &certificate)
    : certificate(certificate),
      classes(certificate.classes.begin(), certificate.classes.end()),
      needed(getNeeded(certificate, classes)) {
  for (size_t l = 0; l < certificate.layers.size(); ++l) {
    const CertifiedLayer &layer = certificate.layers[l];
    auto group =
        std::find_if(groups.begin(), groups.end(), [&](const Group &other) {
          return other.kind == layer.kind && other.inFlight == layer.inFlight &&
                 other.needed == needed[l];
        });
    if (group == groups.end())
      group = groups.insert(group, {layer.kind, needed[l], layer.inFlight, {}});
    group->layers.push_back(l);
  }
}

Proof BoundSearch::prove(const CertifiedMoment &moment, double price) {
  CertifiedMoment unit = moment;
  unit.secondsPerByte = 1;
  Proof proof = {price, 0, -double(getAvailable(certificate, moment))};
  auto add = [&](int64_t layer, int64_t times) {
    const CertifiedLayer &own = certificate.layers[layer];
    const NumberedClass &numbered = classes[own.kind];
    LeastCost cost =
        getLeastCost(numbered, getPrices(numbered, layer, own.inFlight, {unit}),
                     needed[layer], price);
    proof.seconds += cost.seconds * times;
    proof.bytes += cost.bytes * times;
  };
  for (const Group &group : groups) {
    auto begin = group.layers.begin(), end = group.layers.end();
    auto at = std::lower_bound(begin, end, moment.layer);
    if (at != begin)
      add(*begin, at - begin);
    if (at != end && *at == moment.layer)
      add(*at++, 1);
    if (at != end)
      add(*at, end - at);
  }
  return proof;
}

Proof reprise::solver::findSummit(const std::function<Proof(double)> &prove,
                                  const Proof &first, double least) {
  Proof left = prove(0), right = first;
  if (left.bytes <= 0)
    return left;
  // Beyond that, a price says that no plan at all is within the budget.
  constexpr int kMostSteps = 200;
  for (int step = 0; right.bytes > 0; ++step) {
    if (step == kMostSteps)
      return right;
    left = right;
    right = prove(right.price * 4);
  }
  Proof best = left.getValue() > right.getValue() ? left : right;
  for (int step = 0; step < kMostSteps; ++step) {
    double price = (right.seconds - left.seconds) / (left.bytes - right.bytes);
    double most = left.seconds + price * left.bytes;
    if (most <= least)
      return best;
    Proof next = prove(price);
    if (next.getValue() > best.getValue())
      best = next;
    if (next.getValue() >= most * (1 - 1e-13))
      return best;
    (next.bytes > 0 ? left : right) = next;
  }
  return best;
}

std::vector<CertifiedMoment>
BoundSearch::findBest(const std::vector<CertifiedMoment> &moments,
                      double price) {
  // The most promising first, which makes short work of the others.
  std::vector<std::pair<Proof, CertifiedMoment>> tried;
  for (const CertifiedMoment &moment : moments)
    tried.push_back({prove(moment, price), moment});
  std::stable_sort(tried.begin(), tried.end(),
                   [](const auto &a, const auto &b) {
                     return a.first.getValue() > b.first.getValue();
                   });
  double least = 1e-12 * certificate.stepSeconds / certificate.microBatches;
  std::optional<std::pair<CertifiedMoment, Proof>> best;
  for (auto &[first, moment] : tried) {
    Proof summit =
        findSummit([&](double at) { return prove(moment, at); }, first, least);
    if (summit.getValue() <= least)
      continue;
    least = summit.getValue();
    moment.secondsPerByte = summit.price;
    best = {moment, summit};
  }
  if (!best)
    return {};
  best->second.bytes += getAvailable(certificate, best->first);
  found.push_back(*best);
  // What rules alone prove needs no price.
  if (best->first.secondsPerByte == 0)
    return {};
  return {best->first};
}

double BoundSearch::getBound() const {
  double most = 0;
  for (const auto &[moment, proof] : found)
    most = std::max(most, proof.getValue() -
                              proof.price * getAvailable(certificate, moment));
  return most * certificate.microBatches;
}

double BoundSearch::getForced() {
  CertifiedMoment turn = {int64_t(certificate.layers.size()), 0, 0, 0};
  return prove(turn, 0).seconds * certificate.microBatches;
}

std::vector<CertifiedMoment>
reprise::solver::getMoments(const Certificate &certificate) {
  int64_t numLayers = certificate.layers.size();
  std::vector<CertifiedMoment> moments = {{numLayers, 0, 0, 0}};
  constexpr int64_t kTriedLayers = 3;
  for (int64_t layer = numLayers - 1;
       layer >= std::max<int64_t>(0, numLayers - kTriedLayers); --layer) {
    int64_t kind = certificate.layers[layer].kind;
    for (size_t g = 0; g < certificate.classes[kind].backward.size(); ++g)
      moments.push_back({layer, int64_t(g), 0, 0});
  }
  return moments;
}

std::vector<double>
reprise::solver::computeBounds(const Certificate &certificate,
                               const std::vector<int64_t> &budgets) {
  Certificate problem;
  problem.kind = certificate.kind;
  problem.baseBytes = certificate.baseBytes;
  problem.microBatches = certificate.microBatches;
  problem.stepSeconds = certificate.stepSeconds;
  problem.classes = certificate.classes;
  problem.layers = certificate.layers;
  BoundSearch search(problem);
  std::vector<CertifiedMoment> moments = getMoments(problem);
  // What proves most for a budget proves much for its neighbours. The search
  // takes time for each op of each moment; a chain of layers has few of them.
  constexpr size_t kMostSearches = 32, kMostWork = 200'000;
  size_t work = 1;
  for (const CertifiedClass &kind : problem.classes)
    work += kind.ops.size() * moments.size();
  size_t searches = std::clamp<size_t>(kMostWork / work, 1, kMostSearches);
  double price = certificate.moments.empty()
                     ? certificate.stepSeconds /
                           double(std::max<int64_t>(certificate.peakBytes, 1))
                     : certificate.moments[0].secondsPerByte;
  size_t stride = (budgets.size() + searches - 1) / searches;
  for (size_t k = 0; k < budgets.size(); k += stride) {
    problem.budgetBytes = budgets[k];
    std::vector<CertifiedMoment> best = search.findBest(moments, price);
    if (!best.empty())
      price = best[0].secondsPerByte;
  }
  // What rules ask for is proven for every budget, searched or not.
  double forced = search.getForced();
  std::vector<double> bounds;
  for (int64_t budget : budgets) {
    problem.budgetBytes = budget;
    bounds.push_back(std::max(search.getBound(), forced));
  }
  return bounds;
}
