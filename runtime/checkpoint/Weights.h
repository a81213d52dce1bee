//===- Weights.h - Parameters from published files --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_CHECKPOINT_WEIGHTS_H
#define REPRISE_RUNTIME_CHECKPOINT_WEIGHTS_H

#include "ModelTensors.h"

namespace reprise::runtime {

/// What was read.
struct WeightsReport {
  int tensors, files;
  int64_t bytes; ///< In the files.
  int leftOut;   ///< Tensors of layers that predict further tokens.
  static constexpr int kLongestPrefix = 128;
  char prefix[kLongestPrefix]; ///< Passed over in front of all names.
  int wrapped; ///< Names with parts of modules that wrap others, in the middle.
  int scaled;  ///< Tensors whose elements were multiplied by scales.
};

/// Reads every parameter from `path`, a file, an index or a folder (see
/// TensorSet). Needs all tensors of the model, with their shapes, in F32, BF16
/// or F16, or in eight bits with scales (see ScaledTensors), finite, and no
/// others. The name of the base model, `transformer.` or
/// `model.`, may be missing in front of the names or be there where the model
/// has none; any other prefix that all names have is passed over. So are parts
/// of names that wrap modules (see TensorSet::unwrap). Tables that old versions
/// saved are passed over, too, and so are layers that predict further tokens
/// (those with an `eh_proj`), which are counted. The embedding of a model which
/// has it tied to its head may be called lm_head.weight, or there may be both,
/// if they are equal.
bool loadWeights(const char *path, const ModelTensors &tensors, Arena &arena,
                 ThreadPool &pool, WeightsReport &report, Error &error);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_CHECKPOINT_WEIGHTS_H
