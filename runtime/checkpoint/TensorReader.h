//===- TensorReader.h - States from the tensors of files --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_CHECKPOINT_TENSORREADER_H
#define REPRISE_RUNTIME_CHECKPOINT_TENSORREADER_H

#include "ModelTensors.h"

namespace reprise::runtime {

/// Reads tensors of files into the states of an arena, with all threads.
class TensorReader {
public:
  TensorReader(const ModelTensors &tensors, const TensorSet &set, Arena &arena,
               ThreadPool &pool)
      : tensors(tensors), set(set), arena(arena), pool(pool) {}

  /// Reads `count` of the tensors, from number `first` on, each from
  /// `sources[i]`, whose types are floats and whose shapes are right. With
  /// `onlyFinite`, one that is not a number or infinite is an error. Copies are
  /// passed over, and need no source.
  bool read(const TensorEntry *const *sources, int first, int count,
            bool onlyFinite, Error &error);

private:
  /// Some rows of a tensor: what a thread reads at a time.
  struct Piece {
    const ModelTensor *tensor;
    const TensorEntry *source;
    int64_t begin, end;
  };
  bool readAtOnce(const TensorEntry *const *sources, int first, int count,
                  bool onlyFinite, Error &error);
  bool cut(const ModelTensor &tensor, const TensorEntry &source);
  bool makeReady(const ModelTensor &tensor, Error &error);
  const Piece *convertAll();
  bool convert(const Piece &piece);
  bool convertRows(const Piece &piece, int part, int64_t begin, int64_t end);
  bool refuse(const Piece &piece, Error &error) const;
  /// Calls `action` with the state of each part of a tensor, until one returns
  /// false.
  template <typename Action>
  bool forEachState(const ModelTensor &tensor, Action action) const;

  const ModelTensors &tensors;
  const TensorSet &set;
  Arena &arena;
  ThreadPool &pool;
  List<Piece> pieces;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_CHECKPOINT_TENSORREADER_H
