//===- StepGraph.cpp - Runs a training step in the mind -------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Solver/StepGraph.h"

#include <algorithm>
#include <limits>

using namespace reprise::solver;

/// A position behind all.
static constexpr int32_t kEnd = std::numeric_limits<int32_t>::max();

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

namespace {
/// Looks for a fault in a graph.
class Checker {
public:
  explicit Checker(const StepGraph &graph)
      : graph(graph), numValues(graph.values.size()), writer(numValues, -1),
        reader(numValues, -1), isWhole(numValues) {}

  std::optional<StepFault> run();

private:
  std::optional<StepFault> checkWhole(int64_t value);
  std::optional<StepFault> checkOp(int64_t op);
  std::optional<StepFault> checkOrder(int64_t op);
  std::optional<StepFault> checkRule(int64_t value);

  const StepGraph &graph;
  int64_t numValues;
  std::vector<int64_t> writer, reader; ///< first op that does; -1: none
  std::vector<bool> isWhole;
};
} // namespace

static StepFault getFaultOfValue(int64_t value, std::string message) {
  return {std::move(message), value, -1};
}

static StepFault getFaultOfOp(int64_t op, std::string message) {
  return {std::move(message), -1, op};
}

/// Parts of parts end at a value that is whole.
std::optional<StepFault> Checker::checkWhole(int64_t number) {
  const StepValue &value = graph.values[number];
  if (value.bytes < 0 || value.whole < -1 || value.whole >= numValues)
    return getFaultOfValue(number, "value '" + value.name + "' has " +
                                       std::to_string(value.bytes) +
                                       " bytes and is part of value " +
                                       std::to_string(value.whole));
  int64_t steps = 0;
  for (int64_t v = value.whole; v >= 0 && v < numValues;
       v = graph.values[v].whole)
    if (++steps > numValues)
      return getFaultOfValue(number,
                             "value '" + value.name + "' is part of itself");
  if (value.whole >= 0)
    isWhole[value.whole] = true;
  return std::nullopt;
}

std::optional<StepFault> Checker::checkOp(int64_t number) {
  const StepOp &op = graph.ops[number];
  if (number > 0 && op.phase < graph.ops[number - 1].phase)
    return getFaultOfOp(number, "op '" + op.name +
                                    "' comes behind ops of a later phase");
  if (!(op.seconds >= 0) || op.workspace < 0)
    return getFaultOfOp(number, "op '" + op.name + "' takes " +
                                    std::to_string(op.seconds) + " s and " +
                                    std::to_string(op.workspace) +
                                    " bytes of workspace");
  for (const std::vector<int64_t> *list : {&op.reads, &op.writes})
    for (int64_t value : *list)
      if (value < 0 || value >= numValues)
        return getFaultOfOp(number, "op '" + op.name + "' has an operand " +
                                        std::to_string(value) + " of " +
                                        std::to_string(numValues));
  for (const StepOp::Sharing &pair : op.sharing)
    if (pair.read < 0 || pair.read >= int64_t(op.reads.size()) ||
        pair.write < 0 || pair.write >= int64_t(op.writes.size()))
      return getFaultOfOp(number,
                          "op '" + op.name + "' shares what it does not have");
  return std::nullopt;
}

std::optional<StepFault> Checker::checkOrder(int64_t number) {
  const StepOp &op = graph.ops[number];
  for (int64_t value : op.reads)
    if (reader[value] < 0)
      reader[value] = number;
  for (int64_t value : op.writes) {
    if (writer[value] >= 0)
      return getFaultOfOp(number, "value '" + graph.values[value].name +
                                      "' is written twice");
    writer[value] = number;
    if (reader[value] >= 0)
      return getFaultOfOp(number, "value '" + graph.values[value].name +
                                      "' is read before it is written");
  }
  return std::nullopt;
}

std::optional<StepFault> Checker::checkRule(int64_t number) {
  const StepValue &value = graph.values[number];
  bool isForward = writer[number] >= 0 &&
                   graph.ops[writer[number]].phase == StepPhase::Forward;
  if (value.rule == StepValue::Rule::Keep ||
      (isForward && value.whole < 0 && !isWhole[number] && !value.isReturned))
    return std::nullopt;
  return getFaultOfValue(
      number, "value '" + value.name +
                  "' needs to be a whole one that the forward pass makes for "
                  "backward, to be dropped");
}

