//===- BoundSearch.cpp - The point and the price that prove most ----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In its price p, L(p) of Bound.h is a sum of minima of straight lines, one
// line for each choice: concave and piecewise linear. A rising line and a
// falling one meet where the summit would be if there were no others. The
// cheapest choices at that price are another line, or the proof that this is
// the summit.
//
//===----------------------------------------------------------------------===//

#include "Bound.h"

#include <algorithm>
#include <limits>

using namespace reprise::solver;

BoundSearch::BoundSearch(const Certificate &certificate)
    : certificate(certificate),
      classes(certificate.classes.begin(), certificate.classes.end()),
      reads(certificate, classes) {
  std::map<LayerStages, size_t> known;
  for (size_t l = 0; l < certificate.layers.size(); ++l) {
    int64_t first = std::numeric_limits<int64_t>::max(), last = -1;
    for (const std::vector<int64_t> &times : reads.getTimes(l))
      for (int64_t time : times) {
        first = std::min(first, time);
        last = std::max(last, time);
      }
    spans.push_back({first, last});
    auto [entry, isNew] = known.emplace(reads.getStages(l, {}), groups.size());
    if (isNew)
      groups.emplace_back();
    groups[entry->second].layers.push_back(l);
  }
}

LayerChoices *BoundSearch::getChoices(int64_t layer, const PricedPoint &point) {
  PricedPoint unit = {point.layer, point.gradient, point.position, 1};
  LayerStages stages = reads.getStages(layer, {unit});
  std::unique_ptr<LayerChoices> &known = choices[stages];
  if (!known)
    known = std::make_unique<LayerChoices>(classes[stages.kind], stages);
  return known.get();
}

const std::vector<LayerGroup> &
BoundSearch::getGroups(const PricedPoint &point) {
  auto [entry, isNew] = groupsOf.try_emplace({point.layer, point.gradient});
  std::vector<LayerGroup> &result = entry->second;
  if (!isNew)
    return result;
  int64_t time = reads.getTime(point);
  std::vector<LayerGroup> cut;
  for (Group &group : groups) {
    int64_t numBefore = 0, numBehind = 0;
    for (int64_t layer : group.layers) {
      auto [first, last] = spans[layer];
      if (first > time) {
        if (!group.behind)
          group.behind = getChoices(layer, point);
        ++numBehind;
      } else if (last < time && layer != point.layer) {
        if (!group.before)
          group.before = getChoices(layer, point);
        ++numBefore;
      } else {
        auto at = layer == point.layer ? cut.end() : cut.begin();
        cut.insert(at, {getChoices(layer, point), 1});
      }
    }
    if (numBehind)
      result.push_back({group.behind, numBehind});
    if (numBefore)
      result.push_back({group.before, numBefore});
  }
  result.insert(result.end(), cut.begin(), cut.end());
  return result;
}

Proof BoundSearch::prove(const PricedPoint &point, double price) {
  Proof proof = {price, 0, -getAvailable(certificate, point)};
  for (const LayerGroup &group : getGroups(point)) {
    LeastCost cost = group.choices->getLeast(price);
    proof.seconds += cost.seconds * double(group.count);
    proof.bytes += cost.bytes * double(group.count);
  }
  return proof;
}

