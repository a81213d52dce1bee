//===- BudgetStages.cpp - Plans for the stages of a pipeline --------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BudgetPlans.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Solver/Pipeline.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::pipelines;

namespace {
/// A model chunk with the micro-batches that its stage keeps of it.
struct Chunk {
  int64_t first, count, inFlight;
  solver::StepStage step;
  std::unique_ptr<solver::BudgetCurve> curve;
};

/// A stage, whose plans are one of each of its chunks.
struct Stage {
  struct Point {
    int64_t peak;
    double seconds;
    std::vector<size_t> points; ///< of each chunk's curve
  };
  std::vector<Chunk> chunks;
  std::vector<Point> curve;  ///< peaks grow, seconds fall
  double computeSeconds = 0; ///< of a micro-batch, without replays
};
} // namespace

/// Adds the points of one more chunk. The work of each chunk is counted, though
/// only one runs at a time.
static void addChunk(Stage &stage, const solver::BudgetCurve &curve) {
  if (stage.curve.empty())
    stage.curve.push_back({0, 0, {}});
  std::vector<Stage::Point> all;
  // Of long curves every few points: their number squared are combined.
  constexpr size_t kMost = 512;
  size_t numPoints = curve.getPoints().size();
  bool isFirst = stage.curve.size() == 1;
  size_t stride = isFirst ? 1 : numPoints / kMost + 1;
  size_t ownStride = isFirst ? 1 : stage.curve.size() / kMost + 1;
  for (size_t own = 0; own < stage.curve.size(); own += ownStride)
    for (size_t p = 0; p < numPoints; p += stride) {
      Stage::Point point = stage.curve[own];
      point.peak += curve.getPoints()[p].peak;
      point.seconds += curve.getPoints()[p].seconds;
      point.points.push_back(p);
      all.push_back(std::move(point));
    }
  llvm::sort(all, [](const Stage::Point &a, const Stage::Point &b) {
    return std::tie(a.peak, a.seconds, a.points) <
           std::tie(b.peak, b.seconds, b.points);
  });
  stage.curve.clear();
  for (Stage::Point &point : all)
    if (stage.curve.empty() || point.seconds < stage.curve.back().seconds)
      stage.curve.push_back(std::move(point));
}

/// The stages that `chunks` make of a step; nothing, after a message, where
/// that cannot be.
static FailureOr<std::vector<Stage>> getStages(func::FuncOp step,
                                               const TracedGraph &traced,
                                               remat::ChunksAttr chunks) {
  int64_t numStages = chunks.getStages();
  ArrayRef<int64_t> layers = chunks.getLayers().asArrayRef();
  solver::PipelineShape shape = {numStages, int64_t(layers.size()) / numStages,
                                 traced.graph.microBatches};
  std::optional<std::string> fault = solver::check(shape);
  solver::PipelineSchedule schedule;
  if (!fault)
    schedule = solver::simulate(shape);
  if (schedule.empty())
    return step.emitError("has no schedule on its pipeline: ")
           << fault.value_or("its stages wait for each other forever");
  std::vector<Stage> stages(numStages);
  int64_t first = 0;
  for (auto [number, count] : llvm::enumerate(layers)) {
    int64_t stage = number % numStages;
    solver::InFlight peak = solver::getPeak(
        schedule[stage], std::vector<int64_t>(shape.virtualStages, 1));
    std::optional<solver::StepStage> part =
        solver::takeStage(traced.graph, first, count);
    if (!part)
      return step.emitError("needs to be a chain of layers to be planned for "
                            "the stages of a pipeline, with a layer in each "
                            "chunk, but chunk ")
             << number << " is not";
    Chunk chunk = {first, count, peak.microBatches[number / numStages],
                   std::move(*part), nullptr};
    stages[stage].chunks.push_back(std::move(chunk));
    first += count;
  }
  for (Stage &stage : stages)
    for (Chunk &chunk : stage.chunks) {
      solver::BudgetOptions options;
      options.inFlight = std::max<int64_t>(chunk.inFlight, 1);
      constexpr int64_t kResolution = 8192;
      options.resolution = kResolution;
      chunk.curve =
          std::make_unique<solver::BudgetCurve>(chunk.step.graph, options);
      addChunk(stage, *chunk.curve);
      for (const solver::StepOp &op : chunk.step.graph.ops)
        stage.computeSeconds += op.seconds;
    }
  return stages;
}

