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
#include "reprise/Kernels/Passes.h"
#include "reprise/Memory/Passes.h"
#include "reprise/Remat/Passes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace reprise;

static constexpr std::pair<Phase, StringLiteral> kPhases[] = {
    {Phase::NN, "nn"},       {Phase::Joint, "joint"},
    {Phase::Remat, "remat"}, {Phase::Kernels, "kernels"},
    {Phase::RT, "rt"},       {Phase::LLVM, "llvm"}};

StringRef reprise::stringifyPhase(Phase phase) {
  return kPhases[int(phase)].second;
}

std::optional<Phase> reprise::parsePhase(StringRef name) {
  for (auto [phase, text] : kPhases)
    if (text == name)
      return phase;
  return std::nullopt;
}

std::string RecomputeOptions::describe() const {
  if (granularity.empty())
    return "none";
  if (granularity == "selective" && modules && modules->empty())
    return "selective (nothing)";
  if (granularity == "selective")
    return "selective " +
           (modules ? llvm::join(*modules, ",") : std::string("core_attn"));
  return granularity + " " + method + " " +
         std::to_string(numLayers.value_or(0));
}

std::optional<RecomputeOptions> RecomputeOptions::parse(StringRef text) {
  RecomputeOptions options;
  if (text == "none")
    return options;
  SmallVector<StringRef> words, modules;
  text.split(words, ' ');
  options.granularity = words[0].str();
  if (words.size() == 2 && words[0] == "selective") {
    if (words[1] != "(nothing)")
      words[1].split(modules, ',');
    if (llvm::is_contained(modules, ""))
      return std::nullopt;
    options.modules.emplace(modules.begin(), modules.end());
    return options;
  }
  int64_t numLayers = 0;
  if (words.size() != 3 || words[0] != "full" ||
      words[2].getAsInteger(10, numLayers))
    return std::nullopt;
  options.method = words[1].str();
  if (numLayers != 0)
    options.numLayers = numLayers;
  return options;
}

//===----------------------------------------------------------------------===//
// A phase each
//===----------------------------------------------------------------------===//

/// Duplicates are merged before there is a backward pass, so that its size is
/// that of the model; and once more after it, where two uses of a value made
/// two equal gradients. What only goes forward is taken from the forward pass
/// while there is nothing else.
static void addJoint(OpPassManager &manager, bool inference) {
  if (inference)
    manager.addPass(autodiff::createDeriveInference());
  manager.addPass(createCSEPass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(autodiff::createDifferentiate());
  manager.addPass(createCSEPass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(autodiff::createAddOptimizer());
}

/// A decider writes attributes, one pass applies them, one checks the outcome.
static void addRemat(OpPassManager &manager, const RecomputeOptions &options) {
  OpPassManager &step = manager.nest<func::FuncOp>();
  if (options.granularity == "full") {
    remat::AnnotateFullOptions full;
    full.method = options.method;
    if (options.numLayers)
      full.numLayers = *options.numLayers;
    step.addPass(remat::createAnnotateFull(full));
  } else if (options.granularity == "selective") {
    remat::AnnotateSelectiveOptions selective;
    if (options.modules)
      selective.modules = llvm::join(*options.modules, ",");
    step.addPass(remat::createAnnotateSelective(selective));
  }
  step.addPass(remat::createApply());
  step.addPass(remat::createVerify());
}

/// From here on nothing merges equal ops: the replays lose their fences.
static void addKernels(OpPassManager &manager) {
  manager.addPass(kernels::createFormKernels());
  manager.addPass(kernels::createVerifyKernels());
}

/// Memory is planned for kernels whose bodies no longer change what they read
/// and write.
static void addRT(OpPassManager &manager) {
  manager.addNestedPass<func::FuncOp>(kernels::createConvertNNToLinalg());
  kernels::VerifyKernelsOptions loops;
  loops.loops = true;
  manager.addPass(kernels::createVerifyKernels(loops));
  manager.addPass(memory::createPlanMemory());
  manager.addPass(memory::createVerifyPlan());
}

void reprise::buildPipeline(OpPassManager &manager, Phase from, Phase to,
                            const RecomputeOptions &recompute, bool inference) {
  auto passes = [&](Phase phase) { return from < phase && phase <= to; };
  // What comes as text is not to be trusted. (NN and Joint are checked by what
  // follows them; LLVM is what its translation takes.)
  if (from == Phase::Remat)
    manager.addNestedPass<func::FuncOp>(remat::createVerify());
  if (from == Phase::Kernels)
    manager.addPass(kernels::createVerifyKernels());
  if (from == Phase::RT)
    manager.addPass(memory::createVerifyPlan());
  if (passes(Phase::Joint))
    addJoint(manager, inference);
  if (passes(Phase::Remat))
    addRemat(manager, recompute);
  if (passes(Phase::Kernels))
    addKernels(manager);
  if (passes(Phase::RT))
    addRT(manager);
  if (passes(Phase::LLVM))
    codegen::buildCPULoweringPipeline(manager);
}
