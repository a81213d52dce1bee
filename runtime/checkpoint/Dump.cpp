//===- Dump.cpp - The last step as safetensors ----------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dump.h"

#include "Delivery.h"
#include "SafeTensorsWriter.h"
#include "runtime/device/Init.h"
#include "runtime/transport/Parts.h"

#include <algorithm>
#include <cinttypes>
#include <cstdlib>
#include <cstring>

using namespace reprise::runtime;

static constexpr int kNumOtherTensors = 8; // All that are no states.

static const char *prefixOf(int kind) {
  switch (kind) {
  case REPRISE_STATE_PARAMETER:
    return "parameter/";
  case REPRISE_STATE_GRADIENT:
    return "gradient/";
  case REPRISE_STATE_MOMENT1:
    return "moment1/";
  case REPRISE_STATE_MEASURE:
    return "measure/";
  default:
    return "moment2/";
  }
}

/// A working copy is its parameter, rounded: there is no more to tell of it. Of
/// partial sums the gradients tell.
static bool isDumped(const RepriseState &state) {
  return state.kind != REPRISE_STATE_WORKING &&
         state.kind != REPRISE_STATE_PARTIAL;
}

static int64_t wholeElements(const RepriseModel &model,
                             const RepriseState &state) {
  return partOf(model, state, /*rank=*/0).wholeElements();
}

static size_t inputElements(const RepriseModel &model) {
  return size_t(model.microBatchSize * model.seqLength);
}

bool Dump::start(const char *path, Error &error) {
  if (!file.start(path, error))
    return false;
  size_t bytes =
      size_t(model.numStates) * sizeof(char *) +
      size_t(model.microBatchesPerRank) * 4 * (2 * inputElements(model) + 4);
  for (int i = 0; i < model.numStates; ++i)
    if (isDumped(model.states[i]))
      bytes += size_t(wholeElements(model, model.states[i])) * 4;
  memory = static_cast<char *>(malloc(bytes));
  if (!memory)
    return error.set("--dump needs another %zu bytes of memory, which this "
                     "machine does not give",
                     bytes);
  states = reinterpret_cast<char **>(memory);
  char *next = memory + size_t(model.numStates) * sizeof(char *);
  for (int i = 0; i < model.numStates; ++i) {
    states[i] = next;
    if (isDumped(model.states[i]))
      next += wholeElements(model, model.states[i]) * 4;
  }
  tokens = reinterpret_cast<int32_t *>(next);
  targets = tokens + size_t(model.microBatchesPerRank) * inputElements(model);
  rng = targets + size_t(model.microBatchesPerRank) * inputElements(model);
  return true;
}

Dump::~Dump() { free(memory); }

void Dump::keepInputs(int64_t microBatch, const MicroBatch &batch) {
  size_t count = inputElements(model), at = size_t(microBatch) * count;
  memcpy(tokens + at, batch.tokens, 4 * count);
  memcpy(targets + at, batch.targets, 4 * count);
  memcpy(rng + 4 * microBatch, batch.rng, 16);
}

bool Dump::keepStates(const Arena &arena, Transport &ranks, ThreadPool &pool,
                      Error &error) {
  Deliveries deliveries;
  for (int i = 0; i < model.numStates; ++i) {
    const RepriseState &state = model.states[i];
    const int64_t all = wholeElements(model, state);
    auto *to = states ? reinterpret_cast<float *>(states[i]) : nullptr;
    if (isDumped(state) &&
        !deliveries.add(state, {0, all}, /*receiver=*/0, {to, all, all}))
      return error.set("no memory left to note %d states", model.numStates);
  }
  if (!deliveries.run(model, arena, ranks, pool, error))
    return false;
  if (!arena.download(model.loss, error))
    return false;
  loss = *arena.at<float>(model.loss);
  lr = *arena.at<float>(model.lr);
  correction1 = *arena.at<float>(model.biasCorrection1);
  correction2 = *arena.at<float>(model.biasCorrection2);
  return true;
}

/// Whether all could be written.
static bool writeTensors(FILE *file, OutputTensor *tensors, int count) {
  size_t size = 0;
  char *header = makeSafeTensorsHeader(tensors, count, size);
  bool good = header && fwrite(header, 1, size, file) == size;
  free(header);
  for (int i = 0; i < count && good; ++i)
    good = fwrite(tensors[i].data, 1, tensors[i].bytes(), file) ==
           tensors[i].bytes();
  return good;
}

bool Dump::write(float gradNorm, Error &error) {
  int most = model.numStates + kNumOtherTensors, count = 0;
  auto *tensors =
      static_cast<OutputTensor *>(calloc(size_t(most), sizeof(OutputTensor)));
  bool good = tensors;
  if (good) {
    OutputTensor *next = tensors;
    for (int i = 0; i < model.numStates; ++i) {
      const RepriseState &state = model.states[i];
      if (!isDumped(state))
        continue;
      *next = {prefixOf(state.kind), state.name, false,
               state.rank,           {},         states[i]};
      memcpy(next->shape, state.shape, sizeof(next->shape));
      setWholeShape(state, next->shape);
      ++next;
    }
    count = int(next - tensors) + kNumOtherTensors;
    int64_t micro = model.microBatchesPerRank;
    int64_t rows = model.microBatchSize, length = model.seqLength;
    const OutputTensor others[kNumOtherTensors] = {
        {"loss", "", false, 1, {1}, &loss},
        {"lr", "", false, 1, {1}, &lr},
        {"bias_correction1", "", false, 1, {1}, &correction1},
        {"bias_correction2", "", false, 1, {1}, &correction2},
        {"grad_norm", "", false, 1, {1}, &gradNorm},
        {"tokens", "", true, 3, {micro, rows, length}, tokens},
        {"targets", "", true, 3, {micro, rows, length}, targets},
        {"rng", "", true, 2, {micro, 4}, rng}};
    std::copy(others, others + kNumOtherTensors, next);
    FILE *out = file.open(error);
    good = out && file.finish(writeTensors(out, tensors, count), error);
  } else {
    error.set("no memory left for a list of %d tensors to dump", most);
  }
  free(tensors);
  return good;
}
