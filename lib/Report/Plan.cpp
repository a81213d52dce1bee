//===- Plan.cpp - What a step keeps, replays and needs ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Report/Plan.h"
#include "LinkClock.h"
#include "Ranks.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/NN/Phases.h"
#include "reprise/Dialect/NN/Workload.h"
#include "reprise/Dialect/RT/LaunchName.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Interfaces/CostModel.h"
#include "reprise/Interfaces/Facts.h"
#include "reprise/Report/StepTime.h"
#include "reprise/Support/RecomputeLabels.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::report;

/// The label that would drop `result`, which nothing drops; empty if none
/// would.
static StringRef getLabel(OpResult result, Operation *backward) {
  nn::ScopeAttr scope = nn::getScope(result.getOwner());
  if (!scope || scope.getLayer() < 0)
    return "";
  for (const RecomputeLabel &label : kRecomputeLabels) {
    if (!label.isAccepted() || !label.covers(scope.getModule()))
      continue;
    auto leaves = [&](Operation *user) {
      nn::ScopeAttr reader = nn::getScope(user);
      return user->isBeforeInBlock(backward) &&
             (!reader || reader.getLayer() != scope.getLayer() ||
              !label.covers(reader.getModule()));
    };
    if (label.kind == LabelKind::OutputDiscarding ||
        (label.kind == LabelKind::Plain &&
         llvm::none_of(result.getUsers(), leaves)))
      return label.name;
  }
  return "";
}

FailureOr<Plan> report::readDecisions(func::FuncOp step,
                                      const CostTable &costs) {
  FailureOr<remat::Summary> decisions = remat::summarize(step);
  if (failed(decisions))
    return failure();
  Plan plan;
  plan.decisions = std::move(*decisions);
  plan.costs = costs;
  Operation *backward = step.isExternal()
                            ? nullptr
                            : nn::findPhase(step, nn::StepPhase::Backward);
  if (!backward)
    return plan;
  DenseMap<Operation *, int64_t> positions;
  for (Operation &op : nn::getForward(step.getBody().front())) {
    int64_t position = positions[&op] = plan.forward.size();
    for (Value operand : op.getOperands())
      if (auto maker = positions.find(operand.getDefiningOp());
          maker != positions.end() && plan.forward[maker->second].reader < 0)
        plan.forward[maker->second].reader = position;
    ForwardOp known;
    known.scope = nn::getScopeName(nn::getScope(&op));
    if (isa<CostModel>(op)) {
      Workload load = nn::getWorkload(&op);
      if (load.work != Work::Exchange)
        load.key.clear(); // Kernels are measured, and not ops.
      known.seconds = costs.getSeconds(load);
    }
    for (OpResult result : op.getResults())
      known.labels.push_back(getLabel(result, backward).str());
    plan.forward.push_back(std::move(known));
  }
  return plan;
}

int64_t MemoryPlan::getGradientsInActivations() const {
  int64_t beside = stepBytes;
  for (const auto &[name, bytes] : categories)
    beside -= name == "activations" ? bytes : 0;
  return std::max<int64_t>(profile.getMost(Role::Written) - beside, 0);
}

Alternative Plan::asAlternative() const {
  assert(memory && "needs a schedule");
  Alternative alternative;
  alternative.peakBytes = memory->arenaBytes;
  alternative.replayFlops = replayFlops;
  alternative.replaySeconds = replaySeconds;
  for (const remat::LayerPlan &layer : decisions.layers) {
    for (const remat::SavedValue &value : layer.saved)
      alternative.kept.insert({value.origin.position, value.origin.number});
    for (const remat::Replay &replay :
         llvm::concat<const remat::Replay>(layer.recomputed, layer.free))
      for (unsigned number = replay.origin.number;
           number < replay.origin.numResults; ++number)
        alternative.replayed.insert({replay.origin.position, number});
  }
  return alternative;
}

//===----------------------------------------------------------------------===//
// The reference
//===----------------------------------------------------------------------===//

/// Of layer `index` of its chunk. One that predicts a further token Megatron
/// has as a segment of its own with `uniform`, of two inputs, the second an
/// embedding; with `block` it keeps all of it.
static megatron::Part getLayer(const LayerShape &shape,
                               const megatron::Parallelism &parallelism,
                               megatron::Options options, bool isFurther,
                               int64_t index) {
  bool isFull = isFurther && options.granularity == "full";
  if (isFull && options.method == "block")
    options.granularity.clear();
  megatron::Part part =
      megatron::getLayer(shape, parallelism, options, isFurther ? 0 : index);
  if (isFull && options.method == "uniform") {
    int64_t bytes = megatron::getInputBytes(shape, parallelism);
    part.kept += bytes;
    part.most += bytes;
  }
  return part;
}

static std::map<int64_t, LayerShape> describeLayers(func::FuncOp step) {
  std::map<int64_t, LayerShape> shapes;
  for (Operation &op : nn::getForward(step.getBody().front())) {
    nn::ScopeAttr scope = nn::getScope(&op);
    if (!scope || scope.getLayer() < 0 || op.getNumResults() == 0)
      continue;
    LayerShape none;
    none.attentionDropout = none.hiddenDropout = none.normsBefore = false;
    LayerShape &shape =
        shapes.try_emplace(scope.getLayer(), none).first->second;
    if (auto part = dyn_cast<LayerPart>(op))
      part.describeLayer(shape);
  }
  return shapes;
}

