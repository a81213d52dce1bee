//===- Parameters.cpp - What a model has, and what a token meets ----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Interfaces/Differentiable.h"
#include "reprise/Interfaces/Facts.h"
#include "reprise/Interfaces/Partitionable.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::report;

/// The name of the parameter that `argument` is, or is a copy of in bf16.
static StringRef getParameter(func::FuncOp step, unsigned argument) {
  if (auto parameter = step.getArgAttrOfType<nn::ParameterAttr>(
          argument, nn::kParameterAttr))
    return parameter.getName();
  auto working = step.getArgAttrOfType<StringAttr>(argument, nn::kWorkingAttr);
  return working ? working.getValue() : "";
}

/// The layer whose experts have the weights that `use` reads; null if these are
/// no weights of experts.
static const LayerShape *
getLayerOfExperts(OpOperand &use, const std::map<int64_t, LayerShape> &shapes) {
  auto part = dyn_cast<Partitionable>(use.getOwner());
  nn::ScopeAttr scope = nn::getScope(use.getOwner());
  if (!part || part.getExpertOperands().empty() || !scope)
    return nullptr;
  auto shape = shapes.find(scope.getLayer());
  return shape == shapes.end() || shape->second.experts == 0 ? nullptr
                                                             : &shape->second;
}

/// How often what a rank has of a parameter makes the whole.
static int64_t countParts(func::FuncOp step, BlockArgument argument) {
  auto layout = step.getArgAttrOfType<nn::LayoutAttr>(argument.getArgNumber(),
                                                      nn::kLayoutAttr);
  auto module = step->getParentOfType<ModuleOp>();
  int64_t parts = 1;
  if (layout && module)
    for (StringAttr axis : layout.getNames())
      if (layout.getShardDim(axis) >= 0)
        parts *= nn::getAxisSize(module, axis);
  return parts;
}

/// A bias that no gradient reaches, a router's, is not counted, as nobody does.
ModelSize report::countModel(func::FuncOp step,
                             const std::map<int64_t, LayerShape> &shapes) {
  struct Known {
    int64_t elements = 0;
    const LayerShape *layer = nullptr; ///< whose experts have it
    bool isDifferentiated = false;
  };
  std::map<StringRef, Known> parameters;
  for (BlockArgument argument : step.getArguments()) {
    StringRef name = getParameter(step, argument.getArgNumber());
    if (name.empty())
      continue;
    Known &known = parameters[name];
    auto type = cast<ShapedType>(argument.getType());
    // A copy in bf16 does not say which part it is.
    known.elements = std::max(known.elements, type.getNumElements() *
                                                  countParts(step, argument));
    for (OpOperand &use : argument.getUses()) {
      // A head in chunks makes its gradients itself.
      known.isDifferentiated |= isa<Differentiable, RowChunks>(use.getOwner());
      if (const LayerShape *layer = getLayerOfExperts(use, shapes))
        known.layer = layer;
    }
  }
  ModelSize size;
  for (const auto &[name, known] : parameters)
    if (known.isDifferentiated) {
      size.parameters += known.elements;
      size.activeParameters +=
          known.layer
              ? known.elements / known.layer->experts * known.layer->slots
              : known.elements;
    }
  return size;
}
