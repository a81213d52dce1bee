//===- BudgetStages.cpp - Plans for the stages of a pipeline --------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BudgetStages.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/NN/Phases.h"
#include "reprise/Dialect/Pipe/OnlyStages.h"
#include "reprise/Dialect/RT/LaunchName.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Remat/Summary.h"
#include "reprise/Solver/Pipeline.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringMap.h"
#include <map>
#include <set>

using namespace mlir;
using namespace reprise;
using namespace reprise::planning;

double Pipeline::getSpan(ArrayRef<int64_t> points) const {
  std::vector<solver::ChunkTimes> times(shape.stages * shape.virtualStages);
  for (auto [s, stage] : llvm::enumerate(stages))
    for (auto [v, chunk] : llvm::enumerate(stage.chunks)) {
      solver::ChunkTimes &own = times[v * shape.stages + s];
      own = chunk.times;
      if (points[s] >= 0)
        own.backward +=
            chunk.curve->getPoints()[stage.curve[points[s]].points[v]].seconds;
    }
  return solver::getSpan(shape, schedule, times);
}

/// What the tasks of a chunk take without replays.
static solver::ChunkTimes
getTimes(const solver::StepGraph &graph,
         const std::vector<solver::PipelineTask> &tasks) {
  bool hasWeights = solver::splitsWeights(tasks);
  solver::ChunkTimes times;
  for (const solver::StepOp &op : graph.ops)
    (op.phase == solver::StepPhase::Forward          ? times.forward
     : hasWeights && rt::isOfWeightGradient(op.name) ? times.weight
                                                     : times.backward) +=
        op.seconds;
  return times;
}

/// Bytes of gradients that `stage` makes from nothing; its graph has them if it
/// `counts` them. Of a table that embedding and head share that is the head's
/// stage: a gradient of rows is added to.
static int64_t findWritten(const TracedGraph &traced, solver::StepStage &stage,
                           bool counts) {
  int64_t bytes = 0;
  for (const solver::StepOp &op : stage.graph.ops)
    for (int64_t number : op.writes) {
      if (!llvm::is_contained(traced.writtenGradients, stage.values[number]))
        continue;
      solver::StepValue &value = stage.graph.values[number];
      bytes += llvm::alignTo(value.bytes, stage.graph.alignment);
      if (!counts)
        continue;
      value.outlives = false;
      value.isReturned = true;
    }
  return bytes;
}

FailureOr<Pipeline> planning::getPipeline(func::FuncOp step,
                                          const TracedGraph &traced,
                                          remat::ChunksAttr chunks,
                                          Budget::Kind kind) {
  int64_t numStages = chunks.getStages();
  ArrayRef<int64_t> layers = chunks.getLayers().asArrayRef();
  Pipeline pipeline;
  pipeline.shape = remat::getPipelineShape(step, numStages,
                                           int64_t(layers.size()) / numStages);
  std::optional<std::string> fault = solver::check(pipeline.shape);
  if (!fault)
    pipeline.schedule = solver::simulate(pipeline.shape);
  if (fault)
    return step.emitError("has no schedule on its pipeline: ") << *fault;
  if (pipeline.schedule.empty())
    return step.emitError("needs a multiple of its ")
           << numStages << " pipeline stages as micro-batches, for "
           << pipeline.shape.virtualStages
           << " chunks on each stage wait for each other forever with "
           << pipeline.shape.microBatches
           << "; the global batch size sets them";
  pipeline.stages.resize(numStages);
  // Tasks of weights make gradients later than the step does.
  pipeline.countsWritten =
      kind == Budget::Kind::Memory &&
      llvm::none_of(pipeline.schedule, solver::splitsWeights);
  std::vector<std::vector<int64_t>> most, whole; // by stage
  for (auto [stage, tasks] : llvm::zip(pipeline.stages, pipeline.schedule)) {
    int64_t virtualStages = pipeline.shape.virtualStages;
    most.push_back(solver::getMostInFlight(tasks, virtualStages));
    whole.push_back(solver::getMostWhole(tasks, virtualStages));
    // What tasks of weights wait for counts as if it were all that is kept.
    stage.moments =
        virtualStages > 1
            ? solver::getMoments(tasks, virtualStages, /*onlyBackward=*/false)
            : std::vector<solver::StageMoment>{{0, 0, most.back()}};
  }
  std::vector<solver::StepStage> parts =
      solver::takeStages(traced.graph, layers.vec(),
                         TermHomes(step, layers).getByLaunch(step, traced));
  if (parts.empty())
    return step.emitError("needs to be a chain of layers to be planned for the "
                          "stages of a pipeline");
  int64_t first = 0;
  for (auto [number, count] : llvm::enumerate(layers)) {
    int64_t stage = number % numStages;
    Chunk chunk = {first,
                   count,
                   most[stage][number / numStages],
                   whole[stage][number / numStages],
                   std::move(parts[number]),
                   nullptr,
                   {}};
    chunk.times = getTimes(chunk.step.graph, pipeline.schedule[stage]);
    pipeline.stages[stage].writtenBytes +=
        findWritten(traced, chunk.step, pipeline.countsWritten);
    pipeline.stages[stage].chunks.push_back(std::move(chunk));
    first += count;
  }
  return pipeline;
}

