//===- Budgets.cpp - Plans for a budget, on request -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Budgets.h"
#include "Output.h"
#include "Reports.h"
#include "mlir/Pass/PassManager.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/NN/Workload.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Planning/Passes.h"
#include "reprise/Planning/StageBytes.h"
#include "reprise/Remat/PlanFile.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/WithColor.h"
#include <cmath>
#include <sstream>

using namespace mlir;
using namespace reprise;
using namespace reprise::driver;

/// More than any machine has, and little enough to add up.
static constexpr int64_t kMostBytes = int64_t(1) << 60;

std::optional<int64_t> driver::parseBytes(StringRef text) {
  size_t digits = text.find_first_not_of("0123456789.");
  StringRef number = text.take_front(digits), unit = text.substr(digits).trim();
  if (digits == StringRef::npos)
    unit = "";
  double factor = llvm::StringSwitch<double>(unit.lower())
                      .Cases({"", "b"}, 1)
                      .Case("kib", 1024.0)
                      .Case("mib", 1048576.0)
                      .Case("gib", 1073741824.0)
                      .Case("tib", 1099511627776.0)
                      .Case("kb", 1e3)
                      .Case("mb", 1e6)
                      .Case("gb", 1e9)
                      .Case("tb", 1e12)
                      .Default(0);
  double value = 0;
  if (factor == 0 || number.getAsDouble(value) || value * factor < 1 ||
      value * factor > double(kMostBytes))
    return std::nullopt;
  return int64_t(std::floor(value * factor));
}

/// A number alone is of bytes. Who writes a small one means another unit: no
/// step fits into so little.
static void noteUnit(const cl::opt<std::string> &option, int64_t bytes) {
  constexpr int64_t kPlausible = 1 << 16;
  StringRef number = option;
  if (bytes < kPlausible &&
      number.find_first_not_of("0123456789.") == StringRef::npos)
    llvm::WithColor::note()
        << "option --" << option.ArgStr << ": " << number
        << " is of bytes; did you mean " << number << "GiB?\n";
}

FailureOr<std::optional<planning::Budget>>
driver::readBudget(const Options &options, Phase from, Phase to) {
  using planning::Budget;
  bool hasMemory = options.memoryBudget.getNumOccurrences(),
       hasActivations = options.activationBudget.getNumOccurrences();
  std::optional<Budget> budget;
  if (!hasMemory && !hasActivations) {
    if (!options.certificate.empty())
      return failure(fail("option --certificate: needs --memory-budget or "
                          "--activation-budget, of which it is the proof"));
    if (options.pareto.empty())
      return budget;
  } else {
    if (hasMemory && hasActivations)
      return failure(fail("options --memory-budget and --activation-budget: "
                          "need to be one or the other"));
    const cl::opt<std::string> &option =
        hasMemory ? options.memoryBudget : options.activationBudget;
    std::optional<int64_t> bytes = parseBytes(option);
    if (!bytes)
      return failure(fail("option --" + option.ArgStr +
                          ": needs bytes such as 24GiB or 500MB, from 1 to "
                          "1048576TiB (" +
                          llvm::Twine(kMostBytes) + " bytes), but got '" +
                          option + "'"));
    noteUnit(option, *bytes);
    budget = {hasMemory ? Budget::Kind::Memory : Budget::Kind::Activations,
              *bytes, options.getCommandWithout(option)};
  }
  StringRef name = hasMemory        ? "memory-budget"
                   : hasActivations ? "activation-budget"
                                    : "pareto";
  bool hasFile = !options.certificate.empty() || !options.pareto.empty();
  bool hasTable =
      !options.costTable.empty() && !CostTable::get(options.costTable);
  if (StringRef(options.target).contains(',') && (hasFile || hasTable))
    return failure(fail("option --" +
                        llvm::Twine(!options.certificate.empty() ? "certificate"
                                    : hasFile ? "pareto"
                                              : "cost-table") +
                        ": needs one target, whose plan or times it has, but "
                        "--target says " +
                        options.target));
  if (from > Phase::Joint)
    return failure(fail("option --" + name +
                        ": needs an input of phase nn or joint, which is not "
                        "decided yet, but --from says " +
                        stringifyPhase(from)));
  if (to < Phase::Remat)
    return failure(fail("option --" + name +
                        ": needs --emit=remat or later, where it is decided, "
                        "but got '" +
                        options.emit + "'"));
  return budget;
}

std::string driver::describeBudget(const Options &options) {
  if (options.memoryBudget.getNumOccurrences())
    return "budget of " + options.memoryBudget;
  return "budget of " + options.activationBudget + " within a step";
}

