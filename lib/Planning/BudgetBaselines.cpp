//===- BudgetBaselines.cpp - Plans of Megatron's options --------*- C++ -*-===//
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
#include "reprise/Interfaces/ExpertRounds.h"
#include "reprise/Remat/Labels.h"
#include "reprise/Remat/Passes.h"
#include "reprise/Remat/Undo.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::planning;

namespace {
/// Decides as an option says, and runs that on the graph of a step that nobody
/// has decided.
class Baselines {
public:
  Baselines(const WhatIf &whatIf, const TracedGraph &traced,
            bool keepsIdleSegment, MeasureBaseline measure, PlanBaseline plan);

  SmallVector<StringRef> listModules() const;
  /// What is listed in the end has the bytes of its memory plan; what is tried
  /// on the way, those that are alive.
  BudgetChoice trySelective(StringRef modules);
  BudgetChoice tryFull(StringRef method, int64_t numLayers,
                       bool isListed = false);

  /// What any of them keeps.
  std::vector<solver::KeptValues> listKept();

  int64_t numLayers = 0;

private:
  void decide(std::unique_ptr<Pass> decider);
  /// What the decisions keep, but for those of `segment`.
  solver::KeptValues getKept(std::optional<int64_t> segment = {}) const;
  BudgetChoice run(std::string name, std::unique_ptr<Pass> decider, bool isFull,
                   bool isListed);
  remat::RecomputeAttr getDecision(size_t value) const;
  int64_t getLastSegment() const;

  const TracedGraph &traced;
  bool keepsIdleSegment;
  MeasureBaseline measure;
  PlanBaseline plan;
  OwningOpRef<ModuleOp> module;
  func::FuncOp step;
  std::vector<Operation *> ops;
};
} // namespace

Baselines::Baselines(const WhatIf &whatIf, const TracedGraph &traced,
                     bool keepsIdleSegment, MeasureBaseline measure,
                     PlanBaseline plan)
    : traced(traced), keepsIdleSegment(keepsIdleSegment), measure(measure),
      plan(plan), module(whatIf.getModule().clone()),
      step(module->lookupSymbol<func::FuncOp>(nn::kStepFunction)) {
  for (Operation &op : step.getBody().front()) {
    ops.push_back(&op);
    if (nn::ScopeAttr scope = nn::getScope(&op))
      numLayers = std::max(numLayers, scope.getLayer() + 1);
  }
}

