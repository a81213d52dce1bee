//===- CheckpointOptions.h - Where states come from and go ------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_CHECKPOINT_CHECKPOINTOPTIONS_H
#define REPRISE_RUNTIME_CHECKPOINT_CHECKPOINTOPTIONS_H

#include "runtime/data/DataOptions.h"

namespace reprise::runtime {

/// Where states come from, and where they are saved. A checkpoint is of data,
/// too.
struct CheckpointOptions : DataOptions {
  const char *initFrom = nullptr;
  const char *save = nullptr;
  const char *resume = nullptr;     ///< A folder, or "auto".
  const char *autoFolder = nullptr; ///< Where "auto" looks: that of `save`.
  int64_t saveInterval = 0;         ///< 0: only at the end.
  int64_t keepLast = 0;             ///< 0: all.
  std::optional<bool> saveFromCopy; ///< Not given: if there is room for one.
  /// For ranks other than 0: the folder that it keeps, of which they write
  /// their part of the tensors.
  const char *saveOfFirst = nullptr;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_CHECKPOINT_CHECKPOINTOPTIONS_H
