//===- Init.h - The first values of states and tables -----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_INIT_H
#define REPRISE_RUNTIME_DEVICE_INIT_H

#include "Arena.h"
#include "runtime/base/Error.h"
#include "runtime/base/ThreadPool.h"
#include "runtime/transport/Transport.h"

namespace reprise::runtime {

/// The number of elements of a state, those of one rank.
int64_t elementCount(const RepriseState &state);

/// Whether a state is there from step to step: all but gradients that a step
/// makes from nothing.
inline bool outlivesStep(const RepriseState &state) {
  return state.init != REPRISE_INIT_NONE;
}

/// Whether files have a state, or can have one that it is made from: none of
/// what is summed within a step.
inline bool isInFiles(const RepriseState &state) {
  return state.kind != REPRISE_STATE_GRADIENT &&
         state.kind != REPRISE_STATE_PARTIAL &&
         state.kind != REPRISE_STATE_MEASURE;
}

/// Hands a state over whose elements were written: clears what is behind them.
bool handOverState(const RepriseState &state, Arena &arena, Error &error);

/// The states that are read from files and need no first values.
enum class Loaded { Nothing, Parameters, AllButGradients };

/// Fills every other state that outlives a step as its `init` says. Normal
/// values are a function of seed, the state's index and the element alone:
/// element pair (2i, 2i+1) is the pair that Box and Muller's transform makes,
/// in f64, of the Philox words of these two elements in step REPRISE_INIT_STEP.
/// Elements are numbered in the whole tensor, of which `rank` may have a part.
/// Fails only if a GPU does not take them, as do the other two.
bool initializeStates(const RepriseModel &model, uint64_t seed, Arena &arena,
                      ThreadPool &pool, Error &error,
                      Loaded loaded = Loaded::Nothing, int rank = 0);

/// Rounds every parameter that has a working copy to it: to the nearest bf16,
/// of two as near to the one with an even last bit. For a model whose copies
/// have no parameter, `error` says so. Where ranks have shares of a parameter
/// but not of its copy, all call this together.
bool roundParameters(const RepriseModel &model, Arena &arena, ThreadPool &pool,
                     Error &error, Transport *ranks = nullptr);

/// Writes the tables of rotary position embeddings, as published models have
/// them: the angle is the f32 product of position and frequency, its cosine and
/// sine are taken in f64, and scaled there.
bool fillRotaries(const RepriseModel &model, Arena &arena, ThreadPool &pool,
                  Error &error);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_INIT_H