FailureOr<Reference>
report::computeReference(func::FuncOp step, const megatron::Options &options,
                         const megatron::Parallelism &parallelism) {
  if (step.isExternal())
    return step.emitError("needs a body to be compared with Megatron's");
  if (options.granularity == "full" && options.numLayers < 1)
    return step.emitError("full recompute needs a number of layers of at least "
                          "1, but got ")
           << options.numLayers;
  std::map<int64_t, LayerShape> shapes = describeLayers(step);
  auto chunks = step->getAttrOfType<remat::ChunksAttr>(remat::kChunksAttr);
  // Segments begin anew in each chunk.
  auto getIndexInChunk = [&](int64_t layer) {
    if (chunks)
      for (int64_t size : chunks.getLayers().asArrayRef()) {
        if (layer < size)
          break;
        layer -= size;
      }
    return layer;
  };
  std::set<int64_t> further = getFurtherLayers(step);
  Reference reference = {parallelism, {}, {}, {}};
  bool hasExperts = llvm::any_of(
      shapes, [](const auto &known) { return known.second.experts != 0; });
  if (hasExperts)
    reference.model = countModel(step, shapes);
  for (auto &[layer, shape] : shapes) {
    bool hasWidth = shape.feedForward != 0 || shape.expertWidth != 0;
    if (shape.hidden == 0 || shape.heads == 0 || !hasWidth)
      return step.emitError("layer ")
             << layer
             << " needs a norm, attention and an activation of [B, T, C] to be "
                "compared with Megatron's, but lacks one";
    std::string fault = megatron::checkDivision(shape, parallelism);
    if (!fault.empty())
      return step.emitError("layer ") << layer << " " << fault;
    reference.layers[layer] =
        getLayer(shape, parallelism, options, further.count(layer),
                 getIndexInChunk(layer));
  }
  return reference;
}

//===----------------------------------------------------------------------===//
// The schedule
//===----------------------------------------------------------------------===//

/// Adds up the positions of the schedule: all but the update, and what is of
/// the last micro-batch alone, run once for each micro-batch.
static void addUp(Plan &plan, const MemoryProfile &profile) {
  std::vector<PositionTime> last = timeMicroBatch(profile, plan.costs, true);
  std::vector<PositionTime> other = timeMicroBatch(profile, plan.costs, false);
  for (auto [index, position] : llvm::enumerate(profile.getPositions())) {
    uint64_t times = position.runsOnce() ? 1 : plan.numMicroBatches;
    bool isReplay = position.phase == Phase::Replay;
    uint64_t &flops = isReplay ? plan.replayFlops : plan.stepFlops;
    flops = llvm::SaturatingMultiplyAdd(times, uint64_t(position.load.flops),
                                        flops);
    double more = last[index].seconds - other[index].seconds;
    (isReplay ? plan.replaySeconds : plan.stepSeconds) +=
        double(plan.numMicroBatches) * other[index].seconds + more;
  }
}

/// Tells measured from modelled times. An op that a launch is named by takes as
/// long as that was measured to take.
static void readMeasured(Plan &plan, const MemoryProfile &profile) {
  std::map<std::string, bool> isKnown;
  llvm::StringMap<const Workload *> measured;
  for (const Position &position : profile.getPositions()) {
    bool isMeasured = plan.costs.isMeasured(position.load);
    isKnown[position.load.key] = isMeasured;
    if (isMeasured)
      measured[position.name] = &position.load;
  }
  for (const auto &[key, isMeasured] : isKnown)
    (isMeasured ? plan.measured : plan.modelled).push_back(key);
  auto look = [&](const remat::Origin &origin) {
    const Workload *load = measured.lookup(rt::nameReplay(origin.scope));
    if (!load)
      load = measured.lookup(origin.scope);
    if (load) {
      ForwardOp &op = plan.forward[origin.position];
      op.seconds = plan.costs.getSeconds(*load);
      op.isMeasured = true;
    }
  };
  for (const remat::LayerPlan &layer : plan.decisions.layers)
    for (const remat::Replay &replay : layer.recomputed)
      look(replay.origin);
}

LogicalResult report::readSchedule(Plan &plan, ModuleOp module) {
  auto step = module.lookupSymbol<func::FuncOp>(nn::kStepFunction);
  auto planned = module->getAttrOfType<rt::PlanAttr>(rt::kPlanAttr);
  rt::ArenaAttr arena =
      planned ? planned.getArena(rt::Space::Device) : rt::ArenaAttr();
  if (!step || !arena)
    return module.emitError("needs a function @step and 'rt.plan' with an "
                            "arena of the device: memory that is planned");
  if (auto count = step->getAttrOfType<IntegerAttr>(nn::kMicroBatchesAttr))
    plan.numMicroBatches = count.getInt();

  MemoryPlan memory;
  memory.arenaBytes = arena.getBytes();
  memory.boundBytes = arena.getLeast();
  memory.stepBytes = arena.getBytes() - arena.getBegin();
  for (rt::CategoryBytesAttr category : arena.getCategories())
    memory.categories.push_back(
        {rt::getDisplayName(category.getCategory()), category.getBytes()});
  // Reports have them by name.
  llvm::sort(memory.categories);
  memory.profile = MemoryProfile(step, arena.getBegin());
  memory.experts = countExpertRows(step, memory.profile);
  addUp(plan, memory.profile);
  readMeasured(plan, memory.profile);
  plan.memory = std::move(memory);
  return success();
}
