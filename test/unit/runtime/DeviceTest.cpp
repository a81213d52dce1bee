//===- DeviceTest.cpp - What every device does ----------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One test that every implementation of `Device` passes: the CPU, and CUDA on
// the stand-in for its driver, with graphs and without. The model computes with
// small whole numbers, so each order of a sum gives the same bits, and the
// expected values are those of a few lines of plain C++.
//
//===----------------------------------------------------------------------===//

#include "DeviceKernels.h"
#include "MicroKernels.h"

#include "runtime/device/Executor.h"
#include "runtime/device/Placement.h"
#include "runtime/transport/Transport.h"

#include <cstring>
#include <gtest/gtest.h>
#include <vector>

using namespace reprise::runtime;
using namespace reprise::runtime::test;

namespace {

constexpr int32_t kMicroBatches = 4;

/// A device, and how its model and options are.
struct Kind {
  const char *name;
  int32_t target;
  int64_t atOnce; ///< Micro-batches of which a GPU has the inputs.
  bool noCudaGraph;
};

void PrintTo(const Kind &kind, std::ostream *out) { *out << kind.name; }

/// The tables of a model with one parameter, for the CPU or for a GPU.
class FewModel {
public:
  explicit FewModel(const Kind &kind) {
    model.abiVersion = REPRISE_ABI_VERSION;
    model.target = kind.target;
    model.name = model.plan = model.modelType = model.configJson = "";
    model.numMicroBatches = model.microBatchesPerRank = kMicroBatches;
    model.reductionGroups = 1;
    model.microBatchSize = 1, model.seqLength = model.vocabSize = kFew;
    addStates();
    addInputs(kind);
    addLaunches();
    addTables();
  }
  FewModel(const FewModel &) = delete;

  RepriseModel model = {};
  RepriseBuffer w, g, count;

private:
  RepriseBuffer allocate(int64_t bytes = kFew * 4) {
    RepriseBuffer buffer = {(model.arenaBytes + 255) / 256 * 256, bytes};
    model.arenaBytes = buffer.offset + bytes;
    return buffer;
  }

  RepriseBuffer addState(const char *name, int32_t kind, int32_t rank) {
    RepriseState state = {};
    state.name = state.hubName = name;
    state.kind = kind;
    state.init = REPRISE_INIT_ZEROS;
    state.parts = 1, state.rank = rank, state.shape[0] = kFew;
    state.buffer = allocate(rank ? kFew * 4 : 4);
    states.push_back(state);
    return state.buffer;
  }

  void addStates() {
    w = addState("w", REPRISE_STATE_PARAMETER, 1);
    g = addState("w", REPRISE_STATE_GRADIENT, 1);
    count = addState("count", REPRISE_STATE_MEASURE, 0);
  }

  void addInputs(const Kind &kind) {
    model.tokens = allocate(), model.targets = allocate();
    model.rng = allocate();
    if (kind.target == REPRISE_TARGET_CUDA) {
      const int64_t begin = model.tokens.offset;
      model.arenaBytes = (model.arenaBytes + 255) / 256 * 256;
      const int64_t bytes = model.arenaBytes - begin;
      model.batches = allocate(bytes * (2 * kind.atOnce - 1));
    }
    for (RepriseBuffer *scalar :
         {&model.lr, &model.biasCorrection1, &model.biasCorrection2,
          &model.loss, &model.gradNorm, &model.evalLoss, &model.position})
      *scalar = allocate(4);
    model.sampleTokens = allocate(), model.logits = allocate();
  }

  void add(int schedule, const char *name, int32_t kind, int32_t callee,
           const std::vector<RepriseBuffer> &args) {
    launches[schedule].push_back({kind, callee, int32_t(buffers.size()),
                                  int32_t(args.size()), 0, 0, /*tasks=*/1,
                                  /*flops=*/1, name});
    buffers.insert(buffers.end(), args.begin(), args.end());
  }

  /// y = x times w, as 2 x 2, between two kernels; a workspace at the end.
  void addLaunches() {
    gemm.m = gemm.n = gemm.k = gemm.lda = gemm.ldb = gemm.ldc = 2;
    gemm.batch[0] = gemm.batch[1] = 1;
    gemm.alpha = 1;
    RepriseBuffer x = allocate(), y = allocate();
    RepriseBuffer workspace = allocate(repriseGemmWorkspaceBytes(&gemm));
    const int32_t kernel = REPRISE_LAUNCH_KERNEL;
    add(0, "look", kernel, kLook, {model.tokens, model.rng, w, x});
    add(0, "y", REPRISE_LAUNCH_GEMM, 0, {x, w, y, workspace});
    add(0, "weigh", kernel, kWeigh, {model.targets, y, model.loss, g, count});
    add(1, "norm", kernel, kAddUp, {g, model.gradNorm});
    add(1, "descend", kernel, kDescend,
        {model.lr, model.biasCorrection1, model.biasCorrection2, w, g});
    add(2, "evaluate", kernel, kEvaluate,
        {model.tokens, model.targets, w, model.evalLoss});
    add(3, "sample", kernel, kSample,
        {model.sampleTokens, model.position, w, model.logits});
  }

