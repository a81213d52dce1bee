//===- Choices.cpp - What a layer may have done ---------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Choices.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

using namespace reprise::verify;

static constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// More sums of choices are not gone through: twice as many as a bound is found
/// with, since other bounds for them leave others out.
static constexpr size_t kMostSums = 1 << 17;
/// Those of one more layer, before the worse ones are left out: 128 MiB.
static constexpr size_t kMostPairs = 1 << 23;
/// Pairs of a choice and a sum that are looked at for one answer.
static constexpr int64_t kMostWork = int64_t(1) << 31;

bool View::operator<(const View &other) const {
  return std::tie(kind, others, reads, now, weights) <
         std::tie(other.kind, other.others, other.reads, other.now,
                  other.weights);
}

//===----------------------------------------------------------------------===//
// What a layer is asked for
//===----------------------------------------------------------------------===//

/// Backward goes through the layers from the last to the first.
static std::pair<int64_t, int64_t> getTime(int64_t layer, int64_t gradient) {
  return {-layer, gradient};
}

View reprise::verify::getView(const Claims &claims, int64_t layer,
                              const std::vector<PricedPoint> &points,
                              double most) {
  std::map<std::pair<int64_t, int64_t>, double> prices; // By time.
  double others = 0;
  for (const PricedPoint &point : points) {
    if (point.secondsPerByte == 0)
      continue;
    double share = point.secondsPerByte / most;
    double inFlight = double(claims.layers[layer].inFlight);
    if (point.mean)
      inFlight = point.mean->inFlight;
    double running = point.getRunning();
    prices[getTime(point.layer, point.gradient)] += share * running;
    others += share * (inFlight - running);
  }
  std::vector<bool> none(claims.classOf(layer).tensors.size());
  View view = {claims.layers[layer].kind,
               others,
               {prices.size() + 1, none},
               {prices.size(), none},
               {}};
  for (auto [_, price] : prices)
    view.weights.push_back(price);
  auto read = [&](std::pair<int64_t, int64_t> time, int64_t tensor) {
    size_t stage = 0;
    for (auto [end, _] : prices) {
      if (end == time)
        view.now[stage][tensor] = true;
      stage += end < time;
    }
    view.reads[stage][tensor] = true;
  };
  for (size_t l = 0; l < claims.layers.size(); ++l) {
    const std::vector<Gradient> &backward = claims.classOf(l).backward;
    for (size_t g = 0; g < backward.size(); ++g) {
      if (int64_t(l) == layer)
        for (int64_t tensor : backward[g].reads.tensors)
          read(getTime(l, g), tensor);
      for (int64_t input : backward[g].reads.inputs)
        if (const Source &source = claims.layers[l].inputs[input];
            source.layer == layer)
          read(getTime(l, g), source.tensor);
    }
  }
  return view;
}

//===----------------------------------------------------------------------===//
// What it can do
//===----------------------------------------------------------------------===//

/// Sorts by bytes, and leaves out what is no better than another choice.
static void leaveBest(std::vector<Choice> &choices) {
  std::sort(
      choices.begin(), choices.end(), [](const Choice &a, const Choice &b) {
        return std::tie(a.bytes, a.seconds) < std::tie(b.bytes, b.seconds);
      });
  std::vector<Choice> best;
  for (const Choice &choice : choices)
    if (best.empty() || choice.seconds < best.back().seconds)
      best.push_back(choice);
  choices = std::move(best);
}

namespace {
/// Goes through the ops of a class from the last to the first. What matters of
/// the later ones is which tensors of the earlier ones they need in each stage.
class Search {
public:
  Search(const Class &kind, const View &view, std::optional<double> price,
         int64_t &left)
      : kind(kind), view(view), price(price), left(left), idle(countIdle()) {}

  std::optional<std::vector<Choice>> run();

private:
  using State = std::vector<std::vector<bool>>;

  size_t countIdle() const;
  double getFixedBytes() const;
  /// From `stage` on, backwards: what `op` has to make for later stages too,
  /// `carried`, it makes in the stage, or it was there before.
  void settle(const Op &op, const State &needed, State rest, size_t stage,
              std::vector<int64_t> carried, Choice added);
  void reduce(std::vector<Choice> &choices) const;
  bool isTooMuch() const {
    return before.size() > kMostStates || work > kMostChoices || left < 0;
  }

  const Class &kind;
  const View &view;
  std::optional<double> price;
  int64_t &left; ///< choices
  size_t idle;   ///< stages before the first in which an op may run
  const std::vector<Choice> *behind = nullptr; ///< choices of the later ops
  int64_t work = 0;                            ///< choices made
  std::map<State, std::vector<Choice>> before;
};
} // namespace

/// Stages before the first that backward reads anything of the layer in. Of
/// what is kept, and what is held at the points of these, the smallest may as
/// well be all of them, and the ops behind it run in the first stage that needs
/// them: no choice with a run before is better. Unless a rule forbids to keep
/// it.
size_t Search::countIdle() const {
  for (const Tensor &tensor : kind.tensors)
    if (tensor.rule == Rule::Drop)
      return 0;
  size_t count = 0;
  auto isRead = [&](const std::vector<bool> &reads) {
    return std::find(reads.begin(), reads.end(), true) != reads.end();
  };
  while (count + 1 < view.reads.size() && !isRead(view.reads[count]))
    ++count;
  return count;
}

/// What is read right now is there, and so is, as long as backward has still to
/// read it, what a rule keeps.
double Search::getFixedBytes() const {
  double fixed = 0;
  for (size_t t = 0; t < kind.tensors.size(); ++t) {
    const Tensor &tensor = kind.tensors[t];
    for (size_t m = 0; m < view.now.size(); ++m) {
      bool isThere = view.now[m][t];
      if (tensor.rule == Rule::Keep)
        for (size_t s = m + 1; s < view.reads.size(); ++s)
          isThere = isThere || view.reads[s][t];
      fixed += view.weights[m] * double(tensor.bytes) * double(isThere);
    }
    if (tensor.rule == Rule::Keep)
      fixed += view.others * double(tensor.bytes);
  }
  return fixed;
}

