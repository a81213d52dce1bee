//===- GroupSums.cpp - Sums over ranks that have groups -------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Dialect/RT/GroupSums.h"
#include "reprise/Support/Runs.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::rt;

int64_t rt::getGroups(CollectiveOp op) {
  auto groups = op->getAttrOfType<IntegerAttr>(kGroupsAttr);
  return groups ? groups.getInt() : 1;
}

ValueRange rt::getMade(CollectiveOp op) {
  return op.getNumResults() ? ValueRange(op.getResults())
                            : ValueRange(op.getOutputs());
}

int64_t rt::getNumTerms(CollectiveOp op) {
  size_t made = getMade(op).size();
  return op.isInPlace() && made != 0
             ? std::max<int64_t>(1, op.getInputs().size() / made)
             : 1;
}

LogicalResult rt::verifyTerms(CollectiveOp op) {
  ValueRange made = getMade(op);
  size_t terms = getNumRuns(getGroups(op));
  if (size_t wanted = terms * made.size(); op.getInputs().size() != wanted)
    return op.emitOpError("needs ")
           << wanted << (wanted == 1 ? " input, " : " inputs, ") << terms
           << (terms == 1 ? " term" : " terms") << " of each of " << made.size()
           << (made.size() == 1 ? " sum" : " sums") << ", but got "
           << op.getInputs().size();
  TypeRange types = op.getInputs().getTypes();
  for (size_t number = made.size(); number < types.size(); ++number)
    if (Type first = types[number % made.size()]; types[number] != first)
      return op.emitOpError("needs terms of one type, but got ")
             << first << " and " << types[number];
  return success();
}

LogicalResult rt::verifyGroups(Operation *op, StringRef name, Attribute value) {
  constexpr int64_t kMost = 1 << 20; // Times ranks they are a number, too.
  auto sum = dyn_cast<CollectiveOp>(op);
  auto groups = dyn_cast<IntegerAttr>(value);
  if (sum && sum.isInPlace() && groups &&
      groups.getType().isSignlessInteger(64) && groups.getInt() >= 1 &&
      groups.getInt() <= kMost)
    return success();
  return op->emitOpError("needs '")
         << name << "' of 1 to " << kMost << ", of type i64, on an all_reduce "
         << "or reduce_shares, but got " << value;
}
