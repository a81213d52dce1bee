//===- ToyModel.h - A model as a compiler would write it --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The next byte from the last one: hidden = dropout(embedding[token]), logits =
// hidden * output^T + bias, mean cross-entropy, AdamW. Its tables have what a
// compiled model's have: kernels with tasks and ids, GEMMs of three forms,
// gradients that add up over micro-batches, scalars, an arena that ends with
// the last buffer.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_UNIT_RUNTIME_TOYMODEL_H
#define REPRISE_TEST_UNIT_RUNTIME_TOYMODEL_H

#include "MicroKernels.h"

#include "reprise/ABI/Model.h"
#include "reprise/ABI/Philox.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace reprise::runtime::test {

constexpr int64_t kVocab = 128, kWidth = 24, kRows = 3, kLength = 21;
constexpr int64_t kTokens = kRows * kLength;
constexpr int32_t kMicroBatches = 2;

inline float *f32(void *const *buffers, int i) {
  return static_cast<float *>(buffers[i]);
}
inline const int32_t *i32(void *const *buffers, int i) {
  return static_cast<const int32_t *>(buffers[i]);
}

/// 0, or what keeps the mean at a dropout rate of 1/8.
inline float dropoutScale(const int32_t *rng, int64_t id, int64_t element) {
  uint64_t seed = uint64_t(uint32_t(rng[1])) << 32 | uint32_t(rng[0]);
  uint32_t word = reprisePhilox(seed, uint32_t(rng[2]), uint32_t(rng[3]),
                                uint32_t(id), uint64_t(element));
  return word >= (1u << 29) ? 8.0f / 7.0f : 0.0f;
}

/// tokens, rng, embedding -> hidden; a task is a token.
inline void embed(void *const *b, const int64_t *ids, int64_t begin,
                  int64_t end) {
  for (int64_t n = begin; n < end; ++n)
    for (int64_t i = 0; i < kWidth; ++i)
      f32(b, 3)[n * kWidth + i] =
          f32(b, 2)[i32(b, 0)[n] * kWidth + i] *
          dropoutScale(i32(b, 1), ids[0], n * kWidth + i);
}

/// targets -> losses, logits (in place: their gradient); a task is a token.
inline void crossEntropy(void *const *b, const int64_t *, int64_t begin,
                         int64_t end) {
  const float scale = 1.0f / float(kTokens * kMicroBatches);
  for (int64_t n = begin; n < end; ++n) {
    float *logits = f32(b, 2) + n * kVocab;
    float highest = *std::max_element(logits, logits + kVocab), sum = 0;
    for (int64_t v = 0; v < kVocab; ++v)
      sum += std::exp(logits[v] - highest);
    int32_t target = i32(b, 0)[n];
    f32(b, 1)[n] = (std::log(sum) - (logits[target] - highest)) * scale;
    for (int64_t v = 0; v < kVocab; ++v)
      logits[v] =
          (std::exp(logits[v] - highest) / sum - float(v == target)) * scale;
  }
}

/// losses, loss -> loss; one task.
inline void addLosses(void *const *b, const int64_t *, int64_t, int64_t) {
  for (int64_t n = 0; n < kTokens; ++n)
    *f32(b, 1) += f32(b, 0)[n];
}

/// logits' gradient -> bias gradient, added; a task is a column.
inline void addColumns(void *const *b, const int64_t *, int64_t begin,
                       int64_t end) {
  for (int64_t v = begin; v < end; ++v)
    for (int64_t n = 0; n < kTokens; ++n)
      f32(b, 1)[v] += f32(b, 0)[n * kVocab + v];
}

/// tokens, rng, hidden's gradient -> embedding gradient, added in the order of
/// the tokens; a task is a row of the embedding.
inline void scatter(void *const *b, const int64_t *ids, int64_t begin,
                    int64_t end) {
  for (int64_t n = 0; n < kTokens; ++n) {
    int64_t v = i32(b, 0)[n];
    for (int64_t i = 0; v >= begin && v < end && i < kWidth; ++i)
      f32(b, 3)[v * kWidth + i] +=
          f32(b, 2)[n * kWidth + i] *
          dropoutScale(i32(b, 1), ids[0], n * kWidth + i);
  }
}

/// Three gradients -> their norm; one task.
inline void norm(void *const *b, const int64_t *ids, int64_t, int64_t) {
  float sum = 0;
  for (int i = 0; i < 3; ++i)
    for (int64_t j = 0; j < ids[i]; ++j)
      sum += f32(b, i)[j] * f32(b, i)[j];
  *f32(b, 3) = std::sqrt(sum);
}