std::optional<StepFault> Checker::run() {
  if (graph.alignment < 1 || graph.microBatches < 1)
    return StepFault{
        "needs an alignment and a number of micro-batches of at least 1, "
        "but got " +
            std::to_string(graph.alignment) + " and " +
            std::to_string(graph.microBatches),
        -1, -1};
  for (int64_t value = 0; value < numValues; ++value)
    if (auto fault = checkWhole(value))
      return fault;
  for (size_t op = 0; op < graph.ops.size(); ++op) {
    if (auto fault = checkOp(op))
      return fault;
    if (auto fault = checkOrder(op))
      return fault;
  }
  for (int64_t value = 0; value < numValues; ++value)
    if (auto fault = checkRule(value))
      return fault;
  return std::nullopt;
}

std::optional<StepFault> reprise::solver::findFault(const StepGraph &graph) {
  return Checker(graph).run();
}

std::optional<std::string> reprise::solver::check(const StepGraph &graph) {
  if (std::optional<StepFault> fault = findFault(graph))
    return fault->message;
  return std::nullopt;
}

std::vector<int64_t> reprise::solver::getChoices(const StepGraph &graph) {
  std::vector<int64_t> choices;
  for (size_t v = 0; v < graph.values.size(); ++v)
    if (graph.values[v].rule == StepValue::Rule::Free)
      choices.push_back(v);
  return choices;
}

KeptValues reprise::solver::keepAll(const StepGraph &graph) {
  KeptValues kept(graph.values.size());
  for (size_t v = 0; v < kept.size(); ++v)
    kept[v] = graph.values[v].rule != StepValue::Rule::Drop;
  return kept;
}

//===----------------------------------------------------------------------===//
// What runs
//===----------------------------------------------------------------------===//

StepSimulator::StepSimulator(const StepGraph &graph)
    : graph(graph), writer(graph.values.size(), -1),
      isDecidable(graph.values.size()), isReplayed(graph.ops.size()),
      isRebuilt(graph.values.size()) {
  for (size_t op = 0; op < graph.ops.size(); ++op)
    for (int64_t value : graph.ops[op].writes) {
      writer[value] = op;
      isDecidable[value] = graph.ops[op].phase == StepPhase::Forward &&
                           graph.values[value].rule != StepValue::Rule::Keep;
    }
  fillTables();
  while (numForward < graph.ops.size() &&
         graph.ops[numForward].phase == StepPhase::Forward)
    emit(numForward++, /*isReplay=*/false);
}

void StepSimulator::fillTables() {
  Instance numValues = graph.values.size();
  for (Instance v = 0; v < numValues; ++v) {
    const StepValue &value = graph.values[v];
    tables.bytes.push_back(align(value.bytes));
    tables.viewOf.push_back(value.isView ? value.whole : -1);
    tables.ownRoot.push_back(v);
    for (Instance whole; (whole = wholeOf(tables.ownRoot[v])) >= 0;)
      tables.ownRoot[v] = whole;
    if (value.isReturned)
      tables.returned.push_back(v);
  }
  for (Instance replayed = numValues; replayed < 2 * numValues; ++replayed)
    tables.ownRoot.push_back(replayed);
  tables.viewOf.resize(2 * numValues, -1);
  for (const StepOp &op : graph.ops) {
    tables.decidableBegin.push_back(tables.decidable.size());
    for (int64_t value : op.reads)
      if (isDecidable[value])
        tables.decidable.push_back(value);
  }
  tables.decidableBegin.push_back(tables.decidable.size());
}

void StepSimulator::emit(int64_t op, bool isReplay) {
  result.schedule.push_back({op, isReplay});
  operandsBegin.push_back(operands.size());
  for (int64_t value : graph.ops[op].reads)
    operands.push_back(resolve(value));
}

/// The ops that have to run again for what `op` reads, into `ops`.
void StepSimulator::take(int64_t op, const KeptValues &kept,
                         std::vector<int64_t> &ops) {
  for (int32_t k = tables.decidableBegin[op]; k < tables.decidableBegin[op + 1];
       ++k) {
    int64_t value = tables.decidable[k];
    if (kept[value] || isReplayed[writer[value]])
      continue;
    isReplayed[writer[value]] = true;
    ops.push_back(writer[value]);
  }
}

std::vector<int64_t> StepSimulator::getReplays(const KeptValues &kept,
                                               double &seconds) {
  seconds = 0;
  std::vector<int64_t> replays;
  std::fill(isReplayed.begin(), isReplayed.end(), false);
  for (size_t op = numForward; op < graph.ops.size(); ++op)
    take(op, kept, replays);
  for (size_t next = 0; next < replays.size(); ++next)
    take(replays[next], kept, replays);
  std::sort(replays.begin(), replays.end());
  for (int64_t op : replays)
    seconds += graph.ops[op].seconds;
  return replays;
}

