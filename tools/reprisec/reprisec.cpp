//===- reprisec.cpp - Compiles a description to a program -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Advice.h"
#include "Alternatives.h"
#include "Budgets.h"
#include "Files.h"
#include "Options.h"
#include "Output.h"
#include "Reports.h"
#include "Stages.h"
#include "StepTimes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "python-free-frontend/Frontend.h"
#include "reprise/Dialect/NN/Axes.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Pipelines/Registration.h"
#include "reprise/Remat/PlanFile.h"
#include "reprise/Remat/Summary.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::driver;

/// Refuses what is clearly of another phase than `--from` says.
static LogicalResult checkPhase(ModuleOp module, Phase from) {
  if (isPipeline(module))
    return success();
  bool hasForward = module.lookupSymbol(nn::kForwardFunction);
  bool hasStep = module.lookupSymbol(nn::kStepFunction);
  StringRef phase;
  if (module->hasAttr(rt::kPlanAttr))
    phase = from < Phase::RT ? "rt or of one behind it" : "";
  else if (hasForward && !hasStep)
    phase = from == Phase::NN ? "" : "nn";
  else if (hasStep && !hasForward && from == Phase::NN)
    phase = "joint or of one behind it";
  if (phase.empty())
    return success();
  return module->emitError("is IR of the phase ")
         << phase << ", but --from says " << stringifyPhase(from);
}

/// A module as text, and the plan that its description asked for.
static OwningOpRef<ModuleOp> readIR(MLIRContext &context,
                                    llvm::SourceMgr &sources,
                                    const Options &options, Phase from,
                                    RecomputeOptions &recompute) {
  std::string error;
  auto buffer = openInputFile(options.input, &error);
  if (!buffer) {
    fail(error);
    return nullptr;
  }
  if (failed(checkKind("option --from: ", options.input, buffer->getBuffer(),
                       frontend::FileRole::IR)))
    return nullptr;
  for (const auto &key : options.keys)
    if (key->getNumOccurrences()) {
      fail("option --" + key->ArgStr + ": is a key of a description, but " +
           "--from says that the input is IR");
      return nullptr;
    }
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  auto module = parseSourceFile<ModuleOp>(sources, &context);
  if (module && failed(checkPhase(*module, from)))
    return nullptr;
  auto train = module ? (*module)->getAttrOfType<DictionaryAttr>(nn::kTrainAttr)
                      : DictionaryAttr();
  auto plan = train ? train.getAs<StringAttr>("recompute") : StringAttr();
  if (!plan)
    return module;
  std::optional<RecomputeOptions> recorded = RecomputeOptions::parse(plan);
  if (!recorded && from >= Phase::Remat) {
    // What is decided may have any name.
    recorded.emplace();
    recorded->granularity = "plan";
    recorded->planFile = plan.str();
  }
  if (!recorded) {
    module->emitError("needs a plan such as 'none', 'selective mlp,layernorm' "
                      "or 'full uniform 1' as 'recompute' in 'nn.train', but "
                      "got ")
        << plan;
    return nullptr;
  }
  recompute = *recorded;
  return module;
}

/// What the description says of recompute, in the words of the pipeline.
static LogicalResult takeRecompute(const frontend::Description &description,
                                   const Options &options,
                                   RecomputeOptions &recompute) {
  const frontend::Recompute &given = description.recompute;
  recompute.granularity = given.planFile.empty() ? given.granularity : "plan";
  recompute.planFile = given.planFile;
  recompute.method = given.method;
  recompute.numLayers = given.numLayers;
  recompute.modules = given.modules;
  recompute.keepsIdleSegment = given.lastSegment == "auto";
  recompute.sharesSaved = given.distributesSaved;
  recompute.isFree = given.isFree == "on";
  recompute.hasRules = !given.planFile.empty();
  recompute.stages = description.parallel.stages;
  recompute.chunks = description.parallel.chunks;
  int64_t ranks = description.parallel.tensorParallel;
  bool isSequence = description.parallel.sequenceParallel;
  if (!options.accounting.empty()) {
    recompute.tensorRanks = ranks;
    recompute.sharesPositions = isSequence;
  }
  if (!given.distributesSaved)
    return success();
  if (ranks < 2)
    return failure(fail("'distribute_saved_activations' needs "
                        "tensor_model_parallel_size above 1, but got " +
                        llvm::Twine(ranks)));
  if (isSequence)
    return failure(fail("'distribute_saved_activations' needs no "
                        "sequence_parallel, with which the " +
                        llvm::Twine(ranks) +
                        " ranks share what is kept already"));
  return success();
}

