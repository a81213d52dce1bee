//===- CheckStage.cpp - Whether the list of a stage is right --------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScheduleChecks.h"

#include <algorithm>

using namespace reprise::solver;

using Kind = ScheduleEntry::Kind;
using Fault = std::optional<ScheduleFault>;

static std::string count(int64_t number) { return std::to_string(number); }

namespace {
/// What a slot has: nothing, or something of a micro-batch on a chunk.
struct Content {
  enum State { Free, Input, Kept, ForWeights, Incoming, Outgoing } state = Free;
  int64_t chunk = -1, microBatch = -1;
};

/// How far a micro-batch is on a chunk.
struct Progress {
  bool forward = false, sent = false, backward = false, sentGradient = false,
       weight = false;
};

/// Goes through the list of one stage.
class StageChecker {
public:
  StageChecker(const ScheduleTable &table, int64_t stage)
      : table(table), shape(table.shape), list(table.stages[stage]),
        stage(stage), numChunks(shape.stages * shape.virtualStages),
        progress(shape.virtualStages * shape.microBatches),
        added(shape.virtualStages, -1), held(shape.virtualStages),
        mostHeld(shape.virtualStages), remaining(progress.size()) {}

  Fault run();

private:
  Fault fail(const std::string &text) const {
    const ScheduleEntry *at =
        entry < list.entries.size() ? &list.entries[entry] : nullptr;
    return ScheduleFault{stage, at ? int64_t(entry) : -1, text};
  }
  Fault checkCounts();
  Fault checkNumbers(const ScheduleEntry &entry);
  Fault checkTransfer(const ScheduleEntry &entry);
  Fault checkGroup(const ScheduleEntry &entry);
  Fault visit(const ScheduleEntry &entry);
  Fault visitForward(const ScheduleEntry &entry);
  Fault visitBackward(const ScheduleEntry &entry);
  Fault visitWeight(const ScheduleEntry &entry);
  Fault visitSend(const ScheduleEntry &entry);
  Fault visitReceive(const ScheduleEntry &entry);
  Fault checkEnd();

  /// Whether `slot` has what an entry of this chunk and micro-batch needs.
  Fault needs(const Content &slot, Content::State state,
              const ScheduleEntry &entry, const char *what);
  Fault needsFree(const Content &slot, const char *what);
  void hold(const ScheduleEntry &entry);
  Fault addGradients(const ScheduleEntry &entry);
  Fault addLoss(const ScheduleEntry &entry, int64_t &last);

  int64_t virtualStageOf(const ScheduleEntry &entry) const {
    return entry.chunk / shape.stages;
  }
  Content &slotOf(const ScheduleEntry &entry) {
    return slots[virtualStageOf(entry)][entry.slot];
  }
  Progress &progressOf(const ScheduleEntry &entry) {
    return progress[virtualStageOf(entry) * shape.microBatches +
                    entry.microBatch];
  }
  static Content of(Content::State state, const ScheduleEntry &entry) {
    return {state, entry.chunk, entry.microBatch};
  }

  const ScheduleTable &table;
  const PipelineShape &shape;
  const StageTable &list;
  int64_t stage, numChunks;
  size_t entry = 0;
  bool splits = false; ///< Gradients of weights are made apart.
  std::vector<std::vector<Content>> slots;
  std::vector<Content> gradients;
  std::vector<Progress> progress;
  std::vector<int64_t> added; ///< The last one that was added to gradients.
  int64_t lastLoss = -1, lastHead = -1; ///< The same of tasks that make losses.
  std::vector<int64_t> held, mostHeld;
  int64_t remaining; ///< Tasks that add to gradients.
};
} // namespace

static std::string describe(const Content &content) {
  static const char *const names[] = {"nothing",
                                      "the input",
                                      "what is kept",
                                      "what is kept for gradients of weights",
                                      "the gradient of the output",
                                      "the gradient of the input"};
  std::string text = names[content.state];
  if (content.state != Content::Free)
    text += " of micro-batch " + count(content.microBatch) + " on chunk " +
            count(content.chunk);
  return text;
}

Fault StageChecker::checkCounts() {
  entry = list.entries.size();
  if (list.slots.size() != size_t(shape.virtualStages))
    return fail("needs the slots of " + count(shape.virtualStages) +
                " virtual stages, but got those of " +
                count(list.slots.size()));
  for (int64_t number : list.slots)
    if (number < 1 || number > shape.microBatches)
      return fail(
          "needs from 1 slot of a virtual stage up to one for each of " +
          count(shape.microBatches) + " micro-batches, but got " +
          count(number));
  int64_t most = numChunks > 1 ? shape.virtualStages * shape.microBatches : 0;
  if (list.gradientSlots < (most > 0) || list.gradientSlots > most)
    return fail("needs from " + count(most > 0) + " to " + count(most) +
                " gradient slots, but got " + count(list.gradientSlots));
  if (list.entries.empty() || list.entries.back().kind != Kind::Update)
    return fail("needs an update as its last entry");
  for (int64_t number : list.slots)
    slots.emplace_back(number);
  gradients.resize(list.gradientSlots);
  return std::nullopt;
}

