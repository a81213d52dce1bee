//===- KnownOffsets.cpp - Offsets of one program for another one ----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A launch may have several ops, each of which is a launch of its own in
// another program of the same step. The key of a value is the name of the op
// that makes it, and its bytes: a launch may leave out some of the results of
// an op.
//
//===----------------------------------------------------------------------===//

#include "reprise/Dialect/RT/KnownOffsets.h"
#include "WhatIf.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/NN/Schedules.h"
#include "reprise/Dialect/RT/RTWaitOp.h"
#include "reprise/Dialect/RT/ScheduledOp.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::planning;

/// The key of result `number` of `op`; that of its workspace is the name alone.
static std::string getKey(rt::ScheduledOp op, size_t number, Type type) {
  StringAttr name = op->getAttrOfType<StringAttr>(rt::kNameAttr);
  auto makers = op->getAttrOfType<ArrayAttr>(rt::kMadeByAttr);
  if (type && makers)
    name = dyn_cast<StringAttr>(makers[number]);
  std::string key = name ? name.str() : "";
  return type ? key + " " + std::to_string(getTypeBytes(type)) : key;
}

/// Whether what `op` makes is where it was before, as its maker says; sums over
/// ranks may be taken apart there, and wait.
static bool changesInPlace(Operation *op) {
  auto collective = dyn_cast<rt::CollectiveOp>(op);
  return isa<rt::WaitOp>(op) || (collective && collective.isInPlace());
}

KnownOffsets planning::getKnownOffsets(ModuleOp planned) {
  KnownOffsets offsets;
  FailureOr<PlannedBytes> bytes = getPlannedBytes(planned);
  auto step = planned.lookupSymbol<func::FuncOp>(nn::kStepFunction);
  if (failed(bytes) || !step)
    return offsets;
  auto add = [&](std::string key, Value value) {
    auto buffer = value ? value.getDefiningOp<rt::BufferOp>() : rt::BufferOp();
    int64_t place = rt::kNoOffset;
    if (buffer && buffer.getSpace() == rt::Space::Device)
      place = int64_t(buffer.getRoot().getOffset()) - bytes->begin;
    offsets[key].push_back(std::max(place, rt::kNoOffset));
  };
  for (auto op : step.getBody().front().getOps<rt::ScheduledOp>()) {
    if (changesInPlace(op))
      continue;
    for (auto [number, write] : llvm::enumerate(op.getWrites()))
      add(getKey(op, number, write.getType()), write);
    add(getKey(op, 0, Type()), op.getWorkspaceBuffer());
  }
  return offsets;
}

void planning::writeKnownOffsets(func::FuncOp step,
                                 const KnownOffsets &offsets) {
  llvm::StringMap<size_t> used;
  auto take = [&](std::string key) {
    auto found = offsets.find(key);
    size_t number = used[key]++;
    return found != offsets.end() && number < found->second.size()
               ? found->second[number]
               : rt::kNoOffset;
  };
  for (auto op : step.getBody().front().getOps<rt::ScheduledOp>()) {
    if (changesInPlace(op))
      continue;
    SmallVector<int64_t> own;
    for (auto [number, result] : llvm::enumerate(op->getResults()))
      own.push_back(take(getKey(op, number, result.getType())));
    own.push_back(take(getKey(op, 0, Type())));
    op->setAttr(rt::kKnownOffsetsAttr,
                DenseI64ArrayAttr::get(op.getContext(), own));
  }
}
