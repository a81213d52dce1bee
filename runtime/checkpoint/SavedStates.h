//===- SavedStates.h - Where a save reads the states from -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_CHECKPOINT_SAVEDSTATES_H
#define REPRISE_RUNTIME_CHECKPOINT_SAVEDSTATES_H

#include "ModelTensors.h"

#include <optional>

namespace reprise::runtime {

/// What the copy of a save may take.
struct SaveRoom {
  /// What the user says, if anything: a copy, or none.
  std::optional<bool> isCopy;
  /// What the whole program may take; 0: nobody has said.
  int64_t budgetBytes = 0;
};

/// The states while a checkpoint is written: a copy, so that training goes on
/// meanwhile; or, where there is no room for one, those of the plan, so that it
/// has to wait.
class SavedStates {
public:
  explicit SavedStates(const ModelTensors &tensors) : tensors(tensors) {}
  SavedStates(const SavedStates &) = delete;
  SavedStates &operator=(const SavedStates &) = delete;
  ~SavedStates();

  /// Decides which, and takes the memory of a copy, all of its pages, so that
  /// one that is too large is known now and not at the first save. The states
  /// of a GPU are always copied: they have to come to this machine.
  /// So are states that ranks have parts of: they have to come to rank 0.
  ///
  /// \param ranks  as many as the model is for.
  bool start(const SaveRoom &room, const Arena &arena, ThreadPool &pool,
             Transport &ranks, Error &error);

  /// Bytes of all of them.
  int64_t size() const { return bytes; }
  bool isCopy() const { return copy; }
  /// What the copy takes beside the plan; 0 without one.
  int64_t copyBytes() const { return copy ? bytes : 0; }
  /// Why there is no copy, if nobody asked for that; or "".
  const char *reason() const { return why.text; }

  /// Copies the states, if that is what is written. No step may run meanwhile,
  /// and without a copy none until all is written.
  bool take(const Arena &arena, ThreadPool &pool, Error &error);

  /// Whether all parameters are finite, of what `take` has copied or left where
  /// it is; an error has the first that is not. (Moments may be infinite and
  /// training still go on.)
  bool areFinite(Error &error) const;

  /// Calls `write(bytes, count)` for the bytes of a tensor of a file, in order,
  /// until that returns false.
  template <typename Write>
  bool read(int tensor, Write write) const;

private:
  bool hasRoom(const SaveRoom &room, const Arena &arena);
  bool allocate(ThreadPool &pool, Error &error);

  const ModelTensors &tensors;
  const Arena *source = nullptr;
  Transport *ranks = nullptr; ///< Where they have parts.
  int64_t bytes = 0;          ///< Of all tensors.
  float *copy = nullptr;
  List<float *> places; ///< Of each tensor, in the copy.
  Error why;
};

template <typename Write>
bool SavedStates::read(int tensor, Write write) const {
  if (copy)
    return write(places[size_t(tensor)],
                 size_t(tensors[tensor].elements()) * 4);
  return tensors.forEachRun(tensor, *source, write);
}

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_CHECKPOINT_SAVEDSTATES_H
