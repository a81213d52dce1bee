//===- Resume.h - Going on from a checkpoint --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_CHECKPOINT_RESUME_H
#define REPRISE_RUNTIME_CHECKPOINT_RESUME_H

#include "Checkpoint.h"
#include "CheckpointOptions.h"
#include "ModelTensors.h"
#include "runtime/data/DataMark.h"

namespace reprise::runtime {

/// Where a run goes on.
struct Resumed {
  Path folder = Path("%s", ""); ///< The checkpoint; empty for a fresh run.
  RunState state;
  DataMark data; ///< What it was trained on.
  /// Whether sums over ranks of a step before it were not the program's.
  bool hasOtherSums = false;
  /// "lr 0.002 then, 0.005 now", and more keys of the section `train`; empty if
  /// they are the same.
  Error changes;
};

/// Finds the checkpoint that --resume means: a checkpoint's folder, the newest
/// one in a folder of checkpoints, or, for `auto`, the newest one in --save's
/// folder, if there is any. Reads it into the states, after every bit of it has
/// been checked. It must be of this model, batch, seed and order of data. If it
/// is damaged, the error names the newest one before it that is not.
bool resumeTraining(const RepriseModel &model, const CheckpointOptions &options,
                    const ModelTensors &tensors, Arena &arena, ThreadPool &pool,
                    Resumed &resumed, Error &error);

/// Whether a checkpoint is of a run with this model, batch, section `train`,
/// seed, data and order of data, so that it is the same run.
bool isOfRun(const RepriseModel &model, const CheckpointOptions &options,
             const DataMark &data, const char *checkpoint);

/// Whether what --init-from or --resume names says of itself that it was
/// trained on text whose bytes were the tokens.
bool wasTrainedOnBytes(const CheckpointOptions &options);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_CHECKPOINT_RESUME_H
