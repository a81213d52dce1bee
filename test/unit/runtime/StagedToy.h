//===- StagedToy.h - The toy in stages --------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One step of two micro-batches:
//
//   stage 0   embed 0, send, embed 1, send, receive, scatter 0, receive,
//             scatter 1 | squares, sums, root, adamw
//   stage 1   receive, logits 0 ... hidden.grad 0, send, receive, logits 1 ...
//             send                | squares, sums, root, adamw of two
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_UNIT_RUNTIME_STAGEDTOY_H
#define REPRISE_TEST_UNIT_RUNTIME_STAGEDTOY_H

#include "ToyModel.h"

#include <cstring>
#include <string>

namespace reprise::runtime::test {

/// The model of a stage, with the arena of the whole and more behind it.
struct ToyStage {
  ToyStage(const ToyModel &whole, int stage, const RepriseAxis *axes)
      : model(whole.model),
        states(whole.model.states, whole.model.states + whole.model.numStates),
        kernels(whole.kernels) {
    model.stage = stage, model.axes = axes, model.numAxes = 1;
    for (int32_t i = 0; i < kMicroBatches; ++i)
      inputs.push_back({allocate(model.tokens.bytes),
                        allocate(model.targets.bytes),
                        allocate(model.rng.bytes)});
    before = {model.tokens, model.targets, model.rng};
    squares = allocate(4);
    workspace = allocate(4 * axes[0].size);
    program = {{0, 0}, {1, -1}};
  }
  ToyStage(const ToyStage &) = delete;

  RepriseBuffer allocate(int64_t bytes) {
    RepriseBuffer buffer = {(model.arenaBytes + 63) / 64 * 64, bytes};
    model.arenaBytes = buffer.offset + bytes;
    return buffer;
  }

  /// Adds a launch with these buffers.
  void add(std::vector<RepriseLaunch> &schedule, RepriseLaunch launch,
           const std::vector<RepriseBuffer> &args,
           const std::vector<int64_t> &launchIds = {}) {
    launch.firstBuffer = int32_t(buffers.size());
    launch.numBuffers = int32_t(args.size());
    launch.firstId = int32_t(ids.size());
    launch.numIds = int32_t(launchIds.size());
    schedule.push_back(launch);
    buffers.insert(buffers.end(), args.begin(), args.end());
    ids.insert(ids.end(), launchIds.begin(), launchIds.end());
  }
  /// Adds one of the whole, for a micro-batch or for none.
  void copy(std::vector<RepriseLaunch> &schedule, const ToyModel &whole,
            const RepriseLaunch &launch, int microBatch = -1) {
    const RepriseBuffer *args = whole.model.buffers + launch.firstBuffer;
    const int64_t *given = whole.model.ids + launch.firstId;
    std::vector<RepriseBuffer> own(args, args + launch.numBuffers);
    for (RepriseBuffer &arg : own)
      if (microBatch >= 0) {
        const RepriseInputs &row = inputs[size_t(microBatch)];
        arg = arg.offset == before.tokens.offset    ? row.tokens
              : arg.offset == before.targets.offset ? row.targets
              : arg.offset == before.rng.offset     ? row.rng
                                                    : arg;
      }
    add(schedule, launch, own, {given, given + launch.numIds});
  }
  void addCollective(std::vector<RepriseLaunch> &schedule, const char *name,
                     RepriseCollective row, std::vector<RepriseBuffer> args) {
    RepriseLaunch launch = {};
    launch.kind = REPRISE_LAUNCH_COLLECTIVE, launch.name = name;
    for (launch.callee = 0; launch.callee < int32_t(collectives.size());
         ++launch.callee)
      if (!memcmp(&collectives[size_t(launch.callee)], &row, sizeof(row)))
        break;
    if (launch.callee == int32_t(collectives.size()))
      collectives.push_back(row);
    add(schedule, launch, args);
  }
  void addKernel(std::vector<RepriseLaunch> &schedule, const char *name,
                 RepriseKernelFn fn, const std::vector<RepriseBuffer> &args) {
    kernels.push_back({fn, nullptr, nullptr, nullptr, name});
    RepriseLaunch launch = {};
    launch.kind = REPRISE_LAUNCH_KERNEL, launch.name = name;
    launch.callee = int32_t(kernels.size()) - 1, launch.tasks = 1;
    add(schedule, launch, args);
  }

