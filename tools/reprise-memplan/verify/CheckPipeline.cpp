//===- CheckPipeline.cpp - What stages replay, and when they end ----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Schedule.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace reprise::verify;

/// More tasks of all paths are not gone through, with those of each chunk that
/// are counted for each path.
static constexpr int64_t kMostPathTasks = int64_t(1) << 26;

static Times getTimes(const Claims &claims, double replays) {
  size_t numForward = countForward(claims);
  Times times = {0, replays};
  for (size_t p = 0; p < claims.schedule.size(); ++p)
    if (!claims.schedule[p].isUpdate)
      (p < numForward ? times.forward : times.backward) +=
          claims.schedule[p].seconds;
  return times;
}

namespace {
/// What the replays of a stage take at least of a micro-batch.
struct StageReplays {
  std::vector<double> forced; ///< by chunk, with any part of the budget
  /// Of the other chunks, for which bytes have a price, together.
  double shared = 0;
  std::vector<bool> isPriced;
};
} // namespace

/// A chunk that has b bytes, in the mean of the priced tasks, replays for its
/// layers' least prices less the price of b at least. All of the budget goes
/// where it saves most.
static StageReplays getStageReplays(const Pipeline &pipeline,
                                    const std::vector<Line> &lines,
                                    int64_t stage) {
  std::vector<Line> shares;
  StageReplays all;
  for (size_t c = stage; c < lines.size(); c += pipeline.stages) {
    // Where bytes have no price, what must run again does so with any number.
    bool isPriced = lines[c].slope > 0;
    all.isPriced.push_back(isPriced);
    all.forced.push_back(isPriced ? 0 : lines[c].most);
    if (isPriced)
      shares.push_back(lines[c]);
  }
  std::sort(shares.begin(), shares.end(),
            [](const Line &a, const Line &b) { return a.slope > b.slope; });
  double bytes = pipeline.budget - pipeline.base[stage];
  for (const Line &share : shares) {
    double given = std::min(bytes, share.most / share.slope);
    bytes -= given;
    all.shared += share.most - given * share.slope;
  }
  // With one chunk there is nothing to share out: it has its own bound.
  const Claims &only = pipeline.chunks[stage].claims;
  if (pipeline.virtualStages == 1 && all.isPriced[0] &&
      only.budget == pipeline.budget - pipeline.base[stage])
    all.shared = only.bound / only.microBatches;
  return all;
}

static double getStageBound(const Pipeline &pipeline,
                            const std::vector<Line> &lines, int64_t stage) {
  StageReplays replays = getStageReplays(pipeline, lines, stage);
  double bound = replays.shared;
  for (double forced : replays.forced)
    bound += forced;
  return bound;
}

/// No step is shorter than a path through its tasks, nor than a mean of paths.
/// Of a mean that has so many backward tasks of each chunk, what chunks of a
/// stage replay together counts as often as that of which there are fewest.
static double getSpanBound(const Pipeline &pipeline,
                           const std::vector<Line> &lines,
                           const Schedule &schedule) {
  std::vector<Times> counts(pipeline.chunks.size());
  for (const Path &path : pipeline.paths) {
    if (path.weight == 0)
      continue;
    std::vector<Times> own = schedule.countTasks(path);
    for (size_t c = 0; c < counts.size(); ++c) {
      counts[c].forward += path.weight * own[c].forward;
      counts[c].backward += path.weight * own[c].backward;
    }
  }
  double bound = 0;
  for (size_t c = 0; c < counts.size(); ++c) {
    Times bare = getTimes(pipeline.chunks[c].claims, 0);
    bound +=
        counts[c].forward * bare.forward + counts[c].backward * bare.backward;
  }
  for (int64_t s = 0; s < pipeline.stages; ++s) {
    StageReplays replays = getStageReplays(pipeline, lines, s);
    double fewest = HUGE_VAL;
    for (int64_t v = 0; v < pipeline.virtualStages; ++v) {
      double count = counts[v * pipeline.stages + s].backward;
      bound += count * replays.forced[v];
      if (replays.isPriced[v])
        fewest = std::min(fewest, count);
    }
    if (replays.shared > 0)
      bound += fewest * replays.shared;
  }
  return bound;
}

