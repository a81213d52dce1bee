//===- SimulateSchedule.cpp - All stages of a table at once ---------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScheduleChecks.h"

#include <algorithm>
#include <map>

using namespace reprise::solver;

using Kind = ScheduleEntry::Kind;

static std::string count(int64_t number) { return std::to_string(number); }

namespace {
/// Equal times of all chunks.
std::vector<TaskTimes> repeat(const ScheduleTable &table,
                              const TaskTimes &times) {
  return std::vector<TaskTimes>(table.shape.stages * table.shape.virtualStages,
                                times);
}

/// Runs the lists of all stages until all have ended, or none goes on.
class Simulation {
public:
  Simulation(const ScheduleTable &table, const std::vector<TaskTimes> &chunks)
      : table(table), chunks(chunks), stages(table.shape.stages),
        meetings(table.groups.size()) {
    for (Stage &stage : stages)
      stage.met.resize(table.groups.size());
    for (int64_t i = 0; i < table.shape.stages; ++i)
      for (const ScheduleEntry &entry : table.stages[i].entries)
        stages[i].splits |= entry.kind == Kind::Weight;
  }

  /// Whether all stages end.
  bool run();
  int64_t getSpan() const { return span; }
  /// Why they do not.
  ScheduleFault explain() const;

private:
  /// A send, by its number on its channel.
  using Pending = std::pair<Channel, size_t>;
  /// Virtual stage, or -1 for gradients, and number.
  using Slot = std::pair<int64_t, int64_t>;
  struct Stage {
    size_t next = 0;
    bool splits = false; ///< Gradients of weights are made apart.
    int64_t time = 0;
    std::map<Slot, std::vector<Pending>> reads; ///< Sends from a slot.
    std::vector<size_t> met; ///< What each group has done here.
    bool hasArrived = false; ///< At what its group does next.
  };
  struct Parcels {
    std::vector<int64_t> sent, received; ///< When each was.
  };
  struct Meeting {
    size_t arrived = 0;
    int64_t time = 0;
  };

  bool goOn(int64_t number);
  bool meet(Stage &stage, const ScheduleEntry &entry);
  /// Waits for the sends from what `entry` writes; false: not yet received.
  bool waitForReads(Stage &stage, const ScheduleEntry &entry);
  std::optional<Slot> getWritten(const ScheduleEntry &entry) const;
  int64_t getTime(const Stage &stage, const ScheduleEntry &entry) const;

  const ScheduleTable &table;
  const std::vector<TaskTimes> &chunks;
  int64_t span = 0;
  std::vector<Stage> stages;
  std::map<Channel, Parcels> channels;
  std::vector<std::vector<Meeting>> meetings;
};
} // namespace

int64_t Simulation::getTime(const Stage &stage,
                            const ScheduleEntry &entry) const {
  if (entry.chunk < 0 || entry.chunk >= int64_t(chunks.size()))
    return 0;
  const TaskTimes &times = chunks[entry.chunk];
  switch (entry.kind) {
  case Kind::Forward:
    return times.forward;
  case Kind::Backward:
    return times.backward + (stage.splits ? 0 : times.weight);
  case Kind::Weight:
    return times.weight;
  default:
    return 0;
  }
}

std::optional<Simulation::Slot>
Simulation::getWritten(const ScheduleEntry &entry) const {
  int64_t virtualStage = entry.chunk / table.shape.stages;
  if (entry.kind == Kind::Receive)
    return Slot(entry.isGradient ? -1 : virtualStage, entry.slot);
  if (entry.kind == Kind::Forward)
    return Slot(virtualStage, entry.slot);
  if (entry.kind == Kind::Backward && entry.gradientSlot >= 0)
    return Slot(-1, entry.gradientSlot);
  return std::nullopt;
}

