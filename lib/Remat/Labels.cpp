//===- Labels.cpp - The labels that a step has a use for --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Remat/Labels.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/NN/Phases.h"
#include "reprise/Support/RecomputeLabels.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace reprise;

SmallVector<StringRef> remat::findLabels(func::FuncOp step) {
  llvm::StringSet<> modules;
  for (Operation &op : nn::getForward(step.getBody().front())) {
    if (nn::ScopeAttr scope = nn::getScope(&op))
      modules.insert(scope.getModule());
  }
  SmallVector<StringRef> labels;
  for (const RecomputeLabel &label : kRecomputeLabels)
    if (llvm::any_of(modules.keys(),
                     [&](StringRef module) { return label.covers(module); }))
      labels.push_back(label.name);
  return labels;
}

bool remat::hasLabels(ArrayRef<StringRef> known, ArrayRef<StringRef> labels) {
  return llvm::all_of(labels, [&](StringRef label) {
    return llvm::is_contained(known, label);
  });
}