/// The last point of a stage that takes at most `bytes`; -1 if there is none.
static int64_t findPoint(const Stage &stage, int64_t bytes) {
  int64_t found = -1;
  for (auto [number, point] : llvm::enumerate(stage.curve))
    if (point.peak <= bytes)
      found = number;
  return found;
}

/// What no plan of a stage of one chunk does better; 0 if it has several.
static double getBound(const Stage &stage, int64_t point, int64_t bytes) {
  if (stage.chunks.size() != 1)
    return 0;
  const Chunk &chunk = stage.chunks.front();
  const std::vector<Stage::Point> &curve = stage.curve;
  int64_t low = std::max<int64_t>(point - 16, 0);
  int64_t high = std::min<int64_t>(point + 16, curve.size() - 1);
  if (low == high)
    return 0;
  solver::Certificate certificate;
  certificate.kind = solver::Certificate::Budget::Activations;
  certificate.budgetBytes = bytes;
  double slope = (curve[low].seconds - curve[high].seconds) /
                 double(curve[high].peak - curve[low].peak);
  solver::certify(chunk.step.graph,
                  chunk.curve->getPlan(curve[point].points[0]), slope,
                  certificate, chunk.inFlight);
  return certificate.lowerBoundSeconds / double(chunk.step.graph.microBatches);
}

FailureOr<std::vector<StageReport>>
pipelines::solveStages(ModuleOp module, const Budget &budget,
                       const CostTable &costs, bool isFree) {
  auto step = module.lookupSymbol<func::FuncOp>(nn::kStepFunction);
  auto chunks = step
                    ? step->getAttrOfType<remat::ChunksAttr>(remat::kChunksAttr)
                    : remat::ChunksAttr();
  if (!chunks)
    return module.emitError("needs a function @step with 'remat.chunks' to be "
                            "planned for the stages of a pipeline");
  if (budget.kind != Budget::Kind::Activations)
    return step.emitError("needs a budget of activations for the stages of a "
                          "pipeline: the program, whose memory is known, is "
                          "for one device");
  FailureOr<std::unique_ptr<Trial>> trial = Trial::create(module);
  FailureOr<TracedGraph> traced = failure();
  if (succeeded(trial))
    traced = (*trial)->trace(costs, isFree);
  if (failed(traced))
    return step.emitError("needs to be a step that becomes a schedule, to be "
                          "planned for a budget");
  FailureOr<std::vector<Stage>> stages = getStages(step, *traced, chunks);
  if (failed(stages))
    return failure();

  std::vector<StageReport> reports;
  std::vector<int64_t> points;
  double slowest = 0;
  for (auto [number, stage] : llvm::enumerate(*stages)) {
    int64_t point = findPoint(stage, budget.bytes);
    if (point < 0)
      return step.emitError("needs ")
             << (stage.curve.empty() ? 0 : stage.curve[0].peak)
             << " bytes on stage " << number
             << ", whatever is recomputed, but the budget is " << budget.bytes
             << " bytes";
    points.push_back(point);
    StageReport report;
    for (const Chunk &chunk : stage.chunks)
      report.chunks.push_back({chunk.first, chunk.count, chunk.inFlight});
    report.computeSeconds = stage.computeSeconds;
    report.boundSeconds = getBound(stage, point, budget.bytes);
    report.mostBytes = stage.curve.back().peak;
    slowest =
        std::max(slowest, stage.computeSeconds + stage.curve[point].seconds);
    reports.push_back(std::move(report));
  }
  // A stage that would wait for the slowest one recomputes for nothing.
  solver::KeptValues kept = solver::keepAll(traced->graph);
  std::vector<std::pair<int64_t, int64_t>> segments;
  for (auto [number, stage] : llvm::enumerate(*stages)) {
    StageReport &report = reports[number];
    report.askedSeconds = stage.curve[points[number]].seconds;
    report.askedBytes = stage.curve[points[number]].peak;
    int64_t point = points[number];
    while (point > 0 &&
           stage.computeSeconds + stage.curve[point - 1].seconds <= slowest)
      --point;
    report.plannedBytes = stage.curve[point].peak;
    report.replaySeconds = stage.curve[point].seconds;
    for (auto [chunk, own] :
         llvm::zip(stage.chunks, stage.curve[point].points)) {
      solver::KeptValues part = chunk.curve->getPlan(own);
      for (size_t v = 0; v < part.size(); ++v)
        if (chunk.step.graph.values[v].rule == solver::StepValue::Rule::Free)
          kept[chunk.step.values[v]] = part[v];
      llvm::append_range(segments, chunk.curve->getSegments(own));
    }
  }
  writeDecisions(step, *traced, kept, segments);
  return reports;
}