/// The name of the parameter that an argument of the step belongs to, or its
/// own number.
static std::string getOwner(func::FuncOp step, BlockArgument argument) {
  unsigned number = argument.getArgNumber();
  if (auto parameter =
          step.getArgAttrOfType<nn::ParameterAttr>(number, nn::kParameterAttr))
    return parameter.getName().str();
  for (StringRef attribute : {nn::kGradientAttr, nn::kMoment1Attr,
                              nn::kMoment2Attr, nn::kWorkingAttr})
    if (auto name = step.getArgAttrOfType<StringAttr>(number, attribute))
      return name.str();
  if (auto partial =
          step.getArgAttrOfType<nn::PartialAttr>(number, nn::kPartialAttr))
    return partial.getName().str();
  return std::to_string(number);
}

/// States of a parameter are on the stages that read it or its working copy.
/// That copy is on those that read the copy: of a table that embedding and head
/// share, on the head's.
static std::string getName(func::FuncOp step, BlockArgument argument) {
  bool isWorking =
      step.getArgAttr(argument.getArgNumber(), nn::kWorkingAttr) != nullptr;
  return getOwner(step, argument) + (isWorking ? " in bf16" : "");
}

std::vector<int64_t> planning::getStateBytes(func::FuncOp step,
                                             const TracedGraph &traced,
                                             const Pipeline &pipeline,
                                             remat::ChunksAttr chunks) {
  int64_t numStages = chunks.getStages();
  SmallVector<int64_t> stageOf; // of each layer
  for (auto [chunk, count] : llvm::enumerate(chunks.getLayers().asArrayRef()))
    stageOf.append(count, chunk % numStages);
  std::map<std::string, std::set<int64_t>> users; // stages, by name
  bool isBackward = false;
  // What is in no layer is on the way to the first stage, or from the last,
  // which has heads of layers that predict further tokens, too; but for terms
  // of the loss.
  TermHomes terms(step, chunks.getLayers().asArrayRef());
  int64_t outside = 0;
  for (Operation &op : step.getBody().front()) {
    if (nn::begins(&op, nn::StepPhase::Update))
      break;
    nn::ScopeAttr scope = nn::getScope(&op);
    int64_t layer = scope ? scope.getLayer() : -1;
    bool isInLayer = layer >= 0 && layer < int64_t(stageOf.size());
    if (isInLayer)
      outside = isBackward && layer == 0 ? 0 : numStages - 1;
    isBackward |= nn::begins(&op, nn::StepPhase::Backward);
    int64_t home = terms.get(&op);
    int64_t stage = isInLayer   ? stageOf[layer]
                    : home >= 0 ? home % numStages
                                : outside;
    for (Value operand : op.getOperands())
      if (auto argument = dyn_cast<BlockArgument>(operand)) {
        users[getOwner(step, argument)].insert(stage);
        users[getName(step, argument)].insert(stage);
      }
  }
  std::vector<int64_t> bytes;
  for (auto [number, stage] : llvm::enumerate(pipeline.stages)) {
    SmallVector<BlockArgument> arguments;
    for (BlockArgument argument : step.getArguments()) {
      auto known = users.find(getName(step, argument));
      if (known == users.end() || known->second.count(number))
        arguments.push_back(argument);
    }
    int64_t launches = 0;
    for (const Chunk &chunk : stage.chunks)
      launches += chunk.step.graph.ops.size();
    bytes.push_back(planning::getBaseBytes(step, traced, arguments, launches));
    // A table that the head shares has rows for its GEMM on the head's stage.
    int64_t alignment = traced.graph.alignment;
    if (int64_t(number) + 1 < numStages)
      for (BlockArgument argument : arguments)
        bytes.back() -=
            llvm::alignTo(traced.graph.values[argument.getArgNumber()].bytes,
                          alignment) -
            llvm::alignTo(getTypeBytes(argument.getType()), alignment);
  }
  return bytes;
}