  void addTables() {
    for (const FewKernel &kernel : kFewKernels) {
      cudaKernels.push_back({});
      RepriseCudaKernel &row = cudaKernels.back();
      row.name = kernel.name, row.numBuffers = kernel.numBuffers;
      for (int d = 0; d < 3; ++d)
        row.grid[d] = row.block[d] = 1;
    }
    kernels = {{onCpu<kLook>, nullptr, nullptr, nullptr, "look"},
               {onCpu<kWeigh>, nullptr, nullptr, nullptr, "weigh"},
               {onCpu<kAddUp>, nullptr, nullptr, nullptr, "add_up"},
               {onCpu<kDescend>, nullptr, nullptr, nullptr, "descend"},
               {onCpu<kEvaluate>, nullptr, nullptr, nullptr, "evaluate"},
               {onCpu<kSample>, nullptr, nullptr, nullptr, "sample"}};
    image.kernels = cudaKernels.data();
    image.ptx = ".version 8.0";
    image.ptxMajor = 8;
    if (model.target == REPRISE_TARGET_CUDA)
      model.cuda = &image;
    const char *names[] = {"micro", "update", "evaluate", "sample"};
    for (int i = 0; i < 4; ++i)
      schedules.push_back(
          {names[i], launches[i].data(), int32_t(launches[i].size()), 0});
    for (int32_t i = 0; i < kMicroBatches; ++i)
      program.push_back({0, i});
    program.push_back({1, -1});
    model.evaluate = 2, model.sample = 3;
    model.arenaAlignment = 256;
    model.states = states.data(), model.numStates = int32_t(states.size());
    model.kernels = kernels.data(), model.numKernels = kNumFewKernels;
    model.gemms = &gemm, model.numGemms = 1;
    model.microKernels = kMicroKernels, model.numMicroKernels = 1;
    model.schedules = schedules.data(), model.numSchedules = 4;
    model.program = program.data(), model.numEntries = kMicroBatches + 1;
    model.buffers = buffers.data();
  }

  template <int kernel>
  static void onCpu(void *const *buffers, const int64_t *, int64_t, int64_t) {
    kFewKernels[kernel].fn(buffers);
  }

  std::vector<RepriseState> states;
  std::vector<RepriseBuffer> buffers;
  std::vector<RepriseLaunch> launches[4];
  std::vector<RepriseSchedule> schedules;
  std::vector<RepriseEntry> program;
  std::vector<RepriseKernel> kernels;
  std::vector<RepriseCudaKernel> cudaKernels;
  RepriseCudaModule image = {};
  RepriseGemm gemm = {};
};

/// What the model computes, in plain loops.
struct Reference {
  float w[kFew] = {1, 2, 3, 4}, g[kFew] = {}, loss = 0, norm = 0, count = 0;

  static int32_t token(int64_t step, int64_t microBatch, int64_t i) {
    return int32_t((3 * step + microBatch + i * i) % kFew);
  }
  static int32_t target(int64_t step, int64_t microBatch, int64_t i) {
    return int32_t((step + 2 * microBatch + i) % kFew);
  }

  /// Forward and backward of all micro-batches, and the norm.
  void runTo(int64_t step) {
    loss = norm = count = 0;
    for (int64_t batch = 0; batch < kMicroBatches; ++batch, ++count)
      for (int row = 0; row < 2; ++row)
        for (int column = 0; column < 2; ++column) {
          float y = 0;
          for (int k = 0; k < 2; ++k)
            y += (w[token(step, batch, 2 * row + k)] + float(batch)) *
                 w[2 * k + column];
          loss += y * float(target(step, batch, 2 * row + column));
          g[2 * row + column] += y;
        }
    for (float value : g)
      norm += value;
  }

  void descend(float rate) {
    for (int i = 0; i < kFew; ++i) {
      w[i] -= rate * g[i];
      g[i] = 0;
    }
  }
};

class Devices : public testing::TestWithParam<Kind> {
protected:
  Devices() : few(GetParam()), model(few.model) {}

