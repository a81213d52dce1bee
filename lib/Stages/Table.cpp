//===- Table.cpp - Schedules as ops and as plain tables -------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Table.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::pipe;

using solver::ScheduleEntry;

//===----------------------------------------------------------------------===//
// From ops
//===----------------------------------------------------------------------===//

template <typename Op>
static ScheduleEntry readPlace(Op op, ScheduleEntry::Kind kind) {
  ScheduleEntry entry;
  entry.kind = kind;
  entry.chunk = op.getChunk();
  entry.microBatch = op.getMicroBatch();
  entry.slot = op.getSlot();
  return entry;
}

template <typename Op>
static ScheduleEntry readTransfer(Op op, ScheduleEntry::Kind kind) {
  ScheduleEntry entry = readPlace(op, kind);
  entry.isGradient = op.getPayload() == Payload::Gradient;
  entry.peer = op.getPeer();
  entry.bytes = op.getBytes();
  return entry;
}

template <typename Op>
static ScheduleEntry readTogether(Op op, ScheduleEntry::Kind kind,
                                  const llvm::StringMap<int64_t> &groups) {
  ScheduleEntry entry;
  entry.kind = kind;
  auto group = groups.find(op.getGroup());
  entry.group = group == groups.end() ? -1 : group->second;
  entry.bytes = op.getBytes();
  return entry;
}

static ScheduleEntry readEntry(Operation &op,
                               const llvm::StringMap<int64_t> &groups) {
  return llvm::TypeSwitch<Operation *, ScheduleEntry>(&op)
      .Case([](ForwardOp op) { return readPlace(op, ScheduleEntry::Forward); })
      .Case([](BackwardWeightOp op) {
        return readPlace(op, ScheduleEntry::Weight);
      })
      .Case([](BackwardOp op) {
        ScheduleEntry entry = readPlace(op, ScheduleEntry::Backward);
        entry.gradientSlot = op.getGradientSlot().value_or(-1);
        return entry;
      })
      .Case([](SendOp op) { return readTransfer(op, ScheduleEntry::Send); })
      .Case(
          [](ReceiveOp op) { return readTransfer(op, ScheduleEntry::Receive); })
      .Case([&](ReduceOp op) {
        return readTogether(op, ScheduleEntry::Reduce, groups);
      })
      .Case([&](GatherOp op) {
        return readTogether(op, ScheduleEntry::Gather, groups);
      })
      .Default([](Operation *) {
        ScheduleEntry entry;
        entry.kind = ScheduleEntry::Update;
        return entry;
      });
}

stages::TracedTable stages::readTable(ScheduleOp schedule) {
  TracedTable traced;
  solver::ScheduleTable &table = traced.table;
  table.name = schedule.getName().str();
  llvm::StringMap<int64_t> groups;
  for (auto group : schedule.getBody().getOps<GroupOp>()) {
    groups.try_emplace(group.getName(), table.groups.size());
    table.groups.push_back(
        {group.getName().str(),
         {group.getStages().begin(), group.getStages().end()}});
  }
  for (auto stage : schedule.getBody().getOps<StageOp>()) {
    solver::StageTable list;
    list.slots.assign(stage.getSlots().begin(), stage.getSlots().end());
    list.gradientSlots = stage.getGradientSlots();
    traced.stages.push_back(stage);
    traced.entries.emplace_back();
    for (Operation &op : stage.getBody().front()) {
      list.entries.push_back(readEntry(op, groups));
      traced.entries.back().push_back(&op);
    }
    table.stages.push_back(std::move(list));
  }
  table.shape = {int64_t(table.stages.size()),
                 int64_t(schedule.getVirtualStages()),
                 int64_t(schedule.getMicroBatches()),
                 int64_t(schedule.getMicroBatchGroup().value_or(0))};
  return traced;
}

void stages::reportFault(pipe::ScheduleOp schedule, const TracedTable &traced,
                         const solver::ScheduleFault &fault) {
  if (fault.stage < 0) {
    schedule.emitOpError() << fault.text;
    return;
  }
  if (fault.entry < 0) {
    traced.stages[fault.stage]->emitOpError()
        << "(stage " << fault.stage << ") " << fault.text;
    return;
  }
  traced.entries[fault.stage][fault.entry]->emitOpError()
      << "(stage " << fault.stage << ", entry " << fault.entry << ") "
      << fault.text;
}

//===----------------------------------------------------------------------===//
// To ops
//===----------------------------------------------------------------------===//

static void writeEntry(OpBuilder &builder, Location loc,
                       const solver::ScheduleTable &table,
                       const ScheduleEntry &entry) {
  Payload payload = entry.isGradient ? Payload::Gradient : Payload::Activation;
  auto writeTask = [&](auto op) {
    decltype(op)::create(builder, loc, entry.chunk, entry.microBatch,
                         entry.slot);
  };
  auto writeTransfer = [&](auto op) {
    decltype(op)::create(builder, loc, payload, entry.chunk, entry.microBatch,
                         entry.slot, entry.peer, entry.bytes);
  };
  auto writeTogether = [&](auto op) {
    decltype(op)::create(builder, loc, table.groups[entry.group].name,
                         entry.bytes);
  };
  switch (entry.kind) {
  case ScheduleEntry::Forward:
    return writeTask(ForwardOp());
  case ScheduleEntry::Backward:
    BackwardOp::create(builder, loc, builder.getI64IntegerAttr(entry.chunk),
                       builder.getI64IntegerAttr(entry.microBatch),
                       builder.getI64IntegerAttr(entry.slot),
                       entry.gradientSlot < 0
                           ? IntegerAttr()
                           : builder.getI64IntegerAttr(entry.gradientSlot));
    return;
  case ScheduleEntry::Weight:
    return writeTask(BackwardWeightOp());
  case ScheduleEntry::Send:
    return writeTransfer(SendOp());
  case ScheduleEntry::Receive:
    return writeTransfer(ReceiveOp());
  case ScheduleEntry::Reduce:
    return writeTogether(ReduceOp());
  case ScheduleEntry::Gather:
    return writeTogether(GatherOp());
  case ScheduleEntry::Update:
    UpdateOp::create(builder, loc);
    return;
  }
}

void stages::writeTable(OpBuilder &builder, Location loc,
                        const solver::ScheduleTable &table) {
  OpBuilder::InsertionGuard guard(builder);
  int64_t group = table.shape.microBatchGroup;
  auto schedule = ScheduleOp::create(
      builder, loc, builder.getStringAttr(table.name),
      builder.getI64IntegerAttr(table.shape.virtualStages),
      builder.getI64IntegerAttr(table.shape.microBatches),
      group ? builder.getI64IntegerAttr(group) : IntegerAttr());
  Block &lists = schedule.getBody().emplaceBlock();
  builder.setInsertionPointToEnd(&lists);
  for (const solver::ScheduleGroup &group : table.groups)
    GroupOp::create(builder, loc, group.name, group.stages);
  for (auto [number, list] : llvm::enumerate(table.stages)) {
    builder.setInsertionPointToEnd(&lists);
    auto stage =
        StageOp::create(builder, loc, number, list.slots, list.gradientSlots);
    builder.setInsertionPointToEnd(&stage.getBody().emplaceBlock());
    for (const ScheduleEntry &entry : list.entries)
      writeEntry(builder, loc, table, entry);
  }
}
