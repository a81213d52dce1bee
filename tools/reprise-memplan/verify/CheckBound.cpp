//===- CheckBound.cpp - The bound, searched for again ---------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Choices.h"

#include <algorithm>
#include <limits>
#include <map>

using namespace reprise::verify;

/// Least prices of all layers come to no more of the time of a micro-batch.
/// What is proven is their difference from the price of the budget, whose
/// rounding is to be far below what is printed.
static constexpr double kMostPrices = 1 << 20;
/// What a layer can do grows with each as a power.
static constexpr int64_t kMostMoments = 3;

/// The position at which a point is, and what it is called: where its op of
/// backward runs, or the last op of the forward pass.
static std::pair<int64_t, std::string> getPosition(const Claims &claims,
                                                   const PricedPoint &point) {
  if (point.layer == int64_t(claims.layers.size()))
    return {countForward(claims) - 1, "the end of the forward pass"};
  size_t number = point.gradient;
  for (size_t l = point.layer + 1; l < claims.layers.size(); ++l)
    number += claims.classOf(l).backward.size();
  return {getBackwardPositions(claims)[number],
          "'" + claims.classOf(point.layer).backward[point.gradient].name +
              "' of '" + claims.layers[point.layer].name + "'"};
}

/// The bytes of op and layers at a point are those that the schedule has
/// there, or fewer: more would make the bound too high. `checkKept` refuses
/// more bytes as well; here the point is named.
static std::optional<Fault> checkMoments(const Claims &claims) {
  std::vector<int64_t> live = getLiveBytes(claims);
  for (size_t m = 0; m < claims.points.size(); ++m) {
    const PricedPoint &point = claims.points[m];
    auto [position, name] = getPosition(claims, point);
    if (point.position != position)
      return Fault{point.at, "point " + std::to_string(m) + " is at " + name +
                                 ", position " + std::to_string(position) +
                                 ", but got " + std::to_string(point.position)};
    __int128 bytes = 0;
    bool isTurn = point.layer == int64_t(claims.layers.size());
    if (!isTurn)
      bytes = claims.classOf(point.layer).backward[point.gradient].bytes;
    PricedPoint alone = point;
    alone.secondsPerByte = 1;
    for (size_t l = 0; l < claims.layers.size(); ++l) {
      const Class &kind = claims.classOf(l);
      View view = getView(claims, l, {alone}, 1);
      std::vector<bool> isThere = view.now[0];
      for (const Ref &kept : claims.layers[l].keeps)
        if (view.reads[1][kept.index])
          isThere[kept.index] = true;
      for (size_t t = 0; t < kind.tensors.size(); ++t)
        if (isThere[t])
          bytes += kind.tensors[t].bytes;
    }
    if (bytes > live[point.position])
      return Fault{
          point.at,
          "point " + std::to_string(m) + " counts " +
              std::to_string(int64_t(std::min<__int128>(bytes, INT64_MAX))) +
              " bytes, but the schedule has " +
              std::to_string(live[point.position]) + " alive at position " +
              std::to_string(point.position)};
  }
  return std::nullopt;
}

namespace {
/// The layers between the points that have a price.
class BoundChecker {
public:
  BoundChecker(const Claims &claims, Effort &left);

  std::optional<Fault> check();
  Line getLine() const;

private:
  std::optional<Fault> checkMinima();
  std::optional<Fault> checkSum();

  const Claims &claims;
  Effort &left;
  double price = 0; ///< the highest; of the other points a byte weighs less
  double available = 0;
  double scale = 0; ///< seconds of a micro-batch, of which bounds are a part
  std::vector<View> views;
  std::map<View, double> minima;
  double sum = 0;
};
} // namespace

BoundChecker::BoundChecker(const Claims &claims, Effort &left)
    : claims(claims), left(left), scale(getMicroBatchSeconds(claims)) {
  for (const PricedPoint &point : claims.points)
    price = std::max(price, point.secondsPerByte);
  for (size_t l = 0; l < claims.layers.size(); ++l)
    views.push_back(getView(claims, l, claims.points, price));
  int64_t budget = claims.budget;
  if (!claims.isOfActivations)
    budget -= claims.base;
  for (const PricedPoint &point : claims.points) {
    double bytes = budget;
    if (point.layer < int64_t(claims.layers.size()))
      bytes -= point.getRunning() *
               claims.classOf(point.layer).backward[point.gradient].bytes;
    if (price > 0)
      available += point.secondsPerByte / price * bytes;
  }
}

static Fault makeTooMany(const Class &kind, const Effort &left) {
  if (left.choices < 0)
    return Fault{kind.at, "with class '" + kind.name +
                              "' there are more than " +
                              std::to_string(kMostChoicesOfAll) +
                              " ways to have what may be needed in all "
                              "classes, too many to go through"};
  return Fault{kind.at, "class '" + kind.name + "' has more than " +
                            std::to_string(kMostStates) +
                            " sets of tensors that may be needed, or " +
                            std::to_string(kMostChoices) +
                            " ways to have them, too many to go through"};
}

