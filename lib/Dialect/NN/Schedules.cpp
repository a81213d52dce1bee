//===- Schedules.cpp - The functions of a program -------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Dialect/NN/Schedules.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace reprise;

SmallVector<func::FuncOp> nn::getSchedules(ModuleOp module) {
  SmallVector<func::FuncOp> schedules = {
      module.lookupSymbol<func::FuncOp>(kStepFunction)};
  for (StringRef name : {kEvaluateFunction, kSampleFunction})
    if (auto function = module.lookupSymbol<func::FuncOp>(name))
      schedules.push_back(function);
  for (auto function : module.getOps<func::FuncOp>())
    if (getPushLevel(function))
      schedules.push_back(function);
  return schedules;
}

std::optional<unsigned> nn::getPushLevel(func::FuncOp function) {
  StringRef name = function.getName();
  unsigned level = 0;
  if (!name.consume_front(kPushFunction) || name.getAsInteger(10, level))
    return std::nullopt;
  return level;
}

int64_t nn::getReductionGroups(func::FuncOp step) {
  auto groups = step->getAttrOfType<IntegerAttr>(kReductionGroupsAttr);
  return groups ? groups.getInt() : 1;
}

unsigned nn::getPartialLevels(int64_t groups) {
  return llvm::Log2_64_Ceil(groups);
}

unsigned nn::getLevelBehind(int64_t group) {
  return llvm::countr_zero(uint64_t(group) + 1);
}

bool nn::waitsForLast(unsigned level, int64_t groups) {
  return (groups - 1) >> level & 1;
}
