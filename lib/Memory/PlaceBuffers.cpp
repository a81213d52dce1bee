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

/// Packs forward in time, and backward if that leaves waste: what is hard to
/// place in one order may be easy in the other.
static solver::PackingResult
packBothWays(const solver::PackingProblem &problem) {
  solver::PackingResult best = solver::pack(problem);
  if (best.solution.peak == best.bound)
    return best;
  solver::PackingProblem mirrored = problem;
  for (solver::PackingItem &item : mirrored.items)
    std::tie(item.lower, item.upper) = std::pair(-item.upper, -item.lower);
  solver::PackingOptions effort;
  effort.workLimit /= 4;
  solver::PackingResult other = solver::pack(mirrored, effort);
  return other.solution.peak < best.solution.peak ? other : best;
}

/// Activations are packed by themselves, and what a step writes of gradients,
/// with nothing in its bytes before, takes what they leave free from there on.
/// Where that needs more than is alive at one time, both are packed together,
/// unless activations are to come first (`rt.activations_first`).
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
  solver::PackingResult packed = packBothWays(problem);
  peak = packed.solution.peak;
  bound = packed.bound;
  if (!step)
    add(Category::WrittenGradients, [&](const Buffer &) { return end + 1; });
  if (std::optional<std::string> fault = solver::check(problem))
    return function.emitError("has no memory plan: ") << *fault;
  solver::PackingResult all =
      solver::packBeside(problem, packed.solution.offsets);
  auto module = function->getParentOfType<ModuleOp>();
  if (all.solution.peak > all.bound &&
      !module->hasAttr(rt::kActivationsFirstAttr))
    if (solver::PackingResult together = packBothWays(problem);
        together.solution.peak < all.solution.peak)
      all = std::move(together);
  for (auto [buffer, offset] : llvm::zip(placed, all.solution.offsets))
    buffer->offset = begin + offset;
  // Sizes count as rounded up to the alignment, the last one's too.
  usedWithin = all.solution.peak;
  used = std::min(peak, usedWithin);
  leastWithin = all.bound;
  return success();
}