bool Simulation::waitForReads(Stage &stage, const ScheduleEntry &entry) {
  std::optional<Slot> written = getWritten(entry);
  if (!written)
    return true;
  std::vector<Pending> &reads = stage.reads[*written];
  for (auto [channel, number] : reads) {
    const std::vector<int64_t> &received = channels[channel].received;
    if (number >= received.size())
      return false;
    stage.time = std::max(stage.time, received[number]);
  }
  reads.clear();
  return true;
}

bool Simulation::meet(Stage &stage, const ScheduleEntry &entry) {
  std::vector<Meeting> &all = meetings[entry.group];
  size_t &number = stage.met[entry.group];
  if (number >= all.size())
    all.resize(number + 1);
  Meeting &meeting = all[number];
  if (!stage.hasArrived) {
    stage.hasArrived = true;
    ++meeting.arrived;
    meeting.time = std::max(meeting.time, stage.time);
  }
  if (meeting.arrived < table.groups[entry.group].stages.size())
    return false;
  stage.hasArrived = false;
  stage.time = meeting.time;
  ++number;
  return true;
}

/// Runs the next entry of a stage; false: it waits.
bool Simulation::goOn(int64_t number) {
  Stage &stage = stages[number];
  const ScheduleEntry &entry = table.stages[number].entries[stage.next];
  if (!waitForReads(stage, entry))
    return false;
  if (entry.kind == Kind::Send) {
    Channel channel = channelOf(number, entry);
    Parcels &parcels = channels[channel];
    Slot slot(entry.isGradient ? -1 : entry.chunk / table.shape.stages,
              entry.slot);
    stage.reads[slot].push_back({channel, parcels.sent.size()});
    parcels.sent.push_back(stage.time);
  } else if (entry.kind == Kind::Receive) {
    Parcels &parcels = channels[channelOf(number, entry)];
    if (parcels.received.size() >= parcels.sent.size())
      return false;
    stage.time = std::max(stage.time, parcels.sent[parcels.received.size()]);
    parcels.received.push_back(stage.time);
  } else if (isTogether(entry) && !meet(stage, entry)) {
    return false;
  }
  stage.time += getTime(stage, entry);
  span = std::max(span, stage.time);
  ++stage.next;
  return true;
}

bool Simulation::run() {
  for (bool goesOn = true; goesOn;) {
    goesOn = false;
    for (int64_t stage = 0; stage < table.shape.stages; ++stage)
      while (stages[stage].next < table.stages[stage].entries.size() &&
             goOn(stage))
        goesOn = true;
  }
  for (int64_t stage = 0; stage < table.shape.stages; ++stage)
    if (stages[stage].next < table.stages[stage].entries.size())
      return false;
  return true;
}

ScheduleFault Simulation::explain() const {
  ScheduleFault fault;
  for (int64_t stage = 0; stage < table.shape.stages; ++stage) {
    size_t next = stages[stage].next;
    if (next >= table.stages[stage].entries.size())
      continue;
    std::string what = describe(table, table.stages[stage].entries[next]) +
                       ", entry " + count(next) + " of stage " + count(stage);
    if (fault.stage < 0) {
      fault.stage = stage;
      fault.entry = next;
      fault.text = "waits forever, since stages wait for each other";
    } else {
      fault.text += (fault.text.find(": ") == std::string::npos ? ": " : "; ") +
                    std::string("for it waits the ") + what;
    }
  }
  return fault;
}

std::optional<ScheduleFault>
reprise::solver::checkEnd(const ScheduleTable &table) {
  std::vector<TaskTimes> chunks = repeat(table, TaskTimes());
  Simulation simulation(table, chunks);
  if (!simulation.run())
    return simulation.explain();
  return std::nullopt;
}

int64_t reprise::solver::getSpan(const ScheduleTable &table,
                                 const TaskTimes &times) {
  return getSpan(table, repeat(table, times));
}

int64_t reprise::solver::getSpan(const ScheduleTable &table,
                                 const std::vector<TaskTimes> &chunks) {
  Simulation simulation(table, chunks);
  simulation.run();
  return simulation.getSpan();
}
