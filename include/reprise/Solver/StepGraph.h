//===- StepGraph.h - A training step, to be run in the mind -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The launches of a step that keeps everything, and what would be alive, and
// replayed, if it kept less. A graph is what any search for a plan runs on:
// bytes are those of the memory planner, sharing of buffers included, and
// replays come where `reprise-remat-apply` puts them, as late as possible and
// each once.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_SOLVER_STEPGRAPH_H
#define REPRISE_SOLVER_STEPGRAPH_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace reprise::solver {

enum class StepPhase { Forward, Backward, Update };

/// What a launch reads or writes.
struct StepValue {
  /// Whether backward may do without it: only what a launch of the forward pass
  /// writes may be anything but `Keep`.
  enum class Rule { Free, Keep, Drop };

  std::string name;
  int64_t bytes = 0;
  Rule rule = Rule::Keep;
  /// A parameter, a state or an input: there all the time, and not counted.
  bool outlives = false;
  /// What is there when the step ends: no other value takes over its bytes.
  bool isReturned = false;
  /// The value that this one is a part of, in its bytes; -1 if it is whole.
  int64_t whole = -1;
  /// Whether it is a view of `whole`, which has to stay as long as it does, and
  /// not a part that `whole` is put together from.
  bool isView = false;
};

/// A launch or GEMM.
struct StepOp {
  /// An operand and a result that may be in the same bytes, or must.
  struct Sharing {
    int64_t read, write; ///< indices into `reads` and `writes`
    bool isForced;
  };

  std::string name;
  StepPhase phase = StepPhase::Forward;
  int64_t layer = -1; ///< -1 in none
  double seconds = 0;
  bool isReplayable = true;
  int64_t workspace = 0; ///< bytes while it runs
  std::vector<int64_t> reads, writes;
  std::vector<Sharing> sharing;
};

struct StepGraph {
  std::vector<StepValue> values;
  std::vector<StepOp> ops; ///< in order: forward, backward, update
  int64_t alignment = 1;   ///< of buffers
  /// How often forward and backward run in a step.
  int64_t microBatches = 1;
};

/// What is wrong with a graph, and of which value or op.
struct StepFault {
  std::string message;
  int64_t value = -1, op = -1; ///< at most one of them
};

/// The first fault of a graph, if it has one: phases or layers out of order, a
/// value that two ops write or that is read before, a rule on what cannot be
/// dropped.
std::optional<StepFault> findFault(const StepGraph &graph);

/// Its message.
std::optional<std::string> check(const StepGraph &graph);

/// The values that a plan may keep or drop.
std::vector<int64_t> getChoices(const StepGraph &graph);

/// Which values are kept for backward, by number. What is not of the forward
/// pass counts as kept.
using KeptValues = std::vector<bool>;

/// Everything that a rule does not drop.
KeptValues keepAll(const StepGraph &graph);

/// No plan has a smaller peak: of all launches of backward and the update, the
/// most that one reads of the forward pass, with what backward hands on there,
/// its workspace, and what rules keep. Far below the least that a chain of
/// layers needs, which holds something of each layer.
int64_t getLeastPeak(const StepGraph &graph);

/// A step as it runs under a plan.
struct StepRun {
  struct Position {
    int64_t op;
    bool isReplay;
  };
  std::vector<Position> schedule;
  std::vector<int64_t> live; ///< bytes at each position
  int64_t peak = 0;
  int64_t peakPosition = 0;
  double replaySeconds = 0; ///< of a micro-batch
  /// Whether an op that cannot run again would have to.
  bool isPossible = true;
};

/// A buffer that one or more values take turns in.
struct StepBuffer {
  int64_t value; ///< the first of them; -1: a workspace
  bool isReplay; ///< of that value
  int64_t bytes;
  int64_t first, last; ///< positions, both included
};

/// What a position reads and writes, as indices of buffers.
struct StepTouch {
  std::vector<int64_t> reads, writes;
};

/// Runs a graph under one plan after another.
class StepSimulator {
public:
  explicit StepSimulator(const StepGraph &graph);

  /// The result is valid until the next run.
  const StepRun &run(const KeptValues &kept);

  /// The buffers of the last run, by their first position.
  std::vector<StepBuffer> getBuffers() const;

  /// For each position of the last run what it touches of `getBuffers`; it
  /// writes its workspace.
  std::vector<StepTouch> getTouches() const;

  /// Bytes of the last run that are written before `position` and read there
  /// or later.
  int64_t getBytesAcross(int64_t position) const;

  /// Bytes at `position` of the last run that are neither of the forward pass
  /// nor of replays: what backward hands on, and the workspace. What takes over
  /// the bytes of an operand of the forward pass there is not counted, nor is
  /// what alignment adds.
  int64_t getGradientBytes(int64_t position) const;

  /// The ops of the forward pass that have to run again where `kept` stays,
  /// and their seconds.
  std::vector<int64_t> getReplays(const KeptValues &kept, double &seconds);

private:
  /// A value, or with `values.size()` added, what a replay makes of it.
  using Instance = int32_t;

  /// Of the graph, one thing in a row for what runs read again and again.
  struct Tables {
    std::vector<int64_t> bytes; ///< of values, aligned
    /// Of instances: the value that it is a view of, -1 for none; and the value
    /// that it is a part of in the end, or itself.
    std::vector<Instance> viewOf, ownRoot;
    std::vector<Instance> returned; ///< values
    /// What ops read that plans may drop, one op after the other.
    std::vector<Instance> decidable;
    std::vector<int32_t> decidableBegin;
  };

  void fillTables();
  void emit(int64_t op, bool isReplay);
  void take(int64_t op, const KeptValues &kept, std::vector<int64_t> &ops);
  void schedule(const KeptValues &kept);
  void findLives();
  void share();
  void sweep();
  void addUp();

  /// Buffers with the instances that they are called by; -1: a workspace.
  std::vector<std::pair<StepBuffer, Instance>> listBuffers() const;
  Instance resolve(int64_t value) const {
    return Instance(value + (isRebuilt[value] ? graph.values.size() : 0));
  }
  Instance wholeOf(Instance instance) const;
  bool outlives(Instance instance) const {
    return instance < Instance(graph.values.size()) &&
           graph.values[instance].outlives;
  }
  int64_t align(int64_t bytes) const {
    return (bytes + graph.alignment - 1) / graph.alignment * graph.alignment;
  }

  const StepGraph &graph;
  std::vector<int64_t> writer; ///< of each value; -1: none
  std::vector<bool> isDecidable;
  Tables tables;
  size_t numForward = 0; ///< ops

  StepRun result;
  std::vector<bool> isReplayed, isRebuilt;
  std::vector<int64_t> pending;
  /// Operands of each position, one after the other.
  std::vector<Instance> operands;
  std::vector<int32_t> operandsBegin;
  std::vector<int32_t> lastUse, first, last;
  std::vector<Instance> root;
  std::vector<int64_t> changes;
};

} // namespace reprise::solver

#endif // REPRISE_SOLVER_STEPGRAPH_H
