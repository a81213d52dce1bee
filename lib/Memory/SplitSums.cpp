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

/// The terms of sum `number` of `sums`, the last of which has its bytes.
static SmallVector<Value> getTerms(rt::CollectiveOp sums, unsigned number) {
  SmallVector<Value> terms;
  for (; number < sums.getInputs().size(); number += sums.getNumResults())
    terms.push_back(sums.getInputs()[number]);
  return terms;
}

/// Whether sum `number` can be begun above `update`: its last term is made
/// there, and what was put aside of others is there.
static bool isReady(rt::CollectiveOp sums, unsigned number, Operation *update) {
  SmallVector<Value> terms = getTerms(sums, number);
  return isReady(terms.back(), update) && llvm::all_of(terms, [&](Value term) {
           return !term.getDefiningOp() || isReady(term, update);
         });
}

/// Sums of `sums` in parts, by their numbers; the last part, which may be
/// empty, has what is not there above `update`.
static SmallVector<SmallVector<unsigned>> getParts(rt::CollectiveOp sums,
                                                   Operation *update) {
  SmallVector<unsigned> ready, late;
  int64_t bytes = 0;
  for (auto [number, type] : llvm::enumerate(sums.getResultTypes())) {
    if (!isReady(sums, number, update)) {
      late.push_back(number);
      continue;
    }
    ready.push_back(number);
    bytes += getTypeBytes(type);
  }
  llvm::stable_sort(ready, [&](unsigned left, unsigned right) {
    Operation *first = getTerms(sums, left).back().getDefiningOp();
    Operation *second = getTerms(sums, right).back().getDefiningOp();
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
    room -= getTypeBytes(sums.getResultTypes()[number]);
  }
  parts.push_back(std::move(late));
  return parts;
}

/// Sums like `like`, where that stands, of `terms`, those of one sum after
/// another.
static rt::CollectiveOp createSum(rt::CollectiveOp like,
                                  ArrayRef<SmallVector<Value>> terms) {
  OpBuilder builder(like);
  SmallVector<Value> inputs;
  SmallVector<Type> types;
  for (size_t term = 0; term < terms.front().size(); ++term)
    for (ArrayRef<Value> sum : terms)
      inputs.push_back(sum[term]);
  for (ArrayRef<Value> sum : terms)
    types.push_back(sum.back().getType());
  auto created = rt::CollectiveOp::create(
      builder, like.getLoc(), types, like.getKindAttr(), inputs,
      /*outputs=*/ValueRange(), /*workspace=*/Value(), like.getAxisAttr(),
      like.getRanksAttr(), like.getDimAttr(), like.getMembersAttr());
  created->setDiscardableAttrs(like->getDiscardableAttrDictionary());
  created->removeDiscardableAttr(rt::kKnownOffsetsAttr);
  return created;
}

bool memory::isSumToSplit(rt::CollectiveOp op, Operation *update) {
  return op.isInPlace() && update->isBeforeInBlock(op) &&
         llvm::any_of(llvm::seq<unsigned>(0, op.getNumResults()),
                      [&](unsigned sum) { return isReady(op, sum, update); });
}

SmallVector<SumPart> memory::splitSum(rt::CollectiveOp sums,
                                      Operation *update) {
  SmallVector<SumPart> parts;
  for (SmallVector<unsigned> &numbers : getParts(sums, update)) {
    if (numbers.empty())
      continue;
    rt::CollectiveOp part =
        createSum(sums, llvm::map_to_vector(numbers, [&](unsigned number) {
                    return getTerms(sums, number);
                  }));
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
  rt::CollectiveOp joined =
      createSum(parts.back().op, llvm::map_to_vector(results, [](auto &one) {
                  return getTerms(cast<rt::CollectiveOp>(one.second.getOwner()),
                                  one.second.getResultNumber());
                }));
  for (auto [from, to] : llvm::zip(results, joined.getResults()))
    from.second.replaceAllUsesWith(to);
  for (const SumPart &part : parts)
    part.op->erase();
  return joined;
}
