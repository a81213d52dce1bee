//===- SplitSums.cpp - Sums over ranks in parts ---------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SplitSums.h"
#include "reprise/Dialect/RT/KnownOffsets.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Dialect/RT/ScheduledOp.h"
#include "reprise/Interfaces/CostModel.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::memory;

/// Parts of equal bytes: what is left to wait for behind the backward pass is
/// the last of them, and each is a message more.
static constexpr int64_t kParts = 16;

/// Whether `value` is made above `update`, by something that is run.
static bool isReady(Value value, Operation *update) {
  Operation *maker = value.getDefiningOp();
  return isa_and_present<rt::ScheduledOp>(maker) &&
         maker->isBeforeInBlock(update);
}

/// The inputs of `sums` in parts, by their numbers; the last part, which may be
/// empty, has what is not there above `update`.
static SmallVector<SmallVector<unsigned>> getParts(rt::CollectiveOp sums,
                                                   Operation *update) {
  SmallVector<unsigned> ready, late;
  int64_t bytes = 0;
  for (auto [number, input] : llvm::enumerate(sums.getInputs())) {
    if (!isReady(input, update)) {
      late.push_back(number);
      continue;
    }
    ready.push_back(number);
    bytes += getTypeBytes(input.getType());
  }
  llvm::stable_sort(ready, [&](unsigned left, unsigned right) {
    Operation *first = sums.getInputs()[left].getDefiningOp();
    Operation *second = sums.getInputs()[right].getDefiningOp();
    return first != second && first->isBeforeInBlock(second);
  });
  SmallVector<SmallVector<unsigned>> parts;
  const int64_t most = llvm::divideCeil(bytes, kParts);
  int64_t room = 0;
  for (unsigned number : ready) {
    if (room <= 0) {
      parts.emplace_back();
      room = most;
    }
    parts.back().push_back(number);
    room -= getTypeBytes(sums.getInputs()[number].getType());
  }
  parts.push_back(std::move(late));
  return parts;
}

/// A sum like `like`, where that stands.
static rt::CollectiveOp createSum(rt::CollectiveOp like, ValueRange inputs) {
  OpBuilder builder(like);
  auto created = rt::CollectiveOp::create(
      builder, like.getLoc(), inputs.getTypes(), like.getKindAttr(), inputs,
      /*outputs=*/ValueRange(), /*workspace=*/Value(), like.getAxisAttr(),
      like.getRanksAttr(), like.getDimAttr(), like.getMembersAttr());
  created->setDiscardableAttrs(like->getDiscardableAttrDictionary());
  created->removeDiscardableAttr(rt::kKnownOffsetsAttr);
  return created;
}

bool memory::isSumToSplit(rt::CollectiveOp op, Operation *update) {
  return op.isInPlace() && update->isBeforeInBlock(op) &&
         llvm::any_of(op.getInputs(),
                      [&](Value input) { return isReady(input, update); });
}

SmallVector<SumPart> memory::splitSum(rt::CollectiveOp sums,
                                      Operation *update) {
  SmallVector<SumPart> parts;
  for (SmallVector<unsigned> &numbers : getParts(sums, update)) {
    if (numbers.empty())
      continue;
    auto inputs = llvm::map_to_vector(
        numbers, [&](unsigned number) { return sums.getInputs()[number]; });
    rt::CollectiveOp part = createSum(sums, inputs);
    for (auto [number, result] : llvm::zip(numbers, part.getResults()))
      sums.getResults()[number].replaceAllUsesWith(result);
    parts.push_back({part, std::move(numbers)});
  }
  return parts;
}

rt::CollectiveOp memory::joinSums(ArrayRef<SumPart> parts) {
  SmallVector<std::pair<unsigned, OpResult>> results; // by their numbers
  for (const SumPart &part : parts)
    for (auto [number, result] : llvm::zip(part.numbers, part.op->getResults()))
      results.push_back({number, result});
  llvm::sort(results, llvm::less_first());
  auto inputs = llvm::map_to_vector(results, [](auto &one) {
    return one.second.getOwner()->getOperand(one.second.getResultNumber());
  });
  rt::CollectiveOp joined = createSum(parts.back().op, inputs);
  for (auto [from, to] : llvm::zip(results, joined.getResults()))
    from.second.replaceAllUsesWith(to);
  for (const SumPart &part : parts)
    part.op->erase();
  return joined;
}
