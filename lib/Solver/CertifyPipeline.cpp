//===- CertifyPipeline.cpp - Certificates of the stages of a pipeline -----===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bound.h"
#include "reprise/Solver/Budget.h"
#include "reprise/Solver/Packing.h"
#include "reprise/Solver/StageMoments.h"

#include <algorithm>
#include <cassert>
#include <map>

using namespace reprise::solver;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// What `certificate` keeps, of `getCount` micro-batches for each layer.
template <typename GetCount>
static int64_t getKeptBytes(const Certificate &certificate, GetCount getCount) {
  int64_t alignment = 1, bytes = 0;
  for (const CertifiedBuffer &buffer : certificate.buffers)
    alignment = std::max(alignment, buffer.alignment);
  for (const CertifiedLayer &layer : certificate.layers) {
    std::map<std::string, int64_t> bytesOf;
    for (const CertifiedTensor &tensor :
         certificate.classes[layer.kind].tensors)
      bytesOf[tensor.name] =
          (tensor.bytes + alignment - 1) / alignment * alignment;
    for (const std::string &kept : layer.keeps)
      bytes += getCount(layer) * bytesOf[kept];
  }
  return bytes;
}

int64_t reprise::solver::getBytesInFlight(const Certificate &certificate) {
  return ::getKeptBytes(certificate, [](const CertifiedLayer &layer) {
    return layer.inFlight - 1;
  });
}

int64_t reprise::solver::getStageNeed(const PipelineCertificate &certificate,
                                      int64_t stage) {
  const PipelineShape &shape = certificate.shape;
  if (shape.virtualStages == 1)
    return certificate.chunks[stage].certificate.peakBytes;
  std::vector<ChunkBytes> chunks;
  for (int64_t v = 0; v < shape.virtualStages; ++v) {
    const Certificate &chunk =
        certificate.chunks[v * shape.stages + stage].certificate;
    int64_t kept =
        ::getKeptBytes(chunk, [](const CertifiedLayer &) { return 1; });
    chunks.push_back({kept, chunk.peakBytes - getBytesInFlight(chunk)});
  }
  return getNeed(getMoments(simulate(shape)[stage], shape.virtualStages,
                            /*onlyBackward=*/false),
                 chunks);
}

static PackingProblem getPacking(const StepGraph &graph,
                                 const std::vector<StepBuffer> &buffers) {
  PackingProblem problem;
  problem.alignment = graph.alignment;
  for (const StepBuffer &buffer : buffers)
    problem.items.push_back(
        {buffer.value < 0 ? "workspace" : graph.values[buffer.value].name,
         buffer.first, buffer.last + 1, buffer.bytes});
  return problem;
}

void reprise::solver::certifyMemory(const StepGraph &graph,
                                    const KeptValues &kept,
                                    Certificate &certificate) {
  StepSimulator simulator(graph);
  const StepRun &run = simulator.run(kept);
  assert(run.schedule.size() == certificate.schedule.size() &&
         "the certificate is of this run");
  std::vector<StepBuffer> buffers = simulator.getBuffers();
  std::vector<StepTouch> touches = simulator.getTouches();
  std::vector<int64_t> lastTouch(buffers.size(), -1);
  for (size_t p = 0; p < touches.size(); ++p) {
    certificate.schedule[p].reads = touches[p].reads;
    certificate.schedule[p].writes = touches[p].writes;
    for (const std::vector<int64_t> *list :
         {&touches[p].reads, &touches[p].writes})
      for (int64_t buffer : *list)
        lastTouch[buffer] = p;
  }
  // What is there when the step ends is not touched for it.
  for (size_t b = 0; b < buffers.size(); ++b)
    if (lastTouch[b] < buffers[b].last)
      certificate.schedule[buffers[b].last].reads.push_back(b);
  PackingProblem problem = getPacking(graph, buffers);
  PackingResult packed = pack(problem);
  certificate.buffers.clear();
  for (size_t b = 0; b < buffers.size(); ++b)
    certificate.buffers.push_back({problem.items[b].name, buffers[b].bytes,
                                   graph.alignment, packed.solution.offsets[b],
                                   -1});
  certificate.baseBytes = 0;
  certificate.peakBytes = packed.solution.peak + getBytesInFlight(certificate);
}

int64_t reprise::solver::getPackedBytes(const StepGraph &graph,
                                        const KeptValues &kept) {
  StepSimulator simulator(graph);
  simulator.run(kept);
  return pack(getPacking(graph, simulator.getBuffers())).solution.peak;
}

bool reprise::solver::isPackedTight(const StepGraph &graph,
                                    const KeptValues &kept) {
  StepSimulator simulator(graph);
  int64_t peak = simulator.run(kept).peak;
  PackingOptions tight;
  tight.isAllOrNothing = true;
  return pack(getPacking(graph, simulator.getBuffers()), tight).solution.peak ==
         peak;
}

