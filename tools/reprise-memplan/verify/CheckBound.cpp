//===- CheckBound.cpp - The bound, searched for again ---------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Claims.h"

#include <algorithm>
#include <cassert>
#include <map>

using namespace reprise::verify;

/// More ways to need values between two ops of a class are not gone through.
static constexpr size_t kMostStates = 1 << 16;

/// The op of backward that reads a tensor last; -1 if none of its own layer.
static std::vector<int64_t> getLastReads(const Class &kind) {
  std::vector<int64_t> last(kind.tensors.size(), -1);
  for (size_t g = 0; g < kind.backward.size(); ++g)
    for (int64_t tensor : kind.backward[g].reads.tensors)
      last[tensor] = g;
  return last;
}

static bool contains(const std::vector<int64_t> &list, int64_t number) {
  return std::find(list.begin(), list.end(), number) != list.end();
}

/// Whether a byte of a tensor is there at a moment, in the micro-batch whose
/// backward pass is under way.
static bool isThere(const Claims &claims, int64_t layer, int64_t tensor,
                    bool isKept, const Moment &moment) {
  if (layer != moment.layer)
    return isKept && layer < moment.layer;
  const Class &kind = claims.classOf(layer);
  if (contains(kind.backward[moment.gradient].reads.tensors, tensor))
    return true;
  return isKept && getLastReads(kind)[tensor] >= moment.gradient;
}

namespace {
/// A layer with a price on bytes.
struct Priced {
  int64_t kind;
  std::vector<bool> needed;
  std::vector<double> kept, dropped; ///< of all bytes of each tensor

  bool operator<(const Priced &other) const {
    return std::tie(kind, needed, kept, dropped) <
           std::tie(other.kind, other.needed, other.kept, other.dropped);
  }
};
} // namespace

static Priced getPriced(const Claims &claims, int64_t layer,
                        std::vector<bool> needed) {
  const Class &kind = claims.classOf(layer);
  Priced priced = {claims.layers[layer].kind, std::move(needed), {}, {}};
  for (size_t t = 0; t < kind.tensors.size(); ++t) {
    double kept = 0, dropped = 0;
    for (const Moment &moment : claims.moments) {
      double price = moment.secondsPerByte * kind.tensors[t].bytes;
      kept += price * (claims.layers[layer].inFlight - 1 +
                       isThere(claims, layer, t, true, moment));
      dropped += price * isThere(claims, layer, t, false, moment);
    }
    priced.kept.push_back(kept);
    priced.dropped.push_back(dropped);
  }
  return priced;
}

/// Goes through the ops of a class from the last to the first, with the least
/// price for every set of tensors of earlier ops that may be needed: what an op
/// makes is kept, or the op runs again. Empty if there are too
/// many sets.
static std::optional<double> search(const Class &kind, const Priced &priced) {
  using Set = std::vector<bool>;
  double fixed = 0;
  Set needed = priced.needed;
  for (size_t t = 0; t < kind.tensors.size(); ++t)
    if (kind.tensors[t].rule == Rule::Keep) {
      fixed += priced.kept[t];
      needed[t] = false;
    } else {
      fixed += priced.dropped[t];
    }
  std::map<Set, double> states = {{needed, 0.0}};
  for (auto op = kind.ops.rbegin(); op != kind.ops.rend(); ++op) {
    std::map<Set, double> before;
    auto add = [&](const Set &set, double price) {
      auto [found, isNew] = before.emplace(set, price);
      if (!isNew)
        found->second = std::min(found->second, price);
    };
    for (const auto &[state, price] : states) {
      Set rest = state;
      double keeping = 0;
      bool mayKeep = true, isNeeded = false;
      for (int64_t t : op->writes)
        if (state[t]) {
          rest[t] = false;
          isNeeded = true;
          mayKeep &= kind.tensors[t].rule != Rule::Drop;
          keeping += priced.kept[t] - priced.dropped[t];
        }
      if (!isNeeded) {
        add(rest, price);
        continue;
      }
      if (mayKeep)
        add(rest, price + keeping);
      if (!op->canReplay)
        continue;
      for (int64_t t : op->reads.tensors)
        rest[t] = kind.tensors[t].rule != Rule::Keep;
      add(rest, price + op->seconds);
    }
    if (before.size() > kMostStates)
      return std::nullopt;
    states = std::move(before);
  }
  assert(states.size() == 1 && "the plan of the layer is a choice");
  return fixed + states.begin()->second;
}

