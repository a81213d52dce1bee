//===- PlaceBuffers.cpp - Where buffers lie ---------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Planner.h"
#include "reprise/Memory/WaitingInputs.h"
#include "reprise/Solver/Packing.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::memory;

//===----------------------------------------------------------------------===//
// All the time
//===----------------------------------------------------------------------===//

static bool isInputOfMicroBatch(const Buffer &buffer) {
  return buffer.role && memory::isOfMicroBatch(buffer.role.getValue());
}

/// How often the device is launched for a micro-batch.
static int64_t countLaunches(func::FuncOp function) {
  int64_t launches = 0;
  for (Operation &op : function.getBody().front()) {
    if (isa<rt::UpdateOp>(op))
      break;
    launches += isa<rt::LaunchOp, rt::GemmOp>(op);
  }
  return launches;
}

/// Places what changes from micro-batch to micro-batch, once for each that is
/// on the device at a time, and again for the next ones.
void Planner::placeBatches() {
  if (llvm::none_of(buffers, isInputOfMicroBatch) ||
      getWaitingBytes(function, countLaunches(function), /*bytes=*/1) == 0)
    return;
  int64_t start = begin;
  for (Buffer &buffer : buffers)
    if (isInputOfMicroBatch(buffer)) {
      buffer.offset = begin;
      begin += llvm::alignTo(buffer.bytes, alignment);
    }
  Buffer further;
  further.category = Category::Inputs;
  further.role = StringAttr::get(function.getContext(), "batches");
  further.offset = begin;
  further.bytes =
      getWaitingBytes(function, countLaunches(function), begin - start);
  begin += further.bytes;
  batches = buffers.size();
  buffers.push_back(further);
}

/// What is there all the time: each category is one array.
void Planner::placeFixed() {
  for (Category category : {Category::Parameters, Category::Gradients,
                            Category::Optimizer, Category::Inputs}) {
    int64_t start = begin;
    // Both moments are arrays of their own, as the optimizer walks them.
    auto place = [&](auto &&matches) {
      for (Buffer &buffer : buffers)
        if (buffer.category == category && matches(buffer)) {
          buffer.offset = begin;
          begin += llvm::alignTo(buffer.bytes, alignment);
        }
    };
    bool moments = category == Category::Optimizer;
    if (category == Category::Inputs)
      placeBatches();
    bool isPlaced = category == Category::Inputs && batches >= 0;
    place([&](Buffer &buffer) {
      if (isPlaced &&
          (isInputOfMicroBatch(buffer) || &buffer == &buffers[batches]))
        return false;
      return !moments || buffer.state.getKind() == rt::StateKind::Moment1;
    });
    place([&](Buffer &buffer) {
      return moments && buffer.state.getKind() == rt::StateKind::Moment2;
    });
    categoryBytes[int(category)] = begin - start;
  }
}

//===----------------------------------------------------------------------===//
// Within the step
//===----------------------------------------------------------------------===//

/// Activations are packed by themselves. What a step writes of gradients, with
/// nothing in its bytes before, then takes what they leave free from there on.
LogicalResult Planner::place() {
  if (step)
    begin = step->begin;
  else
    placeFixed();
  solver::PackingProblem problem;
  problem.alignment = alignment;
  SmallVector<Buffer *> placed;
  auto add = [&](Category category, auto getUpper) {
    for (Buffer &buffer : buffers)
      if (buffer.category == category) {
        problem.items.push_back(
            {"", buffer.firstUse, getUpper(buffer), buffer.bytes});
        placed.push_back(&buffer);
      }
  };
  add(Category::Activations,
      [](const Buffer &buffer) { return buffer.lastUse + 1; });
  if (std::optional<std::string> fault = solver::check(problem))
    return function.emitError("has no memory plan: ") << *fault;
  solver::PackingResult packed = solver::pack(problem);
  peak = packed.solution.peak;
  bound = packed.bound;
  size_t numActivations = placed.size();
  if (!step)
    add(Category::WrittenGradients, [&](const Buffer &) { return end + 1; });
  if (std::optional<std::string> fault = solver::check(problem))
    return function.emitError("has no memory plan: ") << *fault;
  solver::PackingResult all =
      solver::packBeside(problem, packed.solution.offsets);
  // The arena ends with the last byte in use, not with its padding.
  for (auto [number, buffer] : llvm::enumerate(placed)) {
    int64_t offset = all.solution.offsets[number];
    buffer->offset = begin + offset;
    usedWithin = std::max(usedWithin, offset + buffer->bytes);
    if (number < numActivations)
      used = usedWithin;
  }
  leastWithin = usedWithin - (all.solution.peak - all.bound);
  return success();
}
