//===- MemoryProfile.cpp - What is alive, when ------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Report/MemoryProfile.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Dialect/RT/RTWaitOp.h"
#include "reprise/Dialect/RT/ScheduledOp.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Interfaces/CostModel.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::report;

Interval MemoryProfile::Accesses::getLongestGap() const {
  Interval longest = {0, -1, bytes};
  for (size_t i = 1; i < positions.size(); ++i) {
    Interval gap = {positions[i - 1] + 1, positions[i] - 1, bytes};
    if (gap.last - gap.first > longest.last - longest.first)
      longest = gap;
  }
  return longest;
}

/// Adds the bytes of `interval`, `sign` times, to the changes from position to
/// position.
static void addChange(std::vector<int64_t> &changes, Interval interval,
                      int64_t sign) {
  if (interval.last < interval.first)
    return;
  changes[interval.first] += sign * interval.bytes;
  changes[interval.last + 1] -= sign * interval.bytes;
}

StringRef report::stringifyRole(Role role) {
  constexpr StringLiteral names[kNumRoles] = {"kept for backward",
                                              "within the forward pass",
                                              "replayed",
                                              "within the backward pass",
                                              "within the update",
                                              "workspace of GEMMs",
                                              "gradients of parameters"};
  return names[size_t(role)];
}

static Position readPosition(rt::ScheduledOp op, bool isUpdate,
                             SymbolTable &symbols) {
  Position position;
  auto name = op->getAttrOfType<StringAttr>(rt::kNameAttr);
  position.name = name ? name.str() : op->getName().getStringRef().str();
  position.load = op.getWorkload(symbols);
  position.begins = rt::getBegun(op).value_or(-1);
  position.isOnce = op->hasAttr(rt::kOnceAttr);
  if (auto wait = dyn_cast<rt::WaitOp>(op.getOperation()))
    position.waits = wait.getNumber();
  // A schedule has no mark where backward begins but the names of its ops.
  if (isUpdate)
    position.phase = Phase::Update;
  else if (op->hasAttr(remat::kReplayAttr))
    position.phase = Phase::Replay;
  else if (StringRef(position.name).contains(".backward"))
    position.phase = Phase::Backward;
  else
    position.phase = Phase::Forward;
  return position;
}

static Role getRole(Phase writer, Phase lastReader) {
  switch (writer) {
  case Phase::Forward:
    return lastReader == Phase::Forward ? Role::Forward : Role::Kept;
  case Phase::Replay:
    return Role::Replayed;
  case Phase::Backward:
    return Role::Gradient;
  case Phase::Update:
    return Role::Update;
  }
  llvm_unreachable("unknown phase");
}

/// The names of the ops that make what `op` writes.
static std::vector<std::string> getMakers(rt::ScheduledOp op, StringRef name) {
  auto names = op->getAttrOfType<ArrayAttr>(rt::kMadeByAttr);
  if (!names)
    return std::vector<std::string>(op.getWrites().size(), name.str());
  std::vector<std::string> makers;
  for (StringRef maker : names.getAsValueRange<StringAttr>())
    makers.push_back(maker.str());
  return makers;
}

/// The planned buffer that `value` is, or is part of; null if it is none.
static Operation *getRoot(Value value) {
  auto buffer = value.getDefiningOp<rt::BufferOp>();
  return buffer ? buffer.getRoot().getOperation() : nullptr;
}

namespace {
/// A buffer of the schedule.
struct UsedBuffer : MemoryProfile::Accesses {
  std::optional<unsigned> output; // Of its writer; a workspace is none.
};
} // namespace

/// By their ops.
using UsedBuffers = llvm::MapVector<Operation *, UsedBuffer>;

/// Notes what the op at `position` reads and writes.
static void addAccesses(rt::ScheduledOp op, int64_t position,
                        UsedBuffers &buffers) {
  for (Value operand : op->getOperands())
    if (Operation *root = getRoot(operand)) {
      UsedBuffer &buffer = buffers[root];
      buffer.bytes = getTypeBytes(root->getResult(0).getType());
      if (buffer.positions.empty() || buffer.positions.back() != position)
        buffer.positions.push_back(position);
    }
  for (auto [number, value] : llvm::enumerate(op.getWrites()))
    if (Operation *root = getRoot(value))
      buffers[root].output = number;
}