/// The options that are called "full block 14" or "selective mlp".
static std::vector<std::string> getOptions(StringRef name) {
  SmallVector<StringRef, 3> words;
  name.split(words, ' ');
  std::string granularity = name == "none" ? "" : words[0].str();
  std::vector<std::string> options = {"--recompute-granularity=" + granularity};
  if (words[0] == "selective" && words.size() == 2)
    options.push_back("--recompute-modules=" + words[1].str());
  if (words[0] == "full" && words.size() == 3) {
    options.push_back("--recompute-method=" + words[1].str());
    options.push_back("--recompute-num-layers=" + words[2].str());
  }
  return options;
}

/// In the terms of reports.
static report::Budget asReport(const planning::BudgetReport &found,
                               const Options &options, bool isAskedFor) {
  report::Budget budget;
  budget.isOfActivations =
      found.budget.kind == planning::Budget::Kind::Activations;
  // A head in other chunks takes another time.
  for (const planning::BudgetPlan &point : found.curve)
    budget.curve.push_back(
        {point.bytes,
         std::max(point.replaySeconds + point.stepSeconds - found.stepSeconds,
                  0.0)});
  for (const planning::BudgetChoice &baseline : found.baselines)
    budget.rivals.push_back({baseline.name,
                             options.getCommand(getOptions(baseline.name)),
                             baseline.bytes, baseline.replaySeconds});
  if (!isAskedFor)
    return budget;
  budget.bytes = found.budget.bytes;
  budget.peakBytes = found.plannedBytes;
  budget.replaySeconds = found.replaySeconds;
  budget.boundSeconds = found.boundSeconds;
  budget.secondsPerByte = found.secondsPerByte;
  for (const solver::Scenario &scenario : found.scenarios)
    budget.scenarios.push_back({scenario.name,
                                scenario.seconds * found.microBatches,
                                scenario.bestSeconds * found.microBatches});
  return budget;
}

/// Certificate and curve, of one device or of a pipeline.
template <typename Report>
static LogicalResult writeFiles(const Report &report, bool hasBudget,
                                const Options &options) {
  auto writeProof = [&](llvm::raw_ostream &os) {
    std::ostringstream text;
    solver::writeCertificate(text, report.certificate);
    os << text.str();
  };
  auto writeCurve = [&](llvm::raw_ostream &os) {
    report.writeCurve(os, hasBudget);
  };
  return failure(failed(writeFile(options.certificate, writeProof)) ||
                 failed(writeFile(options.pareto, writeCurve)));
}

/// In the terms of reports.
static report::PipelineNeed asReport(const planning::PipelineReport &found) {
  report::PipelineNeed need;
  need.budgetBytes = found.budget.bytes;
  need.isOfActivations =
      found.budget.kind == planning::Budget::Kind::Activations;
  for (const planning::StageReport &stage : found.stages)
    need.stages.push_back(
        {stage.stateBytes,
         stage.plannedBytes - (need.isOfActivations ? 0 : stage.stateBytes)});
  return need;
}

static FailureOr<Met>
meetOnStages(ModuleOp module, const std::optional<planning::Budget> &budget,
             const CostTable &costs, const Options &options,
             const planning::BudgetSettings &settings) {
  planning::Budget any = {planning::Budget::Kind::Memory, kMostBytes};
  FailureOr<planning::PipelineReport> found = planning::solveStages(
      getPhases(), module, budget.value_or(any), costs, settings);
  if (failed(found))
    return failure();
  if (budget && !options.quiet)
    found->print(llvm::errs());
  if (failed(writeFiles(*found, bool(budget), options)))
    return failure();
  Met met;
  if (budget)
    met.pipeline = asReport(*found);
  return met;
}

RecomputeOptions driver::getConstraint(const Options &options,
                                       const RecomputeOptions &recompute) {
  constexpr StringLiteral keys[] = {
      "recompute-granularity", "recompute-activations", "recompute-plan",
      "recompute-method",      "recompute-num-layers",  "recompute-modules"};
  if (llvm::any_of(keys, [&](StringRef key) { return options.getKey(key); }))
    return recompute;
  RecomputeOptions rest;
  rest.stages = recompute.stages;
  rest.chunks = recompute.chunks;
  rest.keepsIdleSegment = recompute.keepsIdleSegment;
  // What a plan file says is not said beside the budget.
  rest.isFree = recompute.isFree || recompute.isFreeByPlan;
  return rest;
}

RecomputeOptions driver::takeConstraint(const Options &options,
                                        const RecomputeOptions &recompute) {
  RecomputeOptions constraint = getConstraint(options, recompute);
  if (constraint.granularity != recompute.granularity && !options.quiet)
    llvm::WithColor::note()
        << "the budget decides instead of what the description says of "
           "recompute; as options beside it, that would be a constraint\n";
  return constraint;
}

/// What plans are under, in words.
static std::string describeConstraint(ModuleOp module,
                                      const RecomputeOptions &recompute) {
  std::string text = recompute.describeConstraint();
  auto train = module->getAttrOfType<DictionaryAttr>(nn::kTrainAttr);
  auto rows =
      train ? train.getAs<IntegerAttr>(nn::kHeadChunkRows) : IntegerAttr();
  if (rows)
    text += (text.empty() ? "" : "; ") +
            ("head_chunk_rows " + llvm::Twine(rows.getInt())).str();
  return text;
}

