//===- Plan.cpp - What a step keeps, replays and needs ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Report/Plan.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/NN/Workload.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Interfaces/CostModel.h"
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
  if (step.isExternal() || step.getOps<nn::BackwardOp>().empty())
    return plan;
  Operation *backward = *step.getOps<nn::BackwardOp>().begin();
  DenseMap<Operation *, int64_t> positions;
  for (Operation &op : step.getBody().front()) {
    if (&op == backward)
      break;
    int64_t position = positions[&op] = plan.forward.size();
    for (Value operand : op.getOperands())
      if (auto maker = positions.find(operand.getDefiningOp());
          maker != positions.end() && plan.forward[maker->second].reader < 0)
        plan.forward[maker->second].reader = position;
    ForwardOp known;
    known.scope = nn::getScopeName(nn::getScope(&op));
    if (isa<CostModel>(op)) {
      Workload load = nn::getWorkload(&op);
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

/// Adds to `shape` the heads of attention that reads `query`.
template <typename OpTy>
static void readHeads(OpTy op, Value query, megatron::LayerShape &shape) {
  shape.heads = op.getHeads();
  shape.keyHeads = op.getKeyHeads();
  shape.headWidth =
      cast<ShapedType>(query.getType()).getDimSize(2) / shape.heads;
}

/// Adds to `shape` what latent attention has beside heads.
static void readLatent(nn::LatentHeadsOp op, megatron::LayerShape &shape) {
  shape.sharedKey = op.getShared().getType().getShape().back();
  shape.valueWidth =
      op.getValue().getType().getShape().back() / int64_t(op.getHeads());
}

/// Adds to `shape` the latent that `norm`, of attention, is over: of keys and
/// values, which come from a split, or of queries. Other norms are of heads.
static void readNorm(nn::RMSNormOp norm, megatron::LayerShape &shape) {
  int64_t width = norm.getInput().getType().getShape().back();
  auto linear = norm.getInput().getDefiningOp<nn::LinearOp>();
  bool isRead = llvm::any_of(norm.getOut().getUsers(), [](Operation *user) {
    nn::ScopeAttr scope = nn::getScope(user);
    return scope && scope.getModule() == "mla_up_proj";
  });
  if (norm.getInput().getDefiningOp<nn::SplitColumnsOp>())
    shape.keyLatent = width;
  else if (linear && isRead)
    shape.queryLatent = width;
  else
    shape.normedHeads = true;
}

/// Whether `value` is the residual stream, rather than what a block puts out.
static bool isInStream(Value value) {
  Operation *op = value.getDefiningOp();
  nn::ScopeAttr scope = op ? nn::getScope(op) : nn::ScopeAttr();
  return !scope || scope.getModule() == "residual" ||
         scope.getModule() == "embedding";
}

/// Adds to `shape` what `op`, of its layer, tells of it.
static void readShape(Operation *op, megatron::LayerShape &shape) {
  StringRef module = nn::getScope(op).getModule();
  auto type = dyn_cast<ShapedType>(op->getResult(0).getType());
  if (auto choice = dyn_cast<nn::ChooseExpertsOp>(op)) {
    shape.experts = choice.getLogits().getType().getShape().back();
    shape.slots = choice.getIds().getType().getShape().back();
  } else if (isa<nn::WeightedSwiGLUOp>(op) && module == "moe_act") {
    shape.expertWidth = type.getShape().back();
  } else if (module == "shared_experts" &&
             isa<nn::WeightedSwiGLUOp, nn::SwiGLUOp>(op)) {
    shape.sharedWidth = type.getShape().back();
    shape.gatesShared = isa<nn::WeightedSwiGLUOp>(op);
  } else if (auto heads = dyn_cast<nn::LatentHeadsOp>(op)) {
    readLatent(heads, shape);
  }
  if (!type || type.getRank() < 3)
    return;
  if (auto attention = dyn_cast<nn::AttentionOp>(op)) {
    readHeads(attention, attention.getQuery(), shape);
    shape.fusedAttention = true;
    shape.attentionDropout = !attention.getRate().isZero();
  } else if (auto scores = dyn_cast<nn::ScoresOp>(op)) {
    readHeads(scores, scores.getLhs(), shape);
  } else if (auto norm = dyn_cast<nn::RMSNormOp>(op);
             norm && module == "attention") {
    readNorm(norm, shape);
  } else if (isa<nn::LayerNormOp, nn::RMSNormOp>(op)) {
    shape.microBatch = type.getDimSize(0);
    shape.sequence = type.getDimSize(1);
    shape.hidden = type.getDimSize(2);
    (isInStream(op->getOperand(0)) ? shape.normsBefore : shape.normsAfter) =
        true;
  } else if (module == "mlp" && isa<nn::GeluOp, nn::SwiGLUOp>(op)) {
    shape.feedForward = type.getDimSize(2);
    shape.gated = isa<nn::SwiGLUOp>(op);
  } else if (isa<nn::DropoutOp>(op)) {
    (module == "core_attn" ? shape.attentionDropout : shape.hiddenDropout) =
        true;
  }
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
  std::map<int64_t, megatron::LayerShape> shapes;
  for (Operation &op : step.getBody().front()) {
    if (isa<nn::BackwardOp>(op))
      break;
    nn::ScopeAttr scope = nn::getScope(&op);
    if (!scope || scope.getLayer() < 0 || op.getNumResults() == 0)
      continue;
    megatron::LayerShape none;
    none.attentionDropout = none.hiddenDropout = none.normsBefore = false;
    readShape(&op, shapes.try_emplace(scope.getLayer(), none).first->second);
  }
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
  Reference reference = {parallelism, {}, {}};
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
    reference.layerBytes[layer] = megatron::getLayerBytes(
        shape, parallelism, options, getIndexInChunk(layer));
  }
  return reference;
}

//===----------------------------------------------------------------------===//
// The schedule
//===----------------------------------------------------------------------===//

/// Adds up the positions of the schedule: all but the update run once for each
/// micro-batch.
static void addUp(Plan &plan, const MemoryProfile &profile) {
  for (const Position &position : profile.getPositions()) {
    uint64_t times = position.phase == Phase::Update ? 1 : plan.numMicroBatches;
    bool isReplay = position.phase == Phase::Replay;
    uint64_t &flops = isReplay ? plan.replayFlops : plan.stepFlops;
    flops = llvm::SaturatingMultiplyAdd(times, uint64_t(position.load.flops),
                                        flops);
    (isReplay ? plan.replaySeconds : plan.stepSeconds) +=
        times * plan.costs.getSeconds(position.load);
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
    const Workload *load = measured.lookup(origin.scope + "@replay");
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
  addUp(plan, memory.profile);
  readMeasured(plan, memory.profile);
  plan.memory = std::move(memory);
  return success();
}