std::vector<int64_t> planning::getBaseBytes(const Pipeline &pipeline,
                                            ArrayRef<int64_t> states,
                                            Budget::Kind kind) {
  std::vector<int64_t> bytes(states.size(), 0);
  if (kind == Budget::Kind::Memory)
    for (auto [own, state, stage] : llvm::zip(bytes, states, pipeline.stages))
      own = state - (pipeline.countsWritten ? stage.writtenBytes : 0);
  return bytes;
}

/// Seconds that a byte more saves a micro-batch of a stage, around a point.
static double getSlope(const Stage &stage, int64_t point) {
  int64_t low = std::max<int64_t>(point - 16, 0);
  int64_t high = std::min<int64_t>(point + 16, stage.curve.size() - 1);
  const Stage::Point &left = stage.curve[low], &right = stage.curve[high];
  if (left.peak >= right.peak)
    return 0;
  return (left.seconds - right.seconds) / double(right.peak - left.peak);
}

/// Fills in what the certificate says of a stage's plan. Whether that, offsets
/// included, is within the budget.
static bool certifyStage(const Pipeline &pipeline, int64_t number,
                         int64_t point,
                         solver::PipelineCertificate &certificate) {
  const Stage &stage = pipeline.stages[number];
  int64_t left = certificate.budgetBytes - certificate.baseBytes[number];
  // Chunks that share a budget get their price below.
  std::optional<double> price;
  if (stage.chunks.size() == 1)
    price = getSlope(stage, point);
  for (auto [v, chunk] : llvm::enumerate(stage.chunks)) {
    int64_t own = stage.curve[point].points[v];
    solver::Certificate &part =
        certificate.chunks[v * pipeline.shape.stages + number].certificate;
    part.budgetBytes = left;
    solver::KeptValues kept = chunk.curve->getPlan(own);
    solver::certify(chunk.step.graph, kept, price, part, chunk.whole);
    solver::certifyMemory(chunk.step.graph, kept, part);
  }
  if (solver::getStageNeed(certificate, number) > left)
    return false;
  solver::sharePrice(certificate, number);
  return true;
}

/// The graph of a chunk, whose ops go by their names in the step.
static TracedGraph findOps(const TracedGraph &traced, const Chunk &chunk) {
  TracedGraph part;
  part.graph = chunk.step.graph;
  llvm::StringMap<int64_t> positions;
  for (auto [op, position] : llvm::zip(traced.graph.ops, traced.positions))
    positions[op.name] = position;
  for (const solver::StepOp &op : part.graph.ops) {
    auto known = positions.find(op.name);
    part.positions.push_back(known == positions.end() ? -1 : known->second);
  }
  return part;
}

/// Where gradients of weights have tasks of their own: what the program has
/// beside the steps of chunks, so many bytes.
static void noteWaiting(InFlightDiagnostic &error, func::FuncOp step,
                        int64_t microBatches, int64_t bytes) {
  if (microBatches > 0 && bytes > 0)
    error.attachNote(step.getLoc())
        << "beside that the program has " << remat::formatBytes(bytes)
        << ", for what gradients of weights wait with from 'backward' to "
           "'backward_weight', of "
        << microBatches
        << (microBatches == 1 ? " micro-batch" : " micro-batches")
        << " at a time";
}

