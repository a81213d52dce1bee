//===- TrainerFile.h - What a checkpoint says of its run --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_CHECKPOINT_TRAINERFILE_H
#define REPRISE_RUNTIME_CHECKPOINT_TRAINERFILE_H

#include "Resume.h"
#include "runtime/text/Json.h"

namespace reprise::runtime {

/// What to do with a checkpoint of another run, at the end of an error.
struct OtherRun {
  /// \param fits  whether the model is the same: parameters depend on nothing
  ///              else.
  OtherRun(const char *path, bool fits) {
    if (fits)
      snprintf(chars, sizeof(chars),
               "; --init-from %s begins a new run with its parameters", path);
    else
      snprintf(chars, sizeof(chars),
               "; what reprisec makes of '%s/%s' goes on from it", path,
               kDescriptionFile);
  }
  char chars[sizeof(Path) + 80];
};

/// The file trainer.json of a checkpoint, which says what run it is of, and
/// what other files there are.
class TrainerFile {
public:
  TrainerFile(const RepriseModel &model, const CheckpointOptions &options,
              const char *path)
      : model(model), options(options), path(path),
        ownPath("%s/%s", path, kTrainerFile) {}
  TrainerFile(const TrainerFile &) = delete;
  TrainerFile &operator=(const TrainerFile &) = delete;
  ~TrainerFile() { file.unmap(); }

  /// Reads it, and checks that it is of a run like this one. After false,
  /// `isDamaged` tells whether it is not what was written, or only not what
  /// this run needs.
  bool open(Resumed &resumed, Error &error);

  const JsonDocument &document() const { return json; }

  bool isDamaged = false;

private:
  bool damaged() {
    isDamaged = true;
    return false;
  }
  bool read(Error &error);
  bool integer(const char *key, int64_t &value, Error &error);
  bool same(const char *key, const char *option, int64_t ours, Error &error);
  bool checkRun(Error &error);
  int64_t readSum(const char *key) const;
  bool readMark(DataMark &mark, Error &error);
  bool findChanges(Error &changes, Error &error) const;
  bool readOutliers(const char *key, Outliers &outliers, Error &error);

  const RepriseModel &model;
  const CheckpointOptions &options;
  const char *path; ///< Of the checkpoint.
  Path ownPath;
  MappedFile file;
  JsonDocument json;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_CHECKPOINT_TRAINERFILE_H
