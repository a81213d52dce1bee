//===- BorderLanes.cpp - The lanes that borders need ----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BorderLanes.h"
#include "reprise/ABI/Lanes.h"
#include "reprise/ABI/Model.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Support/Borders.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::stages;

StringRef stages::getInput(func::FuncOp function, unsigned index) {
  auto input = function.getArgAttrOfType<StringAttr>(index, nn::kInputAttr);
  return input ? input.getValue() : StringRef();
}

StringRef stages::getOutput(func::FuncOp function, unsigned index) {
  auto output =
      function.getResultAttrOfType<StringAttr>(index, nn::kOutputAttr);
  return output ? output.getValue() : StringRef();
}

SmallVector<Type> stages::getInputTypes(func::FuncOp function, StringRef role) {
  SmallVector<Type> types;
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
    if (getInput(function, index) == role)
      types.push_back(type);
  return types;
}

SmallVector<Type> stages::getOutputTypes(func::FuncOp function,
                                         StringRef role) {
  SmallVector<Type> types;
  for (auto [index, type] : llvm::enumerate(function.getResultTypes()))
    if (getOutput(function, index) == role)
      types.push_back(type);
  return types;
}

void BorderLanes::add(func::FuncOp chunk) {
  for (StringRef role : {kBorder, kBorderGradient})
    for (ArrayRef<Type> types :
         {getInputTypes(chunk, role), getOutputTypes(chunk, role)})
      for (Type type : types) {
        int64_t &most = mostAtOnce[type];
        most = std::max<int64_t>(most, llvm::count(types, type));
      }
}

/// As many micro-batches may be on their way as the sender's chunks have slots.
static int64_t countSlots(pipe::StageOp sender, bool isGradient) {
  if (isGradient)
    return sender.getGradientSlots();
  int64_t all = 0;
  for (int64_t slots : sender.getSlots())
    all += slots;
  return all;
}

std::optional<Lane> BorderLanes::find(Type type, pipe::StageOp sender,
                                      bool isGradient) const {
  auto known = mostAtOnce.find(type);
  if (known == mostAtOnce.end())
    return std::nullopt;
  int64_t number = known - mostAtOnce.begin();
  int64_t lane = REPRISE_LANE_FURTHER + 2 * (number - 1) + isGradient;
  if (number == 0)
    lane = isGradient ? REPRISE_LANE_GRADIENTS : REPRISE_LANE_ACTIVATIONS;
  return Lane{lane, countSlots(sender, isGradient) * known->second};
}
