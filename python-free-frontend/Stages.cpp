//===- Stages.cpp - A description's model for stages ----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "python-free-frontend/Frontend.h"
#include "reprise/Dialect/NN/Axes.h"
#include "reprise/Dialect/NN/NNOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::frontend;

void frontend::setSchedule(ModuleOp module, const Parallel &parallel) {
  Builder builder(module.getContext());
  StringRef schedule = parallel.schedule;
  if (schedule.empty())
    schedule = parallel.virtualStages > 1 ? "interleaved" : "1f1b";
  module->setAttr(nn::kScheduleAttr, builder.getStringAttr(schedule));
  if (parallel.microBatchGroup)
    module->setAttr(nn::kMicroBatchGroupAttr,
                    builder.getI64IntegerAttr(*parallel.microBatchGroup));
}

LogicalResult frontend::makePipeline(ModuleOp module,
                                     const Parallel &parallel) {
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
  setSchedule(module, parallel);
  return success();
}

/// A mesh of the ranks that have all experts together, and of those that share
/// the rest of the model. Where experts are whole, the larger number has the
/// other within.
static void setMeshOfExperts(ModuleOp module, int64_t experts, int64_t tensor,
                             bool isWhole) {
  Builder builder(module.getContext());
  SmallVector<StringAttr> names = {builder.getStringAttr(nn::kExpertAxis)};
  SmallVector<int64_t> sizes = {experts}, steps = {0};
  if (tensor > 1) {
    names.push_back(builder.getStringAttr(nn::kTensorAxis));
    sizes.push_back(tensor);
    steps = !isWhole           ? SmallVector<int64_t>{0, 0}
            : experts < tensor ? SmallVector<int64_t>{1, 0}
                               : SmallVector<int64_t>{0, 1};
  }
  module->setAttr(nn::kMeshAttr,
                  nn::MeshAttr::get(module.getContext(), names, sizes, steps));
}

OwningOpRef<ModuleOp> frontend::buildPlanned(MLIRContext &context,
                                             Description description,
                                             bool needsChain) {
  Parallel &parallel = description.parallel;
  int64_t &ranks = parallel.dataParallel;
  int64_t experts = parallel.expertParallel, tensor = parallel.tensorParallel;
  // With whole experts, those are the first along tp, and behind these.
  int64_t needed = hasWholeExperts(parallel)
                       ? std::max<int64_t>(experts / tensor, 1)
                       : experts;
  description.train.globalBatchSize =
      description.getGlobalBatchSize() / ranks * needed;
  ranks = needed;
  parallel.reductionGroups.reset();
  OwningOpRef<ModuleOp> module = buildModel(context, description);
  if (!module || !needsChain || experts == 1)
    return module;
  setMeshOfExperts(*module, experts, tensor, hasWholeExperts(parallel));
  (*module)->removeAttr(nn::kDistributedOptimizerAttr);
  return module;
}
