//===- SpanBound.cpp - How long a pipeline's step takes at least ----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The bound knows the least replays of a stage, not which of its chunks
// replays. A step is no shorter than any path through the schedule, nor than a
// mean of paths. The best mean is the solution of a linear program:
//
//   symbol    meaning
//   q         a path
//   c, s      a chunk, a stage
//   M         micro-batches
//   T[q]      seconds of the path without the replays R
//   B[q][c]   backward passes of c on the path (PathCounts::whole)
//   R[s]      the least replays of a micro-batch on s (StageReplays::shared)
//   w[q]      the weight of a path in the mean
//   r[s]      parts of the micro-batches whose R[s] the bound counts
//
//   maximize  sum of T[q] w[q] + sum of M R[s] r[s],   w, r >= 0
//   row c     r[s] <= sum of B[q][c] w[q] / M,   c of s, with a price of bytes
//   last row  sum of w[q] <= 1
//
// The columns, as `Simplex` has them:
//
//             r[s]            w[q]            limit
//   row c     1 if c is of s  -B[q][c] / M    0, nudged
//   last row  0               1               1
//   gain      M R[s]          T[q]
//
// The dual values of the rows, by M, are replays of the chunks with which the
// longest path is shortest, and that of the last row is its length. So paths
// are found one by one, each as the longest for the present dual values
// (Dantzig and Wolfe, Operations Research 8, 1960).
//
//===----------------------------------------------------------------------===//

#include "Simplex.h"
#include "reprise/Solver/Certificate.h"

#include <algorithm>
#include <cmath>

using namespace reprise::solver;

namespace {
/// Searches the mean of paths with the highest bound.
class PathSearch {
public:
  explicit PathSearch(const PipelineCertificate &certificate);

  /// The best mean that was found.
  std::vector<PipelineCertificate::Path> run();
  /// The bound of a mean: sum of T w, and of R times its least B w.
  double prove(const std::vector<PipelineCertificate::Path> &paths) const;

private:
  /// Adds the longest path for these replays of the chunks, unless it is no
  /// longer than `length`.
  bool addPath(const std::vector<double> &replays, double length);
  std::vector<PipelineCertificate::Path> getBest() const;
  /// What a path takes on a chunk beside shared replays.
  double getBareSeconds(const PathCounts &counts, size_t chunk) const {
    const ChunkTimes &own = times[chunk];
    return counts.forward[chunk] * own.forward +
           counts.backward[chunk] * own.backward +
           counts.weight[chunk] * own.weight +
           counts.whole[chunk] * forced[chunk];
  }

  const PipelineShape &shape;
  PipelineSchedule schedule;
  std::vector<ChunkTimes> times; ///< without replays
  std::vector<double> forced;    ///< replays, by chunk, with any plan
  std::vector<double> shared;    ///< R, by stage
  std::vector<bool> isPriced;    ///< chunks
  Simplex program;
  std::vector<TaskPath> paths;
};
} // namespace

/// The limits of the rows. Limits of 0 alone would make steps that lead
/// nowhere.
static std::vector<double> getLimits(size_t numChunks) {
  std::vector<double> limits;
  constexpr double kNudge = 1e-12;
  for (size_t c = 0; c < numChunks; ++c)
    limits.push_back(kNudge * double(1 + (c * 7919) % 1009));
  limits.push_back(1);
  return limits;
}

PathSearch::PathSearch(const PipelineCertificate &certificate)
    : shape(certificate.shape), schedule(simulate(shape)),
      forced(certificate.chunks.size()), isPriced(certificate.chunks.size()),
      program(getLimits(certificate.chunks.size())) {
  for (const PipelineCertificate::Chunk &chunk : certificate.chunks) {
    times.push_back(getTimes(chunk));
    times.back().backward -= chunk.certificate.replaySeconds /
                             double(chunk.certificate.microBatches);
  }
  for (int64_t stage = 0; stage < shape.stages; ++stage) {
    StageReplays replays = getStageReplays(certificate, stage);
    shared.push_back(replays.shared);
    Simplex::Column column = {std::vector<double>(times.size() + 1),
                              replays.shared * double(shape.microBatches)};
    for (int64_t v = 0; v < shape.virtualStages; ++v) {
      int64_t chunk = v * shape.stages + stage;
      forced[chunk] = replays.forced[v];
      isPriced[chunk] = replays.isPriced[v];
      column.entries[chunk] = replays.isPriced[v];
    }
    program.columns.push_back(std::move(column));
  }
}