/// The forward pass is the same in all runs.
void StepSimulator::schedule(const KeptValues &kept) {
  result.replaySeconds = 0;
  result.isPossible = true;
  if (operandsBegin.size() > numForward)
    operands.resize(operandsBegin[numForward]);
  result.schedule.resize(numForward);
  operandsBegin.resize(numForward);
  std::fill(isReplayed.begin(), isReplayed.end(), false);
  std::fill(isRebuilt.begin(), isRebuilt.end(), false);
  for (size_t op = numForward; op < graph.ops.size(); ++op) {
    pending.clear();
    take(op, kept, pending);
    for (size_t next = 0; next < pending.size(); ++next)
      take(pending[next], kept, pending);
    std::sort(pending.begin(), pending.end());
    for (int64_t again : pending) {
      emit(again, true);
      result.replaySeconds += graph.ops[again].seconds;
      result.isPossible &= graph.ops[again].isReplayable;
      for (int64_t value : graph.ops[again].writes)
        isRebuilt[value] = isDecidable[value] && !kept[value];
    }
    emit(op, false);
  }
  operandsBegin.push_back(operands.size());
}

//===----------------------------------------------------------------------===//
// What is alive
//===----------------------------------------------------------------------===//

StepSimulator::Instance StepSimulator::wholeOf(Instance instance) const {
  Instance numValues = graph.values.size();
  // Parts and wholes are never made again.
  return instance < numValues ? graph.values[instance].whole : -1;
}

void StepSimulator::findLives() {
  lastUse.assign(tables.ownRoot.size(), -1);
  int32_t end = result.schedule.size();
  for (int32_t p = 0; p < end; ++p)
    for (int32_t k = operandsBegin[p]; k < operandsBegin[p + 1]; ++k)
      for (Instance i = operands[k]; i >= 0; i = tables.viewOf[i])
        lastUse[i] = p;
  for (Instance v : tables.returned)
    lastUse[v] = kEnd;
}

void StepSimulator::share() {
  int32_t numValues = graph.values.size(), end = result.schedule.size();
  root = tables.ownRoot;
  for (int32_t p = 0; p < end; ++p) {
    const StepOp &op = graph.ops[result.schedule[p].op];
    if (op.sharing.empty())
      continue;
    int32_t shift = result.schedule[p].isReplay ? numValues : 0;
    const Instance *reads = operands.data() + operandsBegin[p];
    size_t numReads = op.reads.size();
    auto isShared = [&](int64_t write) {
      Instance instance = op.writes[write] + shift;
      return root[instance] != instance;
    };
    for (const StepOp::Sharing &pair : op.sharing)
      if (pair.isForced && !isShared(pair.write))
        root[op.writes[pair.write] + shift] = root[reads[pair.read]];
    for (const StepOp::Sharing &pair : op.sharing) {
      Instance from = reads[pair.read], to = op.writes[pair.write] + shift;
      if (pair.isForced || isShared(pair.write) || lastUse[from] != p ||
          wholeOf(from) >= 0 || lastUse[to] == kEnd || outlives(root[from]))
        continue;
      int64_t readers = 0, writers = 0;
      for (size_t k = 0; k < numReads; ++k)
        readers += root[reads[k]] == root[from];
      for (int64_t other : op.writes)
        writers += root[other + shift] == root[from];
      if (readers == 1 && writers == 0)
        root[to] = root[from];
    }
  }
}

void StepSimulator::sweep() {
  int32_t numValues = graph.values.size(), end = result.schedule.size();
  first.assign(2 * numValues, kEnd);
  last.assign(2 * numValues, -1);
  changes.assign(end + 1, 0);
  for (int32_t p = 0; p < end; ++p) {
    const StepOp &op = graph.ops[result.schedule[p].op];
    int32_t shift = result.schedule[p].isReplay ? numValues : 0;
    for (int64_t value : op.writes) {
      Instance at = root[value + shift];
      first[at] = std::min(first[at], p);
      last[at] = std::max({last[at], p, lastUse[value + shift]});
    }
    for (int32_t k = operandsBegin[p]; k < operandsBegin[p + 1]; ++k)
      last[root[operands[k]]] = std::max(last[root[operands[k]]], p);
    if (op.workspace) {
      int64_t bytes = align(op.workspace);
      changes[p] += bytes;
      changes[p + 1] -= bytes;
    }
  }
  for (Instance i = 0; i < 2 * numValues; ++i) {
    if (first[i] == kEnd || outlives(i))
      continue;
    int64_t bytes = tables.bytes[i < numValues ? i : i - numValues];
    last[i] = std::min(last[i], end - 1);
    changes[first[i]] += bytes;
    changes[last[i] + 1] -= bytes;
  }
  addUp();
}

