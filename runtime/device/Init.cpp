//===- Init.cpp - The first values of states and tables -------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Init.h"

#include "runtime/base/BF16.h"
#include "runtime/transport/Mesh.h"
#include "runtime/transport/Parts.h"

#include "reprise/ABI/Philox.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstring>

using namespace reprise::runtime;

/// Elements that a thread initializes at a time; even.
static constexpr int64_t kBlock = 16384;

int64_t reprise::runtime::elementCount(const RepriseState &state) {
  int64_t count = 1;
  for (int i = 0; i < state.rank; ++i)
    count *= state.shape[i];
  return count;
}

bool reprise::runtime::handOverState(const RepriseState &state, Arena &arena,
                                     Error &error) {
  int64_t size = repriseElementBytes(state.elementType);
  int64_t used = elementCount(state) * size;
  if (used < state.buffer.bytes)
    memset(arena.at<char>(state.buffer) + used, 0,
           size_t(state.buffer.bytes - used));
  return arena.handOver(state.buffer, error);
}

/// Values [begin, end) of a normal distribution.
static void drawNormal(uint64_t seed, uint32_t stream, double std,
                       int64_t begin, int64_t end, float *values) {
  for (int64_t i = begin / 2 * 2; i < end; i += 2) {
    uint32_t first =
        reprisePhilox(seed, REPRISE_INIT_STEP, 0, stream, uint64_t(i));
    uint32_t second =
        reprisePhilox(seed, REPRISE_INIT_STEP, 0, stream, uint64_t(i) + 1);
    double uniform = (double(first) + 1.0) * 0x1p-32; // in (0, 1]
    double radius = std * std::sqrt(-2.0 * std::log(uniform));
    double angle = 2.0 * M_PI * (double(second) * 0x1p-32);
    if (i >= begin)
      values[i - begin] = float(radius * std::cos(angle));
    if (i + 1 < end)
      values[i + 1 - begin] = float(radius * std::sin(angle));
  }
}

bool reprise::runtime::initializeStates(const RepriseModel &model,
                                        uint64_t seed, Arena &arena,
                                        ThreadPool &pool, Error &error,
                                        Loaded loaded, int rank) {
  for (int index = 0; index < model.numStates; ++index) {
    const RepriseState &state = model.states[index];
    if (state.kind == REPRISE_STATE_WORKING || !outlivesStep(state) ||
        state.isElsewhere)
      continue;
    if (loaded == Loaded::Parameters
            ? state.kind == REPRISE_STATE_PARAMETER
            : loaded == Loaded::AllButGradients && isInFiles(state))
      continue;
    arena.touch(state.buffer);
    float *values = arena.at<float>(state.buffer);
    const Part part = partOf(model, state, rank);
    if (part.hasMore())
      memset(values, 0, size_t(state.buffer.bytes));
    auto fill = [&](int64_t whole, int64_t own, int64_t count) {
      if (state.init == REPRISE_INIT_NORMAL)
        drawNormal(seed, uint32_t(index), double(state.initStd), whole,
                   whole + count, values + own);
      else
        std::fill_n(values + own, count,
                    state.init == REPRISE_INIT_ONES ? 1.0f : 0.0f);
      return true;
    };
    int64_t count = part.wholeElements();
    pool.parallelFor((count + kBlock - 1) / kBlock, 1,
                     [&](int, int64_t first, int64_t last) {
                       part.forEachRun(first * kBlock,
                                       std::min(last * kBlock, count), fill);
                     });
    if (!handOverState(state, arena, error))
      return false;
  }
  return true;
}

/// The parameter that `copy` is the working copy of, or null.
static const RepriseState *findParameter(const RepriseModel &model,
                                         const RepriseState &copy) {
  for (int i = 0; i < model.numStates; ++i) {
    const RepriseState &state = model.states[i];
    if (state.kind == REPRISE_STATE_PARAMETER &&
        !strcmp(state.name, copy.name) &&
        elementCount(state) == elementCount(copy))
      return &state;
  }
  return nullptr;
}

/// Whether `copy`, of as many elements, has the parameter's rows and columns as
/// the `packedB` of a GEMM.
static bool isPackedOf(const RepriseState &copy,
                       const RepriseState &parameter) {
  constexpr int64_t kCols = REPRISE_PACKED_COLS;
  return parameter.rank == 2 && copy.rank == 4 && copy.shape[3] == 2 &&
         copy.shape[2] == kCols && copy.shape[1] * 2 == parameter.shape[0];
}

