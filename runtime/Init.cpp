//===- Init.cpp - The first values of states and tables -------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Init.h"

#include "reprise/ABI/Philox.h"

#include <cmath>

using namespace reprise::runtime;

/// Elements that a thread initializes at a time; even.
static constexpr int64_t kBlock = 16384;

int64_t reprise::runtime::elementCount(const RepriseState &state) {
  int64_t count = 1;
  for (int i = 0; i < state.rank; ++i)
    count *= state.shape[i];
  return count;
}

/// Values [begin, end) of a normal distribution; begin is even.
static void drawNormal(uint64_t seed, uint32_t stream, double std,
                       int64_t begin, int64_t end, float *values) {
  for (int64_t i = begin; i < end; i += 2) {
    uint32_t first =
        reprisePhilox(seed, REPRISE_INIT_STEP, 0, stream, uint64_t(i));
    uint32_t second =
        reprisePhilox(seed, REPRISE_INIT_STEP, 0, stream, uint64_t(i) + 1);
    double uniform = (double(first) + 1.0) * 0x1p-32; // in (0, 1]
    double radius = std * std::sqrt(-2.0 * std::log(uniform));
    double angle = 2.0 * M_PI * (double(second) * 0x1p-32);
    values[i] = float(radius * std::cos(angle));
    if (i + 1 < end)
      values[i + 1] = float(radius * std::sin(angle));
  }
}

void reprise::runtime::initializeStates(const RepriseModel &model,
                                        uint64_t seed, Arena &arena,
                                        ThreadPool &pool, Loaded loaded) {
  for (int index = 0; index < model.numStates; ++index) {
    const RepriseState &state = model.states[index];
    if (loaded == Loaded::Parameters ? state.kind == REPRISE_STATE_PARAMETER
                                     : loaded == Loaded::AllButGradients &&
                                           state.kind != REPRISE_STATE_GRADIENT)
      continue;
    arena.touch(state.buffer);
    float *values = arena.at<float>(state.buffer);
    int64_t count = elementCount(state);
    pool.parallelFor(
        (count + kBlock - 1) / kBlock, 1,
        [&](int, int64_t first, int64_t last) {
          int64_t begin = first * kBlock;
          int64_t end = last * kBlock < count ? last * kBlock : count;
          if (state.init == REPRISE_INIT_NORMAL)
            return drawNormal(seed, uint32_t(index), double(state.initStd),
                              begin, end, values);
          float value = state.init == REPRISE_INIT_ONES ? 1.0f : 0.0f;
          for (int64_t i = begin; i < end; ++i)
            values[i] = value;
        });
  }
}

void reprise::runtime::fillRotaries(const RepriseModel &model, Arena &arena,
                                    ThreadPool &pool) {
  constexpr int64_t kRows = 64;
  for (int index = 0; index < model.numRotaries; ++index) {
    const RepriseRotary &rotary = model.rotaries[index];
    arena.touch(rotary.buffer);
    float *table = arena.at<float>(rotary.buffer);
    int64_t half = rotary.width / 2;
    pool.parallelFor(
        (rotary.length + kRows - 1) / kRows, 1,
        [&](int, int64_t first, int64_t last) {
          int64_t end =
              last * kRows < rotary.length ? last * kRows : rotary.length;
          for (int64_t t = first * kRows; t < end; ++t) {
            float *row = table + t * rotary.width;
            for (int64_t j = 0; j < half; ++j) {
              double angle = double(float(t) * rotary.frequencies[j]);
              row[j] = float(double(rotary.scale) * std::cos(angle));
              row[half + j] = float(double(rotary.scale) * std::sin(angle));
            }
          }
        });
  }
}
