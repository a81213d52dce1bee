//===- TensorWriter.h - Ranks write a checkpoint's tensors ------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Between two steps ranks do what rank 0 says, until it lets them go on:
//
//   Take, Write, GoOn      steps      Ask, Close, GoOn
//   copies                 threads    outcomes and sums come to rank 0,
//                          write      which gives the checkpoint its name
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_CHECKPOINT_TENSORWRITER_H
#define REPRISE_RUNTIME_CHECKPOINT_TENSORWRITER_H

#include "SavedStates.h"
#include "TensorFiles.h"
#include "runtime/base/Files.h"
#include "runtime/base/Task.h"

namespace reprise::runtime {

/// The files of tensors of checkpoints, which ranks write together, each its
/// own slices of them in a thread of its own. Of ranks on machines where the
/// folder is another one, or none, nobody writes; they give others their parts.
class TensorWriter {
public:
  TensorWriter(const RepriseModel &model, const ModelTensors &tensors,
               const Arena &arena, ThreadPool &pool, Transport &ranks);
  TensorWriter(const TensorWriter &) = delete;
  TensorWriter &operator=(const TensorWriter &) = delete;

  /// Finds out who writes what and takes the memory of copies; all ranks call
  /// it when the folder is there.
  bool start(const char *folder, int64_t shardBytes, const SaveRoom &room,
             Error &error);

  /// What ranks other than 0 do: what it says, behind this step, until they may
  /// go on. False if the run has ended.
  bool follow(int64_t step, Error &error);

  // What rank 0 does, and says to the others. False, with `error`, if the run
  // has ended or nobody can go on.

  bool take(Error &error);
  /// Whether parameters are finite, of what was taken; `broken` says which are
  /// not.
  bool check(Error &broken, Error &error);
  /// Begins to write to a folder that has been made, of the step after which
  /// all are. `failure` says why not. Without a copy all is written then.
  bool begin(int64_t step, Error &failure, Error &error);
  /// Whether it was begun and not closed.
  bool isOpen() const { return isWriting; }
  /// Whether all have written.
  bool ask(bool &haveFinished, Error &error);
  /// Waits until they have; `failure` says why one could not.
  bool close(Error &failure, Error &error);
  /// Lets the others go on.
  bool release(Error &error);

  /// Lets rank 0 write all by itself, from the plan's memory if it can, where
  /// the others have ended and no rank has parts of the model.
  bool becomeAlone(Error &error);
  /// Waits for this rank alone, whatever the others do.
  void giveUp() { task.wait(); }
  /// Writes all slices of this rank in the calling thread. False with `errno`.
  bool write(const char *folder);

  bool isAlone() const { return alone; }
  /// How many ranks write, and the first that does not; -1: all do.
  int numWriters() const { return writers; }
  int firstOther() const { return other; }
  const TensorFiles &files() const { return all; }
  const SavedStates &source() const { return states; }
  /// The checksum of a tensor, when all is written.
  uint32_t sumOf(int tensor) const;
  /// Bytes of tensors that this rank has written, of all checkpoints.
  int64_t writtenBytes() const { return written; }

private:
  enum class Word : char { Take, Check, Write, Ask, Close, GoOn };
  bool findWriters(const char *folder, Error &error);
  bool probe(const char *folder, bool &isSeen, Error &error) const;
  bool say(Word word, Error &error);
  bool obey(Word word, int64_t step, Error &error);
  void beginOwn(int64_t step);
  void writeOwn();
  bool writeFile(const char *folder, int file, int64_t first, int64_t last);
  bool collectReasons(const Error &own, Error &first, Error &error);
  bool collectSums(Error &error);

  const RepriseModel &model;
  const ModelTensors &tensors;
  Transport &ranks;
  TensorFiles all;
  SavedStates states;
  Path root = Path("%s", "");
  Path unfinished = Path("%s", ""); ///< The folder that is written to.
  List<char> writes;                ///< Which ranks do.
  List<uint32_t> sums;              ///< Of slices.
  Error reason;                     ///< Why this rank could not write.
  int writers = 1, other = -1;
  bool alone, isWriting = false;
  int64_t written = 0;
  Task task; ///< Ends before what it uses.
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_CHECKPOINT_TENSORWRITER_H
