//===- Pipelines.cpp - The order of everything ------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Pipelines/Pipelines.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "reprise/Autodiff/Passes.h"
#include "reprise/Codegen/CPU/Passes.h"
#include "reprise/Codegen/CUDA/Passes.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/RT/RTWaitOp.h"
#include "reprise/Kernels/Passes.h"
#include "reprise/Memory/Passes.h"
#include "reprise/Partition/Passes.h"
#include "reprise/Planning/Passes.h"
#include "reprise/Remat/Passes.h"
#include "reprise/Stages/Passes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace reprise;

static constexpr std::pair<Phase, StringLiteral> kPhases[] = {
    {Phase::NN, "nn"},       {Phase::Joint, "joint"},
    {Phase::Remat, "remat"}, {Phase::Kernels, "kernels"},
    {Phase::RT, "rt"},       {Phase::LLVM, "llvm"},
    {Phase::GPU, "gpu"},     {Phase::NVVM, "nvvm"}};

/// What NVIDIA recommends for its newer chips, and gives cuBLAS by itself.
static constexpr int64_t kCublasWorkspaceBytes = 32 << 20;
/// That of an allocation of CUDA, and enough for every access.
static constexpr int64_t kCudaAlignment = 256;
/// A graph of so many launches takes the driver some 0.1 s to make, and some
/// 10 MB. It is 0.5 M tokens of GPT-2 124M in micro-batches of 16 k.
static constexpr int64_t kMostLaunchesOfGraph = 16384;

StringRef reprise::stringifyPhase(Phase phase) {
  return kPhases[int(phase)].second;
}

std::optional<Phase> reprise::parsePhase(StringRef name) {
  for (auto [phase, text] : kPhases)
    if (text == name)
      return phase;
  return std::nullopt;
}

/// The parts of a description beside its beginning, each where it is said
/// twice.
static constexpr StringLiteral kLastToo = "last segment too";
static constexpr StringLiteral kNothingFree = "nothing free";
static constexpr StringLiteral kNothingElse = "nothing else free";

static std::string join(ArrayRef<int64_t> numbers) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleave(numbers, os, ",");
  return text;
}

/// "full uniform 2": the granularity and what goes with it.
static std::string describeDecision(const RecomputeOptions &options) {
  if (options.granularity.empty())
    return "none";
  if (options.granularity == "plan")
    return "plan " + options.planFile;
  if (options.granularity == "selective" && options.modules &&
      options.modules->empty())
    return "selective (nothing)";
  if (options.granularity == "selective")
    return "selective " + (options.modules ? llvm::join(*options.modules, ",")
                                           : std::string("core_attn"));
  return options.granularity + " " + options.method + " " +
         std::to_string(options.numLayers.value_or(0));
}

std::string RecomputeOptions::describe() const {
  std::string text = describeDecision(*this);
  if (stages > 1)
    text += "; " + std::to_string(stages) + " stages of " + join(chunks) +
            " layers";
  if (granularity == "full" && !keepsIdleSegment)
    text += "; " + kLastToo.str();
  if (sharesSaved)
    text += "; saved inputs shared";
  if (!isFree && !isFreeByPlan)
    text += "; " + (hasRules ? kNothingElse : kNothingFree).str();
  return text;
}

std::string RecomputeOptions::describeConstraint() const {
  SmallVector<std::string> parts;
  if (!granularity.empty())
    parts.push_back(describeDecision(*this));
  if (granularity == "full" && !keepsIdleSegment)
    parts.push_back(kLastToo.str());
  if (!isFree && !isFreeByPlan)
    parts.push_back((hasRules ? kNothingElse : kNothingFree).str());
  return llvm::join(parts, " and ");
}

/// Whether ranks keep parts of inputs of segments. With Megatron's accounting
/// the program is of one rank.
static bool sharesInputs(const RecomputeOptions &options) {
  return options.sharesSaved && options.tensorRanks == 1;
}

remat::RequestAttr RecomputeOptions::getRequest(MLIRContext *context) const {
  Builder builder(context);
  ArrayAttr labels;
  if (granularity == "selective" && modules) {
    SmallVector<StringRef> names(modules->begin(), modules->end());
    labels = builder.getStrArrayAttr(names);
  }
  remat::ChunksAttr spread;
  if (stages > 1)
    spread = remat::ChunksAttr::get(context, stages,
                                    builder.getDenseI64ArrayAttr(chunks));
  bool isFull = granularity == "full";
  return remat::RequestAttr::get(
      context, granularity.empty() ? "none" : granularity, isFull ? method : "",
      isFull ? numLayers.value_or(0) : 0, labels,
      granularity == "plan" ? planFile : "", spread, keepsIdleSegment,
      sharesInputs(*this), isFree || isFreeByPlan);
}

