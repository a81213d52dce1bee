//===- CheckpointWriter.h - Saves while training goes on --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_CHECKPOINT_CHECKPOINTWRITER_H
#define REPRISE_RUNTIME_CHECKPOINT_CHECKPOINTWRITER_H

#include "Checkpoint.h"
#include "CheckpointOptions.h"
#include "TensorWriter.h"
#include "runtime/base/Task.h"
#include "runtime/data/DataMark.h"

namespace reprise::runtime {

class JsonWriter;

/// Who asks for checkpoints, and what stands in them besides the states.
struct SaveSettings {
  const char *folder; ///< Where they go; made if it is not there.
  int64_t keepLast;   ///< Older ones are removed; 0: none is.
  uint64_t seed;
  bool shuffled;
  DataMark data;
  Paths files; ///< The data, as they were given.
  /// A folder whose files of tokenizers and the like go into every checkpoint;
  /// and a tokenizer.json that goes there, too. Null: none.
  const char *companionsFrom = nullptr, *tokenizer = nullptr;
  /// Who made sums over ranks in this run or before it, if not the program;
  /// null: it did.
  const char *sums = nullptr;
  /// By what the run is known again; null: it is not.
  const CheckpointOptions *options = nullptr;
};

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
      : model(model), tensors(tensors), writer(writer) {}
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
  struct FileSum {
    char name[64];
    int64_t bytes, summed; ///< The bytes of the file, and of the sum: the rest
                           ///< are tensors.
    uint32_t crc;
  };
  /// A file that goes along as it is.
  struct Companion {
    const char *name;
    MappedFile file;
  };

  bool prepareFolder(const char *resumedFrom, int64_t resumedStep,
                     Error &error);
  bool refuseOther(int64_t lastStep, Error &error) const;
  bool setAside(int64_t step, Error &error);
  bool openCompanions(Error &error);
  bool addCompanion(const char *name, const char *path, Error &error);

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
  bool writeFolder(const char *path);
  bool writeText(const char *folder, const char *name, const char *text,
                 size_t size);
  bool sumTensors(int file);
  bool areWhole(const char *folder, Error &error) const;
  bool writeIndex(const char *folder);
  bool writeDescription(const char *folder);
  bool writeTrainer(const char *folder);
  /// Members of its object: where the run is, and what the files must be.
  void writeRun(JsonWriter &json) const;
  void writeSums(JsonWriter &json) const;
  /// Whether LATEST names this checkpoint; and lets it do so.
  bool isLatest(int64_t step) const;
  bool pointLatest(int64_t step);
  void removeOld();
  void removeAll(bool (*isOne)(const char *name));
  /// Removes a checkpoint by its name in the folder; what cannot be removed
  /// becomes a note.
  void remove(const char *name);
  void noteLeft(const char *path, const char *reason);

  const RepriseModel &model;
  const ModelTensors &tensors;
  TensorWriter &writer;
  SaveSettings settings = {};
  Path root = Path("%s", ""); ///< What the settings call their folder.
  int folder = -1;            ///< Locked while the run lasts.
  int64_t completeStep = -1;
  Path completePath = Path("%s", "");

  List<Companion> companions;
  List<FileSum> files; ///< Of the checkpoint that is being written.

  Task task;
  bool hasReport = false, isLatestBehind = false;
  RunState state;       ///< Of what is being written.
  const char *end = ""; ///< Of the names of unfinished folders.
  SaveReport report = {};
  Error failure, note;
  int64_t saves = 0;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_CHECKPOINT_CHECKPOINTWRITER_H