  void SetUp() override {
    setenv("REPRISE_CUDA_PATH", REPRISE_STANDINS, 1);
    setenv("REPRISE_SIMULATOR_KERNELS", REPRISE_DEVICE_KERNELS, 1);
    options.device = model.target == REPRISE_TARGET_CUDA ? "cuda" : "cpu";
    options.noCudaGraph = GetParam().noCudaGraph;
    const RepriseModel *models[] = {&model};
    ASSERT_TRUE(pool.start(2, error) &&
                place(models, 1, options, 0, placement, error) == 0)
        << error.text;
    device = &slot.make(placement, options, arena, pool, alone);
    executor.emplace(model, arena, *device);
    ASSERT_TRUE(device->allocate(error)) << error.text;
  }

  void prepare(bool profile = false) {
    ASSERT_TRUE(executor->prepare(profile, 0, error)) << error.text;
    write(few.w, reference.w);
    write(few.g, reference.g);
  }

  /// From the host to the device, whose arena keeps nothing of it.
  void write(const RepriseBuffer &buffer, const float (&values)[kFew]) {
    arena.touch(buffer);
    memcpy(arena.at<char>(buffer), values, sizeof(values));
    ASSERT_TRUE(arena.handOver(buffer, error)) << error.text;
  }
  std::vector<float> read(const RepriseBuffer &buffer) {
    EXPECT_TRUE(arena.download(buffer, error)) << error.text;
    const float *values = arena.at<float>(buffer);
    return {values, values + buffer.bytes / 4};
  }
  static std::vector<float> all(const float (&values)[kFew]) {
    return {values, values + kFew};
  }
  float scalar(const RepriseBuffer &buffer) { return *arena.at<float>(buffer); }
  void setScalar(const RepriseBuffer &buffer, float value) {
    arena.touch(buffer);
    *arena.at<float>(buffer) = value;
  }

  void writeInputs(int64_t step, int64_t first) {
    DeviceInputs &inputs = device->nextInputs();
    ASSERT_TRUE(inputs.begin(error)) << error.text;
    for (int64_t i = 0; i < inputs.count(); ++i) {
      MicroBatch batch = executor->inputs(i);
      for (int64_t j = 0; j < kFew; ++j) {
        batch.tokens[j] = Reference::token(step, first + i, j);
        batch.targets[j] = Reference::target(step, first + i, j);
      }
      batch.rng[3] = uint32_t(first + i);
    }
    ASSERT_TRUE(inputs.send(error)) << error.text;
  }

  /// As the trainer: inputs of the next turn, of the next step, too, are
  /// written while this one runs.
  void runBatches(int64_t step, bool isApart) {
    setScalar(model.lr, 0.25f);
    setScalar(model.biasCorrection1, 1);
    setScalar(model.biasCorrection2, 0.5f);
    ASSERT_TRUE(device->beginStep(error)) << error.text;
    const int64_t atOnce = device->nextInputs().count();
    for (int begin = 0; begin < model.numEntries;) {
      Turn turn = turnFrom(model, begin, atOnce);
      int64_t first = model.program[begin].microBatch;
      if (!device->isAhead() || (step == 0 && first == 0))
        ASSERT_NO_FATAL_FAILURE(writeInputs(step, first));
      ASSERT_TRUE(executor->runTurn(turn, isApart, error)) << error.text;
      if (device->isAhead()) {
        first += atOnce;
        writeInputs(step + first / kMicroBatches, first % kMicroBatches);
      }
      begin = turn.end;
    }
  }

  void expectResults() {
    EXPECT_EQ(scalar(model.loss), reference.loss);
    EXPECT_EQ(scalar(model.gradNorm), reference.norm);
    EXPECT_EQ(scalar(few.count), reference.count);
  }

  FewModel few;
  RepriseModel &model;
  DeviceOptions options;
  Placement placement;
  ThreadPool pool;
  Arena arena;
  Transport alone;
  DeviceSlot slot;
  Device *device = nullptr;
  std::optional<Executor> executor;
  Reference reference;
  Error error;
};

constexpr float kRate = 0.25f * 0.5f;

} // namespace

TEST_P(Devices, MemoryIsWrittenAndRead) {
  ASSERT_NO_FATAL_FAILURE(prepare());
  EXPECT_EQ(read(few.w), all(reference.w));
  arena.fill({few.w.offset + 4, 4}, 0);
  EXPECT_EQ(read(few.w), (std::vector<float>{1, 0, 3, 4}));
  EXPECT_EQ(read(few.g), all(reference.g));
}

TEST_P(Devices, StepsAddUpAndUpdate) {
  ASSERT_NO_FATAL_FAILURE(prepare());
  for (int64_t step = 0; step < 3; ++step) {
    SCOPED_TRACE(step);
    ASSERT_NO_FATAL_FAILURE(runBatches(step, /*isApart=*/false));
    ASSERT_TRUE(device->endStep(error)) << error.text;
    reference.runTo(step);
    expectResults();
    reference.descend(kRate);
  }
  ASSERT_TRUE(device->finish(error)) << error.text;
  EXPECT_EQ(read(few.w), all(reference.w));
  EXPECT_EQ(read(few.g), all(reference.g));
  EXPECT_TRUE(device->disconnect(error)) << error.text;
}