LeastParts BoundSearch::choose(const PricedPoint &point, double price,
                               const ByteWeights &weights) {
  LeastParts sum;
  for (const LayerGroup &group : getGroups(point)) {
    LeastParts own = group.choices->getLeast(price, weights);
    sum.seconds += own.seconds * double(group.count);
    sum.held += own.held * double(group.count);
    sum.kept += own.kept * double(group.count);
  }
  return sum;
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

BoundSearch::Proofs
BoundSearch::proveAll(const std::vector<PricedPoint> &points, double price) {
  Proofs proofs;
  for (const PricedPoint &point : points)
    proofs.push_back({prove(point, price), point});
  std::stable_sort(proofs.begin(), proofs.end(),
                   [](const auto &a, const auto &b) {
                     return a.first.getValue() > b.first.getValue();
                   });
  return proofs;
}

/// Less is nothing.
static double getLeastSeconds(const Certificate &certificate) {
  return 1e-12 * certificate.stepSeconds / double(certificate.microBatches);
}

std::vector<PricedPoint>
BoundSearch::findBest(const std::vector<PricedPoint> &points, double price) {
  double least = getLeastSeconds(certificate);
  std::optional<std::pair<PricedPoint, Proof>> best;
  for (auto &[first, candidate] : proveAll(points, price)) {
    PricedPoint point = candidate;
    Proof summit =
        findSummit([&](double at) { return prove(point, at); }, first, least);
    if (summit.getValue() <= least)
      continue;
    least = summit.getValue();
    best = {point, summit};
    best->first.secondsPerByte = summit.price;
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

std::vector<PricedPoint>
BoundSearch::findBestWhole(const std::vector<PricedPoint> &points,
                           double price) {
  double least = getLeastSeconds(certificate);
  PricedPoint best;
  // Sums of all layers but one, which may show how little a point can prove.
  std::vector<std::pair<std::vector<LayerGroup>, std::vector<LeastCost>>> known;
  for (auto &[first, candidate] : proveAll(points, price)) {
    PricedPoint point = candidate;
    const std::vector<LayerGroup> &groups = getGroups(point);
    std::vector<LayerGroup> others = groups;
    if (--others.back().count == 0)
      others.pop_back();
    const std::vector<LeastCost> *own = groups.back().choices->getFront();
    double available = getAvailable(certificate, point);
    auto isWithin = [&](const auto &sums) {
      return own && sums.first == others &&
             findLeastSum(sums.second, *own, available).value_or(least + 1) <=
                 least;
    };
    if (std::any_of(known.begin(), known.end(), isWithin))
      continue;
    Proof summit = findSummit([&](double at) { return prove(point, at); },
                              first, getLeastSeconds(certificate));
    double seconds = summit.getValue();
    if (seconds <= getLeastSeconds(certificate))
      continue;
    if (summit.price > 0) {
      std::vector<LeastCost> sums;
      std::optional<double> whole =
          findLeastSum(groups, available, summit.price, &sums);
      if (whole)
        known.push_back({others, std::move(sums)});
      seconds = std::max(seconds, whole.value_or(0));
    }
    if (seconds <= least)
      continue;
    least = seconds;
    best = point;
    best.secondsPerByte = summit.price;
  }
  // What rules alone prove needs no price.
  if (best.secondsPerByte == 0)
    return {};
  return {best};
}

double BoundSearch::getBound() const {
  double most = 0;
  for (const auto &[point, proof] : found)
    most = std::max(most, proof.getValue() -
                              proof.price * getAvailable(certificate, point));
  return most * certificate.microBatches;
}

double BoundSearch::proveWhole(const PricedPoint &point) {
  std::optional<double> seconds = findLeastSum(
      getGroups(point), getAvailable(certificate, point), point.secondsPerByte);
  return seconds.value_or(0) * double(certificate.microBatches);
}

double BoundSearch::getForced() {
  PricedPoint turn = {int64_t(certificate.layers.size()), 0, 0, 0};
  return prove(turn, 0).seconds * certificate.microBatches;
}

std::vector<PricedPoint>
reprise::solver::getPricedPoints(const Certificate &certificate) {
  int64_t numLayers = certificate.layers.size();
  std::vector<PricedPoint> points = {{numLayers, 0, 0, 0}};
  constexpr int64_t kTriedLayers = 3;
  for (int64_t layer = numLayers - 1;
       layer >= std::max<int64_t>(0, numLayers - kTriedLayers); --layer) {
    int64_t kind = certificate.layers[layer].kind;
    for (size_t g = 0; g < certificate.classes[kind].backward.size(); ++g)
      points.push_back({layer, int64_t(g), 0, 0});
  }
  return points;
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
  std::vector<PricedPoint> points = getPricedPoints(problem);
  // What proves most for a budget proves much for its neighbours. The search
  // takes time for each op of each point; a chain of layers has few of them.
  constexpr size_t kMostSearches = 32, kMostWork = 200'000;
  size_t work = 1;
  for (const CertifiedClass &kind : problem.classes)
    work += kind.ops.size() * points.size();
  size_t searches = std::clamp<size_t>(kMostWork / work, 1, kMostSearches);
  double price = certificate.points.empty()
                     ? certificate.stepSeconds /
                           double(std::max<int64_t>(certificate.peakBytes, 1))
                     : certificate.points[0].secondsPerByte;
  size_t stride = (budgets.size() + searches - 1) / searches;
  std::vector<double> bounds(budgets.size());
  for (size_t k = 0; k < budgets.size(); k += stride) {
    problem.budgetBytes = budgets[k];
    std::vector<PricedPoint> best = search.findBest(points, price);
    if (best.empty())
      continue;
    price = best[0].secondsPerByte;
    bounds[k] = search.proveWhole(best[0]);
  }
  // What rules ask for is proven for every budget, searched or not; and what is
  // proven for one, for all smaller ones.
  double larger = search.getForced();
  for (size_t k = budgets.size(); k-- > 0;) {
    problem.budgetBytes = budgets[k];
    larger = bounds[k] = std::max({bounds[k], search.getBound(), larger});
  }
  return bounds;
}