/// lr, corrections 1 and 2, parameter, gradient (set to zero), moments 1 and 2,
/// loss, norm. Parameter and moments stay if loss or norm are no numbers.
inline void adamw(void *const *b, const int64_t *, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    float g = f32(b, 4)[i];
    f32(b, 4)[i] = 0;
    if (!std::isfinite(*f32(b, 7)) || !std::isfinite(*f32(b, 8)))
      continue;
    float m = f32(b, 5)[i] = 0.9f * f32(b, 5)[i] + 0.1f * g;
    float v = f32(b, 6)[i] = 0.99f * f32(b, 6)[i] + 0.01f * g * g;
    f32(b, 3)[i] -=
        *f32(b, 0) * (m / *f32(b, 1)) / (std::sqrt(v / *f32(b, 2)) + 1e-8f);
  }
}

/// The tables; lives as long as the model is used.
class ToyModel {
public:
  ToyModel() {
    model.abiVersion = REPRISE_ABI_VERSION;
    model.numMicroBatches = kMicroBatches;
    model.name = "toy \"bigram\"";
    model.plan = "none";
    model.modelType = "toy";
    model.compiler = "a test";
    model.configJson = "{\n  \"model_type\": \"toy\"\n}\n";
    model.microBatchSize = kRows;
    model.seqLength = kLength;
    model.vocabSize = kVocab;
    model.learningRate = 0.05;
    model.beta1 = 0.9;
    model.beta2 = 0.99;
    model.trainIters = model.decayIters = 40;
    model.seed = 1;
    model.evaluate = model.sample = -1;
    build();
    finish();
    setMicroBatches(kMicroBatches);
  }

  RepriseModel model = {};
  std::vector<RepriseLaunch> micro, update;
  std::vector<RepriseSchedule> schedules;
  std::vector<RepriseEntry> program;
  std::vector<RepriseKernel> kernels;
  std::vector<RepriseMicroKernel> microKernels = {kMicroKernels[0],
                                                  kMicroKernels[1]};

  /// Hands the tables to the model; again after a change.
  void finish() {
    model.arenaBytes = end;
    model.arenaAlignment = 1;
    model.categories = categories.data();
    model.numCategories = int32_t(categories.size());
    model.states = states.data();
    model.numStates = int32_t(states.size());
    model.kernels = kernels.data();
    model.numKernels = int32_t(kernels.size());
    model.gemms = gemms.data();
    model.numGemms = int32_t(gemms.size());
    model.microKernels = microKernels.data();
    model.numMicroKernels = int32_t(microKernels.size());
    schedules = {{"micro", micro.data(), int32_t(micro.size()), 0},
                 {"update", update.data(), int32_t(update.size()), 0}};
    model.schedules = schedules.data();
    model.numSchedules = int32_t(schedules.size());
    model.buffers = buffers.data();
    model.ids = ids.data();
  }

  /// A step has so many micro-batches of each rank, and the update.
  void setMicroBatches(int32_t perRank) {
    model.microBatchesPerRank = perRank;
    model.reductionGroups = 1;
    program.clear();
    for (int32_t i = 0; i < perRank; ++i)
      program.push_back({0, i});
    program.push_back({1, -1});
    model.program = program.data();
    model.numEntries = int32_t(program.size());
  }

  void addLaunch(std::vector<RepriseLaunch> &schedule, const char *name,
                 RepriseKernelFn fn, int64_t tasks,
                 std::vector<RepriseBuffer> args,
                 std::vector<int64_t> launchIds = {}) {
    kernels.push_back({fn, nullptr, nullptr, nullptr, name});
    push(schedule, name, REPRISE_LAUNCH_KERNEL, int32_t(kernels.size()) - 1,
         tasks, args, launchIds);
  }

private:
  RepriseBuffer allocate(int64_t bytes) {
    RepriseBuffer buffer = {(end + 63) / 64 * 64, bytes};
    end = buffer.offset + bytes;
    return buffer;
  }

  /// A parameter's four states; the first is where the other three follow.
  size_t addParameter(const char *name, int32_t init, int32_t rank,
                      int64_t rows, int64_t columns) {
    for (int32_t kind = 0; kind < 4; ++kind) {
      RepriseState state = {};
      state.name = state.hubName = name;
      state.kind = kind;
      state.init = kind ? int32_t(REPRISE_INIT_ZEROS) : init;
      state.initStd = 0.1f;
      state.parts = 1;
      state.rank = rank;
      state.elementType = REPRISE_F32;
      state.shape[0] = rows;
      state.shape[1] = columns;
      state.buffer = allocate(rows * columns * 4);
      states.push_back(state);
    }
    return states.size() - 4;
  }

  void push(std::vector<RepriseLaunch> &schedule, const char *name,
            int32_t kind, int32_t callee, int64_t tasks,
            const std::vector<RepriseBuffer> &args,
            const std::vector<int64_t> &launchIds) {
    // So many FLOPs that no launch is too small for a second thread.
    schedule.push_back({kind, callee, int32_t(buffers.size()),
                        int32_t(args.size()), int32_t(ids.size()),
                        int32_t(launchIds.size()), tasks, 1'000'000, name});
    buffers.insert(buffers.end(), args.begin(), args.end());
    ids.insert(ids.end(), launchIds.begin(), launchIds.end());
  }

