//===- ScaledTensors.h - Weights of few bits and their scales ---*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Files with weights in 8 bits have a scale for each block of a matrix, mostly
// of 128 rows and columns, in a tensor whose name has a suffix:
//
//   X.weight            [n, k]                 F8_E4M3
//   X.weight_scale_inv  [ceil(n/b), ceil(k/c)] F32
//
// A weight is its element times the scale of its block, in f32. Stacks of
// experts have as many matrices of scales. Blocks at the end of rows and
// columns have what is left.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_CHECKPOINT_SCALEDTENSORS_H
#define REPRISE_RUNTIME_CHECKPOINT_SCALEDTENSORS_H

#include "ExpertTensors.h"

namespace reprise::runtime {

/// Rows and columns of a matrix that share a scale.
struct ScaleBlocks {
  int64_t rows = 128, columns = 128;
  bool isMatrix = false; ///< All share one, whatever the numbers are.
};

/// The scales of a tensor of a file, of a stack or not; null if it needs none
/// or there are none.
const TensorEntry *findScales(const TensorSet &set, const TensorEntry &whole);

/// Notes in `tensor`, which stands in `whole`, where its scales are, if it
/// needs some; an error if there are none, or others than its shape needs.
bool addScales(const TensorSet &set, const TensorEntry &whole,
               const ScaleBlocks &blocks, TensorEntry &tensor, Error &error);

/// The elements [first, first + count) of a tensor whose type is that of a
/// weight, times their scales. \returns whether all of them are finite.
bool readElements(const TensorSet &set, const TensorEntry &tensor,
                  int64_t first, int64_t count, float *to);

/// The number of an element's scale in the tensor of scales.
int64_t scaleIndex(const TensorEntry &tensor, int64_t element);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_CHECKPOINT_SCALEDTENSORS_H
