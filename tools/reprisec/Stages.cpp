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
#include "reprise/Remat/PlanFile.h"
#include "reprise/Solver/StageSchedule.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"

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

/// Lets the program of a description with stages be that of a pipeline: the
/// stages are an axis of the mesh, and the chunks have so many layers.
LogicalResult driver::makePipeline(ModuleOp module,
                                   const frontend::Parallel &parallel) {
  MLIRContext *context = module.getContext();
  Builder builder(context);
  SmallVector<StringAttr> names = {builder.getStringAttr(nn::kPipeAxis)};
  SmallVector<int64_t> sizes = {parallel.stages}, steps = {0};
  if (auto mesh = module->getAttrOfType<nn::MeshAttr>(nn::kMeshAttr)) {
    llvm::append_range(names, mesh.getNames());
    llvm::append_range(sizes, mesh.getSizes());
    llvm::append_range(steps, mesh.getSteps());
  }
  auto mesh = nn::MeshAttr::getChecked([&] { return module.emitError(); },
                                       context, ArrayRef(names),
                                       ArrayRef(sizes), ArrayRef(steps));
  if (!mesh)
    return failure();
  module->setAttr(nn::kMeshAttr, mesh);
  module->setAttr(nn::kChunkLayersAttr,
                  builder.getDenseI64ArrayAttr(parallel.chunks));
  StringRef schedule = parallel.schedule;
  if (schedule.empty())
    schedule = parallel.virtualStages > 1 ? "interleaved" : "1f1b";
  module->setAttr(nn::kScheduleAttr, builder.getStringAttr(schedule));
  if (parallel.microBatchGroup)
    module->setAttr(nn::kMicroBatchGroupAttr,
                    builder.getI64IntegerAttr(*parallel.microBatchGroup));
  return success();
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

/// Refuses what the program of a pipeline cannot have.
LogicalResult
driver::checkStages(const Options &options,
                    const std::optional<frontend::Description> &text,
                    const Targets &targets, Phase to, bool hasBudget) {
  if (targets.cuda && to > Phase::Remat)
    return failure(fail("option --target: needs cpu alone for the program of a "
                        "pipeline, which computes on processors; without -o, "
                        "--explain shows what its stages need on GPUs"));
  const solver::NamedSchedule *schedule =
      text ? solver::findSchedule(text->parallel.schedule) : nullptr;
  if (hasBudget && schedule && !schedule->isSimulated)
    return failure(fail("a budget needs pipeline_schedule to be 1f1b or "
                        "interleaved, whose micro-batches in flight it counts, "
                        "but got " +
                        llvm::StringRef(schedule->name)));
  bool isPlanned =
      hasBudget || !options.getReport().empty() || asksForPlan(options);
  if (isPlanned && !text)
    return failure(fail("option --from: needs a description to plan for the "
                        "stages of a pipeline"));
  return success();
}

int64_t driver::getExcess(ModuleOp module, const planning::Budget &budget) {
  bool isOfAll = budget.kind == planning::Budget::Kind::Memory;
  int64_t excess = 0;
  for (auto stage : module.getOps<ModuleOp>()) {
    auto plan = stage->getAttrOfType<rt::PlanAttr>(rt::kPlanAttr);
    rt::ArenaAttr arena =
        plan ? plan.getArena(rt::Space::Device) : rt::ArenaAttr();
    if (!arena)
      continue;
    int64_t bytes = arena.getBytes() - (isOfAll ? 0 : arena.getBegin());
    excess = std::max(excess, bytes - budget.bytes);
  }
  return excess;
}

/// Compiles for the stages of a pipeline.
int driver::compileStages(ModuleOp module, Phase from, Phase to,
                          const Options &options, const Targets &targets,
                          const RecomputeOptions &recompute, bool isFile,
                          const std::optional<planning::Budget> &budget) {
  if (failed(runPhases(module, from, to, recompute, /*inference=*/false,
                       targets.first())))
    return 1;
  if (int64_t excess = budget ? getExcess(module, *budget) : 0)
    return fail("needs " + llvm::Twine(budget->bytes + excess) +
                " bytes on a stage, its whole list of micro-batches counted, "
                "but the budget is " +
                llvm::Twine(budget->bytes) + " bytes");
  if (!options.quiet)
    printMemory(module);
  if (isFile)
    return writeProgram(module, ModuleOp(), options, targets.chips);
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
  return remat::writePlanFile(step, recorded ? recorded.getValue() : "none",
                              os);
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

LogicalResult driver::planStages(StringRef plan, ModuleOp stages,
                                 const RecomputeOptions &recompute) {
  auto run = [&](const RecomputeOptions &decided) {
    return int(failed(runPhases(stages, Phase::NN, Phase::RT, decided,
                                /*inference=*/false)));
  };
  return failure(withPlan(plan, recompute.isFree, run) != 0);
}
