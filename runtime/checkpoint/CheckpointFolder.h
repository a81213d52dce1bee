//===- CheckpointFolder.h - Where a run has its checkpoints -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_CHECKPOINT_CHECKPOINTFOLDER_H
#define REPRISE_RUNTIME_CHECKPOINT_CHECKPOINTFOLDER_H

#include "runtime/base/Error.h"
#include "runtime/base/Files.h"

#include <cstdint>

namespace reprise::runtime {

/// The ends of the names of a folder that ranks have ended in while they wrote
/// it, and of one that rank 0 writes alone then.
inline constexpr char kAbandoned[] = "-abandoned", kAlone[] = "-alone";

/// The folder of a run's checkpoints, which it has to itself. A checkpoint is
/// gone as soon as it has no name of one, and only files that runs write are
/// removed.
class CheckpointFolder {
public:
  CheckpointFolder() = default;
  CheckpointFolder(const CheckpointFolder &) = delete;
  CheckpointFolder &operator=(const CheckpointFolder &) = delete;
  ~CheckpointFolder();

  /// Makes it if it is not there, locks it for as long as this lives, and
  /// removes what was being written when a run was killed.
  bool open(const char *path, Error &error);
  /// As it was given, without slashes at its end.
  const char *path() const { return root.chars; }

  /// Gives the checkpoint of `step` the end `.old`.
  bool setAside(int64_t step, Error &error);
  /// Whether LATEST names the checkpoint of `step`; and lets it do so.
  bool isLatest(int64_t step) const;
  bool pointLatest(int64_t step);
  /// All but the last `keepLast`, unless that is 0; from the second call on
  /// also those that were set aside.
  void removeOld(int64_t keepLast);
  /// The folder of one checkpoint, with the files that runs write.
  static bool removeFiles(const char *path);
  /// Removes what ranks have left that were ended while they looked whose
  /// folder it is, unless another run has it.
  static void removeProbe(const char *path);

  /// Hands out, once, what could not be removed.
  bool takeNote(Error &taken);

private:
  void removeAll(bool (*isOne)(const char *name));
  /// A checkpoint, by its name; what cannot be removed becomes a note.
  void remove(const char *name);
  void noteLeft(const char *path, const char *reason);

  Path root = Path("%s", "");
  int folder = -1; ///< Locked.
  int64_t saves = 0;
  Error note;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_CHECKPOINT_CHECKPOINTFOLDER_H
