//===- StageMoments.h - What a stage has in flight at a time ----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chunks of a stage share its memory. While a task of one of them runs, all
// others have what they keep of their micro-batches in flight, and nothing
// else:
//
//   chunk 0   | kept of 2 micro-batches            |
//   chunk 1   | kept of 1 | all of the one that runs |
//
// What the stage needs is the most of these sums over its tasks.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_SOLVER_STAGEMOMENTS_H
#define REPRISE_SOLVER_STAGEMOMENTS_H

#include "reprise/Solver/Pipeline.h"

namespace reprise::solver {

/// A task of a stage, while it runs.
struct StageMoment {
  int64_t task = 0;    ///< its number in the list of the stage
  int64_t running = 0; ///< its virtual stage
  /// Of each virtual stage, micro-batches from the beginning of their forward
  /// task to the end of their backward task; the one that runs is among them.
  std::vector<int64_t> inFlight;
};

/// The moments of a stage, or those of its backward tasks. Left out is what a
/// mean of others has as much in flight as, with the same chunk running:
/// whatever chunks keep, one of the others needs as much.
std::vector<StageMoment> getMoments(const std::vector<PipelineTask> &stage,
                                    int64_t virtualStages, bool onlyBackward);

/// The most micro-batches of a stage whose backward task has begun and whose
/// task of weights has not ended; 0 without tasks of weights.
int64_t getMostWaiting(const std::vector<PipelineTask> &stage);

/// Bytes of a chunk.
struct ChunkBytes {
  int64_t kept = 0; ///< of a micro-batch in flight
  int64_t work = 0; ///< of the micro-batch that runs, with what it keeps
};

/// What a stage needs if its chunks have `chunks`; of fewer, the others have
/// nothing.
int64_t getNeed(const std::vector<StageMoment> &moments,
                const std::vector<ChunkBytes> &chunks);

} // namespace reprise::solver

#endif // REPRISE_SOLVER_STAGEMOMENTS_H