void Search::reduce(std::vector<Choice> &choices) const {
  if (!price)
    return leaveBest(choices);
  auto cheapest = std::min_element(
      choices.begin(), choices.end(), [&](const Choice &a, const Choice &b) {
        return a.seconds + *price * a.bytes < b.seconds + *price * b.bytes;
      });
  choices = {*cheapest};
}

void Search::settle(const Op &op, const State &needed, State rest, size_t stage,
                    std::vector<int64_t> carried, Choice added) {
  for (int64_t t : op.writes)
    if (needed[stage][t] &&
        std::find(carried.begin(), carried.end(), t) == carried.end())
      carried.push_back(t);
  auto goOn = [&](State rest, const std::vector<int64_t> &carried,
                  Choice added) {
    if (stage > 0)
      return settle(op, needed, std::move(rest), stage - 1, carried, added);
    if (isTooMuch())
      return; // Too many to go through, which `run` says.
    work += int64_t(behind->size());
    left -= int64_t(behind->size());
    std::vector<Choice> &choices = before[rest];
    for (const Choice &choice : *behind)
      choices.push_back(
          {choice.seconds + added.seconds, choice.bytes + added.bytes});
  };
  if (!carried.empty() && op.canReplay && stage >= idle) {
    State reading = rest;
    for (int64_t t : op.reads.tensors)
      if (kind.tensors[t].rule != Rule::Keep)
        reading[stage][t] = true;
    goOn(std::move(reading), {}, {added.seconds + op.seconds, added.bytes});
  }
  for (int64_t t : carried) {
    double bytes = double(kind.tensors[t].bytes);
    if (stage > 0 && !view.now[stage - 1][t])
      added.bytes += view.weights[stage - 1] * bytes;
    if (stage > 0)
      continue;
    // Nothing makes it: it is kept, in the other micro-batches as well.
    if (kind.tensors[t].rule == Rule::Drop)
      return;
    added.bytes += view.others * bytes;
  }
  goOn(std::move(rest), carried, added);
}

std::optional<std::vector<Choice>> Search::run() {
  State needed = view.reads;
  for (std::vector<bool> &stage : needed)
    for (size_t t = 0; t < kind.tensors.size(); ++t)
      if (kind.tensors[t].rule == Rule::Keep)
        stage[t] = false;
  std::map<State, std::vector<Choice>> states = {
      {needed, {{0, getFixedBytes()}}}};
  for (auto op = kind.ops.rbegin(); op != kind.ops.rend(); ++op) {
    before.clear();
    for (const auto &[state, choices] : states) {
      State rest = state;
      for (std::vector<bool> &stage : rest)
        for (int64_t t : op->writes)
          stage[t] = false;
      behind = &choices;
      settle(*op, state, std::move(rest), state.size() - 1, {}, {});
    }
    for (auto &[_, choices] : before) {
      reduce(choices);
      if (choices.size() > kMostStates)
        return std::nullopt;
    }
    if (isTooMuch())
      return std::nullopt;
    std::swap(states, before);
  }
  // Empty if rules ask for what cannot run again.
  return states.empty() ? std::vector<Choice>() : states.begin()->second;
}

std::optional<std::vector<Choice>>
reprise::verify::findChoices(const Class &kind, const View &view,
                             std::optional<double> price, int64_t &left) {
  return Search(kind, view, price, left).run();
}

//===----------------------------------------------------------------------===//
// What all layers can do
//===----------------------------------------------------------------------===//

LeastSum reprise::verify::findLeastSum(const std::vector<SameLayers> &layers,
                                       double available, double seconds,
                                       double price, double least) {
  // What a sum costs above the least, at the price, only grows with what is
  // added; and it is no more than this, if the sum is one that is asked for.
  double room = seconds + price * available - least;
  room += 1e-11 * (seconds + price * std::abs(available));
  std::vector<Choice> sums = {{0, 0}}, next;
  double cheapest = 0; // Of the layers so far.
  int64_t work = 0, count = 0;
  for (const SameLayers &same : layers) {
    double own = kInfinite;
    for (const Choice &choice : same.choices)
      own = std::min(own, choice.seconds + price * choice.bytes);
    for (int64_t k = 0; k < same.count; ++k) {
      cheapest += own;
      next.clear();
      ++count;
      for (const Choice &choice : same.choices) {
        if (choice.seconds + price * choice.bytes - own > room)
          continue;
        work += int64_t(sums.size());
        if (work > kMostWork)
          return {false};
        for (const Choice &sum : sums) {
          Choice both = {sum.seconds + choice.seconds,
                         sum.bytes + choice.bytes};
          if (both.seconds + price * both.bytes - cheapest <= room)
            next.push_back(both);
        }
        if (next.size() > kMostPairs)
          return {false};
      }
      leaveBest(next);
      if (next.size() > kMostSums)
        return {false};
      std::swap(sums, next);
    }
  }
  // Bytes are weighed and added up in numbers of 53 bits. What is above by no
  // more than that can make fits: a bound may be too low by it, never too high.
  double rounding = double(count + 16) * 64 * std::ldexp(1.0, -52);
  LeastSum result = {true, kInfinite};
  for (const Choice &sum : sums)
    if (sum.bytes - available <= rounding * (sum.bytes + std::abs(available)) &&
        sum.seconds < seconds)
      result.seconds = std::min(result.seconds, sum.seconds);
  return result;
}
