//===- StageSchedule.cpp - From tasks to tables ---------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScheduleChecks.h"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>

using namespace reprise::solver;

/// One for what arrives, and one that is still being sent. Where a group has
/// more micro-batches than there are stages, more gradients wait.
static constexpr int64_t kGradientSlots = 2;
/// The loss, and the sum of the squares of all gradients, in f32.
static constexpr int64_t kNormBytes = 8;

const std::vector<NamedSchedule> &reprise::solver::getSchedules() {
  static const std::vector<NamedSchedule> schedules = {
      {"gpipe", listGPipe, false, false},
      {"1f1b", list1F1B, false, false},
      {"interleaved", listInterleaved, true, false},
      {"zb-h1", listZBH1, false, true}};
  return schedules;
}

const NamedSchedule *reprise::solver::findSchedule(const std::string &name) {
  for (const NamedSchedule &schedule : getSchedules())
    if (schedule.name == name)
      return &schedule;
  return nullptr;
}

std::optional<std::string> reprise::solver::check(const NamedSchedule &schedule,
                                                  const PipelineShape &shape) {
  if (std::optional<std::string> fault = check(shape))
    return fault;
  std::string name = schedule.name;
  if (!schedule.isInterleaved) {
    if (shape.virtualStages > 1)
      return "needs 1 virtual stage for the schedule " + name + ", but got " +
             std::to_string(shape.virtualStages) +
             "; 'interleaved' has several";
    if (shape.microBatchGroup != 0)
      return "needs no groups of micro-batches for the schedule " + name +
             ", but got groups of " + std::to_string(shape.microBatchGroup);
    return std::nullopt;
  }
  int64_t group = shape.microBatchGroup ? shape.microBatchGroup : shape.stages;
  if (group < shape.stages || group > shape.microBatches)
    return "needs groups of at least " + std::to_string(shape.stages) +
           " micro-batches, the stages, and at most " +
           std::to_string(shape.microBatches) + ", all of them, but got " +
           std::to_string(group);
  int64_t rest = shape.microBatches % group;
  if (rest != 0 && rest < shape.stages)
    return "needs at least " + std::to_string(shape.stages) +
           " micro-batches in the last group, the stages, but got " +
           std::to_string(rest) + ", the rest of " +
           std::to_string(shape.microBatches) + " in groups of " +
           std::to_string(group);
  return std::nullopt;
}

namespace {
/// Slots that are taken in turn, so that each rests for long.
class Slots {
public:
  explicit Slots(int64_t count) : free(count) {
    std::iota(free.begin(), free.end(), 0);
  }
  int64_t take() {
    int64_t slot = free.front();
    free.pop_front();
    return slot;
  }
  void give(int64_t slot) { free.push_back(slot); }

private:
  std::deque<int64_t> free;
};

/// The list of one stage.
class TableBuilder {
public:
  TableBuilder(const PipelineShape &shape, int64_t stage,
               const ScheduleFacts &facts, std::vector<StageTask> tasks,
               int64_t mostGradientSlots)
      : shape(shape), stage(stage), facts(facts), tasks(std::move(tasks)),
        mostGradientSlots(mostGradientSlots),
        numChunks(shape.stages * shape.virtualStages) {}

  StageTable build();

private:
  bool endsSlot(const StageTask &task) const {
    return task.kind == (splits ? TaskKind::Weight : TaskKind::Backward);
  }
  void countSlots();
  void addTask(const StageTask &task);
  /// Of what crosses to the chunk `step` behind this one, or from it.
  void addTransfer(ScheduleEntry::Kind kind, const ScheduleEntry &task,
                   int64_t step, int64_t slot);

  const PipelineShape &shape;
  int64_t stage;
  const ScheduleFacts &facts;
  std::vector<StageTask> tasks;
  int64_t mostGradientSlots;
  int64_t numChunks;
  bool splits = false;
  std::vector<Slots> slots;
  Slots gradients{0};
  std::map<std::pair<int64_t, int64_t>, int64_t> taken; // by chunk and batch
  StageTable table;
};
} // namespace

void TableBuilder::countSlots() {
  std::vector<int64_t> now(shape.virtualStages);
  table.slots.assign(shape.virtualStages, 0);
  int64_t crossing = 0;
  for (const StageTask &task : tasks) {
    int64_t &held = now[task.virtualStage];
    held += task.kind == TaskKind::Forward;
    table.slots[task.virtualStage] =
        std::max(table.slots[task.virtualStage], held);
    held -= endsSlot(task);
    crossing += task.kind == TaskKind::Backward && numChunks > 1;
  }
  table.gradientSlots = std::min(crossing, mostGradientSlots);
  gradients = Slots(table.gradientSlots);
  for (int64_t count : table.slots)
    slots.emplace_back(count);
}

void TableBuilder::addTransfer(ScheduleEntry::Kind kind,
                               const ScheduleEntry &task, int64_t step,
                               int64_t slot) {
  ScheduleEntry entry = task;
  entry.kind = kind;
  entry.isGradient = task.kind == ScheduleEntry::Backward;
  entry.slot = slot;
  entry.gradientSlot = -1;
  entry.peer = (task.chunk + step) % shape.stages;
  entry.bytes = facts.borderBytes;
  table.entries.push_back(entry);
}

