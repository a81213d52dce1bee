//===- Outputs.h - What a run may write -------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TRAINER_OUTPUTS_H
#define REPRISE_RUNTIME_TRAINER_OUTPUTS_H

#include "Options.h"

namespace reprise::runtime {

/// Whether the files that --csv, --dump and --tensorboard write are no files
/// that the run reads, not each other, and not within a checkpoint.
bool checkOutputs(const Options &options, Error &error);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRAINER_OUTPUTS_H
