//===- StageSchedule.h - What each stage of a pipeline runs -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A schedule is a list of tasks for each stage. With what crosses the borders
// between chunks, and with the slot of each value that waits, it becomes a
// table, which is all that a rank needs to know. `verify` proves of any table,
// whoever has made it, that it runs.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_SOLVER_STAGESCHEDULE_H
#define REPRISE_SOLVER_STAGESCHEDULE_H

#include "reprise/Solver/Pipeline.h"

namespace reprise::solver {

/// What a stage computes: forward, backward, and, if the schedule makes the
/// gradients of weights apart, these.
enum class TaskKind { Forward, Backward, Weight };

struct StageTask {
  TaskKind kind = TaskKind::Forward;
  int64_t virtualStage = 0;
  int64_t microBatch = 0;
};

/// The tasks of stage `stage` of a pipeline of the shape, in order.
using ListTasks = std::vector<StageTask> (*)(const PipelineShape &shape,
                                             int64_t stage);

/// A way to order the tasks of a pipeline.
struct NamedSchedule {
  const char *name;
  ListTasks list;
  bool isInterleaved; ///< For stages of several chunks.
  bool splitsWeights; ///< Gradients of weights have tasks of their own.
};

/// All schedules, the name of each once.
const std::vector<NamedSchedule> &getSchedules();
const NamedSchedule *findSchedule(const std::string &name);

/// All forward tasks, then all backward ones, in ascending micro-batches.
/// Source: Huang et al., GPipe, arXiv:1811.06965, section 2.3.
std::vector<StageTask> listGPipe(const PipelineShape &shape, int64_t stage);
/// As many forward tasks as there are stages behind, then backward and forward
/// in turn. Source: Narayanan et al., arXiv:2006.15704, section 3.2 (1F1B with
/// flushes).
std::vector<StageTask> list1F1B(const PipelineShape &shape, int64_t stage);
/// Groups of micro-batches go through all chunks of a stage before the next
/// group begins. Source: Narayanan et al., arXiv:2104.04473, section 2.2;
/// Megatron Core 0.15, `schedules.py`, for `microBatchGroup`.
std::vector<StageTask> listInterleaved(const PipelineShape &shape,
                                       int64_t stage);
/// 1F1B whose stage r makes the gradients of weights r micro-batches late, so
/// that every stage holds as much as the first. Source: Qi et al., Zero Bubble
/// Pipeline Parallelism, arXiv:2401.10241, section 2.1 (ZB-H1).
std::vector<StageTask> listZBH1(const PipelineShape &shape, int64_t stage);

/// What a stage does next.
struct ScheduleEntry {
  enum Kind {
    Forward,  ///< From the input in the slot, or the batch, to what is kept.
    Backward, ///< From what is kept to the gradient of the input.
    Weight, ///< From what `Backward` left in the slot to gradients of weights.
    Send,   ///< Begins to send; the entry that writes the slot next waits.
    Receive,
    Reduce, ///< A sum over the members of the group.
    Gather, ///< The members' parts become the whole.
    Update  ///< Norm, clipping, the optimizer.
  };
  Kind kind = Forward;
  bool isGradient = false; ///< Of what is sent or received.
  int64_t chunk = -1;      ///< Of the model; it is on the stage.
  int64_t microBatch = -1;
  /// Of the chunk, for what its micro-batch has from its input to the end of
  /// its last backward task. For gradients that are sent or received: one of
  /// the stage's gradient slots.
  int64_t slot = -1;
  /// Of `Backward`: has the gradient of the chunk's output before, and that of
  /// its input behind. -1 if the chunk neither receives nor sends a gradient.
  int64_t gradientSlot = -1;
  int64_t peer = -1;  ///< The other stage of `Send` and `Receive`.
  int64_t group = -1; ///< Index into the table's groups.
  int64_t bytes = 0;
};

/// Stages that do something together.
struct ScheduleGroup {
  std::string name;
  std::vector<int64_t> stages; ///< Ascending.
};

/// The list of a stage, and how many slots it has.
struct StageTable {
  std::vector<int64_t> slots; ///< Of each virtual stage.
  int64_t gradientSlots = 0;
  std::vector<ScheduleEntry> entries;
};

/// What all stages do in a step.
struct ScheduleTable {
  std::string name;
  PipelineShape shape;
  std::vector<ScheduleGroup> groups;
  std::vector<StageTable> stages;
};

/// What a table is made for.
struct ScheduleFacts {
  int64_t borderBytes = 0; ///< Of what crosses a border: [b, s, h].
  /// Of the gradient of a table that the first and the last stage both have; 0:
  /// none.
  int64_t tiedBytes = 0;
};

/// Says why `shape` is not one that `schedule` can have: virtual stages where
/// it takes one, groups of micro-batches that are too small or too large.
std::optional<std::string> check(const NamedSchedule &schedule,
                                 const PipelineShape &shape);

/// The whole table of `schedule` for a shape that passes `check`. Everything is
/// received right before it is read and sent as soon as it is there. Slots are
/// taken in turn. There are two gradient slots, or the least number with which
/// no stage waits forever, if that is more. Time: entries times gradient slots
/// times stages at most.
ScheduleTable makeTable(const NamedSchedule &schedule,
                        const PipelineShape &shape, const ScheduleFacts &facts);

/// A table, or an entry of a stage, that is wrong.
struct ScheduleFault {
  int64_t stage = -1; ///< -1: all of them.
  int64_t entry = -1; ///< -1: none of its entries.
  std::string text;
};

/// Proves that a step runs as `table` says, however fast stages and engines
/// are:
///
/// * every chunk goes forward and backward once with each micro-batch, from
///   what the chunks beside it have made for that micro-batch, and adds to its
///   gradients in ascending micro-batches, the last one to the loss, too;
/// * no slot is written while something in it is still read, and a chunk has as
///   many slots as it has micro-batches at one time;
/// * what is received on a channel, from one stage to another, activations and
///   gradients apart, is what was sent there, in order and in bytes;
/// * the members of a group do the same things together in the same order;
/// * no stage waits forever, where sends go on beside what follows them.
///
/// Otherwise says what is wrong with which entry. Time: entries times stages at
/// most.
std::optional<ScheduleFault> verify(const ScheduleTable &table);

/// How long tasks take, in any unit.
struct TaskTimes {
  int64_t forward = 1, backward = 1, weight = 1;
};

/// When the last entry of a table that passes `verify` ends. What is sent
/// arrives at once. `Backward` of a table without `Weight` takes the time of
/// both.
int64_t getSpan(const ScheduleTable &table, const TaskTimes &times);

/// The same, with times of each chunk of the model.
int64_t getSpan(const ScheduleTable &table,
                const std::vector<TaskTimes> &chunks);

/// "forward of micro-batch 2 on chunk 1": for people.
std::string describe(const ScheduleTable &table, const ScheduleEntry &entry);

} // namespace reprise::solver

#endif // REPRISE_SOLVER_STAGESCHEDULE_H
