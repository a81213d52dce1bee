//===- MemoryProfile.cpp - What is alive, when ------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Report/MemoryProfile.h"
#include "reprise/Dialect/RT/RTOps.h"
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

MemoryProfile::MemoryProfile(func::FuncOp step, int64_t begin) {
  llvm::MapVector<Operation *, Accesses> buffers;
  for (Operation &op : step.getBody().front()) {
    if (!isa<rt::LaunchOp, rt::GemmOp>(op))
      continue;
    int64_t position = names.size();
    auto name = op.getAttrOfType<StringAttr>(rt::kNameAttr);
    names.push_back(name ? name.str() : op.getName().getStringRef().str());
    for (Value operand : op.getOperands())
      if (auto buffer = operand.getDefiningOp<rt::BufferOp>()) {
        Accesses &accesses = buffers[buffer];
        accesses.bytes = getTypeBytes(buffer.getType());
        if (accesses.positions.empty() || accesses.positions.back() != position)
          accesses.positions.push_back(position);
      }
  }

  std::vector<int64_t> changes(names.size() + 1);
  // Values that take turns in the same bytes meet in one position: the op that
  // reads the one and writes the other in its place.
  llvm::DenseMap<int64_t, int64_t> lastAt;
  for (auto &[op, accesses] : buffers) {
    int64_t offset = cast<rt::BufferOp>(op).getOffset();
    if (offset < begin)
      continue;
    int64_t first = accesses.positions.front();
    auto [last, isNew] = lastAt.try_emplace(offset, first - 1);
    first = std::max(first, last->second + 1);
    last->second = std::max(last->second, accesses.positions.back());
    addChange(changes, {first, accesses.positions.back(), accesses.bytes}, 1);
  }
  int64_t bytes = 0;
  for (size_t position = 0; position < names.size(); ++position) {
    bytes += changes[position];
    live.push_back(bytes);
    if (bytes > peak) {
      peak = bytes;
      peakPosition = position;
    }
  }

  int64_t position = 0;
  for (Operation &op : step.getBody().front()) {
    SmallVector<Value> written;
    if (auto launch = dyn_cast<rt::LaunchOp>(op))
      llvm::append_range(written, launch.getOutputs());
    else if (auto gemm = dyn_cast<rt::GemmOp>(op))
      written.push_back(gemm.getOutput());
    else
      continue;
    std::vector<Accesses> &named = outputs[names[position++]];
    if (named.empty())
      for (Value value : written)
        named.push_back(buffers.lookup(value.getDefiningOp()));
  }
}

ArrayRef<MemoryProfile::Accesses>
MemoryProfile::getOutputs(StringRef launch) const {
  auto found = outputs.find(launch);
  if (found == outputs.end())
    return {};
  return found->second;
}

void MemoryProfile::Change::append(const Change &other) {
  llvm::append_range(added, other.added);
  llvm::append_range(removed, other.removed);
  llvm::append_range(skipped, other.skipped);
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
