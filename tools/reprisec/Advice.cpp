//===- Advice.cpp - What to change where no plan fits -----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Advice.h"
#include "Budgets.h"
#include "Input.h"
#include "Reports.h"
#include "Stages.h"
#include "mlir/Pass/PassManager.h"
#include "reprise/Pipelines/StagePrograms.h"
#include "reprise/Remat/Summary.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::driver;
using frontend::Description;

namespace {
/// Tries steps of other descriptions for a budget.
class Adviser {
public:
  Adviser(MLIRContext &context, const planning::Budget &budget,
          const CostTable &costs, const RecomputeOptions &recompute,
          const TargetOptions &target, bool hasPrograms, bool inference)
      : context(context), budget(budget), costs(costs), recompute(recompute),
        target(target), hasPrograms(hasPrograms), inference(inference) {}

  /// The smallest plan's bytes, with stages those of the one that needs most;
  /// nothing if there is none.
  std::optional<int64_t> findSmallest(const Description &description) const;
  /// Whether each of so many stages of the pipeline has a plan that fits.
  bool fitsStages(Description description, int64_t stages) const;

private:
  OwningOpRef<ModuleOp> decide(OwningOpRef<ModuleOp> module,
                               const RecomputeOptions &recompute) const;
  std::optional<int64_t>
  findSmallestOnStages(const Description &description) const;

  MLIRContext &context;
  planning::Budget budget;
  CostTable costs;
  RecomputeOptions recompute;
  TargetOptions target;
  bool hasPrograms; ///< stages are compiled, with what the programs are to have
  bool inference;
};

/// A description with another key, and how one asks for that.
struct Change {
  std::string option;
  void (*apply)(Description &description);
};
} // namespace

/// A step in the phase joint, with what is decided of it.
OwningOpRef<ModuleOp> Adviser::decide(OwningOpRef<ModuleOp> module,
                                      const RecomputeOptions &recompute) const {
  if (!module)
    return nullptr;
  setTarget(*module, target);
  PassManager manager(&context);
  buildPipeline(manager, Phase::NN, Phase::Joint, recompute,
                /*inference=*/false);
  buildDeciders(manager, recompute);
  return succeeded(manager.run(*module)) ? std::move(module) : nullptr;
}

std::optional<int64_t>
Adviser::findSmallest(const Description &description) const {
  if (description.parallel.stages > 1)
    return findSmallestOnStages(description);
  OwningOpRef<ModuleOp> module =
      decide(frontend::buildModel(context, description), recompute);
  if (!module)
    return std::nullopt;
  FailureOr<int64_t> bytes = planning::findSmallest(
      getPhases(), *module, budget.kind, costs, recompute.isFree);
  return failed(bytes) ? std::nullopt : std::optional<int64_t>(*bytes);
}

std::optional<int64_t>
Adviser::findSmallestOnStages(const Description &description) const {
  RecomputeOptions split = recompute;
  split.stages = description.parallel.stages;
  split.chunks = description.parallel.chunks;
  OwningOpRef<ModuleOp> module =
      description.parallel.dataParallel > 1
          ? frontend::buildPlanned(context, description, /*needsChain=*/true)
          : frontend::buildModel(context, description);
  if (module)
    frontend::setSchedule(*module, description.parallel);
  module = decide(std::move(module), split);
  OwningOpRef<ModuleOp> stages = frontend::buildModel(context, description);
  if (!module || !stages)
    return std::nullopt;
  setTarget(*stages, target);
  if (failed(frontend::makePipeline(*stages, description.parallel)))
    return std::nullopt;
  std::optional<StagePrograms> programs;
  planning::BudgetSettings settings;
  settings.isFree = recompute.isFree;
  if (hasPrograms) {
    programs.emplace(*stages, recompute.isFree, inference);
    settings.measureStages = [&](ModuleOp decided) {
      return programs->measure(decided, budget.kind);
    };
  }
  FailureOr<int64_t> bytes = planning::findSmallestOnStages(
      getPhases(), *module, budget.kind, costs, settings);
  return failed(bytes) ? std::nullopt : std::optional<int64_t>(*bytes);
}

bool Adviser::fitsStages(Description description, int64_t stages) const {
  frontend::Parallel &parallel = description.parallel;
  parallel.stages = stages;
  parallel.chunks.clear();
  int64_t layers = description.model.numLayers;
  for (int64_t stage = 0; stage < stages; ++stage)
    parallel.chunks.push_back(layers / stages + (stage < layers % stages));
  parallel.chunks.back() += description.train.furtherLayers;
  std::optional<int64_t> need = findSmallestOnStages(description);
  return need && *need <= budget.bytes;
}