RecomputeOptions RecomputeOptions::get(remat::RequestAttr request) {
  RecomputeOptions options;
  if (request.getGranularity() != "none")
    options.granularity = request.getGranularity().str();
  options.method = request.getMethod().str();
  if (request.getLayers())
    options.numLayers = request.getLayers();
  if (ArrayAttr labels = request.getModules()) {
    options.modules.emplace();
    for (StringRef label : labels.getAsValueRange<StringAttr>())
      options.modules->push_back(label.str());
  }
  options.planFile = request.getFile().str();
  if (remat::ChunksAttr spread = request.getChunks()) {
    options.stages = spread.getStages();
    options.chunks = spread.getLayers().asArrayRef().vec();
  }
  options.keepsIdleSegment = request.getKeepLast();
  options.sharesSaved = request.getShareSaved();
  options.isFree = request.getFree();
  return options;
}

//===----------------------------------------------------------------------===//
// A phase each
//===----------------------------------------------------------------------===//

/// Ranks that share the model get their part of the forward pass first.
/// Duplicates are merged before there is a backward pass, so that its size is
/// that of the model; and once more after it, where two uses of a value made
/// two equal gradients. What only goes forward is taken from the forward pass
/// while there is nothing else.
static void addJoint(OpPassManager &manager, bool inference) {
  manager.addPass(partition::createAnnotateLayout());
  manager.addPass(partition::createPartition());
  manager.addPass(partition::createVerifyLayout());
  if (inference)
    manager.addPass(autodiff::createDeriveInference());
  manager.addPass(partition::createPartitionExperts());
  manager.addPass(createCSEPass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(autodiff::createDifferentiate());
  manager.addPass(createCSEPass());
  manager.addPass(createCanonicalizerPass());
  manager.addNestedPass<func::FuncOp>(autodiff::createChunkHead());
  manager.addPass(autodiff::createGroupGradients());
  manager.addPass(autodiff::createAddOptimizer());
  manager.addPass(partition::createVerifyLayout());
}

/// The chunks of a pipeline instead, each differentiated by itself, and the
/// table of what its stages do with them.
static void addChunks(OpPassManager &manager, bool inference) {
  manager.addPass(partition::createAnnotateLayout());
  manager.addPass(partition::createPartition());
  manager.addPass(partition::createVerifyLayout());
  if (inference)
    manager.addPass(autodiff::createDeriveInference());
  manager.addPass(partition::createPartitionExperts());
  manager.addPass(stages::createCutChunks());
  manager.addPass(stages::createMakeSchedule());
  manager.addPass(stages::createVerifySchedule());
  OpPassManager &chunk = manager.nest<ModuleOp>();
  chunk.addPass(createCSEPass());
  chunk.addPass(createCanonicalizerPass());
  chunk.addPass(autodiff::createDifferentiate());
  chunk.addPass(createCSEPass());
  chunk.addPass(createCanonicalizerPass());
  chunk.addNestedPass<func::FuncOp>(autodiff::createChunkHead());
}

void reprise::buildDeciders(OpPassManager &manager,
                            const RecomputeOptions &options) {
  OpPassManager &step = manager.nest<func::FuncOp>();
  if (options.stages > 1) {
    remat::SplitLayersOptions split;
    split.stages = options.stages;
    split.virtualStages = options.chunks.size() / options.stages;
    split.layers.assign(options.chunks.begin(), options.chunks.end());
    step.addPass(remat::createSplitLayers(split));
  }
  if (options.granularity == "plan") {
    remat::ReadPlanOptions plan;
    plan.file = options.planFile;
    step.addPass(remat::createReadPlan(plan));
  } else if (options.granularity == "full") {
    remat::AnnotateFullOptions full;
    full.method = options.method;
    if (options.numLayers)
      full.numLayers = *options.numLayers;
    if (sharesInputs(options))
      full.share = nn::kTensorAxis.str();
    step.addPass(remat::createAnnotateFull(full));
  } else if (options.granularity == "selective") {
    remat::AnnotateSelectiveOptions selective;
    if (options.modules)
      selective.modules = llvm::join(*options.modules, ",");
    step.addPass(remat::createAnnotateSelective(selective));
  }
}

/// One pass applies the attributes that deciders write, one checks the outcome.
static void addApply(OpPassManager &manager, bool isFree) {
  OpPassManager &decided = manager.nest<func::FuncOp>();
  if (isFree)
    decided.addPass(remat::createAnnotateFree());
  decided.addPass(remat::createApply());
  decided.addPass(remat::createVerify());
}

static void addRemat(OpPassManager &manager, const RecomputeOptions &options) {
  buildDeciders(manager, options);
  if (options.granularity == "full" && options.keepsIdleSegment) {
    planning::KeepIdleSegmentOptions keep;
    keep.isFree = options.isFree;
    manager.addPass(planning::createKeepIdleSegment(getPhases(), keep));
  }
  addApply(manager, options.isFree);
}

/// From here on nothing merges equal ops: the replays lose their fences.
static void addKernels(OpPassManager &manager, bool rowsApart) {
  manager.addPass(kernels::createPadVocabulary());
  manager.addPass(kernels::createFormKernels({rowsApart}));
  manager.addPass(kernels::createVerifyKernels());
}

/// Memory is planned for kernels whose bodies no longer change what they read
/// and write. A program of which nothing but its bytes is asked is not proven:
/// the plan that is taken goes this way again.
static void addRT(OpPassManager &manager, bool isTried) {
  manager.addNestedPass<func::FuncOp>(kernels::createConvertNNToLinalg());
  manager.addPass(kernels::createPackWeights());
  kernels::VerifyKernelsOptions loops;
  loops.loops = true;
  if (!isTried)
    manager.addPass(kernels::createVerifyKernels(loops));
  manager.addPass(memory::createOverlapCollectives());
  manager.addPass(memory::createPlanMemory());
  if (!isTried)
    manager.addPass(memory::createVerifyPlan());
}

/// A decider is none of them: planning is called by the pipeline, and calls no
/// pipeline that has planning in it.
planning::Phases reprise::getPhases() {
  auto tryMemory = [](OpPassManager &manager) {
    addRT(manager, /*isTried=*/true);
  };
  return {addApply, addKernels, tryMemory};
}

void reprise::setTarget(ModuleOp module, const TargetOptions &target) {
  Builder builder(module.getContext());
  if (target.overlap)
    module->removeAttr(rt::kNoOverlapAttr);
  else
    module->setAttr(rt::kNoOverlapAttr, builder.getUnitAttr());
  for (auto part : module.getOps<ModuleOp>()) // Of a pipeline.
    setTarget(part, target);
  if (!target.isCuda)
    return;
  module->setAttr(rt::kAlignmentAttr,
                  builder.getI64IntegerAttr(kCudaAlignment));
  module->setAttr(rt::kGemmWorkspaceAttr,
                  builder.getI64IntegerAttr(kCublasWorkspaceBytes));
  if (target.biasKernels)
    module->setAttr(rt::kBiasKernelsAttr, builder.getUnitAttr());
  module->setAttr(rt::kMostLaunchesAttr,
                  builder.getI64IntegerAttr(kMostLaunchesOfGraph));
}

/// Refuses what comes as text, unless it is what the phase leaves. (NN and
/// Joint are checked by what follows them; LLVM is what its translation takes.)
static void addVerifiers(OpPassManager &manager, Phase from) {
  if (from == Phase::Remat)
    manager.addNestedPass<func::FuncOp>(remat::createVerify());
  if (from == Phase::Kernels)
    manager.addPass(kernels::createVerifyKernels());
  if (from == Phase::RT)
    manager.addPass(memory::createVerifyPlan());
}

/// From phase Remat on all modules of a pipeline, chunks and then stages, go
/// their own ways.
static void buildPipelineOfStages(OpPassManager &manager, Phase from, Phase to,
                                  const RecomputeOptions &recompute,
                                  bool inference, const TargetOptions &target) {
  auto passes = [&](Phase phase) { return from < phase && phase <= to; };
  addVerifiers(manager.nest<ModuleOp>(), from);
  if (passes(Phase::Joint))
    addChunks(manager, inference);
  if (passes(Phase::Remat)) {
    RecomputeOptions own = recompute;
    own.stages = 1;
    // Between the passes of a micro-batch there are others.
    own.keepsIdleSegment = false;
    addRemat(manager.nest<ModuleOp>(), own);
  }
  if (passes(Phase::Kernels)) {
    manager.addPass(stages::createUnrollStages());
    OpPassManager &stage = manager.nest<ModuleOp>();
    stage.addPass(autodiff::createAddOptimizer());
    stage.addPass(partition::createVerifyLayout());
    addKernels(stage, target.rowsApart);
  }
  if (passes(Phase::RT))
    addRT(manager.nest<ModuleOp>(), target.isTried);
  if (from < Phase::LLVM && to == Phase::LLVM)
    codegen::buildCPULoweringPipeline(manager.nest<ModuleOp>(),
                                      target.registers);
  if (from < Phase::GPU && to >= Phase::GPU)
    cuda::buildDeviceEmissionPipeline(manager.nest<ModuleOp>(), {target.chip});
  if (passes(Phase::NVVM))
    cuda::buildDeviceLoweringPipeline(manager.nest<ModuleOp>());
}

bool reprise::isPipeline(ModuleOp module) {
  return nn::getAxisSize(module, nn::kPipeAxis) > 1;
}

void reprise::buildPipeline(OpPassManager &manager, Phase from, Phase to,
                            const RecomputeOptions &recompute, bool inference,
                            const TargetOptions &target) {
  if (target.isPipeline)
    return buildPipelineOfStages(manager, from, to, recompute, inference,
                                 target);
  auto passes = [&](Phase phase) { return from < phase && phase <= to; };
  addVerifiers(manager, from);
  if (passes(Phase::Joint))
    addJoint(manager, inference);
  if (passes(Phase::Remat))
    addRemat(manager, recompute);
  if (passes(Phase::Kernels))
    addKernels(manager, target.rowsApart);
  if (passes(Phase::RT))
    addRT(manager, target.isTried);
  if (from < Phase::LLVM && to == Phase::LLVM)
    codegen::buildCPULoweringPipeline(manager, target.registers);
  if (from < Phase::GPU && to >= Phase::GPU)
    cuda::buildDeviceEmissionPipeline(manager, {target.chip});
  if (passes(Phase::NVVM))
    cuda::buildDeviceLoweringPipeline(manager);
}