/// Says what the stage needs whose smallest plan is the largest, and why.
static void refuseStages(func::FuncOp step, const TracedGraph &traced,
                         const Pipeline &pipeline, StagePlans &plans,
                         const Budget &budget,
                         const solver::PipelineCertificate &certificate) {
  auto [least, tightest] = plans.findLeast();
  std::string fitting = getFitting(budget.kind, least);
  std::string under =
      formatUnder(certificate.chunks.front().certificate.under, "");
  InFlightDiagnostic error =
      step.emitError("needs ")
      << formatNeed(least) << " on stage " << tightest
      << " with the smallest plans found" << (under.empty() ? "" : " ") << under
      << ", but the budget is " << remat::formatBytes(budget.bytes) << " ("
      << budget.bytes << " bytes); " << fitting << " fits";
  if (int64_t base = certificate.baseBytes[tightest])
    error << "; " << remat::formatBytes(base)
          << " of it outlive the step: parameters, "
          << (pipeline.stages[tightest].writtenBytes ? "accumulated gradients"
                                                     : "gradients")
          << ", optimizer and batch";
  // Of its chunks the one that runs when the stage needs most.
  const Stage &stage = pipeline.stages[tightest];
  ArrayRef<size_t> smallest = stage.curve.front().points;
  SmallVector<solver::ChunkBytes> bytes;
  for (auto [own, point] : llvm::zip(stage.chunks, smallest)) {
    solver::StepSimulator simulator(own.step.graph);
    bytes.push_back(getBytes(own, simulator, point));
  }
  const solver::StageMoment &most = stage.findMost(bytes);
  const Chunk &chunk = stage.chunks[most.running];
  TracedGraph part = findOps(traced, chunk);
  error.attachNote(step.getLoc())
      << "that is "
      << remat::formatLayers(
             llvm::to_vector(llvm::seq(chunk.first, chunk.first + chunk.count)))
      << ", with micro-batches in flight: " << most.inFlight[most.running]
      << "; what backward needs is kept of each, and one of them runs:";
  noteAlive(error, step, part, chunk.curve->getPlan(smallest[most.running]));
  noteWaiting(error, step, solver::getMostWaiting(pipeline.schedule[tightest]),
              least - plans.getBaseBytes(tightest) - stage.getNeed(bytes));
  if (!budget.command.empty())
    error.attachNote(step.getLoc())
        << "this fits: " << budget.command << " " << fitting;
}

/// The fastest plans of the stages within the budget; nothing, after a message,
/// where there are none.
static FailureOr<SmallVector<int64_t>>
planStages(func::FuncOp step, const TracedGraph &traced,
           const Pipeline &pipeline, StagePlans &plans, const Budget &budget,
           solver::PipelineCertificate &certificate) {
  for (auto [number, stage] : llvm::enumerate(pipeline.stages))
    if (stage.curve.empty())
      return step.emitError("has no plan for a budget on stage ")
             << number << ": what decisions drop cannot be computed again";
  SmallVector<int64_t> points = plans.find(budget.bytes);
  bool fits = !points.empty();
  for (auto [number, point] : llvm::enumerate(points))
    fits &= certifyStage(pipeline, number, point, certificate);
  if (fits)
    return points;
  refuseStages(step, traced, pipeline, plans, budget, certificate);
  return failure();
}

/// The plans that need least of those with which the step is as long as with
/// `asked`: what a stage would wait, it may as well recompute.
static SmallVector<int64_t> useSlack(const Pipeline &pipeline,
                                     ArrayRef<int64_t> asked) {
  SmallVector<int64_t> points(asked);
  constexpr double kRounding = 1e-12;
  double span = pipeline.getSpan(points);
  // Nor is it shorter, as it may be with several chunks: a budget's step would
  // be faster than that of a larger one.
  auto isAsLong = [&] {
    return std::abs(pipeline.getSpan(points) - span) <= span * kRounding;
  };
  for (size_t s = 0; s < points.size(); ++s) {
    int64_t low = 0, high = points[s];
    while (low < high) {
      points[s] = (low + high) / 2;
      if (isAsLong())
        high = points[s];
      else
        low = points[s] + 1;
    }
    points[s] = high;
  }
  return points;
}