/// What backward reads of each layer, its own and that of later layers.
static std::vector<std::vector<bool>> getNeeded(const Claims &claims) {
  std::vector<std::vector<bool>> needed;
  for (size_t l = 0; l < claims.layers.size(); ++l)
    needed.emplace_back(claims.classOf(l).tensors.size());
  for (size_t l = 0; l < claims.layers.size(); ++l)
    for (const Gradient &gradient : claims.classOf(l).backward) {
      for (int64_t tensor : gradient.reads.tensors)
        needed[l][tensor] = true;
      for (int64_t input : gradient.reads.inputs) {
        const Source &source = claims.layers[l].inputs[input];
        needed[source.layer][source.tensor] = true;
      }
    }
  return needed;
}

/// The position at which a moment is, and what it is called: where its op of
/// backward runs, or the last op of the forward pass.
static std::pair<int64_t, std::string> getPosition(const Claims &claims,
                                                   const Moment &moment) {
  if (moment.layer == int64_t(claims.layers.size()))
    return {countForward(claims) - 1, "the end of the forward pass"};
  size_t number = moment.gradient;
  for (size_t l = moment.layer + 1; l < claims.layers.size(); ++l)
    number += claims.classOf(l).backward.size();
  return {getBackwardPositions(claims)[number],
          "'" + claims.classOf(moment.layer).backward[moment.gradient].name +
              "' of '" + claims.layers[moment.layer].name + "'"};
}

/// The bytes of op and layers at a moment are those that the schedule has
/// there, or fewer: more would make the bound too high.
static std::optional<Fault> checkMoments(const Claims &claims) {
  std::vector<int64_t> live = getLiveBytes(claims);
  for (size_t m = 0; m < claims.moments.size(); ++m) {
    const Moment &moment = claims.moments[m];
    auto [position, name] = getPosition(claims, moment);
    if (moment.position != position)
      return Fault{moment.at, "moment " + std::to_string(m) + " is at " + name +
                                  ", position " + std::to_string(position) +
                                  ", but got " +
                                  std::to_string(moment.position)};
    __int128 bytes = 0;
    bool isTurn = moment.layer == int64_t(claims.layers.size());
    if (!isTurn)
      bytes = claims.classOf(moment.layer).backward[moment.gradient].bytes;
    for (size_t l = 0; l < claims.layers.size(); ++l) {
      const Class &kind = claims.classOf(l);
      std::vector<bool> isKept(kind.tensors.size());
      for (const Ref &kept : claims.layers[l].keeps)
        isKept[kept.index] = true;
      for (size_t t = 0; t < kind.tensors.size(); ++t)
        if (isThere(claims, l, t, isKept[t], moment))
          bytes += kind.tensors[t].bytes;
    }
    if (bytes > live[moment.position])
      return Fault{moment.at, "moment " + std::to_string(m) + " counts " +
                                  std::to_string(int64_t(bytes)) +
                                  " bytes, but the schedule has " +
                                  std::to_string(live[moment.position]) +
                                  " alive at position " +
                                  std::to_string(moment.position)};
  }
  return std::nullopt;
}

/// Adds what replays read.
static void addReplayReads(const Claims &claims,
                           std::vector<std::vector<bool>> &isRead) {
  for (size_t l = 0; l < claims.layers.size(); ++l)
    for (const Ref &replay : claims.layers[l].replays) {
      const Reads &reads = claims.classOf(l).ops[replay.index].reads;
      for (int64_t tensor : reads.tensors)
        isRead[l][tensor] = true;
      for (int64_t input : reads.inputs) {
        const Source &source = claims.layers[l].inputs[input];
        isRead[source.layer][source.tensor] = true;
      }
    }
}

/// Bytes at each op of a layer's backward, earlier layers left out.
static std::vector<int64_t> getBackwardBytes(const Class &kind,
                                             const std::vector<bool> &isKept) {
  std::vector<int64_t> lastReads = getLastReads(kind);
  std::vector<int64_t> bytes(kind.backward.size());
  int64_t left = 0;
  for (int64_t g = int64_t(bytes.size()) - 1; g >= 0; --g) {
    bytes[g] = kind.backward[g].bytes;
    std::vector<int64_t> reads = kind.backward[g].reads.tensors;
    std::sort(reads.begin(), reads.end());
    reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
    for (int64_t t : reads)
      if (!isKept[t])
        bytes[g] += kind.tensors[t].bytes;
      else if (lastReads[t] == g)
        left += kind.tensors[t].bytes;
    bytes[g] += left;
  }
  return bytes;
}