/// A search weighs what is kept whole alone.
static LogicalResult refuseShares(MLIRContext *context,
                                  const RecomputeOptions &recompute) {
  if (recompute.sharesSaved)
    return failure(fail("'distribute_saved_activations' has no place beside a "
                        "budget, whose plans keep inputs of segments whole"));
  if (recompute.granularity != "plan")
    return success();
  FailureOr<remat::PlanFile> plan =
      remat::parsePlanFile(recompute.planFile, context);
  if (failed(plan))
    return failure();
  for (const remat::PlanRule &rule : plan->rules)
    if (!rule.share.empty())
      return emitError(rule.location)
             << "has no place beside a budget, whose plans keep all of what "
                "they keep, but this rule is to share";
  return success();
}

/// What is known of a step beside its budget, if it has one.
static planning::BudgetSettings getSettings(ModuleOp module, bool hasBudget,
                                            const Options &options,
                                            const RecomputeOptions &recompute) {
  planning::BudgetSettings settings;
  settings.isFree = recompute.isFree;
  settings.keepsIdleSegment = recompute.keepsIdleSegment;
  settings.hasRegret = hasBudget && !options.getReport().empty();
  settings.hasBounds = !options.pareto.empty();
  settings.under = describeConstraint(module, recompute);
  settings.needsPrograms = hasBudget && !options.output.empty();
  return settings;
}

FailureOr<Met> driver::meetBudget(ModuleOp module,
                                  const std::optional<planning::Budget> &budget,
                                  const Options &options,
                                  const RecomputeOptions &given, bool isCuda,
                                  const planning::MeasureStages &measure) {
  RecomputeOptions recompute = takeConstraint(options, given);
  if (failed(refuseShares(module.getContext(), recompute)))
    return failure();
  FailureOr<CostTable> costs = readCosts(options, isCuda);
  if (failed(costs))
    return failure();
  nn::setMesh(*costs, module);
  // A curve alone leaves the plan as it is, but is of what budgets would get.
  OwningOpRef<ModuleOp> copy;
  if (!budget) {
    copy = module.clone();
    module = *copy;
  }
  planning::Budget any = {planning::Budget::Kind::Memory, kMostBytes};
  PassManager manager(module.getContext());
  buildDeciders(manager, recompute);
  if (recompute.granularity == "full" && recompute.keepsIdleSegment) {
    planning::KeepIdleSegmentOptions open;
    open.leaveOpen = true;
    manager.addPass(planning::createKeepIdleSegment(getPhases(), open));
  }
  if (failed(manager.run(module)))
    return failure();
  module->getContext()->getOrLoadDialect<remat::RematDialect>();
  planning::BudgetSettings settings =
      getSettings(module, bool(budget), options, recompute);
  settings.measureStages = measure;
  if (recompute.stages > 1)
    return meetOnStages(module, budget, *costs, options, settings);
  FailureOr<planning::BudgetReport> found = planning::solveBudget(
      getPhases(), module, budget.value_or(any), *costs, settings);
  if (failed(found))
    return failure();
  if (budget && !options.quiet)
    found->print(llvm::errs());
  if (failed(writeFiles(*found, bool(budget), options)))
    return failure();
  Met met;
  met.budget = asReport(*found, options, bool(budget));
  return met;
}

FailureOr<report::PipelineNeed>
driver::measurePipeline(ModuleOp module, const Options &options,
                        const RecomputeOptions &recompute, bool isCuda) {
  FailureOr<CostTable> costs = readCosts(options, isCuda);
  if (failed(costs))
    return failure();
  nn::setMesh(*costs, module);
  OwningOpRef<ModuleOp> copy = module.clone();
  PassManager manager(module.getContext());
  buildDeciders(manager, recompute);
  if (recompute.granularity == "full" && recompute.keepsIdleSegment) {
    planning::KeepIdleSegmentOptions keep;
    keep.isFree = recompute.isFree;
    manager.addPass(planning::createKeepIdleSegment(getPhases(), keep));
  }
  report::PipelineNeed need;
  // A step that no stages can run still has a report, which says so. What
  // decides the step itself will say what it has to.
  ScopedDiagnosticHandler handler(
      module.getContext(), [&](Diagnostic &diagnostic) {
        bool isError = diagnostic.getSeverity() == DiagnosticSeverity::Error;
        if (isError && need.fault.empty())
          need.fault = diagnostic.str();
        return success();
      });
  FailureOr<std::vector<planning::StageBytes>> measured = failure();
  if (succeeded(manager.run(*copy)))
    measured =
        planning::measureStages(getPhases(), *copy, *costs, recompute.isFree);
  if (succeeded(measured))
    for (const planning::StageBytes &stage : *measured)
      need.stages.push_back({stage.states, stage.activations});
  return need;
}
