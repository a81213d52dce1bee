//===- Alternatives.cpp - Other plans for the same step ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Alternatives.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Pipelines/Registration.h"
#include "reprise/Remat/Labels.h"
#include "reprise/Remat/Undo.h"
#include "reprise/Support/CopyModule.h"
#include "reprise/Support/RecomputeLabels.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include <atomic>
#include <thread>

using namespace mlir;
using namespace reprise;
using namespace reprise::driver;

namespace {
/// A way to decide, and by which label it differs from the one that is asked
/// for: "with mlp". Empty if it differs by more.
struct Candidate {
  RecomputeOptions recompute;
  std::string change;
};
} // namespace

//===----------------------------------------------------------------------===//
// Which
//===----------------------------------------------------------------------===//

/// What people choose from, as far as a model has it.
static const std::vector<std::vector<std::string>> kSelections = {
    {},
    {"core_attn"},
    {"mlp"},
    {"layernorm"},
    {"core_attn", "mlp"},
    {"core_attn", "layernorm"},
    {"mlp", "layernorm"},
    {"core_attn", "mlp", "layernorm"},
    {"core_attn_out", "mlp", "layernorm"},
    {"core_attn", "moe"},
    {"layernorm", "moe"},
    {"core_attn", "layernorm", "moe"},
    {"moe", "mla_up_proj"},
    {"core_attn", "mlp", "layernorm", "moe", "mla_up_proj"},
};

/// Labels of parts that few models have: with each of them alone, or beside
/// those that are named, it is seen what they buy.
static constexpr StringLiteral kOfFew[] = {"moe", "moe_act", "shared_experts",
                                           "mla_up_proj"};

static RecomputeOptions asSelective(RecomputeOptions recompute,
                                    const std::vector<std::string> &labels) {
  recompute.granularity = labels.empty() ? "" : "selective";
  recompute.keepsIdleSegment = true; // The last segment is one of full,
  recompute.sharesSaved = false;     // and so are inputs of segments.
  recompute.planFile.clear();
  recompute.method.clear();
  recompute.numLayers.reset();
  recompute.modules.reset();
  if (!labels.empty())
    recompute.modules = labels;
  return recompute;
}

static RecomputeOptions asFull(RecomputeOptions recompute, StringRef method,
                               int64_t numLayers) {
  recompute.granularity = "full";
  recompute.planFile.clear();
  recompute.method = method.str();
  recompute.numLayers = numLayers;
  recompute.modules.reset();
  return recompute;
}

/// "with mlp" or "without mlp", which makes `labels` of `named`; or empty.
static std::string describeChange(ArrayRef<std::string> named,
                                  ArrayRef<std::string> labels) {
  std::string change;
  for (const RecomputeLabel &label : kRecomputeLabels) {
    bool isNamed = llvm::is_contained(named, label.name);
    if (isNamed == llvm::is_contained(labels, label.name))
      continue;
    if (!change.empty())
      return "";
    change = ((isNamed ? "without " : "with ") + label.name).str();
  }
  return change;
}

/// The labels of `named` and another one, in the order of their table.
static std::vector<std::string> with(std::vector<std::string> named,
                                     StringRef other) {
  named.push_back(other.str());
  llvm::sort(named, [](StringRef a, StringRef b) {
    auto place = [](StringRef name) {
      return llvm::find_if(kRecomputeLabels, [&](const RecomputeLabel &label) {
        return label.name == name;
      });
    };
    return place(a) < place(b);
  });
  return named;
}

/// The labels of `named` less one of them.
static std::vector<std::string> without(std::vector<std::string> named,
                                        size_t index) {
  named.erase(named.begin() + index);
  return named;
}

