//===- CheckpointWriter.h - Saves while training goes on --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_CHECKPOINT_CHECKPOINTWRITER_H
#define REPRISE_RUNTIME_CHECKPOINT_CHECKPOINTWRITER_H

#include "CheckpointFolder.h"
#include "CheckpointTexts.h"
#include "runtime/base/Task.h"

namespace reprise::runtime {

/// A checkpoint that was written.
struct SaveReport {
  int64_t step;
  int64_t bytes;  ///< Of all files.
  double seconds; ///< From the copy on; while training went on if there is one.
};

/// Keeps the folder of checkpoints, as rank 0, and gives them their names. The
/// tensors are written by all ranks, in threads of their own, from copies of
/// the states or, if there is no room for that, from the states, while training
/// waits. A folder belongs to one run at a time. Whenever the program or the
/// machine stops, what has a checkpoint's name is complete; what else is there
/// is removed by the next run.
class CheckpointWriter {
public:
  CheckpointWriter(const RepriseModel &model, const ModelTensors &tensors,
                   TensorWriter &writer)
      : model(model), writer(writer), texts(model, tensors, writer) {}
  CheckpointWriter(const CheckpointWriter &) = delete;
  CheckpointWriter &operator=(const CheckpointWriter &) = delete;
  ~CheckpointWriter();

  /// Prepares the folder. A run that goes on from a checkpoint says which; if
  /// that lies in this folder, later ones get the end `.old` to their names,
  /// since this run will write others. All others need a folder without
  /// checkpoints.
  bool start(const SaveSettings &settings, const char *resumedFrom,
             int64_t resumedStep, Error &error);

  /// The bytes of a checkpoint, without headers of files and trainer.json.
  int64_t leastBytes() const;

  // Below, `error` says that the run has ended, or cannot go on; functions
  // return false then.

  /// Copies the states and begins to write them; if another checkpoint is not
  /// yet written, waits for that. No step may run meanwhile. `refused` says why
  /// it could not begin.
  bool save(const RunState &state, Error &refused, Error &error);

  /// The same after an error. Refuses parameters that are not finite, and if a
  /// checkpoint has those already, the last complete one is the one before.
  bool rescue(const RunState &state, Error &refused, Error &error);

  /// As TensorWriter::becomeAlone. What all ranks have written gets its name
  /// before; what they were writing is removed.
  bool becomeAlone(Error &error);

  /// Lets LATEST name the last checkpoint that is complete, if that could not
  /// be done when it was written.
  bool catchUp(Error &error);

  /// Looks whether what was being written is there. Does not wait.
  bool poll(Error &error);

  /// Waits until nothing is being written.
  bool wait(Error &error);

  /// The same, but for what other ranks have to help with: that is lost.
  void giveUp();

  /// The step that is being written, or of the last checkpoint that is
  /// complete; -1 if there is none.
  int64_t lastStep() const {
    return task.isRunning() || writer.isOpen() ? state.step : completeStep;
  }

  /// The last checkpoint that is complete, with the folder's name; null if
  /// there is none.
  const char *lastComplete() const {
    return completePath.chars[0] ? completePath.chars : nullptr;
  }

  /// Hands out, once, what the user should know: what could not be removed.
  bool takeNote(Error &taken);

  /// Hands out what was written before the last call of `wait`, once.
  bool takeReport(SaveReport &report);

  /// Hands out, once, why the last one could not be written.
  bool takeFailure(Error &taken);

private:
  bool prepareFolder(const char *resumedFrom, int64_t resumedStep,
                     Error &error);
  bool refuseOther(int64_t lastStep, Error &error) const;

  bool begin(const RunState &state, double start, Error &refused, Error &error);
  void passOver(int64_t step);
  void finish(const Error &reason);
  void fail(const char *reason);
  void startTask(void (*function)(void *));
  void endTask();
  /// The folder that is being written.
  Path unfinished() const;
  void abandon();
  void writeAlone();
  void complete();

  const RepriseModel &model;
  TensorWriter &writer;
  SaveSettings settings = {};
  CheckpointFolder folder;
  CheckpointTexts texts;
  int64_t completeStep = -1;
  Path completePath = Path("%s", "");

  Task task;
  bool hasReport = false, isLatestBehind = false;
  RunState state;       ///< Of what is being written.
  const char *end = ""; ///< Of the names of unfinished folders.
  SaveReport report = {};
  Error failure;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_CHECKPOINT_CHECKPOINTWRITER_H
