//===- Checkpoint.h - A run's states in a folder ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A checkpoint is a folder step-XXXXXXXX, named after the steps that are
// finished:
//
//   config.json              what the hub's programs need to load the model
//   model.safetensors        parameters under their published names; or
//                            model-XXXXX-of-XXXXX.safetensors and
//                            model.safetensors.index.json
//   optimizer.safetensors    moments: exp_avg.NAME, exp_avg_sq.NAME
//   description.yaml         what reprisec compiles the program from
//   trainer.json             where the run stands, how it came there, and
//                            checksums of all this
//
// It gets this name when all of it is on the disk, and never changes then.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_CHECKPOINT_CHECKPOINT_H
#define REPRISE_RUNTIME_CHECKPOINT_CHECKPOINT_H

#include "runtime/base/Error.h"
#include "runtime/base/Files.h"
#include "runtime/base/List.h"
#include "runtime/base/Outliers.h"

namespace reprise::runtime {

inline constexpr int64_t kCheckpointFormat = 1;
inline constexpr char kConfigFile[] = "config.json";
inline constexpr char kModelFile[] = "model.safetensors";
inline constexpr char kIndexFile[] = "model.safetensors.index.json";
inline constexpr char kOptimizerFile[] = "optimizer.safetensors";
inline constexpr char kDescriptionFile[] = "description.yaml";
inline constexpr char kTrainerFile[] = "trainer.json";
/// What programs of the hub look for beside weights, besides the configuration.
inline constexpr const char *kCompanions[] = {
    "added_tokens.json", "chat_template.jinja",     "generation_config.json",
    "merges.txt",        "special_tokens_map.json", "tokenizer.json",
    "tokenizer.model",   "tokenizer_config.json",   "vocab.json"};
/// By which ranks know that their folder is that of rank 0; for a moment.
inline constexpr char kProbeFile[] = "ranks.tmp";

/// What a run knows between two steps, besides the model's states. All else,
/// learning rate, data, dropout, is a function of the step.
struct RunState {
  int64_t step = 0; ///< The steps that are finished.
  Outliers losses, gradNorms;
};

/// The step of a name that begins as a checkpoint's does, and what stands
/// behind that; null for other names.
const char *parseCheckpointName(const char *name, int64_t &step);

/// The checkpoint of a step in a folder of checkpoints.
Path checkpointPath(const char *folder, int64_t step);

/// The same while it is being written.
Path unfinishedPath(const char *folder, int64_t step);

/// Finds the steps that have a checkpoint, in ascending order. A folder that
/// does not exist has none.
bool findCheckpoints(const char *folder, List<int64_t> &steps, Error &error);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_CHECKPOINT_CHECKPOINT_H
