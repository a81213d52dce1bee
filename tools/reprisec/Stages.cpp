//===- Stages.cpp - The program of a pipeline -------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Stages.h"
#include "Files.h"
#include "Output.h"
#include "Reports.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Pipelines/StagePrograms.h"
#include "reprise/Remat/PlanFile.h"
#include "reprise/Solver/StageSchedule.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::driver;

LogicalResult driver::runPhases(ModuleOp module, Phase from, Phase to,
                                const RecomputeOptions &recompute,
                                bool inference, const TargetOptions &target) {
  PassManager manager(module.getContext());
  TargetOptions own = target;
  own.isPipeline = isPipeline(module);
  buildPipeline(manager, from, to, recompute, inference, own);
  return manager.run(module);
}

/// Whether what is asked for is the program of a pipeline, or one of the phases
/// that lead to it; reports tell of a plan.
bool driver::isForStages(const Options &options,
                         const std::optional<frontend::Description> &text,
                         ModuleOp module, bool isReport) {
  bool isAsked = text && text->parallel.stages > 1 &&
                 options.accounting.empty() && !isReport;
  return isAsked || (!text && isPipeline(module));
}

/// Whether a file about a plan is asked for.
bool driver::asksForPlan(const Options &options) {
  return !options.savePlan.empty() || !options.pareto.empty() ||
         !options.certificate.empty();
}

/// The key that asks for chunks that take turns, and for groups of a size.
static StringRef getTurnsKey(const frontend::Description &text) {
  const frontend::Parallel &parallel = text.parallel;
  if (parallel.microBatchGroup)
    return "microbatch_group_size_per_vp_stage";
  if (parallel.virtualStages == 1)
    return "pipeline_schedule";
  // Letters say how many chunks there are as well.
  bool hasLetters = parallel.layout && !parallel.layout->empty() &&
                    StringRef(parallel.layout->front()).starts_with("E");
  return hasLetters && !text.positions.count("virtual_stages")
             ? "pipeline_layout"
             : "virtual_stages";
}

/// Says `message` where the file gives `key`, or else of the option.
static LogicalResult refuseKey(const frontend::Description &text, StringRef key,
                               const llvm::Twine &message) {
  auto given = text.positions.find(key);
  if (given == text.positions.end()) {
    std::string option = key.str();
    llvm::replace(option, '_', '-');
    return failure(fail("option --" + option + ": " + message));
  }
  const frontend::SourcePosition &place = given->second;
  llvm::WithColor::error(llvm::errs(), place.file + ":" +
                                           std::to_string(place.line) + ":" +
                                           std::to_string(place.column))
      << message << "\n";
  return failure();
}

/// Chunks take turns on a stage by groups of micro-batches, of which none has
/// fewer than there are stages. Reports on plans do without.
static LogicalResult checkInterleaving(const frontend::Description &text) {
  const frontend::Parallel &parallel = text.parallel;
  if (parallel.stages == 1 ||
      (parallel.schedule != "interleaved" && parallel.virtualStages == 1))
    return success();
  int64_t batches = text.getMicroBatchesPerRank(), stages = parallel.stages;
  std::optional<std::string> fault =
      solver::check(*solver::findSchedule("interleaved"),
                    {stages, parallel.virtualStages, batches,
                     parallel.microBatchGroup.value_or(0)});
  if (!fault)
    return success();
  int64_t group = parallel.microBatchGroup.value_or(stages);
  auto refuse = [&](const llvm::Twine &message) {
    return refuseKey(text, getTurnsKey(text),
                     "the schedule interleaved of virtual_stages " +
                         llvm::Twine(parallel.virtualStages) + " needs " +
                         message);
  };
  auto advise = [&](int64_t enough) {
    int64_t samples =
        enough * text.train.microBatchSize * parallel.dataParallel;
    return "; global_batch_size " + std::to_string(samples) + " makes " +
           std::to_string(enough) + " micro-batches of micro_batch_size " +
           std::to_string(text.train.microBatchSize);
  };
  if (batches < stages)
    return refuse("a micro-batch for each of the pipeline_stages " +
                  llvm::Twine(stages) + " in a step, but got " +
                  llvm::Twine(batches) + advise(stages));
  if (group < stages || group > batches)
    return refuse("a microbatch_group_size_per_vp_stage of at least "
                  "pipeline_stages " +
                  llvm::Twine(stages) + " and at most the " +
                  llvm::Twine(batches) + " micro-batch" +
                  (batches == 1 ? "" : "es") + " of a step, but got " +
                  llvm::Twine(group));
  if (int64_t rest = batches % group)
    return refuse("a micro-batch for each of the pipeline_stages " +
                  llvm::Twine(stages) + " in the last group, too, but got " +
                  llvm::Twine(rest) + ", the rest of " + llvm::Twine(batches) +
                  " in groups of " + llvm::Twine(group) +
                  advise((batches / group + 1) * group));
  return refuseKey(text, getTurnsKey(text),
                   "the schedule interleaved " + *fault);
}