/// The module of phase `from`, from a description or as IR; null after a
/// message. `recompute` comes from the description or the options; a
/// description comes back as `text`.
static OwningOpRef<ModuleOp>
readInput(MLIRContext &context, llvm::SourceMgr &sources,
          const Options &options, Phase from, RecomputeOptions &recompute,
          std::optional<frontend::Description> &text) {
  if (!options.from.empty())
    return readIR(context, sources, options, from, recompute);
  frontend::DescriptionReader reader(sources);
  for (auto [key, name] : llvm::zip(options.keys, options.keyNames))
    if (key->getNumOccurrences() && failed(reader.setOption(name, *key)))
      return nullptr;
  FailureOr<frontend::Description> description = reader.read(options.input);
  if (failed(description))
    return nullptr;
  if (options.verbose)
    for (const std::string &key : description->ignoredKeys)
      llvm::WithColor::note()
          << "the key '" << key << "' of the model means nothing here\n";
  if (failed(takeRecompute(*description, options, recompute)))
    return nullptr;
  // Megatron's figures are for so many ranks, beside a plan for one.
  if (!options.accounting.empty()) {
    int64_t &ranks = description->parallel.tensorParallel;
    if (ranks > 1 && !options.quiet)
      llvm::WithColor::note()
          << "with --accounting, plan and program are of one rank with whole "
             "tensors, and Megatron's figures and times of a step of "
          << ranks << " ranks\n";
    if (frontend::hasWholeExperts(description->parallel))
      description->parallel.expertParallel = 1;
    ranks = 1;
    description->parallel.sequenceParallel = false;
  }
  text = *description;
  return frontend::buildModel(context, *description);
}

/// A mesh of the ranks that have all experts together, whole ones, and of those
/// that share the rest of the model: the larger number has the other within.
static void setMeshOfExperts(ModuleOp module, int64_t experts, int64_t tensor) {
  Builder builder(module.getContext());
  SmallVector<StringAttr> names = {builder.getStringAttr(nn::kExpertAxis)};
  SmallVector<int64_t> sizes = {experts}, steps = {0};
  if (tensor > 1) {
    names.push_back(builder.getStringAttr(nn::kTensorAxis));
    sizes.push_back(tensor);
    steps = experts < tensor ? SmallVector<int64_t>{1, 0}
                             : SmallVector<int64_t>{0, 1};
  }
  module->setAttr(nn::kMeshAttr,
                  nn::MeshAttr::get(module.getContext(), names, sizes, steps));
}

/// The step of a description with stages, for one rank along dp, or those that
/// have all experts together, with the samples that each has: the sums of all
/// of them would tie the layers of a chunk together, and take nothing of what
/// is planned for. For a budget, ranks with other experts send rows to each
/// other and sum nothing.
static OwningOpRef<ModuleOp> buildPlanned(MLIRContext &context,
                                          frontend::Description description,
                                          bool hasBudget) {
  frontend::Parallel &parallel = description.parallel;
  int64_t &ranks = parallel.dataParallel;
  int64_t experts = parallel.expertParallel, tensor = parallel.tensorParallel;
  // With whole experts, those are the first along tp, and behind these.
  int64_t needed = frontend::hasWholeExperts(parallel)
                       ? std::max<int64_t>(experts / tensor, 1)
                       : experts;
  description.train.globalBatchSize =
      description.getGlobalBatchSize() / ranks * needed;
  ranks = needed;
  parallel.reductionGroups.reset();
  OwningOpRef<ModuleOp> module = frontend::buildModel(context, description);
  if (!module || !hasBudget || experts == 1)
    return module;
  setMeshOfExperts(*module, experts,
                   frontend::hasWholeExperts(parallel) ? tensor : 1);
  (*module)->removeAttr(nn::kDistributedOptimizerAttr);
  return module;
}

/// Lets `nn.train` say this.
static void record(ModuleOp module, StringRef key, Attribute value) {
  auto train = module->getAttrOfType<DictionaryAttr>(nn::kTrainAttr);
  if (!train)
    return;
  NamedAttrList entries(train);
  entries.set(key, value);
  module->setAttr(nn::kTrainAttr, entries.getDictionary(module.getContext()));
}