/// What makes a step smaller and can still be asked for, by what it changes of
/// training: nothing, then nothing but rounding first.
static std::vector<Change> listChanges(const Description &description) {
  const frontend::Train &train = description.train;
  const frontend::Parallel &parallel = description.parallel;
  std::vector<Change> changes;
  if (parallel.stages > 1 && parallel.virtualStages == 1 &&
      !llvm::is_contained({"", "1f1b"}, parallel.schedule))
    changes.push_back(
        {"--pipeline-schedule=1f1b", [](Description &description) {
           description.parallel.schedule = "1f1b";
         }});
  if (train.microBatchSize > 1) {
    // As many samples a step as before.
    std::string batch =
        train.globalBatchSize
            ? ""
            : " --global-batch-size=" +
                  std::to_string(description.getGlobalBatchSize());
    changes.push_back(
        {"--micro-batch-size=1" + batch, [](Description &description) {
           description.train.globalBatchSize = description.getGlobalBatchSize();
           description.train.microBatchSize = 1;
         }});
  }
  if (train.precision != "bf16")
    changes.push_back({"--precision=bf16", [](Description &description) {
                         description.train.precision = "bf16";
                       }});
  if (train.seqLength > 1)
    changes.push_back(
        {"--seq-length=" + std::to_string(train.seqLength / 2),
         [](Description &description) { description.train.seqLength /= 2; }});
  return changes;
}

static void printNeed(const std::string &options, int64_t bytes,
                      const planning::Budget &budget, bool isOfStages) {
  llvm::WithColor::note() << "with " << options
                          << (isOfStages ? " a stage needs at most "
                                         : " it needs ")
                          << remat::formatBytes(bytes)
                          << (bytes <= budget.bytes ? ", which fits" : "")
                          << "\n";
}

/// Into how many stages the model must be cut at least, each half as long as
/// those tried before; nothing where the description says more than a number
/// of stages.
static void adviseOnStages(const Adviser &adviser,
                           const Description &description) {
  int64_t layers = description.model.numLayers;
  const frontend::Parallel &parallel = description.parallel;
  if (parallel.virtualStages > 1 || parallel.layout || parallel.firstStage ||
      parallel.lastStage || parallel.countsEmbedding || parallel.countsLoss)
    return;
  for (int64_t stages = 2 * parallel.stages; stages <= layers; stages *= 2)
    if (adviser.fitsStages(description, stages)) {
      llvm::WithColor::note()
          << "with --pipeline-model-parallel-size=" << stages
          << " each stage fits, on a device of its own\n";
      return;
    }
}

void driver::adviseOn(MLIRContext &context, const Description &description,
                      const planning::Budget &budget, const Options &options,
                      const RecomputeOptions &recompute,
                      const TargetOptions &target, bool hasPrograms) {
  FailureOr<CostTable> costs = readCosts(options, target.isCuda);
  if (failed(costs))
    return;
  // What these say has been said, or is of descriptions that nobody wrote.
  ScopedDiagnosticHandler quiet(&context,
                                [](Diagnostic &) { return success(); });
  Adviser adviser(context, budget, *costs, getConstraint(options, recompute),
                  target, hasPrograms, options.inference == "on");
  std::optional<int64_t> bytes = adviser.findSmallest(description);
  if (!bytes || *bytes <= budget.bytes)
    return;
  // Together: those that help, if that is less than one alone.
  std::string all;
  Description together = description;
  int64_t numHelpful = 0, least = *bytes;
  bool fits = false, isOfStages = description.parallel.stages > 1;
  for (const Change &change : listChanges(description)) {
    Description changed = description;
    change.apply(changed);
    std::optional<int64_t> need = adviser.findSmallest(changed);
    if (!need || *need >= *bytes)
      continue;
    printNeed(change.option, *need, budget, isOfStages);
    fits |= *need <= budget.bytes;
    least = std::min(least, *need);
    change.apply(together);
    all += (all.empty() ? "" : " ") + change.option;
    ++numHelpful;
  }
  if (!fits && numHelpful > 1)
    if (std::optional<int64_t> need = adviser.findSmallest(together);
        need && *need < least) {
      printNeed(all, *need, budget, isOfStages);
      fits = *need <= budget.bytes;
    }
  if (!fits)
    adviseOnStages(adviser, description);
}
