//===- StagePrice.cpp - What bytes are worth on a stage -------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// At each of its tasks a stage has at most B bytes, of all of its chunks:
//
//   symbol    meaning
//   t         a moment, at which chunk r[t] runs backward
//   n[t][v]   micro-batches of chunk v in flight then
//   x         a choice for all layers of all chunks, with s(x) seconds
//   k[v](x)   bytes that chunk v keeps of a micro-batch
//   a[v](x)   bytes of a micro-batch at the point of chunk v, while it runs
//   u[t]      the price of a byte at t
//
//   b[t](x) = sum over v of n[t][v] k[v](x) + a[r](x) - k[r](x) <= B
//
// So a plan replays no less than
//
//   L(u) = min over x of (s(x) + sum over t of u[t] b[t](x)) - B sum of u[t],
//
// and the x of the minimum are those of each layer by itself, for bytes that
// it keeps and bytes at its point have a price each. The best u are the dual
// values of a linear program that takes a mean of choices:
//
//   maximize  sum over x of (S - s(x)) w[x],   w >= 0
//   row t     sum over x of b[t](x) / B w[x] <= 1
//   last row  sum over x of w[x] <= 1
//
// with S above all s(x). Choices are found one by one, each as the cheapest for
// the present dual values (Dantzig and Wolfe, Operations Research 8, 1960).
//
//===----------------------------------------------------------------------===//

#include "Bound.h"
#include "Simplex.h"
#include "reprise/Solver/StageMoments.h"

#include <algorithm>
#include <memory>

using namespace reprise::solver;

namespace {
class PriceSearch {
public:
  PriceSearch(std::vector<Certificate *> chunks,
              const std::vector<PipelineTask> &tasks, double bytes);

  /// Looks for prices from equal ones on, which come to `price` together.
  void run(double price);
  /// Fills in the best that were found.
  void finish(std::vector<PipelineCertificate::PricedTask> &stage);

private:
  /// The cheapest choices for prices, by chunk, and what they come to.
  struct Choice {
    std::vector<LeastParts> parts;
    double seconds = 0, bound = 0;
  };

  /// What the prices of all moments come to for a chunk.
  ByteWeights getWeights(size_t chunk, const std::vector<double> &prices) const;
  double getGradients(size_t chunk, const PricedPoint &point) const;
  LeastParts choose(size_t chunk, const PricedPoint &point,
                    const std::vector<double> &prices);
  Choice choose(const std::vector<PricedPoint> &at,
                const std::vector<double> &prices);
  /// Of each chunk the point that proves most.
  std::vector<PricedPoint> findPoints(const std::vector<double> &prices);
  Simplex::Column makeColumn(const std::vector<PricedPoint> &at,
                             const Choice &choice) const;
  /// The best prices for points, from `prices` on.
  std::vector<double> solve(const std::vector<PricedPoint> &at,
                            std::vector<double> prices);
  void offer(const std::vector<PricedPoint> &at,
             const std::vector<double> &prices, double bound);

  std::vector<Certificate *> chunks;
  std::vector<StageMoment> moments;
  double bytes;    ///< B
  double most = 0; ///< S
  std::vector<std::unique_ptr<BoundSearch>> searches;
  double best = -1;
  std::vector<double> bestPrices;
  std::vector<PricedPoint> bestPoints;
};
} // namespace

PriceSearch::PriceSearch(std::vector<Certificate *> chunks,
                         const std::vector<PipelineTask> &tasks, double bytes)
    : chunks(std::move(chunks)),
      moments(getMoments(tasks, int64_t(this->chunks.size()),
                         /*onlyBackward=*/true)),
      bytes(bytes) {
  for (Certificate *chunk : this->chunks) {
    searches.push_back(std::make_unique<BoundSearch>(*chunk));
    // An op runs again twice at most, before its point and behind it.
    for (const CertifiedLayer &layer : chunk->layers)
      for (const CertifiedOp &op : chunk->classes[layer.kind].ops)
        most += 2 * op.seconds;
  }
  most *= 2;
}

ByteWeights PriceSearch::getWeights(size_t chunk,
                                    const std::vector<double> &prices) const {
  ByteWeights weights = {0, 0};
  for (size_t t = 0; t < moments.size(); ++t) {
    bool isRunning = moments[t].running == int64_t(chunk);
    weights.held += isRunning ? prices[t] : 0;
    weights.kept += prices[t] * double(moments[t].inFlight[chunk] - isRunning);
  }
  return weights;
}

double PriceSearch::getGradients(size_t chunk, const PricedPoint &point) const {
  return double(chunks[chunk]->budgetBytes) -
         getAvailable(*chunks[chunk], point);
}

LeastParts PriceSearch::choose(size_t chunk, const PricedPoint &point,
                               const std::vector<double> &prices) {
  return searches[chunk]->choose(point, 1, getWeights(chunk, prices));
}

PriceSearch::Choice PriceSearch::choose(const std::vector<PricedPoint> &at,
                                        const std::vector<double> &prices) {
  Choice choice;
  for (double price : prices)
    choice.bound -= price * bytes;
  for (size_t v = 0; v < chunks.size(); ++v) {
    ByteWeights weights = getWeights(v, prices);
    LeastParts parts = choose(v, at[v], prices);
    choice.seconds += parts.seconds;
    choice.bound += parts.seconds + parts.getBytes(weights) +
                    weights.held * getGradients(v, at[v]);
    choice.parts.push_back(parts);
  }
  return choice;
}