/// The effective plan belongs to the program, and is shown to who makes it.
static void recordPlan(ModuleOp module, StringRef name) {
  record(module, "recompute", StringAttr::get(module.getContext(), name));
}

/// The rows of a chunk of the head, as a plan has them, are those of the
/// program.
static LogicalResult setHeadRows(ModuleOp module, int64_t rows,
                                 StringRef planFile) {
  auto train = module->getAttrOfType<DictionaryAttr>(nn::kTrainAttr);
  auto given =
      train ? train.getAs<IntegerAttr>(nn::kHeadChunkRows) : IntegerAttr();
  if (given && given.getInt() != rows)
    return failure(fail("'" + planFile + "' is a plan for head_chunk_rows " +
                        llvm::Twine(rows) + ", but the description has " +
                        llvm::Twine(given.getInt())));
  record(module, nn::kHeadChunkRows,
         Builder(module.getContext()).getI64IntegerAttr(rows));
  return success();
}

/// Reads of a plan file what is not about layers.
static LogicalResult readPlanFile(ModuleOp module, RecomputeOptions &recompute,
                                  std::string &name) {
  if (recompute.granularity != "plan")
    return success();
  // What cannot be read is told of where it is parsed.
  auto text = llvm::MemoryBuffer::getFile(recompute.planFile);
  if (text && failed(checkKind("", recompute.planFile, (*text)->getBuffer(),
                               frontend::FileRole::Plan)))
    return failure();
  FailureOr<remat::PlanFile> plan =
      remat::parsePlanFile(recompute.planFile, module.getContext());
  if (failed(plan) ||
      (plan->headRows &&
       failed(setHeadRows(module, *plan->headRows, recompute.planFile))))
    return failure();
  recompute.isFreeByPlan = recompute.isFree && !plan->isFree;
  recompute.isFree &= plan->isFree;
  name = plan->name;
  return success();
}

/// Writes the decisions of the step as a plan file, if that is asked for.
static LogicalResult savePlan(ModuleOp module, StringRef path) {
  std::string text;
  if (path.empty())
    return success();
  return failure(failed(writePlan(module, text)) ||
                 failed(writeFile(path, text)));
}

static LogicalResult checkSavePlan(const Options &options, Phase from,
                                   Phase to) {
  if (options.savePlan.empty())
    return success();
  if (from < Phase::Remat && StringRef(options.target).contains(','))
    return failure(fail("option --save-plan: needs one target, whose plan it "
                        "is, but --target says " +
                        options.target));
  if (from > Phase::Remat)
    return failure(fail("option --save-plan: needs an input of phase nn, joint "
                        "or remat, which has the decisions, but --from says " +
                        stringifyPhase(from)));
  if (to < Phase::Remat)
    return failure(
        fail("option --save-plan: needs --emit=remat or later, where "
             "it is decided, but got '" +
             options.emit + "'"));
  return success();
}

static FailureOr<std::string> describePlan(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto step = module.lookupSymbol<func::FuncOp>(nn::kStepFunction);
  if (!step)
    return text;
  FailureOr<remat::Summary> summary = remat::summarize(step);
  if (failed(summary))
    return failure();
  summary->print(os);
  return text;
}

/// What is decided on `module` under the plan `name`, and for a second target
/// on `other`, if that is there.
static LogicalResult printPlan(ModuleOp module, ModuleOp other,
                               StringRef name) {
  FailureOr<std::string> plan = describePlan(module), second = plan;
  if (other)
    second = describePlan(other);
  if (failed(plan) || failed(second))
    return failure();
  if (plan->empty())
    return success();
  llvm::errs() << "recompute: " << name << "\n";
  if (*plan == *second)
    llvm::errs() << *plan;
  else
    llvm::errs() << "on the CPU:\n" << *plan << "on GPUs:\n" << *second;
  return success();
}

