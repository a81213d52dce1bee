//===- StepTimes.cpp - The times of a step of ranks -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepTimes.h"
#include "Reports.h"
#include "Stages.h"
#include "mlir/IR/Diagnostics.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/NN/Workload.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::driver;

using Axes = std::vector<std::pair<std::string, int64_t>>;

static Axes getAxes(const frontend::Parallel &parallel) {
  return {{nn::kPipeAxis.str(), parallel.stages},
          {nn::kDataAxis.str(), parallel.dataParallel},
          {nn::kTensorAxis.str(), parallel.tensorParallel}};
}

/// "64 ranks: pp 8, tp 8"
static std::string formatAxes(const Axes &axes) {
  int64_t ranks = 1;
  std::vector<std::string> words;
  for (const auto &[name, size] : axes) {
    ranks *= size;
    if (size > 1)
      words.push_back(name + " " + std::to_string(size));
  }
  if (ranks == 1)
    return "one rank";
  return std::to_string(ranks) + " ranks: " + llvm::join(words, ", ");
}

/// Seconds to send `bytes` to the next stage.
static double getSendSeconds(int64_t bytes, const CostTable &costs) {
  Workload send;
  setSend(send, nn::kPipeAxis, bytes);
  return costs.getSeconds(send);
}

/// Where all ranks along tp have what crosses a border, Megatron sends a part
/// from each and gathers the parts. Source: Narayanan et al., arXiv:2104.04473,
/// section 4.1.
static double getMegatronSendSeconds(int64_t bytes,
                                     const frontend::Parallel &parallel,
                                     const CostTable &costs) {
  int64_t ranks = parallel.tensorParallel;
  if (ranks == 1 || parallel.sequenceParallel)
    return getSendSeconds(bytes, costs);
  Workload gather;
  setExchange(gather, "all_gather", nn::kTensorAxis, ranks, bytes,
              /*hasWholeSums=*/false);
  return getSendSeconds(llvm::divideCeil(bytes, ranks), costs) +
         costs.getSeconds(gather);
}

/// How the stages of `parallel` run the micro-batches of `step`.
static report::StepShape getShape(func::FuncOp step,
                                  const frontend::Parallel &parallel) {
  report::StepShape shape;
  auto count = step->getAttrOfType<IntegerAttr>(nn::kMicroBatchesAttr);
  shape.pipeline.microBatches = count ? count.getInt() : 1;
  shape.pipeline.stages = parallel.stages;
  shape.pipeline.virtualStages = parallel.virtualStages;
  shape.pipeline.microBatchGroup = parallel.microBatchGroup.value_or(0);
  shape.chunks = parallel.chunks;
  if (!parallel.schedule.empty())
    shape.schedule = parallel.schedule;
  else if (parallel.virtualStages > 1)
    shape.schedule = "interleaved";
  return shape;
}

/// All layers are one chunk where there are no stages.
static void countLayers(func::FuncOp step, std::vector<int64_t> &chunks) {
  int64_t layers = 0;
  for (Operation &op : step.getBody().front())
    if (nn::ScopeAttr scope = nn::getScope(&op))
      layers = std::max(layers, scope.getLayer() + 1);
  if (chunks.empty())
    chunks = {layers};
}

/// This plan's launches on the step of a rank: what `recompute` says, or else
/// `decided`, a plan that was made for a budget.
static LogicalResult planRank(ModuleOp module, StringRef decided,
                              const RecomputeOptions &recompute,
                              const TargetOptions &target) {
  auto run = [&](const RecomputeOptions &plan) {
    return int(failed(runPhases(module, Phase::Joint, Phase::RT, plan,
                                /*inference=*/false, target)));
  };
  return failure(decided.empty() ? run(recompute)
                                 : withPlan(decided, recompute.isFree, run));
}

static LogicalResult addTimes(report::Plan &plan, ModuleOp module,
                              frontend::Parallel parallel, StringRef decided,
                              const Options &options,
                              const RecomputeOptions &recompute,
                              const TargetOptions &target) {
  setTarget(module, target);
  if (failed(runPhases(module, Phase::NN, Phase::Joint, RecomputeOptions(),
                       /*inference=*/false)))
    return failure();
  auto step = module.lookupSymbol<func::FuncOp>(nn::kStepFunction);
  CostTable costs = plan.costs;
  nn::setMesh(costs, module, parallel.stages);
  countLayers(step, parallel.chunks);
  report::StepShape shape = getShape(step, parallel);
  const solver::NamedSchedule *schedule = solver::findSchedule(shape.schedule);
  if (std::optional<std::string> fault = check(*schedule, shape.pipeline))
    return step.emitError(*fault);
  int64_t border = report::getBorderBytes(step);
  report::LayerSeconds megatron = report::timeAsMegatron(
      step, costs, getMegatronOptions(recompute), parallel.chunks);
  if (failed(planRank(module, decided, recompute, target)))
    return failure();
  if (!options.accounting.empty()) {
    shape.borderSeconds = getMegatronSendSeconds(border, parallel, costs);
    plan.stepTimes.push_back(report::getStepTime("Megatron", megatron, shape));
  }
  shape.borderSeconds = getSendSeconds(border, costs);
  step = module.lookupSymbol<func::FuncOp>(nn::kStepFunction);
  plan.stepTimes.push_back(report::getStepTime(
      "this plan", report::timeAsPlanned(step, costs, megatron), shape));
  plan.ranks = formatAxes(getAxes(parallel));
  return success();
}

void driver::addStepTimes(report::Plan &plan, MLIRContext &context,
                          frontend::Description description, StringRef decided,
                          const Options &options,
                          const RecomputeOptions &recompute,
                          const TargetOptions &target) {
  frontend::Parallel &parallel = description.parallel;
  // With accounting, the plan beside is of one rank.
  parallel.tensorParallel =
      std::max(parallel.tensorParallel, recompute.tensorRanks);
  parallel.sequenceParallel |= recompute.sharesPositions;
  parallel.expertParallel =
      std::max(parallel.expertParallel, recompute.expertRanks);
  int64_t ranks =
      parallel.stages * parallel.dataParallel * parallel.tensorParallel;
  if (ranks == 1 && options.accounting.empty())
    return;
  std::string fault;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    bool isError = diagnostic.getSeverity() == DiagnosticSeverity::Error;
    if (isError && fault.empty())
      fault = diagnostic.str();
    return success();
  });
  OwningOpRef<ModuleOp> module = frontend::buildModel(context, description);
  bool isTimed = module && succeeded(addTimes(plan, *module, parallel, decided,
                                              options, recompute, target));
  if (!isTimed && !options.quiet)
    llvm::WithColor::note()
        << "no time of a step of all ranks: "
        << (fault.empty() ? "they cannot share it" : fault) << "\n";
}
