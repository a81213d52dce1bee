//===- CheckOrder.cpp - Which positions are which ops ---------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Claims.h"

#include <algorithm>
#include <map>

using namespace reprise::verify;

namespace {
/// A schedule is the forward pass, layer after layer; the backward pass, from
/// the last layer to the first, with replays in between; the update.
class OrderChecker {
public:
  explicit OrderChecker(const Claims &claims)
      : claims(claims), numForward(countForward(claims)) {}

  std::optional<Fault> check();

private:
  std::optional<Fault> checkForward() const;
  std::optional<Fault> findReplays();
  std::optional<Fault> checkReplayed() const;
  std::optional<Fault> checkBackward() const;
  /// What is wrong with reading these values of layer `l` at a position, behind
  /// the first `numBefore` of all replays.
  std::optional<Fault> checkReads(int64_t l, const Reads &reads,
                                  const std::string &reader, size_t position,
                                  int64_t numBefore) const;

  std::string describe(int64_t layer, int64_t op) const {
    return "'" + claims.classOf(layer).ops[op].name + "' of '" +
           claims.layers[layer].name + "'";
  }
  std::string describe(size_t position) const {
    return "position " + std::to_string(position) + " '" +
           claims.schedule[position].name + "'";
  }

  struct Replay {
    size_t position;
    int64_t number; ///< among all replays
  };

  const Claims &claims;
  size_t numForward;
  std::map<std::pair<int64_t, int64_t>, Replay> replays; ///< by layer and op
};
} // namespace

int64_t reprise::verify::countForward(const Claims &claims) {
  int64_t count = 0;
  for (size_t l = 0; l < claims.layers.size(); ++l)
    count += claims.classOf(l).ops.size();
  return count;
}

std::vector<int64_t>
reprise::verify::getBackwardPositions(const Claims &claims) {
  std::vector<int64_t> positions;
  for (size_t p = countForward(claims); p < claims.schedule.size(); ++p)
    if (!claims.schedule[p].isUpdate && claims.schedule[p].replays.empty())
      positions.push_back(p);
  return positions;
}

/// What an op takes is said twice, where the class and where the schedule has
/// it: for the one replays pay, the other is the step that they are compared
/// with. Names may differ: layers of a class share the names of the first.
std::optional<Fault> OrderChecker::checkForward() const {
  if (claims.schedule.size() < numForward)
    return Fault{claims.schedule.back().at,
                 "needs a position for each of " + std::to_string(numForward) +
                     " ops of the forward pass, but got " +
                     std::to_string(claims.schedule.size())};
  size_t p = 0;
  for (size_t l = 0; l < claims.layers.size(); ++l)
    for (size_t o = 0; o < claims.classOf(l).ops.size(); ++o, ++p) {
      const Launch &launch = claims.schedule[p];
      const Op &op = claims.classOf(l).ops[o];
      std::string what = describe(p) + " is " + describe(l, o);
      if (launch.isUpdate)
        return Fault{launch.at, what + " in the forward pass, but runs in the "
                                       "update"};
      if (op.canReplay && !isNear(launch.seconds, op.seconds, op.seconds)) {
        auto [here, there] = formatSeconds(launch.seconds, op.seconds);
        return Fault{launch.at, what + " and takes " + here +
                                    ", but the class says " + there};
      }
    }
  return std::nullopt;
}

std::optional<Fault> OrderChecker::findReplays() {
  int64_t number = 0;
  for (size_t p = 0; p < claims.schedule.size(); ++p) {
    const Launch &launch = claims.schedule[p];
    for (const ReplayRef &replay : launch.replays) {
      std::string what =
          describe(p) + " replays " + describe(replay.layer, replay.op);
      if (p < numForward)
        return Fault{replay.at, what +
                                    ", but is of the forward pass, which "
                                    "ends at position " +
                                    std::to_string(numForward - 1)};
      if (launch.isUpdate)
        return Fault{replay.at, what + " in the update, when backward is over"};
      if (launch.writes.empty())
        return Fault{replay.at, what + ", but writes no buffer"};
      replays[{replay.layer, replay.op}] = {p, number++};
    }
  }
  return std::nullopt;
}

std::optional<Fault> OrderChecker::checkReads(int64_t l, const Reads &reads,
                                              const std::string &reader,
                                              size_t position,
                                              int64_t numBefore) const {
  std::vector<Source> sources;
  for (int64_t tensor : reads.tensors)
    sources.push_back({l, tensor});
  for (int64_t input : reads.inputs)
    sources.push_back(claims.layers[l].inputs[input]);
  for (const Source &source : sources) {
    const Tensor &tensor = claims.classOf(source.layer).tensors[source.tensor];
    const std::vector<Ref> &keeps = claims.layers[source.layer].keeps;
    if (std::any_of(keeps.begin(), keeps.end(), [&](const Ref &kept) {
          return kept.index == source.tensor;
        }))
      continue;
    // That it is kept or replayed, is known.
    const Replay &replay = replays.at({source.layer, tensor.writer});
    if (replay.number >= numBefore)
      return Fault{claims.schedule[position].at,
                   reader + " at " + describe(position) + " reads '" +
                       tensor.name + "' of '" +
                       claims.layers[source.layer].name +
                       "', which runs again no sooner than at " +
                       describe(replay.position)};
  }
  return std::nullopt;
}

std::optional<Fault> OrderChecker::checkReplayed() const {
  for (const auto &[key, replay] : replays) {
    auto [l, op] = key;
    if (auto fault = checkReads(l, claims.classOf(l).ops[op].reads,
                                "the replay of " + describe(l, op),
                                replay.position, replay.number))
      return fault;
  }
  return std::nullopt;
}

std::optional<Fault> OrderChecker::checkBackward() const {
  std::vector<std::pair<int64_t, const Gradient *>> wanted;
  for (int64_t l = int64_t(claims.layers.size()) - 1; l >= 0; --l)
    for (const Gradient &gradient : claims.classOf(l).backward)
      wanted.emplace_back(l, &gradient);
  std::vector<int64_t> positions = getBackwardPositions(claims);
  if (positions.size() > wanted.size()) {
    size_t p = positions[wanted.size()];
    return Fault{claims.schedule[p].at,
                 describe(p) + " is none of the " +
                     std::to_string(wanted.size()) +
                     " ops of backward, which are all before it"};
  }
  if (positions.size() < wanted.size())
    return Fault{
        claims.schedule.back().at,
        "needs a position for each of " + std::to_string(wanted.size()) +
            " ops of backward, but got " + std::to_string(positions.size())};
  int64_t numBefore = 0;
  size_t p = numForward;
  for (size_t k = 0; k < wanted.size(); ++k) {
    for (; p < size_t(positions[k]); ++p)
      numBefore += claims.schedule[p].replays.size();
    auto [l, gradient] = wanted[k];
    if (auto fault = checkReads(l, gradient->reads,
                                "'" + gradient->name + "' of '" +
                                    claims.layers[l].name + "'",
                                p, numBefore))
      return fault;
  }
  return std::nullopt;
}

std::optional<Fault> OrderChecker::check() {
  if (auto fault = checkForward())
    return fault;
  if (auto fault = findReplays())
    return fault;
  if (auto fault = checkReplayed())
    return fault;
  return checkBackward();
}

std::optional<Fault> reprise::verify::checkOrder(const Claims &claims) {
  return OrderChecker(claims).check();
}
