//===- Ranks.cpp - What Megatron would have on a rank ---------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/NN/Phases.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Interfaces/Differentiable.h"
#include "reprise/Interfaces/Facts.h"
#include "reprise/Interfaces/Partitionable.h"
#include "reprise/Solver/Pipeline.h"
#include "reprise/Support/Modules.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::report;

namespace {
/// Walks the forward pass and gives each stage what its ranks have.
class RankCounter {
public:
  RankCounter(func::FuncOp step, const Reference &reference,
              ArrayRef<remat::StagePlan> stages);

  std::vector<megatron::Rank> count();

private:
  void countParameter(Operation *op, unsigned operand, int64_t stage);
  void countOutside(Operation *op, megatron::Chunk &chunk);
  /// The stage of an op, and the number of the chunk there.
  std::pair<int64_t, int64_t> place(Operation *op);

  func::FuncOp step;
  const Reference &reference;
  ArrayRef<remat::StagePlan> stages;
  llvm::StringMap<bool> isFrozen;                 ///< by parameter
  std::set<std::pair<std::string, int64_t>> seen; ///< of a stage
  std::vector<megatron::Rank> ranks;
  std::vector<std::vector<megatron::Chunk>> chunks; ///< by stage
  /// What heads keep, which run forward last, those of further tokens too.
  int64_t headBytes = 0;
  int64_t lastLayer = -1; ///< of those that are counted
  int64_t positions = 0;  ///< of a micro-batch
};
} // namespace

RankCounter::RankCounter(func::FuncOp step, const Reference &reference,
                         ArrayRef<remat::StagePlan> stages)
    : step(step), reference(reference), stages(stages), ranks(stages.size()) {
  for (BlockArgument argument : step.getArguments())
    if (auto parameter = step.getArgAttrOfType<nn::ParameterAttr>(
            argument.getArgNumber(), nn::kParameterAttr))
      isFrozen[parameter.getName()] = parameter.getFrozen();
  for (const remat::StagePlan &stage : stages)
    chunks.emplace_back(stage.chunks.size());
  for (megatron::Rank &rank : ranks) {
    rank.optimizerRanks = reference.parallelism.optimizerRanks;
    rank.expertOptimizerRanks = reference.parallelism.expertOptimizerRanks;
  }
}

/// What is in no layer is on the way to the first stage, or from the last.
std::pair<int64_t, int64_t> RankCounter::place(Operation *op) {
  nn::ScopeAttr scope = nn::getScope(op);
  int64_t layer = scope ? scope.getLayer() : -1;
  if (layer >= 0)
    for (auto [number, stage] : llvm::enumerate(stages))
      for (auto [index, chunk] : llvm::enumerate(stage.chunks))
        if (layer >= chunk.firstLayer &&
            layer < chunk.firstLayer + chunk.numLayers)
          return {number, index};
  if (lastLayer < 0)
    return {0, 0};
  return {int64_t(stages.size()) - 1, int64_t(stages.back().chunks.size()) - 1};
}

/// The operand of a linear, and of a head, that is its weight.
static constexpr unsigned kWeightOperand = 1;

/// Whether `op` reads a weight of `[in, out]`.
static bool isInOut(Operation *op) {
  auto layout = op->getAttrOfType<nn::WeightLayoutAttr>("layout");
  return layout && layout.getValue() == nn::WeightLayout::InOut;
}

static std::optional<ModuleKind> getModule(Operation *op) {
  nn::ScopeAttr scope = nn::getScope(op);
  return scope ? parseModule(scope.getModule()) : std::nullopt;
}

/// Whether projections out of latents read `value`, in whole or in part, as it
/// is or normed.
static bool isLatent(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    if (getModule(user) == ModuleKind::LatentUpProjection)
      return true;
    bool passes = getModule(user) == ModuleKind::Attention &&
                  getPartWay(user) != PartWay::Linear;
    return passes && llvm::any_of(user->getResults(), isLatent);
  });
}

/// Whether `op` makes latents, whose projections Transformer Engine's layers
/// have whole on each rank.
static bool makesLatents(Operation *op) {
  return getModule(op) == ModuleKind::Attention && isLatent(op->getResult(0));
}

/// How the ranks of a tensor-parallel group share operand `number` of `op`.
static megatron::Sharing getSharing(Operation *op, unsigned number) {
  using megatron::Sharing;
  PartWay way = getPartWay(op);
  if (way == PartWay::Lookup || isa<RowChunks>(op))
    return Sharing::Vocabulary;
  if (way != PartWay::Linear)
    return Sharing::Whole;
  if (!cast<Partitionable>(op).getExpertOperands().empty())
    return Sharing::Experts;
  nn::ScopeAttr scope = nn::getScope(op);
  if (scope && scope.getLayer() < 0)
    return Sharing::Vocabulary;
  // A router, and the gate of a shared expert, of one column.
  auto result = cast<ShapedType>(op->getResult(0).getType());
  bool isOfTokens = llvm::any_of(op->getUsers(), [](Operation *user) {
    return getPartWay(user) == PartWay::Tokens;
  });
  if (isOfTokens || result.getDimSize(result.getRank() - 1) == 1 ||
      makesLatents(op))
    return Sharing::Whole;
  // What attention and the feed-forward block end with is cut along its input:
  // the sum is whole, and so is what is added to it.
  bool isRowWise =
      scope && (scope.getValue() == "a" || scope.getValue() == "y");
  bool isBias = number != kWeightOperand;
  return isRowWise && isBias ? Sharing::Whole : Sharing::Divided;
}