/// In the order in which they are shown; without `all` only those that differ
/// by a label or by what is free, none, and full with segments of one layer.
///
/// \param known  the labels that the model has a use for.
static std::vector<Candidate> getCandidates(const RecomputeOptions &current,
                                            ArrayRef<StringRef> known,
                                            int64_t numLayers, bool all) {
  std::vector<Candidate> candidates;
  llvm::StringSet<> seen = {current.describe()};
  auto add = [&](const RecomputeOptions &recompute, std::string change = "") {
    if (seen.insert(recompute.describe()).second)
      candidates.push_back({recompute, std::move(change)});
  };
  std::vector<std::string> named;
  if (current.granularity == "selective")
    named = current.modules.value_or(std::vector<std::string>{"core_attn"});
  auto addSelection = [&](const std::vector<std::string> &labels) {
    if (!remat::hasLabels(known,
                          SmallVector<StringRef>(labels.begin(), labels.end())))
      return;
    std::string change;
    if (current.granularity.empty() || current.granularity == "selective")
      change = describeChange(named, labels);
    if (all || labels.empty() || !change.empty())
      add(asSelective(current, labels), std::move(change));
  };
  for (const std::vector<std::string> &labels : kSelections)
    addSelection(labels);
  for (StringRef label : kOfFew) {
    addSelection({label.str()});
    if (!llvm::is_contained(named, label))
      addSelection(with(named, label));
  }
  for (size_t index = 0; index < named.size(); ++index)
    addSelection(without(named, index));
  add(asFull(current, "uniform", 1));
  RecomputeOptions other = current;
  other.isFree = !current.isFree;
  if (current.granularity != "plan")
    add(other, other.isFree ? "with free" : "without free");
  if (!all)
    return candidates;
  for (int64_t number = 2; number <= std::min<int64_t>(numLayers, 8);
       number *= 2)
    add(asFull(current, "uniform", number));
  int64_t last = 0;
  for (int64_t quarters = 1; quarters < 4; ++quarters)
    if (int64_t number = numLayers * quarters / 4;
        std::exchange(last, number) != number)
      add(asFull(current, "block", number));
  return candidates;
}

/// The options that make a description have this plan.
static std::vector<std::string> getOptions(const Options &given,
                                           const RecomputeOptions &current,
                                           const RecomputeOptions &recompute) {
  std::vector<std::string> options;
  if (recompute.granularity != "plan") {
    options.push_back("--recompute-granularity=" + recompute.granularity);
  } else {
    // What a budget was met with, a file may have constrained.
    if (const std::string *file = given.getKey("recompute-plan"))
      options.push_back("--recompute-plan=" + *file);
    for (const auto *budget : {&given.memoryBudget, &given.activationBudget})
      if (budget->getNumOccurrences())
        options.push_back(("--" + budget->ArgStr + "=" + *budget).str());
  }
  if (recompute.granularity == "selective" && recompute.modules)
    options.push_back("--recompute-modules=" +
                      llvm::join(*recompute.modules, ","));
  if (recompute.granularity == "full") {
    options.push_back("--recompute-method=" + recompute.method);
    options.push_back("--recompute-num-layers=" +
                      std::to_string(recompute.numLayers.value_or(0)));
    if (!recompute.keepsIdleSegment)
      options.push_back("--recompute-last-segment=always");
    if (recompute.sharesSaved)
      options.push_back("--distribute-saved-activations=true");
  }
  // What the description says of it is not known here.
  if (!recompute.isFree || !current.isFree || given.getKey("free-recompute"))
    options.push_back(std::string("--free-recompute=") +
                      (recompute.isFree ? "on" : "off"));
  return options;
}

//===----------------------------------------------------------------------===//
// What they cost
//===----------------------------------------------------------------------===//

static FailureOr<report::Alternative> plan(ModuleOp joint,
                                           const RecomputeOptions &recompute,
                                           const CostTable &costs) {
  OwningOpRef<ModuleOp> module = joint.clone();
  auto run = [&](Phase from, Phase to) {
    PassManager manager(module->getContext());
    buildPipeline(manager, from, to, recompute);
    return manager.run(*module);
  };
  if (failed(run(Phase::Joint, Phase::Remat)))
    return failure();
  FailureOr<report::Plan> plan = report::readDecisions(
      module->lookupSymbol<func::FuncOp>(nn::kStepFunction), costs);
  if (failed(plan) || failed(run(Phase::Remat, Phase::RT)) ||
      failed(report::readSchedule(*plan, *module)))
    return failure();
  return plan->asAlternative();
}

