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

static Operation *createPart(rt::CollectiveOp sums, ArrayRef<unsigned> part) {
  OpBuilder builder(sums);
  SmallVector<Value> inputs;
  for (unsigned number : part)
    inputs.push_back(sums.getInputs()[number]);
  auto created = rt::CollectiveOp::create(
      builder, sums.getLoc(), ValueRange(inputs).getTypes(), sums.getKindAttr(),
      inputs, /*outputs=*/ValueRange(), /*workspace=*/Value(),
      sums.getAxisAttr(), sums.getRanksAttr(), sums.getDimAttr(),
      sums.getMembersAttr());
  created->setDiscardableAttrs(sums->getDiscardableAttrDictionary());
  created->removeDiscardableAttr(rt::kKnownOffsetsAttr);
  for (auto [number, result] : llvm::zip(part, created.getResults()))
    sums.getResults()[number].replaceAllUsesWith(result);
  return created;
}

SmallVector<Operation *> memory::splitSums(ArrayRef<Operation *> exchanges,
                                           Operation *update) {
  SmallVector<Operation *> all;
  for (Operation *op : exchanges) {
    auto sums = dyn_cast<rt::CollectiveOp>(op);
    if (!sums || !sums.isInPlace() || !update->isBeforeInBlock(op) ||
        !llvm::any_of(sums.getInputs(),
                      [&](Value input) { return isReady(input, update); })) {
      all.push_back(op);
      continue;
    }
    for (ArrayRef<unsigned> part : getParts(sums, update))
      if (!part.empty())
        all.push_back(createPart(sums, part));
    sums.erase();
  }
  return all;
}
