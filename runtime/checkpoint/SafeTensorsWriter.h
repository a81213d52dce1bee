//===- SafeTensorsWriter.h - Headers of safetensors files -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_CHECKPOINT_SAFETENSORSWRITER_H
#define REPRISE_RUNTIME_CHECKPOINT_SAFETENSORSWRITER_H

#include <cstddef>
#include <cstdint>

namespace reprise::runtime {

/// One tensor of a file that is to be written. All types have four bytes.
struct OutputTensor {
  const char *prefix, *name; ///< Its name in the file is both together.
  bool isInt;
  int rank;
  int64_t shape[4];
  const void *data;

  size_t bytes() const {
    size_t bytes = 4;
    for (int i = 0; i < rank; ++i)
      bytes *= size_t(shape[i]);
    return bytes;
  }

  /// The order of the format's reference implementation: types descending
  /// (F32 before I32), then names.
  bool operator<(const OutputTensor &other) const;
};

/// All of a safetensors file that comes before the tensors: the length of a
/// JSON header and the header, padded with spaces to a multiple of 8 bytes.
/// Sorts the tensors; the file goes on with their bytes in this order, without
/// gaps.
/// \returns what to free later, and its size; null if there is no memory left.
char *makeSafeTensorsHeader(OutputTensor *tensors, int count, size_t &size);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_CHECKPOINT_SAFETENSORSWRITER_H
