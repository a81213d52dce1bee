//===- Advice.cpp - What to change where no plan fits -----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Advice.h"
#include "Budgets.h"
#include "Reports.h"
#include "mlir/Pass/PassManager.h"
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
          const TargetOptions &target)
      : context(context), budget(budget), costs(costs), recompute(recompute),
        target(target) {}

  /// The smallest plan's bytes; nothing if there is none.
  std::optional<int64_t> findSmallest(const Description &description) const;
  /// Whether each of so many stages of the pipeline has a plan that fits.
  bool fitsStages(const Description &description, int64_t stages) const;

private:
  OwningOpRef<ModuleOp> decide(const Description &description,
                               const RecomputeOptions &recompute) const;

  MLIRContext &context;
  planning::Budget budget;
  CostTable costs;
  RecomputeOptions recompute;
  TargetOptions target;
};

/// A description with another key, and how one asks for that.
struct Change {
  std::string option;
  void (*apply)(Description &description);
};
} // namespace

/// The step of `description` in the phase joint, with what is decided of it.
OwningOpRef<ModuleOp> Adviser::decide(const Description &description,
                                      const RecomputeOptions &recompute) const {
  OwningOpRef<ModuleOp> module = frontend::buildModel(context, description);
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
  OwningOpRef<ModuleOp> module = decide(description, recompute);
  if (!module)
    return std::nullopt;
  FailureOr<int64_t> bytes = planning::findSmallest(
      getPhases(), *module, budget.kind, costs, recompute.isFree);
  return failed(bytes) ? std::nullopt : std::optional<int64_t>(*bytes);
}

bool Adviser::fitsStages(const Description &description, int64_t stages) const {
  RecomputeOptions split = recompute;
  split.stages = stages;
  split.chunks.clear();
  int64_t layers = description.model.numLayers;
  for (int64_t stage = 0; stage < stages; ++stage)
    split.chunks.push_back(layers / stages + (stage < layers % stages));
  split.chunks.back() += description.train.furtherLayers;
  OwningOpRef<ModuleOp> module = decide(description, split);
  planning::BudgetSettings settings;
  settings.isFree = recompute.isFree;
  settings.keepsIdleSegment = recompute.keepsIdleSegment;
  settings.hasBaselines = false;
  return module && succeeded(planning::solveStages(getPhases(), *module, budget,
                                                   costs, settings));
}

/// What makes a step smaller and can still be asked for, by what it changes of
/// training: nothing but rounding first.
static std::vector<Change> listChanges(const Description &description) {
  const frontend::Train &train = description.train;
  std::vector<Change> changes;
  if (train.microBatchSize > 1) {
    // As many samples a step as before.
    std::string batch =
        train.globalBatchSize
            ? ""
            : " --global-batch-size=" + std::to_string(train.microBatchSize);
    changes.push_back(
        {"--micro-batch-size=1" + batch, [](Description &description) {
           frontend::Train &train = description.train;
           train.globalBatchSize =
               train.globalBatchSize.value_or(train.microBatchSize);
           train.microBatchSize = 1;
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
                      const planning::Budget &budget) {
  llvm::WithColor::note() << "with " << options << " it needs "
                          << remat::formatBytes(bytes)
                          << (bytes <= budget.bytes ? ", which fits" : "")
                          << "\n";
}

/// Into how many stages the model must be cut at least, each half as long as
/// those tried before.
static void adviseOnStages(const Adviser &adviser,
                           const Description &description) {
  int64_t layers = description.model.numLayers;
  for (int64_t stages = 2; stages <= layers; stages *= 2)
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
                      const TargetOptions &target) {
  if (recompute.stages > 1)
    return;
  FailureOr<CostTable> costs = readCosts(options, target.isCuda);
  if (failed(costs))
    return;
  // What these say has been said, or is of descriptions that nobody wrote.
  ScopedDiagnosticHandler quiet(&context,
                                [](Diagnostic &) { return success(); });
  Adviser adviser(context, budget, *costs, getConstraint(options, recompute),
                  target);
  std::optional<int64_t> bytes = adviser.findSmallest(description);
  if (!bytes || *bytes <= budget.bytes)
    return;
  // Together: those that help, if that is less than one alone.
  std::string all;
  Description together = description;
  int64_t numHelpful = 0, least = *bytes;
  bool fits = false;
  for (const Change &change : listChanges(description)) {
    Description changed = description;
    change.apply(changed);
    std::optional<int64_t> need = adviser.findSmallest(changed);
    if (!need || *need >= *bytes)
      continue;
    printNeed(change.option, *need, budget);
    fits |= *need <= budget.bytes;
    least = std::min(least, *need);
    change.apply(together);
    all += (all.empty() ? "" : " ") + change.option;
    ++numHelpful;
  }
  if (!fits && numHelpful > 1)
    if (std::optional<int64_t> need = adviser.findSmallest(together);
        need && *need < least) {
      printNeed(all, *need, budget);
      fits = *need <= budget.bytes;
    }
  if (!fits)
    adviseOnStages(adviser, description);
}
