//===- ExpertRows.cpp - Room for rows that seldom come --------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Report/ExpertRows.h"
#include "reprise/Dialect/RT/RTExpertRankOps.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Dialect/RT/ScheduledOp.h"
#include "reprise/Interfaces/CostModel.h"
#include "reprise/Interfaces/EvenRows.h"
#include "reprise/Remat/Summary.h"
#include <map>

using namespace mlir;
using namespace reprise;
using namespace reprise::report;

namespace {
/// Finds the buffers that have a row for each row of a rank's experts: those
/// that come from other ranks, and what is made of them row by row.
class RowFinder {
public:
  RowFinder(func::FuncOp step, const MemoryProfile &profile);

  ExpertRows count();

private:
  struct Room {
    int64_t rows, even;
    /// Of so many bytes, those that more rows have than an even spread.
    int64_t getUnused(Value buffer) const {
      return getTypeBytes(buffer.getType()) / rows * (rows - even);
    }
  };

  ExpertRows::Rounds getRounds() const;
  void addSent(rt::SendRowsOp send);
  /// Whether a buffer has been found that was not known.
  bool addFromOthers();
  void addUnused(Value buffer, const Room &room, int64_t position);

  const MemoryProfile &profile;
  std::vector<rt::ScheduledOp> schedule;
  bool sendsInRounds = false;
  std::map<int64_t, Room> rooms; ///< by their rows
  DenseMap<Value, const Room *> found;
  DenseMap<int64_t, SmallVector<const report::Block *>>
      written;                                     ///< by position
  DenseMap<const report::Block *, int64_t> unused; ///< bytes of it
};
} // namespace

RowFinder::RowFinder(func::FuncOp step, const MemoryProfile &profile)
    : profile(profile) {
  for (Operation &op : step.getBody().front())
    if (auto scheduled = dyn_cast<rt::ScheduledOp>(op))
      schedule.push_back(scheduled);
  for (rt::ScheduledOp op : schedule)
    if (auto send = dyn_cast<rt::SendRowsOp>(op.getOperation()))
      addSent(send);
  while (addFromOthers()) {
  }
}

static int64_t countRows(Value buffer) {
  auto type = dyn_cast<MemRefType>(buffer.getType());
  return type && type.getRank() > 0 ? type.getDimSize(0) : 0;
}

/// As many rows come as go where experts are used evenly. In rounds the first
/// has most; there is one room for all.
void RowFinder::addSent(rt::SendRowsOp send) {
  sendsInRounds |= send.getRound().has_value();
  Value sent = send.getOutputs().front();
  int64_t rows = countRows(sent);
  Room &room = rooms.try_emplace(rows, Room{rows, 0}).first->second;
  int64_t home = countRows(send.getInputs().front());
  room.even = std::max(
      room.even, std::min(rows, getEvenRows(send, kEvenRTRowsAttr, home)));
  found.try_emplace(sent, &room);
}

/// GEMMs and launches make rows of rows.
bool RowFinder::addFromOthers() {
  bool isNew = false;
  for (rt::ScheduledOp op : schedule) {
    const Room *room = nullptr;
    for (Value operand : op->getOperands())
      if (auto known = found.find(operand); known != found.end())
        room = known->second;
    if (!room)
      continue;
    for (Value operand : op->getOperands())
      if (countRows(operand) == room->rows &&
          operand.getDefiningOp<rt::BufferOp>())
        isNew |= found.try_emplace(operand, room).second;
  }
  return isNew;
}

/// Notes that of the place where `buffer` lies, written at `position`.
void RowFinder::addUnused(Value buffer, const Room &room, int64_t position) {
  rt::BufferOp root = buffer.getDefiningOp<rt::BufferOp>().getRoot();
  for (const report::Block *block : written.lookup(position))
    if (block->offset == root.getOffset() &&
        block->bytes == getTypeBytes(root.getOut().getType()))
      unused[block] = room.getUnused(buffer);
}

ExpertRows::Rounds RowFinder::getRounds() const {
  return profile.runsBeside() ? ExpertRows::Rounds::Impossible
         : sendsInRounds      ? ExpertRows::Rounds::Used
                              : ExpertRows::Rounds::Possible;
}

ExpertRows RowFinder::count() {
  for (const report::Block &block : profile.getBlocks())
    written[block.writer].push_back(&block);
  for (auto [position, op] : llvm::enumerate(schedule)) {
    const Room *room = nullptr;
    for (Value operand : op->getOperands())
      if (auto known = found.find(operand); known != found.end()) {
        room = known->second;
        addUnused(operand, *room, position);
      }
    // What moves rows on a GPU has slots of as many.
    bool isMoved =
        room && !profile.getPositions()[position].load.exchange.empty();
    if (Value slots = isMoved ? op.getWorkspaceBuffer() : Value())
      addUnused(slots, *room, position);
  }
  MemoryProfile::Change change;
  for (auto [block, bytes] : unused)
    change.removed.push_back({block->first, block->last, bytes});
  ExpertRows rows;
  for (const auto &[number, room] : rooms)
    if (room.rows - room.even >= rows.room - rows.even)
      rows = {room.rows, room.even, 0, getRounds()};
  rows.peakBytes = -profile.getPeakChange(change);
  return rows;
}

std::string ExpertRows::describe() const {
  if (room == 0)
    return "";
  std::string text = "rows of experts: room for " + std::to_string(room);
  if (room == even)
    return text + ", and none of it for a worst case alone";
  text += ", of which " + std::to_string(even) +
          " come where experts are used evenly; " +
          remat::formatBytes(peakBytes) + " at the peak are for the others: ";
  if (rounds == Rounds::Possible)
    text += "fewer with moe_expert_rows_per_round, which drops none, or ";
  else if (rounds == Rounds::Used)
    text += "fewer with smaller moe_expert_rows_per_round, which drops none, "
            "or ";
  return text + "fewer with moe_expert_capacity_factor, which drops what is "
                "beyond";
}

ExpertRows report::countExpertRows(func::FuncOp step,
                                   const MemoryProfile &profile) {
  return RowFinder(step, profile).count();
}
