//===- ExpertTensors.h - Experts that files have in one tensor --*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Weights of experts are published a tensor for each; version 5 of transformers
// can also write them as it has them in memory:
//
//   X.experts.gate_up_proj [E, 2 f, h]   of each expert gate, then up
//   X.experts.down_proj    [E, h, f]
//
// In these files a Mixtral's X ends in `mlp`, not in `block_sparse_moe`.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_CHECKPOINT_EXPERTTENSORS_H
#define REPRISE_RUNTIME_CHECKPOINT_EXPERTTENSORS_H

#include "SafeTensors.h"

namespace reprise::runtime {

/// What a file has for a tensor.
struct FoundTensor {
  const TensorEntry *entry = nullptr; ///< Null: a slice of `stack`, or nothing.
  const TensorEntry *stack = nullptr;
  TensorEntry slice = {};

  explicit operator bool() const { return entry || stack; }
};

/// The tensor of this name; or what a stack has in its place.
FoundTensor findTensor(const TensorSet &set, std::string_view name);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_CHECKPOINT_EXPERTTENSORS_H
