//===- Step.cpp - The phases of a step, and what replays need -------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Step.h"
#include "Share.h"
#include "reprise/Dialect/NN/Parts.h"
#include "reprise/Dialect/NN/Phases.h"
#include "reprise/Interfaces/Facts.h"
#include "reprise/Support/Modules.h"
#include <numeric>

using namespace mlir;
using namespace reprise;
using namespace reprise::remat;

//===----------------------------------------------------------------------===//
// Names and prices
//===----------------------------------------------------------------------===//

int64_t remat::getLayer(Operation *op) {
  nn::ScopeAttr scope = nn::getScope(op);
  return scope ? scope.getLayer() : -1;
}

StringRef remat::getModule(Operation *op) {
  nn::ScopeAttr scope = nn::getScope(op);
  return scope ? scope.getModule() : "";
}

/// What follows the name of the first result to name another.
static std::string getSuffix(OpResult result) {
  unsigned number = result.getResultNumber();
  if (number == 0)
    return "";
  if (auto names = dyn_cast<NamedResults>(result.getOwner()))
    return names.getResultSuffix(number).str();
  return "#" + std::to_string(number);
}

std::string remat::getValueName(OpResult result) {
  nn::ScopeAttr scope = nn::getScope(result.getOwner());
  StringRef name = scope && !scope.getValue().empty()
                       ? scope.getValue()
                       : result.getOwner()->getName().getStringRef();
  return name.str() + getSuffix(result);
}

std::string remat::getFullName(OpResult result) {
  std::string name = nn::getScopeName(nn::getScope(result.getOwner()));
  if (name.empty())
    name = result.getOwner()->getName().getStringRef();
  return name + getSuffix(result);
}

std::pair<int64_t, std::string> remat::getHome(const Step &step,
                                               OpResult value) {
  int64_t home = getLayer(value.getOwner());
  std::optional<int64_t> reader;
  for (Operation *user : value.getUsers()) {
    if (!step.isForward(user) || user->hasAttr(kShareAttr))
      continue;
    if (reader && *reader != getLayer(user))
      return {home, getValueName(value)};
    reader = getLayer(user);
  }
  if (!reader || *reader == home)
    return {home, getValueName(value)};
  std::optional<ModuleKind> from = parseModule(getModule(value.getOwner()));
  bool isInput = *reader >= 0 && (from == ModuleKind::Residual ||
                                  from == ModuleKind::Embedding);
  return {*reader, isInput ? "x0" : getValueName(value)};
}

int64_t remat::getFlops(Operation *op) {
  auto costs = dyn_cast<CostModel>(op);
  return costs ? costs.getFlops() : 0;
}

bool remat::isReplay(Operation *op) { return op->hasAttr(kReplayAttr); }

//===----------------------------------------------------------------------===//
// Phases
//===----------------------------------------------------------------------===//

LogicalResult remat::onStep(func::FuncOp function,
                            function_ref<LogicalResult(Step &)> run) {
  FailureOr<Step> step = getStep(function);
  if (failed(step))
    return failure();
  if (!step->backward)
    return success();
  return success(succeeded(step->verifyDecisions()) && succeeded(run(*step)));
}

FailureOr<Step> remat::getStep(func::FuncOp function) {
  Step step;
  if (function.isExternal())
    return step;
  for (Operation &op : function.getOps()) {
    if (!nn::begins(&op, nn::StepPhase::Backward))
      continue;
    if (step.backward) {
      InFlightDiagnostic error =
          op.emitOpError("needs to be the only one of its function");
      error.attachNote(step.backward->getLoc()) << "the first one is here";
      return error;
    }
    step.backward = &op;
  }
  if (!step.backward)
    return step;
  if (!function.getBody().hasOneBlock())
    return function.emitError("needs one block to be a step, but got ")
           << function.getBody().getBlocks().size();

  bool isBelow = false;
  for (Operation &op : function.getBody().front()) {
    if (op.getNumRegions() != 0)
      return op.emitOpError("needs to have no regions to be part of a step, "
                            "but got ")
             << op.getNumRegions();
    if (&op == step.backward) {
      isBelow = true;
    } else if (isBelow) {
      step.below.push_back(&op);
      if (nn::begins(&op, nn::StepPhase::Update))
        step.update = &op;
    } else {
      step.positions[&op] = step.forward.size();
      step.forward.push_back(&op);
    }
  }
  return step;
}

