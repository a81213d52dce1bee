//===- Places.cpp - Places of one program for another one -----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A launch may be of several ops, each of which is a launch of its own in
// another program of the same step. What both make goes by the name of the op
// that makes it, and by its bytes: of an op's results one launch may leave some
// out.
//
//===----------------------------------------------------------------------===//

#include "reprise/Dialect/RT/Places.h"
#include "Trial.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/NN/Schedules.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Dialect/RT/ScheduledOp.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::planning;

/// What result `number` of `op` goes by; the workspace behind them by the name
/// of the op alone.
static std::string getKey(rt::ScheduledOp op, size_t number, Type type) {
  StringAttr name = op->getAttrOfType<StringAttr>(rt::kNameAttr);
  auto makers = op->getAttrOfType<ArrayAttr>(rt::kMadeByAttr);
  if (type && makers)
    name = dyn_cast<StringAttr>(makers[number]);
  std::string key = name ? name.str() : "";
  return type ? key + " " + std::to_string(getTypeBytes(type)) : key;
}

Places planning::getPlaces(ModuleOp planned) {
  Places places;
  FailureOr<PlannedBytes> bytes = getPlannedBytes(planned);
  auto step = planned.lookupSymbol<func::FuncOp>(nn::kStepFunction);
  if (failed(bytes) || !step)
    return places;
  auto add = [&](std::string key, Value value) {
    auto buffer = value ? value.getDefiningOp<rt::BufferOp>() : rt::BufferOp();
    int64_t place = rt::kNoPlace;
    if (buffer && buffer.getSpace() == rt::Space::Device)
      place = int64_t(buffer.getRoot().getOffset()) - bytes->begin;
    places[key].push_back(std::max(place, rt::kNoPlace));
  };
  for (auto op : step.getBody().front().getOps<rt::ScheduledOp>()) {
    for (auto [number, write] : llvm::enumerate(op.getWrites()))
      add(getKey(op, number, write.getType()), write);
    add(getKey(op, 0, Type()), op.getWorkspaceBuffer());
  }
  return places;
}

void planning::writePlaces(func::FuncOp step, const Places &places) {
  llvm::StringMap<size_t> used;
  auto take = [&](std::string key) {
    auto found = places.find(key);
    size_t number = used[key]++;
    return found != places.end() && number < found->second.size()
               ? found->second[number]
               : rt::kNoPlace;
  };
  for (auto op : step.getBody().front().getOps<rt::ScheduledOp>()) {
    SmallVector<int64_t> own;
    for (auto [number, result] : llvm::enumerate(op->getResults()))
      own.push_back(take(getKey(op, number, result.getType())));
    own.push_back(take(getKey(op, 0, Type())));
    op->setAttr(rt::kPlacesAttr, DenseI64ArrayAttr::get(op.getContext(), own));
  }
}