/// Decides `module`, of phase `begin`, for the target that it is set to, and
/// records the plan's name if it has one. What reports show of a budget comes
/// back.
static FailureOr<Met> decide(ModuleOp module, Phase begin, Phase to,
                             const std::optional<planning::Budget> &budget,
                             const Options &options,
                             const RecomputeOptions &recompute,
                             StringRef planName, bool isCuda) {
  Met met;
  RecomputeOptions rest = recompute; // What is still to be decided.
  bool inference = options.inference == "on";
  if (budget || !options.pareto.empty()) {
    if (failed(runPhases(module, begin, Phase::Joint, recompute, inference)))
      return failure();
    begin = Phase::Joint;
    FailureOr<Met> result =
        meetBudget(module, budget, options, recompute, isCuda);
    if (failed(result))
      return failure();
    met = std::move(*result);
  }
  if (budget) {
    // What the program takes for other things is to fit as well.
    if (budget->kind == planning::Budget::Kind::Memory)
      record(module, nn::kMemoryBudget,
             Builder(module.getContext()).getI64IntegerAttr(budget->bytes));
    rest = RecomputeOptions();
    rest.isFree = recompute.isFree;
  } else if (recompute.stages > 1 && options.describesStages() &&
             begin <= Phase::Joint) {
    if (failed(runPhases(module, begin, Phase::Joint, recompute, inference)))
      return failure();
    begin = Phase::Joint;
    FailureOr<report::PipelineNeed> need =
        measurePipeline(module, options, recompute, isCuda);
    if (failed(need))
      return failure();
    met.pipeline = std::move(*need);
  }
  Phase decided = std::max(begin, std::min(to, Phase::Remat));
  if (failed(runPhases(module, begin, decided, rest, inference)))
    return failure();
  if (begin < Phase::Remat && to >= Phase::Remat && !planName.empty())
    recordPlan(module, planName);
  return met;
}

/// What the stage that needs most takes under a plan for `tried`; nothing if
/// there is no such plan.
static std::optional<StageNeed>
tryBudget(ModuleOp module, ModuleOp stages, Phase from,
          const planning::Budget &tried, const Options &options,
          const RecomputeOptions &recompute, bool isCuda) {
  OwningOpRef<ModuleOp> decided = module.clone(), planned = stages.clone();
  std::string text;
  if (failed(decide(*decided, from, Phase::Remat, tried, options, recompute,
                    "what-if", isCuda)) ||
      failed(writePlan(*decided, text)) ||
      failed(planStages(text, *planned, recompute, options.inference == "on")))
    return std::nullopt;
  return getNeed(*planned, tried.kind);
}

/// The budget for the solver with which the stages meet `budget`; nothing if
/// none does that is tried. Takes off the budget what what-if compiles have
/// needed above it, but no more than leaves a plan.
static std::optional<planning::Budget>
lowerBudget(const planning::Budget &budget,
            llvm::function_ref<std::optional<int64_t>(const planning::Budget &)>
                getExcess) {
  constexpr int kMostWhatIfs = 10;
  planning::Budget tried = budget;
  // Too little for any plan, and what a plan is known for.
  int64_t low = 0, high = budget.bytes;
  for (int compiles = 0; compiles < kMostWhatIfs; ++compiles) {
    std::optional<int64_t> excess = getExcess(tried);
    if (excess == 0)
      return tried;
    if (!excess && compiles == 0)
      return std::nullopt;
    (excess ? high : low) = tried.bytes;
    tried.bytes = high - excess.value_or(high);
    if (tried.bytes <= low)
      tried.bytes = (low + high) / 2;
    if (tried.bytes == low)
      return std::nullopt;
  }
  return std::nullopt;
}

/// The plan of a stage is that of its whole list, and may need a little more
/// than the solver counts for its chunks by themselves: lowers the budget, and
/// in the end takes the smallest plans. What their program needs is what is
/// said to fit, since it is always tried: `need`, if that is too much.
static planning::Budget fitBudget(ModuleOp module, ModuleOp stages, Phase from,
                                  const planning::Budget &budget,
                                  Options &options,
                                  const RecomputeOptions &recompute,
                                  bool isCuda, StageNeed &need) {
  bool wasQuiet = options.quiet;
  std::string certificate = options.certificate, pareto = options.pareto;
  options.quiet = true; // A what-if compile shows and writes nothing.
  ScopedDiagnosticHandler silent(module.getContext(),
                                 [](Diagnostic &) { return success(); });
  options.certificate = options.pareto = std::string();
  std::optional<StageNeed> last;
  auto getExcess =
      [&](const planning::Budget &tried) -> std::optional<int64_t> {
    last = tryBudget(module, stages, from, tried, options, recompute, isCuda);
    if (!last)
      return std::nullopt;
    return std::max<int64_t>(last->bytes - budget.bytes, 0);
  };
  std::optional<planning::Budget> fitted = lowerBudget(budget, getExcess);
  if (!fitted) {
    planning::Budget least = budget;
    least.isLeast = true;
    std::optional<int64_t> excess = getExcess(least);
    fitted = excess == 0 ? least : budget;
    if (excess.value_or(0) > 0) {
      fitted->neededBytes = last->bytes;
      need = *last;
    }
  }
  options.quiet = wasQuiet;
  options.certificate = certificate;
  options.pareto = pareto;
  return *fitted;
}

