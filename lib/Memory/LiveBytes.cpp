//===- LiveBytes.cpp - What is alive while ops move -----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LiveBytes.h"
#include "Planner.h"
#include "reprise/Dialect/RT/RTWaitOp.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"
#include <map>

using namespace mlir;
using namespace reprise;
using namespace reprise::memory;

SmallVector<OpOperand *> memory::getUsesOfBytes(Value value) {
  llvm::SmallSetVector<Value, 8> values;
  values.insert(value);
  SmallVector<OpOperand *> uses;
  for (size_t i = 0; i < values.size(); ++i) {
    Value own = values[i];
    if (auto view = own.getDefiningOp<rt::ViewOp>())
      values.insert(view.getInput());
    if (auto join = own.getDefiningOp<rt::JoinOp>())
      values.insert(join.getParts().begin(), join.getParts().end());
    for (OpOperand &use : own.getUses()) {
      if (isa<rt::ViewOp, rt::JoinOp>(use.getOwner()))
        values.insert(use.getOwner()->getResult(0));
      else
        uses.push_back(&use);
    }
  }
  return uses;
}

LogicalResult LiveBytes::read(const SymbolTable &symbols, func::FuncOp step,
                              int64_t alignmentOfStep) {
  alignment = alignmentOfStep;
  Planner planner(symbols, step, alignment, /*step=*/nullptr);
  if (failed(planner.assign()))
    return failure();
  live = planner.getLive(rt::Space::Device);
  most = *llvm::max_element(live);
  Block &block = step.getBody().front();
  for (auto [position, op] : llvm::enumerate(block)) {
    slots[&op] = 2 * int64_t(position) + 1;
    for (Value result : op.getResults())
      bytesOf[result] = planner.getBytesWithin(result);
  }
  readWorkspaces(block);
  return success();
}

int64_t LiveBytes::getWorkspace(rt::ScheduledOp op) const {
  return llvm::alignTo(op.getWorkspaceBytes(), alignment);
}

/// Adds one that becomes one with those that it meets.
void LiveBytes::addWorkspace(SmallVector<Held> &spaces, Held held) {
  llvm::erase_if(spaces, [&](Held other) {
    if (other.first > held.last || held.first > other.last)
      return false;
    held = {std::min(held.first, other.first), std::max(held.last, other.last),
            std::max(held.bytes, other.bytes)};
    return true;
  });
  spaces.push_back(held);
}

/// Of what is begun already, as the planner has them.
void LiveBytes::readWorkspaces(Block &block) {
  std::map<int64_t, rt::ScheduledOp> underWay;
  for (auto op : block.getOps<rt::ScheduledOp>()) {
    if (std::optional<int64_t> number = rt::getBegun(op))
      underWay[*number] = op;
    auto wait = dyn_cast<rt::WaitOp>(op.getOperation());
    auto begun = wait ? underWay.find(wait.getNumber()) : underWay.end();
    if (begun == underWay.end())
      continue;
    if (int64_t bytes = getWorkspace(begun->second))
      addWorkspace(workspaces,
                   {slots.lookup(begun->second), slots.lookup(op), bytes});
  }
}

/// Between two ops there is one slot for all that is put there.
int64_t LiveBytes::getBegin(const BegunOp &begun) const {
  return begun.after ? llvm::alignTo(slots.lookup(begun.after), 2) : 0;
}
int64_t LiveBytes::getEnd(const BegunOp &begun) const {
  return llvm::alignDown(slots.lookup(begun.before), 2);
}

/// Without the workspace up to the wait: results from where it begins, and
/// operands up to there.
SmallVector<LiveBytes::Held> LiveBytes::getChanges(const BegunOp &begun) const {
  rt::ScheduledOp op = begun.op;
  int64_t begin = getBegin(begun), own = slots.lookup(op), end = getEnd(begun);
  SmallVector<Held> changes;
  if (int64_t bytes = getWorkspace(op); !begun.isPart)
    changes.push_back({own, own, -bytes});
  for (Value read : begun.kept) {
    int64_t last = own;
    for (OpOperand *use : getUsesOfBytes(read))
      last = std::max(last, slots.lookup(use->getOwner()));
    changes.push_back({last + 1, end, bytesOf.lookup(read)});
  }
  llvm::BitVector isInPlace(op->getNumResults());
  for (rt::Sharing pair : begun.overwrites)
    isInPlace.set(pair.write);
  for (OpResult result : op->getResults())
    if (!isInPlace[result.getResultNumber()])
      changes.push_back({begin, own - 1, bytesOf.lookup(result)});
  return changes;
}

bool LiveBytes::hold(const BegunOp &begun) {
  SmallVector<Held> changes = getChanges(begun), spaces = workspaces;
  if (int64_t bytes = getWorkspace(begun.op)) {
    for (Held space : workspaces)
      changes.push_back({space.first, space.last, -space.bytes});
    addWorkspace(spaces, {getBegin(begun), getEnd(begun), bytes});
    llvm::append_range(changes, spaces);
  }
  if (!change(changes))
    return false;
  workspaces = std::move(spaces);
  return true;
}

/// Makes changes, unless more bytes are alive then.
bool LiveBytes::change(ArrayRef<Held> changes) {
  SmallVector<int64_t> changed = live;
  for (Held one : changes)
    for (int64_t slot = one.first; slot <= one.last; ++slot)
      changed[slot] += one.bytes;
  if (*llvm::max_element(changed) > most)
    return false;
  live = std::move(changed);
  return true;
}

/// Results are there earlier, and what nobody else reads later ends there.
bool LiveBytes::moveUp(rt::ScheduledOp op, Operation *before,
                       ArrayRef<rt::Sharing> overwrites) {
  const int64_t own = slots.lookup(op);
  const int64_t place = llvm::alignDown(slots.lookup(before), 2);
  SmallVector<Held> changes;
  if (int64_t bytes = getWorkspace(op)) {
    changes.push_back({own, own, -bytes});
    changes.push_back({place, place, bytes});
  }
  llvm::BitVector isInPlace(op->getNumResults());
  for (rt::Sharing pair : overwrites)
    isInPlace.set(pair.write);
  for (OpResult result : op->getResults())
    if (!isInPlace[result.getResultNumber()])
      changes.push_back({place, own - 1, bytesOf.lookup(result)});
  if (!change(changes))
    return false;
  slots[op] = place;
  return true;
}

void LiveBytes::place(const BegunOp &begun, Operation *wait) {
  slots[begun.op] = getBegin(begun);
  slots[wait] = getEnd(begun);
  addResults(wait);
}

void LiveBytes::add(Operation *op, Operation *other) {
  slots[op] = slots.lookup(other);
  addResults(op);
}

/// Of an op that makes each of its results in place of an operand.
void LiveBytes::addResults(Operation *op) {
  for (auto [result, operand] : llvm::zip(op->getResults(), op->getOperands()))
    bytesOf[result] = bytesOf.lookup(operand);
}