static std::optional<Fault> checkPaths(const Pipeline &pipeline,
                                       const Schedule &schedule) {
  double sum = 0;
  int64_t tasks = 0;
  for (const Path &path : pipeline.paths) {
    if (std::optional<Fault> fault = schedule.check(path))
      return fault;
    sum += path.weight;
    if (path.weight > 0)
      tasks += pipeline.chunks.size();
    if (path.weight > 0)
      for (const PathPart &part : path.parts)
        tasks += part.last - part.first + 1;
    if (tasks > kMostPathTasks)
      return Fault{path.at, "needs at most " + std::to_string(kMostPathTasks) +
                                " tasks and chunks on all paths, but with this "
                                "one they come to " +
                                std::to_string(tasks)};
    if (sum > 1 + 1e-12)
      return Fault{path.at, "needs weights of paths that add up to 1 at most, "
                            "but with this one they come to " +
                                std::to_string(sum)};
  }
  return std::nullopt;
}

/// What forward and backward of each chunk take, with its replays.
static std::vector<Times> getTimesOfChunks(const Pipeline &pipeline) {
  std::vector<Times> times;
  for (const Chunk &chunk : pipeline.chunks)
    times.push_back(
        getTimes(chunk.claims, chunk.claims.replay / pipeline.microBatches));
  return times;
}

/// That the schedule takes as long as is said, and would without the replays
/// that are said to cost nothing.
static std::optional<Fault> checkSpan(const Pipeline &pipeline,
                                      const Schedule &schedule) {
  std::vector<Times> times = getTimesOfChunks(pipeline);
  double span = schedule.getSpan(times);
  if (!isNear(span, pipeline.span, span)) {
    auto [wanted, got] = formatSeconds(span, pipeline.span);
    return Fault{pipeline.spanAt,
                 "the schedule takes " + wanted + ", but got " + got};
  }
  for (size_t c = 0; c < pipeline.chunks.size(); ++c) {
    const Chunk &chunk = pipeline.chunks[c];
    double replays = chunk.claims.replay / pipeline.microBatches;
    if (chunk.slack > replays && !isNear(chunk.slack, replays, replays)) {
      auto [all, slack] = formatSeconds(replays, chunk.slack);
      return Fault{chunk.slackAt, "chunk " + std::to_string(c) + " replays " +
                                      all + " of a micro-batch, but " + slack +
                                      " of them are for nothing"};
    }
    times[c].backward -= chunk.slack;
  }
  double without = schedule.getSpan(times);
  if (!isNear(without, span, span)) {
    auto [less, all] = formatSeconds(without, span);
    return Fault{
        pipeline.spanAt,
        "the schedule takes " + less +
            " without the replays that are said to cost nothing, but " + all +
            " with them"};
  }
  return std::nullopt;
}

static std::optional<Fault> checkSpanBound(const Pipeline &pipeline,
                                           const std::vector<Line> &lines,
                                           const Schedule &schedule) {
  double bound = getSpanBound(pipeline, lines, schedule);
  if (!isNear(bound, pipeline.bound, bound)) {
    auto [wanted, got] = formatSeconds(bound, pipeline.bound);
    return Fault{pipeline.boundAt,
                 "no plans take less than " + wanted +
                     " by the bounds of the stages and the paths, but got " +
                     got};
  }
  // Follows from all checks before, unless one of them is wrong.
  double span = schedule.getSpan(getTimesOfChunks(pipeline));
  if (bound > span && !isNear(bound, span, span)) {
    auto [least, all] = formatSeconds(bound, span);
    return Fault{pipeline.boundAt, "the bound of " + least + " is above the " +
                                       all + " of the schedule"};
  }
  return std::nullopt;
}