  void addGemm(const char *name, int64_t m, int64_t n, int64_t k,
               bool transposeA, bool transposeB, bool accumulate,
               std::vector<RepriseBuffer> args) {
    RepriseGemm gemm = {};
    gemm.m = m, gemm.n = n, gemm.k = k;
    gemm.lda = transposeA ? m : k;
    gemm.ldb = transposeB ? k : n;
    gemm.ldc = n;
    gemm.batch[0] = gemm.batch[1] = 1;
    gemm.alpha = 1.0f;
    gemm.transposeA = transposeA, gemm.transposeB = transposeB;
    gemm.accumulate = accumulate;
    gemm.bias = args.size() == 4;
    args.push_back({workspace.offset, repriseGemmWorkspaceBytes(&gemm)});
    gemms.push_back(gemm);
    push(micro, name, REPRISE_LAUNCH_GEMM, int32_t(gemms.size()) - 1, 0, args,
         {});
  }

  void build() {
    size_t embedding =
        addParameter("embedding", REPRISE_INIT_NORMAL, 2, kVocab, kWidth);
    size_t output =
        addParameter("output", REPRISE_INIT_NORMAL, 2, kVocab, kWidth);
    size_t bias = addParameter("bias", REPRISE_INIT_ZEROS, 1, kVocab, 1);
    auto state = [&](size_t parameter, int kind = 0) {
      return states[parameter + size_t(kind)].buffer;
    };
    categories.push_back({"parameters and optimizer", end, {{0, end}, {}}});

    model.tokens = allocate(kTokens * 4);
    model.targets = allocate(kTokens * 4);
    model.rng = allocate(16);
    model.lr = allocate(4);
    model.biasCorrection1 = allocate(4);
    model.biasCorrection2 = allocate(4);
    model.loss = allocate(4);
    RepriseBuffer hidden = allocate(kTokens * kWidth * 4);
    RepriseBuffer hiddenGrad = allocate(kTokens * kWidth * 4);
    RepriseBuffer logits = allocate(kTokens * kVocab * 4);
    RepriseBuffer losses = allocate(kTokens * 4);
    // Room for the largest of the three GEMMs: k = 128, m + n = 128 at most.
    workspace = allocate(4 * 128 * (144 + 128));
    model.gradNorm = allocate(4);
    RepriseBuffer rest = {categories[0].bytes, end - categories[0].bytes};
    categories.push_back({"activations", rest.bytes, {rest, {}}});

    const int64_t dropoutId = 7;
    addLaunch(micro, "embed", embed, kTokens,
              {model.tokens, model.rng, state(embedding), hidden}, {dropoutId});
    addGemm("logits", kTokens, kVocab, kWidth, false, true, false,
            {hidden, state(output), state(bias), logits});
    addLaunch(micro, "loss", crossEntropy, kTokens,
              {model.targets, losses, logits});
    addLaunch(micro, "loss.sum", addLosses, 1, {losses, model.loss});
    addGemm("output.grad", kVocab, kWidth, kTokens, true, false, true,
            {logits, hidden, state(output, REPRISE_STATE_GRADIENT)});
    addGemm("hidden.grad", kTokens, kWidth, kVocab, false, false, false,
            {logits, state(output), hiddenGrad});
    addLaunch(micro, "bias.grad", addColumns, kVocab,
              {logits, state(bias, REPRISE_STATE_GRADIENT)});
    addLaunch(micro, "embedding.grad", scatter, kVocab,
              {model.tokens, model.rng, hiddenGrad,
               state(embedding, REPRISE_STATE_GRADIENT)},
              {dropoutId});
    addLaunch(update, "norm", norm, 1,
              {state(embedding, REPRISE_STATE_GRADIENT),
               state(output, REPRISE_STATE_GRADIENT),
               state(bias, REPRISE_STATE_GRADIENT), model.gradNorm},
              {kVocab * kWidth, kVocab * kWidth, kVocab});
    for (size_t parameter : {embedding, output, bias})
      addLaunch(update, "adamw", adamw, state(parameter).bytes / 4,
                {model.lr, model.biasCorrection1, model.biasCorrection2,
                 state(parameter, REPRISE_STATE_PARAMETER),
                 state(parameter, REPRISE_STATE_GRADIENT),
                 state(parameter, REPRISE_STATE_MOMENT1),
                 state(parameter, REPRISE_STATE_MOMENT2), model.loss,
                 model.gradNorm});
  }

  int64_t end = 0;
  RepriseBuffer workspace = {};
  std::vector<RepriseCategory> categories;
  std::vector<RepriseState> states;
  std::vector<RepriseGemm> gemms;
  std::vector<RepriseBuffer> buffers;
  std::vector<int64_t> ids;
};

/// The program that has this model alone.
inline int runProgram(int argc, char **argv, const RepriseModel &model) {
  const RepriseModel *models[] = {&model};
  return repriseMain(argc, argv, models, 1);
}

} // namespace reprise::runtime::test

#endif // REPRISE_TEST_UNIT_RUNTIME_TOYMODEL_H