std::vector<PricedPoint>
PriceSearch::findPoints(const std::vector<double> &prices) {
  std::vector<PricedPoint> at;
  for (size_t v = 0; v < chunks.size(); ++v) {
    ByteWeights weights = getWeights(v, prices);
    double highest = -1;
    for (const PricedPoint &point : chunks[v]->candidates) {
      LeastParts parts = choose(v, point, prices);
      double value = parts.seconds + parts.getBytes(weights) +
                     weights.held * getGradients(v, point);
      if (value <= highest)
        continue;
      highest = value;
      at.resize(v);
      at.push_back(point);
    }
    // Without a candidate, what is kept has its price, and no op has one.
    if (at.size() == v)
      at.push_back({int64_t(chunks[v]->layers.size()), 0, 0, 0});
  }
  return at;
}

Simplex::Column PriceSearch::makeColumn(const std::vector<PricedPoint> &at,
                                        const Choice &choice) const {
  Simplex::Column column = {std::vector<double>(moments.size() + 1),
                            most - choice.seconds};
  for (size_t t = 0; t < moments.size(); ++t) {
    double sum = 0;
    for (size_t v = 0; v < chunks.size(); ++v)
      sum += double(moments[t].inFlight[v]) * choice.parts[v].kept;
    size_t running = moments[t].running;
    const LeastParts &own = choice.parts[running];
    sum += own.held + getGradients(running, at[running]) - own.kept;
    column.entries[t] = sum / bytes;
  }
  column.entries.back() = 1;
  return column;
}

void PriceSearch::offer(const std::vector<PricedPoint> &at,
                        const std::vector<double> &prices, double bound) {
  if (bound <= best)
    return;
  best = bound;
  bestPrices = prices;
  bestPoints = at;
}

std::vector<double> PriceSearch::solve(const std::vector<PricedPoint> &at,
                                       std::vector<double> prices) {
  Simplex program(std::vector<double>(moments.size() + 1, 1));
  std::vector<double> nothing(moments.size());
  Choice all = choose(at, nothing);
  program.columns.push_back(makeColumn(at, all));
  // Rules alone may prove as much as any price.
  offer(at, nothing, all.bound);
  double highest = all.bound;
  std::vector<double> summit = nothing;
  constexpr int kMostChoices = 100, kMostSteps = 1000;
  for (int k = 0; k < kMostChoices; ++k) {
    Choice choice = choose(at, prices);
    if (choice.bound > highest) {
      highest = choice.bound;
      summit = prices;
      offer(at, prices, choice.bound);
    }
    program.columns.push_back(makeColumn(at, choice));
    program.solve(kMostSteps);
    std::vector<double> duals = program.getDuals();
    double reached = most;
    for (double dual : duals)
      reached -= dual;
    if (k > 0 && reached <= highest + 1e-12 * most)
      break;
    for (size_t t = 0; t < prices.size(); ++t)
      prices[t] = std::max(duals[t], 0.0) / bytes;
  }
  return summit;
}

void PriceSearch::run(double price) {
  std::vector<double> prices(moments.size(), price / double(moments.size()));
  // Other points may prove more at the summit; then they have one of their
  // own, which is higher.
  constexpr int kMostRounds = 4;
  double before = -1;
  for (int round = 0; round < kMostRounds; ++round) {
    prices = solve(findPoints(prices), prices);
    if (best <= before * (1 + 1e-12))
      break;
    before = best;
  }
}

void PriceSearch::finish(std::vector<PipelineCertificate::PricedTask> &stage) {
  double price = 0;
  // What the program has left over of a price is none.
  constexpr double kLeast = 1e-9;
  for (double &own : bestPrices)
    if (own < kLeast * *std::max_element(bestPrices.begin(), bestPrices.end()))
      own = 0;
  for (double own : bestPrices)
    price += own;
  stage.clear();
  for (size_t t = 0; t < moments.size(); ++t)
    if (bestPrices[t] > 0)
      stage.push_back({moments[t].task, bestPrices[t] / price});
  for (size_t v = 0; v < chunks.size(); ++v) {
    PricedPoint point = bestPoints[v];
    point.secondsPerByte = price;
    point.running = point.inFlight = 0;
    for (size_t t = 0; t < moments.size(); ++t) {
      if (bestPrices[t] == 0)
        continue;
      double weight = bestPrices[t] / price;
      point.running += moments[t].running == int64_t(v) ? weight : 0;
      point.inFlight += weight * double(moments[t].inFlight[v]);
    }
    chunks[v]->points.clear();
    // What rules alone prove needs no price, and so does a chunk of which
    // nothing is in flight.
    if (price > 0 && point.inFlight > 0)
      chunks[v]->points = {point};
    computeBound(*chunks[v]);
  }
}

void reprise::solver::sharePrice(PipelineCertificate &certificate,
                                 int64_t stage) {
  const PipelineShape &shape = certificate.shape;
  if (shape.virtualStages == 1)
    return;
  std::vector<Certificate *> chunks;
  double seconds = 0, bytes = 0;
  for (int64_t v = 0; v < shape.virtualStages; ++v) {
    Certificate &chunk =
        certificate.chunks[v * shape.stages + stage].certificate;
    chunks.push_back(&chunk);
    chunk.budgetBytes = certificate.budgetBytes - certificate.baseBytes[stage];
    seconds += chunk.stepSeconds / double(chunk.microBatches);
    for (const CertifiedLayer &layer : chunk.layers)
      for (const CertifiedTensor &tensor : chunk.classes[layer.kind].tensors)
        bytes += double(tensor.bytes * layer.inFlight);
  }
  PriceSearch search(chunks, simulate(shape)[stage],
                     std::max(double(chunks.front()->budgetBytes), 1.0));
  // From prices that depend on no budget, for a smaller one to prove no less.
  for (double factor : {0.1, 1.0, 10.0})
    search.run(factor * seconds / std::max(bytes, 1.0));
  certificate.pricedTasks.resize(shape.stages);
  search.finish(certificate.pricedTasks[stage]);
}
