//===- Frontend.cpp - From a description to nn ------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is the same for every family of models.
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Frontend.h"
#include "python-free-frontend/Families.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Verifier.h"
#include "reprise/Dialect/NN/Axes.h"
#include "reprise/Interfaces/ExpertRounds.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::frontend;

static DictionaryAttr buildTrainAttr(Builder &builder,
                                     const Description &description) {
  const Train &train = description.train;
  auto number = [&](StringRef name, double value) {
    return builder.getNamedAttr(name, builder.getF64FloatAttr(value));
  };
  auto whole = [&](StringRef name, int64_t value) {
    return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
  };
  auto word = [&](StringRef name, StringRef value) {
    return builder.getNamedAttr(name, builder.getStringAttr(value));
  };
  SmallVector<NamedAttribute> entries = {
      word("optimizer", train.optimizer),
      word("precision", train.precision),
      number("lr", train.lr),
      number("min_lr", train.minLr),
      word("lr_decay_style", train.lrDecayStyle),
      whole("lr_warmup_iters", train.lrWarmupIters),
      whole("train_iters", train.trainIters),
      number("adam_beta1", train.adamBeta1),
      number("adam_beta2", train.adamBeta2),
      number("adam_eps", train.adamEps),
      number("weight_decay", train.weightDecay),
      number("clip_grad", train.clipGrad),
      whole("seed", train.seed),
      whole("vocab_size", description.model.vocabSize)};
  if (train.getBiasUpdateRate() > 0)
    entries.push_back(number(nn::kBiasUpdateRate, train.getBiasUpdateRate()));
  if (train.lrDecayIters)
    entries.push_back(whole("lr_decay_iters", *train.lrDecayIters));
  if (train.headChunkRows)
    entries.push_back(whole(nn::kHeadChunkRows, *train.headChunkRows));
  return builder.getDictionaryAttr(entries);
}

bool reprise::frontend::hasWholeExperts(const Parallel &parallel) {
  return parallel.tensorParallel > 1 && parallel.expertTensorParallel == 1;
}

int64_t reprise::frontend::countExpertCopies(const Parallel &parallel) {
  return parallel.dataParallel *
         (hasWholeExperts(parallel) ? parallel.tensorParallel : 1) /
         parallel.expertParallel;
}

bool reprise::frontend::hasEqualStates(const Parallel &parallel) {
  return parallel.dataParallel > 1 ||
         (parallel.expertParallel > 1 && countExpertCopies(parallel) > 1);
}

/// The axes that have several ranks; those along `tp` are the closest.
static void setRanks(ModuleOp module, const Parallel &parallel) {
  Builder builder(module.getContext());
  SmallVector<StringAttr> names;
  SmallVector<int64_t> sizes;
  for (auto [name, size] :
       {std::pair(nn::kDataAxis, parallel.dataParallel),
        std::pair(nn::kTensorAxis, parallel.tensorParallel)})
    if (size > 1) {
      names.push_back(builder.getStringAttr(name));
      sizes.push_back(size);
    }
  SmallVector<int64_t> steps(names.size(), 0);
  // Neighbours have other experts: along dp, or where ranks along tp have whole
  // ones, along both. That axis is there for one rank, too, to say so.
  bool isWhole = hasWholeExperts(parallel);
  int64_t experts = parallel.expertParallel;
  int64_t stride = isWhole ? 1 : parallel.tensorParallel;
  int64_t copies = countExpertCopies(parallel);
  for (auto [name, size, step] :
       {std::tuple(nn::kExpertAxis, experts, stride),
        std::tuple(nn::kExpertCopiesAxis, copies, stride * experts)})
    if ((experts > 1 && size > 1) || (isWhole && name == nn::kExpertAxis)) {
      names.push_back(builder.getStringAttr(name));
      sizes.push_back(size);
      steps.push_back(step);
    }
  if (!names.empty())
    module->setAttr(nn::kMeshAttr, nn::MeshAttr::get(builder.getContext(),
                                                     names, sizes, steps));
  if (parallel.distributedOptimizer && hasEqualStates(parallel))
    module->setAttr(nn::kDistributedOptimizerAttr, builder.getUnitAttr());
  if (parallel.sequenceParallel)
    module->setAttr(nn::kSequenceParallelAttr, builder.getUnitAttr());
  if (parallel.expertRows && experts > 1)
    module->setAttr(kExpertRowsAttr,
                    builder.getI64IntegerAttr(*parallel.expertRows));
}

OwningOpRef<ModuleOp>
reprise::frontend::buildModel(MLIRContext &context,
                              const Description &description) {
  context.loadDialect<func::FuncDialect, nn::NNDialect>();
  const SourcePosition &position = description.modelPosition;
  auto location = FileLineColLoc::get(&context, position.file, position.line,
                                      position.column);
  OwningOpRef<ModuleOp> module = ModuleOp::create(location);
  OpBuilder builder(&context);
  const Model &model = description.model;
  std::string name = model.modelType + " " + std::to_string(model.numLayers) +
                     "x" + std::to_string(model.width);
  (*module)->setAttr(nn::kModelAttr, builder.getStringAttr(name));
  (*module)->setAttr(nn::kTrainAttr, buildTrainAttr(builder, description));
  setRanks(*module, description.parallel);
  (*module)->setAttr(nn::kHubConfigAttr,
                     builder.getStringAttr(writeHubConfig(description)));
  (*module)->setAttr(nn::kTrainJsonAttr,
                     builder.getStringAttr(writeTrainJson(description)));

  buildForward(*module, description);

  auto forward = module->lookupSymbol<func::FuncOp>(nn::kForwardFunction);
  if (failed(freezeParameters(forward, description)))
    return nullptr;
  if (failed(verify(*module)))
    return nullptr;
  return module;
}