int64_t remat::countLayers(const Step &step) {
  int64_t count = 0;
  for (Operation *op : step.forward)
    count = std::max(count, getLayer(op) + 1);
  return count;
}

FailureOr<Chunks> remat::getChunks(func::FuncOp function, const Step &step) {
  int64_t layers = countLayers(step);
  Chunks chunks = {1, {layers}};
  auto attribute = function->getAttrOfType<ChunksAttr>(kChunksAttr);
  if (!attribute)
    return chunks;
  chunks.stages = attribute.getStages();
  chunks.layers.assign(attribute.getLayers().asArrayRef().begin(),
                       attribute.getLayers().asArrayRef().end());
  int64_t sum =
      std::accumulate(chunks.layers.begin(), chunks.layers.end(), int64_t(0));
  if (sum != layers)
    return function.emitError("needs 'remat.chunks' of the ")
           << layers << " layers of the forward pass, but got chunks of " << sum
           << " in all";
  return chunks;
}

int64_t Chunks::getChunkOf(int64_t layer) const {
  size_t chunk = 0;
  for (int64_t end = layers[0]; layer >= end; end += layers[chunk])
    ++chunk;
  return chunk;
}

bool Step::isDropped(Value value) const {
  auto result = dyn_cast<OpResult>(value);
  if (!result || !isForward(result.getOwner()))
    return false;
  auto decision =
      result.getOwner()->getAttrOfType<RecomputeAttr>(kDecisionAttr);
  if (!decision)
    return false;
  DenseI64ArrayAttr results = decision.getResults();
  return !results ||
         llvm::is_contained(results.asArrayRef(), result.getResultNumber());
}

ShareAttr Step::getShare(Value value) const {
  if (Operation *op = value.getDefiningOp())
    return isForward(op) ? op->getAttrOfType<ShareAttr>(kDecisionAttr)
                         : ShareAttr();
  auto argument = cast<BlockArgument>(value);
  auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  return function ? function.getArgAttrOfType<ShareAttr>(
                        argument.getArgNumber(), kDecisionAttr)
                  : ShareAttr();
}

OpResult Step::getFirstDropped(Operation *op) const {
  return *llvm::find_if(op->getResults(),
                        [&](Value result) { return isDropped(result); });
}

bool Step::isReadBelow(Value value) const {
  return llvm::any_of(value.getUsers(),
                      [&](Operation *user) { return isBelow(user); });
}

SmallVector<Operation *>
Step::takeReplay(Operation *reader, DenseSet<Operation *> &replayed) const {
  SmallVector<Operation *> ops;
  auto take = [&](Operation *user) {
    for (Value operand : user->getOperands())
      if (isDropped(operand) && replayed.insert(operand.getDefiningOp()).second)
        ops.push_back(operand.getDefiningOp());
  };
  take(reader);
  for (size_t next = 0; next < ops.size(); ++next)
    take(ops[next]);
  llvm::sort(ops, [&](Operation *a, Operation *b) {
    return positions.lookup(a) < positions.lookup(b);
  });
  return ops;
}

DenseSet<Operation *> Step::getReplayed() const {
  DenseSet<Operation *> replayed;
  for (Operation *reader : below)
    takeReplay(reader, replayed);
  return replayed;
}

/// Whether `op` makes a value of fewer bits wider, and changes no number.
static bool isWider(Operation *op) {
  auto rounding = dyn_cast<Rounding>(op);
  return rounding &&
         getElementTypeOrSelf(rounding.getRounded()).getIntOrFloatBitWidth() <
             getElementTypeOrSelf(op->getResult(0)).getIntOrFloatBitWidth();
}

Operation *Step::findFirstReader(Operation *op) const {
  Operation *first = nullptr;
  for (Operation *user : op->getUsers()) {
    if (isLate(user))
      return nullptr;
    if (isBelow(user) && (!first || user->isBeforeInBlock(first)))
      first = user;
  }
  return first;
}