/// Chunks of a stage may take turns in what they replay; then it is not said
/// which of it is for nothing.
static void dropSlack(solver::PipelineCertificate &certificate) {
  solver::PipelineCertificate without = certificate;
  for (solver::PipelineCertificate::Chunk &chunk : without.chunks)
    chunk.certificate.replaySeconds -=
        chunk.slackSeconds * double(without.shape.microBatches);
  constexpr double kRounding = 1e-12;
  if (solver::getSpan(without) < certificate.spanSeconds * (1 - kRounding))
    for (solver::PipelineCertificate::Chunk &chunk : certificate.chunks)
      chunk.slackSeconds = 0;
}

static void addBounds(PipelineReport &report) {
  report.hasBounds = true;
  std::vector<int64_t> budgets;
  for (const PipelineReport::Point &point : report.curve)
    budgets.push_back(point.bytes);
  std::vector<double> bounds =
      solver::computeBounds(report.certificate, budgets);
  // Less is rounding of what was added up.
  constexpr double kRounding = 1e-12;
  for (auto [point, bound] : llvm::zip(report.curve, bounds))
    if (bound > report.bareSeconds * (1 + kRounding))
      point.boundSeconds = bound - report.bareSeconds;
}

/// What is asked, and the certificates of the chunks without a plan. Plans are
/// counted with `base`; the certificates have bytes that no program is below.
static PipelineReport beginReport(ModuleOp module, const Pipeline &pipeline,
                                  const std::vector<int64_t> &base,
                                  const Budget &budget, const CostTable &costs,
                                  const BudgetSettings &settings) {
  int64_t stages = pipeline.shape.stages;
  PipelineReport report;
  report.budget = budget;
  report.machine = costs.machine;
  report.under = settings.under;
  solver::PipelineCertificate &certificate = report.certificate;
  certificate.shape = pipeline.shape;
  certificate.budgetBytes = budget.bytes;
  for (auto [own, stage] : llvm::zip(base, pipeline.stages)) {
    int64_t written = pipeline.countsWritten ? 0 : stage.writtenBytes;
    certificate.baseBytes.push_back(std::max<int64_t>(own - written, 0));
  }
  certificate.chunks.resize(stages * pipeline.shape.virtualStages);
  for (auto [number, chunk] : llvm::enumerate(certificate.chunks)) {
    chunk.weightSeconds =
        pipeline.stages[number % stages].chunks[number / stages].times.weight;
    chunk.certificate.kind = solver::Certificate::Budget::Activations;
    chunk.certificate.machine = costs.machine;
    chunk.certificate.under = settings.under;
    if (auto name = module->getAttrOfType<StringAttr>("nn.model"))
      chunk.certificate.model = name.str();
  }
  return report;
}

/// Certifies the points of all stages, which slack leaves them; of a stage that
/// takes more than the budget with its own, since less memory may be packed
/// worse, that which was asked for.
static void settleStages(const Pipeline &pipeline, StagePlans &plans,
                         ArrayRef<int64_t> asked,
                         MutableArrayRef<int64_t> points,
                         solver::PipelineCertificate &certificate) {
  auto takeAsked = [&](int64_t number) {
    points[number] = asked[number];
    certifyStage(pipeline, number, points[number], certificate);
  };
  for (auto [number, point] : llvm::enumerate(points))
    if (point < asked[number] &&
        !certifyStage(pipeline, number, point, certificate))
      takeAsked(number);
  if (ArrayRef<int64_t>(points) == asked)
    return;
  std::vector<int64_t> bytes = plans.getProgramBytes(points);
  for (auto [number, own] : llvm::enumerate(bytes))
    if (own > certificate.budgetBytes)
      takeAsked(number);
}

