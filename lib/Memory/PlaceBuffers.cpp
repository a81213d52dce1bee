//===- PlaceBuffers.cpp - Where buffers lie ---------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Planner.h"
#include "reprise/Dialect/RT/KnownOffsets.h"
#include "reprise/Memory/WaitingInputs.h"
#include "reprise/Solver/Packing.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace mlir;
using namespace reprise;
using namespace reprise::memory;

//===----------------------------------------------------------------------===//
// All the time
//===----------------------------------------------------------------------===//

/// Whether the device has a place for it for each micro-batch.
static bool isPlacedInBatches(const Buffer &buffer) {
  return buffer.space == Space::Device && buffer.role &&
         memory::isOfMicroBatch(buffer.role.getValue());
}

/// How often the device is launched for a micro-batch.
static int64_t countLaunches(func::FuncOp function) {
  int64_t launches = 0;
  for (Operation &op : function.getBody().front()) {
    if (isa<rt::UpdateOp>(op))
      break;
    launches += isa<rt::ScheduledOp>(op);
  }
  return launches;
}

/// Places what changes from micro-batch to micro-batch, once for each that is
/// on the device at a time, and again for the next ones. Returns their end.
/// A stage has all micro-batches at a time, one behind another.
int64_t Planner::placeBatches(int64_t begin) {
  SmallVector<Buffer *> inputs;
  for (Buffer &buffer : buffers)
    if (isPlacedInBatches(buffer))
      inputs.push_back(&buffer);
  int64_t launches = countLaunches(function);
  if (inputs.empty() || getWaitingBytes(function, launches, /*bytes=*/1) == 0)
    return begin;
  auto getNumber = [](const Buffer *buffer) {
    return buffer->microBatch ? buffer->microBatch.getInt() : 0;
  };
  llvm::stable_sort(inputs, [&](const Buffer *a, const Buffer *b) {
    return getNumber(a) < getNumber(b);
  });
  bool areAll = inputs.front()->microBatch != nullptr;
  int64_t start = begin;
  for (Buffer *buffer : inputs) {
    buffer->offset = begin;
    begin += llvm::alignTo(buffer->bytes, alignment);
  }
  Buffer further;
  further.category = Category::InputsAndOutputs;
  further.role = StringAttr::get(function.getContext(), "batches");
  further.offset = begin;
  further.bytes = areAll ? begin - start
                         : getWaitingBytes(function, launches, begin - start);
  batches = buffers.size();
  buffers.push_back(further);
  return begin + further.bytes;
}

/// What is there all the time: each category is one array.
void Planner::placeFixed(Space space, ArenaSizes &sizes) {
  for (Category category :
       {Category::Parameters, Category::Gradients, Category::OptimizerState,
        Category::InputsAndOutputs}) {
    int64_t start = sizes.begin;
    // Both moments are arrays of their own, as the optimizer walks them.
    auto place = [&](auto &&matches) {
      for (Buffer &buffer : buffers)
        if (buffer.space == space && buffer.category == category &&
            !buffer.isWritten && matches(buffer)) {
          buffer.offset = sizes.begin;
          sizes.begin += llvm::alignTo(buffer.bytes, alignment);
        }
    };
    bool moments = category == Category::OptimizerState;
    if (category == Category::InputsAndOutputs && space == Space::Device)
      sizes.begin = placeBatches(sizes.begin);
    bool isPlaced = category == Category::InputsAndOutputs && batches >= 0;
    place([&](Buffer &buffer) {
      if (isPlaced &&
          (isPlacedInBatches(buffer) || &buffer == &buffers[batches]))
        return false;
      return !moments || buffer.state.getKind() == rt::StateKind::Moment1;
    });
    place([&](Buffer &buffer) {
      return moments && buffer.state.getKind() == rt::StateKind::Moment2;
    });
    sizes.fixed[int(category)] = sizes.begin - start;
  }
}

//===----------------------------------------------------------------------===//
// Within the step
//===----------------------------------------------------------------------===//

/// Elementary steps: half a second. What settling leaves hard seldom gets
/// smaller by more of them, and a budget plans the memory of many programs.
static constexpr int64_t kPackingWork = 200'000'000;

/// Leaves the `buffers` of `problem` at their known offsets and packs the
/// others around them; nothing if known ones are in each other's way.
static std::optional<solver::PackingResult>
packAsKnown(const solver::PackingProblem &problem, ArrayRef<Buffer *> buffers) {
  SmallVector<size_t> order;
  auto isKnown = [&](size_t item) {
    return buffers[item]->known.value_or(rt::kNoOffset) != rt::kNoOffset;
  };
  llvm::append_range(order, llvm::seq<size_t>(0, buffers.size()));
  size_t numKnown = std::stable_partition(order.begin(), order.end(), isKnown) -
                    order.begin();
  solver::PackingProblem ordered;
  ordered.alignment = problem.alignment;
  std::vector<int64_t> known;
  for (size_t item : order) {
    ordered.items.push_back(problem.items[item]);
    if (known.size() < numKnown)
      known.push_back(*buffers[item]->known);
  }
  if (known.empty())
    return std::nullopt;
  solver::PackingResult found = solver::packBeside(ordered, known);
  if (solver::verify(ordered, found.solution))
    return std::nullopt;
  std::vector<int64_t> offsets(order.size());
  for (auto [item, offset] : llvm::zip(order, found.solution.offsets))
    offsets[item] = offset;
  found.solution.offsets = std::move(offsets);
  return found;
}

