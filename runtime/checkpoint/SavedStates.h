//===- SavedStates.h - Where a save reads the states from -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_CHECKPOINT_SAVEDSTATES_H
#define REPRISE_RUNTIME_CHECKPOINT_SAVEDSTATES_H

#include "TensorFiles.h"

#include <optional>

namespace reprise::runtime {

/// What the copy of a save may take.
struct SaveRoom {
  /// What the user says, if anything: a copy, or none.
  std::optional<bool> isCopy;
  /// What a rank of the program may take; 0: nobody has said.
  int64_t budgetBytes = 0;
};

/// The memory of a copy of slices, one behind the other.
class SliceCopy {
public:
  SliceCopy() = default;
  SliceCopy(const SliceCopy &) = delete;
  SliceCopy &operator=(const SliceCopy &) = delete;
  ~SliceCopy() { release(); }

  /// Takes memory for some of `slices`, all of its pages; false if there is
  /// not as much.
  bool allocate(const List<TensorSlice> &slices, Share some, ThreadPool &pool);
  void release();

  explicit operator bool() const { return values; }
  float *begin() const { return values; }
  /// Where the slice of this number is, of `allocate`'s.
  float *placeOf(int64_t slice) const { return places[size_t(slice - first)]; }

private:
  float *values = nullptr;
  int64_t first = 0;
  List<float *> places;
};

/// What a rank writes of a checkpoint: a copy, so that training goes on
/// meanwhile; or, where there is no room for one, states of the plan, so that
/// it has to wait.
class SavedStates {
public:
  SavedStates(const ModelTensors &tensors, const TensorFiles &files,
              const Arena &arena, ThreadPool &pool)
      : tensors(tensors), files(files), arena(arena), pool(pool) {}

  /// Decides which, the same for all ranks, and takes the memory of a copy, all
  /// of its pages, so that one that is too large is known now and not at the
  /// first save. The states of a GPU are always copied: they have to come to
  /// this machine. So are states that ranks have parts of: they have to come to
  /// who writes them.
  bool start(const SaveRoom &room, Transport &ranks, Error &error);

  /// The same for rank 0 alone, when all has been dealt to it: from the plan's
  /// memory if that is the host's.
  bool startAlone(Error &error);

  bool isCopy() const { return bool(copy); }
  /// What the copy takes beside the plan, with the messages that it comes in
  /// from other ranks; 0 without one.
  int64_t copyBytes() const { return copy ? bytes + messages : 0; }
  /// Why there is no copy, if nobody asked for that; or why one that there has
  /// to be is more than the budget; or "".
  const char *reason() const { return why.text; }

  /// Copies the states, if that is what is written; all ranks do. No step may
  /// run meanwhile, and without a copy none until all is written.
  bool take(Transport &ranks, Error &error);

  /// Whether all parameters are finite, of what `take` has copied or left where
  /// it is; an error has the first that is not. (Moments may be infinite and
  /// training still go on.)
  bool areFinite(Error &error) const;

  /// Calls `write(bytes, count)` for the bytes of a slice that this rank
  /// writes, in order, until that returns false.
  template <typename Write>
  bool read(int64_t slice, Write write) const;

private:
  bool isNeeded() const { return arena.isCopy() || tensors.haveParts(); }
  bool isInBudget(const SaveRoom &room);
  bool findRoom(Transport &ranks, bool &hasRoom, Error &error);
  bool startCopy(const SaveRoom &room, Transport &ranks, Error &error);
  bool choose(const SaveRoom &room, Transport &ranks, Error &error);
  bool takeCopy(Error &error);

  const ModelTensors &tensors;
  const TensorFiles &files;
  const Arena &arena;
  ThreadPool &pool;
  Share own = {0, 0};   ///< Of the slices.
  int64_t bytes = 0;    ///< Of these.
  int64_t messages = 0; ///< Bytes of those that a save has room for meanwhile.
  SliceCopy copy;
  Error why;
};

template <typename Write>
bool SavedStates::read(int64_t index, Write write) const {
  const TensorSlice &slice = files.slices()[size_t(index)];
  if (copy)
    return write(copy.placeOf(index), size_t(slice.bytes()));
  return tensors.forEachRun(slice, arena, write);
}

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_CHECKPOINT_SAVEDSTATES_H
