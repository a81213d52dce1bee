//===- CheckpointWriter.h - Saves while training goes on --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_CHECKPOINTWRITER_H
#define REPRISE_RUNTIME_CHECKPOINTWRITER_H

#include "Checkpoint.h"
#include "DataMark.h"
#include "ModelTensors.h"
#include "SafeTensorsWriter.h"

#include <atomic>
#include <pthread.h>

namespace reprise::runtime {

/// Who asks for checkpoints, and what stands in them besides the states.
struct SaveSettings {
  const char *folder; ///< Where they go; made if it is not there.
  int64_t keepLast;   ///< Older ones are removed; 0: none is.
  uint64_t seed;
  bool shuffled;
  DataMark data;
  /// A folder whose files of tokenizers and the like go into every checkpoint;
  /// and a tokenizer.json that goes there, too. Null: none.
  const char *companionsFrom = nullptr, *tokenizer = nullptr;
  /// Files of parameters get no larger, if they have more than one tensor.
  int64_t shardBytes = INT64_C(5'000'000'000);
};

/// A checkpoint that was written.
struct SaveReport {
  int64_t step;
  int64_t bytes;  ///< Of all files.
  double seconds; ///< From the copy on, while training went on.
};

/// Writes checkpoints from a copy of the states, in a thread of its own. A
/// folder belongs to one run at a time. Whenever the program or the machine
/// stops, what has a checkpoint's name is complete; what else is there is
/// removed by the next run.
class CheckpointWriter {
public:
  CheckpointWriter(const RepriseModel &model, const ModelTensors &tensors)
      : model(model), tensors(tensors) {}
  CheckpointWriter(const CheckpointWriter &) = delete;
  CheckpointWriter &operator=(const CheckpointWriter &) = delete;
  ~CheckpointWriter();

  /// Prepares the folder and allocates the copy. A run that goes on from a
  /// checkpoint says which; if that lies in this folder, later ones get the end
  /// `.old` to their names, since this run will write others. All others need a
  /// folder without checkpoints.
  bool start(const SaveSettings &settings, const char *resumedFrom,
             int64_t resumedStep, Error &error);

  /// The memory that a copy takes; it is not part of the plan.
  int64_t copyBytes() const { return bytes; }

  /// Copies the states and begins to write them; if another checkpoint is not
  /// yet written, waits for that. No step may run meanwhile.
  bool save(const RunState &state, const Arena &arena, ThreadPool &pool,
            Error &error);

  /// False if a checkpoint could not be written. Does not wait.
  bool poll(Error &error) { return !running || !finished || wait(error); }

  /// Waits until nothing is being written.
  bool wait(Error &error);

  /// The step of the last call of `save`, or that the run began with; -1 if
  /// there is no such checkpoint.
  int64_t lastStep() const { return last; }

  /// The last checkpoint that is complete, with the folder's name; null if
  /// there is none.
  const char *lastComplete() const {
    return complete.chars[0] ? complete.chars : nullptr;
  }

  /// Hands out, once, what the user should know: what could not be removed.
  bool takeNote(Error &taken);

  /// Hands out what was written before the last call of `wait`, once.
  bool takeReport(SaveReport &report);

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
  /// The tensors of one file: a slice of `outputs`.
  struct Shard {
    int first, count;
    int64_t bytes;
  };

  bool prepareFolder(const char *resumedFrom, int64_t resumedStep,
                     Error &error);
  bool setAside(int64_t step, Error &error);
  bool allocate(Error &error);
  bool cutShards(Error &error);
  bool openCompanions(Error &error);
  bool addCompanion(const char *name, const char *path, Error &error);

  static void *threadEntry(void *writer);
  void write();
  bool writeFolder(const char *path);
  bool writeText(const char *folder, const char *name, const char *text,
                 size_t size);
  bool writeTensors(const char *folder, const char *name, const Shard &shard);
  bool writeIndex(const char *folder);
  bool writeTrainer(const char *folder);
  /// Whether LATEST names this checkpoint; and lets it do so.
  bool isLatest(int64_t step) const;
  bool pointLatest(int64_t step);
  void removeOld();
  void removeAll(bool (*isOne)(const char *name));
  /// Removes a checkpoint by its name in the folder; what cannot be removed
  /// becomes a note.
  void remove(const char *name);
  void noteLeft(const char *path, const char *reason);
  void shardName(int index, char *name, size_t size) const;

  const RepriseModel &model;
  const ModelTensors &tensors;
  SaveSettings settings = {};
  Path root = Path("%s", ""); ///< What the settings call their folder.
  int folder = -1;            ///< Locked while the run lasts.
  int64_t bytes = 0, last = -1;
  Path complete = Path("%s", "");

  float *copy = nullptr;
  List<float *> places;       ///< Of each tensor, in the copy.
  List<OutputTensor> outputs; ///< The same tensors, as they are written.
  List<uint32_t> sums;        ///< Their checksums.
  List<Shard> shards;         ///< Of the parameters.
  List<Companion> companions;
  List<FileSum> files; ///< Of the checkpoint that is being written.

  pthread_t thread = {};
  bool running = false, hasReport = false;
  std::atomic<bool> finished{false};
  RunState state; ///< Of the copy.
  SaveReport report = {};
  Error failure, note;
  int64_t saves = 0;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_CHECKPOINTWRITER_H