  /// Hands the tables to the model; again after a change.
  void finish() {
    model.tokens = inputs[0].tokens, model.targets = inputs[0].targets;
    model.rng = inputs[0].rng;
    model.inputs = inputs.data(), model.numInputs = int32_t(inputs.size());
    model.states = states.data();
    model.kernels = kernels.data(), model.numKernels = int32_t(kernels.size());
    model.collectives = collectives.data();
    model.numCollectives = int32_t(collectives.size());
    schedules = {{"step", step.data(), int32_t(step.size()), 0},
                 {"update", update.data(), int32_t(update.size()), 0}};
    model.schedules = schedules.data(), model.numSchedules = 2;
    model.program = program.data(), model.numEntries = int32_t(program.size());
    model.buffers = buffers.data(), model.ids = ids.data();
  }

  RepriseModel model;
  std::vector<RepriseState> states;
  std::vector<RepriseKernel> kernels;
  std::vector<RepriseInputs> inputs;
  std::vector<RepriseCollective> collectives;
  std::vector<RepriseLaunch> step, update;
  std::vector<RepriseSchedule> schedules;
  std::vector<RepriseEntry> program;
  std::vector<RepriseBuffer> buffers;
  std::vector<int64_t> ids;
  RepriseInputs before = {}; ///< Those of the whole.
  RepriseBuffer squares = {}, workspace = {};
};

/// The sum of the squares of all buffers but the last, which it becomes.
template <int kBuffers>
void sumSquares(void *const *b, const int64_t *counts, int64_t, int64_t) {
  float sum = 0;
  for (int i = 0; i < kBuffers; ++i)
    for (int64_t j = 0; j < counts[i]; ++j)
      sum += f32(b, i)[j] * f32(b, i)[j];
  *f32(b, kBuffers) = sum;
}

inline void root(void *const *b, const int64_t *, int64_t, int64_t) {
  *f32(b, 1) = std::sqrt(*f32(b, 0));
}

/// The toy in two stages, on two ranks.
class StagedToy {
public:
  static constexpr RepriseAxis kAxes[] = {{"pp", 2, 0}};
  /// Of the collectives of the second stage.
  static constexpr size_t kReceive = 0, kSum = 2;

  explicit StagedToy(const ToyModel &toy)
      : stages{{toy, 0, kAxes}, {toy, 1, kAxes}}, whole(toy) {
    // Four states of each parameter, in this order.
    for (ToyStage &stage : stages)
      for (size_t i = 0; i < stage.states.size(); ++i) {
        RepriseState &state = stage.states[i];
        state.stage = i < 4 ? 0 : 1;
        if (state.stage != stage.model.stage)
          state.isElsewhere = 1, state.buffer = {};
      }
    for (int i = 0; i < kMicroBatches; ++i) {
      copy(0, "embed", i);
      transfer(0, "hidden.send", REPRISE_COLLECTIVE_SEND, 0, argOf("embed", 3));
    }
    for (int i = 0; i < kMicroBatches; ++i) {
      transfer(0, "grad.receive", REPRISE_COLLECTIVE_RECEIVE, 1,
               argOf("embedding.grad", 2));
      copy(0, "embedding.grad", i);
      transfer(1, "hidden.receive", REPRISE_COLLECTIVE_RECEIVE, 0,
               argOf("embed", 3));
      for (const char *name : {"logits", "loss", "loss.sum", "output.grad",
                               "hidden.grad", "bias.grad"})
        copy(1, name, i);
      transfer(1, "grad.send", REPRISE_COLLECTIVE_SEND, 1,
               argOf("embedding.grad", 2));
    }
    for (ToyStage &stage : stages)
      addUpdate(stage);
  }

  /// One model for each stage.
  std::vector<const RepriseModel *> models() const {
    return {&stages[0].model, &stages[1].model};
  }