static bool hasShapeOf(const RepriseState &copy,
                       const RepriseState &parameter) {
  return copy.rank == parameter.rank &&
         std::equal(copy.shape, copy.shape + copy.rank, parameter.shape);
}

static void roundInOrder(const float *from, int64_t count, uint16_t *to,
                         ThreadPool &pool) {
  pool.parallelFor(
      (count + kBlock - 1) / kBlock, 1, [&](int, int64_t first, int64_t last) {
        int64_t end = last * kBlock < count ? last * kBlock : count;
        for (int64_t i = first * kBlock; i < end; ++i)
          to[i] = roundToBF16(from[i]);
      });
}

/// Rounds a matrix to its packed copy, pair of rows by pair of rows.
static void roundPacked(const float *from, int64_t rows, int64_t cols,
                        uint16_t *to, ThreadPool &pool) {
  constexpr int64_t kCols = REPRISE_PACKED_COLS;
  pool.parallelFor(rows / 2, 16, [&](int, int64_t first, int64_t last) {
    for (int64_t pair = first; pair < last; ++pair)
      for (int64_t c = 0; c < cols; ++c) {
        const float *even = from + 2 * pair * cols + c;
        uint16_t *word =
            to + (c / kCols * rows + 2 * pair) * kCols + c % kCols * 2;
        word[0] = roundToBF16(even[0]);
        word[1] = roundToBF16(even[cols]);
      }
  });
}

/// Rounds the rank's share of a parameter to its place in the copy, and gets
/// those of other ranks.
static bool roundShare(const RepriseModel &model, const RepriseState &parameter,
                       const float *from, Span copy, Transport &ranks,
                       ThreadPool &pool, Error &error) {
  const Group group = groupOf(model, ranks.rank(), parameter.shareAxis);
  const Part part = partOf(model, parameter, ranks.rank());
  uint16_t *own = static_cast<uint16_t *>(copy.values) + part.first;
  roundInOrder(from + (part.first - part.offset), part.last - part.first, own,
               pool);
  HostMemory memory(ranks);
  return gatherShares(memory, group, "the working copies", Number::BF16, own,
                      copy, error);
}

bool reprise::runtime::roundParameters(const RepriseModel &model, Arena &arena,
                                       ThreadPool &pool, Error &error,
                                       Transport *ranks) {
  for (int index = 0; index < model.numStates; ++index) {
    const RepriseState &copy = model.states[index];
    if (copy.kind != REPRISE_STATE_WORKING || copy.isElsewhere)
      continue;
    const RepriseState *parameter = findParameter(model, copy);
    if (!parameter)
      return error.set("damaged model: the working copy of '%s' needs a "
                       "parameter with its %" PRId64 " elements",
                       copy.name, elementCount(copy));
    const bool isPacked = isPackedOf(copy, *parameter);
    if (!isPacked && !hasShapeOf(copy, *parameter))
      return error.set(
          "damaged model: the working copy of '%s' needs the shape "
          "of its parameter or that shape packed",
          copy.name);
    arena.touch(copy.buffer);
    if (!arena.download(parameter->buffer, error))
      return false;
    const float *from = arena.at<float>(parameter->buffer);
    uint16_t *to = arena.at<uint16_t>(copy.buffer);
    if (parameter->shareForm != REPRISE_SHARE_NONE) {
      if (isPacked || !ranks)
        return error.set("damaged model: the working copy of '%s', of which "
                         "ranks have shares, needs these ranks and rows",
                         copy.name);
      if (!roundShare(model, *parameter, from, {to, elementCount(copy)}, *ranks,
                      pool, error))
        return false;
    } else if (isPacked) {
      roundPacked(from, parameter->shape[0], parameter->shape[1], to, pool);
    } else {
      roundInOrder(from, elementCount(copy), to, pool);
    }
    arena.release(parameter->buffer);
    if (!handOverState(copy, arena, error))
      return false;
  }
  return true;
}

bool reprise::runtime::fillRotaries(const RepriseModel &model, Arena &arena,
                                    ThreadPool &pool, Error &error) {
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
    if (!arena.handOver(rotary.buffer, error))
      return false;
  }
  return true;
}