void TableBuilder::addTask(const StageTask &task) {
  ScheduleEntry entry;
  entry.chunk = task.virtualStage * shape.stages + stage;
  entry.microBatch = task.microBatch;
  bool isFirst = entry.chunk == 0, isLast = entry.chunk == numChunks - 1;
  int64_t &slot = taken[{entry.chunk, task.microBatch}];
  if (task.kind == TaskKind::Forward) {
    slot = slots[task.virtualStage].take();
    entry.slot = slot;
    if (!isFirst)
      addTransfer(ScheduleEntry::Receive, entry, -1, slot);
    table.entries.push_back(entry);
    if (!isLast)
      addTransfer(ScheduleEntry::Send, entry, 1, slot);
    return;
  }
  entry.slot = slot;
  entry.kind = task.kind == TaskKind::Weight ? ScheduleEntry::Weight
                                             : ScheduleEntry::Backward;
  if (task.kind == TaskKind::Backward && numChunks > 1) {
    entry.gradientSlot = gradients.take();
    if (!isLast)
      addTransfer(ScheduleEntry::Receive, entry, 1, entry.gradientSlot);
    table.entries.push_back(entry);
    if (!isFirst)
      addTransfer(ScheduleEntry::Send, entry, -1, entry.gradientSlot);
    gradients.give(entry.gradientSlot);
  } else {
    table.entries.push_back(entry);
  }
  if (endsSlot(task))
    slots[task.virtualStage].give(slot);
}

StageTable TableBuilder::build() {
  splits = std::any_of(tasks.begin(), tasks.end(), [](const StageTask &task) {
    return task.kind == TaskKind::Weight;
  });
  countSlots();
  for (const StageTask &task : tasks)
    addTask(task);
  return std::move(table);
}

/// What the members of groups do behind all tasks, and the bytes of each.
static std::vector<int64_t> addGroups(ScheduleTable &table,
                                      const ScheduleFacts &facts) {
  std::vector<int64_t> bytes;
  int64_t stages = table.shape.stages;
  if (stages > 1 && facts.tiedBytes > 0) {
    table.groups.push_back({"ends", {0, stages - 1}});
    bytes.push_back(facts.tiedBytes);
  }
  if (stages > 1) {
    table.groups.push_back({"all", std::vector<int64_t>(stages)});
    std::vector<int64_t> &all = table.groups.back().stages;
    std::iota(all.begin(), all.end(), 0);
    bytes.push_back(kNormBytes);
  }
  return bytes;
}

/// The entries of `stage` behind all of its tasks.
static void addEnd(ScheduleTable &table, const std::vector<int64_t> &bytes,
                   int64_t stage) {
  std::vector<ScheduleEntry> &entries = table.stages[stage].entries;
  for (size_t group = 0; group < table.groups.size(); ++group) {
    const std::vector<int64_t> &members = table.groups[group].stages;
    if (!std::binary_search(members.begin(), members.end(), stage))
      continue;
    ScheduleEntry reduce;
    reduce.kind = ScheduleEntry::Reduce;
    reduce.group = group;
    reduce.bytes = bytes[group];
    entries.push_back(reduce);
  }
  ScheduleEntry update;
  update.kind = ScheduleEntry::Update;
  entries.push_back(update);
}

ScheduleTable reprise::solver::makeTable(const NamedSchedule &schedule,
                                         const PipelineShape &shape,
                                         const ScheduleFacts &facts) {
  ScheduleTable table;
  table.name = schedule.name;
  table.shape = shape;
  std::vector<int64_t> bytes = addGroups(table, facts);
  int64_t most = shape.virtualStages * shape.microBatches;
  for (int64_t slots = kGradientSlots;; ++slots) {
    table.stages.clear();
    for (int64_t stage = 0; stage < shape.stages; ++stage) {
      TableBuilder builder(shape, stage, facts, schedule.list(shape, stage),
                           slots);
      table.stages.push_back(builder.build());
      addEnd(table, bytes, stage);
    }
    if (slots >= most || !checkEnd(table))
      return table;
  }
}

std::string reprise::solver::describe(const ScheduleTable &table,
                                      const ScheduleEntry &entry) {
  static const char *const names[] = {"forward", "backward", "backward_weight",
                                      "send",    "receive",  "reduce",
                                      "gather",  "update"};
  std::string text = names[entry.kind];
  switch (entry.kind) {
  case ScheduleEntry::Update:
    return text;
  case ScheduleEntry::Reduce:
  case ScheduleEntry::Gather:
    return text + " of the group '" +
           (size_t(entry.group) < table.groups.size()
                ? table.groups[entry.group].name
                : std::to_string(entry.group)) +
           "'";
  case ScheduleEntry::Send:
  case ScheduleEntry::Receive:
    text += entry.isGradient ? " of the gradient" : " of the activation";
    break;
  default:
    break;
  }
  return text + " of micro-batch " + std::to_string(entry.microBatch) +
         " on chunk " + std::to_string(entry.chunk);
}