Fault StageChecker::checkTransfer(const ScheduleEntry &e) {
  bool goesUp = (e.kind == Kind::Send) != e.isGradient;
  int64_t other = e.chunk + (goesUp ? 1 : -1);
  if (other < 0 || other >= numChunks)
    return fail("needs a chunk " + std::string(goesUp ? "behind" : "before") +
                " chunk " + count(e.chunk) + " of " + count(numChunks) +
                ", but has none");
  if (e.peer != other % shape.stages)
    return fail("needs stage " + count(other % shape.stages) +
                ", which has chunk " + count(other) + ", but got stage " +
                count(e.peer));
  if (e.peer == stage)
    return fail("needs another stage to exchange with, but got its own");
  if (e.bytes < 1)
    return fail("needs at least 1 byte, but got " + count(e.bytes));
  return std::nullopt;
}

Fault StageChecker::checkGroup(const ScheduleEntry &e) {
  if (size_t(e.group) >= table.groups.size())
    return fail("needs one of " + count(table.groups.size()) +
                " groups, but got number " + count(e.group));
  const std::vector<int64_t> &members = table.groups[e.group].stages;
  if (!std::binary_search(members.begin(), members.end(), stage))
    return fail("needs a group with this stage, but got '" +
                table.groups[e.group].name + "', which is without it");
  if (e.bytes < 1)
    return fail("needs at least 1 byte, but got " + count(e.bytes));
  // What is summed is there behind the last task.
  if (remaining > 0)
    return fail("needs to be behind all tasks of its stage, but is before " +
                count(remaining) + " that add to gradients");
  return std::nullopt;
}

Fault StageChecker::checkNumbers(const ScheduleEntry &e) {
  if (e.chunk < 0 || e.chunk >= numChunks || e.chunk % shape.stages != stage)
    return fail("needs a chunk of this stage, the number " + count(stage) +
                " or that plus a multiple of " + count(shape.stages) +
                " below " + count(numChunks) + ", but got " + count(e.chunk));
  if (e.microBatch < 0 || e.microBatch >= shape.microBatches)
    return fail("needs a micro-batch below " + count(shape.microBatches) +
                ", but got " + count(e.microBatch));
  bool isTransfer = e.kind == Kind::Send || e.kind == Kind::Receive;
  int64_t most = isTransfer && e.isGradient ? list.gradientSlots
                                            : list.slots[virtualStageOf(e)];
  if (e.slot < 0 || e.slot >= most)
    return fail("needs a slot below " + count(most) + ", but got " +
                count(e.slot));
  if (isTransfer)
    return checkTransfer(e);
  bool crosses = e.kind == Kind::Backward && numChunks > 1;
  if (crosses && (e.gradientSlot < 0 || e.gradientSlot >= list.gradientSlots))
    return fail("needs a gradient slot below " + count(list.gradientSlots) +
                ", but got " + count(e.gradientSlot));
  if (!crosses && e.gradientSlot != -1)
    return fail("needs no gradient slot, but got " + count(e.gradientSlot));
  return std::nullopt;
}

Fault StageChecker::needs(const Content &slot, Content::State state,
                          const ScheduleEntry &e, const char *what) {
  if (slot.state == state && slot.chunk == e.chunk &&
      slot.microBatch == e.microBatch)
    return std::nullopt;
  return fail("needs " + ::describe(of(state, e)) + " in its " + what +
              ", but there is " + ::describe(slot));
}

Fault StageChecker::needsFree(const Content &slot, const char *what) {
  if (slot.state == Content::Free)
    return std::nullopt;
  return fail("writes a " + std::string(what) + " that still has " +
              ::describe(slot));
}

void StageChecker::hold(const ScheduleEntry &e) {
  int64_t &now = held[virtualStageOf(e)], &most = mostHeld[virtualStageOf(e)];
  most = std::max(most, ++now);
}

Fault StageChecker::visitReceive(const ScheduleEntry &e) {
  Content &slot = e.isGradient ? gradients[e.slot] : slotOf(e);
  if (Fault fault = needsFree(slot, e.isGradient ? "gradient slot" : "slot"))
    return fault;
  slot = of(e.isGradient ? Content::Incoming : Content::Input, e);
  if (!e.isGradient)
    hold(e);
  return std::nullopt;
}

Fault StageChecker::visitForward(const ScheduleEntry &e) {
  if (Fault fault = e.chunk == 0 ? needsFree(slotOf(e), "slot")
                                 : needs(slotOf(e), Content::Input, e, "slot"))
    return fault;
  if (progressOf(e).forward)
    return fail("goes forward a second time");
  if (Fault fault = addLoss(e, lastLoss))
    return fault;
  if (e.chunk == 0)
    hold(e);
  progressOf(e).forward = true;
  slotOf(e) = of(Content::Kept, e);
  return std::nullopt;
}

