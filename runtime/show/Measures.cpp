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
#include <cstring>

using namespace reprise::runtime;

bool reprise::runtime::isShownMeasure(const RepriseState &state) {
  return state.kind == REPRISE_STATE_MEASURE && !state.isElsewhere &&
         !strchr(state.name, '.');
}

bool Measures::start(Error &error) {
  bool good = true;
  for (int i = 0; i < model.numStates && good; ++i)
    if (const RepriseState &state = model.states[i]; isShownMeasure(state))
      good = state.rank == 0 ? scalars.push({state.name, NAN})
                             : vectors.push({state.name, NAN, NAN});
  return good || error.set("no memory left for what %d states measure",
                           model.numStates);
}

static Load getLoad(const char *name, const float *counts, int64_t size) {
  double sum = 0;
  for (int64_t i = 0; i < size; ++i)
    sum += double(counts[i]);
  if (sum == 0)
    return {name, 1, 1};
  auto [least, most] = std::minmax_element(counts, counts + size);
  double mean = sum / double(size);
  return {name, double(*least) / mean, double(*most) / mean};
}

void Measures::take(Arena &arena) {
  size_t scalar = 0, vector = 0;
  for (int i = 0; i < model.numStates; ++i) {
    const RepriseState &state = model.states[i];
    if (!isShownMeasure(state))
      continue;
    const float *values = arena.at<float>(state.buffer);
    if (state.rank == 0)
      scalars[scalar++].value = *values;
    else
      vectors[vector++] = getLoad(state.name, values, elementCount(state));
  }
}

Load Measures::extremes() const {
  Load all = {"", NAN, NAN};
  for (const Load &load : vectors) {
    all.least = std::fmin(all.least, load.least);
    all.most = std::fmax(all.most, load.most);
  }
  return all;
}