/// Packs forward in time, and backward if that leaves waste: what is hard to
/// place in one order may be easy in the other. A top that is not above the
/// known offsets is good enough.
static solver::PackingResult packBothWays(const solver::PackingProblem &problem,
                                          ArrayRef<Buffer *> buffers) {
  solver::PackingOptions effort;
  effort.workLimit = kPackingWork;
  std::optional<solver::PackingResult> known = packAsKnown(problem, buffers);
  bool isEnough = known && known->solution.peak == known->bound;
  if (known)
    known->bound = solver::lowerBound(problem);
  if (isEnough)
    return *known;
  solver::PackingResult best = solver::pack(problem, effort);
  int64_t least = best.least;
  if (known && known->solution.peak < best.solution.peak)
    best = *known;
  if (best.solution.peak == least)
    return best;
  solver::PackingProblem mirrored = problem;
  for (solver::PackingItem &item : mirrored.items)
    std::tie(item.lower, item.upper) = std::pair(-item.upper, -item.lower);
  effort.workLimit /= 4;
  solver::PackingResult other = solver::pack(mirrored, effort);
  return other.solution.peak < best.solution.peak ? other : best;
}

/// Activations are packed by themselves, and what a step writes of gradients,
/// with nothing in its bytes before, takes what they leave free from there on.
/// Where that needs more than is alive at one time, both are packed together,
/// unless activations are to come first (`rt.activations_first`).
LogicalResult Planner::placeWithin(Space space, ArenaSizes &sizes) {
  solver::PackingProblem problem;
  problem.alignment = alignment;
  SmallVector<Buffer *> placed;
  auto add = [&](bool areWritten) {
    for (Buffer &buffer : buffers)
      if (buffer.space == space && buffer.isWritten == areWritten &&
          (areWritten || buffer.category == Category::Activations)) {
        int64_t upper = areWritten ? end + 1 : buffer.lastUse + 1;
        problem.items.push_back({"", buffer.firstUse, upper, buffer.bytes});
        placed.push_back(&buffer);
      }
  };
  add(/*areWritten=*/false);
  if (std::optional<std::string> fault = solver::check(problem))
    return function.emitError("has no memory plan: ") << *fault;
  solver::PackingResult packed = packBothWays(problem, placed);
  if (!step)
    add(/*areWritten=*/true);
  if (std::optional<std::string> fault = solver::check(problem))
    return function.emitError("has no memory plan: ") << *fault;
  solver::PackingResult all =
      solver::packBeside(problem, packed.solution.offsets);
  auto module = function->getParentOfType<ModuleOp>();
  if (all.solution.peak > all.bound &&
      !module->hasAttr(rt::kActivationsFirstAttr))
    if (solver::PackingResult together = packBothWays(problem, placed);
        together.solution.peak < all.solution.peak)
      all = std::move(together);
  for (auto [buffer, offset] : llvm::zip(placed, all.solution.offsets))
    buffer->offset = sizes.begin + offset;
  // Sizes count as rounded up to the alignment, the last one's too.
  sizes.usedWithin = all.solution.peak;
  sizes.peak = std::min(packed.solution.peak, sizes.usedWithin);
  sizes.bound = packed.bound;
  sizes.leastWithin = all.bound;
  return success();
}

SmallVector<Space> Planner::getSpaces() const {
  SmallVector<Space> spaces = {Space::Device};
  for (const Buffer &buffer : buffers)
    if (!llvm::is_contained(spaces, buffer.space))
      spaces.push_back(buffer.space);
  llvm::sort(spaces);
  return spaces;
}

ArenaSizes Planner::getSizes(Space space) const {
  auto found = arenas.find(space);
  return found == arenas.end() ? ArenaSizes() : found->second;
}

/// Each space is a problem of its own.
LogicalResult Planner::place() {
  for (Space space : getSpaces()) {
    ArenaSizes &sizes = arenas[space];
    if (step)
      sizes.begin = step->getSizes(space).begin;
    else
      placeFixed(space, sizes);
    if (failed(placeWithin(space, sizes)))
      return failure();
  }
  return success();
}

static bool isWithin(const Buffer &buffer) {
  return buffer.isWritten || buffer.category == Category::Activations;
}

SmallVector<int64_t> Planner::getLive(Space space) const {
  SmallVector<int64_t> live(2 * end + 4);
  for (const Buffer &buffer : buffers) {
    if (buffer.space != space || !isWithin(buffer))
      continue;
    int64_t bytes = llvm::alignTo(buffer.bytes, alignment);
    live[2 * buffer.firstUse + 1] += bytes;
    live[2 * (buffer.isWritten ? end : buffer.lastUse) + 2] -= bytes;
  }
  for (size_t slot = 1; slot < live.size(); ++slot)
    live[slot] += live[slot - 1];
  live.pop_back();
  return live;
}

int64_t Planner::getBytesWithin(Value value) const {
  const Buffer &buffer = buffers[bufferOf.lookup(value)];
  bool isCounted = buffer.space == Space::Device && isWithin(buffer);
  return isCounted ? llvm::alignTo(buffer.bytes, alignment) : 0;
}
