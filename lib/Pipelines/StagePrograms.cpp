//===- StagePrograms.cpp - What-if compiles of a pipeline -----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Pipelines/StagePrograms.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/Pipe/OnlyStages.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Remat/PlanFile.h"
#include "reprise/Support/CopyModule.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"

using namespace mlir;
using namespace reprise;

std::vector<rt::ArenaAttr> reprise::getStageArenas(ModuleOp module) {
  std::vector<rt::ArenaAttr> arenas;
  for (auto stage : module.getOps<ModuleOp>()) {
    auto plan = stage->getAttrOfType<rt::PlanAttr>(rt::kPlanAttr);
    if (rt::ArenaAttr arena =
            plan ? plan.getArena(rt::Space::Device) : rt::ArenaAttr())
      arenas.push_back(arena);
  }
  return arenas;
}

std::vector<int64_t> reprise::getStageBytes(ModuleOp module,
                                            planning::Budget::Kind kind) {
  bool isOfAll = kind == planning::Budget::Kind::Memory;
  std::vector<int64_t> bytes;
  for (rt::ArenaAttr arena : getStageArenas(module))
    bytes.push_back(arena.getBytes() - (isOfAll ? 0 : arena.getBegin()));
  return bytes;
}

/// Writes the decisions of the step of `module` as a plan file.
static LogicalResult writePlan(ModuleOp module,
                               llvm::SmallVectorImpl<char> &path) {
  auto step = module.lookupSymbol<func::FuncOp>(nn::kStepFunction);
  int file = -1;
  if (!step ||
      llvm::sys::fs::createTemporaryFile("reprise-plan", "yaml", file, path))
    return failure();
  llvm::raw_fd_ostream os(file, /*shouldClose=*/true);
  return remat::writePlanFile(step, "what-if", os);
}

StagePrograms::StagePrograms(ModuleOp stages, bool isFree, bool inference)
    : context(stages.getContext()->getDialectRegistry(),
              MLIRContext::Threading::DISABLED),
      isFree(isFree), inference(inference) {
  context.getDiagEngine().registerHandler(
      [](Diagnostic &) { return success(); });
  chunks = copyInto(context, stages);
  if (chunks && failed(run(*chunks, Phase::NN, Phase::Joint, {})))
    chunks = nullptr;
}

LogicalResult StagePrograms::run(ModuleOp module, Phase from, Phase to,
                                 const RecomputeOptions &recompute) {
  PassManager manager(&context);
  // What is kept of it goes this way again, and is verified then.
  manager.enableVerifier(false);
  TargetOptions target;
  target.isTried = true;
  target.isPipeline = isPipeline(module);
  buildPipeline(manager, from, to, recompute, inference, target);
  return manager.run(module);
}

OwningOpRef<ModuleOp> StagePrograms::plan(ModuleOp decided) {
  RecomputeOptions rest; // Nothing but what is free is still to be decided.
  rest.isFree = isFree;
  OwningOpRef<ModuleOp> whole = copyInto(context, decided);
  llvm::SmallString<128> path;
  if (!chunks || !whole ||
      failed(run(*whole, Phase::Joint, Phase::Remat, rest)) ||
      failed(writePlan(*whole, path)))
    return nullptr;
  llvm::FileRemover remover(path);
  RecomputeOptions plan = rest;
  plan.granularity = "plan";
  plan.planFile = path.str().str();
  OwningOpRef<ModuleOp> stages = chunks->clone();
  if (Attribute only = (*whole)->getAttr(pipe::kOnlyStagesAttr))
    (*stages)->setAttr(pipe::kOnlyStagesAttr, only);
  if (failed(run(*stages, Phase::Joint, Phase::RT, plan)))
    return nullptr;
  return stages;
}

std::vector<int64_t> StagePrograms::measure(ModuleOp decided,
                                            planning::Budget::Kind kind) {
  OwningOpRef<ModuleOp> stages = plan(decided);
  return stages ? getStageBytes(*stages, kind) : std::vector<int64_t>();
}
