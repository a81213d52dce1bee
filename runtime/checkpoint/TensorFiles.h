//===- TensorFiles.h - Which rank writes what of which file -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tensors of a checkpoint, one file behind the other, are cut into as many
// parts of equal size as ranks write. Cuts lie between pages of files: on some
// file systems, machines that write to one page undo each other.
//
//   model.safetensors                 optimizer.safetensors
//   header tensor tensor tensor ...   header tensor tensor tensor tensor ...
//   |------ rank 0 ------|-- rank 1 --|- rank 1 -|---------- rank 2 ---------|
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_CHECKPOINT_TENSORFILES_H
#define REPRISE_RUNTIME_CHECKPOINT_TENSORFILES_H

#include "ModelTensors.h"
#include "SafeTensorsWriter.h"

namespace reprise::runtime {

/// Whether this is the name of one of several files of parameters.
bool isShardName(const char *name);

/// A file, and the tensors that it has, in their order.
struct TensorFile {
  char name[64];
  int first, count;
  int64_t headerBytes, tensorBytes;

  int end() const { return first + count; }
};

class TensorFiles {
public:
  explicit TensorFiles(const ModelTensors &tensors) : tensors(tensors) {}
  TensorFiles(const TensorFiles &) = delete;
  TensorFiles &operator=(const TensorFiles &) = delete;

  /// Finds the files: those of the parameters, of at most `shardBytes` bytes of
  /// tensors if they have more than one, and the one of the optimizer.
  bool find(int64_t shardBytes, Error &error);

  /// Deals all of them among the ranks for which `writes[rank]`, among `size`.
  bool deal(const char *writes, int size, Error &error);

  int size() const { return int(files.size()); }
  /// The last one is the optimizer's.
  const TensorFile &operator[](int i) const { return files[size_t(i)]; }
  /// In order of files, and so of ranks.
  const List<TensorSlice> &slices() const { return all; }
  /// The numbers of those that a rank writes.
  Share slicesOf(int rank) const;
  /// Of all tensors, and of those slices.
  int64_t bytes() const;
  int64_t bytesOf(int rank) const;

  /// What comes before the tensors of a file; to be freed. Null if there is no
  /// memory left.
  char *makeHeader(int file, size_t &size) const;

private:
  bool add(int first, int count, int64_t bytes);

  const ModelTensors &tensors;
  List<TensorFile> files;
  List<TensorSlice> all;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_CHECKPOINT_TENSORFILES_H