bool PathSearch::addPath(const std::vector<double> &replays, double length) {
  std::vector<ChunkTimes> all = times;
  for (size_t c = 0; c < all.size(); ++c)
    all[c].backward += forced[c] + replays[c];
  TaskPath path = findLongestPath(shape, schedule, all);
  PathCounts counts = countTasks(shape, schedule, path);
  Simplex::Column column = {std::vector<double>(times.size() + 1), 0};
  double own = 0;
  for (size_t c = 0; c < times.size(); ++c) {
    column.gain += getBareSeconds(counts, c);
    own += counts.whole[c] * replays[c];
    if (isPriced[c])
      column.entries[c] = -counts.whole[c] / double(shape.microBatches);
  }
  column.entries.back() = 1;
  if (column.gain + own <= length)
    return false;
  program.columns.push_back(std::move(column));
  paths.push_back(std::move(path));
  return true;
}

double
PathSearch::prove(const std::vector<PipelineCertificate::Path> &found) const {
  double bound = 0;
  std::vector<double> weights(times.size());
  for (const PipelineCertificate::Path &path : found) {
    PathCounts counts = countTasks(shape, schedule, path.tasks);
    for (size_t c = 0; c < times.size(); ++c) {
      bound += path.weight * getBareSeconds(counts, c);
      weights[c] += path.weight * counts.whole[c];
    }
  }
  for (int64_t stage = 0; stage < shape.stages; ++stage) {
    double least = HUGE_VAL;
    for (size_t c = stage; c < weights.size(); c += shape.stages)
      if (isPriced[c])
        least = std::min(least, weights[c]);
    if (shared[stage] > 0)
      bound += shared[stage] * least;
  }
  return bound;
}

std::vector<PipelineCertificate::Path> PathSearch::getBest() const {
  std::vector<double> values = program.getValues();
  std::vector<PipelineCertificate::Path> best;
  double sum = 0;
  constexpr double kLeast = 1e-7;
  for (size_t p = 0; p < paths.size(); ++p)
    if (double weight = values[shape.stages + p]; weight > kLeast) {
      best.push_back({weight, paths[p]});
      sum += weight;
    }
  for (PipelineCertificate::Path &path : best)
    path.weight /= sum;
  return best;
}

std::vector<PipelineCertificate::Path> PathSearch::run() {
  // Any mean is a bound: with too many tasks to go through often, the search
  // ends sooner.
  constexpr int64_t kMostTasks = int64_t(1) << 26, kMostPaths = 400;
  int64_t tasks = 2 * int64_t(times.size()) * shape.microBatches;
  int64_t mostPaths = std::clamp<int64_t>(kMostTasks / tasks, 8, kMostPaths);
  int64_t mostSteps = 50 * int64_t(times.size() + 1);
  // The first path is for equal replays of a stage's chunks.
  std::vector<double> replays(times.size());
  for (size_t c = 0; c < times.size(); ++c)
    if (isPriced[c])
      replays[c] = shared[c % shape.stages] / double(shape.virtualStages);
  double length = -1;
  while (int64_t(paths.size()) < mostPaths && addPath(replays, length)) {
    program.solve(mostSteps);
    std::vector<double> duals = program.getDuals();
    for (size_t c = 0; c < times.size(); ++c)
      replays[c] = isPriced[c]
                       ? std::max(duals[c], 0.0) / double(shape.microBatches)
                       : 0;
    length = duals.back() * (1 + 1e-10);
  }
  return getBest();
}

double reprise::solver::getSpan(const PipelineCertificate &certificate) {
  std::vector<ChunkTimes> times;
  for (const PipelineCertificate::Chunk &chunk : certificate.chunks)
    times.push_back(getTimes(chunk));
  return getSpan(certificate.shape, simulate(certificate.shape), times);
}

void reprise::solver::computeSpans(PipelineCertificate &certificate) {
  certificate.spanSeconds = getSpan(certificate);
  PathSearch search(certificate);
  certificate.paths = search.run();
  // An optimum may come out above itself, by rounding.
  certificate.lowerBoundSeconds =
      std::min(search.prove(certificate.paths), certificate.spanSeconds);
}