int64_t reprise::solver::getKeptBytes(const StepGraph &graph,
                                      const KeptValues &kept) {
  std::vector<int64_t> writer(graph.values.size(), -1);
  for (size_t op = 0; op < graph.ops.size(); ++op)
    for (int64_t value : graph.ops[op].writes)
      writer[value] = op;
  StepSimulator simulator(graph);
  std::vector<int64_t> reads; // Of whole values, with what these are made of.
  for (auto [op, isReplay] : simulator.run(kept).schedule)
    if (isReplay || graph.ops[op].phase != StepPhase::Forward)
      reads.insert(reads.end(), graph.ops[op].reads.begin(),
                   graph.ops[op].reads.end());
  std::vector<bool> isRead(graph.values.size());
  int64_t bytes = 0;
  while (!reads.empty()) {
    int64_t value = reads.back();
    reads.pop_back();
    if (isRead[value] || graph.values[value].outlives)
      continue;
    isRead[value] = true;
    bool isKept =
        kept[value] || graph.values[value].rule == StepValue::Rule::Keep;
    if (writer[value] >= 0) {
      if (graph.ops[writer[value]].phase == StepPhase::Forward && isKept)
        bytes += (graph.values[value].bytes + graph.alignment - 1) /
                 graph.alignment * graph.alignment;
      continue;
    }
    if (graph.values[value].isView) {
      reads.push_back(graph.values[value].whole);
      continue;
    }
    for (size_t part = 0; part < graph.values.size(); ++part)
      if (graph.values[part].whole == value && !graph.values[part].isView)
        reads.push_back(part);
  }
  return bytes;
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

/// The forward pass is what runs first: each op of each layer, once.
static int64_t countForward(const Certificate &certificate) {
  int64_t count = 0;
  for (const CertifiedLayer &layer : certificate.layers)
    count += certificate.classes[layer.kind].ops.size();
  return count;
}

ChunkTimes reprise::solver::getTimes(const Certificate &certificate) {
  int64_t numForward = countForward(certificate);
  ChunkTimes times;
  for (int64_t p = 0; p < int64_t(certificate.schedule.size()); ++p)
    if (!certificate.schedule[p].isUpdate)
      (p < numForward ? times.forward : times.backward) +=
          certificate.schedule[p].seconds;
  times.backward +=
      certificate.replaySeconds / double(certificate.microBatches);
  return times;
}

ChunkTimes reprise::solver::getTimes(const PipelineCertificate::Chunk &chunk) {
  ChunkTimes times = getTimes(chunk.certificate);
  times.backward -= chunk.weightSeconds;
  times.weight = chunk.weightSeconds;
  return times;
}

namespace {
/// The bound of a chunk's replays with a share of b bytes: max(most - slope b,
/// 0) seconds of a micro-batch.
struct Line {
  double most = 0, slope = 0;
};
} // namespace

static Line getLine(const Certificate &chunk) {
  Line line;
  for (const CertifiedLayer &layer : chunk.layers)
    line.most += layer.minimum;
  for (const PricedPoint &point : chunk.points) {
    line.slope += point.secondsPerByte;
    if (point.layer < int64_t(chunk.layers.size()))
      line.most += point.secondsPerByte * point.running *
                   double(chunk.classes[chunk.layers[point.layer].kind]
                              .backward[point.gradient]
                              .bytes);
  }
  return line;
}

/// The replays of the chunks of a stage that have so many bytes together.
static StageReplays getReplays(std::vector<Line> lines, double bytes) {
  StageReplays replays;
  for (const Line &line : lines) {
    // Without a price, replays are the same for any share.
    replays.isPriced.push_back(line.slope > 0);
    replays.forced.push_back(line.slope > 0 ? 0 : line.most);
  }
  // The best for the sum is to give to the steepest first.
  std::sort(lines.begin(), lines.end(),
            [](const Line &a, const Line &b) { return a.slope > b.slope; });
  for (const Line &line : lines) {
    if (line.slope == 0)
      break;
    double share = std::min(bytes, line.most / line.slope);
    bytes -= share;
    replays.shared += line.most - line.slope * share;
  }
  return replays;
}

StageReplays
reprise::solver::getStageReplays(const PipelineCertificate &certificate,
                                 int64_t stage) {
  std::vector<Line> lines;
  for (size_t c = stage; c < certificate.chunks.size();
       c += certificate.shape.stages)
    lines.push_back(getLine(certificate.chunks[c].certificate));
  int64_t bytes = certificate.budgetBytes - certificate.baseBytes[stage];
  StageReplays replays = getReplays(lines, double(bytes));
  // A chunk that has all of the bytes has its own bound, of whole choices.
  const Certificate &own = certificate.chunks[stage].certificate;
  if (lines.size() == 1 && replays.isPriced[0] && own.budgetBytes == bytes)
    replays.shared = own.lowerBoundSeconds / double(own.microBatches);
  return replays;
}

double reprise::solver::getStageBound(const PipelineCertificate &certificate,
                                      int64_t stage) {
  StageReplays replays = getStageReplays(certificate, stage);
  double bound = replays.shared;
  for (double forced : replays.forced)
    bound += forced;
  return bound;
}

//===----------------------------------------------------------------------===//
// Other budgets
//===----------------------------------------------------------------------===//

namespace {
/// What was found for one budget and proves something for others: lines, and a
/// mean of paths with so many backward passes of each chunk.
struct SpanProof {
  std::vector<Line> lines;
  std::vector<double> weights;
  double bare = 0; ///< of the paths, without replays
};
} // namespace

/// Of what the replays of a stage add to the paths of `mean`, by the lines of
/// `proof`.
static double getReplaysOn(const SpanProof &mean, const SpanProof &proof,
                           const PipelineCertificate &certificate,
                           int64_t stage, int64_t budget) {
  std::vector<Line> lines;
  for (size_t c = stage; c < proof.lines.size(); c += certificate.shape.stages)
    lines.push_back(proof.lines[c]);
  StageReplays replays =
      getReplays(lines, double(budget - certificate.baseBytes[stage]));
  double sum = 0, least = -1;
  for (size_t v = 0; v < lines.size(); ++v) {
    double weight = mean.weights[v * certificate.shape.stages + stage];
    sum += weight * replays.forced[v];
    if (replays.isPriced[v])
      least = least < 0 ? weight : std::min(least, weight);
  }
  return sum + std::max(least, 0.0) * replays.shared;
}

/// With one chunk a stage, each has a search.
static SpanProof prove(PipelineCertificate &problem,
                       std::vector<BoundSearch> &searches) {
  const PipelineShape &shape = problem.shape;
  for (int64_t stage = 0; stage < shape.stages; ++stage) {
    if (shape.virtualStages > 1) {
      sharePrice(problem, stage);
      continue;
    }
    Certificate &chunk = problem.chunks[stage].certificate;
    chunk.budgetBytes = problem.budgetBytes - problem.baseBytes[stage];
    double price = chunk.points.empty()
                       ? chunk.stepSeconds / double(chunk.microBatches) /
                             double(std::max<int64_t>(chunk.peakBytes, 1))
                       : chunk.points[0].secondsPerByte;
    chunk.points = searches[stage].findBest(chunk.candidates, price);
    computeBound(chunk);
  }
  computeSpans(problem);
  SpanProof proof;
  proof.weights.resize(problem.chunks.size());
  PipelineSchedule schedule = simulate(shape);
  std::vector<ChunkTimes> times;
  for (const PipelineCertificate::Chunk &chunk : problem.chunks) {
    proof.lines.push_back(getLine(chunk.certificate));
    times.push_back(getTimes(chunk));
    times.back().backward -= chunk.certificate.replaySeconds /
                             double(chunk.certificate.microBatches);
  }
  for (const PipelineCertificate::Path &path : problem.paths) {
    PathCounts counts = countTasks(shape, schedule, path.tasks);
    for (size_t c = 0; c < times.size(); ++c) {
      proof.weights[c] += path.weight * counts.whole[c];
      proof.bare += path.weight * (counts.forward[c] * times[c].forward +
                                   counts.backward[c] * times[c].backward +
                                   counts.weight[c] * times[c].weight);
    }
  }
  return proof;
}

std::vector<double>
reprise::solver::computeBounds(const PipelineCertificate &certificate,
                               const std::vector<int64_t> &budgets) {
  PipelineCertificate problem = certificate;
  std::vector<BoundSearch> searches;
  size_t work = 1;
  for (const PipelineCertificate::Chunk &chunk : problem.chunks) {
    if (problem.shape.virtualStages == 1)
      searches.emplace_back(chunk.certificate);
    for (const CertifiedClass &kind : chunk.certificate.classes)
      work += kind.ops.size() * chunk.certificate.candidates.size();
  }
  // As for one device; what is found for a budget is tried for all.
  constexpr size_t kMostSearches = 16, kMostWork = 200'000;
  size_t count = std::clamp<size_t>(kMostWork / work, 2, kMostSearches);
  size_t stride = (budgets.size() + count - 1) / count;
  std::vector<SpanProof> proofs;
  for (size_t k = 0; k < budgets.size(); k += stride) {
    problem.budgetBytes = budgets[k];
    proofs.push_back(prove(problem, searches));
  }
  std::vector<double> bounds;
  for (int64_t budget : budgets) {
    double best = 0;
    for (const SpanProof &mean : proofs) {
      double bound = mean.bare;
      for (int64_t stage = 0; stage < certificate.shape.stages; ++stage) {
        double most = 0;
        for (const SpanProof &proof : proofs)
          most = std::max(
              most, getReplaysOn(mean, proof, certificate, stage, budget));
        bound += most;
      }
      best = std::max(best, bound);
    }
    bounds.push_back(best);
  }
  return bounds;
}
