//===- CheckPlan.cpp - What layers keep, replay and pay -------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Claims.h"

#include <cmath>
#include <cstdio>
#include <map>

using namespace reprise::verify;

bool reprise::verify::isNear(double left, double right, double scale) {
  return std::abs(left - right) <= 1e-11 * scale;
}

std::string reprise::verify::formatSeconds(double seconds) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g s", seconds);
  return text;
}

std::pair<std::string, std::string>
reprise::verify::formatSeconds(double left, double right) {
  std::pair<std::string, std::string> texts = {formatSeconds(left),
                                               formatSeconds(right)};
  if (left == right || texts.first != texts.second)
    return texts;
  for (auto [seconds, text] :
       {std::pair(left, &texts.first), std::pair(right, &texts.second)}) {
    char digits[40];
    std::snprintf(digits, sizeof digits, "%.17g s", seconds);
    *text = digits;
  }
  return texts;
}

namespace {
/// The plan of all layers: what backward finds and what runs again.
class PlanChecker {
public:
  explicit PlanChecker(const Claims &claims);

  std::optional<Fault> check() const;

private:
  /// What is wrong with reading these values in layer `l`; `reader` does.
  std::optional<Fault> checkReads(int64_t l, const Reads &reads,
                                  const std::string &reader) const;
  std::optional<Fault> checkTensor(Source source,
                                   const std::string &reader) const;

  const Claims &claims;
  std::vector<std::vector<bool>> isKept, isReplayed;
};
} // namespace

PlanChecker::PlanChecker(const Claims &claims) : claims(claims) {
  for (size_t l = 0; l < claims.layers.size(); ++l) {
    const Layer &layer = claims.layers[l];
    isKept.emplace_back(claims.classOf(l).tensors.size());
    isReplayed.emplace_back(claims.classOf(l).ops.size());
    for (const Ref &kept : layer.keeps)
      isKept[l][kept.index] = true;
    for (const Ref &replay : layer.replays)
      isReplayed[l][replay.index] = true;
  }
}

std::optional<Fault> PlanChecker::checkTensor(Source source,
                                              const std::string &reader) const {
  const Tensor &tensor = claims.classOf(source.layer).tensors[source.tensor];
  if (isKept[source.layer][source.tensor] ||
      isReplayed[source.layer][tensor.writer])
    return std::nullopt;
  const Layer &layer = claims.layers[source.layer];
  return Fault{layer.at, reader + " reads '" + tensor.name + "' of '" +
                             layer.name +
                             "', which is neither kept nor replayed"};
}

std::optional<Fault> PlanChecker::checkReads(int64_t l, const Reads &reads,
                                             const std::string &reader) const {
  for (int64_t tensor : reads.tensors)
    if (auto fault = checkTensor({l, tensor}, reader))
      return fault;
  for (int64_t input : reads.inputs)
    if (auto fault = checkTensor(claims.layers[l].inputs[input], reader))
      return fault;
  return std::nullopt;
}

std::optional<Fault> PlanChecker::check() const {
  for (size_t l = 0; l < claims.layers.size(); ++l) {
    const Layer &layer = claims.layers[l];
    const Class &kind = claims.classOf(l);
    if (layer.inFlight > claims.microBatches)
      return Fault{layer.at, "'" + layer.name + "' has " +
                                 std::to_string(layer.inFlight) +
                                 " micro-batches in flight, but a step has " +
                                 std::to_string(claims.microBatches)};
    for (const Ref &kept : layer.keeps)
      if (kind.tensors[kept.index].rule == Rule::Drop)
        return Fault{kept.at, "'" + layer.name + "' keeps '" +
                                  kind.tensors[kept.index].name +
                                  "', against its rule"};
    for (size_t t = 0; t < kind.tensors.size(); ++t)
      if (kind.tensors[t].rule == Rule::Keep && !isKept[l][t])
        return Fault{layer.at, "'" + layer.name + "' does not keep '" +
                                   kind.tensors[t].name +
                                   "', against its rule"};
    for (const Gradient &gradient : kind.backward)
      if (auto fault =
              checkReads(l, gradient.reads,
                         "'" + gradient.name + "' of '" + layer.name + "'"))
        return fault;
    for (const Ref &replay : layer.replays) {
      const Op &op = kind.ops[replay.index];
      if (!op.canReplay)
        return Fault{replay.at, "op '" + op.name + "' of '" + layer.name +
                                    "' cannot run again"};
      if (auto fault = checkReads(l, op.reads,
                                  "the replay of '" + op.name + "' of '" +
                                      layer.name + "'"))
        return fault;
    }
  }
  return std::nullopt;
}

/// The schedule replays what the layers say, each op once.
static std::optional<Fault> checkReplays(const Claims &claims) {
  std::map<std::pair<int64_t, int64_t>, size_t> wanted;
  for (size_t l = 0; l < claims.layers.size(); ++l)
    for (const Ref &replay : claims.layers[l].replays)
      wanted[{l, replay.index}] = replay.at;
  auto describe = [&](int64_t layer, int64_t op) {
    return "'" + claims.classOf(layer).ops[op].name + "' of '" +
           claims.layers[layer].name + "'";
  };
  for (size_t p = 0; p < claims.schedule.size(); ++p)
    for (const ReplayRef &replay : claims.schedule[p].replays)
      if (!wanted.erase({replay.layer, replay.op}))
        return Fault{replay.at,
                     "position " + std::to_string(p) + " replays " +
                         describe(replay.layer, replay.op) +
                         ", which the layer does not list or which ran again "
                         "before"};
  if (wanted.empty())
    return std::nullopt;
  auto [key, at] = *wanted.begin();
  return Fault{at, "no position of the schedule replays " +
                       describe(key.first, key.second)};
}

double reprise::verify::getMicroBatchSeconds(const Claims &claims) {
  double seconds = 0;
  for (const Launch &launch : claims.schedule)
    seconds += launch.isUpdate ? 0 : launch.seconds;
  return seconds;
}

static std::optional<Fault> checkTimes(const Claims &claims) {
  double replay = 0, step = 0;
  for (size_t l = 0; l < claims.layers.size(); ++l)
    for (const Ref &op : claims.layers[l].replays)
      replay += claims.classOf(l).ops[op.index].seconds * claims.microBatches;
  for (const Launch &launch : claims.schedule)
    step += launch.seconds * (launch.isUpdate ? 1 : claims.microBatches);
  if (!isNear(replay, claims.replay, replay)) {
    auto [wanted, got] = formatSeconds(replay, claims.replay);
    return Fault{claims.replayAt,
                 "replays take " + wanted + " in all, but got " + got};
  }
  if (!isNear(step, claims.step, step)) {
    auto [wanted, got] = formatSeconds(step, claims.step);
    return Fault{claims.stepAt, "the schedule takes " + wanted +
                                    " without replays, but got " + got};
  }
  return std::nullopt;
}

std::optional<Fault> reprise::verify::checkPlan(const Claims &claims) {
  if (auto fault = PlanChecker(claims).check())
    return fault;
  if (auto fault = checkReplays(claims))
    return fault;
  return checkTimes(claims);
}