Operation *Step::findSharedGradient(Operation *op,
                                    SmallVectorImpl<Operation *> *hoisted,
                                    Operation **reader) const {
  if (isWider(op))
    return findFirstReader(op);
  auto activation = dyn_cast<RecomputedInGradient>(op);
  if (!activation)
    return nullptr;
  Operation *gradient = nullptr, *first = nullptr;
  for (Operation *user : op->getOperand(0).getUsers())
    if (isBelow(user) && activation.isRecomputedIn(user))
      gradient = user;
  for (Operation *user : op->getUsers())
    if (isBelow(user) && (!first || user->isBeforeInBlock(first)))
      first = user;
  if (!gradient || !first)
    return nullptr;

  // What the gradient reads has to come before the first reader, too.
  DenseSet<Operation *> needed = {gradient};
  SmallVector<Operation *> ops;
  for (Operation *next = gradient;
       next != first && first->isBeforeInBlock(next);
       next = next->getPrevNode()) {
    if (!needed.contains(next))
      continue;
    ops.push_back(next);
    for (Value operand : next->getOperands())
      needed.insert(operand.getDefiningOp());
  }
  if (needed.contains(first))
    return nullptr;
  if (hoisted)
    hoisted->assign(ops.rbegin(), ops.rend());
  if (reader)
    *reader = first;
  return gradient;
}

bool Step::isFree(Operation *op) const {
  auto decision = op->getAttrOfType<RecomputeAttr>(kDecisionAttr);
  return decision && decision.getLabel() == kFreeLabel &&
         findSharedGradient(op);
}

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

/// Checks the decision of one op above `nn.backward`.
static LogicalResult verifyDecision(Operation *op, RecomputeAttr decision) {
  if (op->hasTrait<nn::NeverReplayed>())
    return op->emitOpError("needs to be kept: what it decides is decided once, "
                           "and a replay could decide otherwise");
  if (!nn::mayBeReplayed(op))
    return op->emitOpError("needs to be free of side effects to be recomputed: "
                           "they would happen twice");
  if (decision.getResults() && decision.getResults().empty())
    return op->emitOpError("needs a result to drop, but got a decision with "
                           "'results' empty");
  return success();
}

LogicalResult Step::verifyDecisions() const {
  for (Operation *op : forward)
    if (auto decision = op->getAttrOfType<RecomputeAttr>(kDecisionAttr))
      if (failed(verifyDecision(op, decision)))
        return failure();
  for (Operation *op : below) {
    if (!op->hasAttr(kDecisionAttr))
      continue;
    InFlightDiagnostic error = op->emitOpError(
        "needs to be above nn.backward to have a decision on its results");
    error.attachNote(backward->getLoc()) << "the backward phase begins here";
    return error;
  }
  return verifyShares(backward->getParentOfType<func::FuncOp>(), *this);
}

//===----------------------------------------------------------------------===//
// Originals
//===----------------------------------------------------------------------===//

SmallVector<NamedAttribute> remat::getOwnAttributes(Operation *op) {
  SmallVector<NamedAttribute> attributes;
  for (NamedAttribute attribute : op->getAttrs())
    if (attribute.getName() != kDecisionAttr &&
        attribute.getName() != kReplayAttr &&
        attribute.getName() != kFreeAttr && attribute.getName() != kShareAttr)
      attributes.push_back(attribute);
  return attributes;
}

Originals::Originals(const Step &step) {
  for (Operation *op : step.forward)
    candidates[{nn::getScope(op), op->getName()}].push_back(op);
}

ArrayRef<Operation *> Originals::getCandidates(Operation *replay) {
  return candidates[{nn::getScope(replay), replay->getName()}];
}

Value Originals::trace(Value value) const {
  if (auto fence = value.getDefiningOp<FenceOp>())
    return fence.getValue();
  if (Value whole = shared.lookup(value))
    return whole;
  if (auto result = dyn_cast<OpResult>(value))
    if (Operation *original = found.lookup(result.getOwner()))
      return original->getResult(result.getResultNumber());
  return value;
}

Value Originals::findShared(Operation *op) {
  if (!isReplay(op) || op->getNumOperands() != 1)
    return {};
  auto fence = op->getOperand(0).getDefiningOp<FenceOp>();
  Operation *part = fence ? fence.getValue().getDefiningOp() : nullptr;
  if (!part || !part->hasAttr(kShareAttr) || !nn::makesWhole(op, part))
    return {};
  return shared[op->getResult(0)] = nn::getWhole(part);
}

Operation *Originals::find(Operation *replay) {
  SmallVector<Value> operands = llvm::map_to_vector(
      replay->getOperands(), [&](Value operand) { return trace(operand); });
  for (Operation *original : getCandidates(replay)) {
    if (llvm::equal(original->getOperands(), operands) &&
        original->getResultTypes() == replay->getResultTypes() &&
        getOwnAttributes(original) == getOwnAttributes(replay)) {
      found[replay] = original;
      return original;
    }
  }
  return nullptr;
}
