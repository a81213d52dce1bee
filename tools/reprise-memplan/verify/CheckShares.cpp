//===- CheckShares.cpp - What the stages of a pipeline need ---------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Schedule.h"

#include <tuple>

using namespace reprise::verify;

std::optional<Fault> reprise::verify::checkInFlight(const Pipeline &pipeline,
                                                    const Schedule &schedule) {
  std::vector<int64_t> inFlight = schedule.getInFlight();
  for (size_t c = 0; c < pipeline.chunks.size(); ++c)
    for (const Layer &layer : pipeline.chunks[c].claims.layers)
      if (layer.inFlight != inFlight[c])
        return Fault{layer.at, "'" + layer.name + "' of chunk " +
                                   std::to_string(c) + " has " +
                                   std::to_string(inFlight[c]) +
                                   " micro-batches in flight on the schedule "
                                   "of its pipeline, but got " +
                                   std::to_string(layer.inFlight)};
  return std::nullopt;
}

std::optional<Fault>
reprise::verify::placePricedTasks(Pipeline &pipeline,
                                  const Schedule &schedule) {
  // Each priced task is looked at from each chunk of its stage.
  constexpr int64_t kMostLooks = int64_t(1) << 26;
  int64_t looks = 0;
  for (const std::vector<PricedTask> &tasks : *pipeline.pricedTasks)
    for (const PricedTask &priced : tasks)
      if ((looks += pipeline.virtualStages) > kMostLooks)
        return Fault{priced.at, "needs at most " + std::to_string(kMostLooks) +
                                    " priced tasks times virtual stages, but "
                                    "with this one they come to " +
                                    std::to_string(looks)};
  std::vector<MeanTask> means(pipeline.chunks.size());
  for (int64_t s = 0; s < pipeline.stages; ++s) {
    std::vector<double> weights(schedule.countTasks(s));
    double sum = 0;
    for (const PricedTask &priced : (*pipeline.pricedTasks)[s]) {
      if (priced.task >= int64_t(weights.size()))
        return Fault{priced.at, "needs a task out of the " +
                                    std::to_string(weights.size()) +
                                    " of stage " + std::to_string(s) +
                                    ", but got " + std::to_string(priced.task)};
      weights[priced.task] += priced.weight;
      sum += priced.weight;
      if (sum > 1 + 1e-12)
        return Fault{priced.at, "needs weights of the priced tasks of stage " +
                                    std::to_string(s) +
                                    " that add up to 1 at most, but with this "
                                    "one they come to " +
                                    std::to_string(sum)};
    }
    std::vector<int64_t> now(pipeline.virtualStages);
    for (size_t t = 0; t < weights.size(); ++t) {
      const Task &task = schedule.getTask(s, t);
      int64_t &running = now[task.chunk / pipeline.stages];
      running += !task.isBackward;
      if (task.isBackward)
        means[task.chunk].running += weights[t];
      for (size_t v = 0; v < now.size() && weights[t] > 0; ++v)
        means[v * pipeline.stages + s].inFlight += weights[t] * double(now[v]);
      running -= task.isBackward;
    }
  }
  for (size_t c = 0; c < means.size(); ++c)
    for (PricedPoint &point : pipeline.chunks[c].claims.points)
      point.mean = means[c];
  return std::nullopt;
}

__int128 reprise::verify::getNeed(const Pipeline &pipeline,
                                  const Schedule &schedule, int64_t stage) {
  std::vector<__int128> kept, work; // by virtual stage
  for (int64_t v = 0; v < pipeline.virtualStages; ++v) {
    const Claims &claims = pipeline.chunks[v * pipeline.stages + stage].claims;
    kept.push_back(getKeptBytes(claims));
    work.push_back(claims.peak - getBytesInFlight(claims));
  }
  __int128 most = 0, now = 0;
  for (size_t t = 0; t < schedule.countTasks(stage); ++t) {
    const Task &task = schedule.getTask(stage, t);
    int64_t v = task.chunk / pipeline.stages;
    if (!task.isBackward)
      now += kept[v];
    most = std::max(most, now - kept[v] + work[v]);
    if (task.isBackward)
      now -= kept[v];
  }
  return most + pipeline.base[stage] + pipeline.beside[stage];
}

/// A chunk is one of a pipeline's step, of one model on one machine.
static std::optional<Fault> checkChunk(const Pipeline &pipeline, size_t c) {
  const Claims &first = pipeline.chunks.front().claims;
  const Claims &claims = pipeline.chunks[c].claims;
  std::string chunk = "chunk " + std::to_string(c);
  if (!claims.isOfActivations || claims.base != 0)
    return Fault{pipeline.chunks[c].at,
                 chunk + " needs a budget of activations, and nothing that "
                         "outlives the step"};
  if (claims.microBatches != pipeline.microBatches)
    return Fault{pipeline.chunks[c].at,
                 chunk + " needs the " + std::to_string(pipeline.microBatches) +
                     " micro-batches of its pipeline, but got " +
                     std::to_string(claims.microBatches)};
  for (auto [what, name, firstName] :
       {std::tuple("model", &claims.model, &first.model),
        std::tuple("machine", &claims.machine, &first.machine)})
    if (*name != *firstName)
      return Fault{pipeline.chunks[c].at,
                   chunk + " needs the " + what + " '" + *firstName +
                       "' of chunk 0, but got '" + *name + "'"};
  return std::nullopt;
}

static std::string print(__int128 bytes) {
  return std::to_string(int64_t(std::min<__int128>(bytes, INT64_MAX)));
}

std::optional<Fault> reprise::verify::checkShares(const Pipeline &pipeline,
                                                  const Schedule &schedule) {
  std::vector<__int128> needs(pipeline.base.begin(), pipeline.base.end());
  std::vector<__int128> shares = needs;
  for (int64_t s = 0; s < pipeline.stages; ++s)
    needs[s] += pipeline.beside[s];
  for (size_t c = 0; c < pipeline.chunks.size(); ++c) {
    if (std::optional<Fault> fault = checkChunk(pipeline, c))
      return fault;
    needs[c % pipeline.stages] += pipeline.chunks[c].claims.peak;
    shares[c % pipeline.stages] += pipeline.chunks[c].claims.budget;
  }
  for (int64_t s = 0; s < pipeline.stages; ++s) {
    __int128 need =
        pipeline.pricedTasks ? getNeed(pipeline, schedule, s) : needs[s];
    if (need > pipeline.budget)
      return Fault{pipeline.chunks[s].at, "stage " + std::to_string(s) +
                                              " needs " + print(need) +
                                              " bytes, but the budget is " +
                                              std::to_string(pipeline.budget)};
  }
  for (size_t c = 0; c < pipeline.chunks.size() && pipeline.pricedTasks; ++c)
    if (int64_t left = pipeline.budget - pipeline.base[c % pipeline.stages];
        pipeline.chunks[c].claims.budget != left)
      return Fault{pipeline.chunks[c].at,
                   "chunk " + std::to_string(c) + " needs the " +
                       std::to_string(left) +
                       " bytes that its stage has for a step as its budget, "
                       "but got " +
                       std::to_string(pipeline.chunks[c].claims.budget)};
  for (int64_t s = 0; s < pipeline.stages && !pipeline.pricedTasks; ++s)
    if (shares[s] > pipeline.budget)
      return Fault{pipeline.chunks[s].at,
                   "the budgets of stage " + std::to_string(s) +
                       "'s chunks come to " + print(shares[s]) +
                       " bytes with what outlives its step, but the budget of "
                       "the stage is " +
                       std::to_string(pipeline.budget)};
  return std::nullopt;
}