/// What stages replay at least, which is no more than they do.
static std::optional<Fault> checkStages(const Pipeline &pipeline,
                                        const std::vector<Line> &lines,
                                        const Schedule &schedule,
                                        CertificateFigures &figures) {
  for (int64_t s = 0; s < pipeline.stages; ++s) {
    CertificateFigures &stage = figures.stages[s];
    stage.bound = getStageBound(pipeline, lines, s);
    double scale = 0;
    for (size_t c = s; c < pipeline.chunks.size(); c += pipeline.stages)
      scale += getMicroBatchSeconds(pipeline.chunks[c].claims);
    if (stage.bound > stage.replay &&
        !isNear(stage.bound, stage.replay, scale)) {
      auto [least, all] = formatSeconds(stage.bound, stage.replay);
      return Fault{pipeline.chunks[s].at,
                   "the bound of stage " + std::to_string(s) + ", " + least +
                       ", is above the " + all + " that it replays"};
    }
    stage.base = pipeline.base[s];
    stage.beside = pipeline.beside[s];
    stage.peak += pipeline.base[s] + stage.beside;
    if (pipeline.pricedTasks)
      stage.peak = getNeed(pipeline, schedule, s);
  }
  return std::nullopt;
}

/// Adds what there is in a chunk.
static void addCounts(const CertificateFigures &chunk,
                      CertificateFigures &sum) {
  for (auto count :
       {&CertificateFigures::layers, &CertificateFigures::buffers,
        &CertificateFigures::positions, &CertificateFigures::replays,
        &CertificateFigures::points, &CertificateFigures::peak,
        &CertificateFigures::keepRules, &CertificateFigures::dropRules,
        &CertificateFigures::fixedOps})
    sum.*count += chunk.*count;
}

/// What each chunk claims by itself.
static std::optional<Fault> checkChunks(const Pipeline &pipeline,
                                        std::vector<Line> &lines,
                                        CertificateFigures &figures) {
  figures.stages.resize(pipeline.stages);
  std::set<std::string> layers;
  Effort left;
  for (size_t c = 0; c < pipeline.chunks.size(); ++c) {
    const Chunk &chunk = pipeline.chunks[c];
    CertificateFigures own;
    if (auto fault = checkClaims(chunk.claims, own, lines[c], left))
      return fault;
    figures.model = own.model;
    figures.under = own.under;
    figures.machine = own.machine;
    CertificateFigures &stage = figures.stages[c % pipeline.stages];
    addCounts(own, stage);
    addCounts(own, figures);
    stage.step += own.step / pipeline.microBatches;
    stage.replay += own.replay / pipeline.microBatches;
    stage.slack += chunk.slack;
    stage.inFlight.push_back(chunk.claims.layers[0].inFlight);
    // What is before the first layer of a chunk, and behind the last, is in all
    // chunks, under one name.
    for (const Layer &layer : chunk.claims.layers)
      layers.insert(layer.name);
  }
  figures.layers = layers.size();
  return std::nullopt;
}

std::optional<Fault>
reprise::verify::checkPipeline(Pipeline &pipeline,
                               CertificateFigures &figures) {
  Schedule schedule(pipeline);
  if (std::optional<Fault> fault = checkInFlight(pipeline, schedule))
    return fault;
  if (!schedule.sort())
    return Fault{pipeline.spanAt, "stages wait for each other forever with " +
                                      std::to_string(pipeline.microBatches) +
                                      " micro-batches"};
  if (std::optional<Fault> fault = checkShares(pipeline, schedule))
    return fault;
  if (pipeline.pricedTasks)
    if (std::optional<Fault> fault = placePricedTasks(pipeline, schedule))
      return fault;
  std::vector<Line> lines(pipeline.chunks.size());
  if (std::optional<Fault> fault = checkChunks(pipeline, lines, figures))
    return fault;
  if (std::optional<Fault> fault = checkSpan(pipeline, schedule))
    return fault;
  if (std::optional<Fault> fault = checkPaths(pipeline, schedule))
    return fault;
  if (std::optional<Fault> fault = checkSpanBound(pipeline, lines, schedule))
    return fault;
  if (std::optional<Fault> fault =
          checkStages(pipeline, lines, schedule, figures))
    return fault;
  figures.budget = pipeline.budget;
  figures.microBatches = pipeline.microBatches;
  figures.span = pipeline.span;
  figures.spanBound = pipeline.bound;
  return std::nullopt;
}
