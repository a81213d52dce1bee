//===- BudgetRivals.cpp - What Megatron's options would take --------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BudgetPlans.h"
#include "mlir/Pass/PassManager.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Remat/Passes.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::pipelines;

namespace {
/// Decides as an option says, and runs that on the graph of a step that nobody
/// has decided.
class Rivals {
public:
  Rivals(const Trial &trial, const TracedGraph &traced, bool keepsIdleSegment,
         MeasureRival measure);

  BudgetChoice trySelective(StringRef modules);
  BudgetChoice tryFull(StringRef method, int64_t numLayers);

  int64_t numLayers = 0;

private:
  BudgetChoice run(std::string name, std::unique_ptr<Pass> decider,
                   bool isFull);
  remat::RecomputeAttr getDecision(size_t value) const;
  int64_t getLastSegment() const;

  const TracedGraph &traced;
  bool keepsIdleSegment;
  MeasureRival measure;
  OwningOpRef<ModuleOp> module;
  func::FuncOp step;
  std::vector<Operation *> ops;
};
} // namespace

Rivals::Rivals(const Trial &trial, const TracedGraph &traced,
               bool keepsIdleSegment, MeasureRival measure)
    : traced(traced), keepsIdleSegment(keepsIdleSegment), measure(measure),
      module(trial.getModule().clone()),
      step(module->lookupSymbol<func::FuncOp>(nn::kStepFunction)) {
  for (Operation &op : step.getBody().front()) {
    ops.push_back(&op);
    if (nn::ScopeAttr scope = nn::getScope(&op))
      numLayers = std::max(numLayers, scope.getLayer() + 1);
  }
}

/// The decision that drops a value of the graph; null if it is kept.
remat::RecomputeAttr Rivals::getDecision(size_t value) const {
  StepResult origin = traced.origins[value];
  if (origin.op < 0)
    return nullptr;
  auto decision =
      ops[origin.op]->getAttrOfType<remat::RecomputeAttr>(remat::kDecisionAttr);
  if (!decision ||
      (decision.getResults() &&
       !llvm::is_contained(decision.getResults().asArrayRef(), origin.number)))
    return nullptr;
  return decision;
}

/// That of the last layer; -1 if it is in none.
int64_t Rivals::getLastSegment() const {
  int64_t segment = -1;
  for (Operation *op : ops)
    if (nn::ScopeAttr scope = nn::getScope(op);
        scope && scope.getLayer() == numLayers - 1)
      if (auto decision =
              op->getAttrOfType<remat::RecomputeAttr>(remat::kDecisionAttr))
        segment = decision.getSegment();
  return segment;
}

BudgetChoice Rivals::run(std::string name, std::unique_ptr<Pass> decider,
                         bool isFull) {
  for (Operation *op : ops)
    op->removeAttr(remat::kDecisionAttr);
  PassManager manager(module->getContext());
  if (decider)
    manager.addNestedPass<func::FuncOp>(std::move(decider));
  (void)manager.run(*module);
  solver::KeptValues kept = solver::keepAll(traced.graph), lastKept = kept;
  int64_t last = getLastSegment();
  for (size_t v = 0; v < kept.size(); ++v)
    if (remat::RecomputeAttr decision = getDecision(v)) {
      kept[v] = false;
      lastKept[v] = lastKept[v] && decision.getSegment() == last;
    }
  BudgetChoice choice = measure(kept);
  choice.name = name;
  if (!isFull || !keepsIdleSegment || last < 0)
    return choice;
  // As reprise-keep-idle-segment does.
  BudgetChoice other = measure(lastKept);
  other.name = name;
  return other.bytes <= choice.bytes ? other : choice;
}

BudgetChoice Rivals::trySelective(StringRef modules) {
  if (modules.empty())
    return run("none", nullptr, /*isFull=*/false);
  remat::AnnotateSelectiveOptions options;
  options.modules = modules.str();
  return run("selective " + modules.str(),
             remat::createAnnotateSelective(options), /*isFull=*/false);
}

BudgetChoice Rivals::tryFull(StringRef method, int64_t number) {
  remat::AnnotateFullOptions options;
  options.method = method.str();
  options.numLayers = number;
  return run("full " + method.str() + " " + std::to_string(number),
             remat::createAnnotateFull(options), /*isFull=*/true);
}

FailureOr<TracedGraph>
pipelines::traceUndecided(Trial &trial, const CostTable &costs, bool isFree) {
  for (Operation &op : trial.getStep().getBody().front())
    op.removeAttr(remat::kDecisionAttr);
  return trial.trace(costs, isFree);
}

std::vector<BudgetChoice> pipelines::tryRivals(const Trial &trial,
                                               const TracedGraph &traced,
                                               const BudgetSettings &settings,
                                               int64_t bytes,
                                               MeasureRival measure) {
  Rivals rivals(trial, traced, settings.keepsIdleSegment, measure);
  std::vector<BudgetChoice> choices;
  for (StringRef modules :
       {"", "layernorm", "core_attn", "mlp", "core_attn,layernorm",
        "mlp,layernorm", "core_attn,mlp", "core_attn,mlp,layernorm"})
    choices.push_back(rivals.trySelective(modules));
  if (rivals.numLayers == 0)
    return choices;
  // More layers of `block` need less memory and take longer.
  int64_t low = 1, high = rivals.numLayers;
  while (low < high) {
    int64_t middle = (low + high) / 2;
    if (rivals.tryFull("block", middle).bytes <= bytes)
      high = middle;
    else
      low = middle + 1;
  }
  choices.push_back(rivals.tryFull("block", low));
  std::optional<BudgetChoice> uniform;
  for (int64_t number = 1; number <= rivals.numLayers; number *= 2) {
    BudgetChoice choice = rivals.tryFull("uniform", number);
    bool fits = choice.bytes <= bytes;
    bool isBetter =
        !uniform || (uniform->bytes <= bytes
                         ? fits && choice.replaySeconds < uniform->replaySeconds
                         : choice.bytes < uniform->bytes);
    if (isBetter)
      uniform = choice;
  }
  choices.push_back(*uniform);
  return choices;
}
