//===- WaitingInputs.cpp - Inputs of micro-batches to come ----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Memory/WaitingInputs.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/NN/Schedules.h"
#include "reprise/Dialect/RT/RTOps.h"

using namespace mlir;
using namespace reprise;

bool memory::isOfMicroBatch(StringRef role) {
  return role == "tokens" || role == "targets" || role == "rng";
}

int64_t memory::getWaitingBytes(func::FuncOp step, int64_t launches,
                                int64_t bytes) {
  auto mostLaunches =
      step->getParentOfType<ModuleOp>()->getAttrOfType<IntegerAttr>(
          rt::kMostLaunchesAttr);
  if (!mostLaunches)
    return 0;
  constexpr int64_t kMostBytes = int64_t(1) << 58;
  auto count = step->getAttrOfType<IntegerAttr>(nn::kMicroBatchesAttr);
  // Between groups there is something to do.
  int64_t all = count ? count.getInt() / nn::getReductionGroups(step) : 1;
  int64_t most = mostLaunches.getInt() / std::max<int64_t>(launches, 1);
  most = std::min(most, kMostBytes / std::max<int64_t>(bytes, 1));
  int64_t atOnce = std::clamp<int64_t>(most, 1, all);
  while (all % atOnce != 0)
    --atOnce;
  return bytes * (2 * atOnce - 1);
}