/// The decision that drops a value of the graph; null if it is kept.
remat::RecomputeAttr Baselines::getDecision(size_t value) const {
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
int64_t Baselines::getLastSegment() const {
  int64_t segment = -1;
  for (Operation *op : ops)
    if (nn::ScopeAttr scope = nn::getScope(op);
        scope && scope.getLayer() == numLayers - 1)
      if (auto decision =
              op->getAttrOfType<remat::RecomputeAttr>(remat::kDecisionAttr);
          decision && decision.getLabel() != kRoundsLabel)
        segment = decision.getSegment();
  return segment;
}

void Baselines::decide(std::unique_ptr<Pass> decider) {
  for (Operation *op : ops)
    remat::undecide(op);
  PassManager manager(module->getContext());
  if (decider)
    manager.addNestedPass<func::FuncOp>(std::move(decider));
  (void)manager.run(*module);
}

solver::KeptValues Baselines::getKept(std::optional<int64_t> segment) const {
  solver::KeptValues kept = solver::keepAll(traced.graph);
  for (size_t v = 0; v < kept.size(); ++v)
    if (remat::RecomputeAttr decision = getDecision(v))
      kept[v] = kept[v] && decision.getSegment() == segment &&
                decision.getLabel() != kRoundsLabel;
  return kept;
}

BudgetChoice Baselines::run(std::string name, std::unique_ptr<Pass> decider,
                            bool isFull, bool isListed) {
  decide(std::move(decider));
  int64_t last = getLastSegment();
  BaselineRun found = measure(getKept());
  // As reprise-keep-idle-segment does.
  if (isFull && keepsIdleSegment && last >= 0)
    if (BaselineRun other = measure(getKept(last));
        other.programBytes <= found.programBytes) {
      found = other;
      for (Operation *op : ops)
        if (auto decision =
                op->getAttrOfType<remat::RecomputeAttr>(remat::kDecisionAttr);
            decision && decision.getSegment() == last &&
            decision.getLabel() != kRoundsLabel)
          op->setAttr(remat::kDecisionAttr,
                      remat::SaveAttr::get(module->getContext(), "idle", last));
    }
  if (isListed && plan)
    if (int64_t bytes = plan(step); bytes >= 0)
      found.bytes = bytes;
  return {std::move(name), found.bytes, found.replaySeconds};
}

/// What `selective` may recompute.
static constexpr StringLiteral kModules[] = {"",
                                             "layernorm",
                                             "core_attn",
                                             "mlp",
                                             "core_attn,layernorm",
                                             "mlp,layernorm",
                                             "core_attn,mlp",
                                             "core_attn,mlp,layernorm",
                                             "moe_act",
                                             "moe",
                                             "moe_act,layernorm",
                                             "moe,layernorm",
                                             "core_attn,moe,layernorm",
                                             "shared_experts",
                                             "mla_up_proj",
                                             "mla_up_proj,moe",
                                             "mla_up_proj,moe,layernorm"};

/// Of these the ones that this model has a use for.
SmallVector<StringRef> Baselines::listModules() const {
  SmallVector<StringRef> known = remat::findLabels(step), list;
  for (StringRef modules : kModules) {
    SmallVector<StringRef> labels;
    modules.split(labels, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
    if (remat::hasLabels(known, labels))
      list.push_back(modules);
  }
  return list;
}

/// Null for none.
static std::unique_ptr<Pass> createSelective(StringRef modules) {
  if (modules.empty())
    return nullptr;
  remat::AnnotateSelectiveOptions options;
  options.modules = modules.str();
  return remat::createAnnotateSelective(options);
}

static std::unique_ptr<Pass> createFull(StringRef method, int64_t number) {
  remat::AnnotateFullOptions options;
  options.method = method.str();
  options.numLayers = number;
  return remat::createAnnotateFull(options);
}

BudgetChoice Baselines::trySelective(StringRef modules) {
  return run(modules.empty() ? "none" : "selective " + modules.str(),
             createSelective(modules), /*isFull=*/false, /*isListed=*/true);
}

BudgetChoice Baselines::tryFull(StringRef method, int64_t number,
                                bool isListed) {
  return run("full " + method.str() + " " + std::to_string(number),
             createFull(method, number), /*isFull=*/true, isListed);
}

std::vector<solver::KeptValues> Baselines::listKept() {
  std::vector<solver::KeptValues> all;
  for (StringRef modules : listModules()) {
    decide(createSelective(modules));
    all.push_back(getKept());
  }
  // Layers of `block` are segments of their own, each decided alike.
  if (numLayers > 0)
    decide(createFull("block", numLayers));
  solver::KeptValues kept = solver::keepAll(traced.graph);
  for (int64_t layer = 0; layer < numLayers; ++layer) {
    for (size_t v = 0; v < kept.size(); ++v)
      if (remat::RecomputeAttr decision = getDecision(v))
        kept[v] = kept[v] && decision.getSegment() != layer &&
                  decision.getLabel() != kRoundsLabel;
    all.push_back(kept);
  }
  // Long segments need more than they free; few of them are tried.
  constexpr int64_t kShort = 8;
  for (int64_t number = 1; number <= numLayers;
       number += number < kShort ? 1 : number) {
    decide(createFull("uniform", number));
    all.push_back(getKept());
    all.push_back(getKept(getLastSegment()));
  }
  return all;
}

std::vector<solver::KeptValues>
planning::listOptions(const WhatIf &whatIf, const TracedGraph &traced) {
  return Baselines(whatIf, traced, /*keepsIdleSegment=*/true, nullptr, nullptr)
      .listKept();
}

FailureOr<TracedGraph>
planning::traceUndecided(WhatIf &whatIf, const CostTable &costs, bool isFree) {
  for (Operation &op : whatIf.getStep().getBody().front())
    remat::undecide(&op);
  return whatIf.trace(costs, isFree);
}

std::vector<BudgetChoice>
planning::tryBaselines(const WhatIf &whatIf, const TracedGraph &traced,
                       const BudgetSettings &settings, int64_t bytes,
                       MeasureBaseline measure, PlanBaseline plan) {
  Baselines baselines(whatIf, traced, settings.keepsIdleSegment, measure, plan);
  std::vector<BudgetChoice> choices;
  for (StringRef modules : baselines.listModules())
    choices.push_back(baselines.trySelective(modules));
  if (baselines.numLayers == 0)
    return choices;
  // More layers of `block` need less memory and take longer.
  int64_t low = 1, high = baselines.numLayers;
  while (low < high) {
    int64_t middle = (low + high) / 2;
    if (baselines.tryFull("block", middle).bytes <= bytes)
      high = middle;
    else
      low = middle + 1;
  }
  // Packed, one may miss what is alive.
  BudgetChoice block = baselines.tryFull("block", low, /*isListed=*/true);
  while (block.bytes > bytes && low < baselines.numLayers)
    block = baselines.tryFull("block", ++low, /*isListed=*/true);
  choices.push_back(block);
  std::optional<BudgetChoice> uniform;
  int64_t best = 1;
  for (int64_t number = 1; number <= baselines.numLayers; number *= 2) {
    BudgetChoice choice = baselines.tryFull("uniform", number);
    bool fits = choice.bytes <= bytes;
    bool isBetter =
        !uniform || (uniform->bytes <= bytes
                         ? fits && choice.replaySeconds < uniform->replaySeconds
                         : choice.bytes < uniform->bytes);
    if (isBetter) {
      uniform = choice;
      best = number;
    }
  }
  choices.push_back(baselines.tryFull("uniform", best, /*isListed=*/true));
  return choices;
}
