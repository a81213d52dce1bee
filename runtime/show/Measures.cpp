//===- Measures.cpp - What a step shows besides its loss ------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Measures.h"

#include "runtime/device/Init.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

using namespace reprise::runtime;

bool reprise::runtime::isShownMeasure(const RepriseState &state) {
  return state.kind == REPRISE_STATE_MEASURE && !state.isElsewhere &&
         !strchr(state.name, '.');
}

bool Measures::start(Error &error) {
  bool good = true;
  int64_t size = 0;
  for (int i = 0; i < model.numStates && good; ++i)
    if (const RepriseState &state = model.states[i]; isShownMeasure(state)) {
      int64_t count = elementCount(state);
      good = state.rank == 0
                 ? scalars.push({state.name, NAN})
                 : vectors.push({state.name, NAN, NAN, nullptr, count});
      size += state.rank == 0 ? 0 : count;
    }
  good = good && rows.resize(size_t(size));
  const float *next = rows.begin();
  for (Load &load : vectors) {
    load.rows = next;
    next += load.size;
  }
  return good || error.set("no memory left for what %d states measure",
                           model.numStates);
}

/// Finds the extremes of the rows that have come.
static void measure(Load &load) {
  const float *end = load.rows + load.size;
  double sum = 0;
  for (const float *row = load.rows; row != end; ++row)
    sum += double(*row);
  auto [least, most] = std::minmax_element(load.rows, end);
  double mean = sum / double(load.size);
  load.least = sum == 0 ? 1 : double(*least) / mean;
  load.most = sum == 0 ? 1 : double(*most) / mean;
}

void Measures::take(Arena &arena) {
  size_t scalar = 0, vector = 0;
  float *next = rows.begin();
  for (int i = 0; i < model.numStates; ++i) {
    const RepriseState &state = model.states[i];
    if (!isShownMeasure(state))
      continue;
    const float *values = arena.at<float>(state.buffer);
    if (state.rank == 0) {
      scalars[scalar++].value = *values;
      continue;
    }
    next = std::copy_n(values, elementCount(state), next);
    measure(vectors[vector++]);
  }
}

Load Measures::extremes() const {
  Load all = {"", NAN, NAN, nullptr, 0};
  for (const Load &load : vectors) {
    all.least = std::fmin(all.least, load.least);
    all.most = std::fmax(all.most, load.most);
  }
  return all;
}

//===----------------------------------------------------------------------===//
// As a table
//===----------------------------------------------------------------------===//

/// Digits of a line; more experts than these share them.
static constexpr int64_t kMostDigits = 64;

/// A dot for no row, 4 for the mean, 9 for 2.25 times that and more.
static char getDigit(double row, double mean) {
  return row == 0 ? '.' : char('0' + std::min(int(4 * row / mean), 9));
}

static void printLoad(const Load &load) {
  const int64_t digits = std::min(load.size, kMostDigits);
  double sum = 0;
  for (int64_t i = 0; i < load.size; ++i)
    sum += double(load.rows[i]);
  printf("  %-22s %6.2f %6.2f  ", load.name, load.least, load.most);
  for (int64_t i = 0; i < digits; ++i) {
    const float *first = load.rows + i * load.size / digits;
    const float *end = load.rows + (i + 1) * load.size / digits;
    putchar(getDigit(double(*std::max_element(first, end)),
                     sum / double(load.size)));
  }
  putchar('\n');
}

void reprise::runtime::printLoads(const Measures &measures) {
  if (measures.loads().size() == 0 || std::isnan(measures.extremes().most))
    return;
  printf("%-24s %6s %6s  %s\n", "rows of the last step", "least", "most",
         "each expert: 4 is the mean, 9 from 2.25 times it, . none");
  for (const Load &load : measures.loads())
    printLoad(load);
}