std::optional<Fault> BoundChecker::checkMinima() {
  for (size_t l = 0; l < claims.layers.size(); ++l) {
    const Layer &layer = claims.layers[l];
    const Class &kind = claims.classOf(l);
    auto [known, isNew] = minima.emplace(views[l], 0);
    if (isNew) {
      auto cheapest = findChoices(kind, views[l], price, left.choices);
      if (!cheapest)
        return makeTooMany(kind, left);
      known->second =
          cheapest->empty()
              ? std::numeric_limits<double>::infinity()
              : cheapest->front().seconds + price * cheapest->front().bytes;
    }
    double minimum = known->second;
    if (!isNear(minimum, layer.minimum, minimum)) {
      auto [wanted, got] = formatSeconds(minimum, layer.minimum);
      return Fault{layer.minimumAt, "the least price of '" + layer.name +
                                        "' is " + wanted + ", but got " + got};
    }
    sum += minimum;
    if (sum > kMostPrices * scale)
      return Fault{layer.minimumAt,
                   "with '" + layer.name + "' least prices come to " +
                       formatSeconds(sum) + ", out of all proportion to the " +
                       formatSeconds(scale) +
                       " of a micro-batch: more than 2^20 times as much"};
  }
  return std::nullopt;
}

Line BoundChecker::getLine() const {
  Line line = {sum, 0};
  for (const PricedPoint &point : claims.points) {
    line.slope += point.secondsPerByte;
    if (point.layer < int64_t(claims.layers.size()))
      line.most += point.secondsPerByte * point.getRunning() *
                   claims.classOf(point.layer).backward[point.gradient].bytes;
  }
  return line;
}

/// What the price proves, or if more is said, what whole choices do: those of
/// all layers that come to less take too many bytes.
std::optional<Fault> BoundChecker::checkSum() {
  double bound = std::max(sum - price * available, 0.0);
  // What makes a bound above zero is no more than a step; a budget out of all
  // proportion must not make room for other bounds.
  double claimed = claims.bound / claims.microBatches;
  if (price > 0 && claimed > bound && !isNear(bound, claimed, scale)) {
    std::map<View, SameLayers> layers;
    for (size_t l = 0; l < claims.layers.size(); ++l) {
      SameLayers &same = layers[views[l]];
      if (same.count++ > 0)
        continue;
      auto choices =
          findChoices(claims.classOf(l), views[l], std::nullopt, left.choices);
      if (!choices)
        return makeTooMany(claims.classOf(l), left);
      same.choices = std::move(*choices);
    }
    std::vector<SameLayers> all;
    for (auto &[_, same] : layers)
      all.push_back(std::move(same));
    LeastSum least = findLeastSum(all, available, claimed, price, sum);
    if (!least.isKnown)
      return Fault{claims.boundAt,
                   "there are too many ways to come to less than a bound of " +
                       formatSeconds(claims.bound) + " to go through"};
    bound = std::min(claimed, least.seconds);
  }
  if (isNear(bound, claimed, scale))
    return std::nullopt;
  auto [wanted, got] = formatSeconds(bound * claims.microBatches, claims.bound);
  return Fault{claims.boundAt, "the bound is " + wanted + ", but got " + got};
}

std::optional<Fault> BoundChecker::check() {
  // Each is a stage of its own, in each of which an op may run.
  int64_t priced = 0;
  for (const PricedPoint &point : claims.points)
    priced += point.secondsPerByte > 0;
  if (priced > kMostMoments)
    return Fault{claims.boundAt,
                 "needs at most " + std::to_string(kMostMoments) +
                     " points with a price, but got " + std::to_string(priced)};
  if (std::optional<Fault> fault = checkMinima())
    return fault;
  if (std::optional<Fault> fault = checkSum())
    return fault;
  // Follows from all checks before, unless one of them is wrong.
  if (claims.bound > claims.replay &&
      !isNear(claims.bound, claims.replay, scale * claims.microBatches)) {
    auto [bound, replays] = formatSeconds(claims.bound, claims.replay);
    return Fault{claims.boundAt, "the bound of " + bound + " is above the " +
                                     replays + " of the plan's replays"};
  }
  return std::nullopt;
}

/// Each layer is looked for in the reads of all gradients.
static std::optional<Fault> checkReads(const Claims &claims, Effort &left) {
  __int128 gradients = 0, layers = claims.layers.size();
  for (size_t l = 0; l < claims.layers.size(); ++l)
    gradients += claims.classOf(l).backward.size();
  if (layers * gradients <= left.reads) {
    left.reads -= int64_t(layers * gradients);
    return std::nullopt;
  }
  return Fault{
      claims.boundAt,
      "needs layers times gradients of all layers to come to at most " +
          std::to_string(kMostReads) + " in all chunks, but the last one has " +
          std::to_string(int64_t(layers)) + " and " +
          std::to_string(int64_t(gradients))};
}

std::optional<Fault> reprise::verify::checkBound(const Claims &claims,
                                                 Line &line, Effort &left) {
  if (std::optional<Fault> fault = checkMoments(claims))
    return fault;
  if (std::optional<Fault> fault = checkKept(claims))
    return fault;
  if (std::optional<Fault> fault = checkReads(claims, left))
    return fault;
  BoundChecker checker(claims, left);
  std::optional<Fault> fault = checker.check();
  line = checker.getLine();
  return fault;
}
