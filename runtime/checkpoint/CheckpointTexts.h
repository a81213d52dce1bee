//===- CheckpointTexts.h - Files beside the tensors -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_CHECKPOINT_CHECKPOINTTEXTS_H
#define REPRISE_RUNTIME_CHECKPOINT_CHECKPOINTTEXTS_H

#include "Checkpoint.h"
#include "CheckpointOptions.h"
#include "TensorWriter.h"
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

/// Writes all files of a checkpoint that are no tensors, and the sums of those
/// that are.
class CheckpointTexts {
public:
  CheckpointTexts(const RepriseModel &model, const ModelTensors &tensors,
                  const TensorWriter &writer)
      : model(model), tensors(tensors), writer(writer) {}
  CheckpointTexts(const CheckpointTexts &) = delete;
  CheckpointTexts &operator=(const CheckpointTexts &) = delete;
  ~CheckpointTexts();

  /// Opens the files that go into every checkpoint.
  bool start(const SaveSettings &settings, Error &error);
  int64_t companionBytes() const;

  /// Adds them, and all else, to a folder that has its tensors. On failure
  /// errno says why.
  bool write(const char *folder, const RunState &state);
  /// Whether the folder has all that was written: a file of another rank may
  /// have changed meanwhile.
  bool areWhole(const char *folder, Error &error) const;
  int64_t bytes() const; ///< Of all files that were written last.

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

  bool addCompanion(const char *name, const char *path, Error &error);
  bool writeText(const char *folder, const char *name, const char *text,
                 size_t size);
  bool sumTensors(int file);
  bool writeIndex(const char *folder);
  bool writeDescription(const char *folder);
  bool writeTrainer(const char *folder, const RunState &state);
  /// Members of its object: where the run is, and what the files must be.
  void writeRun(JsonWriter &json, const RunState &state) const;
  void writeSums(JsonWriter &json) const;

  const RepriseModel &model;
  const ModelTensors &tensors;
  const TensorWriter &writer;
  SaveSettings settings = {};
  List<Companion> companions;
  List<FileSum> files; ///< Of the checkpoint that was written last.
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_CHECKPOINT_CHECKPOINTTEXTS_H