/// The bytes alive at each position, from what begins and ends there.
void StepSimulator::addUp() {
  size_t end = result.schedule.size();
  result.live.resize(end);
  result.peak = 0;
  result.peakPosition = 0;
  int64_t bytes = 0;
  for (size_t p = 0; p < end; ++p) {
    bytes += changes[p];
    result.live[p] = bytes;
    if (bytes > result.peak) {
      result.peak = bytes;
      result.peakPosition = p;
    }
  }
}

const StepRun &StepSimulator::run(const KeptValues &kept) {
  schedule(kept);
  findLives();
  share();
  sweep();
  return result;
}

int64_t StepSimulator::getBytesAcross(int64_t position) const {
  int64_t numValues = graph.values.size(), bytes = 0;
  for (int64_t i = 0; i < 2 * numValues; ++i)
    if (first[i] < position && last[i] >= position && !outlives(i))
      bytes += tables.bytes[i % numValues];
  return bytes;
}

int64_t StepSimulator::getGradientBytes(int64_t position) const {
  int64_t numValues = graph.values.size();
  const StepRun::Position &at = result.schedule[position];
  std::vector<Instance> taken;
  for (int64_t k = operandsBegin[position]; k < operandsBegin[position + 1];
       ++k)
    if (int64_t op = writer[operands[k] % numValues];
        op >= 0 && graph.ops[op].phase == StepPhase::Forward)
      taken.push_back(root[operands[k]]);
  int64_t bytes = graph.ops[at.op].workspace;
  for (int64_t p = 0; p <= position; ++p) {
    const StepOp &op = graph.ops[result.schedule[p].op];
    if (op.phase == StepPhase::Forward)
      continue;
    for (int64_t value : op.writes) {
      Instance place = root[value];
      bool outlives = place < numValues && graph.values[place].outlives;
      if (last[place] < position || outlives ||
          std::count(taken.begin(), taken.end(), place))
        continue;
      taken.push_back(place);
      bytes += graph.values[place % numValues].bytes;
    }
  }
  return bytes;
}

std::vector<std::pair<StepBuffer, StepSimulator::Instance>>
StepSimulator::listBuffers() const {
  std::vector<std::pair<StepBuffer, Instance>> buffers;
  Instance numValues = graph.values.size();
  for (Instance i = 0; i < 2 * numValues; ++i)
    if (first[i] != kEnd && !outlives(i))
      buffers.push_back({{i % numValues, i >= numValues,
                          graph.values[i % numValues].bytes, first[i], last[i]},
                         i});
  for (size_t p = 0; p < result.schedule.size(); ++p)
    if (int64_t bytes = graph.ops[result.schedule[p].op].workspace)
      buffers.push_back({{-1, false, bytes, int64_t(p), int64_t(p)}, -1});
  std::stable_sort(buffers.begin(), buffers.end(),
                   [](const auto &a, const auto &b) {
                     return a.first.first < b.first.first;
                   });
  return buffers;
}

std::vector<StepBuffer> StepSimulator::getBuffers() const {
  std::vector<StepBuffer> buffers;
  for (const auto &[buffer, instance] : listBuffers())
    buffers.push_back(buffer);
  return buffers;
}

std::vector<StepTouch> StepSimulator::getTouches() const {
  int64_t numValues = graph.values.size();
  std::vector<StepTouch> touches(result.schedule.size());
  std::vector<int64_t> numberOf(2 * numValues, -1);
  std::vector<std::pair<StepBuffer, Instance>> buffers = listBuffers();
  for (size_t b = 0; b < buffers.size(); ++b)
    if (buffers[b].second >= 0)
      numberOf[buffers[b].second] = b;
  auto add = [&](std::vector<int64_t> &list, Instance instance) {
    int64_t number = numberOf[root[instance]];
    if (number >= 0 && !std::count(list.begin(), list.end(), number))
      list.push_back(number);
  };
  for (size_t p = 0; p < touches.size(); ++p) {
    int64_t shift = result.schedule[p].isReplay ? numValues : 0;
    for (int64_t k = operandsBegin[p]; k < operandsBegin[p + 1]; ++k)
      add(touches[p].reads, operands[k]);
    for (int64_t value : graph.ops[result.schedule[p].op].writes)
      add(touches[p].writes, value + shift);
  }
  for (size_t b = 0; b < buffers.size(); ++b)
    if (buffers[b].second < 0) // A workspace.
      touches[buffers[b].first.first].writes.push_back(b);
  return touches;
}