/// Refuses what the program of a pipeline cannot have.
LogicalResult
driver::checkStages(const Options &options,
                    const std::optional<frontend::Description> &text,
                    const Targets &targets, const Goal &goal, bool hasBudget) {
  if (text && failed(checkInterleaving(*text)))
    return failure();
  bool isOfKernels = goal.kind == Goal::Kernels;
  if (isOfKernels || goal.kind == Goal::PTX || goal.kind == Goal::Cubin)
    return failure(fail("option --" +
                        llvm::Twine(isOfKernels ? "explain" : "emit") +
                        ": needs a model without stages for '" +
                        (isOfKernels ? "kernels" : options.emit.getValue()) +
                        "', since each stage of a pipeline has code of its "
                        "own; --emit=nvvm has that of all"));
  if (targets.areBoth() && hasBudget && goal.phase > Phase::Kernels)
    return failure(fail("option --target: needs cpu or cuda alone for the "
                        "budget of a pipeline, whose plan is made for the "
                        "memory of one of them"));
  bool isPlanned =
      hasBudget || !options.getReport().empty() || asksForPlan(options);
  if (isPlanned && !text)
    return failure(fail("option --from: needs a description to plan for the "
                        "stages of a pipeline"));
  return success();
}

LogicalResult
driver::checkProven(const Options &options,
                    const std::optional<frontend::Description> &text) {
  const solver::NamedSchedule *schedule =
      text && text->parallel.stages > 1
          ? solver::findSchedule(text->parallel.schedule)
          : nullptr;
  if (options.certificate.empty() || !schedule || !schedule->splitsWeights)
    return success();
  return failure(fail("option --certificate: needs a pipeline_schedule whose "
                      "backward tasks make the gradients of weights, for what "
                      "waits for these has no proof, but got " +
                      llvm::Twine(schedule->name)));
}

/// The programs are those that plans were chosen by: one that misses the budget
/// is a fault of the compiler.
static LogicalResult checkFits(ModuleOp module,
                               const planning::Budget &budget) {
  for (auto [stage, bytes] :
       llvm::enumerate(getStageBytes(module, budget.kind)))
    if (bytes > budget.bytes)
      return failure(fail("the program of stage " + llvm::Twine(stage) +
                          " takes " + llvm::Twine(bytes) +
                          " bytes, more than its plan was found for; ask for "
                          "a smaller budget"));
  return success();
}

/// Compiles for the stages of a pipeline.
int driver::compileStages(ModuleOp module, Phase from, Phase to,
                          const Options &options, const Targets &targets,
                          const RecomputeOptions &recompute, bool isFile,
                          const std::optional<planning::Budget> &budget) {
  bool inference = options.inference == "on";
  OwningOpRef<ModuleOp> other; // For the GPU, beside that for the CPU.
  if (isFile && targets.areBoth()) {
    other = module.clone();
    setTarget(*other, *targets.cuda);
    if (failed(runPhases(*other, from, Phase::NVVM, recompute, inference,
                         *targets.cuda)))
      return 1;
  }
  if (failed(
          runPhases(module, from, to, recompute, inference, targets.first())))
    return 1;
  if (budget && failed(checkFits(module, *budget)))
    return 1;
  if (!options.quiet)
    printMemory(module);
  if (isFile)
    return writeProgram(targets.cpu ? module : ModuleOp(),
                        targets.cpu ? *other : module, options, targets.chips);
  return failed(writeFile(options.output,
                          [&](llvm::raw_ostream &os) { module.print(os); }));
}

LogicalResult driver::writePlan(ModuleOp module, std::string &text) {
  auto step = module.lookupSymbol<func::FuncOp>(nn::kStepFunction);
  if (!step)
    return module.emitError("needs a function @step to save the plan of");
  auto train = module->getAttrOfType<DictionaryAttr>(nn::kTrainAttr);
  auto recorded = train ? train.getAs<StringAttr>("recompute") : StringAttr();
  llvm::raw_string_ostream os(text);
  return remat::writePlanFile(step, recorded ? recorded.getValue() : "none", os,
                              module->hasAttr(rt::kActivationsFirstAttr));
}

int driver::withPlan(StringRef text, bool isFree,
                     llvm::function_ref<int(const RecomputeOptions &)> use) {
  llvm::SmallString<128> path;
  if (std::error_code code =
          llvm::sys::fs::createTemporaryFile("reprise-plan", "yaml", path))
    return fail("cannot write a plan for the stages: " + code.message());
  llvm::FileRemover remover(path);
  if (failed(writeFile(path, text)))
    return 1;
  RecomputeOptions plan;
  plan.granularity = "plan";
  plan.planFile = path.str().str();
  plan.isFree = isFree;
  return use(plan);
}

int driver::compileDecided(StringRef plan, ModuleOp stages, Phase to,
                           const Options &options, const Targets &targets,
                           const RecomputeOptions &recompute,
                           const std::optional<planning::Budget> &budget,
                           bool isFile) {
  auto compile = [&](const RecomputeOptions &decided) {
    return compileStages(stages, Phase::NN, to, options, targets, decided,
                         isFile, budget);
  };
  return withPlan(plan, recompute.isFree, compile);
}