/// What a stage's certified plan comes to beside the one that was asked for;
/// notes in `certificate` the replays that are for nothing.
static StageReport describeStage(const Pipeline &pipeline, int64_t number,
                                 int64_t point, int64_t asked, int64_t base,
                                 int64_t stateBytes,
                                 solver::PipelineCertificate &certificate) {
  const Stage &stage = pipeline.stages[number];
  const Stage::Point &own = stage.curve[point], &most = stage.curve[asked];
  StageReport report;
  report.mostBytes = stage.curve.back().peak + base;
  report.plannedBytes = base + solver::getStageNeed(certificate, number);
  report.stateBytes = stateBytes;
  report.replaySeconds = own.seconds;
  report.askedSeconds = most.seconds;
  report.boundSeconds = solver::getStageBound(certificate, number);
  // Chunks have one price.
  for (const solver::PricedPoint &point :
       certificate.chunks[number].certificate.points)
    report.secondsPerByte += point.secondsPerByte;
  for (auto [v, chunk] : llvm::enumerate(stage.chunks)) {
    report.chunks.push_back({chunk.first, chunk.count, chunk.inFlight});
    report.computeSeconds +=
        chunk.times.forward + chunk.times.backward + chunk.times.weight;
    solver::PipelineCertificate::Chunk &certified =
        certificate.chunks[v * pipeline.shape.stages + number];
    const std::vector<solver::BudgetPoint> &curve = chunk.curve->getPoints();
    certified.slackSeconds = std::max(
        curve[own.points[v]].seconds - curve[most.points[v]].seconds, 0.0);
  }
  report.askedBytes = point < asked ? most.peak + base : report.plannedBytes;
  return report;
}

/// What the stages take is what their programs do, where there are any, and so
/// is what they take when they keep all. The certificate has what a program
/// takes beyond its chunks.
static void addProgramBytes(const Pipeline &pipeline, StagePlans &plans,
                            ArrayRef<int64_t> points, ArrayRef<int64_t> asked,
                            PipelineReport &report) {
  std::vector<int64_t> last;
  for (const Stage &stage : pipeline.stages)
    last.push_back(int64_t(stage.curve.size()) - 1);
  // Copies: asking for more may move them.
  std::vector<int64_t> bytes = plans.getProgramBytes(points),
                       most = plans.getProgramBytes(asked),
                       all = plans.getProgramBytes(last);
  if (bytes.empty() || most.empty() || all.empty())
    return;
  solver::PipelineCertificate &certificate = report.certificate;
  for (auto [number, stage] : llvm::enumerate(report.stages)) {
    stage.plannedBytes = bytes[number];
    // A program has them within the step, whatever is counted.
    if (!pipeline.countsWritten)
      stage.stateBytes -= pipeline.stages[number].writtenBytes;
    stage.askedBytes = most[number];
    stage.mostBytes = all[number];
    int64_t chunks = certificate.baseBytes[number] +
                     solver::getStageNeed(certificate, number);
    // Chunks by themselves may be packed worse than the program.
    certificate.besideBytes.push_back(
        std::max<int64_t>(bytes[number] - chunks, 0));
  }
}

namespace {
/// What the plans of all stages decide of the step.
struct StageDecisions {
  solver::KeptValues kept;
  std::vector<std::pair<int64_t, int64_t>> segments;
};
} // namespace

static StageDecisions getDecisions(const TracedGraph &traced,
                                   const Pipeline &pipeline,
                                   ArrayRef<int64_t> points) {
  StageDecisions decided = {solver::keepAll(traced.graph), {}};
  for (auto [stage, point] : llvm::zip(pipeline.stages, points))
    for (auto [chunk, own] :
         llvm::zip(stage.chunks, stage.curve[point].points)) {
      solver::KeptValues part = chunk.curve->getPlan(own);
      for (int64_t value : solver::getChoices(chunk.step.graph))
        decided.kept[chunk.step.values[value]] = part[value];
      llvm::append_range(decided.segments, chunk.curve->getSegments(own));
    }
  // What a chunk receives it keeps, whatever the one before it does.
  for (const Stage &stage : pipeline.stages)
    for (const Chunk &chunk : stage.chunks)
      for (int64_t value : chunk.step.graph.ops.front().writes)
        decided.kept[chunk.step.values[value]] = true;
  return decided;
}