/// What lies in the arena from `begin` on, each from its first access to its
/// last.
static std::vector<report::Block> listBlocks(const UsedBuffers &buffers,
                                             ArrayRef<Position> positions,
                                             int64_t begin) {
  std::vector<report::Block> blocks;
  // Values that take turns in the same bytes meet in one position: the op that
  // reads the one and writes the other in its place.
  llvm::DenseMap<int64_t, int64_t> lastAt;
  for (auto &[op, used] : buffers) {
    auto buffer = cast<rt::BufferOp>(op);
    int64_t offset = buffer.getOffset();
    if (offset < begin || buffer.getSpace() != rt::Space::Device)
      continue;
    int64_t writer = used.positions.front();
    int64_t reader = used.positions.back();
    // Gradients that the step makes stay to its end.
    bool isWritten = op->hasAttr(rt::kStateAttr);
    if (isWritten)
      reader = positions.size() - 1;
    auto [last, isNew] = lastAt.try_emplace(offset, writer - 1);
    int64_t first = std::max(writer, last->second + 1);
    last->second = std::max(last->second, reader);
    if (reader < first)
      continue;
    Role role = isWritten ? Role::Written
                : !used.output
                    ? Role::Workspace
                    : getRole(positions[writer].phase, positions[reader].phase);
    blocks.push_back({offset, used.bytes, first, reader, role, writer,
                      used.output.value_or(0)});
  }
  return blocks;
}

MemoryProfile::MemoryProfile(func::FuncOp step, int64_t begin) {
  UsedBuffers buffers;
  std::vector<rt::ScheduledOp> schedule;
  SymbolTable symbols(step->getParentOp());
  isBeside = step->getParentOp()->hasAttr(rt::kGemmWorkspaceAttr);
  bool isUpdate = false;
  for (Operation &op : step.getBody().front()) {
    isUpdate |= isa<rt::UpdateOp>(op);
    auto scheduled = dyn_cast<rt::ScheduledOp>(op);
    if (!scheduled)
      continue;
    addAccesses(scheduled, positions.size(), buffers);
    positions.push_back(readPosition(scheduled, isUpdate, symbols));
    positions.back().makers = getMakers(scheduled, positions.back().name);
    schedule.push_back(scheduled);
  }

  blocks = listBlocks(buffers, positions, begin);
  std::vector<int64_t> changes(positions.size() + 1);
  for (const report::Block &block : blocks)
    addChange(changes, {block.first, block.last, block.bytes}, 1);
  int64_t bytes = 0;
  for (size_t position = 0; position < positions.size(); ++position) {
    bytes += changes[position];
    live.push_back(bytes);
    if (bytes > peak) {
      peak = bytes;
      peakPosition = position;
    }
  }

  // Of launches of one name, the outputs of the first are meant.
  for (auto [index, op] : llvm::enumerate(schedule))
    for (auto [value, maker] :
         llvm::zip(op.getWrites(), positions[index].makers)) {
      std::vector<int64_t> &named = launches[maker];
      if (named.empty() || named.back() != int64_t(index))
        named.push_back(index);
      if (named.size() == 1)
        outputs[maker].push_back(buffers.lookup(getRoot(value)));
    }
}

ArrayRef<MemoryProfile::Accesses>
MemoryProfile::getOutputs(StringRef op) const {
  auto found = outputs.find(op);
  if (found == outputs.end())
    return {};
  return found->second;
}

ArrayRef<int64_t> MemoryProfile::getLaunches(StringRef op) const {
  auto found = launches.find(op);
  if (found == launches.end())
    return {};
  return found->second;
}

void MemoryProfile::Change::append(const Change &other) {
  llvm::append_range(added, other.added);
  llvm::append_range(removed, other.removed);
  llvm::append_range(skipped, other.skipped);
}

int64_t MemoryProfile::getMost(Role role) const {
  std::vector<int64_t> changes(live.size() + 1);
  for (const Block &block : blocks)
    if (block.role == role) {
      changes[block.first] += block.bytes;
      changes[block.last + 1] -= block.bytes;
    }
  int64_t most = 0, bytes = 0;
  for (int64_t change : changes)
    most = std::max(most, bytes += change);
  return most;
}

int64_t MemoryProfile::getPeakChange(const Change &change) const {
  std::vector<int64_t> changes(live.size() + 1);
  for (Interval interval : change.added)
    addChange(changes, interval, 1);
  for (Interval interval : change.removed)
    addChange(changes, interval, -1);
  std::vector<bool> isSkipped(live.size());
  for (int64_t position : change.skipped)
    isSkipped[position] = true;
  int64_t changed = 0, difference = 0;
  for (size_t position = 0; position < live.size(); ++position) {
    difference += changes[position];
    if (!isSkipped[position])
      changed = std::max(changed, live[position] + difference);
  }
  return changed - peak;
}