/// Plans each of `candidates` for the step in `bytes`, as many at a time as
/// there are processors, each with a context of its own; nothing for what is
/// refused.
static std::vector<std::optional<report::Alternative>>
planAll(StringRef bytes, ArrayRef<Candidate> candidates,
        const CostTable &costs) {
  std::vector<std::optional<report::Alternative>> planned(candidates.size());
  std::atomic<size_t> next = 0;
  auto work = [&] {
    DialectRegistry registry;
    registerDialects(registry);
    MLIRContext context(registry, MLIRContext::Threading::DISABLED);
    // What is refused or warned of here was not asked for.
    ScopedDiagnosticHandler silent(&context,
                                   [](Diagnostic &) { return success(); });
    OwningOpRef<ModuleOp> joint = readModule(bytes, context);
    if (!joint)
      return;
    for (size_t index; (index = next++) < candidates.size();) {
      FailureOr<report::Alternative> alternative =
          plan(*joint, candidates[index].recompute, costs);
      if (succeeded(alternative))
        planned[index] = std::move(*alternative);
    }
  };
  std::vector<std::thread> threads;
  size_t count = std::min<size_t>(
      {std::thread::hardware_concurrency(), candidates.size(), 8});
  for (size_t thread = 1; thread < count; ++thread)
    threads.emplace_back(work);
  work();
  for (std::thread &thread : threads)
    thread.join();
  return planned;
}

FailureOr<std::string> driver::writeUndecided(ModuleOp module, Phase phase) {
  OwningOpRef<ModuleOp> joint;
  if (phase == Phase::Remat) {
    joint = module.clone();
    module = *joint;
    if (failed(
            remat::undo(module.lookupSymbol<func::FuncOp>(nn::kStepFunction))))
      return failure();
  }
  return writeModule(module);
}

std::vector<report::Alternative>
driver::planAlternatives(StringRef undecided, func::FuncOp step,
                         const report::Plan &current, const Options &options,
                         const RecomputeOptions &recompute) {
  std::vector<report::Alternative> alternatives;
  // What is behind a semicolon, most of them share: "; 2 stages of 2,2 layers".
  std::string described = recompute.describe();
  auto add = [&](report::Alternative alternative, const Candidate &candidate) {
    alternative.name = candidate.recompute.describe();
    alternative.isNear = !candidate.change.empty();
    alternative.change = candidate.change;
    if (!alternative.isNear) {
      StringRef name = alternative.name, rest = described;
      do
        rest = rest.drop_front().drop_until([](char c) { return c == ';'; });
      while (!rest.empty() && !name.consume_back(rest));
      alternative.change = name.str();
    }
    if (options.from.empty())
      alternative.command = options.getCommand(
          getOptions(options, recompute, candidate.recompute));
    alternatives.push_back(std::move(alternative));
  };
  report::Alternative chosen;
  chosen.isChosen = true;
  add(std::move(chosen), {recompute, ""});

  int64_t numLayers = llvm::count_if(
      current.decisions.layers,
      [](const remat::LayerPlan &layer) { return layer.layer >= 0; });
  // Segments end where a model chunk does.
  if (!recompute.chunks.empty())
    numLayers = *llvm::max_element(recompute.chunks);
  std::vector<Candidate> candidates = getCandidates(
      recompute, remat::findLabels(step), numLayers, !options.report.empty());
  auto planned = planAll(undecided, candidates, current.costs);
  for (auto [candidate, alternative] : llvm::zip(candidates, planned))
    if (alternative)
      add(std::move(*alternative), candidate);
  return alternatives;
}

void driver::chooseAlternative(report::Plan &plan) {
  for (report::Alternative &alternative : plan.alternatives) {
    if (!alternative.isChosen)
      continue;
    report::Alternative chosen = plan.asAlternative();
    chosen.isChosen = true;
    chosen.name = alternative.name;
    chosen.change = alternative.change;
    chosen.command = alternative.command;
    alternative = std::move(chosen);
  }
}