MeasurePoints planning::getMeasure(ModuleOp module, const TracedGraph &traced,
                                   const Pipeline &pipeline,
                                   const BudgetSettings &settings) {
  if (!settings.measureStages)
    return nullptr;
  MeasurePoints measure = [=, &traced, &pipeline,
                           &settings](ArrayRef<int64_t> points,
                                      ArrayRef<int64_t> stages) mutable {
    OwningOpRef<ModuleOp> copy = module.clone();
    StageDecisions decided = getDecisions(traced, pipeline, points);
    writeDecisions(copy->lookupSymbol<func::FuncOp>(nn::kStepFunction), traced,
                   decided.kept, decided.segments);
    if (!stages.empty())
      (*copy)->setAttr(pipe::kOnlyStagesAttr,
                       DenseI64ArrayAttr::get(copy->getContext(), stages));
    return settings.measureStages(*copy);
  };
  bool isSolved = llvm::none_of(
      pipeline.stages, [](const Stage &stage) { return stage.curve.empty(); });
  SmallVector<int64_t> smallest(pipeline.shape.stages, 0);
  if (!settings.needsPrograms && isSolved && measure(smallest, {}).empty())
    return nullptr;
  return measure;
}

FailureOr<PipelineReport>
planning::solveStages(const Phases &phases, ModuleOp module,
                      const Budget &budget, const CostTable &costs,
                      const BudgetSettings &settings) {
  auto step = module.lookupSymbol<func::FuncOp>(nn::kStepFunction);
  auto chunks = step
                    ? step->getAttrOfType<remat::ChunksAttr>(remat::kChunksAttr)
                    : remat::ChunksAttr();
  if (!chunks)
    return module.emitError("needs a function @step with 'remat.chunks' to be "
                            "planned for the stages of a pipeline");
  FailureOr<std::unique_ptr<WhatIf>> whatIf = WhatIf::create(module, phases);
  FailureOr<TracedGraph> traced = failure();
  if (succeeded(whatIf))
    traced = (*whatIf)->trace(costs, settings.isFree);
  if (failed(traced))
    return step.emitError("needs to be a step that becomes a schedule, to be "
                          "planned for a budget");
  FailureOr<Pipeline> pipeline =
      getPipeline(step, *traced, chunks, budget.kind);
  if (failed(pipeline))
    return failure();
  solveChunks(*pipeline);

  std::vector<int64_t> states = getStateBytes(step, *traced, *pipeline, chunks);
  std::vector<int64_t> base = getBaseBytes(*pipeline, states, budget.kind);
  PipelineReport report =
      beginReport(module, *pipeline, base, budget, costs, settings);
  solver::PipelineCertificate &certificate = report.certificate;
  StagePlans plans(*pipeline, base,
                   getMeasure(module, *traced, *pipeline, settings));
  FailureOr<SmallVector<int64_t>> asked =
      planStages(step, *traced, *pipeline, plans, budget, certificate);
  if (failed(asked))
    return failure();
  SmallVector<int64_t> points = useSlack(*pipeline, *asked);
  report.bareSeconds =
      pipeline->getSpan(SmallVector<int64_t>(points.size(), -1));
  if (settings.hasBounds)
    for (auto [bytes, span] : plans.getCurve())
      report.curve.push_back(
          {bytes, std::max(span - report.bareSeconds, 0.0), 0});
  settleStages(*pipeline, plans, *asked, points, certificate);
  std::vector<int64_t> outlives =
      getBaseBytes(*pipeline, states, Budget::Kind::Memory);
  for (int64_t number = 0; number < pipeline->shape.stages; ++number)
    report.stages.push_back(describeStage(*pipeline, number, points[number],
                                          (*asked)[number], base[number],
                                          outlives[number], certificate));
  addProgramBytes(*pipeline, plans, points, *asked, report);
  solver::computeSpans(certificate);
  dropSlack(certificate);
  if (settings.hasBounds)
    addBounds(report);
  if (settings.hasBaselines) {
    FailureOr<std::vector<BudgetChoice>> baselines =
        tryStageBaselines(step, **whatIf, costs, settings, budget, base);
    if (failed(baselines))
      return step.emitError("needs to become a schedule without what is "
                            "decided of it, to be compared with Megatron's "
                            "options");
    report.baselines = std::move(*baselines);
  }
  StageDecisions decided = getDecisions(*traced, *pipeline, points);
  writeDecisions(step, *traced, decided.kept, decided.segments);
  return report;
}