Fault StageChecker::addGradients(const ScheduleEntry &e) {
  int64_t &last = added[virtualStageOf(e)];
  if (e.microBatch != last + 1)
    return fail("needs micro-batch " + count(last + 1) +
                " as the next that chunk " + count(e.chunk) +
                " adds to its gradients, but got " + count(e.microBatch));
  last = e.microBatch;
  --remaining;
  --held[virtualStageOf(e)];
  slotOf(e) = Content();
  return std::nullopt;
}

/// Tasks of the last chunk make losses: those of the forward pass, or with a
/// head in parts those of backward.
Fault StageChecker::addLoss(const ScheduleEntry &e, int64_t &last) {
  if (e.chunk != numChunks - 1)
    return std::nullopt;
  if (e.microBatch != last + 1)
    return fail("needs micro-batch " + count(last + 1) +
                " as the next whose loss chunk " + count(e.chunk) +
                " may add, but got " + count(e.microBatch));
  last = e.microBatch;
  return std::nullopt;
}

Fault StageChecker::visitBackward(const ScheduleEntry &e) {
  bool isLast = e.chunk == numChunks - 1;
  if (Fault fault = needs(slotOf(e), Content::Kept, e, "slot"))
    return fault;
  if (!isLast && !progressOf(e).sent)
    return fail("needs the activation of its micro-batch to be sent, but it "
                "is not");
  if (numChunks > 1) {
    Content &gradient = gradients[e.gradientSlot];
    if (Fault fault =
            isLast ? needsFree(gradient, "gradient slot")
                   : needs(gradient, Content::Incoming, e, "gradient slot"))
      return fault;
    gradient = e.chunk == 0 ? Content() : of(Content::Outgoing, e);
  }
  if (Fault fault = addLoss(e, lastHead))
    return fault;
  progressOf(e).backward = true;
  if (!splits)
    return addGradients(e);
  slotOf(e) = of(Content::ForWeights, e);
  return std::nullopt;
}

Fault StageChecker::visitWeight(const ScheduleEntry &e) {
  if (Fault fault = needs(slotOf(e), Content::ForWeights, e, "slot"))
    return fault;
  progressOf(e).weight = true;
  return addGradients(e);
}

Fault StageChecker::visitSend(const ScheduleEntry &e) {
  if (!e.isGradient) {
    if (Fault fault = needs(slotOf(e), Content::Kept, e, "slot"))
      return fault;
    if (progressOf(e).sent)
      return fail("sends a second time");
    progressOf(e).sent = true;
    return std::nullopt;
  }
  Content &slot = gradients[e.slot];
  if (Fault fault = needs(slot, Content::Outgoing, e, "gradient slot"))
    return fault;
  progressOf(e).sentGradient = true;
  slot = Content();
  return std::nullopt;
}

Fault StageChecker::visit(const ScheduleEntry &e) {
  switch (e.kind) {
  case Kind::Update:
    return entry + 1 == list.entries.size()
               ? std::nullopt
               : fail("needs to be the last entry of its stage, but others "
                      "follow");
  case Kind::Reduce:
  case Kind::Gather:
    return checkGroup(e);
  default:
    break;
  }
  if (Fault fault = checkNumbers(e))
    return fault;
  switch (e.kind) {
  case Kind::Forward:
    return visitForward(e);
  case Kind::Backward:
    return visitBackward(e);
  case Kind::Weight:
    return visitWeight(e);
  case Kind::Send:
    return visitSend(e);
  default:
    return visitReceive(e);
  }
}

/// At the end every micro-batch has been everywhere, and no slot is for
/// nothing.
Fault StageChecker::checkEnd() {
  for (int64_t v = 0; v < shape.virtualStages; ++v) {
    int64_t chunk = v * shape.stages + stage;
    for (int64_t batch = 0; batch < shape.microBatches; ++batch) {
      const Progress &of = progress[v * shape.microBatches + batch];
      const char *missing =
          !of.forward                         ? "forward"
          : chunk + 1 < numChunks && !of.sent ? "send of the activation"
          : !of.backward                      ? "backward"
          : numChunks > 1 && chunk && !of.sentGradient ? "send of the gradient"
          : splits && !of.weight                       ? "backward_weight"
                                                       : nullptr;
      if (missing)
        return fail("needs a " + std::string(missing) + " of micro-batch " +
                    count(batch) + " on chunk " + count(chunk) +
                    ", but has none");
    }
    if (mostHeld[v] != list.slots[v])
      return fail("needs " + count(mostHeld[v]) + " slots of chunk " +
                  count(chunk) +
                  ", the most micro-batches that it has at one time, but got " +
                  count(list.slots[v]));
  }
  return std::nullopt;
}

Fault StageChecker::run() {
  if (Fault fault = checkCounts())
    return fault;
  for (const ScheduleEntry &e : list.entries)
    splits |= e.kind == Kind::Weight;
  for (entry = 0; entry < list.entries.size(); ++entry)
    if (Fault fault = visit(list.entries[entry]))
      return fault;
  return checkEnd();
}

std::optional<ScheduleFault>
reprise::solver::checkStage(const ScheduleTable &table, int64_t stage) {
  return StageChecker(table, stage).run();
}