/// A bias that no gradient reaches, a router's, is a buffer in Megatron.
void RankCounter::countParameter(Operation *op, unsigned operand,
                                 int64_t stage) {
  auto argument = dyn_cast<BlockArgument>(op->getOperand(operand));
  if (!argument || !isa<Differentiable, RowChunks>(op))
    return;
  std::string name;
  unsigned number = argument.getArgNumber();
  if (auto parameter =
          step.getArgAttrOfType<nn::ParameterAttr>(number, nn::kParameterAttr))
    name = parameter.getName().str();
  else if (auto working =
               step.getArgAttrOfType<StringAttr>(number, nn::kWorkingAttr))
    name = working.str();
  if (name.empty() || !seen.insert({name, stage}).second)
    return;
  auto type = cast<ShapedType>(argument.getType());
  bool hasColumns =
      getPartWay(op) == PartWay::Linear && isInOut(op) && type.getRank() > 1;
  int64_t rows = type.getRank() ? type.getDimSize(hasColumns) : 1;
  megatron::Sharing sharing = getSharing(op, operand);
  int64_t elements = megatron::countParameters(sharing, type.getNumElements(),
                                               rows, reference.parallelism);
  megatron::Rank &rank = ranks[stage];
  bool isOfExperts = sharing == megatron::Sharing::Experts;
  (isFrozen.lookup(name) ? rank.frozen
   : isOfExperts         ? rank.trainedOfExperts
                         : rank.trained) += elements;
}

/// What is kept of embedding, last norm and head. Of a head that predicts a
/// further token Megatron makes the logits of all positions, and masks those
/// that have none.
void RankCounter::countOutside(Operation *op, megatron::Chunk &chunk) {
  nn::ScopeAttr scope = nn::getScope(op);
  if (!scope || scope.getLayer() >= 0 || op->getNumResults() == 0)
    return;
  using megatron::Outside;
  auto count = [&](Outside what, Value of, int64_t columns = 0) {
    auto type = cast<ShapedType>(of.getType());
    int64_t width = type.getDimSize(type.getRank() - 1);
    positions = std::max(positions, type.getNumElements() / width);
    return megatron::getOutsideBytes(what, positions, columns ? columns : width,
                                     reference.parallelism);
  };
  auto add = [&](int64_t bytes) { chunk.add({bytes, bytes}); };
  auto part = dyn_cast<Partitionable>(op);
  PartWay way = getPartWay(op);
  if (way == PartWay::Pointwise && part.getDrawnDim(/*dim=*/0))
    add(count(Outside::Mask, op->getResult(0)));
  else if (way == PartWay::Norm)
    add(count(Outside::Input, op->getOperand(0)));
  else if (way == PartWay::Linear)
    headBytes += count(Outside::Input, op->getOperand(0)) +
                 count(Outside::Logits, op->getResult(0));
  else if (isa<RowChunks>(op)) {
    auto weight = cast<ShapedType>(op->getOperand(kWeightOperand).getType());
    headBytes += count(Outside::Input, op->getOperand(0)) +
                 count(Outside::Logits, op->getOperand(0),
                       weight.getDimSize(isInOut(op)));
  }
}

/// The most bytes while a micro-batch of `chunks` runs backward.
static int64_t getMostInBackward(const std::vector<solver::PipelineTask> &tasks,
                                 ArrayRef<megatron::Chunk> chunks) {
  bool splitsWeights = solver::splitsWeights(tasks);
  int64_t now = 0, most = 0;
  for (const solver::PipelineTask &task : tasks) {
    const megatron::Chunk &chunk = chunks[task.virtualStage];
    if (!task.isBackward && !task.isWeight)
      now += chunk.getKept();
    if (task.isBackward)
      most = std::max(most, now - chunk.getKept() + chunk.getMost());
    if (splitsWeights ? task.isWeight : task.isBackward)
      now -= chunk.getKept();
  }
  return most;
}

std::vector<megatron::Rank> RankCounter::count() {
  bool isForward = true;
  for (Operation &op : step.getBody().front()) {
    isForward &= !nn::begins(&op, nn::StepPhase::Backward);
    // A head in chunks makes gradients, and stands behind the forward pass.
    if (!isForward && !isa<RowChunks>(op))
      continue;
    auto [stage, index] = place(&op);
    megatron::Chunk &chunk = chunks[stage][index];
    for (unsigned operand = 0; operand < op.getNumOperands(); ++operand)
      countParameter(&op, operand, stage);
    countOutside(&op, chunk);
    nn::ScopeAttr scope = nn::getScope(&op);
    if (!scope || scope.getLayer() <= lastLayer)
      continue;
    lastLayer = scope.getLayer();
    if (auto layer = reference.layers.find(lastLayer);
        layer != reference.layers.end())
      chunk.add(layer->second);
  }
  chunks.back().back().add({headBytes, headBytes});
  solver::PipelineSchedule schedule = solver::simulate(remat::getPipelineShape(
      step, stages.size(), stages.front().chunks.size()));
  for (auto [rank, tasks, parts] : llvm::zip(ranks, schedule, chunks)) {
    std::vector<int64_t> kept;
    for (const megatron::Chunk &chunk : parts)
      kept.push_back(chunk.getKept());
    rank.activationBytes = solver::getPeak(tasks, kept).bytes;
    rank.replayBytes = std::max<int64_t>(
        getMostInBackward(tasks, parts) - rank.activationBytes, 0);
  }
  return std::move(ranks);
}

void report::countRanks(func::FuncOp step, ArrayRef<remat::StagePlan> stages,
                        Reference &reference) {
  if (!stages.empty() && !step.isExternal())
    reference.ranks = RankCounter(step, reference, stages).count();
}