static LogicalResult checkInference(const Options &options, Phase from) {
  if (options.inference.getNumOccurrences() && from > Phase::NN)
    return failure(fail("option --inference: needs an input of phase nn, which "
                        "it is made from, but --from says " +
                        stringifyPhase(from)));
  return success();
}

static int compile(int argc, char **argv) {
  Options options;
  options.parse(argc, argv);
  if (options.printKeys) {
    frontend::printKeysAsMarkdown(llvm::outs());
    return 0;
  }
  if (options.input.empty())
    return fail("needs a description, as in: reprisec model.yaml -o train");

  FailureOr<Targets> targets = readTargets(options);
  if (failed(targets))
    return 1;
  FailureOr<Goal> goal = readGoal(options, *targets);
  if (failed(goal))
    return 1;
  FailureOr<Phase> from = readFrom(options, *targets, *goal);
  if (failed(from))
    return 1;
  Phase to = goal->phase;
  if (failed(checkInference(options, *from)) ||
      failed(checkReports(options, *from, to)) ||
      failed(checkSavePlan(options, *from, to)))
    return 1;
  bool plansMemory = !options.getReport().empty();
  bool isReport = (plansMemory || !options.savePlan.empty() ||
                   !options.pareto.empty() || !options.certificate.empty()) &&
                  options.output.empty() && options.emit.empty();
  if (isReport)
    to = plansMemory ? Phase::RT : Phase::Remat;
  FailureOr<std::optional<planning::Budget>> budget =
      readBudget(options, *from, to);
  if (failed(budget))
    return 1;
  bool isFile = goal->kind == Goal::Program || goal->kind == Goal::Object;
  bool lacksPlace = isFile && options.output.empty() && !isReport;
  if (options.output.empty() && !isFile && !isReport)
    options.output = "-";
  if (isFile && !isReport && !lacksPlace &&
      failed(checkOutput(options, goal->kind == Goal::Program)))
    return 1;

  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry);
  context.printOpOnDiagnostic(false);
  llvm::SourceMgr sources;
  sources.setDiagHandler(printMessage);
  SourceMgrDiagnosticHandler handler(sources, &context);
  RecomputeOptions recompute;
  std::optional<frontend::Description> description;
  OwningOpRef<ModuleOp> module =
      readInput(context, sources, options, *from, recompute, description);
  if (!module || failed(checkPlanned(*module, *from, *targets)) ||
      failed(checkFiles(options, recompute.planFile)))
    return 1;
  if (*budget)
    recompute = takeConstraint(options, recompute);
  // What is wrong with the input is to be heard of first.
  if (lacksPlace)
    return fail("needs a place for the program: -o FILE");
  if (*from < Phase::RT)
    setTarget(*module, targets->first());
  // A plan file decides what is free as it decides the rest.
  std::string described = recompute.describe();
  if (options.from.empty())
    recordPlan(*module, described);

  OwningOpRef<ModuleOp> stages;
  std::string planText; // Of what is decided for them.
  Phase last = to;
  std::optional<planning::Budget> given = *budget;
  StageNeed need; // Of the smallest programs, where they are too large.
  bool isStages = isForStages(options, description, *module, isReport);
  if (isStages) {
    if (failed(
            checkStages(options, description, *targets, *goal, bool(*budget))))
      return 1;
    stages = module->clone();
  }
  if (failed(checkCounted(options, description)))
    return 1;
  if (description && description->parallel.stages > 1 &&
      description->parallel.dataParallel > 1) {
    module = buildPlanned(context, *description, bool(*budget));
    if (!module)
      return 1;
    setTarget(*module, targets->first());
    recordPlan(*module, described);
  }
  if (isStages) {
    if (description && failed(makePipeline(*stages, description->parallel)))
      return 1;
    if (auto schedule = (*stages)->getAttr(nn::kScheduleAttr))
      (*module)->setAttr(nn::kScheduleAttr, schedule);
    if (last < Phase::Remat || !description)
      return compileStages(*stages, *from, last, options, *targets, recompute,
                           isFile);
    if (*budget && last >= Phase::RT)
      *budget = fitBudget(*module, *stages, *from, **budget, options, recompute,
                          !targets->cpu, need);
    // The plan is made for the whole model first, and shown.
    isReport = true;
    to = plansMemory ? Phase::RT : Phase::Remat;
  }
  auto finish = [&]() -> int {
    if (!stages)
      return 0;
    if (auto train = (*module)->getAttrOfType<DictionaryAttr>(nn::kTrainAttr))
      if (auto name = train.getAs<StringAttr>("recompute"))
        recordPlan(*stages, name);
    return compileDecided(planText, *stages, last, options, *targets, recompute,
                          given, isFile);
  };

  std::string planName; // Which a plan has once it is decided.
  if (*from < Phase::Remat && to >= Phase::Remat &&
      failed(readPlanFile(*module, recompute, planName)))
    return 1;

  // What other plans begin with.
  Phase undecided = std::max(*from, Phase::Joint), begin = *from;
  std::string undecidedText;
  if (options.comparesPlans()) {
    if (failed(runPhases(*module, *from, undecided, recompute,
                         options.inference == "on")))
      return 1;
    FailureOr<std::string> text = printUndecided(*module, undecided);
    if (failed(text))
      return 1;
    undecidedText = std::move(*text);
    begin = undecided;
  }
  if (*budget)
    planName = describeBudget(options);
  // What is not decided yet, each target decides by its own memory and times.
  OwningOpRef<ModuleOp> other;
  bool hasOther = targets->areBoth() && to > Phase::Kernels && !isReport;
  if (hasOther) {
    other = module->clone();
    setTarget(*other, *targets->cuda);
  }
  FailureOr<Met> met = decide(*module, begin, to, *budget, options, recompute,
                              planName, !targets->cpu);
  if (failed(met) && *budget && description && !options.quiet)
    adviseOn(context, *description, **budget, options, recompute,
             targets->first());
  if (failed(met) ||
      (hasOther && failed(decide(*other, begin, to, *budget, options, recompute,
                                 planName, /*isCuda=*/true))))
    return 1;
  // What is counted for chunks is within the budget, but no program is.
  if (need.bytes)
    return refuseBudget(*given, need);
  if (*budget) {
    recompute.granularity = "plan";
    recompute.planFile = planName;
    described = recompute.describe();
  }
  Phase decided = std::min(to, Phase::Remat);
  if (*from < Phase::Remat && to >= Phase::Remat && !options.quiet &&
      failed(printPlan(*module, hasOther ? *other : ModuleOp(), described)))
    return 1;
  if (failed(savePlan(*module, options.savePlan)) ||
      (stages && failed(writePlan(*module, planText))))
    return 1;
  if (isReport && !plansMemory)
    return finish();
  if (hasOther &&
      failed(runPhases(*other, std::max(*from, decided), Phase::NVVM, recompute,
                       /*inference=*/true, *targets->cuda)))
    return 1;
  if (!options.getReport().empty()) {
    FailureOr<report::Plan> plan =
        readPlan(*module, undecidedText, options, recompute);
    if (succeeded(plan)) {
      plan->budget = met->budget;
      plan->pipeline = met->pipeline;
    }
    std::string decidedText;
    if (succeeded(plan) && description &&
        (!*budget || succeeded(writePlan(*module, decidedText))))
      addStepTimes(*plan, context, *description, decidedText, options,
                   recompute, targets->first());
    if (failed(plan) ||
        failed(runPhases(*module, decided, Phase::RT, recompute)) ||
        failed(writeReports(*plan, *module, options, recompute)))
      return 1;
    if (isReport)
      return finish();
    decided = Phase::RT;
  }
  if (failed(runPhases(*module, std::max(*from, decided), to, recompute,
                       /*inference=*/true, targets->first())))
    return 1;
  if (!options.quiet)
    printMemory(*module);
  if (goal->kind == Goal::Kernels)
    return writeKernels(*module, options, targets->chips);
  if (goal->kind == Goal::PTX || goal->kind == Goal::Cubin)
    return writeDeviceCode(*module, options, *goal, targets->chips.front());
  if (isFile)
    return writeProgram(targets->cpu ? *module : ModuleOp(),
                        hasOther        ? *other
                        : targets->cuda ? *module
                                        : ModuleOp(),
                        options, targets->chips);

  return failed(writeFile(options.output,
                          [&](llvm::raw_ostream &os) { module->print(os); }));
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  int status = compile(argc, argv);
  return failed(flushOutput()) ? 1 : status;
}