  void setPlaces(int64_t places) {
    for (ToyStage &stage : stages)
      for (RepriseCollective &row : stage.collectives)
        if (row.operation >= REPRISE_COLLECTIVE_SEND)
          row.blocks = places;
  }

  ToyStage stages[2];

private:
  const RepriseLaunch &find(const char *name) const {
    return *std::find_if(whole.micro.begin(), whole.micro.end(),
                         [&](const RepriseLaunch &launch) {
                           return !strcmp(launch.name, name);
                         });
  }
  RepriseBuffer argOf(const char *name, int i) const {
    return whole.model.buffers[find(name).firstBuffer + i];
  }
  void copy(int stage, const char *name, int microBatch) {
    stages[stage].copy(stages[stage].step, whole, find(name), microBatch);
  }
  void transfer(int stage, const char *name, int32_t operation, int32_t lane,
                RepriseBuffer buffer) {
    stages[stage].addCollective(stages[stage].step, name,
                                {operation, 0, REPRISE_F32, 1 - stage, lane, 0,
                                 0, 0, 2, buffer.bytes / 4, 0, 0},
                                {buffer});
  }
  void addUpdate(ToyStage &stage) {
    std::vector<RepriseBuffer> args;
    std::vector<int64_t> counts;
    for (const RepriseState &state : stage.states)
      if (state.kind == REPRISE_STATE_GRADIENT && !state.isElsewhere) {
        args.push_back(state.buffer);
        counts.push_back(state.buffer.bytes / 4);
      }
    stage.addKernel(stage.update, "squares",
                    args.size() == 1 ? sumSquares<1> : sumSquares<2>, {});
    args.push_back(stage.squares);
    const RepriseLaunch squares = stage.update.back();
    stage.update.pop_back();
    stage.add(stage.update, squares, args, counts);
    stage.addCollective(stage.update, "sums",
                        {REPRISE_COLLECTIVE_ALL_REDUCE, 0, REPRISE_F32, 0, 0, 0,
                         0, 0, 0, 0, 0, 0},
                        {stage.model.loss, stage.squares, stage.workspace});
    stage.addKernel(stage.update, "root", root,
                    {stage.squares, stage.model.gradNorm});
    for (size_t i = 1; i < whole.update.size(); ++i)
      if ((i == 1) == (stage.model.stage == 0))
        stage.copy(stage.update, whole, whole.update[i]);
    stage.finish();
  }

  const ToyModel &whole;
};

/// Three stages, each of which has its number, from 1, as loss and adds up
/// those of the first and the last, or of all.
class SomeStages {
public:
  static constexpr RepriseAxis kAxes[] = {{"pp", 3, 0}};

  SomeStages(const ToyModel &whole, int32_t members)
      : stages{{whole, 0, kAxes}, {whole, 1, kAxes}, {whole, 2, kAxes}} {
    constexpr RepriseKernelFn kNumbers[] = {number<1>, number<2>, number<3>};
    for (ToyStage &stage : stages) {
      const int own = stage.model.stage;
      stage.addKernel(stage.step, "number", kNumbers[own],
                      {stage.inputs[1].rng, stage.model.loss});
      if (members == 0 || own != 1)
        stage.addCollective(stage.update, "sum",
                            {REPRISE_COLLECTIVE_ALL_REDUCE, 0, REPRISE_F32, 0,
                             0, 0, 2, members, 0, 0, 0, 0},
                            {stage.model.loss, stage.workspace});
      stage.addKernel(stage.update, "root", root,
                      {stage.model.loss, stage.model.gradNorm});
      stage.finish();
    }
  }
  std::vector<const RepriseModel *> models() const {
    return {&stages[2].model, &stages[0].model, &stages[1].model};
  }

private:
  template <int kNumber>
  static void number(void *const *b, const int64_t *, int64_t, int64_t) {
    *f32(b, 1) = kNumber;
  }

  ToyStage stages[3];
};

} // namespace reprise::runtime::test

#endif // REPRISE_TEST_UNIT_RUNTIME_STAGEDTOY_H