/// Even where memory has no price: the schedule must have room for what layers
/// keep, all at once at the end of the forward pass, and at each op of backward
/// for what is left of it. Which positions those are it does not say.
static std::optional<Fault> checkKept(const Claims &claims,
                                      std::vector<std::vector<bool>> isRead) {
  addReplayReads(claims, isRead);
  std::vector<int64_t> live = getLiveBytes(claims), before;
  int64_t most = *std::max_element(live.begin(), live.end()), bytes = 0;
  std::string room = " bytes, but the schedule has no more than " +
                     std::to_string(most) + " alive at any position";
  for (size_t l = 0; l < claims.layers.size(); ++l) {
    const Layer &layer = claims.layers[l];
    before.push_back(bytes);
    for (const Ref &kept : layer.keeps) {
      const Tensor &tensor = claims.classOf(l).tensors[kept.index];
      if (!isRead[l][kept.index])
        continue;
      bytes += tensor.bytes;
      if (bytes > most)
        return Fault{kept.at, "with '" + tensor.name + "' of '" + layer.name +
                                  "' the forward pass keeps " +
                                  std::to_string(bytes) + room};
    }
  }
  for (size_t l = 0; l < claims.layers.size(); ++l) {
    const Layer &layer = claims.layers[l];
    const Class &kind = claims.classOf(l);
    std::vector<bool> isKept(kind.tensors.size());
    for (const Ref &kept : layer.keeps)
      isKept[kept.index] = true;
    std::vector<int64_t> own = getBackwardBytes(kind, isKept);
    for (size_t g = 0; g < own.size(); ++g)
      if (before[l] + own[g] > most)
        return Fault{layer.at, "'" + kind.backward[g].name + "' of '" +
                                   layer.name + "' runs beside " +
                                   std::to_string(before[l] + own[g]) + room};
  }
  return std::nullopt;
}

std::optional<Fault> reprise::verify::checkBound(const Claims &claims) {
  if (std::optional<Fault> fault = checkMoments(claims))
    return fault;
  std::vector<std::vector<bool>> needed = getNeeded(claims);
  if (std::optional<Fault> fault = checkKept(claims, needed))
    return fault;
  std::map<Priced, std::optional<double>> known;
  double sum = 0, scale = claims.step;
  for (size_t l = 0; l < claims.layers.size(); ++l) {
    const Layer &layer = claims.layers[l];
    const Class &kind = claims.classOf(l);
    Priced priced = getPriced(claims, l, needed[l]);
    auto [found, isNew] = known.emplace(priced, std::nullopt);
    if (isNew)
      found->second = search(kind, priced);
    if (!found->second)
      return Fault{kind.at, "class '" + kind.name + "' has more than " +
                                std::to_string(kMostStates) +
                                " sets of tensors that may be needed, too many "
                                "to go through"};
    double minimum = *found->second;
    if (!isNear(minimum, layer.minimum, minimum)) {
      auto [wanted, got] = formatSeconds(minimum, layer.minimum);
      return Fault{layer.minimumAt, "the least price of '" + layer.name +
                                        "' is " + wanted + ", but got " + got};
    }
    sum += minimum;
    scale += minimum;
  }
  int64_t available = claims.budget;
  if (!claims.isOfActivations)
    available -= claims.base;
  for (const Moment &moment : claims.moments) {
    double bytes = available;
    if (moment.layer < int64_t(claims.layers.size()))
      bytes -= claims.classOf(moment.layer).backward[moment.gradient].bytes;
    sum -= moment.secondsPerByte * bytes;
    scale += moment.secondsPerByte * std::abs(bytes);
  }
  double bound = std::max(sum, 0.0) * claims.microBatches;
  // What makes a bound above zero is no more than a step; a budget out of all
  // proportion must not make room for other bounds.
  scale = std::min(scale, claims.step / claims.microBatches);
  if (!isNear(bound, claims.bound, scale * claims.microBatches)) {
    auto [wanted, got] = formatSeconds(bound, claims.bound);
    return Fault{claims.boundAt, "the bound is " + wanted + ", but got " + got};
  }
  // Follows from all checks before, unless one of them is wrong.
  if (claims.bound > claims.replay &&
      !isNear(claims.bound, claims.replay, scale * claims.microBatches)) {
    auto [bound, replays] = formatSeconds(claims.bound, claims.replay);
    return Fault{claims.boundAt, "the bound of " + bound + " is above the " +
                                     replays + " of the plan's replays"};
  }
  return std::nullopt;
}
