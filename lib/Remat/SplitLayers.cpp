//===- SplitLayers.cpp - Layers onto pipeline stages ----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Step.h"
#include "reprise/Remat/Passes.h"
#include "reprise/Support/LayerSplit.h"

namespace reprise::remat {
#define GEN_PASS_DEF_SPLITLAYERS
#include "reprise/Remat/Passes.h.inc"
} // namespace reprise::remat

using namespace mlir;
using namespace reprise;
using namespace reprise::remat;

namespace {
struct SplitLayers : public remat::impl::SplitLayersBase<SplitLayers> {
  using SplitLayersBase::SplitLayersBase;

  void runOnOperation() override {
    FailureOr<Step> step = getStep(getOperation());
    if (failed(step) || failed(split(*step)))
      signalPassFailure();
  }

  LogicalResult split(const Step &step);
};
} // namespace

LogicalResult SplitLayers::split(const Step &step) {
  func::FuncOp function = getOperation();
  if (!step.backward)
    return success();
  LayerSplit split;
  split.stages = stages;
  split.virtualStages = virtualStages;
  split.layout.assign(layers.begin(), layers.end());
  if (stages < 1 || virtualStages < 1)
    return function.emitError("needs at least 1 pipeline stage and 1 virtual "
                              "stage, but got ")
           << int64_t(stages) << " and " << int64_t(virtualStages);
  if (stages == 1 && virtualStages > 1)
    return function.emitError("needs more than 1 pipeline stage to have "
                              "virtual stages, but got ")
           << int64_t(virtualStages) << " virtual stages";
  std::vector<int64_t> chunks;
  if (std::optional<std::string> fault =
          splitLayers(split, countLayers(step), chunks))
    return function.emitError() << *fault;
  auto sizes = DenseI64ArrayAttr::get(&getContext(), chunks);
  function->setAttr(kChunksAttr, ChunksAttr::get(&getContext(), stages, sizes));
  return success();
}