// Loss and norm come before the update, which the second step does without.
TEST_P(Devices, AnUpdateInTwoParts) {
  ASSERT_NO_FATAL_FAILURE(prepare());
  for (int64_t step = 0; step < 3; ++step) {
    SCOPED_TRACE(step);
    ASSERT_NO_FATAL_FAILURE(runBatches(step, /*isApart=*/true));
    ASSERT_TRUE(device->runNorm(error)) << error.text;
    reference.runTo(step);
    expectResults();
    EXPECT_EQ(read(few.g), all(reference.g));
    ASSERT_TRUE(step == 1 ? device->clearGradients(error)
                          : device->runOptimizer(error))
        << error.text;
    reference.descend(step == 1 ? 0 : kRate);
    EXPECT_EQ(read(few.w), all(reference.w));
    EXPECT_EQ(read(few.g), all(reference.g));
  }
}

// Between two steps, whose inputs may have been sent already.
TEST_P(Devices, ForwardAlone) {
  ASSERT_NO_FATAL_FAILURE(prepare());
  for (int64_t step = 0; step < 2; ++step) {
    ASSERT_NO_FATAL_FAILURE(runBatches(step, /*isApart=*/false));
    ASSERT_TRUE(device->endStep(error)) << error.text;
    reference.runTo(step);
    reference.descend(kRate);
    float expected = 0;
    for (int32_t i = 0; i < kFew; ++i) {
      arena.at<int32_t>(model.tokens)[i] = kFew - 1 - i;
      arena.at<int32_t>(model.targets)[i] = i;
      arena.at<int32_t>(model.sampleTokens)[i] = 10 + i;
      expected += reference.w[kFew - 1 - i] * float(i);
    }
    *arena.at<int32_t>(model.position) = 2;
    ASSERT_TRUE(executor->runEvaluate(error) && executor->runSample(error))
        << error.text;
    EXPECT_EQ(scalar(model.evalLoss), expected);
    for (int64_t i = 0; i < kFew; ++i)
      EXPECT_EQ(arena.at<float>(model.logits)[i], 12 * reference.w[i]);
  }
  EXPECT_EQ(read(few.w), all(reference.w));
}

// Everything that runs in a step lies below the mark of the plan, which is
// reached when all schedules have run.
TEST_P(Devices, TheHighWaterMarkIsThePlan) {
  ASSERT_NO_FATAL_FAILURE(prepare());
  ASSERT_NO_FATAL_FAILURE(runBatches(0, /*isApart=*/false));
  ASSERT_TRUE(device->endStep(error)) << error.text;
  EXPECT_EQ(executor->highWaterBytes(), executor->plannedBytes());
  EXPECT_EQ(executor->plannedBytes(), model.arenaBytes);
}

TEST_P(Devices, AProfileHasEachLaunch) {
  ASSERT_NO_FATAL_FAILURE(prepare(/*profile=*/true));
  ASSERT_NO_FATAL_FAILURE(runBatches(0, /*isApart=*/false));
  ASSERT_TRUE(device->endStep(error)) << error.text;
  reference.runTo(0);
  expectResults();
  ASSERT_TRUE(device->profile().all());
  for (int i = 0; i < 5; ++i)
    EXPECT_GT(device->profile().all()[i], 0) << i;
  device->profile().forget();
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(device->profile().all()[i], 0) << i;
}

// A device that the host does not wait for has a clock of its own.
TEST_P(Devices, WhatItSaysOfItself) {
  ASSERT_NO_FATAL_FAILURE(prepare());
  EXPECT_FALSE(device->profile().all());
  EXPECT_NE(device->facts().name[0], '\0');
  EXPECT_EQ(device->sentBytes(), 0);
  char text[256] = "?";
  device->describe(text, sizeof(text));
  EXPECT_STRNE(text, "?");
  ASSERT_NO_FATAL_FAILURE(runBatches(0, /*isApart=*/false));
  ASSERT_TRUE(device->endStep(error)) << error.text;
  EXPECT_EQ(device->times().span > 0, device->isAhead());
  EXPECT_EQ(device->times().interval, 0);
}

INSTANTIATE_TEST_SUITE_P(
    All, Devices,
    testing::Values(Kind{"Cpu", REPRISE_TARGET_CPU, 1, false},
                    Kind{"Cuda", REPRISE_TARGET_CUDA, kMicroBatches, false},
                    Kind{"CudaOneByOne", REPRISE_TARGET_CUDA, 1, false},
                    Kind{"CudaWithoutGraphs", REPRISE_TARGET_CUDA, 2, true}),
    [](const auto &info) { return std::string(info.param.name); });
